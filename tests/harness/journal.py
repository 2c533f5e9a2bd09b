"""Journals that take their time, as a disk does: one that forgets, and one in a file."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from random import Random
from typing import Any, Protocol

import trio

from ahpd.journal.memory import MemoryJournal
from ahpd.journal.port import Batch, Journal, Kept
from ahpd.journal.sqlite import SqliteJournal


class Medium(Protocol):
    """Where the hosts of a test keep what they have, one after the other."""

    #: The highest number that would survive a `kill -9`.
    seq: int

    def begin(self, limit: int) -> tuple[Journal, Kept]:
        """A journal for a new process, and what that starts from."""
        ...

    def holds(self, seq: int) -> bool:
        """Whether this envelope would survive."""
        ...

    def end(self) -> None:
        """The process is gone: nothing is written for it any more."""
        ...


class SlowJournal(MemoryJournal):
    """Keeps nothing but the highest number, after up to `longest` seconds (0: at once).

    It asserts that each batch goes on where what is durable ends, or repeats some of it.
    """

    def __init__(self, seed: int = 0, longest: float = 0.0) -> None:
        super().__init__()
        self._dice = Random(f"journal {seed}")
        self.longest = longest

    async def write(self, batch: Batch) -> Mapping[int, int]:
        """See the port."""
        assert batch.seq >= self.seq, f"{self.seq} is durable, then {batch.seq}"
        if self.longest:
            await trio.sleep(self._dice.uniform(0, self.longest))
        return await super().write(batch)

    def begin(self, limit: int) -> tuple[Journal, Kept]:
        """See `Medium`."""
        return self, Kept()

    def holds(self, seq: int) -> bool:
        """See `Medium`."""
        return False

    def end(self) -> None:
        """See `Medium`."""


class _Noting(SqliteJournal):
    """Says what it has written in the very step in which that is done."""

    def __init__(self, path: Path, noted: Callable[[Batch], None], *, run: Any) -> None:
        super().__init__(path, run=run)
        self._noted = noted

    async def write(self, batch: Batch) -> Mapping[int, int]:
        """See the port. Never in one step, however little it is."""
        return await self._run(partial(self._write, batch))  # type: ignore[no-any-return]

    def _write(self, batch: Batch) -> Mapping[int, int]:
        sizes = super()._write(batch)
        self._noted(batch)
        return sizes

    def abandon(self) -> None:
        """Let go of the file, as the end of a process does: nothing more is written into it."""
        for connection in (self._connection, self._syncing):
            if connection is not None:
                connection.close()


class FileMedium:
    """A file that one host after the other is started on.

    Whatever is done with it takes up to `longest` seconds before, and as long after: a cancel in
    the first finds nothing written, one in the second everything, and the host cannot tell.
    """

    def __init__(self, path: Path, seed: int = 0, longest: float = 0.0) -> None:
        self.path = path
        self.seq = 0
        self._held: set[int] = set()
        self._dice = Random(f"medium {seed}")
        self.longest = longest
        self._journal: _Noting | None = None

    def begin(self, limit: int) -> tuple[Journal, Kept]:
        """See `Medium`."""
        assert self._journal is None, "the host before this one still runs"
        journal = self._journal = _Noting(self.path, self._noted, run=self._run)
        kept = journal.begin(limit=limit, boot="this one")
        self.seq = kept.seq
        return journal, kept

    async def _run(self, blocking: Callable[[], Any]) -> Any:
        await self._wait()
        result = blocking()
        await self._wait()
        return result

    async def _wait(self) -> None:
        await trio.sleep(self._dice.uniform(0, self.longest) if self.longest else 0)

    def _noted(self, batch: Batch) -> None:
        self.seq = batch.seq
        self._held.update(each.seq for each in batch.envelopes)

    def holds(self, seq: int) -> bool:
        """See `Medium`."""
        return seq in self._held

    def end(self) -> None:
        """See `Medium`. The file is as a killed process leaves it: nobody closed it in order."""
        if self._journal is not None:
            self._journal.abandon()
            self._journal = None
