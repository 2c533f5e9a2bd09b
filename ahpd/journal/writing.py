"""How a batch gets into the file: one transaction. Blocks; runs in the journal's own thread."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence

from ahpd.journal import packing
from ahpd.journal.port import Batch, ChannelFacts, ClientFacts, Envelope, StateAt
from ahpd.journal.sums import checksum, seal
from ahpd.protocol.chat import ChatState, Turns
from ahpd.protocol.jsontext import dumps

#: Bytes after which a run ends.
_RUN = 64 << 10
#: Free pages that stay in the file for what comes next, as a part of all.
_SPARE = 4
#: Most pages that are given back at once (1 MiB), so that a batch does not wait for long.
_GIVEN_BACK = 256


class Writer:
    """Writes batches on one connection; remembers which turns of each chat are in the file."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._turns: dict[int, Turns] = {}
        self._swept: int = 0
        self._highest: int = 0
        #: The number of the newest envelope that is in the file.
        self._newest: int = 0

    def write(self, batch: Batch) -> Mapping[int, int]:
        """All of it or, when it raises, nothing. Gives the sizes of states, in bytes, by key."""
        run = self._connection.execute
        sizes: dict[int, int] = {}
        turns: dict[int, Turns] = {}
        swept, highest = self._swept, self._highest
        run("BEGIN IMMEDIATE")
        try:
            for facts in batch.channels:
                self._put_facts(facts)
            for at in batch.states:
                sizes[at.key] = self._put_state(at, turns)
            self._put_envelopes(batch.envelopes)
            for key in batch.closed:
                self._close(key)
            for client in batch.clients:
                self._put_client(client)
            for client_id in batch.forgotten:
                run("DELETE FROM clients WHERE id = ?", (client_id,))
            if batch.closed or not batch.envelopes or batch.envelopes[-1].seq != batch.seq:
                put_meta(self._connection, "seq", batch.seq)  # else the newest envelope says it
            for facts in batch.channels:
                highest = max(highest, facts.key)
            if highest > self._highest:
                put_meta(self._connection, "highest_key", highest)
            if batch.evicted is not None:
                swept = self._sweep(batch.evicted)
            run("COMMIT")
        except BaseException:
            if self._connection.in_transaction:
                run("ROLLBACK")
            raise
        # What is remembered of the file changes only when the file has.
        self._swept, self._highest = swept, highest
        self._newest = max(self._newest, batch.seq)
        self._turns.update(turns)
        for key in batch.closed:
            self._turns.pop(key, None)
        return sizes

    # ---- channels ------------------------------------------------------------------------------

    def _put_facts(self, facts: ChannelFacts) -> None:
        run = self._connection.execute
        # A channel of an earlier life may have had the URI, and its end may be in this batch too.
        run("DELETE FROM channels WHERE uri = ? AND key != ?", (facts.uri, facts.key))
        place = (facts.key, facts.uri, facts.kind, facts.owner, facts.path, facts.is_busy)
        run(
            "INSERT INTO channels(key, uri, kind, owner, path, busy, place, notes, heritage,"
            " summary) VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10) ON CONFLICT(key) DO UPDATE"
            " SET owner = ?4, path = ?5, busy = ?6, place = ?7, notes = coalesce(?8, notes),"
            " heritage = coalesce(?9, heritage), summary = coalesce(?10, summary)",
            (
                *place,
                checksum(*place),
                *(
                    None if text is None else seal(facts.key, what, text)
                    for what, text in (
                        ("notes", facts.notes),
                        ("heritage", facts.heritage),
                        ("summary", facts.summary),
                    )
                ),
            ),
        )
        if facts.used:
            packing.cut(self._connection, "used", facts.key, facts.used_from)
            packing.append(self._connection, "used", facts.key, facts.used_from, facts.used)
        for id, text in facts.attached.items():
            if text is None:
                run("DELETE FROM attached WHERE channel = ? AND id = ?", (facts.key, id))
            else:
                self._put_all("attached", [(facts.key, id, text)])

    def _put_all(self, table: str, rows: Sequence[Sequence[object]]) -> None:
        """Rows of a table whose last column is the checksum over the others."""
        if rows:
            marks = ", ".join("?" * (len(rows[0]) + 1))
            self._connection.executemany(
                f"INSERT OR REPLACE INTO {table} VALUES({marks})",
                [(*row, checksum(*row)) for row in rows],
            )

    def _put_state(self, at: StateAt, turns: dict[int, Turns]) -> int:
        state, count = at.state, 0
        if isinstance(state, ChatState):
            self._put_turns(at.key, state.turns)
            turns[at.key] = state.turns
            count = len(state.turns)
            state = state.evolve(turns=Turns())
        text = dumps(state.wire())
        cursor = self._connection.execute(
            "UPDATE channels SET at = ?, state = ?, turns = ?, crc = ? WHERE key = ?",
            (at.seq, text, count, checksum(at.key, at.seq, text, count), at.key),
        )
        if cursor.rowcount != 1:  # then the actions that lead to it must not go either
            raise sqlite3.DatabaseError(f"there is no row of the channel {at.key}")
        self._connection.execute(
            "DELETE FROM envelopes WHERE channel = ? AND seq <= ?",
            (at.key, min(at.seq, self._swept)),
        )
        return len(text)

    def _put_turns(self, key: int, turns: Turns) -> None:
        """Those that are not in the file yet; they never change where they stand, only end."""
        before = self._turns.get(key)
        same = 0 if before is None else turns.in_common(before)
        packing.cut(self._connection, "turns", key, same)
        new = [turns[place] for place in range(same, len(turns))]
        packing.append(
            self._connection,
            "turns",
            key,
            same,
            [turn.id for turn in new],
            texts=[dumps(turn.wire()) for turn in new],
        )

    def holds(self, key: int, turns: Turns) -> None:
        """These are the turns of a chat's snapshot that the file holds."""
        self._turns[key] = turns

    def _close(self, key: int) -> None:
        for table, condition in OF_CHANNEL:
            self._connection.execute(f"DELETE FROM {table} WHERE {condition}", (key,))

    # ---- envelopes and clients -----------------------------------------------------------------

    def _put_envelopes(self, envelopes: Sequence[Envelope]) -> None:
        """Those that are not in the file yet, as runs: numbers are given out once."""
        rows = []
        for run in _runs(each for each in envelopes if each.seq > self._newest):
            last = run[-1]
            params = b"\n".join([each.params for each in run])
            page = last.page or (None, None)
            rows.append(
                (last.seq, run[0].seq, last.key, params, last.audience, last.windowed, *page)
            )
        self._put_all("envelopes", rows)

    def _put_client(self, client: ClientFacts) -> None:
        self._put_all(
            "clients",
            [
                (
                    client.client_id,
                    client.version,
                    client.left_at,
                    client.has_lost_place,
                    dumps(client.baselines),
                )
            ],
        )

    def _sweep(self, evicted: int) -> int:
        """No replay wants envelopes up to `evicted`: those that a snapshot holds too can go."""
        self._connection.execute(
            "DELETE FROM envelopes WHERE seq > ? AND seq <= ? AND (audience IS NOT NULL OR NOT"
            " EXISTS(SELECT 1 FROM channels WHERE key = channel AND at < envelopes.seq))",
            (self._swept, evicted),
        )
        put_meta(self._connection, "evicted", evicted)
        (free,) = self._connection.execute("PRAGMA freelist_count").fetchone()
        (pages,) = self._connection.execute("PRAGMA page_count").fetchone()
        if free > 256 and free * _SPARE > pages:
            # One page each time, whatever number is asked for: the statement gives a row without
            # columns for each, and the module does not go on to the next.
            for _ in range(min(free // 2, _GIVEN_BACK)):
                self._connection.execute("PRAGMA incremental_vacuum(1)")
        return max(evicted, self._swept)

    def begin(self, seq: int, evicted: int, swept: int, next_key: int, boot: str) -> None:
        """The file is in use from now on; envelopes up to `swept` were swept before."""
        run = self._connection.execute
        self._swept = swept
        run("BEGIN IMMEDIATE")
        try:
            put_meta(self._connection, "in_use", boot)
            put_meta(self._connection, "seq", seq)
            put_meta(self._connection, "highest_key", next_key - 1)
            swept = self._sweep(evicted)
            run("COMMIT")
        except BaseException:
            if self._connection.in_transaction:
                run("ROLLBACK")
            raise
        self._swept, self._highest, self._newest = swept, next_key - 1, seq


def _runs(envelopes: Iterable[Envelope]) -> Iterator[list[Envelope]]:
    """Neighbours that can share a row."""
    run: list[Envelope] = []
    size = 0
    for each in envelopes:
        if run and not (_plain(each) and each.key == run[-1].key and size < _RUN):
            yield run
            run, size = [], 0
        if not _plain(each):
            yield [each]
            continue
        if run and each.seq != run[-1].seq + 1:
            yield run
            run, size = [], 0
        run.append(each)
        size += len(each.params)
    if run:
        yield run


def _plain(each: Envelope) -> bool:
    return each.audience is None and each.page is None


def put_meta(connection: sqlite3.Connection, name: str, value: int | str) -> None:
    """One of the values that the host goes on with."""
    connection.execute(
        "INSERT OR REPLACE INTO meta VALUES(?, ?, ?)", (name, value, checksum(name, value))
    )


#: What belongs to a channel: the table, and the condition with the channel's key.
OF_CHANNEL = (
    ("turns", f"slot >= ?1 * {packing.SLOTS} AND slot < (?1 + 1) * {packing.SLOTS}"),
    ("used", f"slot >= ?1 * {packing.SLOTS} AND slot < (?1 + 1) * {packing.SLOTS}"),
    ("attached", "channel = ?1"),
    ("envelopes", "channel = ?1"),
    ("channels", "key = ?1"),
)


def set_aside(connection: sqlite3.Connection, key: int, why: str) -> None:
    """Move all rows of a channel to `damaged`, as they are. All or, when it raises, nothing."""
    run = connection.execute
    run("BEGIN IMMEDIATE")
    try:
        for table, condition in OF_CHANNEL:
            for row in run(f"SELECT * FROM {table} WHERE {condition}", (key,)).fetchall():
                run(
                    "INSERT INTO damaged VALUES(datetime('now'), ?, ?, ?)",
                    (why, table, _bytes_of(row)),
                )
            run(f"DELETE FROM {table} WHERE {condition}", (key,))
        run("COMMIT")
    except BaseException:
        if connection.in_transaction:
            run("ROLLBACK")
        raise


def _bytes_of(row: Sequence[object]) -> bytes:
    """A row as JSON text; bytes as Latin-1, and what is no text as such, which keeps each of them.

    A byte that was in a text, where it made no sense, is there as U+DC80 and on: as an escape.
    """
    values = [each.decode("latin-1") if isinstance(each, bytes) else each for each in row]
    return json.dumps(values).encode()
