"""What a supervisor decides, without a task, a clock or a die of its own.

``handle(event, now) -> [command]``; ``wake_at`` says when a `Tick` is due, always in the future.
Nothing here awaits or reads a clock: `now` and the random source are arguments, so every decision
of a tree can be replayed from a list of events.

Two lists carry all order. *falling*: children to bring down, from the last to the first, one at a
time. *rising*: children to bring up, from the first to the last, each once the one before is
ready, and not before `rise_at`. Booting, group restarts and closing only fill these lists.
"""

from __future__ import annotations

import heapq
import math
from collections import deque
from enum import Enum
from random import Random

import attrs
from msgspec import Struct, field

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
from supervisors._exits import VERDICTS, Exit, ExitKind, Restart, Verdict
from supervisors._spec import (
    AutoShutdown,
    Backoff,
    Beyond,
    ChildSpec,
    Intensity,
    Strategy,
    SupervisorSpec,
)


class Phase(Enum):
    """Where a child is in its life."""

    DOWN = "down"
    STARTING = "starting"
    UP = "up"
    STOPPING = "stopping"
    WAITING = "waiting"  #: for its backoff
    PARKED = "parked"


#: Phases in which a task exists. A tuple: hashing an enum member costs more than three tests.
ALIVE = (Phase.STARTING, Phase.UP, Phase.STOPPING)


class Window(Struct):
    """Times of restarts that still count against an `Intensity`."""

    limit: Intensity
    times: deque[float] = field(default_factory=deque)

    def passed_by(self, now: float) -> bool:
        """Count one restart at `now`; whether that was one too many."""
        self.times.append(now)
        while now - self.times[0] > self.limit.period:
            self.times.popleft()
        return len(self.times) > self.limit.restarts


class Child(Struct, eq=False):
    """What the policy knows about one child."""

    spec: ChildSpec
    order: int
    backoff: Backoff
    phase: Phase = Phase.DOWN
    incarnation: int = 0
    #: Whether it should be up when nothing is going on; a hand stop or a normal end clears it.
    wanted: bool = True
    #: Started by hand and never up yet: a failure is the caller's to handle, not ours.
    fresh: bool = False
    #: To be started again by hand, which a temporary child is too.
    by_hand: bool = False
    #: Cancelled already, by a deadline of its start or its stop.
    cancelled: bool = False
    falling: bool = False
    rising: bool = False
    #: Failures in a row, for the backoff.
    failures: int = 0
    ready_at: float = math.inf
    restarts: int = 0
    #: Invariant: at most one timer is valid for a child, the one with this number.
    timer: int = 0
    #: Counts this child alone; made at its first failure, used when the supervisor parks.
    window: Window | None = None
    last_exit: Exit | None = None


def group_of(strategy: Strategy, failed: Child, children: list[Child]) -> list[Child]:
    """The children restarted when `failed` fails, in start order, itself among them."""
    first = {
        Strategy.ONE_FOR_ONE: failed.order,
        Strategy.REST_FOR_ONE: failed.order,
        Strategy.ONE_FOR_ALL: -1,
    }[strategy]
    last = failed.order if strategy is Strategy.ONE_FOR_ONE else math.inf
    return [child for child in children if first <= child.order <= last]


class Policy:
    """The decisions of one supervisor. Single use: after `GiveUp` or `Done` it refuses events."""

    def __init__(self, spec: SupervisorSpec, random: Random) -> None:
        self.spec = spec
        self.children: dict[str, Child] = {}
        self._random = random
        self._window = Window(spec.intensity)
        self._orders = 0
        self._timers: list[tuple[float, int, str]] = []
        self._timer_numbers = 0
        self._falling: list[Child] = []
        #: In the order in which they start, the first one last.
        self._rising: list[Child] = []
        self._rise_at = -math.inf
        #: The last `_rise_at` that went on the heap, so that it goes there once.
        self._rise_timer = -math.inf
        self._booting = False
        self._closing: str | None = None
        self._giving_up = False
        #: Invariant: number of children in a phase of `ALIVE`.
        self._alive = 0
        self._significant_left = 0
        #: The last ones, as many as are too many.
        self._exits: list[Exit] = []
        self._ended = False
        self._now = 0.0
        self._out: list[Command] = []
        for child in spec.children:
            self._add(child)

    # ---- the way in -----------------------------------------------------------------------------

    def handle(self, event: Event, now: float) -> list[Command]:
        """The commands that follow from `event` at `now` (seconds; never earlier than before)."""
        assert not self._ended, f"{event} after the end"
        self._now = now
        self._dispatch(event)
        self._advance()
        while self.wake_at <= now:
            if self._ended:
                break
            self._fire_due()
            self._advance()
        # Nothing of them is kept: their exits hold on to the frames of what crashed.
        out, self._out = self._out, []
        return out

    @property
    def wake_at(self) -> float:
        """When the next `Tick` is due: strictly after the last `now`, ``inf`` for never.

        A time in the past would keep the driver runnable for ever, and on a mock clock stop time.
        """
        while self._timers and not self._valid(self._timers[0]):
            heapq.heappop(self._timers)
        return self._timers[0][0] if self._timers else math.inf

    @property
    def closing(self) -> bool:
        """Whether it is on its way to the end and starts nothing any more."""
        return self._closing is not None

    @property
    def booting(self) -> bool:
        """Whether the first start of the children is still going on."""
        return self._booting

    @property
    def restarts_counted(self) -> int:
        """Restarts that still count, as of the last one."""
        return len(self._window.times)

    # ---- events ---------------------------------------------------------------------------------

    def _on_boot(self, _event: Boot) -> None:
        self._booting = True
        self._raise_up(list(self.children.values()))

    def _on_ready(self, event: ChildReady) -> None:
        child = self.children[event.id]
        if child.phase is not Phase.STARTING:
            return  # it became ready while it was asked to stop
        self._enter(child, Phase.UP)
        child.fresh = False
        child.ready_at = self._now
        self._out.append(Settle(child.spec.id, Settled.UP))

    def _on_exit(self, event: ChildExit) -> None:
        child = self.children[event.id]
        assert child.phase in ALIVE, f"{event.id}: an exit without a task"
        was, exit = child.phase, event.exit
        if was is Phase.STARTING:
            late = child.cancelled and exit.kind is not ExitKind.CRASHED
            reason = f"not ready within {child.spec.start_within} s" if late else str(exit)
            exit = attrs.evolve(exit, kind=ExitKind.START_FAILED, reason=reason)
        self._enter(child, Phase.DOWN)
        child.last_exit = exit
        if exit.swallowed_cancel:
            self._tell(Note.SWALLOWED_CANCEL, child, "kept a Cancelled to itself and returned")
        if was is Phase.STOPPING or self.closing or child.falling:
            if exit.kind is ExitKind.CRASHED:
                self._tell(Note.EXITED, child, f"while stopping: {exit}", exit=exit)
            self._after_stop(child, exit)
        elif child.fresh:
            self._forget(child, exit)
        else:
            self._unasked(child, exit, starting=was is Phase.STARTING)

    def _on_add(self, event: AddChild) -> None:
        assert not self.closing, "the driver refuses new children while closing"
        child = self._add(event.spec)
        child.fresh = True
        if self._falling or self._rising:
            self._raise_up([child])
        else:
            self._start(child)

    def _on_stop_child(self, event: StopChild) -> None:
        child = self.children[event.id]
        child.wanted = False
        if child.phase in (Phase.STARTING, Phase.UP):
            self._ask_stop(child, event.reason)
        elif child.phase is not Phase.STOPPING:
            self._enter(child, Phase.DOWN)
            self._rest(child, child.last_exit or Exit(ExitKind.STOPPED, event.reason))

    def _on_restart_child(self, event: RestartChild) -> None:
        assert not self.closing, "the driver refuses restarts while closing"
        child = self.children[event.id]
        child.wanted = True
        child.by_hand = True
        child.failures = 0
        child.window = None
        if child.phase in (Phase.STARTING, Phase.UP):
            if self.spec.strategy is Strategy.ONE_FOR_ONE:
                self._ask_stop(child, "restarted by hand")
            else:
                self._regroup(child, 0.0)
        elif child.phase is Phase.STOPPING:
            pass  # wanted again: it is started once it is down
        elif self._falling or self._rising:
            self._enter(child, Phase.DOWN)
            self._raise_up([child])
        else:
            self._start(child)

    def _on_stop_all(self, event: StopAll) -> None:
        if not self.closing:
            self._close(event.reason)

    def _dispatch(self, event: Event) -> None:
        match event:
            case ChildReady():
                self._on_ready(event)
            case ChildExit():
                self._on_exit(event)
            case AddChild():
                self._on_add(event)
            case StopChild():
                self._on_stop_child(event)
            case RestartChild():
                self._on_restart_child(event)
            case StopAll():
                self._on_stop_all(event)
            case Boot():
                self._on_boot(event)
            case Tick():
                pass  # due timers are looked at after every event

    # ---- exits ----------------------------------------------------------------------------------

    def _after_stop(self, child: Child, exit: Exit) -> None:
        """It went down because we wanted it down, for good or for a moment."""
        if self.closing or not child.wanted:
            self._rest(child, exit)
        elif child.spec.restart is Restart.TEMPORARY and not child.by_hand:
            self._forget(child, exit)
        else:
            self._out.append(Settle(child.spec.id, Settled.AGAIN, exit))
            if child.rising or self._falling or self._rising:
                # Started now, while its group goes down, it would be stopped again at once.
                self._raise_up([child])
            else:
                self._start(child)

    def _unasked(self, child: Child, exit: Exit, *, starting: bool) -> None:
        """It went down by itself."""
        if exit.abnormal:
            self._exits.append(exit.without_frames)
            del self._exits[: -self.spec.intensity.restarts - 1]
        verdict = VERDICTS[exit.kind][child.spec.restart]
        if starting and self._booting and self.spec.beyond is Beyond.ESCALATE:
            self._tell(Note.EXITED, child, str(exit), next="the supervisor fails", exit=exit)
            self._rest(child, exit)
            self._close(f"{child.spec.id} failed to start: {exit}", giving_up=True)
        elif verdict is Verdict.RESTART:
            self._restart(child, exit)
        else:
            if exit.abnormal:
                self._tell(Note.EXITED, child, str(exit), next=verdict.value, exit=exit)
            child.wanted = False
            significant = child.spec.significant
            if verdict is Verdict.FORGET:
                self._forget(child, exit)
            else:
                self._rest(child, exit)
            if significant:
                self._significant_ended(child)

    def _restart(self, child: Child, exit: Exit) -> None:
        if self._now - child.ready_at >= child.backoff.reset_after:
            child.failures = 0
        delay = child.backoff.delay(child.failures, self._random.random())
        child.failures += 1
        child.restarts += 1
        limit = self.spec.intensity
        if self.spec.beyond is Beyond.PARK:
            child.window = child.window or Window(limit)
            if child.window.passed_by(self._now):
                self._park(child, exit)
                return
        elif self._window.passed_by(self._now):
            text = f"more than {limit.restarts} restarts in {limit.period} s, last: {exit}"
            self._tell(Note.EXITED, child, str(exit), next="the supervisor gives up", exit=exit)
            self._rest(child, exit)
            self._close(f"{child.spec.id}: {text}", giving_up=True)
            return
        self._tell(Note.RESTARTING, child, str(exit), next=f"restart in {delay:.3f} s", exit=exit)
        self._out.append(Settle(child.spec.id, Settled.WAITING, exit))
        if self.spec.strategy is Strategy.ONE_FOR_ONE:
            self._enter(child, Phase.WAITING)
            self._set_timer(child, delay)
        else:
            self._regroup(child, delay)

    def _park(self, child: Child, exit: Exit) -> None:
        # Siblings are left alone, under any strategy: that is what parking is for.
        self._enter(child, Phase.PARKED)
        self._tell(Note.PARKED, child, str(exit), next="waits for a restart by hand", exit=exit)
        self._out.append(Settle(child.spec.id, Settled.PARKED, exit))

    def _rest(self, child: Child, exit: Exit) -> None:
        """Leave it down; temporary and dynamic children are forgotten with it."""
        if child.spec.restart is Restart.TEMPORARY or self.spec.dynamic:
            self._forget(child, exit)
        else:
            self._out.append(Settle(child.spec.id, Settled.DOWN, exit))

    def _forget(self, child: Child, exit: Exit) -> None:
        assert child.phase is Phase.DOWN
        del self.children[child.spec.id]
        self._significant_left -= child.spec.significant
        child.wanted = False
        self._out.append(Settle(child.spec.id, Settled.FORGOTTEN, exit))

    def _significant_ended(self, child: Child) -> None:
        if child.spec.id in self.children:
            self._significant_left -= 1
        every = self.spec.auto_shutdown is AutoShutdown.ALL
        if not self.closing and not (every and self._significant_left):
            self._close(f"significant child {child.spec.id} ended")

    # ---- order ----------------------------------------------------------------------------------

    def _regroup(self, failed: Child, delay: float) -> None:
        group = group_of(self.spec.strategy, failed, list(self.children.values()))
        self._rise_at = max(self._rise_at, self._now + delay)
        self._bring_down([child for child in group if child.phase in ALIVE])
        self._raise_up(
            [
                child
                for child in group
                if child.wanted
                and child.phase is not Phase.PARKED
                and (child.spec.restart is not Restart.TEMPORARY or child.by_hand)
            ]
        )

    def _bring_down(self, children: list[Child]) -> None:
        for child in children:
            child.falling = True
        self._falling = sorted({*self._falling, *children}, key=lambda child: child.order)

    def _raise_up(self, children: list[Child]) -> None:
        for child in children:
            child.rising = True
        self._rising = sorted({*self._rising, *children}, key=lambda child: -child.order)

    def _close(self, reason: str, *, giving_up: bool = False) -> None:
        self._closing = reason
        self._giving_up = giving_up
        self._rising.clear()
        for child in self.children.values():
            child.rising = False
            if child.phase in (Phase.WAITING, Phase.PARKED):
                self._enter(child, Phase.DOWN)
        alive = [child for child in self.children.values() if child.phase in ALIVE]
        if self.spec.dynamic:
            for child in alive:
                if child.phase is not Phase.STOPPING:
                    self._ask_stop(child, reason)
        else:
            self._bring_down(alive)

    def _advance(self) -> None:
        """Take every step that the two lists allow now."""
        while self._falling:
            child = self._falling[-1]
            if child.phase in (Phase.STARTING, Phase.UP):
                self._ask_stop(child, self._closing or "restarted with its group")
            if child.phase is Phase.STOPPING:
                return
            child.falling = False
            self._falling.pop()
        if self._closing is not None:
            self._finish(self._closing)
            return
        while self._rising:
            if self._now < self._rise_at:
                if self._rise_timer != self._rise_at:
                    self._rise_timer = self._rise_at
                    self._push_timer(self._rise_at, 0, "")
                return
            child = self._rising[-1]
            if child.phase is Phase.DOWN and child.wanted:
                self._start(child)
            if child.phase in (Phase.STARTING, Phase.STOPPING):
                return
            child.rising = False
            self._rising.pop()
        self._booting = False
        self._rise_at = -math.inf

    def _finish(self, reason: str) -> None:
        if self._alive:
            return
        self._ended = True
        if self._giving_up:
            self._out.append(GiveUp(reason, tuple(self._exits)))
        else:
            self._out.append(Done(reason))

    # ---- single children ------------------------------------------------------------------------

    def _add(self, spec: ChildSpec) -> Child:
        assert spec.id not in self.children, f"{spec.id}: a second child of that id"
        self._orders += 1
        child = Child(spec, self._orders, spec.backoff or self.spec.backoff)
        self.children[spec.id] = child
        self._significant_left += spec.significant
        return child

    def _start(self, child: Child) -> None:
        assert child.phase not in ALIVE, f"{child.spec.id}: a second incarnation"
        assert not self.closing, f"{child.spec.id}: started while closing"
        self._enter(child, Phase.STARTING)
        child.incarnation += 1
        child.by_hand = False
        child.cancelled = False
        child.ready_at = math.inf
        self._set_timer(child, child.spec.start_within)
        self._out.append(Start(child.spec.id, child.incarnation))

    def _ask_stop(self, child: Child, reason: str) -> None:
        assert child.phase in (Phase.STARTING, Phase.UP)
        self._enter(child, Phase.STOPPING)
        grace = child.spec.shutdown.grace
        if grace == 0:
            self._cancel(child, reason)
            return
        child.cancelled = False
        self._out.append(AskStop(child.spec.id, reason))
        if grace is not None:
            self._set_timer(child, grace)

    def _cancel(self, child: Child, reason: str) -> None:
        child.cancelled = True
        self._out.append(Cancel(child.spec.id, reason))
        self._set_timer(child, child.spec.shutdown.stuck_after)

    def _enter(self, child: Child, phase: Phase) -> None:
        self._alive += (phase in ALIVE) - (child.phase in ALIVE)
        child.phase = phase
        child.timer = 0  # a phase's timer ends with the phase

    # ---- time -----------------------------------------------------------------------------------

    def _set_timer(self, child: Child, delay: float) -> None:
        if delay == math.inf:
            return
        self._timer_numbers += 1
        child.timer = self._timer_numbers
        self._push_timer(self._now + delay, child.timer, child.spec.id)

    def _push_timer(self, at: float, number: int, id: str) -> None:
        heapq.heappush(self._timers, (at, number, id))

    def _valid(self, timer: tuple[float, int, str]) -> bool:
        at, number, id = timer
        if not number:
            return at == self._rise_at
        child = self.children.get(id)
        return child is not None and child.timer == number

    def _fire_due(self) -> None:
        while self.wake_at <= self._now:
            _at, number, id = heapq.heappop(self._timers)
            if number:  # number 0 is the group's backoff: `_advance` looks at it by itself
                self._due(self.children[id])

    def _due(self, child: Child) -> None:
        child.timer = 0
        if child.phase is Phase.WAITING:
            self._start(child)
        elif not child.cancelled:
            starting = child.phase is Phase.STARTING
            why = f"not ready within {child.spec.start_within} s" if starting else "grace is over"
            if starting:
                self._tell(Note.LATE_START, child, why, next="cancel")
            self._cancel(child, why)
        else:
            self._tell(Note.STUCK, child, "cancelled, and still there", next="wait for it")

    def _tell(
        self, note: Note, child: Child, text: str, *, next: str = "", exit: Exit | None = None
    ) -> None:
        self._out.append(Tell(note, child.spec.id, text, next, exit))
