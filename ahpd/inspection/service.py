"""The host's side of the socket: takes requests from whoever connects, each in a task of its own.

A request that fails is answered with an error that says what is wrong, and hurts nobody. A peer
that does not read is let go of when too much waits for it.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import TypeAlias

import trio

from actors.host import Host
from actors.notices import Notices
from ahpd.inspection import names
from ahpd.inspection.console import Console
from ahpd.inspection.looks import all_of
from ahpd.inspection.overview import overview
from ahpd.inspection.paths import find
from ahpd.inspection.post import Post
from ahpd.inspection.screen import Debugging
from ahpd.inspection.subjects import StateAt, Subject, nothing_kept
from ahpd.protocol.errors import ErrorCode, ProtocolError
from ahpd.protocol.frame import Frame, frame
from ahpd.protocol.jsonrpc import BadFrame, Id, Notification, Request, failure, parse, success
from ahpd.protocol.model import JSON, Object
from ahpd.transports.port import Transport, TransportClosed
from supervisors import SupervisorsError, System

_log = logging.getLogger("ahpd.inspection")

#: Bytes that may wait for a peer that does not read.
MAX_WAITING_BYTES = 16 << 20
#: Requests of one peer that may be under way.
OPEN = 64

#: Answers a request; raises `ProtocolError`. Cancelled when the peer is gone.
Answer: TypeAlias = Callable[[Object], Awaitable[JSON]]


class Inspector:
    """What all connections of one host share."""

    def __init__(self, system: System, host: Host, state_at: StateAt = nothing_kept) -> None:
        self.system = system
        self.host = host
        self.debugging = Debugging()
        self._state_at = state_at
        self._notices = Notices(host)
        self._notices.system = system
        self._posts: dict[str, Post] = {}
        self._numbers = 0

    def subject(self, name: str) -> Subject:
        """The actor that is meant. Raises `ProtocolError`."""
        path = find(self.system, self.host, name)
        return Subject(self.system, self.host, path, self._state_at)

    def post(self, subject: Subject) -> Post:
        """What hangs on an actor to which people are attached."""
        self._posts = {path: post for path, post in self._posts.items() if post.watchers}
        post = self._posts.get(subject.path)
        if post is None:
            post = self._posts[subject.path] = Post(subject, self.host, self._notices)
        return post

    def number(self) -> int:
        """A number that no other console has."""
        self._numbers += 1
        return self._numbers

    async def serve(self, transport: Transport) -> None:
        """One connection, until its peer is gone. Raises nothing of its own."""
        peer = Peer(transport)
        await peer.run(_Visit(self, peer).methods)


class Peer:
    """One connection: requests in, answers and notifications out."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self._out: list[Frame] = []
        self._waiting = 0
        self._bell = trio.Event()
        #: What is under way, by the id of the request.
        self._doing: dict[Id, trio.CancelScope] = {}
        self._methods: Mapping[str, Answer] = {}
        #: What goes on while the peer is there; there while `run` runs.
        self.nursery: trio.Nursery

    async def run(self, methods: Mapping[str, Answer]) -> None:
        """Serve these methods, which may become more, until the peer is gone."""
        self._methods = methods
        async with trio.open_nursery() as nursery:
            self.nursery = nursery
            nursery.start_soon(self._write, nursery.cancel_scope)
            await self._read(nursery)
            nursery.cancel_scope.cancel(reason="the peer is gone")

    def tell(self, message: JSON) -> bool:
        """Put something out; False when too much waits already, and it was not. Sync."""
        if self._waiting > MAX_WAITING_BYTES:
            return False
        made = frame(message)
        self._out.append(made)
        self._waiting += len(made)
        self._bell.set()
        return True

    async def _write(self, scope: trio.CancelScope) -> None:
        while True:
            if not self._out:
                self._bell = trio.Event()
                await self._bell.wait()
            frames, self._out = self._out, []
            try:
                await self._transport.send(frames)
            except TransportClosed:
                scope.cancel(reason="the peer is gone")
                return
            self._waiting -= sum(map(len, frames))

    async def _read(self, nursery: trio.Nursery) -> None:
        while True:
            try:
                message = parse(await self._transport.receive())
            except TransportClosed:
                return
            except BadFrame as bad:
                if bad.answerable:
                    self.tell(failure(bad.id, bad))
                continue
            if isinstance(message, Request):
                nursery.start_soon(self._serve, message)
            elif isinstance(message, Notification) and message.method == names.CANCEL:
                scope = self._doing.get(message.params.get("id", ""))
                if scope is not None:
                    scope.cancel(reason="whoever asked does not want it any more")

    async def _serve(self, request: Request) -> None:
        """One request, to its answer."""
        if request.id in self._doing:
            error = ProtocolError(ErrorCode.INVALID_REQUEST, f"the id {request.id} is in use")
            self.tell(failure(request.id, error))
            return
        if len(self._doing) >= OPEN:
            error = ProtocolError(ErrorCode.CONFLICT, f"{OPEN} requests are under way already")
            self.tell(failure(request.id, error))
            return
        answer = self._methods.get(request.method)
        with trio.CancelScope() as scope:
            self._doing[request.id] = scope
            try:
                if answer is None:
                    raise ProtocolError(
                        ErrorCode.METHOD_NOT_FOUND, f"there is no {request.method} here"
                    )
                self.tell(success(request.id, await answer(request.params)))
            except ProtocolError as error:
                self.tell(failure(request.id, error))
            except SupervisorsError as error:  # the actor is gone, or does not come up
                self.tell(failure(request.id, ProtocolError(ErrorCode.CONFLICT, str(error))))
            except Exception as error:  # noqa: BLE001
                # A fault of what looks: it spoils one answer, not the host that is looked at.
                _log.exception("%s failed", request.method)
                told = f"{request.method} failed inside the host: {error}"
                self.tell(failure(request.id, ProtocolError(ErrorCode.INTERNAL_ERROR, told)))
            finally:
                self._doing.pop(request.id, None)
        if scope.cancelled_caught:
            stopped = ProtocolError(names.CANCELLED, f"{request.method}: stopped")
            self.tell(failure(request.id, stopped))


class _Visit:
    """What one connection may ask."""

    def __init__(self, inspector: Inspector, peer: Peer) -> None:
        self._inspector = inspector
        self._peer = peer
        self._console: Console | None = None
        self.methods: dict[str, Answer] = {
            names.PS: self._ps,
            names.INSPECT: self._inspect,
            names.ATTACH: self._attach,
        }

    async def _ps(self, params: Object) -> JSON:
        inspector = self._inspector
        under = text(params, "under")
        system, host = inspector.system, inspector.host
        path = "" if under is None else find(system, host, under, supervisors_too=True)
        return await overview(system, host, path)

    async def _inspect(self, params: Object) -> JSON:
        return await all_of(self._inspector.subject(text(params, "path") or ""))

    async def _attach(self, params: Object) -> JSON:
        if self._console is not None:
            raise ProtocolError(ErrorCode.CONFLICT, "this connection is attached already")
        inspector, peer = self._inspector, self._peer
        subject = inspector.subject(text(params, "path") or "")
        console = self._console = Console(
            inspector.number(),
            inspector.post(subject),
            inspector.host,
            put=peer.tell,
            debugging=inspector.debugging,
            nursery=peer.nursery,
        )
        peer.nursery.start_soon(console.stay)
        self.methods.update(console.methods)
        return await console.attached()


def text(params: Object, key: str) -> str | None:
    """A param that is a text; None when it is not there. Raises `ProtocolError`."""
    value = params.get(key)
    if value is not None and not isinstance(value, str):
        raise ProtocolError(ErrorCode.INVALID_PARAMS, f"{key}: expected a text")
    return value
