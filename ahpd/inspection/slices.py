"""`Slices`: long work on the host's own loop, cut so finely that nobody has to wait for it."""

from __future__ import annotations

import time

import trio

#: Seconds that may pass between two checkpoints.
SLICE = 0.001


class Slices:
    """Call `due` as often as is easy, and `rest` when it says so.

    `longest` is the longest that a rest took: a whole round of everybody else, so the time for
    which whoever has something to do may have to wait.
    """

    def __init__(self) -> None:
        self.longest = 0.0
        self._until = time.perf_counter() + SLICE

    @property
    def due(self) -> bool:
        """Whether it is others' turn."""
        return time.perf_counter() >= self._until

    async def rest(self) -> None:
        """Let everybody else have a turn. A checkpoint."""
        began = time.perf_counter()
        await trio.lowlevel.checkpoint()
        ended = time.perf_counter()
        self.longest = max(self.longest, ended - began)
        self._until = ended + SLICE
