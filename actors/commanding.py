"""Messages that are commands: what begins with ``!`` is run on a terminal, and no model is asked.

The host runs it in the shell of the session, the person's own, on a terminal that the chat owns
(R-12.35), so that a ``cd`` or a variable is there for the next one. It begins in the chat's folder,
is started when it is first wanted, and again when the last one is busy or gone (hazard B58). Where
the shell does not tell of its commands, or the command cannot be typed as a line, the command gets
a terminal of its own.

In the turn it is a tool call whose content names the terminal, so that it can be watched and typed
into; when the command is over its exit code and the end of its output are folded in, and the
terminal stays. A command that fills the screen, that waits for somebody to type, or that a client
lets be (R-12.6) ends the turn and goes on in the background; a cancel interrupts it, and then ends
it with its shell. What became of it the agent is told with its next prompt (`actors.beside`).
"""

from __future__ import annotations

import math
from contextlib import suppress
from typing import Any

import trio
from msgspec import Struct, field

from actors.beside import CALL, PREFIX
from actors.desk import Desk
from actors.host import Host
from actors.ledger import Channel, Entry
from actors.lines import Line, can_be_typed
from actors.messages import AgentSays, RunOver
from actors.run import Run
from actors.scrollback import plain, plain_text
from actors.subscriptions import Subscription
from actors.terminals import (
    Interrupt,
    LooksIdle,
    RunLine,
    Typed,
    Wanted,
    end_terminals,
    folder_of,
    open_terminal,
    say_terminals,
)
from ahpd.agents import events as ev
from ahpd.agents.port import Prompt
from ahpd.protocol.errors import ProtocolError
from ahpd.protocol.frame import Frame
from ahpd.protocol.messages import Message
from ahpd.protocol.terminal import (
    TerminalClaimedAction,
    TerminalCommandPart,
    TerminalDataAction,
    TerminalSessionClaim,
)
from ahpd.protocol.tools import (
    TerminalCommandResult,
    ToolResultTerminalContent,
    ToolResultTextContent,
)
from ahpd.protocol.uris import URI
from ahpd.terminals.port import Spawn
from supervisors import CallFailed, Ref, SendRefused, System

#: Characters of the output's end that are folded into the turn.
PREVIEW = 16 << 10
#: Characters of a command in titles.
TITLE = 60
#: Seconds that a command may fill the screen, or wait for somebody to type, before the turn goes on
#: without it,
SCREEN_WITHIN, TYPED_WITHIN = 2.0, 10.0
#: that one may take to end after control-C, and between two looks for one that was disposed of,
INTERRUPT_WITHIN, LOOK_EVERY = 2.0, 1.0
#: that a shell may take to come up, between two looks whether it has, and that one which got a line
#: may take to run it.
SHELL_WITHIN, TRY_EVERY, BEGIN_WITHIN = 10.0, 0.05, 5.0
#: Seconds that the terminal's actor may take to answer.
ANSWER_WITHIN = 10.0

_SCREEN = ("\x1b[?1049h", "\x1b[?1047h", "\x1b[?47h")
_LONGEST_SCREEN = max(map(len, _SCREEN))


def command_in(host: Host, message: Message) -> str | None:
    """The command that a message is; None: it is for the agent."""
    if host.terminals is None or not message.text.startswith(PREFIX):
        return None
    return message.text.removeprefix(PREFIX).strip()


class Watcher(Struct, eq=False):
    """Hears a terminal for the turn, as a connection does. See `Listener`."""

    client_id: str | None = None
    is_old: bool = False
    backlog: int = 0
    fills_screen: bool = False
    news: trio.Event = field(default_factory=trio.Event)
    #: The end of what it has said, and how often it was heard.
    said: str = ""
    heard: int = 0

    def hear(self, entry: Entry, subscription: Subscription) -> None:
        """Something happened in the terminal."""
        if isinstance(entry.action, TerminalDataAction):
            text = self.said[-_LONGEST_SCREEN:] + entry.action.data
            self.said = (self.said + entry.action.data)[-PREVIEW:]
            self.fills_screen |= any(mark in text for mark in _SCREEN)
        self.stir()

    def stir(self) -> None:
        """There is news."""
        self.heard += 1
        self.news.set()
        self.news = trio.Event()

    def flush(self) -> None:
        """There is nothing to write."""

    def tell(self, frame: Frame) -> None:
        """Notifications are for clients."""


class Job(Struct, eq=False):
    """A run in which a command takes the agent's place; `ref` is the chat's."""

    host: Host
    system: System
    chat: Channel
    run: Run
    prompt: Prompt
    ref: Ref[Any]


async def run_command(job: Job) -> None:
    """The body of a run's task: as `actors.run.work`, with a shell in place of the agent.

    However it ends, exactly one `RunOver` is sent. Cancelled: nothing is, and the command goes on.
    """
    command = command_in(job.host, job.prompt.message)
    outcome: ev.Outcome
    try:
        if not command:
            outcome = ev.Failed(f"there is no command after {PREFIX}", "NoCommand")
        elif job.prompt.resume:
            outcome = ev.Failed("a command is not run again by itself; send it once more", "Lost")
        else:
            outcome = await _Command(job, command).run()
    except SendRefused:
        return  # the chat is gone
    except ProtocolError as error:
        outcome = ev.Failed(error.message, "CommandFailed")
    with suppress(SendRefused):
        await job.ref.send(RunOver(job.run.number, outcome))


class _Place(Struct):
    """Where a command runs: on a terminal of its own, or as a line of the shell there."""

    terminal: Channel
    line: Line | None = None

    @property
    def lives(self) -> bool:
        """Whether the terminal's process runs."""
        channel = self.terminal
        is_there = not channel.closed and not channel.notes.retained
        return is_there and bool(channel.state.lifecycle.status == "running")

    @property
    def is_over(self) -> bool:
        """Whether the command is."""
        return not self.lives or (self.line is not None and self.line.is_over)

    def parts(self) -> list[TerminalCommandPart]:
        """What the terminal still has of the line's commands."""
        if self.line is None:
            return []
        return [
            part
            for part in self.terminal.state.content
            if isinstance(part, TerminalCommandPart) and part.command_id in self.line.commands
        ]

    @property
    def exit_code(self) -> float | None:
        """How it ended, if that is known."""
        if self.line is not None and self.lives:
            return self.line.exit_code
        code: float | None = getattr(self.terminal.state.lifecycle, "exit_code", None)
        return code


class _Command:
    """One command, from its start to where the turn goes on without it."""

    def __init__(self, job: Job, command: str) -> None:
        self._job = job
        self._host = job.host
        self._run = job.run
        self._command = command
        self._watcher = Watcher()
        chat = job.chat
        assert chat.owner is not None
        self._claim = TerminalSessionClaim(
            session=chat.owner, chat=chat.uri, turn_id=job.run.turn_id, tool_call_id=CALL
        )
        self._folder = folder_of(job.host, chat)

    async def run(self) -> ev.Outcome:
        title = _short(self._command)
        await self._say(
            ev.ToolStarted(CALL, "terminal", title, kind="terminal"),
            ev.ToolReady(CALL, f"Running {title}", self._command),
        )
        place = await self._start()
        try:
            await self._say(ev.ToolOutput(CALL, (self._content(place.terminal, None),)))
            why = await self._over(place)
            if self._run.stopping:
                await self._interrupt(place)
                return ev.Stopped()
            await self._fold(place, why)
            return ev.Done()
        finally:
            self._leave(place.terminal)
            _let_be(self._host, place.terminal)

    async def _say(self, *events: ev.Event, cost: int = 256) -> None:
        await self._host.ledger.room.wait()
        await self._job.ref.send(AgentSays(self._run.number, events), cost=cost)

    # ---- where it runs ------------------------------------------------------------------------

    async def _start(self) -> _Place:
        terminals = self._host.terminals
        if terminals is not None and terminals.tells() and can_be_typed(self._command):
            place = await self._in_shell()
            if place is not None:
                return place
        wanted = self._wanted(self._command, _short(self._command))
        terminal = await open_terminal(self._host, self._job.system, wanted)
        self._watch(terminal)
        return _Place(terminal)

    async def _in_shell(self) -> _Place | None:
        """In the session's shell, or in a new one; None: it does not tell of its commands."""
        shells, key = self._host.shells, (self._claim.session, self._folder)
        last = shells.get(key, URI())
        if last is None:
            return None  # nobody waits for such a shell twice
        terminal = self._host.ledger.find(last)
        if terminal is not None and (place := await self._type(terminal)) is not None:
            return place
        terminal = await open_terminal(self._host, self._job.system, self._wanted(None, None))
        for old in [old for old, uri in shells.items() if not self._is_there(uri or old[0])]:
            del shells[old]
        shells[key] = terminal.uri
        place = await self._first(terminal)
        if place is None and not self._run.stopping:
            if _Place(terminal).lives:
                shells[key] = None
            else:
                shells.pop(key, None)
            await end_terminals(self._host, self._job.system, [terminal])
        return place if place is not None or not self._run.stopping else _Place(terminal)

    def _is_there(self, uri: URI) -> bool:
        return self._host.ledger.find(uri) is not None

    async def _first(self, terminal: Channel) -> _Place | None:
        """The same in a shell that is just coming up."""
        with trio.move_on_after(SHELL_WITHIN):
            while _Place(terminal).lives and not self._run.stopping:
                place = await self._type(terminal)
                if place is not None:
                    return place
                await trio.sleep(TRY_EVERY)
        return None

    async def _type(self, terminal: Channel) -> _Place | None:
        """Give it the line; None: it is not free."""
        if not _Place(terminal).lives or not _is_free(terminal.state.claim, self._claim):
            return None
        line = Line(self._command, self._watcher.stir)
        message, answer = RunLine(line, self._claim), Typed.NO
        self._watch(terminal)
        with suppress(CallFailed):
            ref = self._job.system.ref(terminal.path)
            answer = await ref.call(message, within=ANSWER_WITHIN)
            while answer is Typed.NOT_YET:
                await trio.sleep(TRY_EVERY)
                answer = await ref.call(message, within=ANSWER_WITHIN)
        if answer is Typed.YES:
            return _Place(terminal, line)
        self._leave(terminal)
        return None

    def _wanted(self, command: str | None, name: str | None) -> Wanted:
        uri = f"agenthost-terminal://bang/{self._host.new_id()}"
        return Wanted(uri, self._claim, Spawn(cwd=self._folder, command=command), name)

    def _watch(self, terminal: Channel) -> None:
        self._watcher.said, self._watcher.fills_screen = "", False
        self._host.subscriptions.add(self._watcher, terminal.uri, Subscription())

    def _leave(self, terminal: Channel) -> None:
        self._host.subscriptions.remove(self._watcher, terminal.uri)

    # ---- how long the turn waits for it -------------------------------------------------------

    async def _over(self, place: _Place) -> str | None:
        """Until the turn need not wait for it any more; why it goes on without it."""
        began, screen_by, typed_by = trio.current_time(), math.inf, math.inf
        heard = self._watcher.heard
        while self._counts(place):
            now = trio.current_time()
            if place.line is not None and not place.line.commands and now > began + BEGIN_WITHIN:
                return "the shell waits for the rest of it"
            if now >= screen_by:
                return "fills the screen"
            if now >= typed_by:
                return "waits for somebody to type"
            if self._watcher.fills_screen and screen_by == math.inf:
                screen_by = now + SCREEN_WITHIN
            with trio.move_on_after(min(LOOK_EVERY, screen_by - now)):
                await self._news()
            before, heard = heard, self._watcher.heard
            if heard != before or not await self._waits(place):
                typed_by = math.inf
            elif typed_by == math.inf:
                typed_by = trio.current_time() + TYPED_WITHIN
        return None

    async def _waits(self, place: _Place) -> bool:
        try:
            ref = self._job.system.ref(place.terminal.path)
            return self._counts(place) and await ref.call(LooksIdle(), within=ANSWER_WITHIN)
        except CallFailed:
            return False

    def _counts(self, place: _Place) -> bool:
        """It runs, for this call, and nobody has had enough of it."""
        claim = place.terminal.state.claim
        is_ours = isinstance(claim, TerminalSessionClaim) and claim == self._claim
        return not place.is_over and is_ours and not self._run.stopping

    async def _news(self) -> None:
        """Until something happened in the terminal, or the turn is to stop."""
        async with trio.open_nursery() as nursery:

            async def stopped() -> None:
                assert self._run.stopped is not None
                await self._run.stopped.wait()
                nursery.cancel_scope.cancel(reason="the turn is to stop")

            nursery.start_soon(stopped)
            await self._watcher.news.wait()
            nursery.cancel_scope.cancel(reason="there is news")

    async def _interrupt(self, place: _Place) -> None:
        """As a person would; and then for good."""
        with suppress(SendRefused):
            ref = self._job.system.ref(place.terminal.path)
            ref.cast(Interrupt(INTERRUPT_WITHIN, place.line))
        while not place.is_over:
            with trio.move_on_after(LOOK_EVERY):
                await self._watcher.news.wait()

    # ---- what became of it ----------------------------------------------------------------------

    async def _fold(self, place: _Place, why: str | None) -> None:
        text, code = self._output(place), place.exit_code
        shown = text[-PREVIEW:]
        title = _short(self._command)
        line = place.line
        message, success = f"Ran {title}: exit code {code or 0:g}", code == 0
        if line is not None and not line.commands and place.lives:
            message = f"{title} was not run: {why or 'the shell did not take it'}"
            if why is not None:
                await self._interrupt(place)
        elif not place.is_over:
            message, success = f"{title} {why or 'is let be'}, and goes on in its terminal", True
        elif place.terminal.closed or place.terminal.notes.retained:
            message, success = f"the terminal of {title} was disposed of", False
        elif code is None and place.lives:
            message, success = f"Ran {title}", True
        elif code is None:
            message = f"{title} was ended by a signal"
        result = TerminalCommandResult(
            exit_code=code if place.is_over else None,
            preview=shown,
            truncated=True if len(text) > len(shown) else None,
        )
        content = (self._content(place.terminal, result), ToolResultTextContent(text=shown))
        await self._say(
            ev.ToolFinished(CALL, success, message, content, error=None if success else message)
        )

    def _output(self, place: _Place) -> str:
        """What it said, without escape sequences, as far as it is known."""
        if place.line is None:
            return plain_text(place.terminal.state)
        if not place.line.commands:
            return plain(self._watcher.said)
        return plain("".join(str(part.output) for part in place.parts()))

    def _content(
        self, terminal: Channel, result: TerminalCommandResult | None
    ) -> ToolResultTerminalContent:
        return ToolResultTerminalContent(
            resource=terminal.uri, title=terminal.state.title, is_pty=True, result=result
        )


def _is_free(claim: Any, wanted: TerminalSessionClaim) -> bool:
    """Whether the shell is the session's, and no call's now."""
    return (
        isinstance(claim, TerminalSessionClaim)
        and claim.session == wanted.session
        and (claim.tool_call_id is None or claim == wanted)
    )


def _let_be(host: Host, terminal: Channel) -> None:
    """The call is over; what goes on of it is the chat's, in the background (R-12.5)."""
    claim = terminal.state.claim
    if isinstance(claim, TerminalSessionClaim) and claim.tool_call_id is not None:
        narrowed = TerminalSessionClaim(session=claim.session, chat=claim.chat)
        Desk(host, terminal).say(TerminalClaimedAction(claim=narrowed))
        say_terminals(host)


def _short(command: str) -> str:
    line = command.splitlines()[0]
    return line if len(line) <= TITLE and line == command else line[:TITLE] + "…"
