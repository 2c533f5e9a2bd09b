"""What the host remembers of each client across its connections: `ClientRecord`, `Clients`.

A client is a `clientId`; it may have several connections at once, and none for a while (R-4.8). A
record is kept while the client is connected, for the grace period after, and as long as the replay
window still reaches back to where it left.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from msgspec import Struct, field

from actors.paging import Window
from actors.replay import ReplayWindow
from actors.subscriptions import Peer
from ahpd.protocol.uris import URI


class Baseline(Struct, frozen=True):
    """That a client was given a channel's state at `seq` and everything after, without a gap.

    `window`: which turns it holds, when the state had only the newest ones.
    """

    seq: int
    window: Window | None = None


class ClientRecord(Struct, eq=False):
    """One client.

    Invariant: a channel is in `baselines` only while nothing of it can have been kept from the
    client except by losing a connection; unsubscribing ends that. It is what makes a replay safe:
    the client's number proves that it saw all actions, not that it had a state to apply them to
    (R-6.15).
    """

    client_id: str
    version: str
    baselines: dict[URI, Baseline] = field(default_factory=dict)
    #: Open connections, oldest first; the newest is the one to talk to.
    connections: list[Peer] = field(default_factory=list)
    #: The host's number when the last connection went, and how often that has happened.
    left_at: int = 0
    absences: int = 0
    #: It has been away for longer than it may keep its place in sessions.
    has_lost_place: bool = False
    #: When it was noticed that it is away, on trio's clock; None: not yet, or it is here.
    away_from: float | None = None


class Clients:
    """All clients known to this host."""

    def __init__(self) -> None:
        self._records: dict[str, ClientRecord] = {}
        #: What the journal has yet to be told.
        self.changed: dict[str, ClientRecord] = {}
        self.forgotten: set[str] = set()
        #: Called when there is something of that. Sync; never fails.
        self.on_change: Callable[[], None] = _nobody_asks

    def find(self, client_id: str) -> ClientRecord | None:
        """The record of a client that was here before."""
        return self._records.get(client_id)

    def is_connected(self, client_id: str) -> bool:
        """Whether this client has a connection now."""
        record = self._records.get(client_id)
        return record is not None and bool(record.connections)

    def join(self, client_id: str, version: str, connection: Peer) -> ClientRecord:
        """A connection introduces itself as this client; its number of versions is the latest."""
        record = self._records.get(client_id)
        if record is None:
            record = self._records[client_id] = ClientRecord(client_id, version)
        record.version = version
        if connection not in record.connections:
            record.connections.append(connection)
        record.has_lost_place = False
        record.away_from = None
        self.touch(record)
        return record

    def leave(self, record: ClientRecord, connection: Peer, seq: int) -> bool:
        """A connection closed; True when it was the client's last one."""
        if connection in record.connections:
            record.connections.remove(connection)
        record.left_at = seq
        record.absences += not record.connections
        self.touch(record)
        return not record.connections

    def forget_unreachable(self, window: ReplayWindow) -> list[str]:
        """Drop clients that are gone and that no replay could serve any more; their ids."""
        gone = [
            client_id
            for client_id, record in self._records.items()
            if not record.connections and record.left_at < window.evicted_up_to
        ]
        for client_id in gone:
            del self._records[client_id]
            self.changed.pop(client_id, None)
            self.forgotten.add(client_id)
        if gone:
            self.on_change()
        return gone

    def channel_closed(self, uri: URI) -> None:
        """A channel is gone: no client has a baseline of it, nor of a later one of that name."""
        for record in self._records.values():
            self.drop_baseline(record, uri)

    def admit(self, record: ClientRecord) -> None:
        """Take in a client that was stored."""
        self._records[record.client_id] = record

    def touch(self, record: ClientRecord) -> None:
        """Something of it has changed."""
        self.changed[record.client_id] = record
        self.forgotten.discard(record.client_id)
        self.on_change()

    def set_baseline(self, record: ClientRecord, uri: URI, baseline: Baseline) -> None:
        """The client has this channel's state."""
        record.baselines[uri] = baseline
        self.touch(record)

    def drop_baseline(self, record: ClientRecord, uri: URI) -> None:
        """The client has it no longer, if it had."""
        if record.baselines.pop(uri, None) is not None:
            self.touch(record)

    def __iter__(self) -> Iterator[ClientRecord]:
        """Every record."""
        return iter(self._records.values())


def _nobody_asks() -> None:
    """Until somebody wants to know."""
