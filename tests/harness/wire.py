"""`Wire`: what lies between one peer and the host, and what can go wrong with it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal

import trio

from ahpd.protocol.frame import Frame
from ahpd.transports.memory import Lane, MemoryTransport, memory_pair
from ahpd.transports.port import Immediate, Transport, TransportClosed
from tests.harness.tap import Tap, Taps

#: To the host, or from it.
Direction = Literal["up", "down"]


class Tapped:
    """An end of a connection whose frames are noted when they are sent; a `Transport`.

    `arrived` is called with each frame that is taken in here.
    """

    def __init__(
        self,
        inner: MemoryTransport,
        note: Callable[[bytes], None],
        arrived: Callable[[bytes], None],
    ) -> None:
        self.peer = inner.peer
        self._inner = inner
        self._note = note
        self._arrived = arrived

    async def receive(self) -> bytes:
        """See `Transport.receive`."""
        text = await self._inner.receive()
        self._arrived(text)
        return text

    async def send(self, frames: Sequence[Frame]) -> None:
        """See `Transport.send`."""
        for frame in frames:
            self._note(frame.text)
        await self._inner.send(frames)

    def send_nowait(self, frames: Sequence[Frame]) -> bool:
        """See `Immediate`."""
        assert isinstance(self._inner, Immediate)
        for frame in frames:
            self._note(frame.text)
        return self._inner.send_nowait(frames)

    async def close(self, code: int = 1000, reason: str = "") -> None:
        """See `Transport.close`."""
        await self._inner.close(code, reason)


class Wire:
    """Makes connections to the host, one after the other, and plays the network between.

    What is held stays held over connections, so that a handshake can be slow too. `down` makes
    connecting fail. `capacity` bounds the bytes of each direction, at which a sender waits.
    """

    def __init__(
        self,
        name: str,
        taps: Taps,
        serve: Callable[[Transport], None],
        *,
        capacity: int | None = None,
    ) -> None:
        self.name = name
        self.down = False
        self.connections = 0
        self.tap: Tap | None = None
        #: Called with each frame when the host takes it in.
        self.arrived: Callable[[bytes], None] = _nothing
        self._taps = taps
        self._serve = serve
        self._capacity = capacity
        self._held: set[Direction] = set()
        self._ends: MemoryTransport | None = None
        #: The ends of earlier connections: what is held of them has not arrived yet.
        self._earlier: list[MemoryTransport] = []

    async def connect(self) -> Transport:
        """The client's end of a new connection; the `Connect` of a client."""
        await trio.lowlevel.checkpoint()
        if self.down:
            raise TransportClosed("connection refused")
        self.connections += 1
        name = f"{self.name}#{self.connections}"
        there, here = memory_pair(name, capacity=self._capacity)
        tap = self.tap = self._taps.tap(name)
        if self._ends is not None:
            self._earlier.append(self._ends)
        self._ends = there
        for way in self._held:
            self._lane(way).hold()
        self._serve(Tapped(here, lambda text: tap.passed("h2c", text), self.arrived))
        return Tapped(there, lambda text: tap.passed("c2h", text), _nothing)

    def _lane(self, way: Direction) -> Lane:
        assert self._ends is not None
        return _lane_of(self._ends, way)

    def hold(self, way: Direction) -> None:
        """From now on let nothing through this way, except by `deliver`."""
        self._held.add(way)
        if self._ends is not None:
            self._lane(way).hold()

    def deliver(self, way: Direction, count: int = 1) -> None:
        """Let `count` more messages through; nothing happens unless it is held."""
        if self._ends is not None:
            self._lane(way).deliver(count)

    def release(self, *ways: Direction) -> None:
        """Let everything through again, of earlier connections too; both ways unless told."""
        ends = self._earlier if self._ends is None else [*self._earlier, self._ends]
        for way in ways or ("up", "down"):
            self._held.discard(way)
            for each in ends:
                _lane_of(each, way).release()

    def cut(self) -> None:
        """Break the present connection; what is under way is lost."""
        if self._ends is not None:
            self._ends.cut()

    def die(self, *, lost: bool) -> None:
        """The host's process is gone. Unless it is lost, what it had sent still arrives."""
        if self._ends is None:
            return
        if lost:
            self._ends.cut()
        else:
            self._ends.inbound.finish()
            self._ends.outbound.break_off()

    def end_input(self) -> None:
        """The host reads to the end of what was sent and nothing more; the other way stays open."""
        assert self._ends is not None
        self._ends.outbound.finish()

    def waiting(self, way: Direction) -> int:
        """Bytes that were sent this way and not received."""
        return self._lane(way).waiting_bytes if self._ends is not None else 0


def _lane_of(ends: MemoryTransport, way: Direction) -> Lane:
    return ends.outbound if way == "up" else ends.inbound


def _nothing(_: bytes) -> None:
    """Nobody looks."""
