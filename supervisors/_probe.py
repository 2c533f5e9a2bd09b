"""What hangs on an actor while somebody looks at it, steers it, or plans its faults.

A cell without a probe runs the short loop; everything here is paid for only while it is used.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable, Callable
from enum import Enum
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

import trio
from msgspec import Struct

from supervisors._calls import Receipt
from supervisors._contain import raised_by
from supervisors._events import Note
from supervisors._exits import Exit, said
from supervisors._mailbox import Envelope

if TYPE_CHECKING:
    from supervisors._cell import Cell, Life


class TraceKind(Enum):
    """What a trace event is about."""

    STARTED = "started"  #: an incarnation begins
    MESSAGE = "message"  #: taken from the mailbox, about to be handled
    HANDLED = "handled"
    HELD = "held"  #: suspended, by hand or at a breakpoint
    RESUMED = "resumed"
    ENDED = "ended"  #: the incarnation is over; `message` is its `Exit`


class TraceEvent(Struct, frozen=True):
    """One thing an actor did; `at` and `took` in seconds of trio's clock."""

    at: float
    path: str
    incarnation: int
    kind: TraceKind
    message: object = None
    call: bool = False
    took: float = 0.0


class Strike(Protocol):
    """What a fault plan offers to the loop of each actor."""

    async def before(self, life: Life) -> None:
        """The message in hand is about to be handled."""

    async def after(self, life: Life) -> None:
        """The message in hand has been handled; a reply may have gone out already."""


class Errand(Struct, eq=False):
    """Something that is done in the actor's own task, between two messages. `ran`: to its end."""

    do: Callable[[Any], Awaitable[None]]
    over: trio.Event
    begun: bool = False
    ran: bool = False


Predicate = Callable[[object], bool]
Handle = Callable[[Any], Awaitable[Any]]
#: Makes of the actor's `handle` what is to be called in its place.
Wrap = Callable[[Handle], Handle]
Sink = Callable[[TraceEvent], None]


class Probe:
    """The looking and steering of one path; it stays over restarts."""

    __slots__ = (
        "_began",
        "_passed",
        "allowance",
        "breakpoints",
        "errands",
        "faults",
        "held",
        "path",
        "recent",
        "sinks",
        "stepped",
        "stepping",
        "suspended",
        "suspended_at",
        "wrap",
    )

    def __init__(self, path: str) -> None:
        self.path = path
        self.suspended = False
        self.suspended_at = 0.0
        #: Messages that may still be handled while suspended.
        self.allowance = 0
        self.stepped = 0
        #: Set when a step is over: all handled, nothing left to handle, or the actor ended.
        self.stepping: trio.Event | None = None
        #: Set when the actor is held with nothing in hand, for those who wait for that.
        self.held: trio.Event | None = None
        self.breakpoints: dict[int, Predicate] = {}
        self.recent: deque[tuple[float, object]] | None = None
        self.sinks: dict[int, Sink] = {}
        self.faults: Strike | None = None
        self.errands: deque[Errand] | None = None
        #: Around the handling of the next message.
        self.wrap: Wrap | None = None
        self._passed: Envelope | None = None
        self._began = 0.0

    @property
    def idle(self) -> bool:
        """Whether it could as well not be there."""
        return not (
            self.suspended
            or self.breakpoints
            or self.sinks
            or self.recent is not None
            or self.faults is not None
            or self.errands
            or self.wrap is not None
        )

    # ---- called by the loop ---------------------------------------------------------------------

    def holds(self, life: Life) -> bool:
        """Whether the actor must not take its next message now."""
        head = life.cell.mailbox.peek()
        if self.suspended:
            if self.allowance and head is not None:
                self._passed = head
                return False
            self._is_held()
            return True
        if head is None or head is self._passed or not self.breakpoints:
            return False
        for number, hit in list(self.breakpoints.items()):
            if self._hits(life, number, hit, head[0]):
                self.hold(life.cell, f"breakpoint {number}")
                self._is_held()
                return True
        return False

    def _is_held(self) -> None:
        self.end_step()
        if self.held is not None:
            self.held.set()
            self.held = None

    def _hits(self, life: Life, number: int, hit: Predicate, message: object) -> bool:
        # Who looks must not hurt what is looked at: truth is asked for here as well.
        answer: list[bool] = []
        error = raised_by(lambda: answer.append(bool(hit(message))))
        if error is None:
            return answer[0]
        self.breakpoints.pop(number, None)
        life.cell.system.report(
            Note.HOOK_FAILED, self.path, f"breakpoint {number} removed: {said(error, repr)}"
        )
        return False

    def hold(self, cell: Cell, why: str) -> None:
        """Handle no further message until resumed; sync."""
        if not self.suspended:
            self.suspended = True
            self.suspended_at = cell.system.now()
            self._emit(cell, TraceKind.HELD, why)

    def release(self, cell: Cell) -> None:
        """Go on, past the breakpoint that holds it now; sync."""
        if self.suspended:
            self.suspended = False
            self._passed = cell.mailbox.peek()
            self.end_step()
            self._emit(cell, TraceKind.RESUMED, None)

    async def run_errands(self, life: Life) -> None:
        """Do what waits to be done between two messages, paused or not."""
        while self.errands:
            errand = self.errands.popleft()
            errand.begun = True
            try:
                await errand.do(life.actor)
                errand.ran = True
            except Exception as error:  # noqa: BLE001 who looks must not hurt what is looked at
                words = f"an errand failed: {said(error, repr)}"
                life.cell.system.report(Note.HOOK_FAILED, self.path, words)
            finally:
                errand.over.set()

    def wrapped(self, handle: Handle) -> Handle:
        """What is to handle the message in hand."""
        wrap, self.wrap = self.wrap, None
        return handle if wrap is None else wrap(handle)

    async def before(self, life: Life, envelope: Envelope) -> None:
        """The message is in hand, not handled yet."""
        self._passed = None
        now = self._began = life.cell.system.now()
        if self.recent is not None:
            self.recent.append((now, envelope[0]))
        self._emit(life.cell, TraceKind.MESSAGE, envelope[0], call=_is_call(envelope))
        if self.faults is not None:
            await self.faults.before(life)

    async def after(self, life: Life, envelope: Envelope) -> None:
        """The message has been handled."""
        if self.sinks:
            took = life.cell.system.now() - self._began
            self._emit(
                life.cell, TraceKind.HANDLED, envelope[0], call=_is_call(envelope), took=took
            )
        if self.allowance:
            self.allowance -= 1
            self.stepped += 1
            if not self.allowance:
                self.end_step()
        if self.faults is not None:
            await self.faults.after(life)

    def began(self, cell: Cell) -> None:
        """A new incarnation."""
        self._emit(cell, TraceKind.STARTED, None)

    def ended(self, cell: Cell, exit: Exit) -> None:
        """The incarnation is over."""
        self.end_step()
        for errand in self.errands or ():
            errand.over.set()
        self.errands = None
        self._emit(cell, TraceKind.ENDED, exit)

    def end_step(self) -> None:
        """Nothing more will be stepped over."""
        self.allowance = 0
        if self.stepping is not None:
            self.stepping.set()
            self.stepping = None

    # ---- the trace ------------------------------------------------------------------------------

    def _emit(
        self, cell: Cell, kind: TraceKind, message: object, *, call: bool = False, took: float = 0.0
    ) -> None:
        if not self.sinks:
            return
        now = cell.system.now()
        event = TraceEvent(now, cell.path, cell.incarnation, kind, message, call, took)
        for number, sink in list(self.sinks.items()):
            error = raised_by(partial(sink, event))
            if error is not None:
                self.sinks.pop(number, None)
                cell.system.report(
                    Note.HOOK_FAILED, self.path, f"trace sink {number} removed: {said(error, repr)}"
                )


def _is_call(envelope: Envelope) -> bool:
    return envelope[3] is not None and not isinstance(envelope[3], Receipt)
