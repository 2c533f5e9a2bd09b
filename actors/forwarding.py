"""Resources that a client has: requests for them go to it, and its answer comes back (R-13.7).

A client publishes files under URIs whose authority is its id. What it answers is passed on as it
came if it is a result of the request, and so are refusals: nobody here has standing to soften
another's, and it is written to the log, the only place where the asker, the client asked and the
code meet. The schemes in which an authority means something else are never a client's.
"""

from __future__ import annotations

import functools
import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from actors.clients import ClientRecord
from actors.host import Host
from actors.messages import RelayWatch
from actors.reverse import is_no_access
from ahpd.protocol.codec import DecodeError, decoder
from ahpd.protocol.errors import ErrorCode, ProtocolError
from ahpd.protocol.methods import METHODS
from ahpd.protocol.model import JSON
from ahpd.protocol.resources import (
    CreateResourceWatchParams,
    CreateResourceWatchResult,
    ResourceWatchState,
)
from ahpd.protocol.uris import URI, canonical, scheme

if TYPE_CHECKING:
    from actors.connection import Connection

_log = logging.getLogger("ahpd.resources")

_decode_watch = decoder(CreateResourceWatchResult)

#: Schemes of what nobody here can have, and the lack of one.
_NEVER = ("", "http", "https")

#: The scheme of watches, and the longest URI of one that a client may name (characters).
_WATCH, _LONGEST = "ahp-resource-watch", 2048

#: Requests that name two resources; all others name one.
_PAIRS = ("source", "destination")


def is_file(uri: URI) -> bool:
    """Whether this is a file of the host's machine."""
    return scheme(uri).lower() == "file"


def client_named(uri: URI) -> str | None:
    """The client id that a URI names as its authority; None where an authority is no client's."""
    head = scheme(uri).lower()
    if head == "file" or head.startswith("ahp-") or head in _NEVER:
        return None
    _, slashes, rest = uri.partition("://")
    if not slashes:
        return None
    for mark in "/?#":
        rest = rest.partition(mark)[0]
    return unquote(rest) or None


async def forward(connection: Connection, method: str, params: Any) -> JSON:
    """A request about a client's resource, answered by that client. Raises `ProtocolError`."""
    uris = [getattr(params, name) for name in _names(params)]
    owner = _owner(connection.host, method, uris)
    answer = await _ask(connection, owner, method, params, uris[0])
    if answer is None:  # as some say that it is done
        answer = {}
    try:
        _decoder(method)(answer)
    except DecodeError as error:
        raise ProtocolError(
            ErrorCode.INTERNAL_ERROR,
            f"the client {owner.client_id} gave no result of {method}: {error}",
        ) from None
    return answer


async def create_watch(
    connection: Connection, params: CreateResourceWatchParams
) -> CreateResourceWatchResult:
    """A watch on a client's resource: the channel that client names is relayed (R-24.26)."""
    method = "createResourceWatch"
    owner = _owner(connection.host, method, [params.uri])
    answer = await _ask(connection, owner, method, params, params.uri)
    try:
        named = _decode_watch(answer)
    except DecodeError:
        raise ProtocolError(
            ErrorCode.INTERNAL_ERROR, f"the client {owner.client_id} named no channel to watch"
        ) from None
    channel = canonical(named.channel)
    if connection.host.ledger.find(channel) is None and not _may_be_watch(connection.host, channel):
        raise ProtocolError(
            ErrorCode.INTERNAL_ERROR,
            f"the client {owner.client_id} named a channel that can be no watch:"
            f" {named.channel[:100]!a}",
        )
    state = ResourceWatchState(
        root=params.uri,
        recursive=bool(params.recursive),
        excludes=params.excludes,
        includes=params.includes,
    )
    relay = RelayWatch(channel, state, owner.client_id)
    await connection.find("watches").call(relay, within=connection.host.settings.request_within)
    return named


@functools.cache
def _decoder(method: str) -> Callable[[JSON], Any]:
    return decoder(METHODS[method].result)


def _may_be_watch(host: Host, channel: URI) -> bool:
    """Whether a client may name this for a watch of its: none in which the host names things."""
    kind = scheme(channel).lower()
    is_ours = kind in host.agents or (kind.startswith("ahp-") and kind != _WATCH)
    return kind not in ("", "file") and not is_ours and len(channel) <= _LONGEST


def _names(params: Any) -> tuple[str, ...]:
    return _PAIRS if hasattr(params, _PAIRS[0]) else ("uri",)


def _owner(host: Host, method: str, uris: list[URI]) -> ClientRecord:
    """The connected client whose resources these are; refuses what is no client's (R-13.8)."""
    named = [client_named(uri) for uri in uris]
    if len(set(named)) > 1:
        raise ProtocolError(
            ErrorCode.INVALID_PARAMS,
            f"{method}: nobody has both {uris[0]} and {uris[1]}, so nobody could do it",
        )
    client_id = named[0]
    if client_id is None:
        strange = next((uri for uri in uris if not is_file(uri)), None)
        if strange is None:
            raise ProtocolError(ErrorCode.METHOD_NOT_FOUND, f"{method} is not served for files")
        if scheme(strange).lower() in _NEVER:
            raise ProtocolError(
                ErrorCode.INVALID_PARAMS, f"{method}: {strange!a} is no URI of a resource"
            )
        raise ProtocolError(ErrorCode.PERMISSION_DENIED, f"{strange} is not served here")
    record = host.clients.find(client_id)
    if record is None or not record.connections:
        if method == "resourceRequest":  # nothing here gives access to it
            raise ProtocolError(ErrorCode.PERMISSION_DENIED, f"{uris[0]} is not served here")
        raise ProtocolError(ErrorCode.NOT_FOUND, f"{uris[0]}: no client {client_id} is connected")
    return record


async def _ask(
    connection: Connection, owner: ClientRecord, method: str, params: Any, uri: URI
) -> JSON:
    reverse = owner.connections[-1].reverse
    try:
        return await reverse.ask(
            method, params.wire(), within=connection.host.settings.reverse_within
        )
    except ProtocolError as error:
        what = "gives no access" if is_no_access(error) else "refused"
        _log.info(
            "%s of %s for %s: %s %s: %d",
            method, uri, connection.client_id, owner.client_id, what, error.code,
        )  # fmt: skip
        raise
