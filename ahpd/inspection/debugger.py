"""The standard debugger inside one handler of one actor, while the rest of the host runs on.

pdb is blocking code: it reads a line and returns when there is one. Here the handler is run in a
portal of greenback's, so that where pdb reads, the actor's task waits like any other, and everybody
else goes on. The trace function is in force only while that task itself runs: it is taken out at
every await of the handler's, and while pdb waits.

What a handler does between two awaits is one step for all others, who must not see it half done.
So pdb does not stop inside the host's shared tables (`STEPS`): what they do is stepped over as one.
The rest of a handler can be stood in, and then others see it half done; see the README.
"""

from __future__ import annotations

import bdb
import pdb
import sys
from collections.abc import Awaitable, Callable, Coroutine, Generator
from fnmatch import fnmatchcase
from types import FrameType
from typing import Any, Protocol

#: Modules in which nobody may stand, because others rely on their steps.
STEPS = (
    "actors.clients",
    "actors.desk",
    "actors.endings",
    "actors.ledger",
    "actors.notices",
    "actors.outbox",
    "actors.recording",
    "actors.replay",
    "actors.room",
    "actors.subscriptions",
    "ahpd.inspection.*",
    "greenback.*",
    "greenlet",
    "importlib.*",
    "supervisors.*",
    "trio.*",
)

Handle = Callable[[Any], Awaitable[Any]]


class Screen(Protocol):
    """Where the debugger is used from."""

    async def line(self, prompt: str) -> str:
        """The next line that is typed, with its end; empty when there will be none."""

    def show(self, text: str) -> None:
        """Put out some text. Sync."""


class Debugger(pdb.Pdb):
    """pdb on a screen that is elsewhere. However it is left, the handler goes on."""

    def __init__(self, screen: Screen) -> None:
        self._streams = _Streams(screen, self)
        super().__init__(
            stdin=self._streams,  # type: ignore[arg-type]
            stdout=self._streams,  # type: ignore[arg-type]
            skip=STEPS,
            nosigint=True,
            readrc=False,
        )
        #: A frame that nobody comes to any more.
        self._nowhere = sys._getframe()
        #: Nothing is to be stopped at any more.
        self.is_left = False
        self.reset()

    def around(self, handle: Handle) -> Handle:
        """What handles one message, with this debugger in it from the first line on."""
        import greenback  # noqa: PLC0415 - only who debugs needs it

        async def handled(message: Any) -> Any:
            return await greenback.with_portal_run(self._handled, handle, message)

        return handled

    async def _handled(self, handle: Handle, message: Any) -> Any:
        try:
            return await _Steps(handle(message), self)
        finally:
            self.is_left = True
            self.clear_all_breaks()
            bdb.Breakpoint.clearBreakpoints()  # they are kept, and counted, for all debuggers

    def stop_soon(self) -> None:
        """Stop at the next line that the handler comes to. Sync."""
        if not self.is_left:
            self.set_step()

    def trace(self) -> None:
        """The task runs from here on. Sync."""
        if not self.is_left:
            sys.settrace(self.trace_dispatch)

    # ---- ways out ------------------------------------------------------------------------------

    def set_continue(self) -> None:
        """Go on, to the next breakpoint if there is one."""
        super().set_continue()
        # pdb waits for the frame below the handler's, and stops wherever an await ends when that is
        # a coroutine's.
        self.stopframe = self._nowhere
        self.is_left = not self.breaks

    def set_quit(self) -> None:
        """Leave. pdb's own way would be an exception in the handler, and so a crash."""
        self.clear_all_breaks()
        self.set_continue()

    def do_quit(self, arg: str) -> bool:
        """q(uit) | exit

        Leave the debugger; the handler goes on.
        """
        self.set_quit()
        return True

    do_q = do_exit = do_quit

    def do_EOF(self, arg: str) -> bool:  # noqa: N802 - pdb calls it so
        """EOF

        Leave the debugger; the handler goes on.
        """
        return self.do_quit(arg)

    # ---- what cannot be done from afar ---------------------------------------------------------

    def do_interact(self, arg: str) -> None:
        """interact

        Not here: `py`, at the console, gives a Python prompt.
        """
        self.error("not here; py, at the console, gives a Python prompt")

    def do_run(self, arg: str) -> None:
        """run | restart

        Not here: the console can restart the actor.
        """
        self.error("not here; restart, at the console, starts the actor again")

    do_restart = do_run

    def do_debug(self, arg: str) -> None:
        """debug code

        Not here: one debugger is enough for one handler.
        """
        self.error("not here; one debugger is enough for one handler")

    def help_pdb(self) -> None:
        """Its manual, here and not in a pager of the host's."""
        self.message(pdb.__doc__ or "")

    def set_break(
        self,
        filename: str,
        lineno: int,
        temporary: bool = False,
        cond: str | None = None,
        funcname: str | None = None,
    ) -> str | None:
        """Not where nobody may stand."""
        name = self._module_of(filename)
        if name is not None and any(fnmatchcase(name, each) for each in STEPS):
            return f"{name} is one step for the whole host: nobody can stop in the middle of it"
        return super().set_break(filename, lineno, temporary, cond, funcname)

    @staticmethod
    def _module_of(filename: str) -> str | None:
        modules = list(sys.modules.items())
        found = (name for name, each in modules if getattr(each, "__file__", None) == filename)
        return next(found, None)

    def stop_here(self, frame: FrameType) -> bool:
        """Nowhere once it is left."""
        return not self.is_left and bool(super().stop_here(frame))


class _Streams:
    """The debugger's input and output."""

    encoding = "utf-8"

    def __init__(self, screen: Screen, debugger: Debugger) -> None:
        self._screen = screen
        self._debugger = debugger
        self._said = ""

    def write(self, text: str) -> int:
        self._said += text
        if "\n" in text:
            self.flush()
        return len(text)

    def flush(self) -> None:
        whole, newline, rest = self._said.rpartition("\n")
        if newline:
            self._screen.show(whole + newline)
        self._said = rest

    def readline(self) -> str:
        """The next line. Other tasks run meanwhile, untraced."""
        import greenback  # noqa: PLC0415

        prompt, self._said = self._said, ""
        sys.settrace(None)
        try:
            return greenback.await_(self._screen.line(prompt))
        finally:
            self._debugger.trace()


class _Steps:
    """A coroutine that is traced while it runs and not while it waits."""

    def __init__(self, coroutine: Awaitable[Any], debugger: Debugger) -> None:
        assert isinstance(coroutine, Coroutine)
        self._coroutine = coroutine
        self._debugger = debugger

    def __await__(self) -> Generator[Any, Any, Any]:
        step, given = self._coroutine.send, None
        before = sys.gettrace()
        while True:
            self._debugger.trace()
            try:
                wanted = step(given)
            except StopIteration as end:
                return end.value
            finally:
                sys.settrace(before)
            try:
                given = yield wanted
                step = self._coroutine.send
            except BaseException as error:  # noqa: BLE001 thrown in: the coroutine's to see
                given, step = error, self._coroutine.throw
