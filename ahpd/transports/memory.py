"""Two ends of a connection inside one process, for tests and seeded walks.

It works on any trio clock, starts no task, draws no random number, and costs a deque operation
and one checkpoint a message. Each direction is a `Lane` that a test can hold back, let through
piece by piece, or cut, to produce the delays and losses that real networks produce.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

import trio

from ahpd.protocol.frame import Frame
from ahpd.transports.port import TransportClosed


class Lane:
    """One direction: messages in order, and then possibly the end of the connection.

    `capacity` bounds the bytes that wait before a sender has to (None: no bound).
    """

    __slots__ = (
        "_allowed", "_capacity", "_closed_here", "_end", "_kept", "_messages", "_room", "_size",
        "_wake",
    )  # fmt: skip

    def __init__(self, capacity: int | None = None) -> None:
        self._messages: deque[bytes] = deque()
        self._size = 0
        self._capacity = capacity
        self._allowed: int | None = None  # messages that may still pass; None: all
        self._end: tuple[str, int, bool] | None = None
        self._kept: list[Frame] = []  # taken over from their sender, and still to be put
        self._closed_here = False  # the receiving end was closed: what waits is not wanted
        self._wake: trio.Event | None = None
        self._room: trio.Event | None = None

    def __len__(self) -> int:
        """Messages sent and not yet received."""
        return len(self._messages)

    @property
    def waiting_bytes(self) -> int:
        """Bytes sent and not yet received."""
        return self._size

    @property
    def held(self) -> bool:
        """Whether messages are being held back."""
        return self._allowed is not None

    def hold(self) -> None:
        """From now on deliver nothing, except by `deliver`; the end waits behind the messages."""
        self._allowed = 0

    def deliver(self, count: int = 1) -> None:
        """While held, let `count` more messages through, those waiting or those to come."""
        if self._allowed is not None:
            self._allowed += count
            self._notify()

    def release(self) -> None:
        """Deliver everything again."""
        self._allowed = None
        self._notify()

    def drop(self) -> list[bytes]:
        """Take away what waits undelivered and give it to the caller: bytes lost on the way."""
        lost = list(self._messages)
        self._messages.clear()
        self._take_size(self._size)
        return lost

    def finish(self) -> None:
        """End this direction alone, cleanly, behind what waits: as when a pipe's writer closes."""
        self._finish("the peer closed its side", 1000, True)

    def break_off(self) -> None:
        """Break this direction alone, and lose what waits: its receiver is not there any more."""
        self._finish("the connection broke", 1006, False, now=True)

    # What follows is for the two ends.

    def _notify(self) -> None:
        if self._wake is not None:
            self._wake.set()
            self._wake = None

    def _take_size(self, size: int) -> None:
        self._size -= size
        if self._room is not None:
            self._room.set()
            self._room = None

    def _finish(self, reason: str, code: int, clean: bool, *, now: bool = False) -> None:
        """No more messages after those that wait; with `now`, not even those, held or not."""
        if now:
            self.drop()
            self._allowed = None
        if self._end is None or now:
            self._end = (reason, code, clean)
        self._notify()
        self._take_size(0)

    def _put_nowait(self, frames: Sequence[Frame]) -> bool:
        full = self._capacity is not None and self._size >= self._capacity
        if full or self._end is not None or self._kept:
            self._kept += frames
            return False
        for frame in frames:
            self._messages.append(frame.text)
            self._size += len(frame.text)
        self._notify()
        return True

    async def _put(self, frames: Sequence[Frame]) -> None:
        await trio.lowlevel.checkpoint()
        kept, self._kept = self._kept, []
        for frame in (*kept, *frames):
            while self._capacity is not None and self._size >= self._capacity and not self._end:
                self._notify()  # of those put so far: only their receiver makes room
                if self._room is None:
                    self._room = trio.Event()
                await self._room.wait()
            if self._end is not None:
                reason, code, clean = self._end
                raise TransportClosed(reason, code=code, clean=clean)
            self._messages.append(frame.text)
            self._size += len(frame.text)
        self._notify()

    async def _get(self) -> bytes:
        await trio.lowlevel.checkpoint()
        while True:
            if self._closed_here:
                raise TransportClosed("closed on this side", code=1000, clean=True)
            if self._messages:
                if self._allowed != 0:
                    if self._allowed is not None:
                        self._allowed -= 1
                    message = self._messages.popleft()
                    self._take_size(len(message))
                    return message
            elif self._end is not None and not self.held:
                reason, code, clean = self._end
                raise TransportClosed(reason, code=code, clean=clean)
            if self._wake is None:
                self._wake = trio.Event()
            await self._wake.wait()


class MemoryTransport:
    """One end of a `memory_pair`; a `Transport`. `inbound` and `outbound` are its lanes."""

    def __init__(self, peer: str, inbound: Lane, outbound: Lane) -> None:
        self.peer = peer
        self.inbound = inbound
        self.outbound = outbound

    async def receive(self) -> bytes:
        """See `Transport.receive`."""
        return await self.inbound._get()

    async def send(self, frames: Sequence[Frame]) -> None:
        """See `Transport.send`; waits only for a lane with a capacity."""
        if self.inbound._closed_here:
            raise TransportClosed("closed on this side", code=1000, clean=True)
        await self.outbound._put(frames)

    def send_nowait(self, frames: Sequence[Frame]) -> bool:
        """See `Immediate`."""
        return not self.inbound._closed_here and self.outbound._put_nowait(frames)

    async def close(self, code: int = 1000, reason: str = "") -> None:
        """End the connection: the peer receives what was sent, then `TransportClosed`."""
        self.close_nowait(code, reason)

    def close_nowait(self, code: int = 1000, reason: str = "") -> None:
        """`close`, for callers that are not async."""
        if self.inbound._closed_here:
            return
        self.inbound._closed_here = True
        self.inbound._finish(reason or "the peer closed", code, True, now=True)
        self.outbound._finish(reason or "the peer closed", code, True)

    def cut(self) -> None:
        """Break the connection both ways: what was not yet received is lost (code 1006)."""
        for lane in (self.inbound, self.outbound):
            lane.break_off()


def memory_pair(
    name: str = "memory", *, capacity: int | None = None
) -> tuple[MemoryTransport, MemoryTransport]:
    """Two connected transports; by habit the first is the client's, the second the host's.

    `capacity` is the bound of each lane in bytes, at which a sender waits.
    """
    there, back = Lane(capacity), Lane(capacity)
    return MemoryTransport(name, back, there), MemoryTransport(name, there, back)
