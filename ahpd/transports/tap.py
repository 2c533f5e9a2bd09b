"""Captures: every frame that passes, both ways, a JSON line each, in a shape of `protocol.capture`.

A `Capture` is a file and the thread that writes it, so that a slow disk holds up no connection.
What waits for it is bounded: frames beyond are left out, and the next line written says how many in
its key ``lost``. `conn` numbers the connections from 1. Secrets are replaced by ``***``, see
`ahpd.transports.redaction`.

A frame of a client's that is no JSON is a string there, which the frame checker calls a fault.
"""

from __future__ import annotations

import logging
import queue
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Protocol

from ahpd.protocol.capture import Way
from ahpd.protocol.frame import Frame
from ahpd.transports.capture_lines import SHAPES, Passed
from ahpd.transports.port import Immediate, Transport
from ahpd.transports.redaction import Redactor
from ahpd.transports.rotated import RotatedFile

_log = logging.getLogger("ahpd.wire")

#: Seconds that the last lines may take to be written.
CLOSE_WITHIN = 10.0
#: Frames taken at once, and bytes of lines that are written at once.
_BATCH, _PIECE = 256, 64 << 10


class Sink(Protocol):
    """Where lines go; `RotatedFile` is one."""

    def write(self, data: bytes) -> None:
        """Write it all. Blocks; raises OSError."""
        ...

    def close(self) -> None:
        """There is nothing more."""
        ...


class Capture:
    """A file that frames go to; see the module. Made by `capturing`, and used by one thread."""

    def __init__(
        self, sink: Sink, *, limit: int, redact: Redactor | None = None, shape: str = "frames"
    ) -> None:
        self._sink = sink
        self._limit = limit
        self._redact = redact or Redactor()
        self._line_of = SHAPES[shape]
        self._queue: queue.SimpleQueue[Passed | None] = queue.SimpleQueue()
        #: Bytes put in and bytes done with: each is counted by one thread alone.
        self._put = self._done = 0
        self._lost = 0
        self._connections = 0
        self._thread = threading.Thread(target=self._work, name="ahpd-capture", daemon=True)
        self._thread.start()

    def tap(self, transport: Transport) -> Tap:
        """`transport`, with every frame of it captured from now on."""
        self._connections += 1
        return Tap(transport, self, self._connections)

    def passed(self, way: Way, conn: int, transport: str, text: bytes | str) -> None:
        """A frame passed. Never waits."""
        frame = Passed(way, conn, transport, time.time(), text, self._lost)
        if self._put - self._done + len(frame) > self._limit:
            if not self._lost:
                _log.warning("the capture's disk is too slow: frames are left out of it")
            self._lost += 1
            return
        self._lost = 0
        self._put += len(frame)
        self._queue.put(frame)

    def close(self) -> None:
        """Write what waits, `CLOSE_WITHIN` seconds at most. Blocks."""
        self._queue.put(None)
        self._thread.join(CLOSE_WITHIN)
        if self._thread.is_alive():
            _log.warning("the capture's disk is too slow: its last frames are lost")

    # The writing thread.

    def _work(self) -> None:
        broken = False
        going = True
        while going:
            batch = [self._queue.get()]
            while batch[-1] is not None and len(batch) < _BATCH and not self._queue.empty():
                batch.append(self._queue.get())
            going = batch[-1] is not None
            frames = [frame for frame in batch if frame is not None]
            if not broken:
                try:
                    self._write(frames)
                except OSError as error:
                    broken = True
                    _log.error("the capture ends here: %s", error.strerror)
            self._done += sum(len(frame) for frame in frames)
        self._sink.close()

    def _write(self, frames: Sequence[Passed]) -> None:
        # A few lines at a time, so that a file that is full is moved aside between two of them.
        lines = bytearray()
        for frame in frames:
            lines += self._line_of(frame, self._redact)
            if len(lines) >= _PIECE:
                self._sink.write(bytes(lines))
                lines.clear()
        if lines:
            self._sink.write(bytes(lines))


class Tap:
    """A `Transport` that a capture listens in on."""

    def __init__(self, inner: Transport, capture: Capture, number: int) -> None:
        self.peer = inner.peer
        self._inner = inner
        self._passed = partial(capture.passed, conn=number, transport=_kind_of(inner.peer))
        self._kept: list[Frame] = []

    async def receive(self) -> bytes | str:
        """See `Transport.receive`."""
        text = await self._inner.receive()
        self._passed("c2h", text=text)
        return text

    async def send(self, frames: Sequence[Frame]) -> None:
        """See `Transport.send`. What is captured is what was to be sent."""
        frames, self._kept = [*self._kept, *frames], []
        for frame in frames:
            self._passed("h2c", text=frame.text)
        await self._inner.send(frames)

    def send_nowait(self, frames: Sequence[Frame]) -> bool:
        """See `Immediate`."""
        if isinstance(self._inner, Immediate):
            for frame in frames:
                self._passed("h2c", text=frame.text)
            return self._inner.send_nowait(frames)
        self._kept += frames
        return False

    async def close(self, code: int = 1000, reason: str = "") -> None:
        """See `Transport.close`."""
        await self._inner.close(code, reason)


def _kind_of(peer: str) -> str:
    """The kind of a transport, as it is called in captures."""
    kind = peer.partition(" ")[0].partition(":")[0]
    return kind if kind in ("stdio", "unix") else "websocket"


@contextmanager
def capturing(
    path: Path,
    *,
    limit: int,
    redact: Redactor | None = None,
    shape: str = "frames",
    max_bytes: int = 1 << 40,
    keep: int = 0,
) -> Iterator[Capture]:
    """A `Capture` in a file of mode 0600, which is emptied first, for the length of the block.

    `limit` bounds the bytes that wait to be written; `max_bytes` and `keep` are as for a
    `RotatedFile`, `shape` is one of `SHAPES`. Raises OSError when it cannot be opened. Its end
    blocks until all is written, `CLOSE_WITHIN` seconds at most.
    """
    file = RotatedFile(path, max_bytes=max_bytes, keep=keep, fresh=True)
    capture = Capture(file, limit=limit, redact=redact, shape=shape)
    try:
        yield capture
    finally:
        capture.close()
