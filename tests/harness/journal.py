"""A journal that takes its time, as a disk does."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

import trio

from ahpd.journal.port import Record


class SlowJournal:
    """Keeps nothing but the highest number, after up to `longest` seconds (0: at once).

    `seq` is what would survive a `kill -9`. It asserts that each group goes on where what is
    durable ends, or repeats some of it.
    """

    def __init__(self, seed: int = 0, longest: float = 0.0) -> None:
        self.seq = 0
        self._dice = Random(f"journal {seed}")
        self._longest = longest

    async def write(self, records: Sequence[Record]) -> None:
        """See the port."""
        assert records[0].seq <= self.seq + 1, f"{self.seq} is durable, then {records[0].seq}"
        if self._longest:
            await trio.sleep(self._dice.uniform(0, self._longest))
        self.seq = max(self.seq, records[-1].seq)
