"""Threads for what may block on a disk, bounded, and each with a deadline.

A thread that hangs in a file system cannot be ended. It is left alone, and keeps its place until it
comes back: so there are never more than were allowed. A folder has half of all places at most; what
hangs there leaves the others to the others.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import trio
from msgspec import Struct

from ahpd.protocol.errors import ErrorCode, ProtocolError

T = TypeVar("T")


class Lane:
    """The places of one folder; a limiter, as trio's threads take one."""

    def __init__(self, whole: trio.CapacityLimiter, places: int) -> None:
        self._whole = whole
        self._own = trio.CapacityLimiter(places)

    @property
    def in_use(self) -> int:
        """How many of its places are taken."""
        return self._own.statistics().borrowed_tokens

    async def acquire_on_behalf_of(self, borrower: object) -> None:
        """Wait for a place."""
        await self._own.acquire_on_behalf_of(borrower)
        try:
            await self._whole.acquire_on_behalf_of(borrower)
        except BaseException:
            self._own.release_on_behalf_of(borrower)
            raise

    def release_on_behalf_of(self, borrower: object) -> None:
        """Give it back."""
        self._whole.release_on_behalf_of(borrower)
        self._own.release_on_behalf_of(borrower)


class Threads(Struct, eq=False):
    """`places` at a time; `within`: seconds that one may take, the wait for its place included."""

    places: int
    within: float
    #: Made with the first request: a limiter belongs to the loop that runs then.
    whole: trio.CapacityLimiter | None = None
    lanes: dict[object, Lane] = {}

    def lane(self, folder: object) -> Lane:
        """The places of this folder."""
        if self.whole is None:
            self.whole = trio.CapacityLimiter(self.places)
        for key in [key for key, lane in self.lanes.items() if not lane.in_use and key != folder]:
            if len(self.lanes) > self.places:
                del self.lanes[key]
        if folder not in self.lanes:
            self.lanes[folder] = Lane(self.whole, max(1, self.places // 2))
        return self.lanes[folder]

    async def run(
        self, folder: object, job: Callable[[], T], abandon: Callable[[], None], what: str
    ) -> T:
        """What `job` gives; it runs in a thread. `abandon` is called when nobody waits any more.

        Raises `ProtocolError` when its time is over, and whatever `job` does.
        """
        try:
            with trio.move_on_after(self.within):
                return await trio.to_thread.run_sync(
                    job,
                    abandon_on_cancel=True,
                    limiter=self.lane(folder),  # type: ignore[arg-type]
                )
        finally:
            abandon()
        raise ProtocolError(
            ErrorCode.INTERNAL_ERROR,
            f"{what}: the file system did not answer within {self.within:g} s",
        )
