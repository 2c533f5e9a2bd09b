"""A transport of JSON lines over anything that carries bytes: pipes, a Unix socket, a process.

What the carriers have in common lives here: splitting, joining, and how an end is reported. The
carrier itself is a `Carrier`, three methods.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Protocol

import trio

from ahpd.protocol.frame import Frame
from ahpd.transports.lines import LINE_LIMIT, LineSplitter, LineTooLong, joined_lines
from ahpd.transports.port import TransportClosed

#: How many bytes are asked of the carrier at once.
READ_BYTES = 64 * 1024
#: About how many bytes of lines are joined for one write, so that a slow reader's backlog is
#: never copied into one giant piece.
WRITE_BYTES = 256 * 1024
#: Close code for a message over the limit, as WebSocket has it.
TOO_BIG = 1009


class Carrier(Protocol):
    """Bytes to and from a peer. trio's `SocketStream` is one."""

    async def receive_some(self, max_bytes: int) -> bytes | bytearray:
        """Some bytes, or none at the end. Loses nothing on cancel.

        Raises `trio.BrokenResourceError` or `trio.ClosedResourceError`.
        """
        ...

    async def send_all(self, data: bytes) -> None:
        """Hand all of `data` to the kernel; raises as `receive_some`."""
        ...

    async def aclose(self) -> None:
        """Let go of it, within a bound and without raising an `Exception`.

        A task that waits in one of the other two gets `trio.ClosedResourceError`.
        """
        ...


class LineTransport:
    """A `Transport` over a `Carrier`. `limit` bounds one line, in bytes."""

    def __init__(self, carrier: Carrier, peer: str, *, limit: int = LINE_LIMIT) -> None:
        self.peer = peer
        self._carrier = carrier
        self._splitter = LineSplitter(limit)
        self._lines: deque[bytes] = deque()
        self._end: tuple[str, int, bool] | None = None  # why there will be no more lines
        self._closed = False
        self._torn = False

    async def receive(self) -> bytes:
        """The next line's bytes. See `Transport.receive`; a clean end is code 1000."""
        if self._lines and not self._closed:
            # A line is taken only after the checkpoint, so that a cancel loses none.
            await trio.lowlevel.checkpoint()
        while not self._closed:
            if self._lines:
                return self._lines.popleft()
            if self._end is not None:
                break
            await self._read()
        if self._closed or self._end is None:
            raise TransportClosed("closed on this side", code=1000, clean=True)
        reason, code, clean = self._end
        raise TransportClosed(reason, code=code, clean=clean)

    async def _read(self) -> None:
        try:
            data = await self._carrier.receive_some(READ_BYTES)
        except trio.ClosedResourceError:
            self._closed = True
            return
        except trio.BrokenResourceError as error:
            self._end = (f"the connection broke: {error.__cause__ or error}", 1006, False)
            return
        try:
            if data:
                self._lines += self._splitter.feed(bytes(data))
            else:
                self._lines += self._splitter.finish()
                self._end = ("the peer ended its stream", 1000, True)
        except LineTooLong as error:
            self._lines += error.lines
            self._end = (str(error), TOO_BIG, False)

    async def send(self, frames: Sequence[Frame]) -> None:
        """Write each frame as a line. See `Transport.send`."""
        if self._closed or self._torn:
            raise TransportClosed("closed on this side", code=1000, clean=True)
        start = size = 0
        self._torn = True  # unless all of it goes out
        try:
            for index, frame in enumerate(frames):
                size += len(frame.text)
                if size >= WRITE_BYTES:
                    await self._carrier.send_all(joined_lines(frames[start : index + 1]))
                    start, size = index + 1, 0
            await self._carrier.send_all(joined_lines(frames[start:]))
        except trio.ClosedResourceError:
            raise TransportClosed("closed on this side", code=1000, clean=True) from None
        except trio.BrokenResourceError as error:
            raise TransportClosed(f"the peer stopped reading: {error.__cause__ or error}") from None
        self._torn = False

    async def close(self, code: int = 1000, reason: str = "") -> None:
        """Close the carrier; lines have no goodbye, so `code` and `reason` reach nobody."""
        if self._closed:
            return
        self._closed = True
        await self._carrier.aclose()
