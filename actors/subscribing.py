"""Subscriptions of one connection: snapshots, what goes with them, and how they end (RULES 4).

A snapshot is the state of a channel and the number of the same moment. The answer that carries it
takes its place in the host's queue at that moment, and the subscription begins when the answer is
let out: so everything in the snapshot is durable when it is seen, every later envelope of the
channel comes behind it, and none is missing between (invariant 2).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import TYPE_CHECKING

from msgspec import Struct, structs

from actors.clients import Baseline
from actors.host import Host
from actors.messages import ClientLeft
from actors.otlp import topic_of
from actors.root_config import own_view
from actors.snapshots import Taken, take, write_ahead
from actors.subscriptions import Subscription
from actors.terminals import rebuild
from ahpd.protocol.connection import SubscribeParams
from ahpd.protocol.errors import ErrorCode, ProtocolError
from ahpd.protocol.frame import Frame, frame
from ahpd.protocol.jsonrpc import Id, success
from ahpd.protocol.root import RootState
from ahpd.protocol.uris import URI, canonical
from supervisors import SupervisorsError

if TYPE_CHECKING:
    from actors.connection import Connection

#: Longest that a subscriber may ask its envelopes to be held back (seconds).
LONGEST_HOLD = 10.0


class Deferred(Struct, frozen=True):
    """An answer that is made at its place in the host's order; `after` runs at that place too."""

    make: Callable[[Id], Frame]
    after: Callable[[], None]


def begin(connection: Connection, taken: Taken) -> None:
    """The snapshot was let out: what comes from now on goes to this connection too."""
    host, channel, record = connection.host, taken.channel, connection.record
    if channel.closed or connection.outbox.closed or record is None:
        return
    host.subscriptions.add(connection, channel.uri, taken.subscription)
    baseline = Baseline(taken.seq, taken.subscription.window)

    def written() -> None:
        # Only now can the client have it; a connection that dies before leaves no baseline, nor
        # does a subscription that was ended, or begun again, in the meantime.
        if host.subscriptions.find(connection, channel.uri) is taken.subscription:
            host.clients.set_baseline(record, channel.uri, baseline)

    connection.outbox.after(written)


def telemetry_in(host: Host, uris: Iterable[URI]) -> list[URI]:
    """Those that are telemetry channels of this host."""
    return [uri for uri in uris if host.telemetry is not None and topic_of(uri) is not None]


def begin_stream(connection: Connection, uri: URI) -> None:
    """A telemetry channel: what is produced from now on goes to this connection too (R-20.7)."""
    host = connection.host
    if host.telemetry is not None and not connection.outbox.closed:
        host.subscriptions.add(connection, uri, Subscription())
        host.telemetry.hear(uri)


async def subscribe(connection: Connection, params: SubscribeParams) -> Deferred:
    """Answer with a snapshot and subscribe; a second time answers with a fresh one (R-4.32)."""
    uri = canonical(params.channel)
    if telemetry_in(connection.host, [uri]):
        return Deferred(lambda id: frame(success(id, {})), lambda: begin_stream(connection, uri))
    channel = connection.host.ledger.find(uri)
    if channel is None:
        channel = await rebuild(connection.host, connection.system, uri)
    if channel is None:
        raise not_found(uri)
    turns = _turns(params)
    texts = await write_ahead([channel], turns)
    if channel.closed:
        raise not_found(uri)
    taken = take(channel, connection.host.ledger.seq, turns=turns, hold=_hold(params))
    if isinstance(taken.state, RootState):
        taken = structs.replace(taken, state=own_view(taken.state, connection.settings))
    body = {"snapshot": taken.wire(texts)}
    return Deferred(lambda id: frame(success(id, body)), lambda: begin(connection, taken))


def not_found(uri: URI) -> ProtocolError:
    """R-3.6. A client chooses a session's scheme, so anything unknown may be meant as one."""
    kind = uri.partition(":")[0].lower()
    is_other = kind.startswith("ahp-") and kind != "ahp-session"
    if is_other or any(word in kind for word in ("chat", "terminal")):
        return ProtocolError(ErrorCode.NOT_FOUND, f"there is no channel {uri}")
    return ProtocolError(ErrorCode.SESSION_NOT_FOUND, f"there is no session {uri}")


def _turns(params: SubscribeParams) -> int | None:
    """How many turns were asked for. It is advice: one that makes no sense is ignored (R-4.25)."""
    turns = params.view.turns if params.view is not None else None
    return int(turns) if turns is not None and turns >= 0 else None


def _hold(params: SubscribeParams) -> float:
    """Seconds that this subscription allows its envelopes to be held back (R-4.22)."""
    latency = params.delivery.max_latency_ms if params.delivery is not None else None
    return min(max(latency or 0.0, 0.0) / 1000.0, LONGEST_HOLD)


def leave_channel(connection: Connection, uri: URI) -> None:
    """End a subscription (R-4.36). What another connection of the client hears stays as it is."""
    host, record = connection.host, connection.record
    if not host.subscriptions.remove(connection, uri) or record is None:
        return
    others = (other for other in record.connections if other is not connection)
    if any(host.subscriptions.find(other, uri) is not None for other in others):
        return
    host.clients.drop_baseline(record, uri)
    channel = host.ledger.find(uri)
    if channel is not None and channel.kind == "session":
        with suppress(SupervisorsError):  # this runs where envelopes are let out: never fails
            connection.find(channel.path).cast(ClientLeft(record.client_id))
