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
from actors.ledger import Channel
from actors.messages import ChatMoved, SessionMoved, WatchFailed
from ahpd import reducers
from ahpd.agents.events import Failed
from ahpd.protocol.actions import StateAction
from ahpd.protocol.chat_actions import ChatActivityChangedAction
from ahpd.protocol.session_actions import SessionActivityChangedAction
from supervisors import Note, Report, SupervisorsError, System


class Caretaker:
    """See the module. `attach` must be called once the tree runs."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._system: System | None = None
        #: Paths of actors that are parked, with what was said on their channels.
        self._parked: dict[str, str] = {}

    def attach(self, system: System) -> None:
        """The tree runs."""
        self._system = system

    def __call__(self, report: Report) -> None:
        """Look at a report. Sync; never raises because of a channel that has gone."""
        self._host.tally.note(report)
        if report.note is Note.PARKED and report.path.startswith("watch/"):
            if self._system is not None:
                with suppress(SupervisorsError):
                    self._system.ref("watches").cast(WatchFailed(report.path))
        elif report.note is Note.PARKED:
            self._set_aside(report.path)
        elif report.note is Note.STARTED and report.path in self._parked:
            self._is_back(report.path)

    def _set_aside(self, path: str) -> None:
        channel = self._channel_at(path)
        if channel is None:
            return
        text = sentence(path)
        self._parked[path] = text
        if channel.kind == "chat":
            self._end_turns(path)
        self._say_activity(channel, text)

    def _end_turns(self, path: str) -> None:
        """Of the chat, and of those of its workers."""
        failed = Failed("this chat failed too often and was set aside", "ChatParked")
        for channel in list(self._host.ledger.channels.values()):
            if channel.path == path and end_turn(self._host, channel, failed):
                self._tell_above(channel)

    def _is_back(self, path: str) -> None:
        text = self._parked.pop(path)
        channel = self._channel_at(path)
        if channel is not None and channel.state.activity == text:
            self._say_activity(channel, None)

    def _channel_at(self, path: str) -> Channel | None:
        channels = self._host.ledger.channels.values()
        kinds = ("chat", "session")
        return next((each for each in channels if each.path == path and each.kind in kinds), None)

    def _say_activity(self, channel: Channel, text: str | None) -> None:
        if channel.kind == "chat":
            self._say(channel, ChatActivityChangedAction(activity=text))
        else:
            self._say(channel, SessionActivityChangedAction(activity=text))
        self._tell_above(channel)

    def _say(self, channel: Channel, action: StateAction) -> None:
        state = reducers.apply(channel.kind, channel.state, action)
        if state is not channel.state:
            self._host.ledger.append(channel, action, state)

    def _tell_above(self, channel: Channel) -> None:
        """Let whoever summarises this channel look at it."""
        if self._system is None or channel.stirred:
            return
        with suppress(SupervisorsError):  # down itself: it looks when it starts
            if channel.owner is None:
                self._system.ref("catalogue").cast(SessionMoved(channel.uri))
                channel.stirred = True
                return
            owner = self._host.ledger.find(channel.owner)
            if owner is not None:
                self._system.ref(owner.path).cast(ChatMoved(channel.uri))
                channel.stirred = True


def sentence(path: str) -> str:
    """What a parked actor's channel says."""
    return f"Set aside after failing too often. To try again: ahpd restart {path}"
