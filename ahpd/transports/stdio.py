"""JSON lines over the process's own standard input and output, or any pair of descriptors.

The descriptors are never made non-blocking. That flag belongs to the open file, not to us: a
terminal or a pipe is shared with the parent and its other children, which would see their own
reads and writes fail, and a killed process could not put it back. Instead:

* a pipe is waited for, then read, or written to in pieces that a pipe reported as writable takes
  whole (`PIPE_PIECE`);
* a socket (what some launchers give instead of a pipe) is used with ``MSG_DONTWAIT``;
* anything else, files and terminals, cannot be waited for and is read and written in a thread.

This module must not import what the WebSocket needs: ``ahpd --stdio`` has to answer soon after
its start.
"""

from __future__ import annotations

import errno
import os
import queue
import select
import socket
import stat
import threading
from typing import Protocol

import trio

from ahpd.transports.lines import LINE_LIMIT
from ahpd.transports.linestream import LineTransport

#: Bytes that a pipe takes without blocking once it is writable, by POSIX.
PIPE_PIECE = select.PIPE_BUF

#: Terminals answer a read with this when the other side is gone.
_END_OF_TERMINAL = errno.EIO


def take_stdio() -> tuple[int, int]:
    """Descriptors of standard input and output that nobody else in this process can touch.

    Descriptor 0 becomes the null device, so that a child process does not eat the peer's messages;
    descriptor 1 becomes standard error, so that a stray print goes to the log and not between the
    frames. Call it once, before anything is written. Raises OSError when they are not open.
    """
    read_fd, write_fd = os.dup(0), os.dup(1)
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.close(null)
    os.dup2(2, 1)
    return read_fd, write_fd


def open_stdio(*, limit: int = LINE_LIMIT) -> LineTransport:
    """The `Transport` to whoever started this process. `limit` bounds one line, in bytes."""
    return fd_transport(*take_stdio(), limit=limit)


def fd_transport(
    read_fd: int, write_fd: int, *, peer: str = "stdio", limit: int = LINE_LIMIT
) -> LineTransport:
    """A `Transport` over two open descriptors, which it owns from now on and closes at its end."""
    return LineTransport(FdCarrier(read_fd, write_fd), peer, limit=limit)


class FdCarrier:
    """A `linestream.Carrier` over two descriptors, one to read and one to write."""

    def __init__(self, read_fd: int, write_fd: int) -> None:
        self._source = _source(read_fd)
        self._sink = _sink(write_fd)

    async def receive_some(self, max_bytes: int) -> bytes:
        """See `Carrier`."""
        try:
            return await self._source.read(max_bytes)
        except OSError as error:
            if error.errno == _END_OF_TERMINAL:
                return b""
            raise trio.BrokenResourceError from error

    async def send_all(self, data: bytes) -> None:
        """See `Carrier`."""
        try:
            await self._sink.write(memoryview(data))
        except OSError as error:
            raise trio.BrokenResourceError from error

    async def aclose(self) -> None:
        """See `Carrier`. Closes both descriptors, at once."""
        self._source.close()
        self._sink.close()
        await trio.lowlevel.cancel_shielded_checkpoint()


class _Source(Protocol):
    async def read(self, max_bytes: int) -> bytes:
        """Some bytes, none at the end; raises OSError, or `trio.ClosedResourceError`."""
        ...

    def close(self) -> None: ...


class _Sink(Protocol):
    async def write(self, data: memoryview) -> None:
        """All of `data`; raises as `_Source.read`."""
        ...

    def close(self) -> None: ...


def _source(fd: int) -> _Source:
    mode = os.fstat(fd).st_mode
    if stat.S_ISSOCK(mode):
        return _Socket(fd)
    return _Pipe(fd) if stat.S_ISFIFO(mode) else _ThreadSource(fd)


def _sink(fd: int) -> _Sink:
    mode = os.fstat(fd).st_mode
    if stat.S_ISSOCK(mode):
        return _Socket(fd)
    return _Pipe(fd) if stat.S_ISFIFO(mode) else _ThreadSink(fd)


class _Pipe:
    """One end of a pipe: wait until it is ready, then do what cannot block any more."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._closed = False

    def _read_now(self, max_bytes: int) -> bytes:
        return os.read(self._fd, max_bytes)

    def _write_now(self, data: memoryview) -> int:
        return os.write(self._fd, data[:PIPE_PIECE])

    async def read(self, max_bytes: int) -> bytes:
        while not self._closed:
            await trio.lowlevel.wait_readable(self._fd)
            try:
                return self._read_now(max_bytes)
            except BlockingIOError:  # another reader of the same file was faster
                continue
        raise trio.ClosedResourceError

    async def write(self, data: memoryview) -> None:
        while data:
            if self._closed:
                raise trio.ClosedResourceError
            await trio.lowlevel.wait_writable(self._fd)
            try:
                data = data[self._write_now(data) :]
            except BlockingIOError:
                continue

    def close(self) -> None:
        if not self._closed:
            self._closed = True
            trio.lowlevel.notify_closing(self._fd)
            self._let_go()

    def _let_go(self) -> None:
        os.close(self._fd)


class _Socket(_Pipe):
    """A socket, used like a pipe but asked not to block, each time."""

    def __init__(self, fd: int) -> None:
        super().__init__(fd)
        self._socket = socket.socket(fileno=fd)

    def _read_now(self, max_bytes: int) -> bytes:
        return self._socket.recv(max_bytes, socket.MSG_DONTWAIT)

    def _write_now(self, data: memoryview) -> int:
        return self._socket.send(data, socket.MSG_DONTWAIT)

    def _let_go(self) -> None:
        self._socket.close()


class _ThreadSource:
    """Reads in a thread of its own, one read at a time and only when asked.

    A read cannot be interrupted. When its caller is cancelled the read goes on, and what it gives
    is kept for the next caller, so a cancel loses nothing. The thread is a daemon: a terminal at
    which nobody types does not keep the process alive.
    """

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._requests: queue.SimpleQueue[int] = queue.SimpleQueue()  # 0: close and end
        self._running = False
        self._busy = False
        self._closed = False
        self._result: bytes | OSError | None = None
        self._changed = trio.Event()

    async def read(self, max_bytes: int) -> bytes:
        await trio.lowlevel.checkpoint()
        while self._result is None:
            if self._closed:
                raise trio.ClosedResourceError
            if not self._busy:
                self._ask(max_bytes)
            await self._changed.wait()
        result, self._result = self._result, None
        if isinstance(result, OSError):
            raise result
        return result

    def _ask(self, max_bytes: int) -> None:
        if not self._running:
            self._running = True
            token = trio.lowlevel.current_trio_token()
            threading.Thread(
                target=self._serve, args=(token,), name="ahpd-stdin", daemon=True
            ).start()
        self._busy = True
        self._changed = trio.Event()
        self._requests.put(max_bytes)

    def _serve(self, token: trio.lowlevel.TrioToken) -> None:
        while max_bytes := self._requests.get():
            result: bytes | OSError
            try:
                result = os.read(self._fd, max_bytes)
            except OSError as error:
                result = error
            try:
                token.run_sync_soon(self._done, result)
            except trio.RunFinishedError:
                break
        # Only this thread may close it: between a close and a read the number could get
        # another meaning.
        os.close(self._fd)

    def _done(self, result: bytes | OSError) -> None:
        self._busy = False
        self._result = result
        self._changed.set()

    def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        self._changed.set()
        if self._running:
            self._requests.put(0)
        else:
            os.close(self._fd)


class _ThreadSink:
    """Writes in a thread, so that a stopped terminal stops nothing else.

    A cancelled write goes on in its thread; the transport is of no more use then (see
    `Transport.send`), and the descriptor stays open until the write has ended.
    """

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._lock = threading.Lock()
        self._closed = False
        self._limiter = trio.CapacityLimiter(1)

    async def write(self, data: memoryview) -> None:
        if self._closed:
            raise trio.ClosedResourceError
        if data:
            await trio.to_thread.run_sync(
                self._write_all, data, abandon_on_cancel=True, limiter=self._limiter
            )

    def _write_all(self, data: memoryview) -> None:
        with self._lock:
            while data and not self._closed:
                data = data[os.write(self._fd, data) :]
            self._close_if_over()

    def _close_if_over(self) -> None:
        if self._closed and self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def close(self) -> None:
        self._closed = True
        if self._lock.acquire(blocking=False):
            self._close_if_over()
            self._lock.release()
