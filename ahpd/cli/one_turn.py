"""One turn of one chat, from the prompt to its end: what ``ahpd ask`` does."""

from __future__ import annotations

import json
import math
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeAlias
from uuid import uuid4

import attrs
import click
import trio

from ahpd.cli import exits, words
from ahpd.cli.approval import (
    WAITING,
    Choice,
    Terminal,
    Waiting,
    decision,
    first,
    question,
    waiting,
)
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
from ahpd.cli.output import Output
from ahpd.cli.reach import Refused, Target, Unreachable, reached
from ahpd.cli.running import Running
from ahpd.cli.shown import line
from ahpd.client import Backoff, Observer, Operation, OptimisticStore, Status
from ahpd.protocol.chat import (
    ChatState,
    ErrorResponsePart,
    MarkdownResponsePart,
    ToolCallResponsePart,
    Turn,
)
from ahpd.protocol.chat_actions import (
    ChatInputCompletedAction,
    ChatTurnCancelledAction,
    ChatTurnStartedAction,
)
from ahpd.protocol.connection import ActionEnvelope
from ahpd.protocol.messages import Message, MessageOrigin
from ahpd.protocol.uris import ROOT, URI

#: Seconds without a connection after which it is given up.
OFFLINE_WITHIN = 30.0

_CODES = {"complete": exits.OK, "cancelled": exits.CANCELLED, "error": exits.FAILED}


class _NotStarted(Refused):
    """The session is there, but its agent could not be opened."""

    exit_code = exits.FAILED


@attrs.frozen
class _Moved:
    chat: ChatState
    envelope: ActionEnvelope | None


@attrs.frozen
class _Gone:
    reason: str


#: What the client tells: the chat moved, is gone, or the operation that began the turn ended.
_News: TypeAlias = _Moved | _Gone | Operation


class OneTurn:
    """Asks one thing; see `ahpd.cli.ask` for what the arguments mean."""

    def __init__(
        self, prompt: str, *, session: URI | None, agent: str | None, yes: bool, as_json: bool
    ) -> None:
        self._prompt = prompt
        self._session = session
        self._agent = agent
        self._yes = yes
        self._as_json = as_json
        self._out = Output(quiet=as_json)
        self._turn_id = str(uuid4())
        self._news_in, self._news = trio.open_memory_channel[_News](math.inf)
        #: Questions on the terminal, by tool call; one at a time has the terminal.
        self._questions: dict[str, trio.CancelScope] = {}
        self._terminal = trio.Lock()
        #: The operation that begins the turn, and those that decide about tool calls, by call.
        self._operation: Operation | None = None
        self._decisions: dict[Operation, str] = {}
        #: Whether the turn told of now is ours.
        self._mine = False
        self._cancelled = False
        self._away = False

    async def main(self, target: Target, running: Running) -> int:
        """Ask, follow, and return the exit code."""
        self._nursery = running.nursery
        observer = Observer(settled=self._settled, dropped=self._dropped, status=self._status)
        async with reached(
            target, running.nursery, "ask", observer=observer, backoff=Backoff(first=0.1, most=2.0)
        ) as client:
            self._client = client
            self._chat = await self._find_chat()
            store = await client.subscribe(self._chat)
            assert store is not None
            client.observe(self._chat, self._changed)
            self._follower = Follower(store.confirmed)
            self._begin()
            running.on_interrupt = self._on_interrupt
            turn = await self._follow()
            self._out.finish()
            return self._report(turn)

    # ---- where to ask ------------------------------------------------------------------------

    async def _find_chat(self) -> URI:
        uri = self._session
        if uri is None:
            # Its agent is its scheme: under another an editor does not show it (quirk 14).
            uri = self._session = URI(f"{self._agent or self._default_agent()}:/{uuid4()}")
            folder = Path.cwd().as_uri()
            await self._client.create_session(
                uri, provider=self._agent, working_directories=(folder,)
            )
            self._out.item(f"session {uri}", dim=True)
        session = await joined(self._client, uri)
        if session.lifecycle == "failed":
            error = session.creation_error
            raise _NotStarted(error.message if error else "the session could not be started")
        if session.default_chat is None:
            raise Refused("the session has no chat to ask in")
        return session.default_chat

    def _default_agent(self) -> str:
        """The one that the host starts a session with when nobody names any (R-8.2)."""
        agents = self._client.store(ROOT).confirmed.agents
        if not agents:
            raise Refused("the host has no agents")
        name: str = agents[0].provider
        return name

    def _begin(self) -> None:
        now = datetime.now(UTC)
        self._started = trio.current_time()
        message = Message(text=self._prompt, origin=MessageOrigin(kind="user"))
        self._operation = self._client.dispatch(
            self._chat,
            ChatTurnStartedAction(
                turn_id=self._turn_id,
                started_at=now.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
                message=message,
            ),
        )

    # ---- what comes --------------------------------------------------------------------------

    def _changed(
        self, _: URI, store: OptimisticStore[Any], envelope: ActionEnvelope | None
    ) -> None:
        self._news_in.send_nowait(_Moved(store.confirmed, envelope))

    def _settled(self, operation: Operation) -> None:
        self._news_in.send_nowait(operation)

    def _dropped(self, _: URI, reason: str) -> None:
        self._news_in.send_nowait(_Gone(reason))

    def _status(self, status: Status, _: Exception | None) -> None:
        if status == "offline" and self._operation is not None and not self._away:
            self._away = True
            self._nursery.start_soon(self._await_connection)

    async def _await_connection(self) -> None:
        """Say that the connection is lost, and do not wait for it without end."""
        self._out.item("the connection is lost; trying to come back", fg="yellow")
        with trio.move_on_after(OFFLINE_WITHIN) as scope:
            await self._client.wait_status("connected", "closed")
        self._away = False
        if scope.cancelled_caught:
            self._news_in.send_nowait(_Gone("the daemon did not come back"))

    async def _follow(self) -> Turn:
        """Until the turn is over. Raises `Refused` when it does not begin, and `Unreachable`."""
        async for news in self._news:
            match news:
                case _Moved():
                    for each in self._follower.look(news.chat, news.envelope):
                        turn = self._take(each)
                        if turn is not None:
                            return turn
                case _Gone(reason=reason):
                    raise Unreachable(reason)
                case Operation():
                    self._ended(news)
        raise AssertionError("the channel of news is never closed")

    def _ended(self, operation: Operation) -> None:
        """A dispatch of ours was answered, or never will be."""
        outcome = operation.outcome
        assert outcome is not None
        call_id = self._decisions.pop(operation, None)
        if operation is self._operation:
            if outcome.kind == "refused":
                self._refused(outcome.reason or "the host refused it")
            elif outcome.kind == "unanswered":
                raise Unreachable(f"whether the host got it is not known: {outcome.reason}")
        elif outcome.kind == "unanswered" and call_id is not None:
            # The connection was lost with it. If nobody else has decided, decide again.
            call = waiting(self._client.store(self._chat).confirmed, call_id)
            if call is not None:
                self._decide(call)

    def _refused(self, reason: str) -> None:
        if self._as_json:
            self._print_json({"state": "refused", "reason": reason})
        raise Refused(reason)

    def _take(self, what: Happening) -> Turn | None:
        """Show one thing; gives the turn when that was its end."""
        if isinstance(what, Began):
            self._mine = what.turn_id == self._turn_id
        if not self._mine:
            return None
        out = self._out
        match what:
            case Said():
                out.say(what.text, what.part)
            case Thought():
                out.think(what.text, what.part)
            case ToolMoved():
                self._tool_moved(what)
            case Questioned(request=request):
                out.item(f"? {line(request.message or 'The agent asks questions.')}", fg="yellow")
                out.item("  declined: questions cannot be answered here", always=True)
                self._client.dispatch(
                    self._chat,
                    ChatInputCompletedAction(request_id=request.id, response="decline"),
                )
            case Noted(text=text):
                out.item(line(text), dim=True)
            case Failed(text=text):
                out.item(f"failed: {line(text)}", fg="red")
            case Ended(turn=turn):
                return turn
            case _:
                pass
        return None

    # ---- tools -------------------------------------------------------------------------------

    def _tool_moved(self, what: ToolMoved) -> None:
        call = what.call
        call_id = getattr(call, "tool_call_id", "")
        question_open = self._questions.pop(call_id, None)
        if question_open is not None:
            question_open.cancel(reason="somebody else decided")
            if what.words != "skipped":  # the turn has ended; nobody answered
                self._out.item("answered on another screen", always=True)
        if isinstance(call, WAITING):
            self._decide(call)
        elif call.status != "streaming":
            self._out.item(f"* {line(call.display_name)}: {what.words}", fg="cyan")
            if self._is_command and call.status == "completed":
                self._out.say(_printed(call), 0)
                self._out.item(line(plain(call.past_tense_message)), dim=True)

    @property
    def _is_command(self) -> bool:
        """Whether the host runs the prompt itself: then what that printed is the answer."""
        host = self._client.host
        prefix = host.terminal_command_prefix if host is not None else None
        return bool(prefix) and self._prompt.startswith(prefix or "")

    def _decide(self, call: Waiting) -> None:
        if self._yes:
            self._show(call)
            self._dispatch(call, approves=True, why="--yes")
        elif not (sys.stdin.isatty() and sys.stderr.isatty()):
            self._show(call)
            self._dispatch(call, approves=False, why="there is no terminal to ask on; see --yes")
        else:
            scope = self._questions[call.tool_call_id] = trio.CancelScope()
            self._nursery.start_soon(self._ask, call, scope)

    def _show(self, call: Waiting) -> None:
        for text in question(call):
            self._out.item(text, fg="yellow")

    def _dispatch(self, call: Waiting, *, approves: bool, why: str) -> None:
        choice = first(call, approves=approves)
        verb = "approved" if choice.approves else "denied"
        self._out.item(f"  {verb} ({why}): {choice.label}", always=True)
        self._send(call, choice)

    def _send(self, call: Waiting, choice: Choice) -> None:
        operation = self._client.dispatch(self._chat, decision(self._turn_id, call, choice))
        self._decisions[operation] = call.tool_call_id

    async def _ask(self, call: Waiting, scope: trio.CancelScope) -> None:
        """Put the question on the terminal and pass on the answer."""
        with scope:
            async with self._terminal:
                choice = await Terminal(self._out).choose(call)
            # In one step: what is no longer asked has left the table.
            if self._questions.pop(call.tool_call_id, None) is scope:
                self._send(call, choice)

    # ---- the end -----------------------------------------------------------------------------

    def _on_interrupt(self) -> bool:
        """The first Ctrl-C cancels the turn; it then ends like any other."""
        if self._cancelled:
            return False
        self._cancelled = True
        self._out.item("cancelling; Ctrl-C once more to leave", always=True, fg="yellow")
        self._client.dispatch(
            self._chat,
            ChatTurnCancelledAction(
                turn_id=self._turn_id,
                duration=round((trio.current_time() - self._started) * 1000, 3),
            ),
        )
        return True

    def _report(self, turn: Turn) -> int:
        if self._as_json:
            self._print_json(_as_json(turn, is_command=self._is_command))
        else:
            took = "" if turn.duration is None else f" in {turn.duration / 1000:.1f} s"
            self._out.item(f"{words.ENDINGS.get(turn.state, turn.state)}{took}", dim=True)
        return _CODES.get(turn.state, exits.FAILED)

    def _print_json(self, value: dict[str, Any]) -> None:
        names = {"session": self._session, "chat": self._chat, "turn": self._turn_id}
        click.echo(json.dumps({**names, **value}))


def _printed(call: Any) -> str:
    """What a command printed, or its end."""
    results = (getattr(each, "result", None) for each in getattr(call, "content", None) or ())
    return "".join(each.preview or "" for each in results if each is not None)


def _as_json(turn: Turn, *, is_command: bool) -> dict[str, Any]:
    parts = turn.response_parts
    calls = [part.tool_call for part in parts if isinstance(part, ToolCallResponsePart)]
    errors = [part.error for part in parts if isinstance(part, ErrorResponsePart)]
    said = (str(part.content) for part in parts if isinstance(part, MarkdownResponsePart))
    return {
        "state": turn.state,
        "text": "".join(map(_printed, calls) if is_command else said),
        "tools": [
            {
                "name": getattr(call, "tool_name", None),
                "title": getattr(call, "display_name", None),
                "message": plain(getattr(call, "invocation_message", None)),
                "state": words.call(call),
            }
            for call in calls
        ],
        "usage": None if turn.usage is None else turn.usage.wire(),
        "duration": turn.duration,
        "error": errors[-1].wire() if errors else None,
    }
