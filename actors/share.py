"""`Share`: how much output all terminals together may have on its way out.

Everything that goes out goes in one order, so what one terminal has under way is what the others
wait for. What is little never waits here: a key's echo goes ahead of all that the terminals which
flood have still to bring. These take turns, each as long as it brings no more than the rest of the
limit, or is the only one.
"""

from __future__ import annotations

from collections import deque

import trio

#: Bytes that may be under way, and what is little.
LIMIT, LITTLE = 512 << 10, 4 << 10


class Share:
    """See the module. Of one host."""

    def __init__(self, limit: int = LIMIT) -> None:
        self.limit = limit
        #: Bytes under way.
        self.taken = 0
        self._waiting: deque[tuple[int, trio.Event]] = deque()

    async def take(self, size: int) -> None:
        """So many bytes are on their way from now on; waits for its turn when they are many.

        No checkpoint when it need not wait. Cancelled: they are not.
        """
        if size > LITTLE and (self._waiting or not self._fits(size)):
            turn = size, trio.Event()
            self._waiting.append(turn)
            try:
                await turn[1].wait()
            except trio.Cancelled:
                if turn[1].is_set():  # it was given its turn in the same moment
                    self.give(size)
                else:
                    self._waiting.remove(turn)
                raise
            return
        self.taken += size

    def give(self, size: int) -> None:
        """So many are out, or never will be."""
        self.taken -= size
        while self._waiting and self._fits(self._waiting[0][0]):
            waited, turn = self._waiting.popleft()
            self.taken += waited
            turn.set()

    def _fits(self, size: int) -> bool:
        return self.taken + size <= self.limit or self.taken <= LITTLE
