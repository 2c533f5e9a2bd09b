"""What only the owner of the process may say: requests on the Unix socket and on stdio.

They look like any other JSON-RPC request, under names that are not the protocol's, and are served
before `initialize` too, and while the journal fails; on every other transport they are unknown
methods.

* ``x-ahpd/status`` -> ``{"connections": n, "parked": [path, ...], "sessions": n, "journal":
  {"failing": why or null, "waitingBytes": n}, "crashes": [{"path", "at", "text", "file"}]}``
* ``x-ahpd/channels`` -> the URIs of the channels that are loaded, and are kept in the journal.
* ``x-ahpd/restartActor`` ``{"path": p}`` -> ``null`` once the actor at `p` is up again; -32008 when
  there is none, -32603 when it did not come up.
* ``x-ahpd/logLevels`` -> ``{"levels": {subsystem: level, ...}}``; with ``{"subsystem": s, "level":
  l}`` it is set before, until the process ends; -32602 when there is no such thing.
* ``x-ahpd/grants`` -> ``{"grants": "ask", "allow" or "deny", "given": [{"uri", "read", "write"}],
  "asked": [{"uri", "clientId", "read", "write"}]}``: see `actors.grants`.
* ``x-ahpd/grant`` ``{"uri": u, "read": b, "write": b}`` -> ``{"uri": where that really is}``, which
  is served from now on, or with neither of the two no more; -32008 when it was not.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress

import trio
from msgspec.structs import asdict

from actors.grants import MOST_GIVEN, USES
from actors.host import Host
from actors.recording import is_kept
from ahpd.daemon.logs import Log
from ahpd.daemon.observing import Observer
from ahpd.protocol.errors import ErrorCode, ProtocolError
from ahpd.protocol.frame import Frame, frame
from ahpd.protocol.jsonrpc import BadFrame, Request, failure, parse, success
from ahpd.protocol.model import JSON
from ahpd.protocol.uris import URI
from ahpd.transports.linestream import TOO_BIG
from ahpd.transports.port import Transport, TransportClosed
from supervisors import ChildInfo, NoSuchChild, SupervisorsError, System

#: The names of all private methods begin with this.
PREFIX = "x-ahpd/"
STATUS = PREFIX + "status"
RESTART_ACTOR = PREFIX + "restartActor"
CHANNELS = PREFIX + "channels"
LOG_LEVELS = PREFIX + "logLevels"
GRANTS = PREFIX + "grants"
GRANT = PREFIX + "grant"
#: Asked of the connection by this module alone: what was asked before has been answered.
_SETTLED = PREFIX + "settled"

_MARK = PREFIX.encode()

#: Seconds that the answers to a peer which ended its stream may take to be written.
SETTLE_WITHIN = 10.0
#: Seconds that a peer may take to read why nothing more is taken from it.
TELL_WITHIN = 1.0


class PrivateTransport:
    """A `Transport` whose peer may also use the private requests, and ends without loss.

    When the peer ends its stream, that is passed on only after all it asked for in order was
    answered: a request of its own follows the peer's last one, and the answer is waited for.
    """

    def __init__(
        self,
        inner: Transport,
        system: System,
        host: Host | None = None,
        observer: Observer | None = None,
    ) -> None:
        self.peer = inner.peer
        self._inner = inner
        self._system = system
        self._host = host
        self._observer = observer
        self._sending = trio.Lock()
        #: The peer ended its stream; None while it has not.
        self.end: TransportClosed | None = None
        self._settled = trio.Event()
        self._answer_head = frame(success(_SETTLED, None)).text.partition(b'"result"')[0]

    async def receive(self) -> bytes | str:
        """See `Transport.receive`."""
        while self.end is None:
            try:
                text = await self._inner.receive()
            except TransportClosed as closed:
                self.end = closed
                if closed.code == TOO_BIG:
                    await self._say_too_long(closed.reason)
                if not closed.clean:
                    raise
                return frame({"jsonrpc": "2.0", "id": _SETTLED, "method": _SETTLED}).text
            if not _is_marked(text) or not await self._serve(text):
                return text
        if self.end.clean:
            with trio.move_on_after(SETTLE_WITHIN):
                await self._settled.wait()
        await trio.lowlevel.checkpoint()
        raise TransportClosed(self.end.reason, code=self.end.code, clean=self.end.clean)

    async def send(self, frames: Sequence[Frame]) -> None:
        """See `Transport.send`."""
        if self.end is None:
            await self._send(frames)
            return
        mine = [each for each in frames if each.text.startswith(self._answer_head)]
        rest = [each for each in frames if each not in mine]
        try:
            if rest:
                await self._send(rest)
        finally:
            if mine:
                self._settled.set()
        await trio.lowlevel.checkpoint()

    async def close(self, code: int = 1000, reason: str = "") -> None:
        """See `Transport.close`."""
        await self._inner.close(code, reason)

    async def _say_too_long(self, reason: str) -> None:
        """Answer a message over the limit, of which nothing is known; lines have no close code."""
        error = ProtocolError(ErrorCode.INVALID_REQUEST, reason)
        with trio.move_on_after(TELL_WITHIN), suppress(TransportClosed):
            await self._send([frame(failure(None, error))])

    async def _send(self, frames: Sequence[Frame]) -> None:
        async with self._sending:
            await self._inner.send(frames)

    async def _serve(self, text: bytes | str) -> bool:
        """Serve a private request; False when it is none. Raises nothing but `TransportClosed`."""
        try:
            request = parse(text)
        except BadFrame:
            return False
        if not isinstance(request, Request) or not request.method.startswith(PREFIX):
            return False
        try:
            result = await answer(self._system, self._host, request, self._observer)
        except ProtocolError as error:
            reply = failure(request.id, error)
        else:
            reply = success(request.id, result)
        await self._send([frame(reply)])
        return True


def _is_marked(text: bytes | str) -> bool:
    return PREFIX in text if isinstance(text, str) else _MARK in text


async def answer(
    system: System, host: Host | None, request: Request, observer: Observer | None = None
) -> JSON:
    """The result of a private request. A checkpoint. Raises `ProtocolError`."""
    await trio.lowlevel.checkpoint()
    if request.method == STATUS:
        return {
            **_status(system),
            **(_facts(host) if host is not None else {}),
            **(_crashes(observer) if observer is not None else {}),
        }
    if request.method == CHANNELS and host is not None:
        return [uri for uri, channel in host.ledger.channels.items() if is_kept(channel)]
    if request.method == GRANTS and host is not None:
        return {"grants": host.settings.grants, **host.grants.told()}
    if request.method == GRANT and host is not None:
        return {"uri": await _grant(host, request.params)}
    if request.method == RESTART_ACTOR:
        path = request.params.get("path")
        if not isinstance(path, str):
            raise ProtocolError(ErrorCode.INVALID_PARAMS, f"{RESTART_ACTOR}: path: no text")
        await _restart(system, path)
        return None
    if request.method == LOG_LEVELS and observer is not None:
        return _log_levels(observer.log, request)
    raise ProtocolError(
        ErrorCode.METHOD_NOT_FOUND, f"the method {request.method} is not served here"
    )


def _status(system: System) -> dict[str, JSON]:
    """How things are at any moment, while the tree is only partly up or is coming down too."""
    parked: list[JSON] = [child.path for _, child in _children(system) if child.phase == "parked"]
    try:
        connections = system.supervisor("connections").statistics().children
    except NoSuchChild:  # not up yet, starting again, or parked itself: it holds none
        connections = 0
    return {"connections": connections, "parked": parked}


def _facts(host: Host) -> dict[str, JSON]:
    ledger = host.ledger
    return {
        "sessions": len(host.catalogue or ()),
        "journal": {"failing": ledger.failing, "waitingBytes": ledger.room.taken},
    }


def _crashes(observer: Observer) -> dict[str, JSON]:
    return {"crashes": [asdict(each) for each in observer.crashes.latest]}


def _log_levels(log: Log, request: Request) -> JSON:
    name, level = request.params.get("subsystem"), request.params.get("level")
    if name is not None or level is not None:
        if not isinstance(name, str) or not isinstance(level, str):
            raise ProtocolError(
                ErrorCode.INVALID_PARAMS, f"{LOG_LEVELS}: subsystem and level: no texts"
            )
        try:
            log.set_level(name, level)
        except ValueError as error:
            raise ProtocolError(ErrorCode.INVALID_PARAMS, str(error)) from None
    return {"levels": dict(log.levels)}


async def _grant(host: Host, params: Mapping[str, JSON]) -> URI:
    uri = params.get("uri")
    uses = [use for use in USES if params.get(use) is True]
    if not isinstance(uri, str):
        raise ProtocolError(ErrorCode.INVALID_PARAMS, f"{GRANT}: uri: no text")
    if host.resources is None:
        raise ProtocolError(ErrorCode.NOT_FOUND, "this host has no files")
    place = await host.resources.place(uri)
    if uses:
        if not host.grants.give(place, uses, uri):
            raise ProtocolError(
                ErrorCode.PERMISSION_DENIED, f"there are {MOST_GIVEN} grants already; take one back"
            )
    elif not host.grants.take_back(place, uri):
        raise ProtocolError(ErrorCode.NOT_FOUND, f"{place} was not granted")
    return place


async def _restart(system: System, path: str) -> None:
    path = path.strip("/")
    found = next((each for each in _children(system) if each[1].path == path), None)
    if found is None:
        raise ProtocolError(ErrorCode.NOT_FOUND, f"there is no actor {path}")
    supervisor, child = found
    try:
        await system.supervisor(supervisor).restart_child(child.id)
    except SupervisorsError as error:
        raise ProtocolError(ErrorCode.INTERNAL_ERROR, f"{path} did not come up: {error}") from None


def _children(system: System, supervisor: str = "") -> Iterator[tuple[str, ChildInfo]]:
    """Every child in the tree with its supervisor's path, what is higher first."""
    try:
        children = system.supervisor(supervisor).which_children()
    except NoSuchChild:  # an actor, or a supervisor that is down
        return
    for child in children:
        yield supervisor, child
        yield from _children(system, child.path)
