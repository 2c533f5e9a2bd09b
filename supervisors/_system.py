"""One tree as a whole: what every actor in it shares.

Its registry, its clock, its random source, and where reports go. `_run` builds it and runs it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from functools import partial
from random import Random
from typing import Any, Protocol

import attrs
import trio
from msgspec import Struct

from supervisors._cell import Life
from supervisors._contain import raised_by
from supervisors._driver import ChildInfo, Driver, SupervisorStats
from supervisors._events import Note
from supervisors._exits import Crash, Exit, ExitKind
from supervisors._links import Broken, Down, Monitor
from supervisors._probe import Probe, Strike
from supervisors._ref import Ref
from supervisors._registry import Registry
from supervisors._spec import ChildSpec
from supervisors.errors import NoSuchChild


class Report(Struct, frozen=True):
    """Something that happened to an actor, and what happens next. `at` in trio's seconds."""

    at: float
    note: Note
    path: str
    incarnation: int
    text: str
    next: str = ""
    exit: Exit | None = None


class Faults(Protocol):
    """What a fault plan offers to a tree."""

    def strike_for(self, path: str) -> Strike | None:
        """What may hit the actor at `path`; None for nothing, ever."""

    def installed(self, report: Callable[[Note, str, str], None]) -> None:
        """Where to report what was injected."""


class System:
    """A running tree. Made by `run_tree` or `running`, not by users."""

    def __init__(
        self,
        *,
        seed: int = 0,
        report: Callable[[Report], None] | None = None,
        keep: int = 0,
        faults: Faults | None = None,
    ) -> None:
        self.registry = Registry()
        #: Where all jitter comes from; seeded, so that a run can be repeated.
        self.random = Random(seed)
        #: trio's clock; the bound method, because it is read for every message.
        self.now: Callable[[], float] = trio.lowlevel.current_clock().current_time
        self._sink = report
        self._keep = keep
        self._faults = faults
        self._numbers = 0
        self._root: Driver | None = None
        self._leave: Callable[[str], None] = lambda _reason: None
        self._drop: Callable[[str], None] = lambda _reason: None
        if faults is not None:
            faults.installed(self.report)

    # ---- finding --------------------------------------------------------------------------------

    def ref(self, path: str) -> Ref[Any]:
        """A ref to `path`, whether or not somebody is there yet. Sync."""
        return Ref(self, path)

    async def wait_for(self, path: str) -> Ref[Any]:
        """Wait until an actor at `path` is up, and give its ref. A checkpoint."""
        return Ref(self, (await self.registry.wait_for(path)).path)

    def supervisor(self, path: str = "") -> SupervisorRef:
        """A handle on the supervisor at `path`; the root for ``""``. Sync, never fails."""
        return SupervisorRef(self, path)

    def driver(self, path: str) -> Driver:
        """The running supervisor at `path`. Raises `NoSuchChild` when there is none now."""
        cell = self.registry.get(path)
        driver = self._root if not path else cell.driver if cell is not None else None
        if driver is None:
            raise NoSuchChild(f"{path or 'root'}: no supervisor runs there")
        return driver

    def stop(self, reason: str = "asked to stop") -> None:
        """Ask the whole tree for an ordered stop, bounded by the ``stop_within`` it runs with.

        Sync; `run_tree` returns when it is done. Again is harmless, and does not extend the time.
        """
        self._leave(reason)

    def drop(self, reason: str = "dropped") -> None:
        """Cancel every task where it stands: no actor is asked, and none stops in order.

        Sync; what the end of the process would do, for those who want to see what is left then.
        """
        self._drop(reason)

    def set_root(
        self, root: Driver, leave: Callable[[str], None], drop: Callable[[str], None]
    ) -> None:
        """The root supervisor and the ways to stop it, once, before it runs."""
        assert self._root is None
        self._root = root
        self._leave = leave
        self._drop = drop

    @property
    def stopping(self) -> bool:
        """Whether the whole tree is on its way down."""
        return self._root is not None and self._root.policy.closing

    # ---- monitors and links ---------------------------------------------------------------------

    def monitor(self, path: str, tell: Callable[[Down], None]) -> Monitor:
        """Call `tell` once when the actor at `path` ends; at once when nobody runs there.

        Sync. `tell` runs in the middle of things: it must not wait, and what it raises is reported
        and hurts nobody.
        """
        self._numbers += 1
        number = self._numbers
        cell = self.registry.get(path)
        if cell is None or cell.life is None:
            last = cell.last_exit if cell is not None else None
            down = Down(path, number, last or Exit(ExitKind.LOST, "no actor at this path"))
            error = raised_by(partial(tell, down))
            if error is not None:
                self.hook_failed(path, "a monitor", error)
            return Monitor(number, path, lambda: None)
        watchers = cell.watch()
        watchers.add(number, lambda exit: tell(Down(path, number, exit)))
        return Monitor(number, path, lambda: watchers.remove(number))

    def link(self, life: Life, path: str) -> None:
        """Link a life with the actor at `path`; see `Actor.link`."""
        cell = self.registry.get(path)
        other = cell.life if cell is not None else None
        if cell is None or other is None:
            last = cell.last_exit if cell is not None else None
            self._break(life, path, last or Exit(ExitKind.LOST, "no actor at this path"))
            return
        if other is life or (life.links is not None and other in life.links):
            return
        self._link_one_way(life, other)
        self._link_one_way(other, life)

    def _link_one_way(self, ending: Life, dying: Life) -> None:
        """When the life `ending` ends, the life `dying` is to die."""
        number = self.number()
        ends = ending.cell
        if dying.links is None:
            dying.links = set()
        dying.links.add(ending)

        def undo() -> None:
            if ends.watchers is not None:
                ends.watchers.remove(number)

        def broken(exit: Exit) -> None:
            dying.unsubscribe(undo)
            if dying.links is not None:
                dying.links.discard(ending)
            # In an ordered stop of everything each actor gets its turn and its grace.
            if exit.kind is not ExitKind.NORMAL and not self.stopping:
                self._break(dying, ends.path, exit)

        # The one that dies takes its wish to know along, so `broken` never finds it dead.
        dying.subscribe(undo)
        ends.watch().add(number, broken)

    def _break(self, life: Life, path: str, exit: Exit) -> None:
        if life.actor is not None and life.actor.traps_links:
            life.cell.mailbox.push_urgent(Broken(path, exit))
        else:
            life.kill(ExitKind.LINKED, f"link to {path}: {exit}")

    # ---- looking --------------------------------------------------------------------------------

    def report(
        self, note: Note, path: str, text: str, next: str = "", exit: Exit | None = None
    ) -> None:
        """Hand a report to the sink; a sink that raises is taken out."""
        if self._sink is None:
            return
        cell = self.registry.get(path)
        incarnation = cell.incarnation if cell is not None else 0
        report = Report(self.now(), note, path, incarnation, text, next, exit)
        # Who looks must not hurt what is looked at.
        if raised_by(partial(self._sink, report)) is not None:
            self._sink = None

    def hook_failed(self, path: str, what: str, error: BaseException) -> None:
        """Report what a hook raised."""
        self.report(Note.HOOK_FAILED, path, f"{what} failed: {Crash(error).text}")

    def new_probe(self, path: str) -> Probe | None:
        """What a new path is looked at with from its start, if anything."""
        strike = self._faults.strike_for(path) if self._faults is not None else None
        if strike is None and not self._keep:
            return None
        probe = Probe(path)
        probe.faults = strike
        if self._keep:
            probe.recent = deque(maxlen=self._keep)
        return probe

    def number(self) -> int:
        """A number nobody else in this tree got."""
        self._numbers += 1
        return self._numbers

    @staticmethod
    def where(life: Life) -> str:
        """Where a life's task waits now: innermost frame last, as ``function (file:line)``."""
        return " > ".join(await_frames(life.task)) or "not started"


def await_frames(task: trio.lowlevel.Task | None) -> list[str]:
    """Where a task waits, outermost first, as ``function (file:line)``."""
    if task is None or task.coro.cr_frame is None:
        return []
    return [
        f"{frame.f_code.co_name} ({frame.f_code.co_filename.rpartition('/')[2]}:{line})"
        for frame, line in task.iter_await_frames()
    ]


@attrs.frozen
class SupervisorRef:
    """The supervisor at a path; keeps working over its restarts.

    Everything async here is a checkpoint, and raises `NoSuchChild` when no supervisor runs there
    and `ActorGone` when it stops first. Cancelled means: nobody waits, the wish itself stands.
    """

    _system: System = attrs.field(repr=False)
    path: str

    async def start_child(self, spec: ChildSpec) -> Ref[Any]:
        """Start a new child and wait until it is ready.

        Raises `SpecError` for a spec or id that does not fit, `NameTaken` for its path, and
        `StartFailed` when it ended instead; then the spec is forgotten.
        """
        driver = self._system.driver(self.path)
        wish = driver.add(spec)
        path = driver.cells[spec.id].path
        await wish.wait()
        return Ref(self._system, path)

    async def stop_child(self, id: str, reason: str = "stopped by hand") -> Exit:
        """Bring a child down, to stay down, and say how it ended.

        A restart by hand that comes while it stops is done after the stop, as if it had come then.
        """
        exit = await self._system.driver(self.path).stop_child(id, reason).wait()
        return exit or Exit(ExitKind.STOPPED, reason)

    async def restart_child(self, id: str) -> Ref[Any]:
        """Stop it if it is up, with its group; start it, parked or not, its intensity forgotten.

        A temporary child too; those of its group are forgotten, as in any restart of the group.
        Raises `StartFailed` when it does not come up.
        """
        driver = self._system.driver(self.path)
        wish = driver.restart_child(id)
        path = driver.cells[id].path
        await wish.wait()
        return Ref(self._system, path)

    def which_children(self) -> tuple[ChildInfo, ...]:
        """All children in start order. Sync."""
        return self._system.driver(self.path).info()

    def statistics(self) -> SupervisorStats:
        """Its figures. Sync."""
        return self._system.driver(self.path).statistics()
