"""Planned faults: each kind, both ways of planning them, and the way to the shortest plan."""

from __future__ import annotations

import pytest
import trio

from supervisors import ExitKind, Failure, Intensity, Note, Report, running, sys
from supervisors.faults import (
    ALL_KINDS,
    Fault,
    FaultKind,
    Injection,
    Plan,
    PlanFailed,
    check,
    shrink,
)
from supervisors.testing import run_seeded
from tests.supervisors._tree import Log, fake, tree


def plan(*faults: Fault) -> Injection:
    return Injection(Plan(faults))


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize(
    ("kind", "exit", "hook"),
    [
        (FaultKind.KILL, ExitKind.KILLED, True),
        (FaultKind.RAISE, ExitKind.CRASHED, True),
        (FaultKind.CANCEL, ExitKind.KILLED, True),
        (FaultKind.LOSE, ExitKind.LOST, False),
    ],
)
async def test_a_fault_ends_the_actor_at_its_message(
    kind: FaultKind, exit: ExitKind, hook: bool, after: bool
) -> None:
    log = Log()
    reports: list[Report] = []
    injection = plan(Fault(kind, "*", 2, after=after))
    async with running(tree(fake("a", log)), faults=injection, report=reports.append) as system:
        a = await system.wait_for("a")
        assert await a.call("first", within=1) == "first"
        second = await a.attempt("second", within=1)
        assert await a.call("third", within=1) == "third"
        # A cut at the first checkpoint of a handler that has none comes after its reply.
        if after or kind is FaultKind.CANCEL:
            assert second == "second"
        else:
            assert isinstance(second, Failure)
        last = system.supervisor().which_children()[0].last_exit
        assert last is not None
        assert last.kind is exit
        assert ("crash a" in log) is hook
        assert log[-1] == "start a"
    assert [r.text for r in reports if r.note is Note.FAULT] == [str(injection.fired[0])]
    assert injection.fired == [Fault(kind, "a", 2, after=after)]


async def test_a_delay_holds_the_actor_up_and_nobody_else() -> None:
    injection = plan(Fault(FaultKind.DELAY, "a", 1, seconds=5.0))
    async with running(tree(fake("a", Log()), fake("b", Log())), faults=injection) as system:
        b = await system.wait_for("b")
        system.ref("a").cast("held up")
        assert await b.call("hello", within=1) == "hello"
        assert trio.current_time() == 0
        assert await system.ref("a").call("next", within=10) == "next"
        assert trio.current_time() == 5


async def test_a_pattern_counts_the_messages_of_all_paths_it_matches() -> None:
    injection = plan(Fault(FaultKind.RAISE, "x/*", 3))
    children = [fake(id, Log(), path=path) for id, path in (("a", "x/a"), ("b", "x/b"), ("c", "y"))]
    async with running(tree(*children), faults=injection) as system:
        await system.wait_for("y")
        for path in ("x/a", "y", "x/b", "y", "x/b"):
            await system.ref(path).attempt("hello", within=1)
        assert injection.fired == [Fault(FaultKind.RAISE, "x/b", 2)]
        cell = system.ref("y").cell
        assert cell is not None
        assert cell.probe is None


def chaos(seed: int, injection: Injection) -> list[str]:
    """A few actors under fire; what happened, in order."""
    log = Log()

    async def main() -> None:
        spec = tree(*(fake(id, log) for id in "abc"), intensity=Intensity(1000, 1.0))
        async with running(spec, faults=injection, seed=seed) as system:
            await system.wait_for("c")
            for n in range(60):
                ref = system.ref("abc"[n % 3])
                result = await ref.attempt(n, within=5)
                log.append(f"{ref.path} {result}")

    run_seeded(main, seed=seed)
    return log


def test_a_rate_is_repeatable_from_its_seed_and_from_what_fired() -> None:
    def run(injection: Injection) -> tuple[list[str], list[Fault]]:
        return chaos(7, injection), injection.fired

    first = run(Injection(Plan(seed=3, rate=0.2)))
    assert 3 < len(first[1]) < 40
    assert {fault.kind for fault in first[1]} <= set(ALL_KINDS)
    assert run(Injection(Plan(seed=3, rate=0.2))) == first
    assert run(Injection(Plan(tuple(first[1])))) == first
    assert run(Injection(Plan(seed=4, rate=0.2))) != first


def test_a_plan_from_a_seed_is_the_same_every_time() -> None:
    plans = [Plan.from_seed(seed, ["a", "b*"], count=10, within=50) for seed in (1, 1, 2)]
    assert plans[0] == plans[1] != plans[2]
    assert len(plans[0].faults) == 10
    assert {fault.path for fault in plans[0].faults} == {"a", "b*"}
    assert all(1 <= fault.nth <= 50 for fault in plans[0].faults)


def test_a_failing_scenario_is_cut_down_to_what_makes_it_fail() -> None:
    def scenario(injection: Injection) -> None:
        chaos(1, injection)
        struck = {fault.path for fault in injection.fired if fault.kind is FaultKind.KILL}
        if {"a", "b"} <= struck:
            raise LookupError("both were killed")

    kinds = (FaultKind.KILL, FaultKind.RAISE, FaultKind.DELAY)
    with pytest.raises(PlanFailed, match="both were killed") as caught:
        check(scenario, Plan(seed=11, rate=0.6, kinds=kinds))
    shortest = caught.value.shortest
    assert sorted(fault.path for fault in shortest.faults) == ["a", "b"]
    assert {fault.kind for fault in shortest.faults} == {FaultKind.KILL}
    assert "seed 11" in str(caught.value)
    assert "kill at message" in str(caught.value) or "kill after message" in str(caught.value)


def test_a_scenario_that_holds_gives_back_what_struck() -> None:
    injection = check(lambda injection: chaos(1, injection), Plan(seed=5, rate=0.3))
    assert injection.fired


def test_a_failure_that_needs_no_fault_shrinks_to_none() -> None:
    def scenario(_injection: Injection) -> None:
        raise LookupError("always")

    with pytest.raises(PlanFailed) as caught:
        check(scenario, Plan((Fault(FaultKind.KILL, "a", 1), Fault(FaultKind.RAISE, "b", 2))))
    assert caught.value.shortest.faults == ()
    assert "no fault" in str(caught.value.shortest)


def test_shrinking_keeps_to_its_number_of_tries() -> None:
    runs = []

    def fails(plan: Plan) -> bool:
        runs.append(plan)
        return False

    faults = tuple(Fault(FaultKind.KILL, "a", n) for n in range(1, 41))
    assert shrink(Plan(faults), fails, tries=10).faults == faults
    assert len(runs) == 10


async def test_faults_and_looking_share_a_path() -> None:
    injection = plan(Fault(FaultKind.RAISE, "a", 2))
    async with running(tree(fake("a", Log())), faults=injection) as system:
        a = await system.wait_for("a")
        sys.suspend(a)
        a.cast("one")
        a.cast("two")
        assert await sys.step(a, 1) == 1
        sys.resume(a)
        await trio.sleep(1)
        assert sys.inspect(a).incarnation == 2
