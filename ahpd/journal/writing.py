"""How a batch gets into the file: one transaction. Blocks; runs in the journal's own thread."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from zlib import crc32

from ahpd.journal import packing
from ahpd.journal.port import Batch, ChannelFacts, ClientFacts, Envelope, StateAt
from ahpd.protocol.chat import ChatState, Turns
from ahpd.protocol.jsontext import dumps

#: Bytes after which a run ends.
_RUN = 64 << 10
#: Free pages that stay in the file for what comes next, as a part of all.
_SPARE = 4


class Writer:
    """Writes batches on one connection; remembers which turns of each chat are in the file."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._turns: dict[int, Turns] = {}
        self._swept: int = 0
        #: The number of the newest envelope that is in the file.
        self._newest: int = 0

    def write(self, batch: Batch) -> Mapping[int, int]:
        """All of it or, when it raises, nothing. Gives the sizes of states, in bytes, by key."""
        run = self._connection.execute
        sizes: dict[int, int] = {}
        turns: dict[int, Turns] = {}
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
                self._put_meta("seq", batch.seq)  # else the newest envelope says it
            if batch.evicted is not None:
                self._sweep(batch.evicted)
            run("COMMIT")
        except BaseException:
            if self._connection.in_transaction:
                run("ROLLBACK")
            raise
        if batch.envelopes:
            self._newest = max(self._newest, batch.envelopes[-1].seq)
        self._turns.update(turns)
        for key in batch.closed:
            self._turns.pop(key, None)
        return sizes

    def _put_meta(self, name: str, value: int) -> None:
        self._connection.execute(
            "INSERT INTO meta VALUES(?, ?) ON CONFLICT DO UPDATE SET value = excluded.value",
            (name, value),
        )

    # ---- channels ------------------------------------------------------------------------------

    def _put_facts(self, facts: ChannelFacts) -> None:
        run = self._connection.execute
        # A channel of an earlier life may have had the URI, and its end may be in this batch too.
        run("DELETE FROM channels WHERE uri = ? AND key != ?", (facts.uri, facts.key))
        run(
            "INSERT INTO channels(key, uri, kind, owner, path, busy, notes, heritage, summary)"
            " VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9) ON CONFLICT(key) DO UPDATE SET"
            " owner = ?4, path = ?5, busy = ?6, notes = coalesce(?7, notes),"
            " heritage = coalesce(?8, heritage), summary = coalesce(?9, summary)",
            (
                facts.key,
                facts.uri,
                facts.kind,
                facts.owner,
                facts.path,
                facts.is_busy,
                facts.notes,
                facts.heritage,
                facts.summary,
            ),
        )
        if facts.used:
            packing.cut(self._connection, "used", facts.key, facts.used_from)
            packing.append(self._connection, "used", facts.key, facts.used_from, facts.used)
        for id, text in facts.attached.items():
            if text is None:
                run("DELETE FROM attached WHERE channel = ? AND id = ?", (facts.key, id))
            else:
                run("INSERT OR REPLACE INTO attached VALUES(?, ?, ?)", (facts.key, id, text))

    def _put_state(self, at: StateAt, turns: dict[int, Turns]) -> int:
        state, count = at.state, 0
        if isinstance(state, ChatState):
            self._put_turns(at.key, state.turns)
            turns[at.key] = state.turns
            count = len(state.turns)
            state = state.evolve(turns=Turns())
        text = dumps(state.wire())
        self._connection.execute(
            "UPDATE channels SET at = ?, state = ?, turns = ?, crc = ? WHERE key = ?",
            (at.seq, text, count, crc32(text), at.key),
        )
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
        run = self._connection.execute
        span = packing.span_of(key)
        run("DELETE FROM channels WHERE key = ?", (key,))
        run("DELETE FROM turns WHERE slot >= ? AND slot < ?", span)
        run("DELETE FROM used WHERE slot >= ? AND slot < ?", span)
        run("DELETE FROM attached WHERE channel = ?", (key,))
        run("DELETE FROM envelopes WHERE channel = ?", (key,))

    # ---- envelopes and clients -----------------------------------------------------------------

    def _put_envelopes(self, envelopes: Sequence[Envelope]) -> None:
        """Those that are not in the file yet, as runs."""
        rows = []
        for run in _runs(each for each in envelopes if each.seq > self._newest):
            last = run[-1]
            params = b"\n".join([each.params for each in run])
            start, end = last.page or (None, None)
            rows.append(
                (
                    last.seq,
                    run[0].seq,
                    last.key,
                    params,
                    last.audience,
                    last.windowed,
                    start,
                    end,
                    crc32(params),
                )
            )
        self._connection.executemany("INSERT INTO envelopes VALUES(?,?,?,?,?,?,?,?,?)", rows)

    def _put_client(self, client: ClientFacts) -> None:
        self._connection.execute(
            "INSERT OR REPLACE INTO clients VALUES(?, ?, ?, ?, ?)",
            (
                client.client_id,
                client.version,
                client.left_at,
                client.has_lost_place,
                dumps(client.baselines),
            ),
        )

    def _sweep(self, evicted: int) -> None:
        """No replay wants envelopes up to `evicted`: those that a snapshot holds too can go."""
        self._connection.execute(
            "DELETE FROM envelopes WHERE seq > ? AND seq <= ? AND (audience IS NOT NULL OR NOT"
            " EXISTS(SELECT 1 FROM channels WHERE key = channel AND at < envelopes.seq))",
            (self._swept, evicted),
        )
        self._put_meta("evicted", evicted)
        self._swept = evicted
        (free,) = self._connection.execute("PRAGMA freelist_count").fetchone()
        (pages,) = self._connection.execute("PRAGMA page_count").fetchone()
        if free > 256 and free * _SPARE > pages:
            self._connection.execute(f"PRAGMA incremental_vacuum({free // 2})").fetchall()

    def begin_at(self, swept: int, newest: int) -> None:
        """Envelopes up to `swept` were swept before; no number after `newest` is in the file."""
        self._swept = swept
        self._newest = newest


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
