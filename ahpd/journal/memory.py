"""A journal that forgets with the process: for tests, and for hosts that need no more."""

from __future__ import annotations

from collections.abc import Sequence

from ahpd.journal.port import Record


class MemoryJournal:
    """Keeps nothing but the highest number: what the ledger holds is all there is."""

    def __init__(self) -> None:
        self.seq = 0

    async def write(self, records: Sequence[Record]) -> None:
        """Keep these; see the port. Never waits."""
        self.seq = max(self.seq, records[-1].seq)
