"""Requests about resources: files of this machine are the adapter's, all else is a client's.

What is served are the folders that the host was started with, and the working directories of its
sessions: whoever may have an agent work in a folder may look into it. Served beside them is what
was granted (`actors.grants`).
"""

from __future__ import annotations

import functools
import logging
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from operator import attrgetter
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from actors.data_uris import is_data, read_data
from actors.forwarding import create_watch as relay_watch
from actors.forwarding import forward, is_file
from actors.host import Host
from actors.messages import OpenWatch
from ahpd.protocol.errors import ErrorCode, ProtocolError
from ahpd.protocol.model import JSON
from ahpd.protocol.resources import (
    CreateResourceWatchParams,
    CreateResourceWatchResult,
    ResourceCopyResult,
    ResourceDeleteResult,
    ResourceMkdirResult,
    ResourceMoveResult,
    ResourceRequestParams,
    ResourceRequestResult,
    ResourceWatchState,
    ResourceWriteResult,
)
from ahpd.protocol.uris import URI
from ahpd.resources.port import Resources, Served, wants

if TYPE_CHECKING:
    from actors.connection import Connection

_log = logging.getLogger("ahpd.resources")

#: What the adapter does for each method, and what is answered where it has nothing to say.
_OWN: Mapping[str, tuple[Callable[[Resources], Callable[..., Awaitable[Any]]], Any]] = {
    "resourceRead": (attrgetter("read"), None),
    "resourceList": (attrgetter("list"), None),
    "resourceResolve": (attrgetter("resolve"), None),
    "resourceWrite": (attrgetter("write"), ResourceWriteResult),
    "resourceMkdir": (attrgetter("mkdir"), ResourceMkdirResult),
    "resourceDelete": (attrgetter("delete"), ResourceDeleteResult),
    "resourceCopy": (attrgetter("copy"), ResourceCopyResult),
    "resourceMove": (attrgetter("move"), ResourceMoveResult),
    "resourceRequest": (attrgetter("request"), ResourceRequestResult),
}

#: The requests that are served here.
METHODS = tuple(_OWN)


async def serve(connection: Connection, method: str, params: Any) -> Any:
    """Answer one of `METHODS`. Raises `ProtocolError`."""
    if method == "resourceRead" and is_data(params.uri):
        return read_data(params.uri, params.encoding)
    if not is_ours(params):
        return await forward(connection, method, params)
    assert connection.client_id is not None
    return await _serve_own(connection.host, method, params, connection.client_id)


def handler(method: str) -> Callable[[Connection, Any], Awaitable[Any]]:
    """What answers this method."""

    async def handle(connection: Connection, params: Any) -> JSON:
        return await serve(connection, method, params)

    return handle


async def create_watch(
    connection: Connection, params: CreateResourceWatchParams
) -> CreateResourceWatchResult:
    """R-14.1: a new channel each time. Raises `ProtocolError`."""
    if not is_file(params.uri):
        return await relay_watch(connection, params)
    host = connection.host
    resources = resources_of(host, "createResourceWatch")
    if len(host.own_watches) >= host.settings.watches:
        raise ProtocolError(
            ErrorCode.INTERNAL_ERROR,
            f"there are {host.settings.watches} watches already (limits.watches)",
        )
    assert connection.client_id is not None
    with _denying(host):
        watched = await resources.watch(params, served(host))
    try:
        uri = f"ahp-resource-watch:/{host.new_id()}"
        state = ResourceWatchState(
            root=params.uri,
            recursive=params.recursive is True,
            excludes=params.excludes,
            includes=params.includes,
        )
        message = OpenWatch(uri, state, watched, connection.client_id)
        await connection.find("watches").call(message, within=host.settings.request_within)
    except BaseException:
        watched.close()
        raise
    return CreateResourceWatchResult(channel=uri)


def is_ours(params: Any) -> bool:
    """Whether a request is about files of this machine alone."""
    if hasattr(params, "source"):
        return is_file(params.source) and is_file(params.destination)
    return is_file(params.uri)


async def _serve_own(host: Host, method: str, params: Any, client_id: str) -> Any:
    do, nothing = _OWN[method]
    resources = resources_of(host, method)
    with _denying(host):
        try:
            result = await do(resources)(params, served(host))
        except ProtocolError as error:
            if method != "resourceRequest" or error.data is None:
                raise
            await _ask_for(host, params, client_id, error)
            result = None
    return nothing() if result is None else result


async def _ask_for(
    host: Host, params: ResourceRequestParams, client_id: str, refusal: ProtocolError
) -> None:
    """A request for what is outside: return when it is given. Raises `ProtocolError`."""
    uses, uri = wants(params), params.uri
    asked = f"the client {client_id} asks to {' and '.join(uses)} {uri!a}"
    match host.settings.grants:
        case "allow":
            place = await resources_of(host, "resourceRequest").place(uri)
            if not host.grants.give(place, uses, uri):
                raise ProtocolError(
                    ErrorCode.PERMISSION_DENIED,
                    f"{refusal.message}, and so many are granted already",
                )
            _log.info("%s: given, for %s and all in it", asked, place)
        case "ask":
            host.grants.note(uri, client_id, uses)
            _log.warning("%s: refused, until somebody gives it (ahpd grant)", asked)
            raise ProtocolError(
                refusal.code,
                f"{refusal.message}; whoever runs this host may grant it (ahpd grant)",
                refusal.data,
            )
        case _:
            _log.info("%s: refused", asked)
            raise refusal


@contextmanager
def _denying(host: Host) -> Iterator[None]:
    """Where no grant is ever given, no refusal names one that would help (R-13.2)."""
    try:
        yield
    except ProtocolError as error:
        if host.settings.grants == "deny" and error.code == ErrorCode.PERMISSION_DENIED:
            raise ProtocolError(error.code, error.message) from None
        raise


def served(host: Host) -> Served:
    """All that may be reached."""
    readable, writable = (host.grants.for_use(use) for use in ("read", "write"))
    return Served(folders(host), readable, writable)


def resources_of(host: Host, method: str) -> Resources:
    """Who has the files. Raises `ProtocolError` on a host that has none."""
    if host.resources is None:
        code = ErrorCode.METHOD_NOT_FOUND
        if method == "resourceRequest":  # which is an answer to it
            code = ErrorCode.PERMISSION_DENIED
        raise ProtocolError(code, f"{method} is not served for files")
    return host.resources


def folders(host: Host) -> list[URI]:
    """The folders that are served: of the host, and of its sessions, loaded or not."""
    # Thousands of sessions work in a few folders: each of these is looked at once.
    named: dict[URI, None] = {}
    for uri, row in (host.catalogue or {}).items():
        # What an agent did elsewhere opens no folder to anybody, until somebody opens that.
        if row.working_directories and uri not in host.past:
            named.update(dict.fromkeys(row.working_directories))
    for channel in host.ledger.channels.values():
        if channel.kind == "session" and channel.state.working_directories:
            named.update(dict.fromkeys(channel.state.working_directories))
    return list(dict.fromkeys([*host.settings.served, *filter(is_a_place, named)]))


@functools.lru_cache(maxsize=4096)
def is_a_place(uri: URI) -> bool:
    """Whether a working directory is a folder: ``file:///`` stands for none (quirk 21)."""
    return is_file(uri) and unquote(uri.partition(":")[2]).strip("/.") not in ("", "localhost")
