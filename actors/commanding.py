"""Messages that are commands: what begins with ``!`` is run on a terminal, and no model is asked.

The host runs it with the person's shell, in the folder of the chat, on a terminal that the chat
owns (R-12.35). In the turn it is a tool call whose content names the terminal, so that it can be
watched and typed into; when the command is over its exit code and the end of its output are folded
in, and the terminal stays to be read. A command that fills the screen, or that a client lets be
(R-12.6), ends the turn and goes on in the background; a cancel interrupts it, and then ends it.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import trio
from msgspec import Struct, field

from actors.desk import Desk
from actors.host import Host
from actors.ledger import Channel, Entry
from actors.messages import AgentSays, RunOver
from actors.run import Run
from actors.scrollback import plain_text
from actors.subscriptions import Subscription
from actors.terminals import (
    Interrupt,
    Wanted,
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
    TerminalDataAction,
    TerminalSessionClaim,
    TerminalState,
)
from ahpd.protocol.tools import (
    TerminalCommandResult,
    ToolResultTerminalContent,
    ToolResultTextContent,
)
from ahpd.terminals.port import Spawn
from supervisors import Ref, SendRefused, System

#: What a message begins with that is a command (R-4.14).
PREFIX = "!"
#: Characters of the output's end that are folded into the turn.
PREVIEW = 16 << 10
#: Characters of a command in titles.
TITLE = 60
#: Seconds that a command may fill the screen before the turn goes on without it,
SCREEN_WITHIN = 2.0
#: that one may take to end after control-C, and between two looks for one that was disposed of.
INTERRUPT_WITHIN, LOOK_EVERY = 2.0, 1.0

#: The id of the call; it is the only one of its turn.
_CALL = "command"
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
    _tail: str = ""

    def hear(self, entry: Entry, subscription: Subscription) -> None:
        """Something happened in the terminal."""
        if isinstance(entry.action, TerminalDataAction):
            text = self._tail + entry.action.data
            self._tail = text[-_LONGEST_SCREEN:]
            if self.fills_screen or not any(mark in text for mark in _SCREEN):
                return
            self.fills_screen = True
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


class _Command:
    """One command, from its start to where the turn goes on without it."""

    def __init__(self, job: Job, command: str) -> None:
        self._job = job
        self._host = job.host
        self._run = job.run
        self._command = command
        self._watcher = Watcher()

    async def run(self) -> ev.Outcome:
        title = _short(self._command)
        uri = f"agenthost-terminal://bang/{self._host.new_id()}"
        await self._say(
            ev.ToolStarted(_CALL, "terminal", title, kind="terminal"),
            ev.ToolReady(_CALL, f"Running {title}", self._command),
        )
        chat = self._job.chat
        assert chat.owner is not None
        claim = TerminalSessionClaim(
            session=chat.owner, chat=chat.uri, turn_id=self._run.turn_id, tool_call_id=_CALL
        )
        spawn = Spawn(cwd=folder_of(self._host, chat), command=self._command)
        wanted = Wanted(uri, claim, spawn, title)
        terminal = await open_terminal(self._host, self._job.system, wanted)
        self._host.subscriptions.add(self._watcher, uri, Subscription())
        try:
            await self._say(ev.ToolOutput(_CALL, (self._content(terminal, None),)))
            await self._over(terminal)
            if self._run.stopping:
                await self._interrupt(terminal)
                return ev.Stopped()
            await self._fold(terminal)
            return ev.Done()
        finally:
            self._host.subscriptions.remove(self._watcher, uri)
            _let_be(self._host, terminal)

    async def _say(self, *events: ev.Event, cost: int = 256) -> None:
        await self._host.ledger.room.wait()
        await self._job.ref.send(AgentSays(self._run.number, events), cost=cost)

    async def _over(self, terminal: Channel) -> None:
        """Until the turn need not wait for it any more."""
        gives_up = float("inf")
        while self._counts(terminal) and trio.current_time() < gives_up:
            if self._watcher.fills_screen and gives_up == float("inf"):
                gives_up = trio.current_time() + SCREEN_WITHIN
            with trio.move_on_after(min(LOOK_EVERY, gives_up - trio.current_time())):
                await self._news()

    def _counts(self, terminal: Channel) -> bool:
        """It runs, for this call, and nobody has had enough of it."""
        claim = terminal.state.claim
        is_ours = isinstance(claim, TerminalSessionClaim) and claim.tool_call_id == _CALL
        return _runs(terminal) and is_ours and not self._run.stopping

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

    async def _interrupt(self, terminal: Channel) -> None:
        """As a person would; and then for good."""
        with suppress(SendRefused):
            self._job.system.ref(terminal.path).cast(Interrupt(INTERRUPT_WITHIN))
        while _runs(terminal):
            with trio.move_on_after(LOOK_EVERY):
                await self._watcher.news.wait()

    async def _fold(self, terminal: Channel) -> None:
        state: TerminalState = terminal.state
        text = plain_text(state)
        shown = text[-PREVIEW:]
        code = getattr(state.lifecycle, "exit_code", None)
        title = _short(self._command)
        if _runs(terminal):
            message, success = f"{title} goes on in its terminal", True
        elif code is None:
            message, success = f"{title} was ended by a signal", False
        else:
            message, success = f"Ran {title}: exit code {code:g}", code == 0
        result = TerminalCommandResult(
            exit_code=code, preview=shown, truncated=True if len(text) > len(shown) else None
        )
        content = (self._content(terminal, result), ToolResultTextContent(text=shown))
        await self._say(
            ev.ToolFinished(_CALL, success, message, content, error=None if success else message)
        )

    def _content(
        self, terminal: Channel, result: TerminalCommandResult | None
    ) -> ToolResultTerminalContent:
        return ToolResultTerminalContent(
            resource=terminal.uri, title=terminal.state.title, is_pty=True, result=result
        )


def _runs(terminal: Channel) -> bool:
    running: bool = terminal.state.lifecycle.status == "running"
    return running and not terminal.closed


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
