"""`Room`: how much may wait for the journal before those who bring more have to wait themselves."""

from __future__ import annotations

import trio


class Room:
    """Counts bytes; `wait` returns while there are no more than `limit`.

    It is a bound for the edges, which ask before they take more in. What is in the host already is
    never held up, so a little more than the limit may come.
    """

    def __init__(self, limit: int = 64 << 20) -> None:
        self.limit = limit
        self.taken = 0
        self._free: trio.Event | None = None

    def take(self, size: int) -> None:
        """So much more waits."""
        self.taken += size

    def free(self, size: int) -> None:
        """So much does not wait any more."""
        self.taken -= size
        if self._free is not None and self.taken <= self.limit:
            self._free.set()
            self._free = None

    async def wait(self) -> None:
        """Until there is room. No checkpoint while there is."""
        while self.taken > self.limit:
            if self._free is None:
                self._free = trio.Event()
            await self._free.wait()
