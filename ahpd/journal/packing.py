"""Lists that grow at the end, in a table: a row for what came at once, packed when it is many.

A row is `count` items from a place on: their ids, a JSON list, and where the list has any their
texts, a line each. Places are those of `slot`: the channel's key and the place in its list. Items
of one full span of `SPAN` places are packed into one row, so a list of ten thousand is read as
some hundred rows; every item is written at most twice.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

from ahpd.journal.sums import checksum
from ahpd.protocol.jsontext import dumps, loads

#: Places of one channel.
SLOTS = 1 << 32
#: Places of one packed row.
SPAN = 64

#: The columns of such a table.
COLUMNS = (
    "slot INTEGER PRIMARY KEY, count INTEGER NOT NULL, ids BLOB NOT NULL, texts BLOB,"
    " crc INTEGER NOT NULL"
)

#: All of them, as they are read.
ROW = "slot, count, ids, texts, crc"


def span_of(key: int) -> tuple[int, int]:
    """The slots of a channel: from, and before."""
    return key * SLOTS, (key + 1) * SLOTS


def append(
    connection: sqlite3.Connection,
    table: str,
    key: int,
    place: int,
    ids: Sequence[str],
    *,
    texts: Sequence[bytes] | None = None,
) -> None:
    """Put items at a place, which is the end of the list in the file or was there before."""
    while ids:
        fits = SPAN - place % SPAN
        part = None if texts is None else b"\n".join(texts[:fits])
        _put(connection, table, key * SLOTS + place, ids[:fits], part)
        if place % SPAN and len(ids) >= fits:
            _pack(connection, table, key * SLOTS + place - place % SPAN)
        place += fits
        ids = ids[fits:]
        texts = None if texts is None else texts[fits:]


def _put(
    connection: sqlite3.Connection, table: str, slot: int, ids: Sequence[str], texts: bytes | None
) -> None:
    names = dumps(list(ids))
    connection.execute(
        f"INSERT OR REPLACE INTO {table} VALUES(?, ?, ?, ?, ?)",
        (slot, len(ids), names, texts, checksum(slot, len(ids), names, texts)),
    )


def _pack(connection: sqlite3.Connection, table: str, slot: int) -> None:
    """Make one row of the full span that begins at a slot."""
    rows = connection.execute(
        f"SELECT {ROW} FROM {table} WHERE slot >= ? AND slot < ? ORDER BY slot",
        (slot, slot + SPAN),
    ).fetchall()
    for row in rows:
        _check(table, row)
    ids = [id for _, _, names, _, _ in rows for id in _ids(names)]
    texts = [each for _, _, _, each, _ in rows if each is not None]
    connection.execute(f"DELETE FROM {table} WHERE slot >= ? AND slot < ?", (slot, slot + SPAN))
    _put(connection, table, slot, ids, b"\n".join(texts) if texts else None)


def _check(table: str, row: Sequence[object]) -> None:
    """What is written again must not get a new checksum over what was damaged meanwhile."""
    *columns, crc = row
    if checksum(*columns) != crc:
        raise sqlite3.DatabaseError(f"{table}: the row {row[0]} is not what was written")


def _ids(names: bytes) -> list[str]:
    value = loads(names)
    assert isinstance(value, list)
    return value


def cut(connection: sqlite3.Connection, table: str, key: int, length: int) -> None:
    """Leave the first `length` items."""
    first, end = key * SLOTS + length, (key + 1) * SLOTS
    row = connection.execute(
        f"SELECT {ROW} FROM {table} WHERE slot >= ? AND slot < ? ORDER BY slot DESC LIMIT 1",
        (key * SLOTS, first),
    ).fetchone()
    connection.execute(f"DELETE FROM {table} WHERE slot >= ? AND slot < ?", (first, end))
    if row is not None and row[0] + row[1] > first:
        _check(table, row)
        slot, _, names, texts, _ = row
        left = first - slot
        part = None if texts is None else b"\n".join(texts.split(b"\n")[:left])
        _put(connection, table, slot, _ids(names)[:left], part)


def read(
    connection: sqlite3.Connection, table: str, key: int
) -> list[tuple[int, bytes, bytes | None]]:
    """The rows, as (count, ids, texts). Raises `ValueError` when they are not what was written."""
    rows = connection.execute(
        f"SELECT {ROW} FROM {table} WHERE slot >= ? AND slot < ? ORDER BY slot",
        span_of(key),
    ).fetchall()
    place = key * SLOTS
    for slot, count, ids, texts, crc in rows:
        if slot != place or checksum(slot, count, ids, texts) != crc:
            raise ValueError(f"{table}: the row at place {place - key * SLOTS}")
        place += count
    return [(count, ids, texts) for _, count, ids, texts, _ in rows]
