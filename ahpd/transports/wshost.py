"""The host's end of a WebSocket connection, above the handshake.

A task takes messages from trio-websocket into an inbox bounded in bytes. As long as there is room,
pings and closes are answered however slow the handler is (HAZARDS B02); when it is full the socket
is no longer read, and TCP slows the peer down. Another task watches for peers that have vanished.
"""

from __future__ import annotations

import logging
import math
from collections import deque
from collections.abc import Sequence
from contextlib import suppress

import attrs
import trio
import trio_websocket

from ahpd.protocol.frame import Frame
from ahpd.transports.auth import redact
from ahpd.transports.port import TransportClosed
from ahpd.transports.wire import READ_BYTES, Wire

_log = logging.getLogger("ahpd.transports")

#: What a message in an inbox weighs besides its text.
_OVERHEAD = 128
#: Codes with which trio-websocket ends a connection without telling the peer.
_UNTOLD = frozenset({1002, 1007, 1009})
#: How many looks are taken at a silent peer within its deadline.
_LOOKS = 8


@attrs.frozen
class Limits:
    """What a connection may cost. Bytes and seconds."""

    #: One message, over all its fragments, in UTF-8.
    message_bytes: int = 64 * 1024 * 1024
    #: Received messages that the handler has not taken.
    inbox_bytes: int = 4 * 1024 * 1024
    #: The head of the HTTP request.
    head_bytes: int = 16 * 1024
    #: From accepting a socket to its 101.
    handshake_seconds: float = 10
    #: Handshakes at a time; one more ends the oldest.
    handshakes: int = 64
    #: Silence after which a peer is pinged, and after that until it is given up.
    ping_seconds: float = 30
    pong_seconds: float = 60
    #: How long `close` waits for the peer's goodbye.
    close_seconds: float = 1
    #: About what is joined for one write.
    write_bytes: int = 256 * 1024


DEFAULT_LIMITS = Limits()


@attrs.frozen
class WebSocketStatistics:
    """What a connection holds and has moved. `unacknowledged` bytes are in the kernel's hands."""

    inbox_messages: int
    inbox_bytes: int
    received: int
    written: int
    unacknowledged: int


class WebSocketTransport:
    """The host's end of one WebSocket connection; a `Transport`."""

    def __init__(self, wire: Wire, peer: str, limits: Limits) -> None:
        self.peer = peer
        self._wire = wire
        self._limits = limits
        self._socket: trio_websocket.WebSocketConnection | None = None
        #: Set when the upgrade is done, or has failed.
        self.opened = trio.Event()
        self._inbox: deque[bytes | str] = deque()
        self._inbox_bytes = 0
        self._changed: trio.Event | None = None  # wakes the receiver
        self._room: trio.Event | None = None  # wakes the pump
        self._end: TransportClosed | None = None
        self._closed = False
        #: The peer sends no more, but it may still read what is sent here until `close`.
        self._deaf_only = False
        self._parting: tuple[int, str] | None = None  # what such a peer is told at the end
        self._ward = trio.CancelScope(shield=True)

    @property
    def accepted(self) -> bool:
        """Whether the upgrade was done. The peer may have sent messages and left since."""
        return self._socket is not None

    def statistics(self) -> WebSocketStatistics:
        """A look at it now."""
        wire = self._wire
        return WebSocketStatistics(
            inbox_messages=len(self._inbox),
            inbox_bytes=self._inbox_bytes,
            received=wire.received,
            written=wire.written,
            unacknowledged=wire.written - wire.acknowledged(),
        )

    async def receive(self) -> bytes | str:
        """See `Transport.receive`."""
        await trio.lowlevel.checkpoint()
        while not self._inbox:
            if self._end is not None:
                end = self._end
                raise TransportClosed(end.reason, code=end.code, clean=end.clean)
            self._changed = trio.Event()
            await self._changed.wait()
        message = self._inbox.popleft()
        self._inbox_bytes -= len(message) + _OVERHEAD
        if self._room is not None:
            self._room.set()
            self._room = None
        return message

    async def send(self, frames: Sequence[Frame]) -> None:
        """See `Transport.send`."""
        if self._end is None or self._deaf_only:
            try:
                await self._wire.send_frames(frames)
            except (trio.BrokenResourceError, trio.ClosedResourceError):
                # Not yet the end of receiving: the peer's goodbye may still be on its way here.
                pass
            else:
                return
        end = self._end or TransportClosed("the peer is gone")
        raise TransportClosed(end.reason, code=end.code, clean=end.clean)

    def send_nowait(self, frames: Sequence[Frame]) -> bool:
        """See `Immediate`."""
        is_open = self._end is None or self._deaf_only
        return is_open and self._wire.send_nowait(frames)

    async def close(self, code: int = 1000, reason: str = "") -> None:
        """See `Transport.close`. Waits `Limits.close_seconds` at most for the peer's goodbye."""
        self._inbox.clear()
        self._inbox_bytes = 0
        self._finish("closed on this side", 1000, clean=True)
        await self._say_goodbye(code, reason)

    async def _say_goodbye(self, code: int, reason: str) -> None:
        if self._closed:
            return
        self._closed = True
        if self._deaf_only:  # there will be no answer to wait for
            self._parting = (code, reason)
        elif self._socket is not None:
            with trio.move_on_after(self._limits.close_seconds, shield=True):
                await self._socket.aclose(code, reason)
        await self._wire.aclose()
        self._ward.cancel()

    def _half_closed(self) -> None:
        """The peer ended its direction: what it asked for is still to be answered."""
        if self._end is None:
            self._deaf_only = True
            self._finish("the peer ended its stream without a goodbye", 1006)

    def _finish(self, reason: str, code: int, *, clean: bool = False) -> None:
        """No more messages but those in the inbox. The first reason is kept."""
        if self._end is None:
            self._end = TransportClosed(reason, code=code, clean=clean)
        for event in (self._changed, self._room):
            if event is not None:
                event.set()
        self._changed = self._room = None

    # The connection's own tasks.

    async def run(self) -> None:
        """Serve the connection until it has ended. Raises nothing because of the peer.

        A cancel from outside does not reach it, so that `close` can still say goodbye: whoever
        runs it must call `close`, which is bounded and ends it.
        """
        try:
            with self._ward:
                async with trio.open_nursery() as nursery:
                    await self._converse(nursery)
        except* Exception as group:  # noqa: BLE001
            # trio-websocket raises many things when a peer is rude, some of them by accident (a
            # ping after our close, say). All are about this connection; none may end another.
            _log.info("%s: %s", self.peer, redact(repr(group.exceptions[0])))
        finally:
            self._finish("the connection broke", 1006)
            self._wire.abort()
            self.opened.set()

    async def _converse(self, nursery: trio.Nursery) -> None:
        request = await trio_websocket.wrap_server_stream(
            nursery,
            self._wire,
            max_message_size=self._limits.message_bytes,
            receive_buffer_size=READ_BYTES,
        )
        self._socket = await request.accept()
        self._wire.verdict = self._verdict
        # The text of two messages on their way to the inbox and of one that is coming, and frames.
        self._wire.most_unclaimed = 4 * self._limits.message_bytes + 256 * 1024
        self._wire.most_announced = self._limits.message_bytes
        self._wire.on_eof = self._half_closed
        self._wire.accepted()
        self.opened.set()
        alive = trio.CancelScope()
        nursery.start_soon(self._keep_alive, nursery, alive)
        await self._pump(self._socket)
        alive.cancel()
        if not self._closed:  # else `close` is talking to the peer
            await self._wire.aclose()

    async def _pump(self, socket: trio_websocket.WebSocketConnection) -> None:
        """Move messages into the inbox until there are no more."""
        limit = self._limits.message_bytes
        while True:
            try:
                message = await socket.get_message()
            except trio_websocket.ConnectionClosed:
                code, reason = self._verdict() or (1006, "the peer vanished")
                self._finish(reason, code, clean=code not in _UNTOLD and code != 1006)
                return
            self._wire.unclaimed = 0
            if isinstance(message, bytes):
                await self._refuse(1003, "messages are text frames")
                return
            text = message if message.isascii() else message.encode()
            if len(text) > limit:  # trio-websocket counted characters
                await self._refuse(1009, f"a message is longer than {limit} bytes")
                return
            self._inbox.append(text)
            self._inbox_bytes += len(text) + _OVERHEAD
            if self._changed is not None:
                self._changed.set()
                self._changed = None
            while self._inbox_bytes > self._limits.inbox_bytes and self._end is None:
                self._room = trio.Event()
                await self._room.wait()

    async def _refuse(self, code: int, reason: str) -> None:
        """End the connection because of what the peer sent; messages before it still count."""
        self._finish(reason, code)
        await self._say_goodbye(code, reason)

    def _verdict(self) -> tuple[int, str] | None:
        """Why the connection has ended, as far as trio-websocket and the wire know."""
        if self._parting is not None:
            return self._parting
        if self._wire.announced > self._limits.message_bytes:
            return 1009, f"a message is longer than {self._limits.message_bytes} bytes"
        if self._wire.flooded:
            return 1009, f"a message of at most {self._limits.message_bytes} bytes does not end"
        closed = None if self._socket is None else self._socket.closed
        return None if closed is None else (closed.code, closed.reason or closed.name)

    async def _keep_alive(self, nursery: trio.Nursery, alive: trio.CancelScope) -> None:
        """Ping a silent peer, and give up one that stays silent (HAZARDS B65).

        Silence is counted in looks, not in time: a look that comes late, because this process was
        busy or asleep, counts once. While the handler is behind and the socket is not read, the
        peer cannot be heard, so nothing is counted. And while the ping itself has not reached the
        peer's machine, because a long message is before it on a slow line, progress of that counts
        as a sign of life.
        """
        wire, limits = self._wire, self._limits
        look = min(limits.ping_seconds, limits.pong_seconds) / _LOOKS
        silent = 0.0
        heard, taken = wire.received, 0
        ping_end: float | None = None  # what `acknowledged` reaches with the ping

        async def ping() -> None:
            nonlocal ping_end
            with suppress(trio.BrokenResourceError, trio.ClosedResourceError):
                ping_end = await wire.send_ping()  # when it fails the pump hears of it too

        with alive:
            while silent < limits.ping_seconds + limits.pong_seconds:
                await trio.sleep(look)
                before, taken = taken, wire.acknowledged()
                if wire.received != heard or not wire.listening:
                    heard, silent, ping_end = wire.received, 0.0, None
                elif ping_end is not None and before < ping_end and taken > before:
                    silent = limits.ping_seconds
                else:
                    silent += look
                    if silent >= limits.ping_seconds and ping_end is None:
                        ping_end = math.inf  # until it is written
                        nursery.start_soon(ping)
            _log.info("%s: silent for %.0f s, given up", self.peer, silent)
            self._finish("the peer did not answer a ping", 1006)
            wire.abort()
