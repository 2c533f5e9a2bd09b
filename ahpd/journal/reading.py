"""How things come out of the file again. Blocks; every function is one read of one moment."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from typing import Any, cast
from zlib import crc32

from ahpd.journal import packing
from ahpd.journal.port import ClientFacts, Envelope, Kept, KeptChannel, KeptSession
from ahpd.protocol.chat import Turns
from ahpd.protocol.jsontext import ParseError, loads
from ahpd.protocol.model import JSON
from ahpd.protocol.uris import ROOT, URI, ChannelKind

_CHANNEL = (
    "SELECT key, uri, kind, owner, path, notes, heritage, at, state, turns, crc FROM channels"
)


class _Damage(Exception):
    """A row is not what was written, or is not there; for whom it belongs to."""


def read_kept(connection: sqlite3.Connection, *, limit: int) -> Kept:
    """What a host starts from; `limit` is how many envelopes can be replayed."""
    meta = dict(connection.execute("SELECT name, value FROM meta").fetchall())
    (newest,) = connection.execute("SELECT coalesce(max(seq), 0) FROM envelopes").fetchone()
    seq, evicted = max(newest, meta.get("seq", 0)), meta.get("evicted", 0)
    window, evicted = _window(connection, evicted, limit)
    uris: dict[int, URI] = dict(connection.execute("SELECT key, uri FROM channels").fetchall())
    (highest,) = connection.execute("SELECT coalesce(max(key), 0) FROM channels").fetchone()
    return Kept(
        seq=seq,
        next_key=max(highest, meta.get("next_key", 0)) + 1,
        evicted=evicted,
        window=[each for each in window if each.key in uris],
        uris=uris,
        clients=list(_clients(connection)),
        sessions=list(_sessions(connection)),
        root=next(iter(read_channels(connection, ROOT)), None),
    )


def _window(connection: sqlite3.Connection, evicted: int, limit: int) -> tuple[list[Envelope], int]:
    """The newest envelopes, and up to where older ones are gone."""
    rows = connection.execute(
        "SELECT seq, first, channel, params, audience, windowed, page_start, page_end, crc"
        " FROM envelopes WHERE seq > ? ORDER BY seq DESC",
        (evicted,),
    )
    newest_first: list[Envelope] = []
    for seq, first, key, params, audience, windowed, start, end, crc in rows:
        if crc32(params) != crc or len(newest_first) >= limit:
            # Whoever saw less than this would miss it; they are given snapshots.
            evicted = seq
            break
        page = None if start is None else (start, end)
        texts = _texts(first, seq, params)
        newest_first += [
            Envelope(number, key, text, audience, windowed, page)
            for number, text in reversed(texts)
        ]
    return newest_first[::-1], evicted


def _texts(first: int, seq: int, params: bytes) -> list[tuple[int, bytes]]:
    """The envelopes of a run, with their numbers."""
    return list(zip(range(first, seq + 1), params.split(b"\n"), strict=True))


def _clients(connection: sqlite3.Connection) -> Iterator[ClientFacts]:
    rows = connection.execute("SELECT id, version, left_at, lost, baselines FROM clients")
    for client_id, version, left_at, lost, baselines in rows:
        try:
            value = loads(baselines)
        except ParseError:
            continue  # not known any more: it is told so, and begins anew
        yield ClientFacts(client_id, version, left_at, bool(lost), value)


def _sessions(connection: sqlite3.Connection) -> Iterator[KeptSession]:
    of: dict[URI, list[URI]] = {}
    busy: set[URI] = set()
    rows = connection.execute("SELECT owner, uri, busy FROM channels WHERE owner IS NOT NULL")
    for owner, uri, is_busy in rows:
        of.setdefault(owner, []).append(uri)
        if is_busy:
            busy.add(owner)
    rows = connection.execute(
        "SELECT uri, summary, busy FROM channels WHERE kind = 'session' ORDER BY key"
    )
    for uri, summary, is_busy in rows:
        yield KeptSession(
            uri, summary or b"", (uri, *of.get(uri, ())), bool(is_busy) or uri in busy
        )


def read_channels(connection: sqlite3.Connection, uri: URI) -> Sequence[KeptChannel]:
    """A channel and all that belong to it, in the order in which they were made."""
    rows = connection.execute(f"{_CHANNEL} WHERE uri = ?1 OR owner = ?1 ORDER BY key", (uri,))
    return [_channel(connection, row) for row in rows.fetchall()]


def _channel(connection: sqlite3.Connection, row: tuple[Any, ...]) -> KeptChannel:
    key, uri, kind, owner, path, notes, heritage, at, state, count, crc = row
    damage: str | None = None
    found: dict[str, Any] = {}
    try:
        if state is None or crc32(state) != crc:
            raise _Damage("its snapshot")
        found["state"] = _value(state, "its snapshot")
        found["turns"] = _turns(connection, key, count)
        found["actions"] = _actions(connection, key, at)
        found["notes"] = _value(notes, "what the host noted of it")
        found["heritage"] = _value(heritage, "what it was made from")
        found["attached"] = _attached(connection, key)
        found["used"] = _used(connection, key)
    except _Damage as error:
        damage = f"{error} cannot be read"
        found = {}
    return KeptChannel(
        key=key,
        uri=uri,
        kind=cast("ChannelKind", kind),
        owner=owner,
        path=path,
        seq=at,
        state=found.get("state"),
        turns=found.get("turns", Turns()),
        actions=found.get("actions", ()),
        notes=found.get("notes"),
        heritage=found.get("heritage"),
        used=found.get("used", ()),
        attached=found.get("attached", {}),
        damage=damage,
    )


def _value(text: bytes | None, what: str) -> JSON:
    try:
        return loads(text) if text is not None else None
    except ParseError:
        raise _Damage(what) from None


def _turns(connection: sqlite3.Connection, key: int, count: int) -> Turns:
    try:
        turns = Turns.stored(
            (number, ids, texts or b"")
            for number, ids, texts in packing.read(connection, "turns", key)
        )
    except ValueError:
        turns = Turns()
    if len(turns) != count:
        raise _Damage("its turns")
    return turns


def _used(connection: sqlite3.Connection, key: int) -> list[str]:
    try:
        return [
            id
            for _, ids, _ in packing.read(connection, "used", key)
            for id in cast(Any, loads(ids))
        ]
    except ValueError:
        raise _Damage("the ids that were used in it") from None


def _actions(connection: sqlite3.Connection, key: int, at: int) -> list[tuple[int, bytes]]:
    rows = connection.execute(
        "SELECT seq, first, params, crc FROM envelopes"
        " WHERE channel = ? AND seq > ? AND audience IS NULL ORDER BY seq",
        (key, at),
    ).fetchall()
    if any(crc32(params) != crc for _, _, params, crc in rows):
        raise _Damage("what happened last in it")
    return [
        each
        for seq, first, params, _ in rows
        for each in _texts(first, seq, params)
        if each[0] > at
    ]


def _attached(connection: sqlite3.Connection, key: int) -> dict[str, JSON]:
    rows = connection.execute("SELECT id, text FROM attached WHERE channel = ?", (key,))
    return {id: _value(text, "what was attached to its messages") for id, text in rows.fetchall()}
