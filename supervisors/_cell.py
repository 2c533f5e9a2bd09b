"""The place at a path (`Cell`) and one incarnation of the actor that lives there (`Life`).

The cell stays over restarts, so refs, monitors and waiting messages hang on it; everything that
must not survive a crash hangs on the life.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import trio

from supervisors._calls import Reply, Runner
from supervisors._events import Settled
from supervisors._exits import Crash, Exit, ExitKind, said
from supervisors._links import Broken, Down, Watchers
from supervisors._mailbox import Envelope, Mailbox, Shut
from supervisors._spec import ChildSpec, SupervisorSpec, WhileDown
from supervisors.errors import ActorGone, ActorParked, Failure, FailureKind

if TYPE_CHECKING:
    from supervisors._actor import Actor
    from supervisors._driver import Driver
    from supervisors._probe import Probe
    from supervisors._system import System

_SUPERVISOR = Shut(ActorGone, FailureKind.GONE, "a supervisor takes no messages")

#: Where messages are kept for the next incarnation.
_GOES_ON = (Settled.UP, Settled.WAITING, Settled.AGAIN)


class Cell:
    """What there is at one path, whether or not its actor runs just now."""

    __slots__ = (
        "incarnation",
        "last_exit",
        "life",
        "mailbox",
        "parent",
        "path",
        "probe",
        "restarts",
        "runner",
        "settled",
        "spec",
        "system",
        "watchers",
    )

    def __init__(self, system: System, path: str, spec: ChildSpec, parent: str) -> None:
        self.system = system
        self.path = path
        self.spec = spec
        self.parent = parent
        self.mailbox = Mailbox(path, spec.mailbox, system.now)
        if isinstance(spec.start, SupervisorSpec):
            self.mailbox.shut = _SUPERVISOR
        kind = getattr(spec.start, "kind", "actor")
        self.runner = Runner(path, kind if isinstance(kind, str) else "actor")
        self.life: Life | None = None
        self.incarnation = 0
        self.restarts = 0
        #: Where it came to rest last; None until then. For looking, not for deciding.
        self.settled: Settled | None = None
        self.last_exit: Exit | None = None
        self.watchers: Watchers | None = None
        self.probe: Probe | None = system.new_probe(path)

    @property
    def gone(self) -> bool:
        """Whether this cell will never be lived in again."""
        return self.settled is Settled.FORGOTTEN

    @property
    def is_ready(self) -> bool:
        """Whether an incarnation runs that has become ready."""
        return self.life is not None and self.life.is_ready

    def begin(self, incarnation: int, driver: Driver) -> Life:
        """A new life, for the driver to run."""
        assert self.life is None, f"{self.path}: a second incarnation"
        self.restarts += self.incarnation > 0
        self.incarnation = incarnation
        if self.mailbox.shut is not None and self.mailbox.shut is not _SUPERVISOR:
            self.mailbox.reopen()
        self.life = Life(self, driver)
        if self.probe is not None:
            self.probe.began(self)
        return self.life

    def settle(self, where: Settled, exit: Exit | None) -> None:
        """The supervisor has decided; the mailbox follows."""
        self.settled = where
        if self.mailbox.shut is _SUPERVISOR or where in _GOES_ON:
            return
        if where is Settled.PARKED:
            self.close(Shut(ActorParked, FailureKind.PARKED, f"parked: {exit}"))
        else:
            self.close(Shut(ActorGone, FailureKind.GONE, f"ended: {exit}"))

    def close(self, shut: Shut, crash: Crash | None = None) -> None:
        """Shut the mailbox and answer every call that waited in it."""
        for _message, _cost, _at, reply in self.mailbox.close(shut):
            if reply is not None:
                reply.fail(Failure(shut.failure, self.path, shut.why, crash=crash))

    def watch(self) -> Watchers:
        """Its watchers, made when first needed."""
        if self.watchers is None:
            self.watchers = Watchers()
        return self.watchers

    @property
    def is_supervisor(self) -> bool:
        """Whether a supervisor is at this path, running or not."""
        return isinstance(self.spec.start, SupervisorSpec)

    @property
    def driver(self) -> Driver | None:
        """The running supervisor at this path, if it is one."""
        return self.life.supervisor if self.life is not None else None


class Life:
    """One incarnation: its task, what it has in hand, and how it is made to end."""

    __slots__ = (
        "actor",
        "attention",
        "cell",
        "deferred",
        "doom",
        "gave_up",
        "handled",
        "in_hand",
        "is_ready",
        "links",
        "lost",
        "nursery",
        "parent",
        "quit_reason",
        "scope",
        "since",
        "stop_reason",
        "subscriptions",
        "supervisor",
        "task",
    )

    def __init__(self, cell: Cell, parent: Driver) -> None:
        self.cell = cell
        self.parent = parent
        self.scope = trio.CancelScope()
        self.since = cell.system.now()
        self.actor: Actor[Any] | None = None
        self.supervisor: Driver | None = None
        self.task: trio.lowlevel.Task | None = None
        self.nursery: trio.Nursery | None = None
        self.in_hand: Envelope | None = None
        self.handled = 0
        #: Its supervisor asked it to stop.
        self.stop_reason: str | None = None
        #: It wants to end by itself.
        self.quit_reason: str | None = None
        #: Why it was killed, when it was.
        self.doom: Exit | None = None
        self.is_ready = False
        self.lost = False
        self.gave_up = False
        #: Replies it has put off; every one is answered when it ends.
        self.deferred: dict[Reply[Any], None] | None = None
        #: How to undo its monitors and links.
        self.subscriptions: dict[Callable[[], None], None] | None = None
        #: The lives it is linked with, each of which has this one here too.
        self.links: set[Life] | None = None
        #: Invariant: true when a stop is wanted or a probe is in; the message loop tests only this.
        self.attention = cell.probe is not None

    def ready(self) -> None:
        """It is up. Called once, by its body."""
        self.is_ready = True
        self.parent.child_ready(self.cell)

    def ask_stop(self, reason: str) -> None:
        """Ask for an orderly end, between two messages."""
        if self.supervisor is not None:
            self.supervisor.ask_stop(reason)
        else:
            self.stop_reason = said(reason)
            self.attention = True
            self.cell.mailbox.wake()

    def quit(self, reason: str) -> None:
        """End by itself, between two messages."""
        self.quit_reason = said(reason)
        self.attention = True
        self.cell.mailbox.wake()

    def kill(self, kind: ExitKind, reason: str) -> None:
        """End at once: its task and helpers are cancelled; the first reason counts."""
        if self.doom is None:
            self.doom = Exit(kind, reason)
        self.scope.cancel(reason=said(reason))

    def subscribe(self, undo: Callable[[], None]) -> None:
        """It has asked to be told something: call `undo` when it ends before it was told."""
        if self.subscriptions is None:
            self.subscriptions = {}
        self.subscriptions[undo] = None

    def unsubscribe(self, undo: Callable[[], None]) -> None:
        """It has been told, or does not want to be any more."""
        if self.subscriptions is not None:
            self.subscriptions.pop(undo, None)

    def probe_changed(self) -> None:
        """The cell's probe came or went: look at it before the next message."""
        self.attention = (
            self.cell.probe is not None
            or self.stop_reason is not None
            or self.quit_reason is not None
        )
        self.cell.mailbox.wake()

    def end(self, crash: Crash | None, *, finished: bool) -> Exit:
        """The task is over. Sync, so that nobody sees half of it, even in a cancelled scope.

        Order: answer what it owes, then tell the watchers. Whoever reacts to a `Down` finds every
        call answered.
        """
        cell = self.cell
        exit = self._exit(crash, finished=finished)
        cell.last_exit = exit
        cell.life = None
        cell.runner.waits_for = cell.runner.also = None
        cell.runner.deadline = float("inf")
        kind = FailureKind.CRASHED if exit.abnormal else FailureKind.GONE
        failure = Failure(kind, cell.path, exit.detail or exit.kind.value, crash=crash)
        if self.in_hand is not None and self.in_hand[3] is not None:
            self.in_hand[3].fail(failure)
        for reply in list(self.deferred or ()):
            reply.fail(failure)
        if cell.spec.mailbox.while_down is WhileDown.REFUSE and cell.mailbox.shut is None:
            cell.close(Shut(ActorGone, kind, f"down: {exit}"), crash)
        cell.mailbox.discard_urgent(lambda message: type(message) in (Down, Broken))
        for undo in list(self.subscriptions or ()):
            undo()
        if cell.probe is not None:
            cell.probe.ended(cell, exit)
        if cell.watchers is not None:
            watchers, cell.watchers = cell.watchers, None
            for error in watchers.tell(cell.path, exit):
                cell.system.hook_failed(cell.path, "a monitor", error)
        return exit

    def _exit(self, crash: Crash | None, *, finished: bool) -> Exit:
        now = self.cell.system.now()
        caught = self.scope.cancelled_caught
        if self.gave_up:
            kind, reason = ExitKind.GAVE_UP, ""
        elif crash is not None:
            kind, reason = ExitKind.CRASHED, ""
        elif self.lost:
            kind, reason = ExitKind.LOST, "its task vanished"
        elif self.doom is not None:
            kind, reason = self.doom.kind, self.doom.reason
        elif not finished:
            kind, reason = ExitKind.STOPPED, "cancelled from above"
        elif caught or self.stop_reason is not None:
            kind, reason = ExitKind.STOPPED, self.stop_reason or "cancelled"
        else:
            kind, reason = ExitKind.NORMAL, self.quit_reason or ""
        swallowed = finished and crash is None and self.scope.cancel_called and not caught
        return Exit(kind, reason, crash, swallowed and not self.lost, now)
