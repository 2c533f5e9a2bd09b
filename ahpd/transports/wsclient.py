"""The client's end of a WebSocket connection: trio-websocket's client behind our port."""

from __future__ import annotations

import logging
from collections.abc import Sequence

import trio
import trio_websocket

from ahpd.protocol.frame import Frame
from ahpd.transports.auth import redact
from ahpd.transports.port import TransportClosed

_log = logging.getLogger("ahpd.transports")

#: Seconds that `close` waits for the host's goodbye.
CLOSE_SECONDS = 1.0
#: Messages that are received ahead of their reader.
_QUEUE = 64
_READ_BYTES = 64 * 1024


class WebSocketClient:
    """A `Transport` over a TCP stream, whose `run` its owner starts in a nursery.

    `host` is the Host header, `resource` path and query, `limit` bounds a message.
    """

    def __init__(self, stream: trio.SocketStream, host: str, resource: str, limit: int) -> None:
        self.peer = f"ws {host}"
        #: Set when the handshake is over; it has failed if `refused` is set too.
        self.opened = trio.Event()
        #: The HTTP status, if that came, and what was said, when the host wants no connection.
        self.refused: tuple[int | None, str] | None = None
        self._stream = stream
        self._host = host
        self._resource = resource
        self._limit = limit
        self._socket: trio_websocket.WebSocketConnection | None = None
        self._scope = trio.CancelScope()
        self._closed = False

    async def run(self) -> None:
        """Serve the connection until it has ended. Raises nothing because of the host."""
        try:
            with self._scope:
                async with trio.open_nursery() as nursery:
                    self._socket = await trio_websocket.wrap_client_stream(
                        nursery,
                        self._stream,
                        self._host,
                        self._resource,
                        message_queue_size=_QUEUE,
                        max_message_size=self._limit,
                        receive_buffer_size=_READ_BYTES,
                    )
                    self.opened.set()
        except* trio_websocket.ConnectionRejected as group:
            error = group.exceptions[0]
            assert isinstance(error, trio_websocket.ConnectionRejected)
            said = (error.body or b"").decode(errors="replace").strip()
            self.refused = (error.status_code, said or "it gave no reason")
        except* Exception as group:  # noqa: BLE001
            # As on the host's side: what trio-websocket raises because of a rude peer is many
            # things, and all of them mean that this connection is over.
            _log.info("%s: %s", self.peer, redact(repr(group.exceptions[0])))
            self.refused = (None, f"it does not speak WebSocket: {group.exceptions[0]}")
        finally:
            self.opened.set()
            await trio.aclose_forcefully(self._stream)

    def abort(self) -> None:
        """End it now, without a goodbye."""
        self._closed = True
        self._scope.cancel()

    async def receive(self) -> bytes | str:
        """See `Transport.receive`."""
        socket = self._socket
        assert socket is not None, "not connected"
        try:
            message = await socket.get_message()
        except trio_websocket.ConnectionClosed:
            raise self._ended() from None
        if isinstance(message, bytes):
            await self.close(1003, "messages are text frames")
            raise TransportClosed("a binary frame came", code=1003)
        return str(message)

    async def send(self, frames: Sequence[Frame]) -> None:
        """See `Transport.send`; writes one by one."""
        socket = self._socket
        assert socket is not None, "not connected"
        try:
            for frame in frames:
                await socket.send_message(frame.text.decode())
        except trio_websocket.ConnectionClosed:
            raise self._ended() from None

    def _ended(self) -> TransportClosed:
        closed = None if self._socket is None else self._socket.closed
        if self._closed:
            return TransportClosed("closed on this side", code=1000, clean=True)
        if closed is None:
            return TransportClosed("the connection broke")
        return TransportClosed(
            closed.reason or closed.name, code=closed.code, clean=closed.code != 1006
        )

    async def close(self, code: int = 1000, reason: str = "") -> None:
        """See `Transport.close`."""
        if self._closed:
            return
        self._closed = True
        if self._socket is not None:
            with trio.move_on_after(CLOSE_SECONDS, shield=True):
                await self._socket.aclose(code, reason)
        self._scope.cancel()
