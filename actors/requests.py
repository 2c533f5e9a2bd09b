"""The requests that are served: for each method its handler, and whether later ones wait for it.

A handler gets the connection and the decoded params and gives the result: a wire value, None for
``null``, or an answer that is made at its place in the order. It refuses with `ProtocolError`, or
by letting through the `CallFailed` of an actor that refused.
"""

from __future__ import annotations

import base64
from collections.abc import Awaitable, Callable, Mapping
from enum import Enum
from typing import TYPE_CHECKING, Any

import trio
from msgspec import Struct

from actors import completions, resources
from actors.authenticating import authenticate
from actors.configuring import complete, resolve
from actors.creating import create_session
from actors.handshake import initialize, reconnect
from actors.ledger import Channel
from actors.messages import (
    CreateChat,
    DisposeChat,
    DisposeSession,
    LoadTurns,
    LookForPast,
    Relocate,
)
from actors.moving import Move
from actors.paging import cursor_of, page_before
from actors.subscribing import subscribe
from actors.summaries import moment, older_summary
from actors.telling import tell
from actors.terminals import create_terminal, dispose_terminal
from ahpd.protocol.chat import (
    CreateChatParams,
    DisposeChatParams,
    FetchTurnsParams,
    FetchTurnsResult,
    MoveChatParams,
    MoveChatResult,
)
from ahpd.protocol.errors import ErrorCode, ProtocolError
from ahpd.protocol.messages import CompletionItem, CompletionsParams, CompletionsResult
from ahpd.protocol.session import (
    DisposeSessionParams,
    ListSessionsParams,
    ListSessionsResult,
    SessionSummary,
)
from ahpd.protocol.uris import URI, canonical
from supervisors import CallFailed

if TYPE_CHECKING:
    from actors.connection import Connection


class Mode(Enum):
    """Whether what the client sends later waits for this request."""

    IN_ORDER = "in order"  #: it is quick, and what follows may depend on it
    BESIDE = "beside"  #: it may take long


class Served(Struct, frozen=True):
    """One method that is served."""

    handler: Callable[[Connection, Any], Awaitable[Any]]
    mode: Mode = Mode.IN_ORDER


async def _ping(connection: Connection, params: Any) -> None:
    """The reader answers pings; this one serves whoever calls it by another way."""


# ---- sessions -----------------------------------------------------------------------------------


async def _dispose_session(connection: Connection, params: DisposeSessionParams) -> None:
    message = DisposeSession(canonical(params.channel))
    await connection.find("catalogue").call(message, within=_within(connection))


async def _list_sessions(connection: Connection, params: ListSessionsParams) -> ListSessionsResult:
    """R-7.23 to R-7.29: everything unless paged; newest first; an error while not all are known."""
    catalogue = connection.host.catalogue
    tell(connection.find("catalogue"), LookForPast())
    if catalogue is None:
        raise ProtocolError(ErrorCode.INTERNAL_ERROR, "stored sessions are still being read")
    rows = sorted(catalogue.values(), key=_place, reverse=True)
    more: str | None = None
    if params.cursor is not None:
        after = _read_cursor(connection, params.cursor)
        rows = [row for row in rows if _place(row) < after]
    if params.limit is not None:
        if params.limit < 1 or params.limit != int(params.limit):
            raise ProtocolError(
                ErrorCode.INVALID_PARAMS, f"listSessions: limit: {params.limit} is no count"
            )
        limit = int(params.limit)
        if len(rows) > limit:
            rows = rows[:limit]
            more = _cursor(connection, rows[-1])
    items = [older_summary(row) if connection.is_old else row for row in rows]
    return ListSessionsResult(items=tuple(items), next_cursor=more)


def _place(row: SessionSummary) -> tuple[float, URI]:
    """Where a session stands in the list; unique, so that a cursor can name it."""
    return moment(row.modified_at), row.resource


def _cursor(connection: Connection, row: SessionSummary) -> str:
    text = "\n".join((connection.path, *map(str, _place(row))))
    return base64.urlsafe_b64encode(text.encode()).decode()


def _read_cursor(connection: Connection, cursor: str) -> tuple[float, URI]:
    """R-7.26: made here, and not valid on another connection."""
    try:
        path, time, uri = base64.urlsafe_b64decode(cursor).decode().split("\n", 2)
        place = float(time), uri
    except ValueError:
        path, place = "", (0.0, "")
    if path != connection.path:
        raise ProtocolError(
            ErrorCode.INVALID_PARAMS, "listSessions: cursor: not one that this connection was given"
        )
    return place


# ---- chats --------------------------------------------------------------------------------------


async def _create_chat(connection: Connection, params: CreateChatParams) -> None:
    session = _find(connection, params.channel, "session")
    assert connection.client_id is not None
    message = CreateChat(params, connection.client_id)
    await connection.find(session.path).call(message, within=_within(connection))


async def _dispose_chat(connection: Connection, params: DisposeChatParams) -> None:
    chat = _find(connection, params.channel, "chat")
    assert chat.owner is not None
    session = _find(connection, chat.owner, "session")
    await connection.find(session.path).call(DisposeChat(chat.uri), within=_within(connection))


async def _move_chat(connection: Connection, params: MoveChatParams) -> MoveChatResult:
    """R-9.21 to R-9.30: tried until nothing waits for the chat any more, which is soon."""
    host, chat = connection.host, _find(connection, params.channel, "chat")
    move = Move(host, connection.find, chat, params.destination)
    try:
        with trio.move_on_after(_within(connection)):
            while not await _try_to_move(connection, chat, move):
                pass
            await connection.system.registry.wait_for(chat.path)
    finally:
        move.give_up()
    if move.session is None:
        raise ProtocolError(ErrorCode.INTERNAL_ERROR, "the chat did not come to rest in time")
    return MoveChatResult(session=move.session)


async def _try_to_move(connection: Connection, chat: Channel, move: Move) -> bool:
    """One attempt, when everything is out that the chat's actor may still have to act on."""
    out = trio.Event()
    connection.host.ledger.post(out.set)
    await out.wait()
    await connection.system.registry.wait_for(chat.path)
    try:
        ref = connection.find(chat.path)
        return await ref.call(Relocate(move), within=_within(connection))
    except CallFailed:
        if move.session is None:
            raise
        return True  # it was done; the actor failed before it could say so


async def _fetch_turns(connection: Connection, params: FetchTurnsParams) -> FetchTurnsResult:
    """R-9.72: the page comes to all subscribers before this empty answer."""
    chat = _find(connection, params.channel, "chat")
    cursor = params.cursor
    if cursor is None:
        subscription = connection.host.subscriptions.find(connection, chat.uri)
        window = subscription.window if subscription is not None else None
        if window is None or not 0 < window.start < len(chat.state.turns):
            return FetchTurnsResult()
        cursor = cursor_of(chat.state.turns[window.start].id)
    elif page_before(chat.state, cursor, connection.host.settings.page) is None:
        raise ProtocolError(
            ErrorCode.INVALID_PARAMS, "fetchTurns: cursor: not one that this chat gave"
        )
    await connection.find(chat.path).call(LoadTurns(cursor), within=_within(connection))
    return FetchTurnsResult()


async def _completions(connection: Connection, params: CompletionsParams) -> CompletionsResult:
    """R-22.1, R-22.2. Some clients ask the session: then it is the default chat that is meant.

    A kind that is not known here has no completions.
    """
    ledger = connection.host.ledger
    channel = ledger.find(canonical(params.channel))
    if channel is None or channel.kind not in ("chat", "session"):
        raise ProtocolError(ErrorCode.NOT_FOUND, f"there is no chat {params.channel}")
    before = completions.head(params.text, params.offset)
    if before is None:
        raise ProtocolError(
            ErrorCode.INVALID_PARAMS, f"completions: offset: {params.offset:g} is outside the text"
        )
    session = channel if channel.owner is None else ledger.find(channel.owner)
    kind: str = params.kind
    if kind != "userMessage" or session is None:
        return CompletionsResult(items=())
    chats = {c.uri: c.state for c in ledger.channels.values() if c.owner == session.uri}
    here = channel.uri if channel.kind == "chat" else session.state.default_chat
    items = completions.complete(session.state, chats, here, before)
    return CompletionsResult(items=items + await _files(connection, session, here, before))


async def _files(
    connection: Connection, session: Channel, here: URI | None, before: str
) -> tuple[CompletionItem, ...]:
    """Files in the folders that the chat works in, else in those of the session."""
    host, typed = connection.host, completions.file_typed(before)
    if typed is None or host.resources is None:
        return ()
    chat = host.ledger.state_of(here, "chat") if here is not None else None
    named = (chat and chat.working_directories) or session.state.working_directories or ()
    folders = [uri for uri in named if resources.is_a_place(uri)]
    if not folders:
        return ()
    found = await host.resources.find(typed, folders, completions.MOST_FILES)
    return completions.file_items(before, found)


def _find(connection: Connection, uri: URI, kind: str) -> Channel:
    channel = connection.host.ledger.find(canonical(uri))
    if channel is None or channel.kind != kind:
        code = ErrorCode.SESSION_NOT_FOUND if kind == "session" else ErrorCode.NOT_FOUND
        raise ProtocolError(code, f"there is no {kind} {uri}")
    return channel


def _within(connection: Connection) -> float:
    return connection.host.settings.request_within


METHODS: Mapping[str, Served] = {
    "ping": Served(_ping),
    "initialize": Served(initialize),
    "reconnect": Served(reconnect),
    "subscribe": Served(subscribe),
    "listSessions": Served(_list_sessions),
    "createSession": Served(create_session),
    "disposeSession": Served(_dispose_session),
    "createChat": Served(_create_chat),
    "disposeChat": Served(_dispose_chat, Mode.BESIDE),
    "authenticate": Served(authenticate),
    "resolveSessionConfig": Served(resolve, Mode.BESIDE),
    "sessionConfigCompletions": Served(complete, Mode.BESIDE),
    "completions": Served(_completions, Mode.BESIDE),
    "createTerminal": Served(create_terminal, Mode.BESIDE),
    "disposeTerminal": Served(dispose_terminal, Mode.BESIDE),
    "moveChat": Served(_move_chat, Mode.BESIDE),
    "fetchTurns": Served(_fetch_turns, Mode.BESIDE),
    "createResourceWatch": Served(resources.create_watch, Mode.BESIDE),
    **{method: Served(resources.handler(method), Mode.BESIDE) for method in resources.METHODS},
}
