"""A session and all its chats, followed from now on: what ``ahpd tail`` does."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any, TypeAlias

import attrs
import click
import trio

from ahpd.cli import exits, words
from ahpd.cli.chats import joined
from ahpd.cli.following import (
    Began,
    Ended,
    Failed,
    Follower,
    Happening,
    Noted,
    Questioned,
    Said,
    Thought,
    ToolMoved,
    plain,
)
from ahpd.cli.reach import Target, reached
from ahpd.cli.running import Running
from ahpd.cli.shown import cut, line
from ahpd.client import (
    Backoff,
    ConnectionLost,
    Observer,
    OptimisticStore,
    RequestTimeout,
    Status,
)
from ahpd.protocol import ROOT, ProtocolError
from ahpd.protocol import session_actions as act
from ahpd.protocol.chat import ChatState
from ahpd.protocol.chat_actions import (
    ChatActivityChangedAction,
    ChatPendingMessageRemovedAction,
    ChatPendingMessageSetAction,
)
from ahpd.protocol.connection import ActionEnvelope
from ahpd.protocol.model import Object, Wire
from ahpd.protocol.root import SessionRemovedParams
from ahpd.protocol.session import SessionState
from ahpd.protocol.uris import URI


@attrs.frozen
class _Moved:
    """A channel changed; `chat` is its state when it is a chat."""

    channel: URI
    state: Any
    envelope: ActionEnvelope | None


@attrs.frozen
class _Gone:
    channel: URI


#: What the client tells: a channel moved or is gone, or the connection is in another state.
_News: TypeAlias = _Moved | _Gone | Status


class WholeSession:
    """Follows one session; see `ahpd.cli.tail`."""

    def __init__(self, session: URI, *, as_json: bool) -> None:
        self._session = session
        self._as_json = as_json
        self._lines = _Lines(_room())
        self._news_in, self._news = trio.open_memory_channel[_News](math.inf)
        self._followers: dict[URI, Follower] = {}
        self._lost = False

    async def main(self, target: Target, running: Running) -> int:
        """Follow until the session is gone."""
        observer = Observer(
            changed=self._changed,
            dropped=lambda channel, _: self._news_in.send_nowait(_Gone(channel)),
            notice=self._noticed,
            status=lambda status, _: self._news_in.send_nowait(status),
        )
        backoff = Backoff(first=0.1, most=5.0)
        async with reached(
            target, running.nursery, "tail", observer=observer, backoff=backoff
        ) as client:
            self._client = client
            session = await joined(client, self._session)
            await self._subscribe(session)
            here = words.count(len(session.chats), "chat")
            about = f"{line(session.title) or '(no title)'}: {here}; {_state(session)}"
            self._tell(about, err=self._as_json)
            await self._follow()
        return exits.OK

    # ---- what the client tells ---------------------------------------------------------------

    def _changed(
        self, channel: URI, store: OptimisticStore[Any], envelope: ActionEnvelope | None
    ) -> None:
        if channel != ROOT:
            self._news_in.send_nowait(_Moved(channel, store.confirmed, envelope))

    def _noticed(self, _: str, params: Wire | Object) -> None:
        if isinstance(params, SessionRemovedParams) and params.session == self._session:
            self._news_in.send_nowait(_Gone(self._session))

    async def _follow(self) -> None:
        async for news in self._news:
            match news:
                case _Gone(channel=channel):
                    if channel == self._session:
                        self._end("the session is gone")
                        return
                    self._followers.pop(channel, None)
                case _Moved():
                    await self._moved(news)
                case _:
                    self._connection(news)
                    if news == "connected" and self._session in self._client.channels:
                        await self._subscribe(self._client.store(self._session).confirmed)

    async def _moved(self, news: _Moved) -> None:
        envelope = news.envelope
        if self._as_json:
            if envelope is not None:
                click.echo(json.dumps(envelope.wire()))
                sys.stdout.flush()
        else:
            self._print(news)
        if isinstance(news.state, SessionState):
            await self._subscribe(news.state)

    async def _subscribe(self, session: SessionState) -> None:
        """Hear the chats that are not heard yet. What a lost connection leaves out comes later."""
        for row in session.chats:
            if row.resource in self._followers:
                continue
            try:
                store = await self._client.subscribe(row.resource)
            except ProtocolError:  # gone again already
                continue
            except (ConnectionLost, RequestTimeout):
                return
            if store is not None and isinstance(store.confirmed, ChatState):
                self._followers[row.resource] = Follower(store.confirmed)
                self._lines.name(row.resource, len(self._followers))

    # ---- what is printed ---------------------------------------------------------------------

    def _print(self, news: _Moved) -> None:
        envelope, state = news.envelope, news.state
        if envelope is not None and envelope.rejection_reason is not None:
            return
        if isinstance(state, ChatState):
            follower = self._followers.get(news.channel)
            if follower is None:
                return
            for each in follower.look(state, envelope):
                for text in self._lines.of(news.channel, each):
                    self._tell(text, news.channel)
        besides = None if envelope is None else _besides(envelope.action)
        if besides is not None:
            self._tell(besides, news.channel)

    def _connection(self, status: Status) -> None:
        if status == "offline" and not self._lost:
            self._lost = True
            self._tell("the connection is lost; trying to come back", err=True)
        elif status == "connected" and self._lost:
            self._lost = False
            self._tell("the connection is back", err=True)

    def _end(self, text: str) -> None:
        for channel in self._followers:
            for each in self._lines.rest(channel):
                self._tell(each, channel)
        self._tell(text, err=self._as_json)

    def _tell(self, text: str, channel: URI | None = None, *, err: bool = False) -> None:
        click.echo(self._lines.whole(text, channel), err=err)
        (sys.stderr if err else sys.stdout).flush()


class _Lines:
    """One line for each thing that happens. Text is collected until its part is whole."""

    def __init__(self, room: int | None) -> None:
        self._room = room
        #: The text that is being collected for each chat: its kind, its part, its pieces.
        self._open: dict[URI, tuple[type[Said | Thought], int, list[str]]] = {}
        self._names: dict[URI, str] = {}

    def name(self, chat: URI, number: int) -> None:
        """What a chat is called in the lines: nothing where it is the only one."""
        self._names[chat] = f"chat {number}: "

    def of(self, chat: URI, what: Happening) -> Iterator[str]:
        """The lines that are due after one thing."""
        if isinstance(what, Said | Thought):
            kind, part, pieces = self._open.get(chat, (None, -1, []))
            if (kind, part) != (type(what), what.part):
                yield from self.rest(chat)
                pieces = []
                self._open[chat] = (type(what), what.part, pieces)
            pieces.append(what.text)
            return
        yield from self.rest(chat)
        yield from _told(what)

    def rest(self, chat: URI) -> Iterator[str]:
        """The line of what was collected."""
        kind, _, pieces = self._open.pop(chat, (None, -1, []))
        text = line("".join(pieces))
        if text:
            yield f"thinks: {text}" if kind is Thought else f"says: {text}"

    def whole(self, text: str, channel: URI | None) -> str:
        """A line with the time and the chat, as wide as there is room."""
        name = self._names.get(channel or "", "") if len(self._names) > 1 else ""
        told = f"{datetime.now(UTC).astimezone():%H:%M:%S}  {name}{line(text)}"
        return told if self._room is None else cut(told, self._room)


def _told(what: Happening) -> Iterator[str]:
    match what:
        case Began(message=message, resumed=resumed):
            yield f"{message.origin.kind} asks: {message.text}" if not resumed else "goes on"
        case ToolMoved(call=call, words=state):
            yield f"tool {getattr(call, 'display_name', '?')}: {state}{_input(call, state)}"
        case Questioned(request=request):
            yield f"questions: {request.message or request.id}"
        case Noted(text=text):
            yield f"notes: {text}"
        case Failed(text=text, resumable=resumable):
            yield f"fails: {text}{'; can be resumed' if resumable else ''}"
        case Ended(turn=turn):
            took = "" if turn.duration is None else f" in {turn.duration / 1000:.1f} s"
            yield f"the turn is over: {words.ENDINGS.get(turn.state, turn.state)}{took}"
        case _:
            pass


def _input(call: Any, state: str) -> str:
    """What a call is for, where it is new."""
    if state not in ("waits for approval", "running"):
        return ""
    given = getattr(call, "tool_input", None)
    return f": {given}" if isinstance(given, str) else ""


def _besides(action: Any) -> str | None:
    """What an action says besides what the turns show; None for nothing that is told."""
    match action:
        case act.SessionTitleChangedAction(title=title):
            return f"the session is called: {title}"
        case act.SessionActiveClientSetAction(active_client=client):
            return f"{client.display_name or client.client_id} takes part"
        case act.SessionActiveClientRemovedAction(client_id=client_id):
            return f"{client_id} has left"
        case act.SessionChatAddedAction(summary=summary):
            return f"a chat was added: {summary.title or summary.resource}"
        case act.SessionChatRemovedAction(chat=chat):
            return f"a chat was removed: {chat}"
        case act.SessionIsArchivedChangedAction(is_archived=archived):
            return (
                "the session was archived" if archived else "the session is back from the archive"
            )
        case ChatActivityChangedAction(activity=activity) if activity:
            return f"activity: {activity}"
        case ChatPendingMessageSetAction(kind=kind, message=message):
            return f"{kind} message: {plain(message.text)}"
        case ChatPendingMessageRemovedAction(kind=kind):
            return f"the {kind} message is taken"
        case _:
            return None


def _state(session: SessionState) -> str:
    """What its chats are doing; no action says it of the session itself (R-24.29)."""
    if session.lifecycle == "failed":
        return "it failed to start"
    return ", ".join(dict.fromkeys(words.activity(row.status) for row in session.chats))


def _room() -> int | None:
    """The width of the terminal; None where there is none, so that nothing is cut."""
    if not sys.stdout.isatty():
        return None
    from rich.console import Console  # noqa: PLC0415 - not for pipes

    return Console().width
