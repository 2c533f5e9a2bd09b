"""What clients are told when an actor of theirs is set aside (parked), and when it is back.

A parked actor cannot say anything itself, so this is a sink for the tree's reports: sync, in the
supervisor's own step, on the channel's state in the ledger. A chat's running turn ends (invariant
7), and the channel's activity says what happened and what a person can do about it; dispatches to
it are refused by the connections.
"""

from __future__ import annotations

from contextlib import suppress

from actors.endings import end_turn
from actors.host import Host
from actors.messages import WatchFailed
from actors.notices import Notices
from actors.sentences import set_aside
from ahpd.agents.events import Failed
from supervisors import Note, Report, SupervisorsError, System


class Caretaker:
    """See the module. `attach` must be called once the tree runs."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._system: System | None = None
        self._notices = Notices(host)

    def attach(self, system: System) -> None:
        """The tree runs."""
        self._system = self._notices.system = system

    def __call__(self, report: Report) -> None:
        """Look at a report. Sync; never raises because of a channel that has gone."""
        self._host.tally.note(report)
        if report.note is Note.PARKED and report.path.startswith("watch/"):
            if self._system is not None:
                with suppress(SupervisorsError):
                    self._system.ref("watches").cast(WatchFailed(report.path))
        elif report.note is Note.PARKED:
            self._set_aside(report.path)
        elif report.note is Note.STARTED:
            self._notices.take_back(report.path)

    def _set_aside(self, path: str) -> None:
        channel = self._notices.channel_at(path)
        if channel is None:
            return
        if channel.kind == "chat":
            self._end_turns(path)
        self._notices.say(path, set_aside(path))
        self._notices.forget_before(path)

    def _end_turns(self, path: str) -> None:
        """Of the chat, and of those of its workers."""
        failed = Failed("this chat failed too often and was set aside", "ChatParked")
        for channel in list(self._host.ledger.channels.values()):
            if channel.path == path and end_turn(self._host, channel, failed):
                self._notices.tell_above(channel)
