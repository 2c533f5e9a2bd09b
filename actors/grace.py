"""Grace: gives clients that went away some time to come back before they lose their place.

A client whose last connection closed keeps its role in sessions for `Settings.grace` seconds
(R-10.36, R-10.38). It is forgotten altogether when no replay could serve it any more.
"""

from __future__ import annotations

from collections.abc import Collection
from contextlib import suppress
from typing import Any, TypeAlias

import trio
from msgspec import Struct

from actors.host import Host
from actors.messages import ClientLeft
from ahpd.protocol.session import SessionState
from ahpd.protocol.uris import URI
from supervisors import Actor, ActorGone


class ClientGone(Struct, frozen=True):
    """The last connection of this client closed."""

    client_id: str


class GraceOver(Struct, frozen=True):
    """The time of this client is up, if it has not come back since."""

    client_id: str
    absence: int


Incoming: TypeAlias = ClientGone | GraceOver


class Grace(Actor[Incoming]):
    """See the module's docstring."""

    kind = "grace"

    def __init__(self, host: Host) -> None:
        self._host = host

    async def on_start(self) -> None:
        """Go on with the clocks of those who are away: an earlier incarnation's went with it."""
        for record in self._host.clients:
            if not record.connections:
                self._wait(record.client_id)

    async def handle(self, message: Incoming) -> None:
        """One message."""
        match message:
            case ClientGone():
                self._wait(message.client_id)
            case GraceOver():
                self._over(message)

    def _wait(self, client_id: str) -> None:
        record = self._host.clients.find(client_id)
        if record is not None and not record.connections:
            if record.away_from is None:
                record.away_from = trio.current_time()
            self.spawn(
                self._clock,
                client_id,
                record.absences,
                record.away_from,
                name=f"grace {client_id}",
            )

    async def _clock(self, client_id: str, absence: int, since: float) -> None:
        """Helper: one client's time."""
        await trio.sleep_until(since + self._host.settings.grace)
        self.ref.cast(GraceOver(client_id, absence))

    def _over(self, message: GraceOver) -> None:
        record = self._host.clients.find(message.client_id)
        if record is None or record.connections or record.absences != message.absence:
            return  # it came back, perhaps to leave again: that absence has a clock of its own
        record.has_lost_place = True
        self._host.clients.touch(record)
        leave_sessions(self, self._host, message.client_id)
        self._host.clients.forget_unreachable(self._host.window)


def leave_sessions(
    actor: Actor[Any], host: Host, client_id: str, keep: Collection[URI] = ()
) -> None:
    """Tell every session that this client takes part in, `keep` apart, that it has left."""
    for channel in host.ledger.channels.values():
        if not isinstance(channel.state, SessionState) or channel.uri in keep:
            continue
        if any(client.client_id == client_id for client in channel.state.active_clients):
            with suppress(ActorGone):
                actor.find(channel.path).cast(ClientLeft(client_id))
