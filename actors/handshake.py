"""How a connection opens: `initialize`, or `reconnect` for a known client (RULES 2, 4, 6)."""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING

from actors.beside import PREFIX
from actors.clients import Baseline, ClientRecord
from actors.completions import TRIGGERS
from actors.grace import leave_sessions
from actors.ledger import Channel
from actors.otlp import CAPABILITIES
from actors.snapshots import Taken, take, write_ahead
from actors.subscribing import Deferred, begin, begin_stream, telemetry_in
from actors.subscriptions import Subscription
from ahpd.protocol.connection import InitializeParams, ReconnectParams
from ahpd.protocol.errors import ErrorCode, ProtocolError
from ahpd.protocol.frame import Frame, frame
from ahpd.protocol.jsonrpc import Id, success
from ahpd.protocol.jsontext import dumps
from ahpd.protocol.uris import URI, canonical
from ahpd.protocol.versions import negotiate

if TYPE_CHECKING:
    from actors.connection import Connection

_log = logging.getLogger("ahpd.connections")

#: Longest client id that is kept, in characters.
LONGEST_ID = 512


def _join(
    connection: Connection, client_id: str, version: str, wanted: Collection[URI] = ()
) -> ClientRecord:
    """The connection is this client's, which still holds the states of `wanted`, and no others."""
    record = connection.host.clients.join(client_id, version, connection)
    kept = _still_heard(connection, record, wanted)
    for uri in record.baselines.keys() - kept:
        connection.host.clients.drop_baseline(record, uri)
    connection.record = record
    connection.client_id = client_id
    connection.is_old = version.startswith("0.9.")
    _log.debug("client %s joined with version %s", client_id, version)
    return record


async def initialize(connection: Connection, params: InitializeParams) -> Deferred:
    """R-4.1 to R-4.6: a channel that does not exist is left out, the rest succeeds."""
    version = negotiate(params.protocol_versions)
    if not params.client_id or len(params.client_id) > LONGEST_ID:
        raise ProtocolError(
            ErrorCode.INVALID_PARAMS, f"initialize: clientId must have 1 to {LONGEST_ID} characters"
        )
    _join(connection, params.client_id, version)
    connection.locale = params.locale
    host = connection.host
    channels = _channels(connection, params.initial_subscriptions or ())
    texts = await write_ahead(channels)
    seq = host.ledger.seq
    snapshots = [take(channel, seq) for channel in channels if not channel.closed]
    result = {
        "protocolVersion": version,
        "serverSeq": seq,
        "serverInfo": {"name": host.settings.name, "version": host.settings.version},
        "snapshots": [taken.wire(texts) for taken in snapshots],
        "completionTriggerCharacters": list(TRIGGERS),
    }
    if host.telemetry is not None:
        result["telemetry"] = CAPABILITIES
    streams = telemetry_in(host, params.initial_subscriptions or ())
    if host.terminals is not None:
        result["terminalCommandPrefix"] = PREFIX
    if host.settings.served:
        result["defaultDirectory"] = host.settings.served[0]
    return Deferred(
        lambda id: frame(success(id, result)),
        lambda: _begin_all(connection, snapshots, streams),
    )


def _channels(connection: Connection, uris: tuple[URI, ...]) -> list[Channel]:
    """The channels there are of these, each once however often it is named (quirk 6)."""
    find = connection.host.ledger.find
    found = (find(uri) for uri in dict.fromkeys(map(canonical, uris)))
    return [channel for channel in found if channel is not None]


def _begin_all(connection: Connection, snapshots: list[Taken], streams: Collection[URI]) -> None:
    for taken in snapshots:
        begin(connection, taken)
    for uri in streams:
        begin_stream(connection, uri)


async def reconnect(connection: Connection, params: ReconnectParams) -> Deferred:
    """R-6.1 to R-6.16: everything missed, in order, or fresh snapshots of all channels.

    Which of the two is decided when the answer's place in the order is reached, because only then
    is it known what the replay window still holds.
    """
    host = connection.host
    record = host.clients.find(params.client_id)
    if record is None:
        raise ProtocolError(
            ErrorCode.NOT_FOUND, f"the client {params.client_id} is not known here; initialize"
        )
    seen = params.last_seen_server_seq
    if seen != int(seen):
        raise ProtocolError(
            ErrorCode.INVALID_PARAMS, f"reconnect: lastSeenServerSeq: {seen} is no whole number"
        )
    wanted = list(dict.fromkeys(map(canonical, params.subscriptions)))
    _join(connection, params.client_id, record.version, wanted)
    leave_sessions(
        connection, host, params.client_id, keep=_still_heard(connection, record, wanted)
    )
    channels = _channels(connection, params.subscriptions)
    streams = telemetry_in(host, wanted)

    def can_replay(current: int) -> bool:
        return host.window.reaches(seen, current) and all(
            channel.closed or _has_baseline(record, channel, seen) for channel in channels
        )

    # Long snapshots are written before, unless it looks as if none will be needed.
    texts = await write_ahead(() if can_replay(host.ledger.seq) else channels)
    current = host.ledger.seq
    snapshots = [take(channel, current) for channel in channels if not channel.closed]
    replayed = False
    heard: dict[URI, Subscription] = {}

    def make(id: Id) -> Frame:
        nonlocal replayed
        open_now = [channel for channel in channels if not channel.closed]
        replayed = can_replay(current)
        host.tally.reconnects["replay" if replayed else "snapshot"] += 1
        if not replayed:
            listed = [taken.wire(texts) for taken in snapshots if not taken.channel.closed]
            return frame(success(id, {"type": "snapshot", "snapshots": listed}))
        heard.update((channel.uri, _resumed(record, channel, seen)) for channel in open_now)
        missing = [uri for uri in wanted if uri not in heard and uri not in streams]
        return _replay(connection, id, seen, heard, missing)

    def after() -> None:
        if not replayed:
            _begin_all(connection, snapshots, streams)
            return
        _begin_all(connection, [], streams)
        for channel in channels:
            if not channel.closed:
                host.subscriptions.add(connection, channel.uri, heard[channel.uri])

    return Deferred(make, after)


def _still_heard(connection: Connection, record: ClientRecord, wanted: Collection[URI]) -> set[URI]:
    """Channels that the client wants again, or hears on another connection."""
    heard = set(wanted)
    for other in record.connections:
        if other is not connection:
            heard.update(connection.host.subscriptions.heard_by(other))
    return heard


def _has_baseline(record: ClientRecord, channel: Channel, seen: float) -> bool:
    """Whether the client had the channel's state by the time it saw that number (R-6.15)."""
    baseline = record.baselines.get(channel.uri)
    return baseline is not None and baseline.seq <= seen


def _resumed(record: ClientRecord, channel: Channel, seen: float) -> Subscription:
    """A subscription that goes on with what the client held when it saw that number."""
    baseline = record.baselines[channel.uri]
    if baseline.window is None:
        return Subscription()
    window = baseline.window.as_of(seen)
    record.baselines[channel.uri] = Baseline(baseline.seq, window)
    return Subscription(window=window)


def _replay(
    connection: Connection,
    id: Id,
    seen: float,
    heard: Mapping[URI, Subscription],
    missing: list[URI],
) -> Frame:
    """The answer made of the envelopes' own texts: none is encoded again."""
    record = connection.record
    assert record is not None
    texts: list[bytes] = []
    for entry in connection.host.window.since(seen, heard, record.client_id):
        text = heard[entry.channel.uri].text_of(entry)
        if text is not None:
            texts.append(text)
    tally = connection.host.tally
    tally.replayed += len(texts)
    tally.replayed_bytes += sum(map(len, texts))
    head = b'{"jsonrpc":"2.0","id":' + dumps(id) + b',"result":{"type":"replay","actions":['
    tail = b'],"missing":' + dumps(missing) + b"}}"
    return Frame(head + b",".join(texts) + tail)
