"""What the host does for a chat's agent: commands on terminals that the chat owns, and files.

Both see only what the chat works in: a command begins in one of the chat's folders or in one that
is served, and files are those in its own folders, reached as a client's requests reach them.
"""

from __future__ import annotations

import signal
from collections.abc import Sequence
from contextlib import suppress

import trio

from actors.commanding import Watcher
from actors.desk import Desk
from actors.host import Host
from actors.ledger import Channel
from actors.resources import is_a_place
from actors.scrollback import plain_text
from actors.subscriptions import Subscription
from actors.terminals import (
    Interrupt,
    Wanted,
    is_within,
    open_terminal,
    path_of,
    say_terminals,
    terminals_of,
)
from ahpd.agents.port import CommandOver, CommandWanted, HostRefused
from ahpd.protocol.errors import ErrorCode, ProtocolError
from ahpd.protocol.resources import ResourceReadParams, ResourceWriteParams
from ahpd.protocol.terminal import (
    TerminalClaimedAction,
    TerminalRunningLifecycleState,
    TerminalSessionClaim,
    TerminalState,
)
from ahpd.protocol.tools import ToolResultTerminalContent
from ahpd.protocol.uris import URI
from ahpd.resources.port import Resources, Served
from ahpd.terminals.port import Spawn, Terminal
from supervisors import SendRefused, System

#: What the URIs of terminals begin with that agents asked for.
_OF_AGENTS = "agenthost-terminal://agent/"
#: Characters of a command in a terminal's title.
TITLE = 60
#: Seconds that ending a command may take before nobody waits for it any more.
END_WITHIN = 10.0


def folders_of(host: Host, chat: Channel) -> Sequence[URI]:
    """The folders that a chat works in: its own, else its session's."""
    session = host.ledger.find(chat.owner) if chat.owner is not None else None
    named = chat.state.working_directories
    if named is None and session is not None:
        named = session.state.working_directories
    return [uri for uri in named or () if is_a_place(uri)]


class AgentCommands:
    """Runs commands for the agent of `chat`. Implements `Commands`."""

    def __init__(self, host: Host, system: System, chat: Channel) -> None:
        self._host = host
        self._system = system
        self._chat = chat

    async def run(self, wanted: CommandWanted) -> AgentCommand:
        """See `Commands`."""
        host, chat = self._host, self._chat
        owner = host.ledger.find(chat.owner) if chat.owner is not None else None
        if owner is None or chat.closed:
            raise HostRefused("the session has ended", "failed")
        roots = map(path_of, (*folders_of(host, chat), *host.settings.served))
        if not any(root is not None and is_within(wanted.cwd, root) for root in roots):
            raise HostRefused(f"the folder {wanted.cwd} is none of this session's", "not allowed")
        line = wanted.line.strip().splitlines()[0] if wanted.line.strip() else "command"
        spawn = Spawn(cwd=wanted.cwd, command=wanted.line, environment=wanted.environment)
        claim = TerminalSessionClaim(session=owner.uri, chat=chat.uri)
        uri = f"{_OF_AGENTS}{host.new_id()}"
        started: list[Terminal] = []
        try:
            title = line if len(line) <= TITLE else line[:TITLE] + "…"
            wish = Wanted(uri, claim, spawn, title)
            terminal = await open_terminal(host, self._system, wish, started.append)
        except ProtocolError as error:
            raise _refused(error) from None
        return AgentCommand(host, self._system, terminal, started[0])


class AgentCommand:
    """A command that an agent has the host run. Implements `RunningCommand`."""

    def __init__(self, host: Host, system: System, channel: Channel, process: Terminal) -> None:
        self._host = host
        self._system = system
        self._channel = channel
        self._process = process
        self._over: CommandOver | None = None

    @property
    def _state(self) -> TerminalState:
        state: TerminalState = self._channel.state
        return state

    @property
    def uri(self) -> URI:
        """See `RunningCommand`."""
        return self._channel.uri

    @property
    def title(self) -> str:
        """See `RunningCommand`."""
        return self._state.title

    @property
    def over(self) -> CommandOver | None:
        """See `RunningCommand`."""
        if self._over is None and not self._runs:
            code = getattr(self._state.lifecycle, "exit_code", None)
            self._over = CommandOver(None if code is None else int(code))
        return self._over

    @property
    def _runs(self) -> bool:
        running = isinstance(self._state.lifecycle, TerminalRunningLifecycleState)
        return running and not self._channel.closed

    def output(self) -> str:
        """See `RunningCommand`."""
        return plain_text(self._state)

    async def wait(self) -> CommandOver:
        """See `RunningCommand`."""
        watcher = Watcher()
        self._host.subscriptions.add(watcher, self.uri, Subscription())
        try:
            ended = await self._process.wait()
            while self._runs:  # what it wrote last is still being said
                with trio.move_on_after(1.0):  # or the terminal was disposed of
                    await watcher.news.wait()
        finally:
            self._host.subscriptions.remove(watcher, self.uri)
        name = None if ended.signal is None else _name(ended.signal)
        self._over = CommandOver(ended.exit_code, name)
        return self._over

    async def end(self) -> None:
        """See `RunningCommand`."""
        if not self._runs:
            await trio.lowlevel.checkpoint()
            return
        with suppress(SendRefused):
            self._system.ref(self._channel.path).cast(Interrupt(0.0))
        with trio.move_on_after(END_WITHIN):
            await self.wait()


# ---- whose a terminal is -------------------------------------------------------------------------


def claim_for_call(host: Host, chat: Channel, call_id: str, content: Sequence[object]) -> None:
    """A running call of the chat shows these: what of it are agents' terminals is its (R-12.2)."""
    turn = chat.state.active_turn
    for each in content if turn is not None else ():
        if isinstance(each, ToolResultTerminalContent) and each.resource.startswith(_OF_AGENTS):
            _claim(host, chat, each.resource, turn.id, call_id)


def let_be(host: Host, chat: Channel, call_id: str | None = None) -> None:
    """A call of the chat is over, or (None) all of them: what goes on is the chat's (R-12.5)."""
    for each in terminals_of(host, chat.owner) if chat.owner is not None else ():
        claim = each.state.claim
        held = claim.tool_call_id if claim.chat == chat.uri else None
        if each.uri.startswith(_OF_AGENTS) and held is not None and call_id in (None, held):
            _claim(host, chat, each.uri)


def _claim(
    host: Host, chat: Channel, uri: URI, turn_id: str | None = None, call_id: str | None = None
) -> None:
    channel = host.ledger.find(uri)
    claim = channel.state.claim if channel is not None and channel.kind == "terminal" else None
    if channel is None or not isinstance(claim, TerminalSessionClaim) or claim.chat != chat.uri:
        return  # somebody else has it by now
    wanted = TerminalSessionClaim(
        session=claim.session, chat=claim.chat, turn_id=turn_id, tool_call_id=call_id
    )
    if Desk(host, channel).say(TerminalClaimedAction(claim=wanted)):
        say_terminals(host)


def _name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return str(number)


class AgentFiles:
    """Reads and writes text for the agent of `chat`, in its folders. Implements `Files`."""

    def __init__(self, host: Host, resources: Resources, chat: Channel) -> None:
        self._host = host
        self._resources = resources
        self._chat = chat

    @property
    def _served(self) -> Served:
        return Served(tuple(folders_of(self._host, self._chat)))

    async def read(self, uri: URI) -> str:
        """See `Files`."""
        params = ResourceReadParams(uri=uri, encoding="utf-8")
        try:
            found = await self._resources.read(params, self._served)
        except ProtocolError as error:
            raise _refused(error) from None
        if found.encoding != "utf-8":
            raise HostRefused("the file holds no text", "failed")
        return found.data

    async def write(self, uri: URI, text: str) -> None:
        """See `Files`."""
        params = ResourceWriteParams(uri=uri, data=text, encoding="utf-8")
        try:
            await self._resources.write(params, self._served)
        except ProtocolError as error:
            raise _refused(error) from None


def _refused(error: ProtocolError) -> HostRefused:
    match error.code:
        case ErrorCode.NOT_FOUND:
            return HostRefused(error.message, "not found")
        case ErrorCode.PERMISSION_DENIED | ErrorCode.INVALID_PARAMS:
            return HostRefused(error.message, "not allowed")
        case _:
            return HostRefused(error.message, "failed")
