"""`Notices`: what is said in a channel's `activity` by others than its actor.

An actor that is set aside, or paused by somebody who looks inside, cannot say so itself. So it is
said here: sync, in the step of whoever knows, on the channel's state in the ledger.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress

from actors.host import Host
from actors.ledger import Channel
from actors.messages import ChatMoved, SessionMoved
from actors.sentences import is_sentence
from ahpd import reducers
from ahpd.protocol.actions import StateAction
from ahpd.protocol.chat_actions import ChatActivityChangedAction
from ahpd.protocol.session_actions import SessionActivityChangedAction
from supervisors import SupervisorsError, System

#: Kinds of channels that have an activity.
_KINDS = ("chat", "session")


class Notices:
    """See the module. Only chats and sessions have an activity; of other actors nothing is said."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self.system: System | None = None
        #: By actor: what is said, and what was there before.
        self._said: dict[str, tuple[str, str | None]] = {}

    def channel_at(self, path: str) -> Channel | None:
        """The chat or session that the actor at a path answers for."""
        channels = self._host.ledger.channels.values()
        return next((each for each in channels if each.path == path and each.kind in _KINDS), None)

    def is_said(self, path: str) -> bool:
        """Whether something is said of the actor there."""
        return path in self._said

    def say(self, path: str, text: str) -> None:
        """Say this of the actor at a path; again, if it has said something else since. Sync."""
        channel = self.channel_at(path)
        if channel is None or channel.state.activity == text:
            return
        self._said[path] = (text, channel.state.activity)
        self._put(channel, text)

    def take_back_all(self, channels: Iterable[Channel]) -> None:
        """What an earlier process said of its actors is not true of those of this one. Sync."""
        for channel in channels:
            if channel.kind in _KINDS and is_sentence(channel.state.activity):
                self._put(channel, None)

    def take_back(self, path: str) -> None:
        """It does not hold any more: what was there before is, unless something else is. Sync."""
        if path not in self._said:
            return
        text, before = self._said.pop(path)
        channel = self.channel_at(path)
        if channel is not None and channel.state.activity == text:
            self._put(channel, before)

    def forget_before(self, path: str) -> None:
        """What was there before is over, and will not come back."""
        if path in self._said:
            self._said[path] = (self._said[path][0], None)

    def _put(self, channel: Channel, text: str | None) -> None:
        if channel.kind == "chat":
            self._append(channel, ChatActivityChangedAction(activity=text))
        else:
            self._append(channel, SessionActivityChangedAction(activity=text))
        self.tell_above(channel)

    def _append(self, channel: Channel, action: StateAction) -> None:
        state = reducers.apply(channel.kind, channel.state, action)
        if state is not channel.state:
            self._host.ledger.append(channel, action, state)

    def tell_above(self, channel: Channel) -> None:
        """Let whoever summarises this channel look at it."""
        if self.system is None or channel.stirred:
            return
        with suppress(SupervisorsError):  # down itself: it looks when it starts
            if channel.owner is None:
                self.system.ref("catalogue").cast(SessionMoved(channel.uri))
                channel.stirred = True
                return
            owner = self._host.ledger.find(channel.owner)
            if owner is not None:
                self.system.ref(owner.path).cast(ChatMoved(channel.uri))
                channel.stirred = True
