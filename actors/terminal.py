"""A terminal: a process that all who hear it share, and the record of what it has shown.

What it writes is read in a task beside the mailbox and said here; what clients type is written to
it once its envelope is out, in another. When the process has ended, and all that it wrote is said,
so is its end; the channel stays, and can be read until somebody disposes of it (R-12.14).

A pseudo-terminal cannot be built again. So when this actor fails, or the host is started anew, the
next incarnation finds its channel without a process, says that it ended, and serves what is left.
"""

from __future__ import annotations

from collections import deque
from typing import Any, TypeAlias

import trio
from msgspec import Struct

from actors import mailboxes, scrollback
from actors.desk import Desk
from actors.host import Host
from actors.ledger import Channel
from actors.lines import Lines
from actors.messages import Dispatch, Echoed, LetBe
from actors.pace import Pace, Shown
from actors.retained import KEPT
from actors.rules import terminal as rules
from actors.telling import tell
from actors.terminals import Interrupt, LooksIdle, RunLine, Typed, say_terminals
from ahpd.protocol import terminal as act
from ahpd.protocol.terminal import TerminalState
from ahpd.protocol.uris import URI
from ahpd.terminals import port
from supervisors import Actor, ChildSpec, Shutdown


class Launch(Struct, eq=False):
    """Hands a process that runs to the terminal's first incarnation; later ones find none."""

    terminal: port.Terminal | None

    def take(self) -> port.Terminal | None:
        """The process, once."""
        taken, self.terminal = self.terminal, None
        return taken


class Over(Struct, frozen=True):
    """The process ended, and this was all."""

    ended: port.Ended


Incoming: TypeAlias = Dispatch | Echoed | Shown | Over | Interrupt | RunLine | LooksIdle


class Terminal(Actor[Incoming]):
    """One terminal; see the module's docstring."""

    kind = "terminal"

    def __init__(self, host: Host, channel: Channel, launch: Launch) -> None:
        self._host = host
        self._channel = channel
        self._launch = launch
        self._process: port.Terminal | None = None
        self._pace = Pace(host, channel)
        self._lines = Lines()
        #: Invariant: what the content of the state costs, as `scrollback.size` has it.
        self._size = 0
        self._inputs: deque[bytes] = deque()
        self._typed = trio.Event()
        #: Bytes of input that were accepted and that the process has not taken.
        self._waiting = 0
        #: The command that runs, and since when (ms).
        self._command: tuple[str, float] | None = None

    @property
    def pid(self) -> int | None:
        """The process that runs on it, if one does."""
        return getattr(self._process, "pid", None)

    async def on_start(self) -> None:
        """Begin to listen to the process; without one, say that it ended."""
        self._desk = Desk(self._host, self._channel, self.ref)
        process = self._process = self._launch.take()
        if self._channel.closed:
            return  # it is about to be stopped
        self._size = scrollback.size(self._state)
        self._trim()
        if process is None:
            self._say_end(None)
            return
        self.spawn(process.wait, name="wait")
        self.spawn(self._read, process, name="read")
        self.spawn(self._send, process, name="send", kind="agent")
        self.spawn(self._write, process, name="write")

    async def on_stop(self, reason: str) -> None:
        """End the process, and all that it started."""
        await self._let_go()

    async def on_crash(self, error: BaseException | None) -> None:
        """The same: nobody could drive it any more."""
        await self._let_go()

    async def _let_go(self) -> None:
        self._pace.close()
        launched = self._launch.take() or self._process
        if launched is not None:
            await launched.close()
        if not self._channel.closed:
            self._say_end(None)

    async def handle(self, message: Incoming) -> Any:
        """One message; see the classes for what each says."""
        match message:
            case Shown():
                self._show(message)
            case Dispatch():
                self._take(message)
            case Echoed(channel=channel):
                self._echoed(channel)
            case Over():
                self._say_end(message.ended.exit_code)
            case Interrupt() if self._process is not None:
                self._waiting -= sum(map(len, self._inputs))
                self._inputs.clear()
                self._type_own(b"\x03")
                self.spawn(self._end_after, self._process, message, name="end")
            case RunLine():
                return self._run_line(message)
            case LooksIdle():
                return self._process is not None and await self._process.is_reading()
        return None

    @property
    def _state(self) -> TerminalState:
        state: TerminalState = self._channel.state
        return state

    # ---- what the process says ------------------------------------------------------------------

    async def _read(self, process: port.Terminal) -> None:
        """Helper: from the process to where its output is gathered."""
        while pieces := await process.read():
            await self._pace.add(pieces)
        self._pace.end()

    async def _send(self, process: port.Terminal) -> None:
        """Helper: from there into the mailbox, no faster than it goes out."""
        while (shown := await self._pace.take()) is not None:
            await self.ref.send(shown, cost=shown.size)
        await self.ref.send(Over(await process.wait()))

    def _show(self, shown: Shown) -> None:
        for piece in shown.pieces:
            match piece:
                case port.Output():
                    before = len(self._state.content)
                    self._desk.say(act.TerminalDataAction(data=piece.text))
                    self._lines.shown(piece.text)
                    new = len(self._state.content) - before
                    self._size += len(piece.text) + new * scrollback.PART
                case port.Detected():
                    self._desk.say(act.TerminalCommandDetectionAvailableAction())
                case port.Prompted():
                    self._lines.prompted(trio.current_time())
                case port.CommandBegan():
                    self._begin_command(piece.line)
                case port.CommandEnded():
                    self._end_command(piece.exit_code)
                case port.Moved():
                    self._desk.say(act.TerminalCwdChangedAction(cwd=piece.cwd))
        self._pace.said(shown.size)
        self._trim()

    def _begin_command(self, line: str) -> None:
        now = self._host.clock.ms()
        self._command = (self._host.new_id(), now)
        self._size += len(line) + scrollback.PART
        self._lines.began(self._command[0])
        self._desk.say(
            act.TerminalCommandExecutedAction(
                command_id=self._command[0], command_line=line, timestamp=now
            )
        )

    def _end_command(self, exit_code: int | None) -> None:
        if self._command is None:
            return
        (command_id, began), self._command = self._command, None
        self._lines.ended(exit_code)
        self._desk.say(
            act.TerminalCommandFinishedAction(
                command_id=command_id,
                exit_code=exit_code,
                duration_ms=round(max(0.0, self._host.clock.ms() - began), 3),
            )
        )

    def _say_end(self, exit_code: int | None) -> None:
        """It ended, once; what ran in it then has ended too, nobody knows how."""
        if self._state.lifecycle.status != "running":  # type: ignore[union-attr]
            return
        for part in self._state.content:
            if isinstance(part, act.TerminalCommandPart) and not part.is_complete:
                self._desk.say(act.TerminalCommandFinishedAction(command_id=part.command_id))
        self._command = None
        self._desk.say(act.TerminalExitedAction(exit_code=exit_code))
        self._lines.gone()
        say_terminals(self._host)

    def _trim(self) -> None:
        """Forget the oldest output, here alone (R-12.27)."""
        limit = self._host.settings.scrollback
        if self._channel.notes.retained:
            limit = min(limit, KEPT)
        if scrollback.is_over(self._size, limit) and not self._channel.closed:
            self._channel.state = scrollback.trimmed(self._state, limit)
            self._size = scrollback.size(self._state)

    # ---- what clients want ----------------------------------------------------------------------

    def _take(self, dispatch: Dispatch) -> None:
        if self._channel.closed:
            return
        held = self._state.claim
        taken = self._desk.take(dispatch, lambda it, action: rules.judge(self._case(it), action))
        match taken:
            case act.TerminalInputAction():
                self._waiting += len(taken.data.encode())
                self._lines.typed()
            case act.TerminalClearedAction():
                self._size = 0
            case act.TerminalClaimedAction():
                say_terminals(self._host)
                self._tell_chat(held, taken.claim)
            case act.TerminalTitleChangedAction():
                say_terminals(self._host)
            case _:
                pass

    def _tell_chat(self, held: act.TerminalClaim, now: act.TerminalClaim) -> None:
        """A call had it, and does not any more: who made the call is told (R-12.6)."""
        if not isinstance(held, act.TerminalSessionClaim) or held.tool_call_id is None:
            return
        chat = self._host.ledger.find(held.chat)
        if chat is not None and getattr(now, "tool_call_id", None) != held.tool_call_id:
            tell(self.find(chat.path), LetBe(held.turn_id, held.tool_call_id))

    def _case(self, dispatch: Dispatch) -> rules.Case:
        host, asker = self._host, dispatch.asker

        def owner_of(chat: URI) -> URI | None:
            channel = host.ledger.find(chat)
            return channel.owner if channel is not None and channel.kind == "chat" else None

        def is_gone(client_id: str) -> bool:
            record = host.clients.find(client_id)
            return record is None or record.has_lost_place

        def hears(uri: URI) -> bool:
            return host.subscriptions.find(asker, uri) is not None

        room = host.settings.terminal_input_bytes - self._waiting
        client_id = dispatch.origin.client_id
        return rules.Case(self._state, client_id, owner_of, is_gone, hears, room)

    def _echoed(self, channel: Channel) -> None:
        """Envelopes are out: what was typed is written; of several sizes the last counts."""
        size: tuple[int, int] | None = None
        while channel.echoes:
            match channel.echoes.pop(0):
                case act.TerminalInputAction(data=data):
                    self._type(data.encode())
                case act.TerminalResizedAction(cols=cols, rows=rows):
                    size = int(cols), int(rows)
                case _:
                    pass
        if size is not None and self._process is not None:
            self._process.resize(*size)

    def _type_own(self, data: bytes) -> None:
        self._waiting += len(data)
        self._type(data)

    def _type(self, data: bytes) -> None:
        self._inputs.append(data)
        self._typed.set()

    def _run_line(self, wanted: RunLine) -> Typed:
        now = trio.current_time()
        if self._waiting or self._process is None or self._channel.closed:
            return Typed.NO
        keys = self._lines.take(wanted.line, now)
        if keys is None:
            return Typed.NOT_YET if self._lines.will_be_free(now) else Typed.NO
        self._desk.say(act.TerminalClaimedAction(claim=wanted.claim))
        say_terminals(self._host)
        self._type_own(keys)
        return Typed.YES

    async def _end_after(self, process: port.Terminal, wanted: Interrupt) -> None:
        """Helper: end it, unless it has ended, or is done with the line, by then."""
        with trio.move_on_after(wanted.within):
            if wanted.line is None:
                await process.wait()
            else:
                await wanted.line.over.wait()
            return
        await process.close()

    async def _write(self, process: port.Terminal) -> None:
        """Helper: what was typed, in order, each once (R-12.19)."""
        while True:
            while self._inputs:
                data = self._inputs.popleft()
                try:
                    await process.write(data)
                except port.TerminalOver:
                    return  # it ended: what follows is refused
                self._waiting -= len(data)
            self._typed = trio.Event()
            await self._typed.wait()


def terminal_spec(host: Host, channel: Channel, launch: Launch) -> ChildSpec:
    """How a terminal's actor is supervised; ending its process takes up to four seconds."""
    return ChildSpec(
        channel.path.rpartition("/")[2],
        Terminal,
        (host, channel, launch),
        mailbox=mailboxes.CHANNEL,
        path=channel.path,
        shutdown=Shutdown(grace=6.0, cleanup=6.0),
    )
