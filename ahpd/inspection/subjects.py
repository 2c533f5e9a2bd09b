"""`Subject`: the actor that somebody is attached to, whichever incarnation runs."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, TypeAlias

from actors.host import Host
from actors.ledger import Channel
from ahpd.inspection.shown import plain
from ahpd.protocol.errors import ErrorCode, ProtocolError
from ahpd.protocol.model import JSON
from ahpd.protocol.uris import URI
from supervisors import Actor, Ref, System, sys

#: The state of a channel at a number, from the journal, as plain JSON.
#: Raises `LookupError` with a sentence when that is not kept (any more).
StateAt: TypeAlias = Callable[[URI, int], Awaitable[JSON]]


class Subject:
    """See the module."""

    def __init__(self, system: System, host: Host, path: str, state_at: StateAt) -> None:
        self.path = path
        self.system = system
        self.host = host
        self._state_at = state_at
        self._channel: Channel | None = None

    @property
    def ref(self) -> Ref[Any]:
        """Where it is found."""
        return self.system.ref(self.path)

    @property
    def actor(self) -> Actor[Any] | None:
        """The object that is the actor now."""
        return sys.actor_at(self.system, self.path)

    @property
    def channel(self) -> Channel | None:
        """The channel that it answers for; of several, the first: workers' chats come later."""
        held = self._channel
        if held is None or held.closed or held.path != self.path:
            channels = self.host.ledger.channels.values()
            held = next((each for each in channels if each.path == self.path), None)
            self._channel = held
        return held

    def check(self) -> None:
        """Raise `ProtocolError` when there is nothing at its path any more."""
        if self.system.registry.get(self.path) is None:
            raise ProtocolError(ErrorCode.NOT_FOUND, f"{self.path} is gone, and its path is free")

    def state(self) -> Any:
        """Its channel's state; of an actor without one, what it says of itself."""
        channel = self.channel
        if channel is not None:
            return channel.state
        actor = self.actor
        if actor is None:
            raise ProtocolError(ErrorCode.NOT_FOUND, f"{self.path} does not run")
        return plain(actor.inspect())

    async def state_at(self, number: int) -> Any:
        """Its channel's state as it was at a number. Raises `ProtocolError`."""
        channel, ledger = self.channel, self.host.ledger
        if channel is None:
            raise ProtocolError(
                ErrorCode.INVALID_PARAMS,
                f"{self.path} has no channel, so nothing of it is numbered",
            )
        if number > ledger.seq:
            raise ProtocolError(ErrorCode.INVALID_PARAMS, f"the host is at number {ledger.seq}")
        if number >= channel.seq:
            return channel.state
        try:
            return await self._state_at(channel.uri, number)
        except LookupError as error:
            raise ProtocolError(ErrorCode.NOT_FOUND, str(error.args[0])) from None


async def nothing_kept(uri: URI, number: int) -> JSON:
    """A `StateAt` of a host without a journal in a file."""
    raise LookupError("this host keeps no journal, so there are no states but the last")
