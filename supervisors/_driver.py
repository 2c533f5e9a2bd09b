"""A supervisor at work: it feeds the policy and does what it says.

One nursery with the children in it; the loop is the nursery's body, and its only wait is "the bell,
at most until the next timer". Children are started from this task alone, so they inherit nothing
from whoever asked for them.

Invariant: no task in the nursery ends with an ordinary exception; `contained` sees to that.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

import trio
from msgspec import Struct

from supervisors._actor import run_actor
from supervisors._cell import Cell, Life
from supervisors._contain import contained
from supervisors._events import (
    AddChild,
    AskStop,
    Boot,
    Cancel,
    ChildExit,
    ChildReady,
    Command,
    Done,
    Event,
    GiveUp,
    Note,
    RestartChild,
    Settle,
    Settled,
    Start,
    StopAll,
    StopChild,
    Tell,
    Tick,
)
from supervisors._exits import Exit, ExitKind, said
from supervisors._policy import Policy
from supervisors._spec import ChildSpec, SupervisorSpec
from supervisors.errors import ActorGone, Bug, GaveUp, NoSuchChild, SpecError, StartFailed

if TYPE_CHECKING:
    from supervisors._system import System


class ChildInfo(Struct, frozen=True):
    """One child at one moment; `since` is when its incarnation started, in trio's seconds."""

    id: str
    path: str
    phase: str
    incarnation: int
    restarts: int
    since: float | None
    last_exit: Exit | None


class SupervisorStats(Struct, frozen=True):
    """Figures of a supervisor at one moment. `counted` restarts weigh on its intensity now."""

    path: str
    children: int
    alive: int
    parked: int
    restarts: int
    counted: int
    closing: bool


class _Wish:
    """Somebody waits for a child to come up (or to go down).

    It goes into the inbox with its event and counts from when that is handled: what becomes of the
    child before has nothing to do with it.
    """

    __slots__ = ("error", "event", "exit", "for_up")

    def __init__(self, *, for_up: bool) -> None:
        self.for_up = for_up
        self.event = trio.Event()
        self.exit: Exit | None = None
        self.error: Exception | None = None

    def settled(self, path: str, settle: Settle) -> bool:
        """Whether this is what it waited for, or the news that it will not come."""
        where, exit = settle.where, settle.exit
        if where is Settled.AGAIN:
            # It did go down. Somebody's later wish brings it up, as if it had come after the stop.
            if self.for_up:
                return False
        elif where is Settled.UP:
            if not self.for_up:
                return False
        elif where is Settled.WAITING and not (self.for_up and exit is not None and exit.abnormal):
            return False
        elif self.for_up:
            self.error = StartFailed(path, exit or Exit(ExitKind.STOPPED))
        self.exit = exit
        self.event.set()
        return True

    def failed(self, error: Exception) -> None:
        """It will not come."""
        self.error = error
        self.event.set()

    async def wait(self) -> Exit | None:
        """Wait for it; raises what went wrong."""
        await self.event.wait()
        if self.error is not None:
            raise self.error
        return self.exit


class Driver:
    """One incarnation of a supervisor."""

    def __init__(self, system: System, path: str, spec: SupervisorSpec) -> None:
        self.path = path
        self.spec = spec
        self.policy = Policy(spec, system.random)
        self.cells: dict[str, Cell] = {}
        self.life: Life | None = None
        self._system = system
        self._inbox: deque[tuple[Event, _Wish | None]] = deque()
        #: Commands that came up outside the loop and are for the loop; they go before the inbox.
        self._ahead: list[Command] = []
        self._wishes: dict[str, list[_Wish]] = {}
        self._sleeper: trio.lowlevel.Task | None = None
        self._outcome: Done | GiveUp | None = None
        self._told_ready = False
        self._stop_asked = False
        self._over = False
        self._restarts = 0

    # ---- posted from elsewhere, all sync --------------------------------------------------------

    def child_ready(self, cell: Cell) -> None:
        """A child of ours says that it is up.

        As a rule there is nothing to do but to tell those who wait, so it is done here and now: a
        turn of the loop for every start would cost a tenth of the start. Everything else is left
        to the loop, in order.
        """
        event = ChildReady(cell.spec.id)
        if self._inbox or self._ahead or self._outcome is not None or not self._told_ready:
            self._post(event)
            return
        for command in self.policy.handle(event, self._system.now()):
            if isinstance(command, Settle) and not self._ahead:
                self._settle(command)
            else:
                self._ahead.append(command)
        if self._ahead:
            self._wake()

    def child_ended(self, cell: Cell, exit: Exit) -> None:
        """A child of ours is over."""
        self._post(ChildExit(cell.spec.id, exit))

    def ask_stop(self, reason: str) -> None:
        """Stop all children in order, then end."""
        self._stop_asked = True
        self._post(StopAll(said(reason)))

    def add(self, spec: ChildSpec) -> _Wish:
        """Take a new child; its path is taken from now on."""
        self._check_open()
        self.spec.check_child(spec)
        if spec.id in self.cells:
            raise SpecError(f"{self.path}: has a child {spec.id!r} already")
        self._make_cell(spec)
        return self._post_wish(AddChild(spec), for_up=True)

    def stop_child(self, id: str, reason: str) -> _Wish:
        """Bring one child down for good."""
        self._check_child(id)
        return self._post_wish(StopChild(id, said(reason)), for_up=False)

    def restart_child(self, id: str) -> _Wish:
        """Bring one child down, if it is up, and up."""
        self._check_open()
        self._check_child(id)
        return self._post_wish(RestartChild(id), for_up=True)

    def _check_open(self) -> None:
        if self.policy.closing or self._stop_asked or self._over:
            raise ActorGone(self.path, "the supervisor is stopping")

    def _check_child(self, id: str) -> None:
        if id not in self.cells:
            raise NoSuchChild(f"{self.path or 'root'}: no child {id!r}")

    def _post_wish(self, event: Event, *, for_up: bool) -> _Wish:
        wish = _Wish(for_up=for_up)
        self._post(event, wish)
        return wish

    def _post(self, event: Event, wish: _Wish | None = None) -> None:
        self._inbox.append((event, wish))
        self._wake()

    def _wake(self) -> None:
        if self._sleeper is not None:
            sleeper, self._sleeper = self._sleeper, None
            trio.lowlevel.reschedule(sleeper)

    # ---- the loop -------------------------------------------------------------------------------

    async def run(self) -> str:
        """Run until stopped (returns the reason) or given up (raises `GaveUp`)."""
        self._inbox.appendleft((Boot(), None))
        try:
            for spec in self.spec.children:
                self._make_cell(spec)
            async with trio.open_nursery() as nursery:
                while self._outcome is None:
                    self._turn(nursery)
                    await self._sleep()
        finally:
            self._clear()
        if isinstance(self._outcome, GiveUp):
            self._system.report(Note.GAVE_UP, self.path, self._outcome.reason, next="escalate")
            raise GaveUp(self.path, self._outcome.reason, self._outcome.exits)
        assert self._outcome is not None
        return self._outcome.reason

    def _turn(self, nursery: trio.Nursery) -> None:
        """Everything that has happened, with one reading of the clock."""
        while self._ahead:
            self._do(self._ahead.pop(0), nursery)
        if self._outcome is not None:
            return
        now = self._system.now()
        policy = self.policy
        if policy.wake_at <= now:
            self._inbox.append((Tick(), None))
        # Only what is here now: what a command posts is for the next turn.
        for _ in range(len(self._inbox)):
            event, wish = self._inbox.popleft()
            if wish is not None:
                assert isinstance(event, (AddChild, StopChild, RestartChild))
                if not self._take(event, wish):
                    continue
            for command in policy.handle(event, now):
                self._do(command, nursery)
            if self._outcome is not None:
                return
        if not self._told_ready and not policy.booting and not policy.closing:
            self._told_ready = True
            if self.life is not None:
                self.life.ready()

    def _take(self, event: AddChild | StopChild | RestartChild, wish: _Wish) -> bool:
        """Let a wish count from now on; false when its child is gone or it comes too late."""
        policy = self.policy
        id = event.spec.id if isinstance(event, AddChild) else event.id
        if policy.closing and not isinstance(event, StopChild):
            if isinstance(event, AddChild):
                self._drop(id)
            wish.failed(ActorGone(self.path, "the supervisor is stopping"))
        elif id not in policy.children and not isinstance(event, AddChild):
            wish.failed(NoSuchChild(f"{self.path or 'root'}: {id!r} is gone"))
        else:
            self._wishes.setdefault(id, []).append(wish)
            return True
        return False

    async def _sleep(self) -> None:
        """Until something is posted, or the next timer; not at all when there is work."""
        if self._inbox or self._ahead or self._outcome is not None:
            return
        wake_at = self.policy.wake_at
        self._sleeper = trio.lowlevel.current_task()
        if wake_at == float("inf"):
            await trio.lowlevel.wait_task_rescheduled(self._abort)
            return
        with trio.CancelScope(deadline=wake_at):
            await trio.lowlevel.wait_task_rescheduled(self._abort)

    def _abort(self, _raise_cancel: object) -> trio.lowlevel.Abort:
        self._sleeper = None
        return trio.lowlevel.Abort.SUCCEEDED

    # ---- commands -------------------------------------------------------------------------------

    def _do(self, command: Command, nursery: trio.Nursery) -> None:
        match command:
            case Start():
                self._start(self.cells[command.id], command.incarnation, nursery)
            case Settle():
                self._settle(command)
            case AskStop() | Cancel():
                life = self.cells[command.id].life
                if life is None:
                    pass  # its exit is in the inbox: whatever we want of it has come true
                elif isinstance(command, AskStop):
                    life.ask_stop(command.reason)
                else:
                    life.scope.cancel(reason=command.reason)
            case Tell():
                self._tell(command)
            case Done() | GiveUp():
                self._outcome = command

    def _start(self, cell: Cell, incarnation: int, nursery: trio.Nursery) -> None:
        life = cell.begin(incarnation, self)
        self._restarts += incarnation > 1
        inner = cell.spec.start
        if isinstance(inner, SupervisorSpec):
            life.supervisor = Driver(self._system, cell.path, inner)
            life.supervisor.life = life
            body = run_supervisor
        else:
            body = run_actor
        self._system.report(Note.STARTED, cell.path, f"incarnation {incarnation}")
        nursery.start_soon(contained, life, body, name=cell.path)

    def _settle(self, settle: Settle) -> None:
        cell = self.cells[settle.id]
        cell.settle(settle.where, settle.exit)
        if settle.where is Settled.UP:
            self._system.registry.announce(cell.path)
        elif settle.where is Settled.FORGOTTEN:
            del self.cells[settle.id]
            self._system.registry.remove(cell)
        wishes = self._wishes.pop(settle.id, None)
        if wishes is not None:
            left = [wish for wish in wishes if not wish.settled(cell.path, settle)]
            if left:
                self._wishes[settle.id] = left

    def _tell(self, tell: Tell) -> None:
        cell = self.cells.get(tell.id)
        path = cell.path if cell is not None else f"{self.path}/{tell.id}"
        text = tell.text
        if tell.note is Note.STUCK and cell is not None and cell.life is not None:
            text = f"{text}; waits at {self._system.where(cell.life)}"
        self._system.report(tell.note, path, text, next=tell.next, exit=tell.exit)

    def _make_cell(self, spec: ChildSpec) -> Cell:
        path = spec.path or (f"{self.path}/{spec.id}" if self.path else spec.id)
        cell = Cell(self._system, path, spec, self.path)
        self._system.registry.add(cell)
        self.cells[spec.id] = cell
        return cell

    # ---- the end --------------------------------------------------------------------------------

    def _drop(self, id: str) -> None:
        cell = self.cells.pop(id)
        cell.settle(Settled.FORGOTTEN, cell.last_exit or Exit(ExitKind.STOPPED, "never started"))
        self._system.registry.remove(cell)

    def _clear(self) -> None:
        """It is over: no path, no mailbox and no wish outlives it. Sync."""
        self._over = True
        for id in list(self.cells):
            if self.cells[id].life is not None:
                raise Bug(f"{self.cells[id].path}: outlived its supervisor")
            self._drop(id)
        wishes = [wish for taken in self._wishes.values() for wish in taken]
        wishes += [wish for _, wish in self._inbox if wish is not None]
        self._wishes.clear()
        for wish in wishes:
            wish.failed(ActorGone(self.path, "the supervisor ended"))

    # ---- looking --------------------------------------------------------------------------------

    def info(self) -> tuple[ChildInfo, ...]:
        """All children, in start order."""
        return tuple(
            ChildInfo(
                id=child.spec.id,
                path=self.cells[child.spec.id].path,
                phase=child.phase.value,
                incarnation=child.incarnation,
                restarts=child.restarts,
                since=life.since if (life := self.cells[child.spec.id].life) is not None else None,
                last_exit=child.last_exit,
            )
            for child in self.policy.children.values()
            if child.spec.id in self.cells  # none any more once it is down
        )

    def statistics(self) -> SupervisorStats:
        """The figures of this moment."""
        phases = [child.phase.value for child in self.policy.children.values()]
        return SupervisorStats(
            path=self.path,
            children=len(phases),
            alive=sum(phase in ("starting", "up", "stopping") for phase in phases),
            parked=phases.count("parked"),
            restarts=self._restarts,
            counted=self.policy.restarts_counted,
            closing=self.policy.closing,
        )


async def run_supervisor(life: Life) -> None:
    """The body of a supervisor that is a child."""
    driver = life.supervisor
    assert driver is not None
    try:
        reason = await driver.run()
    except GaveUp:
        life.gave_up = True
        raise
    life.quit_reason = reason
