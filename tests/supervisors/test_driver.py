"""Trees at work: order, strategies with real tasks, hands on children, shutdown that ends."""

from __future__ import annotations

import pytest
import trio

from supervisors import (
    ActorGone,
    ActorParked,
    Backoff,
    Beyond,
    ChildSpec,
    Exit,
    ExitKind,
    Failure,
    FailureKind,
    Intensity,
    NameTaken,
    NoSuchChild,
    Restart,
    Shutdown,
    SpecError,
    StartFailed,
    Strategy,
    SupervisorSpec,
    running,
)
from supervisors.testing import Deed, check_tree, leak_check, run_seeded
from tests.supervisors._tree import TEMPORARY, Log, fake, tree

GROUPS = {
    Strategy.ONE_FOR_ONE: ["start b"],
    Strategy.REST_FOR_ONE: ["stop c", "start b", "start c"],
    Strategy.ONE_FOR_ALL: ["stop c", "stop a", "start a", "start b", "start c"],
}


@pytest.mark.parametrize("strategy", Strategy)
@pytest.mark.parametrize("restart", Restart)
@pytest.mark.parametrize("deed", [Deed.CRASH, Deed.QUIT])
async def test_every_strategy_by_every_restart_kind(
    strategy: Strategy, restart: Restart, deed: Deed
) -> None:
    log = Log()
    children = [fake(id, log, restart=restart) for id in "abc"]
    async with leak_check(), running(tree(*children, strategy=strategy)) as system:
        await system.wait_for("c")
        b = system.ref("b")
        assert log.take() == ["start a", "start b", "start c"]
        b.cast(deed)
        await trio.sleep(1)
        first = ["crash b"] if deed is Deed.CRASH else ["stop b"]
        again = restart is Restart.PERMANENT or (
            restart is Restart.TRANSIENT and deed is Deed.CRASH
        )
        assert log.take() == first + (GROUPS[strategy] if again else [])
        alive = ["a", "b", "c"] if again else ["a", "c"]
        assert [
            info.id for info in system.supervisor().which_children() if info.since is not None
        ] == alive
        check_tree(system)
    assert log == [f"stop {id}" for id in reversed(alive)]


async def test_a_backoff_delays_the_restart_on_the_clock() -> None:
    log = Log()
    backoff = Backoff(first=1.0, factor=2.0, cap=4.0, jitter=0.0)
    times = []
    spec = tree(fake("a", log), backoff=backoff, intensity=Intensity(9, 100.0))
    async with running(spec) as system:
        a = await system.wait_for("a")
        for _ in range(4):
            at = trio.current_time()
            a.cast(Deed.CRASH)
            await a.call("hello", within=10)
            times.append(trio.current_time() - at)
    assert times == [1, 2, 4, 4]


async def test_escalation_goes_up_one_level_at_a_time() -> None:
    log = Log()
    inner = tree(fake("x", log), fake("y", log), intensity=Intensity(1, 100.0))
    outer = tree(ChildSpec("s", inner), fake("z", log), strategy=Strategy.ONE_FOR_ALL)
    async with running(outer) as system:
        await system.wait_for("z")
        log.take()
        x = system.ref("s/x")
        x.cast(Deed.CRASH)
        await trio.sleep(1)
        assert log.take() == ["crash s/x", "start s/x"]
        x.cast(Deed.CRASH)
        await trio.sleep(1)
        assert log.take() == [
            "crash s/x",
            "stop s/y",
            "stop z",
            "start s/x",
            "start s/y",
            "start z",
        ]


async def test_a_parked_child_answers_with_its_reason_and_can_be_restarted_by_hand() -> None:
    log = Log()
    spec = tree(fake("a", log), fake("b", log), beyond=Beyond.PARK, intensity=Intensity(1, 10.0))
    async with running(spec) as system:
        await system.wait_for("b")
        a = system.ref("a")
        for _ in range(2):
            a.cast(Deed.CRASH)
            await trio.sleep(1)
        failure = await a.attempt("hello", within=99)
        assert isinstance(failure, Failure)
        assert failure.kind is FailureKind.PARKED
        assert failure.reason == "parked: crashed: ValueError: a crashed as told"
        assert failure.crash is not None
        with pytest.raises(ActorParked):
            a.cast("hello")
        assert await system.ref("b").call("hello", within=1) == "hello"
        assert system.supervisor().statistics().parked == 1
        assert await system.supervisor().restart_child("a") == a
        assert await a.call("hello", within=1) == "hello"
        assert trio.current_time() == 2


async def test_a_hand_restart_that_fails_says_so_and_parks_again() -> None:
    spec = tree(
        fake("a", Log(), on_start=Deed.CRASH), beyond=Beyond.PARK, intensity=Intensity(0, 10.0)
    )
    async with running(spec) as system:
        await trio.sleep(1)
        with pytest.raises(StartFailed):
            await system.supervisor().restart_child("a")
        assert system.supervisor().statistics().parked == 1


async def test_messages_that_waited_for_a_parked_child_are_answered() -> None:
    spec = tree(fake("a", Log()), beyond=Beyond.PARK, intensity=Intensity(0, 10.0))
    async with running(spec) as system:
        a = await system.wait_for("a")
        results: list[object] = []

        async def ask() -> None:
            results.append(await a.attempt("hello", within=99))

        a.cast(Deed.CRASH)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(ask)
        assert [failure.kind for failure in results if isinstance(failure, Failure)] == [
            FailureKind.PARKED
        ]


async def test_an_ordered_stop_waits_for_each_child_and_cancels_the_one_that_will_not() -> None:
    log = Log()
    ends: list[tuple[str, float]] = []
    children = [
        fake("a", log),
        fake("b", log, on_stop=Deed.HANG, shutdown=Shutdown(grace=3.0)),
        fake("c", log),
    ]
    async with running(tree(*children)) as system:
        await system.wait_for("c")
        for id in "abc":
            system.monitor(id, lambda down: ends.append((down.path, down.exit.at)))
    assert ends == [("c", 0), ("b", 3), ("a", 3)]


async def test_dynamic_children_stop_together() -> None:
    log = Log()
    async with running(tree(dynamic=True)) as system:
        for n in range(5):
            spec = fake(str(n), log, on_stop=Deed.HANG, shutdown=Shutdown(grace=3.0))
            await system.supervisor().start_child(spec)
    assert trio.current_time() == 3


async def test_dynamic_children_come_and_go() -> None:
    async with running(tree(ChildSpec("d", tree(dynamic=True)))) as system:
        await system.wait_for("d")
        sup = system.supervisor("d")
        ref = await sup.start_child(fake("a", Log()))
        assert ref.path == "d/a"
        with pytest.raises(SpecError):
            await sup.start_child(fake("a", Log()))
        with pytest.raises(NameTaken):
            await sup.start_child(fake("b", Log(), path="d/a"))
        elsewhere = await sup.start_child(fake("c", Log(), path="session/ab/chat/1"))
        assert elsewhere.path == "session/ab/chat/1"
        assert await sup.stop_child("a") == Exit(ExitKind.STOPPED, "stopped by hand")
        with pytest.raises(NoSuchChild):
            await sup.stop_child("a")
        with pytest.raises(NoSuchChild):
            system.supervisor("nobody").which_children()
        assert [info.path for info in sup.which_children()] == ["session/ab/chat/1"]
        with pytest.raises(SpecError, match="never passes"):
            await sup.start_child(fake("e", Log(), backoff=Backoff(first=20.0, cap=30.0)))


async def test_a_static_supervisor_keeps_the_spec_of_a_stopped_child() -> None:
    log = Log()
    async with running(tree(fake("a", log), fake("b", log))) as system:
        await system.wait_for("b")
        sup = system.supervisor()
        await sup.stop_child("a")
        assert [info.phase for info in sup.which_children()] == ["down", "up"]
        await sup.stop_child("a")
        await sup.restart_child("a")
        assert [info.phase for info in sup.which_children()] == ["up", "up"]
        await sup.start_child(fake("c", log, restart=TEMPORARY))
        assert [info.id for info in sup.which_children()] == ["a", "b", "c"]


async def test_wishes_to_a_stopping_supervisor_are_refused() -> None:
    log = Log()
    children = [fake("a", log, on_stop=Deed.HANG, shutdown=Shutdown(grace=3.0))]
    async with running(tree(*children)) as system:
        await system.wait_for("a")
        system.stop()
        for _ in range(2):
            with pytest.raises(ActorGone):
                await system.supervisor().start_child(fake("b", log))
            with pytest.raises(ActorGone):
                await system.supervisor().restart_child("a")
            await trio.sleep(1)


async def test_a_wish_under_way_fails_when_its_supervisor_ends() -> None:
    async with running(tree(ChildSpec("d", tree(dynamic=True)))) as system:
        await system.wait_for("d")
        errors: list[Exception] = []

        async def start() -> None:
            try:
                await system.supervisor("d").start_child(fake("a", Log(), on_start=Deed.HANG))
            except StartFailed as error:
                errors.append(error)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(start)
            await trio.sleep(1)
            await system.supervisor().stop_child("d")
        assert [type(error) for error in errors] == [StartFailed]


@pytest.mark.parametrize("seed", range(6))
def test_a_wish_that_crosses_a_give_up_is_refused(seed: int) -> None:
    async def main() -> None:
        inner = tree(fake("a", Log()), fake("b", Log()), intensity=Intensity(0, 1.0))
        async with running(tree(ChildSpec("s", inner))) as system:
            b = await system.wait_for("s/b")
            supervisor, over, errors = system.supervisor("s"), trio.Event(), []
            system.monitor("s/b", lambda _down: over.set())

            async def wish(what: str) -> None:
                # Woken together with the supervisor, so that either may come first.
                await over.wait()
                try:
                    if what == "start":
                        await supervisor.start_child(fake("c", Log()))
                    else:
                        await supervisor.restart_child("a")
                except (ActorGone, NoSuchChild) as error:
                    errors.append(error)

            async with trio.open_nursery() as nursery:
                for what in ("start", "restart"):
                    nursery.start_soon(wish, what)
                b.cast(Deed.CRASH)
            assert len(errors) == 2
            await trio.sleep(1)
            assert system.registry.under("s") == ["s/a", "s/b"]

    run_seeded(main, seed=seed)


@pytest.mark.parametrize("keep", [0, 1], ids=["alone", "watched"])
async def test_a_busy_actor_still_lets_others_in(keep: int) -> None:
    async with running(tree(fake("a", Log())), keep=keep) as system:
        a = await system.wait_for("a")
        for n in range(200):
            a.cast(n)
        turns = 0
        while (figures := a.statistics()) is not None and figures.depth:
            await trio.lowlevel.checkpoint()
            turns += 1
        assert turns > 3


async def test_a_supervisor_takes_no_messages() -> None:
    async with running(tree(ChildSpec("d", SupervisorSpec()))) as system:
        d = await system.wait_for("d")
        with pytest.raises(ActorGone, match="takes no messages"):
            d.cast("hello")
        failure = await d.attempt("hello", within=1)
        assert isinstance(failure, Failure)
        assert failure.kind is FailureKind.GONE


async def test_children_inherit_nothing_from_whoever_started_them() -> None:
    from contextvars import ContextVar

    from supervisors import Actor

    who: ContextVar[str] = ContextVar("who", default="nobody")

    class Asks(Actor[str]):
        async def handle(self, message: str) -> str:
            return who.get()

    async with running(tree(dynamic=True)) as system:
        who.set("a connection")
        ref = await system.supervisor().start_child(ChildSpec("a", Asks))
        assert await ref.call("who", within=1) == "nobody"
