"""A look into the file from outside, beside a daemon or without one. Blocks; changes nothing.

`compact` alone changes something, and needs the file for itself.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from msgspec import Struct

from ahpd.journal import packing
from ahpd.journal.file import connect, faults, read_only
from ahpd.journal.port import KeptChannel
from ahpd.journal.reading import (
    envelopes_of,
    read_channels,
    read_meta,
    survey,
    uris_of,
)
from ahpd.journal.sums import checksum, unseal
from ahpd.protocol.jsontext import ParseError, loads
from ahpd.protocol.model import JSON, Object
from ahpd.protocol.uris import URI

TABLES = ("meta", "channels", "turns", "used", "attached", "envelopes", "clients", "damaged")


@contextmanager
def looking(path: Path) -> Iterator[sqlite3.Connection]:
    """A connection on which all reads are of one moment. Raises as `ahpd.journal.file.read_only`.

    So do the reads themselves, when the file is damaged.
    """
    connection = read_only(path)
    try:
        with faults(path):
            connection.execute("BEGIN")
            yield connection
    finally:
        connection.close()


# ---- figures ------------------------------------------------------------------------------------


class Stats(Struct, frozen=True):
    """Sizes are bytes. `live` is what would have to be kept in any case: the states themselves."""

    file: int
    wal: int
    page: int
    pages: int
    free_pages: int
    rows: Mapping[str, int]
    live: int
    envelopes: int
    seq: int

    @property
    def factor(self) -> float | None:
        """The file as a multiple of the live state; None when there is none."""
        return round((self.file + self.wal) / self.live, 2) if self.live else None


_LIVE = (
    "SELECT coalesce(sum(length(uri) + ifnull(length(state), 0)), 0) FROM channels",
    "SELECT coalesce(sum(ifnull(length(notes), 0) + ifnull(length(heritage), 0)), 0) FROM channels",
    "SELECT coalesce(sum(ifnull(length(summary), 0)), 0) FROM channels",
    "SELECT coalesce(sum(length(ids) + ifnull(length(texts), 0)), 0) FROM turns",
    "SELECT coalesce(sum(length(ids)), 0) FROM used",
    "SELECT coalesce(sum(length(id) + length(text)), 0) FROM attached",
    "SELECT coalesce(sum(length(id) + length(baselines)), 0) FROM clients",
)


def stats(path: Path) -> Stats:
    """How large the file is, and what for. Raises as `looking`."""
    with looking(path) as connection:

        def one(text: str) -> int:
            return int(connection.execute(text).fetchone()[0])

        wal = path.with_name(path.name + "-wal")
        return Stats(
            file=path.stat().st_size,
            wal=wal.stat().st_size if wal.exists() else 0,
            page=one("PRAGMA page_size"),
            pages=one("PRAGMA page_count"),
            free_pages=one("PRAGMA freelist_count"),
            rows={table: one(f"SELECT count(*) FROM {table}") for table in TABLES},
            live=sum(map(one, _LIVE)),
            envelopes=one("SELECT coalesce(sum(length(params)), 0) FROM envelopes"),
            seq=read_meta(connection).seq,
        )


def compact(path: Path) -> tuple[int, int]:
    """Write the file anew without what is free in it; its size before and after.

    Nobody else may have it open. Raises as `ahpd.journal.file.connect`; then it is as it was.
    """
    before = path.stat().st_size
    connection = connect(path, synchronous="FULL")
    try:
        with faults(path):
            connection.execute("VACUUM")
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    finally:
        connection.close()
    return before, path.stat().st_size


# ---- content ------------------------------------------------------------------------------------


def channels(connection: sqlite3.Connection) -> Iterator[KeptChannel]:
    """Every channel, in the order in which they were made."""
    for uri in uris_of(connection):
        for each in read_channels(connection, uri):
            if each.uri == uri:
                yield each


def channel(connection: sqlite3.Connection, uri: URI) -> KeptChannel | None:
    """One of them."""
    return next((each for each in read_channels(connection, uri) if each.uri == uri), None)


def export(connection: sqlite3.Connection, session: URI) -> Iterator[Object]:
    """A session: its channels with their snapshots, then all envelopes of theirs that are kept."""
    found = read_channels(connection, session)
    for each in found:
        if each.damage is not None:
            yield {"type": "damaged", "channel": each.uri, "why": each.damage}
            continue
        state = each.state
        if isinstance(state, dict) and each.kind == "chat":
            state = {**state, "turns": [turn.wire() for turn in each.turns]}
        yield {
            "type": "channel",
            "channel": each.uri,
            "kind": each.kind,
            "owner": each.owner,
            "seq": each.seq,
            "state": state,
            "notes": each.notes,
            "heritage": each.heritage,
            "attached": dict(each.attached),
            "used": list(each.used),
        }
    for envelope in envelopes_of(connection, [each.key for each in found]):
        try:
            params: JSON = loads(envelope.params)
        except ParseError:
            continue
        yield {"type": "envelope", "audience": envelope.audience, "params": params}


# ---- faults -------------------------------------------------------------------------------------


def check(path: Path) -> Iterator[str]:
    """What is wrong with the file, in words: its pages, its indexes, and each row's checksum.

    Raises as `looking` when so much is wrong that nothing more can be said.
    """
    with looking(path) as connection:
        for (text,) in connection.execute("PRAGMA integrity_check").fetchall():
            if text != "ok":
                yield f"the file: {text}"
        found = survey(connection)
        yield from (f"the table {table}: an index is wrong" for table in found.indexes)
        if not read_meta(connection).is_sound:
            yield "the table meta: the numbers cannot be believed"
        yield from _rows(connection)
        for each in channels(connection):
            if each.damage is not None:
                yield f"{each.uri}: {each.damage}"


#: Tables whose rows end with the checksum over the rest, and how a row is called by its first.
_SUMMED = (
    ("turns", packing.ROW),
    ("used", packing.ROW),
    ("attached", "channel, id, text, crc"),
    ("clients", "id, version, left_at, lost, baselines, crc"),
    (
        "envelopes",
        "seq, first, channel, params, audience, windowed, page_start, page_end, crc",
    ),
)


def _rows(connection: sqlite3.Connection) -> Iterator[str]:
    for table, columns in _SUMMED:
        for *values, crc in connection.execute(f"SELECT {columns} FROM {table} NOT INDEXED"):
            if checksum(*values) != crc:
                yield f"the table {table}: the row {values[0]} is not what was written"
    rows = connection.execute(
        "SELECT key, uri, kind, owner, path, busy, place, summary FROM channels NOT INDEXED"
    )
    for *place, crc, summary in rows:
        if checksum(*place) != crc:
            yield f"the table channels: the row {place[0]} is not what was written"
        try:
            if summary is not None:
                unseal(place[0], "summary", summary)
        except ValueError:
            yield f"the table channels: how the row {place[0]} is listed is not what was written"


__all__ = [
    "Stats", "channel", "channels", "check", "compact", "export", "looking", "stats",
]  # fmt: skip
