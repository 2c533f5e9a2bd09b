"""How things come out of the file again. Blocks; every function is one read of one moment."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

from msgspec import Struct

from ahpd.journal import packing
from ahpd.journal.port import ClientFacts, Envelope, Kept, KeptChannel, KeptSession
from ahpd.journal.sums import checksum, unseal
from ahpd.protocol.chat import Turns
from ahpd.protocol.jsontext import loads
from ahpd.protocol.model import JSON
from ahpd.protocol.uris import ROOT, URI, ChannelKind

_CHANNEL = (
    "SELECT key, uri, kind, owner, path, busy, place, notes, heritage, at, state, turns, crc"
    " FROM channels"
)

_PLACES = "SELECT key, uri, kind, owner, path, busy, place FROM channels NOT INDEXED"

_RUN = "seq, first, channel, params, audience, windowed, page_start, page_end, crc"


class _Damage(Exception):
    """A row is not what was written, or is not there; for whom it belongs to."""


class Meta(Struct, frozen=True):
    """What the file says of itself. `is_sound`: all of it can be believed."""

    seq: int
    evicted: int
    highest_key: int
    in_use: str
    is_sound: bool


def read_meta(connection: sqlite3.Connection) -> Meta:
    """What is not sound is made up: the numbers are then at least those that are in the file."""
    rows = connection.execute("SELECT name, value, crc FROM meta").fetchall()
    found = {name: value for name, value, crc in rows if checksum(name, value) == crc}
    names = ("seq", "evicted", "highest_key", "in_use")
    seen, highest = _highest_numbers(connection)
    return Meta(
        seq=max(found.get("seq", 0), seen),
        evicted=found.get("evicted", 0),
        highest_key=max(found.get("highest_key", 0), highest),
        in_use=found.get("in_use", ""),
        # A file in which nothing was ever written has none of them, and nothing else.
        is_sound=all(name in found for name in names) or not (rows or seen or highest),
    )


def _highest_numbers(connection: sqlite3.Connection) -> tuple[int, int]:
    """The highest number that something happened at, and the highest key, of rows that are sound.

    One that is not could say any number, and the host would go on from there for ever.
    """
    seen = highest = 0
    for *columns, crc in connection.execute(f"SELECT {_RUN} FROM envelopes ORDER BY seq DESC"):
        if checksum(*columns) == crc:
            seen = columns[0]
            break
    rows = connection.execute(
        "SELECT key, at FROM channels NOT INDEXED WHERE typeof(at) = 'integer' AND at > ?"
        " ORDER BY at DESC",
        (seen,),
    )
    for key, at in rows.fetchall():
        snapshot = "SELECT key, at, state, turns, crc FROM channels WHERE key = ?"
        row = connection.execute(snapshot, (key,)).fetchone()
        if row is not None and checksum(*row[:-1]) == row[-1]:
            seen = at
            break
    for *columns, place in connection.execute(f"{_PLACES} ORDER BY key DESC"):
        if checksum(*columns) == place:
            highest = columns[0]
            break
    return seen, highest


class Survey(Struct, frozen=True):
    """What is wrong with a file, as far as that would not show when a channel is loaded.

    `channels`: keys of those that nobody can load, and why. `indexes`: tables with one that would
    lead astray. `is_sound`: nothing at all is, so the highest number in the file can be believed.
    """

    channels: Mapping[int, str]
    indexes: Sequence[str]
    is_sound: bool


def survey(connection: sqlite3.Connection) -> Survey:
    """Look at all rows that do not belong to a snapshot. Nothing may have been mended before."""
    spoiled, places = _spoiled(connection), _places(connection)
    channels = _unusable(connection, spoiled, places)
    indexes = _wrong_indexes(connection, places)
    return Survey(channels, indexes, not (spoiled or channels or indexes))


def _unusable(
    connection: sqlite3.Connection,
    spoiled: Mapping[object, set[object]],
    places: Sequence[Any],
) -> dict[int, str]:
    """A row does not say what it belongs to; what belongs to a session like that goes with it."""
    why = "what happened last in it cannot be read"
    bad = dict.fromkeys(_without_their_last(connection, spoiled), why)
    sessions: set[URI] = set()
    owned: list[tuple[int, URI]] = []
    for *columns, place in places:
        key, uri, kind, owner, *_ = columns
        if checksum(*columns) != place:
            bad[key] = "its row in the table of channels cannot be read"
        elif kind == "session" and key not in bad:
            sessions.add(uri)
        elif owner is not None:
            owned.append((key, owner))
    if bad:
        why = "its session cannot be read"
        bad.update((key, why) for key, owner in owned if owner not in sessions)
    return bad


def _spoiled(connection: sqlite3.Connection) -> dict[object, set[object]]:
    """Envelopes that cannot be read, or are not there: by number, the channels they may belong to.

    The index knows of rows that the table has lost, and the other way round.
    """
    spoiled: dict[object, set[object]] = {}
    for *columns, crc in connection.execute(f"SELECT {_RUN} FROM envelopes NOT INDEXED"):
        if checksum(*columns) != crc:
            seq, _, channel, *_ = columns
            spoiled.setdefault(seq, set()).add(channel)
    by_row = _pairs(connection, "envelopes", "seq, channel", "NOT INDEXED")
    try:
        by_index = _pairs(connection, *_INDEXED[-1])
    except sqlite3.DatabaseError:
        return spoiled  # then what the rows say themselves is all there is
    for seq, channel in by_row ^ by_index:
        spoiled.setdefault(seq, set()).add(channel)
    for seq, channel in by_index:
        if seq in spoiled:
            spoiled[seq].add(channel)
    return spoiled


def _without_their_last(
    connection: sqlite3.Connection, spoiled: Mapping[object, set[object]]
) -> set[int]:
    """Channels to which an action may belong that is in no snapshot, and cannot be read.

    They have to be known before anything is swept: the row could be taken for another channel's.
    """
    found: set[int] = set()
    for seq, keys in spoiled.items():
        for key in keys:
            row = connection.execute("SELECT at FROM channels WHERE key = ?", (key,)).fetchone()
            at = None if row is None else row[0]
            held = isinstance(at, int) and isinstance(seq, int) and at >= seq
            if row is not None and isinstance(key, int) and not held:
                found.add(key)
    return found


def _places(connection: sqlite3.Connection) -> list[Any]:
    """Of each channel what `place` is the checksum of, and that."""
    return connection.execute(f"{_PLACES} ORDER BY key").fetchall()


#: What is in an index too: the table, the columns, and how to read the index alone.
_INDEXED = (
    ("channels", "key, uri", "INDEXED BY sqlite_autoindex_channels_1"),
    ("channels", "key, owner", "INDEXED BY channels_owner WHERE owner IS NOT NULL"),
    ("envelopes", "seq, channel", "INDEXED BY envelopes_channel"),
)


def _pairs(
    connection: sqlite3.Connection, table: str, columns: str, how: str
) -> set[tuple[object, ...]]:
    rows = connection.execute(f"SELECT {columns} FROM {table} {how}").fetchall()
    return {row for row in rows if row[1] is not None}  # as an index on owners does


def _wrong_indexes(connection: sqlite3.Connection, places: Sequence[Any]) -> list[str]:
    """Tables with an index that would not find all of their rows, or other ones."""
    rows: list[set[tuple[object, ...]]] = [
        {(key, uri) for key, uri, *_ in places},
        {(key, owner) for key, _, _, owner, *_ in places if owner is not None},
        _pairs(connection, "envelopes", "seq, channel", "NOT INDEXED"),
    ]
    wrong: list[str] = []
    for (table, columns, index), by_row in zip(_INDEXED, rows, strict=True):
        try:
            agree = _pairs(connection, table, columns, index) == by_row
        except sqlite3.OperationalError as error:
            if not hasattr(error, "sqlite_errorcode"):
                raise
            agree = False
        except sqlite3.DatabaseError:
            agree = False
        if not agree and table not in wrong:
            wrong.append(table)
    return wrong


def read_kept(connection: sqlite3.Connection, *, limit: int) -> Kept:
    """What a host starts from; `limit` is how many envelopes can be replayed."""
    meta = read_meta(connection)
    window, evicted = _window(connection, meta.evicted, limit)
    places = _places(connection)
    uris: dict[int, URI] = {key: uri for key, uri, *_ in places}
    return Kept(
        seq=meta.seq,
        next_key=meta.highest_key + 1,
        evicted=evicted,
        window=[each for each in window if each.key in uris],
        uris=uris,
        clients=list(_clients(connection)),
        sessions=list(_sessions(connection, places)),
        root=next(iter(read_channels(connection, ROOT)), None),
        terminals=_terminals(connection),
    )


def _window(connection: sqlite3.Connection, evicted: int, limit: int) -> tuple[list[Envelope], int]:
    """The newest envelopes, and up to where older ones are gone."""
    rows = connection.execute(
        f"SELECT {_RUN} FROM envelopes WHERE seq > ? ORDER BY seq DESC", (evicted,)
    )
    newest_first: list[Envelope] = []
    for *columns, crc in rows:
        seq, first, key, params, audience, windowed, start, end = columns
        if checksum(*columns) != crc or len(newest_first) >= limit:
            # Whoever saw less than this would miss it; they are given snapshots.
            evicted = seq
            break
        page = None if start is None else (start, end)
        newest_first += [
            Envelope(number, key, text, audience, windowed, page)
            for number, text in reversed(_texts(first, seq, params))
        ]
    return newest_first[::-1], evicted


def _texts(first: int, seq: int, params: bytes) -> list[tuple[int, bytes]]:
    """The envelopes of a run, with their numbers."""
    return list(zip(range(first, seq + 1), params.split(b"\n"), strict=True))


def _clients(connection: sqlite3.Connection) -> Iterator[ClientFacts]:
    rows = connection.execute("SELECT id, version, left_at, lost, baselines, crc FROM clients")
    for *columns, crc in rows:
        if checksum(*columns) != crc:
            continue  # not known any more: it is told so, and begins anew
        client_id, version, left_at, lost, baselines = columns
        yield ClientFacts(client_id, version, left_at, bool(lost), loads(baselines))


def _sessions(connection: sqlite3.Connection, places: Sequence[Any]) -> Iterator[KeptSession]:
    of: dict[URI, list[URI]] = {}
    busy: set[URI] = set()
    for _, uri, _, owner, _, is_busy, _ in places:
        if owner is not None:
            of.setdefault(owner, []).append(uri)
            if is_busy:
                busy.add(owner)
    rows = connection.execute(
        "SELECT key, uri, summary, busy FROM channels NOT INDEXED WHERE kind = 'session'"
        " ORDER BY key"
    )
    for key, uri, sealed, is_busy in rows:
        try:
            summary = unseal(key, "summary", sealed)
        except ValueError:
            summary = b""
        yield KeptSession(uri, summary, (uri, *of.get(uri, ())), bool(is_busy) or uri in busy)


def read_channels(connection: sqlite3.Connection, uri: URI) -> Sequence[KeptChannel]:
    """A channel and all that belong to it, in the order in which they were made."""
    rows = connection.execute(f"{_CHANNEL} WHERE uri = ?1 OR owner = ?1 ORDER BY key", (uri,))
    return [_channel(connection, row) for row in rows.fetchall()]


def _terminals(connection: sqlite3.Connection) -> Sequence[KeptChannel]:
    """The terminals, which belong to no session, in the order in which they were made."""
    rows = connection.execute(f"{_CHANNEL} WHERE kind = 'terminal' ORDER BY key")
    return [_channel(connection, row) for row in rows.fetchall()]


def uris_of(connection: sqlite3.Connection) -> list[URI]:
    """The URIs of all channels, in the order in which they were made."""
    return [uri for _, uri, *_ in _places(connection)]


def envelopes_of(connection: sqlite3.Connection, keys: Sequence[int]) -> list[Envelope]:
    """All envelopes of these channels that are there and can be read, in order."""
    found: list[Envelope] = []
    for wanted in keys:
        rows = connection.execute(f"SELECT {_RUN} FROM envelopes WHERE channel = ?", (wanted,))
        for *columns, crc in rows:
            if checksum(*columns) != crc:
                continue
            seq, first, key, params, audience, windowed, start, end = columns
            page = None if start is None else (start, end)
            found += [
                Envelope(number, key, text, audience, windowed, page)
                for number, text in _texts(first, seq, params)
            ]
    return sorted(found, key=lambda each: each.seq)


def _channel(connection: sqlite3.Connection, row: tuple[Any, ...]) -> KeptChannel:
    key, uri, kind, owner, path, busy, place, notes, heritage, at, state, count, crc = row
    damage: str | None = None
    found: dict[str, Any] = {}
    try:
        if checksum(key, uri, kind, owner, path, busy) != place:
            raise _Damage("its row in the table of channels")
        if checksum(key, at, state, count) != crc:
            raise _Damage("its snapshot")
        found["state"] = loads(state)
        found["turns"] = _turns(connection, key, count)
        found["actions"] = _actions(connection, key, at)
        found["notes"] = _sealed(key, "notes", notes, "what the host noted of it")
        found["heritage"] = _sealed(key, "heritage", heritage, "what it was made from")
        found["attached"] = _attached(connection, key)
        found["used"] = _used(connection, key)
    except _Damage as error:
        damage = f"{error} cannot be read"
        found = {}
    except sqlite3.DatabaseError as error:
        # Of a page that makes no sense. What else is in the file may be as it was.
        if getattr(error, "sqlite_errorcode", 0) & 0xFF != sqlite3.SQLITE_CORRUPT:
            raise
        damage = "a page of the file that it is on cannot be read"
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


def _sealed(key: int, column: str, sealed: bytes | None, what: str) -> JSON:
    try:
        return None if sealed is None else loads(unseal(key, column, sealed))
    except ValueError:
        raise _Damage(what) from None


def _turns(connection: sqlite3.Connection, key: int, count: int) -> Turns:
    try:
        rows = packing.read(connection, "turns", key)
    except ValueError:
        raise _Damage("its turns") from None
    turns = Turns.stored((number, ids, texts or b"") for number, ids, texts in rows)
    if len(turns) != count:
        raise _Damage("its turns")
    return turns


def _used(connection: sqlite3.Connection, key: int) -> list[str]:
    try:
        rows = packing.read(connection, "used", key)
    except ValueError:
        raise _Damage("the ids that were used in it") from None
    return [id for _, ids, _ in rows for id in cast(Any, loads(ids))]


def _actions(connection: sqlite3.Connection, key: int, at: int) -> list[tuple[int, bytes]]:
    rows = connection.execute(
        f"SELECT {_RUN} FROM envelopes WHERE channel = ? AND seq > ? ORDER BY seq", (key, at)
    ).fetchall()
    if any(checksum(*columns) != crc for *columns, crc in rows):
        raise _Damage("what happened last in it")
    return [
        each
        for seq, first, _, params, audience, *_ in rows
        if audience is None
        for each in _texts(first, seq, params)
        if each[0] > at
    ]


def _attached(connection: sqlite3.Connection, key: int) -> dict[str, JSON]:
    rows = connection.execute(
        "SELECT channel, id, text, crc FROM attached WHERE channel = ?", (key,)
    ).fetchall()
    if any(checksum(*columns) != crc for *columns, crc in rows):
        raise _Damage("what was attached to its messages")
    return {id: loads(text) for _, id, text, _ in rows}
