"""A journal that takes its time, as a disk does."""

from __future__ import annotations

from collections.abc import Mapping
from random import Random

import trio

from ahpd.journal.memory import MemoryJournal
from ahpd.journal.port import Batch


class SlowJournal(MemoryJournal):
    """Keeps nothing but the highest number, after up to `longest` seconds (0: at once).

    `seq` is what would survive a `kill -9`. It asserts that each batch goes on where what is
    durable ends, or repeats some of it.
    """

    def __init__(self, seed: int = 0, longest: float = 0.0) -> None:
        super().__init__()
        self._dice = Random(f"journal {seed}")
        self._longest = longest

    async def write(self, batch: Batch) -> Mapping[int, int]:
        """See the port."""
        assert batch.seq >= self.seq, f"{self.seq} is durable, then {batch.seq}"
        if self._longest:
            await trio.sleep(self._dice.uniform(0, self._longest))
        return await super().write(batch)
