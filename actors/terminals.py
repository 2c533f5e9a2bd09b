"""The terminals there are: how they are made and ended, and how lists show them (RULES 12).

They belong to the root and outlive the session that made them (R-12.17), but for those that a
session owns when it is ended (R-12.16). One whose client is gone for good goes on, and whoever
wants it may claim it (R-12.9).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from enum import Enum
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, unquote, urlsplit

from msgspec import Struct

from actors.desk import Desk
from actors.endings import close_channel, unhear
from actors.host import Host
from actors.ledger import Channel
from actors.lines import Line
from actors.retained import claim_of, namer, rebuilt, retained
from actors.rules.names import terminal_name_fault
from actors.rules.terminal import claim_fault, size_fault
from actors.rules.titles import title_fault
from ahpd.protocol.errors import ErrorCode, ProtocolError
from ahpd.protocol.root import RootTerminalsChangedAction
from ahpd.protocol.session import SessionState
from ahpd.protocol.terminal import (
    CreateTerminalParams,
    DisposeTerminalParams,
    TerminalClaim,
    TerminalClaimedAction,
    TerminalContent,
    TerminalInfo,
    TerminalRunningLifecycleState,
    TerminalSessionClaim,
    TerminalState,
    TerminalTitleChangedAction,
)
from ahpd.protocol.uris import ROOT, URI, canonical, scheme
from ahpd.terminals.port import Fault, Spawn, SpawnFailed, Terminal
from supervisors import Actor, NoSuchChild, Request, System

if TYPE_CHECKING:
    from actors.connection import Connection

#: Cells of a terminal that was given no size.
COLS, ROWS = 80, 24

_CODES = {
    Fault.NOT_FOUND: ErrorCode.NOT_FOUND,
    Fault.NOT_ALLOWED: ErrorCode.PERMISSION_DENIED,
    Fault.FAILED: ErrorCode.INTERNAL_ERROR,
}


# ---- lists --------------------------------------------------------------------------------------


def terminals(host: Host) -> list[Channel]:
    """The terminals there are, in the order in which they were made; not those being started."""
    return [each for each in _every(host) if not each.notes.retained]


def _every(host: Host) -> list[Channel]:
    """Those too that are gone, and can still be read."""
    every = host.ledger.channels.values()
    return [each for each in every if each.kind == "terminal" and each.uri not in host.starting]


def say_terminals(host: Host) -> None:
    """Tell those who hear the root what there is now, if that is news (R-7.4)."""
    root = host.ledger.find(ROOT)
    assert root is not None
    rows = [
        TerminalInfo(
            resource=each.uri,
            title=each.state.title,
            claim=each.state.claim,
            lifecycle=each.state.lifecycle,
        )
        for each in terminals(host)
    ]
    Desk(host, root).say(RootTerminalsChangedAction(terminals=tuple(rows)))


# ---- making -------------------------------------------------------------------------------------


async def create_terminal(connection: Connection, params: CreateTerminalParams) -> None:
    """R-12.10: answered when the process runs. Its channel is there before, and loses nothing."""
    host, uri = connection.host, canonical(params.channel)
    client_id = connection.client_id
    assert client_id is not None
    _check(host, params, uri, client_id)
    cwd = _folder(host, params.cwd)
    spawn = Spawn(
        cwd=cwd,
        cols=COLS if params.cols is None else int(params.cols),
        rows=ROWS if params.rows is None else int(params.rows),
    )
    wanted = Wanted(uri, params.claim, spawn, params.name)
    await open_terminal(host, connection.system, wanted)


class Interrupt(Struct, frozen=True):
    """To a terminal: interrupt its process as control-C does; end it after so many seconds.

    `line`: unless the shell is done with that by then.
    """

    within: float
    line: Line | None = None


class Typed(Enum):
    """Whether a shell got a line."""

    YES = "yes"
    NO = "no"  #: it is not free, and is left alone
    NOT_YET = "not yet"  #: it is at its prompt, and will be free in a moment


class RunLine(Struct, Request[Typed], frozen=True):
    """To a terminal: type this line into its shell, for the call that `claim` names."""

    line: Line
    claim: TerminalSessionClaim


class LooksIdle(Struct, Request[bool], frozen=True):
    """To a terminal: whether what is in front waits for somebody to type."""


class Wanted(Struct, frozen=True):
    """A terminal that is to be: under which URI, whose, of what; `name`: its title, if it has one.

    Without a name it is called as what runs in it.
    """

    uri: URI
    claim: TerminalClaim
    spawn: Spawn
    name: str | None = None


async def open_terminal(
    host: Host,
    system: System,
    wanted: Wanted,
    started: Callable[[Terminal], None] = lambda _: None,
) -> Channel:
    """Make a terminal; its process is given to `started` too, to be waited for.

    Raises `ProtocolError`; then, and when it is cancelled, nothing is left.
    """
    from actors.terminal import Launch, terminal_spec  # noqa: PLC0415 - it imports this module

    if host.terminals is None:
        raise ProtocolError(ErrorCode.METHOD_NOT_FOUND, "this host serves no terminals")
    uri, spawn = wanted.uri, wanted.spawn
    await _make_room(host, system)
    before = host.ledger.find(uri)
    if before is not None and before.notes.retained:  # the name is wanted anew
        take_out(host, [before])
        await stop_terminals(host, system, [before])
    if host.ledger.find(uri) is not None:
        raise ProtocolError(ErrorCode.ALREADY_EXISTS, f"the channel {uri} exists already")
    if not _has_owner(host, wanted.claim):
        raise _gone(uri)
    state = TerminalState(
        title=wanted.name or "",
        cwd=None if spawn.cwd is None else "file://" + quote(spawn.cwd, errors="surrogateescape"),
        cols=spawn.cols,
        rows=spawn.rows,
        content=TerminalContent(),
        lifecycle=TerminalRunningLifecycleState(),
        claim=wanted.claim,
        is_pty=True,
    )
    channel = host.ledger.open(uri, "terminal", state, f"terminal/{host.new_id()[:16]}")
    host.starting.add(uri)
    launch, runs = Launch(None), False
    try:
        launch.terminal = await host.terminals.spawn(spawn)
        started(launch.terminal)
        if channel.closed:  # with its session, meanwhile
            raise _gone(uri)
        if not wanted.name:
            Desk(host, channel).say(TerminalTitleChangedAction(title=launch.terminal.title))
        await system.supervisor("terminals").start_child(terminal_spec(host, channel, launch))
        if channel.closed:
            raise _gone(uri)
        runs = True
    except SpawnFailed as error:
        raise ProtocolError(_CODES[error.fault], error.message) from error
    finally:
        host.starting.discard(uri)
        if not runs:
            if not channel.closed:
                close_channel(host, channel)
            left = launch.take()
            if left is not None:
                await left.close()
            # Its actor may run, or be about to; being told to stop, it does, if we wait or not.
            await stop_terminals(host, system, [channel])
    say_terminals(host)
    return channel


def _has_owner(host: Host, claim: TerminalClaim) -> bool:
    if not isinstance(claim, TerminalSessionClaim):
        return True
    return host.ledger.find(claim.session) is not None or claim.session in host.dormant


def _gone(uri: URI) -> ProtocolError:
    return ProtocolError(ErrorCode.NOT_FOUND, f"the session that was to own {uri} is gone")


async def _make_room(host: Host, system: System) -> None:
    """At the bound the terminal that ended first, of those that have, makes room."""
    every = [
        each
        for each in host.ledger.channels.values()
        if each.kind == "terminal" and not each.notes.retained
    ]
    if len(every) < host.settings.terminals:
        return
    ended = next((each for each in every if each.state.lifecycle.status == "exited"), None)
    if ended is None:
        most = host.settings.terminals
        raise ProtocolError(
            ErrorCode.CONFLICT, f"there are {most} terminals, and there can be no more"
        )
    await end_terminals(host, system, [ended])


def _check(host: Host, params: CreateTerminalParams, uri: URI, client_id: str) -> None:
    def owner_of(chat: URI) -> URI | None:
        channel = host.ledger.find(chat)
        return channel.owner if channel is not None and channel.kind == "chat" else None

    cols = COLS if params.cols is None else params.cols
    rows = ROWS if params.rows is None else params.rows
    wrong = terminal_name_fault(uri)
    faults = (
        None if wrong is None else f"channel: {wrong}",
        size_fault(cols, rows),
        claim_fault(params.claim, client_id, owner_of),
        title_fault(params.name) if params.name is not None else None,
    )
    for fault in faults:
        if fault is not None:
            raise ProtocolError(ErrorCode.INVALID_PARAMS, f"createTerminal: {fault}")
    there = host.ledger.find(uri)
    is_taken = there is not None and not there.notes.retained
    if is_taken or host.dormant.owner_of(uri) is not None:
        raise ProtocolError(ErrorCode.ALREADY_EXISTS, f"the channel {uri} exists already")


def _folder(host: Host, uri: URI | None) -> str | None:
    """The folder to start in: one that is served, or that a session works in, or in one of them."""
    served = [path for path in map(path_of, host.settings.served) if path is not None]
    if uri is None:
        return served[0] if served else None
    path = path_of(uri)
    if path is None:
        raise ProtocolError(
            ErrorCode.INVALID_PARAMS, f"createTerminal: cwd: {uri} names no folder of this machine"
        )
    if not any(is_within(path, root) for root in (*served, *_working_directories(host))):
        raise ProtocolError(ErrorCode.PERMISSION_DENIED, f"the folder {uri} is not served here")
    return path


def folder_of(host: Host, chat: Channel) -> str | None:
    """The folder in which commands of a chat are run: its first, else its session's, else ours."""
    session = host.ledger.find(chat.owner) if chat.owner is not None else None
    named = chat.state.working_directories
    if named is None and session is not None:
        named = session.state.working_directories
    for path in map(path_of, (*(named or ()), *host.settings.served)):
        if path is not None:
            return path
    return None


def _working_directories(host: Host) -> list[str]:
    found: list[str] = []
    for channel in host.ledger.channels.values():
        if isinstance(channel.state, SessionState):
            named = (path_of(each) for each in channel.state.working_directories or ())
            found += [path for path in named if path is not None]
    return found


def path_of(uri: URI) -> str | None:
    """The path of a folder of this machine; None: the URI names none."""
    if scheme(uri).lower() != "file":
        return None
    try:
        parts = urlsplit(uri)
    except ValueError:
        return None
    path = unquote(parts.path, errors="surrogateescape")
    is_local = parts.netloc in ("", "localhost")
    return path if is_local and path.startswith("/") and "\0" not in path else None


def is_within(path: str, root: str) -> bool:
    """Whether a path is a folder or lies in it, by its steps alone."""
    steps = [step for step in path.split("/") if step not in ("", ".")]
    base = [step for step in root.split("/") if step not in ("", ".")]
    return ".." not in steps and steps[: len(base)] == base


# ---- ending -------------------------------------------------------------------------------------


async def dispose_terminal(connection: Connection, params: DisposeTerminalParams) -> None:
    """R-12.12: it is gone from lists at once; answered when its processes are, too."""
    host, uri = connection.host, canonical(params.channel)
    channel = host.ledger.find(uri)
    if channel is None or channel not in terminals(host):
        raise ProtocolError(ErrorCode.NOT_FOUND, f"there is no terminal {params.channel}")
    await end_terminals(host, connection.system, [channel])


async def end_terminals(host: Host, system: System, channels: Sequence[Channel]) -> None:
    """End these; what a tool result names can still be read (R-4.33)."""
    for channel in channels:
        chat = _namer_of(host, channel)
        if chat is None:
            close_channel(host, channel)
        else:
            _retire(host, channel, chat)
    say_terminals(host)
    forgotten = retained(host)[: -host.settings.terminals]
    take_out(host, forgotten)
    await stop_terminals(host, system, [*channels, *forgotten])


def _namer_of(host: Host, channel: Channel) -> TerminalSessionClaim | None:
    """Whose it will be when it is gone; None: nobody will ask for it.

    Of a session that is not loaded nobody knows: then its word is taken that it is its own.
    """
    found = namer(host, channel.uri)
    if found is not None:
        return claim_of(found[0])
    claim = channel.state.claim
    is_known = isinstance(claim, TerminalSessionClaim) and claim.session not in host.dormant
    return None if is_known or not isinstance(claim, TerminalSessionClaim) else claim


def _retire(host: Host, channel: Channel, claim: TerminalSessionClaim) -> None:
    """It is in no list any more, and whoever hears it does so no longer. Sync."""
    Desk(host, channel).say(TerminalClaimedAction(claim=claim))
    channel.note(retained=True)
    unhear(host, channel)


def take_out(host: Host, channels: Sequence[Channel]) -> None:
    """From now on there are no such terminals; their processes are still to be ended. Sync."""
    for channel in channels:
        if not channel.closed:
            close_channel(host, channel)
    if channels:
        say_terminals(host)


async def stop_terminals(host: Host, system: System, channels: Sequence[Channel]) -> None:
    """End their actors, and so the processes; those that can still be read get new ones."""
    from actors.terminal import Launch, terminal_spec  # noqa: PLC0415 - it imports this module

    supervisor = system.supervisor("terminals")
    for channel in channels:
        with suppress(NoSuchChild):
            child = channel.path.rpartition("/")[2]
            await supervisor.stop_child(child, "the terminal was disposed of")
        if not channel.closed:
            await supervisor.start_child(terminal_spec(host, channel, Launch(None)))


async def rebuild(host: Host, system: System, uri: URI) -> Channel | None:
    """A terminal that is gone as a tool result has it, to be read; None: none names it."""
    from actors.terminal import Launch, terminal_spec  # noqa: PLC0415 - it imports this module

    state = rebuilt(host, uri)
    if state is None:
        return None
    forgotten = retained(host)[: 1 - host.settings.terminals or None]
    take_out(host, forgotten)
    channel = host.ledger.open(uri, "terminal", state, f"terminal/{host.new_id()[:16]}")
    channel.note(retained=True)
    await stop_terminals(host, system, forgotten)
    if not channel.closed:
        launch = Launch(None)
        await system.supervisor("terminals").start_child(terminal_spec(host, channel, launch))
    return channel


def terminals_of(host: Host, session: URI) -> list[Channel]:
    """The terminals that a session owns, with those that are being started or can still be read."""
    every = host.ledger.channels.values()
    claims = [(each, each.state.claim) for each in every if each.kind == "terminal"]
    return [
        each
        for each, claim in claims
        if isinstance(claim, TerminalSessionClaim) and claim.session == session
    ]


class TerminalKeeper(Actor[Any]):
    """Gives actors to the terminals that have none: those that were kept when the host was left."""

    kind = "terminal keeper"

    def __init__(self, host: Host) -> None:
        self._host = host

    async def on_start(self) -> None:
        """They have no processes any more, and say so."""
        from actors.terminal import Launch, terminal_spec  # noqa: PLC0415 - it imports this module

        supervisor = self.system.supervisor("terminals")
        running = {child.id for child in supervisor.which_children()}
        for channel in _every(self._host):
            if channel.path.rpartition("/")[2] not in running:
                await supervisor.start_child(terminal_spec(self._host, channel, Launch(None)))
        say_terminals(self._host)

    async def handle(self, message: Any) -> None:
        """There is nothing to be told."""
