"""JSON-RPC with one host over one transport: calls out, notifications both ways, calls in."""

from __future__ import annotations

import logging
import math
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeAlias

import trio

from ahpd.protocol import jsonrpc
from ahpd.protocol.codec import DecodeError
from ahpd.protocol.errors import ErrorCode, ProtocolError
from ahpd.protocol.frame import Frame, frame
from ahpd.protocol.model import JSON, Object
from ahpd.transports.port import Transport, TransportClosed

logger = logging.getLogger(__name__)

#: Answers a request of the host with a result, or raises `ProtocolError` (or `DecodeError`, which
#: becomes -32602).
Handler: TypeAlias = Callable[[Object], Awaitable[JSON]]

#: Seconds that saying goodbye may take.
CLOSE_WITHIN = 2.0
#: Bytes that may wait for a host which does not read before the connection is given up.
MAX_WAITING_BYTES = 64 * 1024 * 1024


class ConnectionLost(Exception):
    """There is no connection, or it ended before the answer came.

    Whether the host carried out a request that was open is not known; requests that name what
    they make (a session's URI) can be sent again (-32003 then means that it was done). The
    caller acts next: wait for the connection to come back, or give up. `code` and `clean` are
    those of `TransportClosed`.
    """

    def __init__(self, reason: str, *, code: int = 1006, clean: bool = False) -> None:
        super().__init__(reason)
        self.reason = reason
        self.code = code
        self.clean = clean


class RequestTimeout(TimeoutError):
    """The host did not answer within the deadline; a late answer is dropped.

    As with `ConnectionLost` it is not known whether the request was carried out.
    """

    def __init__(self, method: str, within: float) -> None:
        super().__init__(f"{method}: no answer within {within:g} s")
        self.method = method
        self.within = within


class _Call:
    """A request that waits for its answer."""

    def __init__(self, on_result: Callable[[JSON], Any] | None) -> None:
        self.on_result = on_result
        self.done = trio.Event()
        self.value: Any = None
        self.error: Exception | None = None


class Peer:
    """The host at the other end of one transport.

    `run` does the work and must be running for anything to happen. `request` and `notify` may be
    used by any task; frames go out in the order of the calls.

    `on_notification` gets each notification of the host, in order, from the one task that reads,
    and must neither wait nor raise: an error there is a bug and ends `run`.
    """

    def __init__(
        self,
        transport: Transport,
        on_notification: Callable[[str, Object], None],
        handlers: Mapping[str, Handler] | None = None,
    ) -> None:
        self.lost: ConnectionLost | None = None
        self.ended = trio.Event()
        self._transport = transport
        self._on_notification = on_notification
        self._handlers = handlers or {}
        self._scope: trio.CancelScope | None = None
        #: Requests of this side by id; ids count from 1 (R-1.13).
        self._calls: dict[jsonrpc.Id, _Call] = {}
        self._last_id = 0
        #: Frames that wait for the writer. Invariant: `_waiting` is their length in bytes.
        self._out: list[Frame] = []
        self._waiting = 0
        self._wake = trio.Event()
        self._idle = trio.Event()

    # --- calls out

    async def request(
        self,
        method: str,
        params: JSON,
        *,
        within: float | None = None,
        on_result: Callable[[JSON], Any] | None = None,
    ) -> Any:
        """Ask the host, and wait for the answer for up to `within` seconds (None: without end).

        `on_result` makes of the result what is returned. It runs in the task that reads, before
        the next message is looked at, so that nothing can come between an answer and its effect;
        it must not wait; a `DecodeError` or `ProtocolError` of its own is raised here.

        Raises `ProtocolError` (the host's error), `RequestTimeout`, `ConnectionLost`. On cancel
        the answer is dropped, but the host may still do what was asked.
        """
        self._last_id += 1
        id = self._last_id
        call = self._calls[id] = _Call(on_result)
        try:
            self._put(jsonrpc.request(id, method, params))
            with trio.move_on_after(math.inf if within is None else within):
                await call.done.wait()
        finally:
            self._calls.pop(id, None)
        if not call.done.is_set():
            assert within is not None
            raise RequestTimeout(method, within)
        if call.error is not None:
            raise call.error
        return call.value

    def notify(self, method: str, params: JSON) -> None:
        """Tell the host; returns at once. Raises `ConnectionLost`."""
        self._put(jsonrpc.notification(method, params))

    def _put(self, message: JSON) -> None:
        if self.lost is not None:
            raise _again(self.lost)
        out = frame(message)
        self._out.append(out)
        self._waiting += len(out)
        self._wake.set()
        if self._waiting > MAX_WAITING_BYTES:
            self.close(f"the host does not read: {self._waiting} bytes wait")

    async def drain(self) -> None:
        """Wait until everything that was put in was written, or the connection is over."""
        while self._waiting and self.lost is None:
            await self._idle.wait()

    # --- the connection

    def close(self, reason: str) -> None:
        """End the connection; what was not written yet is lost. A second call does nothing."""
        self._lose(ConnectionLost(reason, code=1000, clean=True))

    async def run(self) -> None:
        """Read and write until the connection is over, then close the transport.

        On cancel the same, within `CLOSE_WITHIN` seconds. Open requests then fail with
        `ConnectionLost`, and `lost` says why.
        """
        try:
            async with trio.open_nursery() as nursery:
                self._scope = nursery.cancel_scope
                if self.lost is not None:
                    nursery.cancel_scope.cancel(reason="closed before it ran")
                nursery.start_soon(self._write)
                await self._read(nursery)
        finally:
            self._end()
            with trio.move_on_after(CLOSE_WITHIN, shield=True):
                await self._transport.close()

    def _lose(self, lost: ConnectionLost) -> None:
        if self.lost is None:
            self.lost = lost
        if self._scope is not None:
            self._scope.cancel(reason=self.lost.reason)

    def _end(self) -> None:
        if self.lost is None:
            self.lost = ConnectionLost("cancelled", code=1000, clean=True)
        for call in self._calls.values():
            if not call.done.is_set():
                call.error = _again(self.lost)
                call.done.set()
        self._idle.set()
        self.ended.set()

    async def _write(self) -> None:
        while True:
            self._wake = trio.Event()
            if not self._out:
                await self._wake.wait()
                continue
            frames, self._out = self._out, []
            try:
                await self._transport.send(frames)
            except TransportClosed as closed:
                self._lose(ConnectionLost(closed.reason, code=closed.code, clean=closed.clean))
                return
            self._waiting -= sum(map(len, frames))
            self._idle.set()
            self._idle = trio.Event()

    async def _read(self, nursery: trio.Nursery) -> None:
        while True:
            try:
                text = await self._transport.receive()
            except TransportClosed as closed:
                self._lose(ConnectionLost(closed.reason, code=closed.code, clean=closed.clean))
                return
            try:
                message = jsonrpc.parse(text)
            except jsonrpc.BadFrame as bad:
                logger.warning("the host sent what is no message: %s", bad)
                if bad.answerable:
                    self._answer(jsonrpc.failure(bad.id, bad))
                continue
            match message:
                case jsonrpc.Notification():
                    self._on_notification(message.method, message.params)
                case jsonrpc.Request():
                    self._called(nursery, message)
                case jsonrpc.Success() | jsonrpc.Failure():
                    self._answered(message)

    def _answered(self, message: jsonrpc.Success | jsonrpc.Failure) -> None:
        call = self._calls.get(message.id) if message.id is not None else None
        if call is None or call.done.is_set():
            return  # an answer to what nobody waits for any more
        match message:
            case jsonrpc.Failure():
                call.error = message.error
            case jsonrpc.Success(result=result):
                try:
                    call.value = call.on_result(result) if call.on_result else result
                except (DecodeError, ProtocolError) as error:
                    call.error = error
        call.done.set()

    # --- calls in

    def _called(self, nursery: trio.Nursery, request: jsonrpc.Request) -> None:
        handler = self._handlers.get(request.method)
        if handler is None:
            error = ProtocolError(
                ErrorCode.METHOD_NOT_FOUND, f"this client does not serve {request.method}"
            )
            self._answer(jsonrpc.failure(request.id, error))
            return
        # In a task of its own, so that a slow answer holds nothing else up.
        nursery.start_soon(self._serve, handler, request)

    async def _serve(self, handler: Handler, request: jsonrpc.Request) -> None:
        try:
            answer = jsonrpc.success(request.id, await handler(request.params))
        except ProtocolError as error:
            answer = jsonrpc.failure(request.id, error)
        except DecodeError as error:
            refused = ProtocolError(ErrorCode.INVALID_PARAMS, str(error))
            answer = jsonrpc.failure(request.id, refused)
        except Exception:
            # The handler belongs to the program around this client. Its bug spoils this one
            # answer, not the connection.
            logger.exception("the handler of %s failed", request.method)
            internal = ProtocolError(ErrorCode.INTERNAL_ERROR, f"{request.method} failed here")
            answer = jsonrpc.failure(request.id, internal)
        self._answer(answer)

    def _answer(self, message: JSON) -> None:
        if self.lost is None:
            self._put(message)


def _again(lost: ConnectionLost) -> ConnectionLost:
    """A copy to raise: one exception raised in many tasks would collect all their tracebacks."""
    return ConnectionLost(lost.reason, code=lost.code, clean=lost.clean)
