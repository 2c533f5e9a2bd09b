"""The journal in a file: SQLite, in WAL mode, one writer, one transaction for each batch.

**What holds when.** `write` returns when the transaction is committed, that is, when the kernel has
it: from then on a killed process loses nothing of it, and only then may a client see it. With
`Durability.POWER` it also waits for the medium. With `Durability.PROCESS` the medium is told by
`sync`, which the host calls within a second of a write; a loss of power takes at most what was
written since. The file is whole in any case, since WAL frames have checksums and a torn tail is
left out.

Numbers must not be used again for other content, though: so a host that comes up after a loss of
power (the machine's boot id is another, and nobody closed the file), or on a file in which
something is damaged, goes on well above anything it can have given out, and has nothing to replay.

**What it costs.** A batch is one transaction, whatever the number of envelopes. A small one is
committed where it is asked for: that is a copy of a few pages into the kernel's memory, and costs
less than to hand it to a thread and back. One that is large, that brings states to encode, or that
has to reach the medium goes through the journal's thread, and so does everything for a while when
a small one turned out to be slow. A chat's completed turns are written twice at most, however many
snapshots there are.

**How it grows.** Envelopes go when a snapshot holds them and no replay can want them; freed pages
are used again, and given back when they are more than a quarter of the file.
"""

from __future__ import annotations

import logging
import sqlite3
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from enum import Enum
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import trio
from msgspec import structs

from ahpd.journal.file import connect, faults, text_of
from ahpd.journal.port import Batch, JournalDamaged, JournalFailed, Kept, KeptChannel
from ahpd.journal.reading import read_channels, read_kept, read_meta, survey
from ahpd.journal.writing import Writer, put_meta, set_aside
from ahpd.protocol.uris import URI

_log = logging.getLogger("ahpd.journal")

T = TypeVar("T")

#: Runs a blocking function to its end, elsewhere.
Runner = Callable[[Callable[[], T]], Awaitable[T]]

#: Bytes of envelopes in a batch that is committed without a thread: about a millisecond's worth.
SMALL = 512 << 10
#: Seconds that this may take; when as many as `SLOW_ONES` took longer, one after the other, it is
#: not done again for `SLOW_FOR` seconds.
SLOW, SLOW_ONES, SLOW_FOR = 0.02, 3, 10.0

#: How far the numbers go on after a loss of power: more than a second of any host.
JUMP = 1_000_000

#: Pages in the WAL beyond which the writer is held up so that it can begin anew (64 MiB).
LONG_WAL = 16_384


class Durability(Enum):
    """What a `write` that returned is safe from."""

    PROCESS = "process"
    POWER = "power"


class SqliteJournal:
    """See the module. `begin` comes first; all other methods are `Journal`'s.

    `run` and `run_sync` run blocking functions; the default is a thread for each of the two.
    """

    def __init__(
        self,
        path: Path,
        *,
        durability: Durability = Durability.PROCESS,
        run: Callable[[Callable[[], Any]], Awaitable[Any]] | None = None,
    ) -> None:
        self.path = path
        self._durability = durability
        self._run = run or in_thread()
        self._run_sync = run or in_thread()
        #: Until when (monotonic seconds) small batches go through the thread too.
        self._slow_until = 0.0
        self._slow_ones = 0
        #: Which file it is.
        self._place: tuple[int, int] | None = None
        self._connection: sqlite3.Connection | None = None
        self._syncing: sqlite3.Connection | None = None
        self._writer: Writer | None = None

    # ---- its life ------------------------------------------------------------------------------

    def begin(self, *, limit: int, boot: str) -> Kept:
        """Open the file, and give what the host starts from. Blocks.

        `limit` is how many envelopes can be replayed, `boot` names the time since the machine was
        started. Raises `JournalFailed` and `JournalDamaged`.
        """
        level = "FULL" if self._durability is Durability.POWER else "NORMAL"
        try:
            self._connection = connect(self.path, synchronous=level)
            self._syncing = connect(self.path, synchronous="FULL")
            self._place = _place_of(self.path)
            with faults(self.path):
                begin = partial(self._begin, self._connection, limit, boot)
                return _whatever_the_texts(self._connection, begin)
        except BaseException:
            self.close()
            raise

    def _begin(self, connection: sqlite3.Connection, limit: int, boot: str) -> Kept:
        found, meta = survey(connection), read_meta(connection)
        lost_power = meta.in_use not in ("", boot) and self._durability is not Durability.POWER
        jumps = lost_power or not (meta.is_sound and found.is_sound)
        if jumps:
            # Numbers may have been given out that are not here. They are not used again, also if
            # this process is killed when what says so has been mended.
            put_meta(connection, "seq", meta.seq + JUMP)
        for table in found.indexes:
            _log.error("an index of the table %s did not fit its rows, and is made anew", table)
            connection.execute(f"REINDEX {table}")
        for key, why in found.channels.items():
            _log.error("channel %s: set aside, and its bytes kept in the journal: %s", key, why)
            set_aside(connection, key, why)
        kept = read_kept(connection, limit=limit)
        if kept.root is not None and kept.root.damage is not None:
            _log.error("the root channel is begun anew: %s", kept.root.damage)
            put_meta(connection, "seq", kept.seq)  # its newest envelope may have said it
            set_aside(connection, kept.root.key, kept.root.damage)
        for each in kept.terminals:
            if each.damage is not None:
                _log.error("the terminal %s: set aside: %s", each.uri, each.damage)
                set_aside(connection, each.key, each.damage)
        sound = [each for each in kept.terminals if each.damage is None]
        kept = structs.replace(kept, terminals=sound)
        if jumps:
            kept = structs.replace(kept, evicted=kept.seq, window=())
        writer = Writer(connection)
        writer.begin(kept.seq, kept.evicted, meta.evicted, kept.next_key, boot)
        self._writer = writer
        return kept

    def close(self) -> None:
        """Nobody writes any more: put everything into the file itself. Blocks; never fails."""
        for connection in (self._syncing, self._connection):
            if connection is None:
                continue
            try:
                if connection is self._connection and self._writer is not None:
                    put_meta(connection, "in_use", "")
                    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
            except sqlite3.Error:
                pass  # the WAL holds it all, and is read at the next start
            finally:
                connection.close()
        self._connection = self._syncing = self._writer = None

    # ---- the port ------------------------------------------------------------------------------

    async def write(self, batch: Batch) -> Mapping[int, int]:
        """See the port."""
        if not self._is_small(batch):
            return await self._run(partial(self._write, batch))  # type: ignore[no-any-return]
        # No turn of the scheduler: an echo waits for this. The sequencer has its turns after it.
        await trio.lowlevel.checkpoint_if_cancelled()
        began = time.monotonic()
        try:
            return self._write(batch)
        finally:
            self._slow_ones = self._slow_ones + 1 if time.monotonic() - began > SLOW else 0
            if self._slow_ones == SLOW_ONES:
                self._slow_ones, self._slow_until = 0, began + SLOW_FOR

    def _is_small(self, batch: Batch) -> bool:
        return (
            not batch.states
            and not batch.closed
            and batch.evicted is None
            and self._durability is Durability.PROCESS
            and sum(len(each.params) for each in batch.envelopes) <= SMALL
            and time.monotonic() >= self._slow_until
        )

    def _write(self, batch: Batch) -> Mapping[int, int]:
        assert self._writer is not None, "the journal was not begun"
        with faults(self.path):
            return self._writer.write(batch)

    async def sync(self) -> None:
        """See the port. Also moves what it can from the WAL into the file."""
        await self._run_sync(self._sync)

    def _sync(self) -> None:
        assert self._syncing is not None, "the journal was not begun"
        self._check_place()
        with faults(self.path):
            _, frames, _ = self._syncing.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
            if frames > LONG_WAL:
                # While batches come without a pause the WAL never begins anew by itself. What is
                # left to move is little now, and the writer waits as long as that takes.
                self._syncing.execute("PRAGMA wal_checkpoint(RESTART)").fetchall()

    def _check_place(self) -> None:
        """Raise when somebody took the file away: what is written then is gone with the process."""
        if _place_of(self.path) != self._place:
            raise JournalDamaged(f"{self.path} was removed or replaced while it was in use")

    async def load(self, session: URI) -> Sequence[KeptChannel]:
        """See the port."""
        return await self._run(partial(self._load, session))  # type: ignore[no-any-return]

    def _load(self, session: URI) -> Sequence[KeptChannel]:
        assert self._connection is not None, "the journal was not begun"
        with faults(self.path):
            read = partial(read_channels, self._connection, session)
            kept = _whatever_the_texts(self._connection, read)
        for each in kept:
            if each.kind == "chat" and each.damage is None and self._writer is not None:
                self._writer.holds(each.key, each.turns)
        return kept

    async def set_aside(self, key: int, why: str) -> None:
        """See the port."""
        await self._run(partial(self._set_aside, key, why))

    def _set_aside(self, key: int, why: str) -> None:
        assert self._connection is not None, "the journal was not begun"
        with faults(self.path):
            set_aside(self._connection, key, why)


def _whatever_the_texts(connection: sqlite3.Connection, read: Callable[[], T]) -> T:
    """Read, once more when some text is no UTF-8: then its row shows that it is damaged."""
    try:
        return read()
    except sqlite3.OperationalError as error:
        # The module's own error, which has no code.
        if hasattr(error, "sqlite_errorcode") or connection.text_factory is text_of:
            raise
        connection.text_factory = text_of
        return read()


def _place_of(path: Path) -> tuple[int, int] | None:
    """Which file is there; None: there is none."""
    try:
        about = path.stat()
    except OSError:
        return None
    return about.st_dev, about.st_ino


def in_thread() -> Callable[[Callable[[], Any]], Awaitable[Any]]:
    """Runs blocking functions in a thread, one after the other.

    Cancelled while one runs: it is run to its end all the same.
    """
    limiter = trio.CapacityLimiter(1)

    async def run(blocking: Callable[[], Any]) -> Any:
        return await trio.to_thread.run_sync(blocking, limiter=limiter)

    return run


def boot_id() -> str:
    """Names the time since this machine was started; empty where it has no such name. Blocks."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except OSError:
        return ""


__all__ = ["Durability", "JournalFailed", "SqliteJournal", "boot_id", "in_thread"]
