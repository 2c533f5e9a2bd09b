"""Captures: every frame that passes, both ways, a JSON line each, in the format of `capture`.

A `Capture` is a file and the thread that writes it, so that a slow disk holds up no connection.
What waits for it is bounded: frames beyond are left out, and the next line written says how many in
its key ``lost``. `conn` numbers the connections from 1. Secrets are replaced by ``***``, see
`ahpd.transports.redaction`.

A frame of a client's that is no JSON is a string there, which the frame checker calls a fault.
"""

from __future__ import annotations

import logging
import os
import queue
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import attrs

from ahpd.protocol.capture import Way
from ahpd.protocol.frame import Frame
from ahpd.protocol.jsontext import ParseError, dumps, loads
from ahpd.transports.port import Immediate, Transport
from ahpd.transports.redaction import Redactor

_log = logging.getLogger("ahpd.wire")

#: Seconds that the last lines may take to be written.
CLOSE_WITHIN = 10.0
#: What a frame in the queue weighs besides its text.
_OVERHEAD = 128
#: Lines written at once.
_BATCH = 256


@attrs.frozen
class _Passed:
    """A frame that passed, and how many before it were left out."""

    way: Way
    conn: int
    text: bytes | str
    lost: int

    def __len__(self) -> int:
        return len(self.text) + _OVERHEAD


class Capture:
    """A file that frames go to; see the module. Made by `capturing`, and used by one thread."""

    def __init__(self, fd: int, *, limit: int, redact: Redactor | None = None) -> None:
        self._fd = fd
        self._limit = limit
        self._redact = redact or Redactor()
        self._queue: queue.SimpleQueue[_Passed | None] = queue.SimpleQueue()
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

    def passed(self, way: Way, conn: int, text: bytes | str) -> None:
        """A frame passed. Never waits."""
        frame = _Passed(way, conn, text, self._lost)
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
                    _write(self._fd, b"".join(self._line_of(frame) for frame in frames))
                except OSError as error:
                    broken = True
                    _log.error("the capture ends here: %s", error.strerror)
            self._done += sum(len(frame) for frame in frames)
        os.close(self._fd)

    def _line_of(self, frame: _Passed) -> bytes:
        """The line for a frame that passed, without secrets."""
        if frame.way == "h2c" and isinstance(frame.text, bytes):
            text = frame.text  # ours: one line of JSON
        else:
            text = _as_json(frame.text)
        text = self._redact.json(text)
        lost = b',"lost":%d' % frame.lost if frame.lost else b""
        return b'{"dir":"%s","conn":%d%s,"frame":%s}\n' % (
            frame.way.encode(),
            frame.conn,
            lost,
            text,
        )


def _write(fd: int, data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(fd, rest) :]


def _as_json(text: bytes | str) -> bytes:
    try:
        return dumps(loads(text))
    except ParseError:
        shown = text if isinstance(text, str) else text.decode("utf-8", "replace")
        return dumps(shown.encode("utf-8", "replace").decode())


class Tap:
    """A `Transport` that a capture listens in on."""

    def __init__(self, inner: Transport, capture: Capture, number: int) -> None:
        self.peer = inner.peer
        self._inner = inner
        self._capture = capture
        self._number = number
        self._kept: list[Frame] = []

    async def receive(self) -> bytes | str:
        """See `Transport.receive`."""
        text = await self._inner.receive()
        self._capture.passed("c2h", self._number, text)
        return text

    async def send(self, frames: Sequence[Frame]) -> None:
        """See `Transport.send`. What is captured is what was to be sent."""
        frames, self._kept = [*self._kept, *frames], []
        for frame in frames:
            self._capture.passed("h2c", self._number, frame.text)
        await self._inner.send(frames)

    def send_nowait(self, frames: Sequence[Frame]) -> bool:
        """See `Immediate`."""
        if isinstance(self._inner, Immediate):
            for frame in frames:
                self._capture.passed("h2c", self._number, frame.text)
            return self._inner.send_nowait(frames)
        self._kept += frames
        return False

    async def close(self, code: int = 1000, reason: str = "") -> None:
        """See `Transport.close`."""
        await self._inner.close(code, reason)


@contextmanager
def capturing(path: Path, *, limit: int, redact: Redactor | None = None) -> Iterator[Capture]:
    """A `Capture` in a file of mode 0600, which is emptied first, for the length of the block.

    `limit` bounds the bytes that wait to be written. Raises OSError when it cannot be opened. Its
    end blocks until all is written, `CLOSE_WITHIN` seconds at most.
    """
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    os.fchmod(fd, 0o600)
    capture = Capture(fd, limit=limit, redact=redact)
    try:
        yield capture
    finally:
        capture.close()
