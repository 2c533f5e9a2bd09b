"""What is asked of a supervisor by hand ends with an answer, whatever comes between."""

from __future__ import annotations

import pytest
import trio

from supervisors import (
    Actor,
    ActorGone,
    ChildSpec,
    ExitKind,
    GaveUp,
    NameTaken,
    NoSuchChild,
    StartFailed,
    Strategy,
    run_tree,
    running,
)
from supervisors.testing import Deed, check_tree, leak_check
from tests.supervisors._tree import TEMPORARY, Log, fake, tree


class Leisurely(Actor[object]):
    """Takes a second to start and one to stop."""

    async def on_start(self) -> None:
        await trio.sleep(1)

    async def handle(self, message: object) -> object:
        if isinstance(message, Exception):
            raise message
        return message

    async def on_stop(self, reason: str) -> None:
        await trio.sleep(1)


@pytest.mark.parametrize("strategy", Strategy)
async def test_a_restart_that_comes_while_a_child_stops_is_done_after_the_stop(
    strategy: Strategy,
) -> None:
    ends: list[tuple[str, float]] = []
    spec = tree(ChildSpec("a", Leisurely), fake("b", Log()), strategy=strategy)
    async with leak_check(), running(spec) as system:
        await system.wait_for("b")
        start = trio.current_time()
        supervisor = system.supervisor()

        async def stop() -> None:
            exit = await supervisor.stop_child("a")
            assert exit.kind is ExitKind.STOPPED
            ends.append(("stop", trio.current_time() - start))

        async def restart() -> None:
            await trio.sleep(0.5)
            await supervisor.restart_child("a")
            ends.append(("restart", trio.current_time() - start))

        with trio.fail_after(60):
            async with trio.open_nursery() as nursery:
                nursery.start_soon(stop)
                nursery.start_soon(restart)
        assert ends == [("stop", 1), ("restart", 2)]
        assert system.ref("a").alive


async def test_stops_and_restarts_in_one_go_all_end_and_the_last_one_counts() -> None:
    done: list[str] = []
    async with leak_check(), running(tree(ChildSpec("a", Leisurely))) as system:
        await system.wait_for("a")
        supervisor = system.supervisor()

        async def stop() -> None:
            await supervisor.stop_child("a")
            done.append("stopped")

        async def restart() -> None:
            try:
                await supervisor.restart_child("a")
                done.append("restarted")
            except StartFailed:
                done.append("stopped again before it was up")

        with trio.fail_after(60):
            async with trio.open_nursery() as nursery:
                for wish in (stop, restart, stop, restart, stop):
                    nursery.start_soon(wish)
                    await trio.testing.wait_all_tasks_blocked()
        assert sorted(done) == ["stopped"] * 3 + ["stopped again before it was up"] * 2
        assert not system.ref("a").alive
        await supervisor.restart_child("a")


async def test_a_restart_does_not_take_an_earlier_crash_for_its_own() -> None:
    async with leak_check(), running(tree(ChildSpec("a", Leisurely))) as system:
        a = await system.wait_for("a")

        async def crash() -> None:
            failure = await a.attempt(ValueError("x"), within=1)
            # The supervisor has not heard of it yet, or just now.
            assert await system.supervisor().restart_child("a") == a, failure

        await crash()
        assert await a.call("hello", within=1) == "hello"


async def test_a_child_that_crashes_while_it_stops_for_a_restart_comes_up_again() -> None:
    spec = fake("a", Log(), on_stop=Deed.CRASH)
    for strategy in Strategy:
        async with running(tree(spec, fake("b", Log()), strategy=strategy)) as system:
            await system.wait_for("b")
            a = await system.supervisor().restart_child("a")
            assert await a.call("hello", within=1) == "hello"


@pytest.mark.parametrize("strategy", Strategy)
async def test_a_temporary_child_is_restarted_by_hand_and_those_of_its_group_are_forgotten(
    strategy: Strategy,
) -> None:
    spec = tree(*(fake(id, Log(), restart=TEMPORARY) for id in "abc"), strategy=strategy)
    async with leak_check(), running(spec) as system:
        await system.wait_for("c")
        supervisor = system.supervisor()
        b = await supervisor.restart_child("b")
        assert b.alive
        left = {
            Strategy.ONE_FOR_ONE: ["a", "b", "c"],
            Strategy.REST_FOR_ONE: ["a", "b"],
            Strategy.ONE_FOR_ALL: ["b"],
        }
        assert [child.id for child in supervisor.which_children()] == left[strategy]
        b.cast(Deed.CRASH)
        await trio.sleep(1)
        assert "b" not in [child.id for child in supervisor.which_children()]


async def test_waiting_for_an_actor_that_is_restarted_by_hand_waits_until_it_is_up() -> None:
    async with running(tree(ChildSpec("a", Leisurely))) as system:
        await system.wait_for("a")
        start = trio.current_time()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(system.supervisor().restart_child, "a")
            await trio.sleep(1.5)
            await system.wait_for("a")
            assert trio.current_time() - start == 2


async def test_waiting_for_an_actor_that_has_just_died_waits_for_its_next_life() -> None:
    async with running(tree(ChildSpec("a", Leisurely))) as system:
        a = await system.wait_for("a")
        start = trio.current_time()
        await a.attempt(ValueError("x"), within=1)
        await system.wait_for("a")
        assert trio.current_time() - start == 1


async def test_a_supervisor_whose_child_finds_its_path_taken_leaves_nothing_behind() -> None:
    inner = tree(fake("k1", Log()), fake("k2", Log(), path="a"))
    async with leak_check(), running(tree(fake("a", Log()), dynamic=True)) as system:
        supervisor = system.supervisor()
        for _ in range(2):
            with pytest.raises(StartFailed, match="NameTaken: a: a live actor has that path"):
                await supervisor.start_child(ChildSpec("n", inner))
        assert system.registry.under("") == ["a"]
        check_tree(system)
        await supervisor.start_child(fake("z", Log(), path="n/k1"))


async def test_a_root_that_cannot_make_its_children_fails_and_takes_no_more() -> None:
    with pytest.raises(NameTaken):
        await run_tree(tree(fake("a", Log()), fake("b", Log(), path="a")))


async def test_nobody_waits_for_a_root_that_is_over() -> None:
    with pytest.RaisesGroup(GaveUp, flatten_subgroups=True):
        async with running(tree(fake("a", Log(), on_start=Deed.CRASH))) as system:
            with trio.CancelScope(shield=True):
                await trio.sleep(1)
                with trio.fail_after(10):
                    with pytest.raises(ActorGone):
                        await system.supervisor().start_child(fake("b", Log()))
                    with pytest.raises(NoSuchChild):
                        await system.supervisor().stop_child("a")
