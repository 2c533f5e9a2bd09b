"""The socket under one WebSocket connection, shared by trio-websocket and our own writer.

trio-websocket is given a `Wire` where it expects a stream. It does the handshake and the
receiving; what it writes (the 101, pongs, close frames) and what we write (`send_frames`, pings)
both go through `Wire`'s one lock, a whole number of frames at a time, so that neither ever lands
inside a frame of the other. Being under trio-websocket, a `Wire` also does what that library
leaves undone:

* bytes behind the request's head are kept until the upgrade was accepted; a client that does not
  wait for the 101 loses nothing;
* a peer that broke the protocol is told so: trio-websocket closes the stream on invalid UTF-8
  without the close frame that says 1007;
* the socket is closed so that the last frame arrives: while unread input waits, a plain close
  would make the kernel throw it away and send a reset.
"""

from __future__ import annotations

import fcntl
import os
import struct
import termios
from collections.abc import Callable, Sequence

import trio

from ahpd.protocol.frame import Frame
from ahpd.transports.framing import CLOSE_OPCODE, PING, Lengths, close_frame, writes

#: What is asked of the socket at once. All frames in it are parsed in one go, without a checkpoint
#: between fragments, so that more would let a flood of tiny ones hold up everybody else.
READ_BYTES = 16 * 1024
#: How long a closed connection's peer may take to notice, in seconds.
LINGER = 0.5

_HEAD_END = b"\r\n\r\n"


class HeadTooLarge(Exception):
    """The request's head did not end within its limit."""


class Wire(trio.abc.Stream):
    """A TCP stream with one lock around its writes. See the module."""

    def __init__(self, stream: trio.SocketStream, write_bytes: int) -> None:
        self._stream = stream
        self._socket = stream.socket
        self._write_bytes = write_bytes
        self._lock = trio.Lock()
        self._head = b""
        self._rest = b""
        self._accepted = trio.Event()
        self._tail = b""  # taken over and not written yet; goes before anything else
        self._torn = False  # a frame was cut in the middle: nothing may follow it
        self._said_goodbye = False
        self._ended = False  # the peer sends no more
        self._closing = False
        self._closed = False
        #: Bytes received, bytes received since the owner last set it to 0, bytes handed to the
        #: kernel: all only to be compared with earlier values.
        self.received = 0
        self.unclaimed = 0
        self.written = 0
        #: Whether the socket is being listened to; False while the owner does not take input.
        self.listening = False
        #: Gives the code and the reason of a close that the peer has not been told of.
        self.verdict: Callable[[], tuple[int, str] | None] = lambda: None
        #: More bytes than this in `unclaimed` end the connection; set once messages flow.
        self.most_unclaimed: int | None = None
        self.flooded = False
        #: A frame that announces more ends the connection at once; set once messages flow.
        self.most_announced: int | None = None
        self.announced = 0
        self._lengths = Lengths()
        #: Called when the peer sends no more without having said goodbye. It may still read.
        self.on_eof: Callable[[], None] | None = None
        self._let_go = trio.Event()

    @property
    def local_address(self) -> str:
        """The IP address at which the connection came in; empty when it is gone already."""
        try:
            return str(self._socket.getsockname()[0])
        except OSError:
            return ""

    # The handshake.

    async def read_head(self, limit: int) -> bytes:
        """The request's head, up to and with its blank line.

        Raises `HeadTooLarge`, and `trio.BrokenResourceError` when the peer leaves before its end.
        """
        data = bytearray()
        while (end := data.find(_HEAD_END, max(0, len(data) - READ_BYTES - 3))) < 0:
            if len(data) > limit:
                raise HeadTooLarge
            piece = await self._stream.receive_some(READ_BYTES)
            if not piece:
                self._ended = True
                raise trio.BrokenResourceError("half a request")
            data += piece
        end += len(_HEAD_END)
        if end > limit:
            raise HeadTooLarge
        self._head, self._rest = bytes(data[:end]), bytes(data[end:])
        return self._head

    def accepted(self) -> None:
        """The 101 was sent: from now on there are frames both ways."""
        self._accepted.set()

    # For trio-websocket.

    async def receive_some(self, max_bytes: int | None = None) -> bytes:
        """The head, and once that was accepted what comes after it."""
        if self._head:
            await trio.lowlevel.checkpoint()
            data, self._head = self._head, b""
            return data
        await self._accepted.wait()
        if self._closing:
            raise trio.ClosedResourceError
        if self.most_announced is not None and self.announced > self.most_announced:
            self.flooded = True  # what came before it was taken
            raise trio.BrokenResourceError("a message that is too long")
        if self._rest:
            data, self._rest = self._rest, b""
        else:
            self.listening = True
            try:
                data = bytes(await self._stream.receive_some(READ_BYTES))
            finally:
                self.listening = False
            self._ended = not data
            if self._ended and self.on_eof is not None and not self._closing:
                # trio-websocket would close our direction too.
                self.on_eof()
                await self._let_go.wait()
        if self.most_announced is not None:
            self.announced = max(self.announced, self._lengths.longest(data))
        self.received += len(data)
        self.unclaimed += len(data)
        if self.most_unclaimed is not None and self.unclaimed > self.most_unclaimed:
            self.flooded = True
            raise trio.BrokenResourceError("a message that does not end")
        return data

    async def send_all(self, data: bytes | bytearray | memoryview) -> None:
        """Write what trio-websocket has to say, a whole frame."""
        await self._take_turn()
        try:
            if not self._said_goodbye:  # else a pong, or a close in answer to ours
                await self._write(data)
                self._said_goodbye = data[:1] == bytes((CLOSE_OPCODE,))
        finally:
            self._lock.release()

    async def wait_send_all_might_not_block(self) -> None:
        """As the stream says; nobody asks."""
        await self._stream.wait_send_all_might_not_block()

    # For us.

    async def send_frames(self, frames: Sequence[Frame]) -> None:
        """Write text messages. Raises `trio.BrokenResourceError` or `trio.ClosedResourceError`.

        One checkpoint, and as many more as there are pieces beyond the first or waits for room.
        """
        await self._take_turn()
        try:
            if self._said_goodbye:
                raise trio.ClosedResourceError
            first = not self._tail
            if self._tail:
                await self._write(b"")
            for data in writes(frames, self._write_bytes):
                if not first:
                    await trio.lowlevel.checkpoint()
                first = False
                await self._write(data)
        finally:
            self._lock.release()

    def send_nowait(self, frames: Sequence[Frame]) -> bool:
        """Take text messages over; whether all was written. What was not goes before what follows.

        One system call, without a turn of the scheduler: what a stream to many costs for each.
        """
        data = b"".join(writes(frames, self._write_bytes))
        if self._lock.locked() or self._tail or self._torn or self._closed or self._said_goodbye:
            self._tail += data
            return False
        try:
            sent = os.write(self._socket.fileno(), data)
        except BlockingIOError:
            sent = 0
        except OSError:  # `send_frames` will meet it too, and tell
            sent = 0
        self.written += sent
        self._tail = data[sent:]
        return not self._tail

    async def send_ping(self) -> int:
        """Write a ping; the value that `acknowledged` reaches when the peer's machine has it."""
        await self._take_turn()
        try:
            if not self._said_goodbye:
                await self._write(PING)
            return self.written
        finally:
            self._lock.release()

    async def _take_turn(self) -> None:
        """A checkpoint, and the lock, which whoever calls this must release."""
        await trio.lowlevel.checkpoint()
        try:
            self._lock.acquire_nowait()  # `acquire` alone would be a second checkpoint
        except trio.WouldBlock:
            await self._lock.acquire()

    async def _write(self, data: bytes | bytearray | memoryview) -> None:
        """Hand `data` to the kernel. The caller holds the lock and has had its checkpoint.

        Past a cut nothing is written any more. Goes straight to the descriptor, which trio made
        non-blocking: trio's own `send` would add a turn of the scheduler to each write.
        """
        if self._torn or self._closed:
            raise trio.ClosedResourceError
        self._torn = True
        if self._tail:
            data, self._tail = self._tail + bytes(data), b""
        with memoryview(data) as view:
            rest = view
            while rest:
                try:
                    sent = os.write(self._socket.fileno(), rest[: self._write_bytes])
                except BlockingIOError:
                    await trio.lowlevel.wait_writable(self._socket)
                except OSError as error:
                    raise trio.BrokenResourceError from error
                else:
                    self.written += sent
                    rest = rest[sent:]
        self._torn = False

    def acknowledged(self) -> int:
        """How many of the written bytes the peer's machine has taken, as far as ours can tell."""
        try:
            answer = fcntl.ioctl(self._socket.fileno(), termios.TIOCOUTQ, b"\0\0\0\0")
        except OSError:  # closed, or a system that does not tell
            return self.written
        return self.written - int(struct.unpack("i", answer)[0])

    async def aclose(self) -> None:
        """Say what was not said, end our direction, give the peer `LINGER` seconds, and let go.

        Waits neither for a stuck write nor for a cut one. Never raises an `Exception`.
        """
        if self._closing:
            await trio.lowlevel.cancel_shielded_checkpoint()
            return
        self._closing = True
        self._let_go.set()
        try:
            with trio.move_on_after(LINGER, shield=True):
                await self._part()
        except (trio.BrokenResourceError, trio.ClosedResourceError, OSError):
            pass  # gone already
        finally:
            self.abort()

    async def _part(self) -> None:
        # Whoever reads for trio-websocket stops; what still comes is read here and thrown away.
        trio.lowlevel.notify_closing(self._socket)
        async with self._lock:
            if self._torn:
                return
            verdict = self.verdict()
            if verdict is not None and not self._said_goodbye:
                await self._write(close_frame(*verdict))
            self._said_goodbye = True
            await self._stream.send_eof()
        while not self._ended:
            self._ended = not await self._stream.receive_some(READ_BYTES)

    async def refuse(self, response: bytes) -> None:
        """Answer the request with something else than a WebSocket, and close."""
        try:
            with trio.move_on_after(LINGER, shield=True):
                async with self._lock:
                    await self._write(response)
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            pass
        await self.aclose()

    def abort(self) -> None:
        """Let go of the socket now; every task that waits on it gets a trio resource error."""
        self._closing = self._closed = True
        self._let_go.set()
        self._accepted.set()
        self._socket.close()
