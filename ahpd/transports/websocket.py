"""WebSocket: the listener (R-1.2). What becomes of each connection is in `wshost`.

trio-websocket does the handshake and the receiving, through its public surface
(`wrap_server_stream`); the socket beneath it is a `Wire`, whose lock keeps its frames and ours
apart, and outgoing text is framed by `framing`. Own framing because a message costs trio-websocket
a lock, an encoder and a system call each, where joined writes cost them once for hundreds (see
``contrib/bench/transports.py``); trio-websocket for the rest because that is not where time goes.
"""

from __future__ import annotations

import logging

import trio

from ahpd.transports.accepting import serve_listeners
from ahpd.transports.auth import is_loopback
from ahpd.transports.port import Handler
from ahpd.transports.upgrade import HEAD_TOO_LARGE, PREFLIGHT, Admission, judge
from ahpd.transports.wire import HeadTooLarge, Wire
from ahpd.transports.wshost import DEFAULT_LIMITS, Limits, WebSocketTransport

__all__ = ["Limits", "WebSocketTransport", "serve_websocket"]

_log = logging.getLogger("ahpd.transports")


async def serve_websocket(
    handler: Handler,
    *,
    host: str,
    port: int,
    admission: Admission,
    limits: Limits = DEFAULT_LIMITS,
    task_status: trio.TaskStatus[tuple[tuple[str, int], ...]] = trio.TASK_STATUS_IGNORED,
) -> None:
    """Listen on `host` and `port` (0: any free one) and give each connection to `handler`.

    Runs until cancelled; connections are then closed with code 1001. Reports the addresses it
    listens on. What a peer does, and even a handler that raises, ends one connection at most; an
    accept that fails for want of descriptors is tried again.

    Raises OSError when it cannot listen, ValueError when it would be open to the network without
    a token.
    """
    if admission.token is None and not is_loopback(host):
        raise ValueError(f"without a connection token only loopback is served, not {host!r}")
    listeners = await _listen(host, port)
    gate = _Gate(handler, admission, limits)
    addresses = tuple(listener.socket.getsockname()[:2] for listener in listeners)
    task_status.started(addresses)
    await serve_listeners(gate.serve, listeners, f"ws {addresses[0][0]}:{addresses[0][1]}")


async def _listen(host: str, port: int) -> list[trio.SocketListener]:
    """A listener on each address of `host`, all on the same port."""
    listeners = await trio.open_tcp_listeners(port, host=host)
    if port == 0 and len(listeners) > 1:
        # Each got a port of its own. One that nobody asked for is not worth a failure.
        for listener in listeners[1:]:
            await listener.aclose()
        del listeners[1:]
    return listeners


class _Gate:
    """Takes sockets through the handshake, and lets the handler have what comes out."""

    def __init__(self, handler: Handler, admission: Admission, limits: Limits) -> None:
        self._handler = handler
        self._admission = admission
        self._limits = limits
        self._shaking: dict[trio.CancelScope, None] = {}  # oldest first

    async def serve(self, stream: trio.SocketStream) -> None:
        """One connection from its first byte to its last. Raises no Exception."""
        wire = Wire(stream, self._limits.write_bytes)
        transport = WebSocketTransport(wire, _name(stream), self._limits)
        try:
            async with trio.open_nursery() as nursery:
                try:
                    await self._shake_hands(nursery, wire, transport)
                    if transport.accepted:
                        await self._handle(transport)
                finally:
                    await transport.close()
        except* Exception:  # noqa: BLE001
            _log.exception("%s: closed because of an error here", transport.peer)

    async def _shake_hands(
        self, nursery: trio.Nursery, wire: Wire, transport: WebSocketTransport
    ) -> None:
        scope = trio.CancelScope(deadline=trio.current_time() + self._limits.handshake_seconds)
        self._shaking[scope] = None
        if len(self._shaking) > self._limits.handshakes:
            # The newest is the likeliest to be honest: honest handshakes take no time.
            oldest = next(iter(self._shaking))
            del self._shaking[oldest]  # at once: the next to come must find another
            oldest.cancel()
        try:
            with scope:
                if await self._admit(wire, transport.peer):
                    nursery.start_soon(transport.run)
                    await transport.opened.wait()
        finally:
            self._shaking.pop(scope, None)
        if scope.cancelled_caught:
            _log.info("%s: no WebSocket handshake in time", transport.peer)

    async def _admit(self, wire: Wire, peer: str) -> bool:
        try:
            head = await wire.read_head(self._limits.head_bytes)
        except HeadTooLarge:
            refusal = HEAD_TOO_LARGE
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            _log.info("%s: left during the handshake", peer)
            return False
        else:
            verdict = judge(head, self._admission, wire.local_address)
            if verdict is None:
                return True
            refusal = verdict
        if refusal is PREFLIGHT:
            _log.debug("%s: asked whether it may connect", peer)
        else:
            _log.info("%s: refused, %s: %s", peer, refusal.status, refusal.text)
        await wire.refuse(refusal.response())
        return False

    async def _handle(self, transport: WebSocketTransport) -> None:
        code, reason = 1001, "the host is going away"
        try:
            await self._handler(transport)
            code, reason = 1000, ""
        except* Exception:  # noqa: BLE001
            # A handler promises not to raise. When it does that is our fault, but still no reason
            # to end anybody else's connection.
            _log.exception("%s: the handler failed", transport.peer)
            code, reason = 1011, "an error in the host"
        finally:
            await transport.close(code, reason)


def _name(stream: trio.SocketStream) -> str:
    try:
        host, port, *_ = stream.socket.getpeername()
    except OSError:  # gone already
        return "ws ?"
    return f"ws [{host}]:{port}" if ":" in host else f"ws {host}:{port}"
