"""The policy alone: events in, commands out, no task and no clock."""

from __future__ import annotations

import math
from random import Random

import pytest

from supervisors import (
    Actor,
    AutoShutdown,
    Backoff,
    Beyond,
    ChildSpec,
    Exit,
    ExitKind,
    Intensity,
    Restart,
    Shutdown,
    Strategy,
    SupervisorSpec,
)
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
from supervisors._policy import Policy

Idle = Actor[object]
CRASH = Exit(ExitKind.CRASHED, "bang")
NORMAL = Exit(ExitKind.NORMAL)
STOPPED = Exit(ExitKind.STOPPED)
STEADY = Backoff(first=1.0, factor=2.0, cap=8.0, jitter=0.0, reset_after=100.0)


class Driven:
    """A policy, a hand-moved clock, and children that do as they are told."""

    def __init__(self, *children: ChildSpec, **spec: object) -> None:
        options = {"intensity": Intensity(5, 1000.0), "backoff": STEADY, **spec}
        self.policy = Policy(SupervisorSpec(children, **options), Random(0))  # type: ignore[arg-type]
        self.now = 0.0
        self.log: list[str] = []
        self.end: Command | None = None
        self.settled: list[Settle] = []
        self.told: list[Tell] = []
        #: Children that do not become ready, or do not stop, by themselves.
        self.slow: set[str] = set()
        self.stubborn: set[str] = set()

    def feed(self, event: Event) -> list[Command]:
        commands = self.policy.handle(event, self.now)
        assert self.policy.wake_at > self.now
        for command in commands:
            match command:
                case Start(id=id):
                    self.log.append(f"start {id}")
                case AskStop(id=id):
                    self.log.append(f"stop {id}")
                case Cancel(id=id):
                    self.log.append(f"cancel {id}")
                case Settle():
                    self.settled.append(command)
                case Tell():
                    self.told.append(command)
                case Done() | GiveUp():
                    self.end = command
        for command in commands:
            match command:
                case Start(id=id) if id not in self.slow:
                    self.feed(ChildReady(id))
                case AskStop(id=id) | Cancel(id=id) if id not in self.stubborn:
                    self.feed(ChildExit(id, STOPPED))
        return commands

    def boot(self) -> Driven:
        self.feed(Boot())
        self.log.clear()
        return self

    def crash(self, id: str, exit: Exit = CRASH) -> None:
        self.feed(ChildExit(id, exit))

    def wait(self, seconds: float) -> None:
        """Let time pass, ticking at every timer on the way."""
        until = self.now + seconds
        while self.end is None and self.policy.wake_at <= until:
            self.now = self.policy.wake_at
            self.feed(Tick())
        self.now = until

    def phases(self) -> dict[str, str]:
        return {id: child.phase.value for id, child in self.policy.children.items()}

    def takes(self) -> list[str]:
        """What has happened since last asked."""
        taken, self.log = self.log, []
        return taken


def specs(restart: Restart = Restart.PERMANENT) -> tuple[ChildSpec, ...]:
    return tuple(ChildSpec(id, Idle, restart=restart) for id in "abc")


def test_children_start_in_order_each_after_the_one_before_is_ready() -> None:
    tree = Driven(*specs())
    tree.slow = {"b"}
    tree.feed(Boot())
    assert tree.takes() == ["start a", "start b"]
    tree.feed(ChildReady("b"))
    assert tree.takes() == ["start c"]


def test_children_stop_in_reverse_order_one_at_a_time() -> None:
    tree = Driven(*specs()).boot()
    tree.stubborn = {"b"}
    tree.feed(StopAll("enough"))
    assert tree.takes() == ["stop c", "stop b"]
    assert tree.end is None
    tree.feed(ChildExit("b", STOPPED))
    assert tree.takes() == ["stop a"]
    assert tree.end == Done("enough")


#: What is stopped and what is started when the middle one of three fails.
GROUPS = {
    Strategy.ONE_FOR_ONE: ([], ["start b"]),
    Strategy.REST_FOR_ONE: (["stop c"], ["start b", "start c"]),
    Strategy.ONE_FOR_ALL: (["stop c", "stop a"], ["start a", "start b", "start c"]),
}


@pytest.mark.parametrize("strategy", Strategy)
@pytest.mark.parametrize("restart", Restart)
@pytest.mark.parametrize("exit", [CRASH, NORMAL], ids=["abnormal", "normal"])
def test_every_strategy_by_every_restart_kind(
    strategy: Strategy, restart: Restart, exit: Exit
) -> None:
    tree = Driven(*specs(restart), strategy=strategy).boot()
    tree.crash("b", exit)
    stops, starts = GROUPS[strategy]
    again = restart is Restart.PERMANENT or (restart is Restart.TRANSIENT and exit is CRASH)
    assert tree.takes() == (stops if again else [])
    tree.wait(0.999)
    assert tree.takes() == []
    tree.wait(0.001)
    assert tree.takes() == (starts if again else [])
    if again:
        assert set(tree.phases().values()) == {"up"}
    elif restart is Restart.TEMPORARY:
        assert tree.phases() == {"a": "up", "c": "up"}
    else:
        assert tree.phases() == {"a": "up", "b": "down", "c": "up"}


def test_temporary_members_of_a_group_are_stopped_and_forgotten() -> None:
    tree = Driven(
        ChildSpec("a", Idle, restart=Restart.TEMPORARY),
        ChildSpec("b", Idle),
        strategy=Strategy.ONE_FOR_ALL,
    ).boot()
    tree.crash("b")
    tree.wait(1)
    assert tree.takes() == ["stop a", "start b"]
    assert tree.phases() == {"b": "up"}


def test_a_group_restart_costs_one_unit_of_intensity() -> None:
    tree = Driven(*specs(), strategy=Strategy.ONE_FOR_ALL, intensity=Intensity(2, 100.0)).boot()
    for _ in range(2):
        tree.crash("a")
        tree.wait(10)
    assert tree.end is None
    assert tree.policy.restarts_counted == 2


def test_a_sibling_that_fails_while_its_group_goes_down_is_not_counted() -> None:
    tree = Driven(*specs(), strategy=Strategy.ONE_FOR_ALL, intensity=Intensity(1, 100.0)).boot()
    tree.stubborn = {"c"}
    tree.crash("b")
    tree.crash("a")
    tree.feed(ChildExit("c", CRASH))
    tree.wait(1)
    assert tree.takes() == ["stop c", "start a", "start b", "start c"]
    assert tree.end is None


def test_an_earlier_sibling_that_fails_during_a_group_restart_widens_the_group() -> None:
    tree = Driven(*specs(), strategy=Strategy.REST_FOR_ONE).boot()
    tree.crash("c")
    tree.crash("a")
    assert tree.takes() == ["stop b"]
    tree.wait(2)
    assert tree.takes() == ["start a", "start b", "start c"]


def test_a_failed_start_within_a_group_restart_is_tried_again_and_counted() -> None:
    tree = Driven(*specs(), strategy=Strategy.REST_FOR_ONE, intensity=Intensity(2, 100.0)).boot()
    tree.crash("b")
    tree.slow = {"b"}
    tree.wait(1)
    tree.crash("b")
    assert tree.takes() == ["stop c", "start b"]
    assert tree.settled[-1].exit is not None
    assert tree.settled[-1].exit.kind is ExitKind.START_FAILED
    tree.slow = set()
    tree.wait(2)
    assert tree.takes() == ["start b", "start c"]
    assert tree.policy.restarts_counted == 2


# ---- intensity, backoff, escalation, parking ----------------------------------------------------


@pytest.mark.parametrize(("pause", "gives_up"), [(10.0, True), (10.001, False)])
def test_a_restart_exactly_one_period_old_still_counts(pause: float, gives_up: bool) -> None:
    tree = Driven(
        *specs(),
        intensity=Intensity(2, 10.0),
        backoff=Backoff(first=0.0, cap=0.0, jitter=0.0),
    ).boot()
    tree.crash("a")
    tree.now = 5.0
    tree.crash("a")
    assert tree.end is None
    tree.now = pause
    tree.crash("a")
    assert (tree.end is not None) is gives_up


def test_the_backoff_doubles_to_its_cap_and_starts_over_after_a_good_while() -> None:
    tree = Driven(*specs(), intensity=Intensity(100, 1e6)).boot()
    waits = []
    for _ in range(6):
        tree.crash("a")
        waits.append(tree.policy.wake_at - tree.now)
        tree.wait(waits[-1])
    assert waits == [1, 2, 4, 8, 8, 8]
    tree.wait(99.0)
    tree.crash("a")
    assert tree.policy.wake_at - tree.now == 8
    tree.wait(8 + 100.0)
    tree.crash("a")
    assert tree.policy.wake_at - tree.now == 1


def test_jitter_comes_from_the_seed_alone() -> None:
    def waits(seed: int) -> list[float]:
        spec = SupervisorSpec(specs(), backoff=Backoff(jitter=0.5))
        policy = Policy(spec, Random(seed))
        policy.handle(Boot(), 0.0)
        policy.handle(ChildReady("a"), 0.0)
        policy.handle(ChildExit("a", CRASH), 0.0)
        return [policy.wake_at]

    assert waits(1) == waits(1) != waits(2)


def test_beyond_its_intensity_a_supervisor_stops_its_children_and_gives_up() -> None:
    tree = Driven(*specs(), intensity=Intensity(1, 100.0)).boot()
    tree.crash("a")
    tree.wait(1)
    tree.takes()
    tree.crash("b")
    assert tree.takes() == ["stop c", "stop a"]
    assert isinstance(tree.end, GiveUp)
    assert "more than 1 restarts" in tree.end.reason
    assert tree.end.exits == (CRASH, CRASH)


@pytest.mark.parametrize("strategy", Strategy)
def test_a_parked_child_stays_down_alone_until_it_is_restarted_by_hand(strategy: Strategy) -> None:
    tree = Driven(
        *specs(), strategy=strategy, intensity=Intensity(1, 100.0), beyond=Beyond.PARK
    ).boot()
    tree.crash("b")
    tree.wait(1)
    tree.takes()
    tree.crash("b")
    tree.wait(1000)
    assert tree.takes() == []
    assert tree.phases() == {"a": "up", "b": "parked", "c": "up"}
    assert tree.settled[-1] == Settle("b", Settled.PARKED, CRASH)
    tree.feed(RestartChild("b"))
    assert tree.takes() == ["start b"]
    tree.crash("b")  # its intensity was forgotten with the restart by hand
    tree.wait(1)
    assert tree.phases() == {"a": "up", "b": "up", "c": "up"}


def test_parking_counts_each_child_for_itself() -> None:
    tree = Driven(*specs(), intensity=Intensity(1, 100.0), beyond=Beyond.PARK).boot()
    for id in "abc":
        tree.crash(id)
    tree.wait(1)
    assert set(tree.phases().values()) == {"up"}


def test_a_parked_supervisor_boots_past_a_child_that_does_not_start() -> None:
    tree = Driven(*specs(), intensity=Intensity(0, 1.0), beyond=Beyond.PARK)
    tree.slow = {"a"}
    tree.feed(Boot())
    tree.crash("a")
    assert tree.phases() == {"a": "parked", "b": "up", "c": "up"}


def test_a_start_that_fails_while_booting_is_fatal() -> None:
    tree = Driven(*specs())
    tree.slow = {"b"}
    tree.feed(Boot())
    tree.crash("b")
    assert tree.takes() == ["start a", "start b", "stop a"]
    assert isinstance(tree.end, GiveUp)
    assert "b failed to start" in tree.end.reason


# ---- deadlines ----------------------------------------------------------------------------------


def test_a_child_that_is_not_ready_in_time_is_cancelled_and_counts_as_failed() -> None:
    tree = Driven(ChildSpec("a", Idle, start_within=3.0), beyond=Beyond.PARK)
    tree.slow = tree.stubborn = {"a"}
    tree.feed(Boot())
    tree.wait(2.9)
    assert tree.takes() == ["start a"]
    tree.wait(0.1)
    assert tree.takes() == ["cancel a"]
    tree.crash("a", STOPPED)
    assert tree.settled[-1].exit == Exit(ExitKind.START_FAILED, "not ready within 3.0 s")
    assert tree.phases() == {"a": "waiting"}


def test_stop_asks_then_cancels_then_reports_stuck_and_never_goes_on_without_it() -> None:
    tree = Driven(
        ChildSpec("a", Idle), ChildSpec("b", Idle, shutdown=Shutdown(grace=5.0, stuck_after=2.0))
    ).boot()
    tree.stubborn = {"b"}
    tree.feed(StopAll("enough"))
    tree.wait(4.9)
    assert tree.takes() == ["stop b"]
    tree.wait(0.1)
    assert tree.takes() == ["cancel b"]
    tree.wait(100)
    assert [tell.note for tell in tree.told] == [Note.STUCK]
    assert tree.takes() == []
    assert tree.end is None
    tree.feed(ChildExit("b", STOPPED))
    assert tree.takes() == ["stop a"]
    assert tree.end == Done("enough")


def test_no_grace_means_cancel_at_once_and_no_limit_means_never() -> None:
    tree = Driven(
        ChildSpec("a", Idle, shutdown=Shutdown(grace=None)),
        ChildSpec("b", Idle, shutdown=Shutdown(grace=0)),
    ).boot()
    tree.stubborn = {"a"}
    tree.feed(StopAll("enough"))
    tree.wait(1e9)
    assert tree.takes() == ["cancel b", "stop a"]


def test_ready_that_crosses_a_stop_is_ignored() -> None:
    tree = Driven(*specs())
    tree.slow = tree.stubborn = {"a"}
    tree.feed(Boot())
    tree.feed(StopAll("enough"))
    tree.feed(ChildReady("a"))
    assert tree.phases()["a"] == "stopping"
    assert tree.takes() == ["start a", "stop a"]


# ---- by hand ------------------------------------------------------------------------------------


def test_a_child_stopped_by_hand_stays_down_even_when_its_group_restarts() -> None:
    tree = Driven(*specs(), strategy=Strategy.ONE_FOR_ALL).boot()
    tree.feed(StopChild("b", "by hand"))
    tree.crash("a")
    tree.wait(1)
    assert tree.takes() == ["stop b", "stop c", "start a", "start c"]
    assert tree.phases()["b"] == "down"
    tree.feed(RestartChild("b"))
    assert tree.takes() == ["start b"]


def test_a_restart_by_hand_follows_the_strategy_and_is_not_counted() -> None:
    tree = Driven(*specs(), strategy=Strategy.REST_FOR_ONE).boot()
    tree.feed(RestartChild("b"))
    assert tree.takes() == ["stop c", "stop b", "start b", "start c"]
    assert tree.policy.restarts_counted == 0


def test_a_restart_while_stopping_by_hand_changes_its_mind() -> None:
    tree = Driven(*specs()).boot()
    tree.stubborn = {"b"}
    tree.feed(StopChild("b", "by hand"))
    tree.feed(RestartChild("b"))
    tree.feed(ChildExit("b", STOPPED))
    assert tree.takes() == ["stop b", "start b"]


def test_a_restart_by_hand_while_the_group_goes_down_waits_for_the_group() -> None:
    tree = Driven(*specs(), strategy=Strategy.ONE_FOR_ALL).boot()
    tree.stubborn = {"a", "c"}
    tree.feed(StopChild("a", "by hand"))
    tree.crash("b")
    tree.feed(RestartChild("a"))
    tree.feed(ChildExit("a", STOPPED))
    assert tree.takes() == ["stop a", "stop c"]
    tree.feed(ChildExit("c", STOPPED))
    tree.wait(1)
    assert tree.takes() == ["start a", "start b", "start c"]


def test_stopping_a_child_that_waits_for_its_backoff_keeps_it_down() -> None:
    tree = Driven(*specs()).boot()
    tree.crash("a")
    tree.feed(StopChild("a", "by hand"))
    tree.wait(100)
    assert tree.takes() == []
    assert tree.phases()["a"] == "down"


def test_a_dynamic_supervisor_stops_all_together_and_forgets_who_went() -> None:
    tree = Driven(dynamic=True).boot()
    for id in "abc":
        tree.feed(AddChild(ChildSpec(id, Idle, restart=Restart.TRANSIENT)))
    tree.crash("a", NORMAL)
    assert sorted(tree.phases()) == ["b", "c"]
    tree.takes()
    tree.stubborn = {"b", "c"}
    tree.feed(StopAll("enough"))
    assert tree.takes() == ["stop b", "stop c"]
    tree.feed(ChildExit("b", STOPPED))
    tree.feed(ChildExit("c", STOPPED))
    assert tree.end == Done("enough")


def test_a_child_added_by_hand_that_does_not_start_is_dropped_not_retried() -> None:
    tree = Driven(*specs()).boot()
    tree.slow = {"d"}
    tree.feed(AddChild(ChildSpec("d", Idle)))
    tree.crash("d")
    assert "d" not in tree.phases()
    assert tree.settled[-1].where is Settled.FORGOTTEN
    assert tree.policy.restarts_counted == 0


@pytest.mark.parametrize(("auto", "left"), [(AutoShutdown.ANY, 0), (AutoShutdown.ALL, 1)])
def test_a_supervisor_ends_when_its_significant_children_did(auto: AutoShutdown, left: int) -> None:
    tree = Driven(
        ChildSpec("a", Idle, restart=Restart.TRANSIENT, significant=True),
        ChildSpec("b", Idle, restart=Restart.TEMPORARY, significant=True),
        ChildSpec("c", Idle),
        auto_shutdown=auto,
    ).boot()
    tree.crash("a", NORMAL)
    assert (tree.end is None) is bool(left)
    if left:
        tree.crash("b", NORMAL)
    assert isinstance(tree.end, Done)


def test_a_wake_up_is_never_in_the_past() -> None:
    tree = Driven(*specs(), backoff=Backoff(first=0.0, cap=0.0)).boot()
    tree.crash("a")
    assert tree.takes() == ["start a"]
    assert tree.policy.wake_at > tree.now
    assert Policy(SupervisorSpec(), Random(0)).wake_at == math.inf


def test_it_refuses_events_after_its_end() -> None:
    tree = Driven(*specs()).boot()
    tree.feed(StopAll("enough"))
    with pytest.raises(AssertionError):
        tree.feed(Tick())
