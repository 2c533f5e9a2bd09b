"""A journal that forgets with the process: for tests, and for hosts that need no more."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ahpd.journal.port import Batch, KeptChannel
from ahpd.protocol.uris import URI


class MemoryJournal:
    """Keeps nothing but the highest number: what the ledger holds is all there is. Never waits."""

    def __init__(self) -> None:
        self.seq = 0

    async def write(self, batch: Batch) -> Mapping[int, int]:
        """See the port."""
        self.seq = max(self.seq, batch.seq)
        return {}

    async def sync(self) -> None:
        """See the port."""

    async def load(self, session: URI) -> Sequence[KeptChannel]:
        """There is never anything that is not loaded."""
        return ()

    async def set_aside(self, key: int, why: str) -> None:
        """See the port."""
