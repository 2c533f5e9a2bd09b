"""Monitors tell once; linked actors die together."""

from __future__ import annotations

import pytest
import trio

from supervisors import Actor, Broken, ChildSpec, Down, ExitKind, Restart, running, sys
from supervisors.testing import Deed
from tests.supervisors._tree import TEMPORARY, Log, fake, tree


class Watcher(Actor[object]):
    """Monitors, links, and writes down what comes of it."""

    def __init__(self, log: Log) -> None:
        self.log = log

    async def handle(self, message: object) -> object:
        match message:
            case ("monitor", str(path)):
                self.monitor_of = self.monitor(path)
            case ("demonitor",):
                self.monitor_of.cancel()
            case ("link", str(path)):
                self.link(path)
            case Down(path=path, exit=exit):
                self.log.append(f"down {path} {exit.kind.value}")
            case Broken(path=path, exit=exit):
                self.log.append(f"broken {path} {exit.kind.value}")
        return message

    async def on_crash(self, error: BaseException | None) -> None:
        self.log.append(f"crash {self.path}")


class Trapper(Watcher):
    traps_links = True


@pytest.mark.parametrize(
    ("deed", "kind"), [(Deed.CRASH, "crashed"), (Deed.QUIT, "normal")], ids=["crash", "quit"]
)
async def test_a_monitor_delivers_one_down_with_the_reason(deed: Deed, kind: str) -> None:
    log = Log()
    async with running(tree(fake("a", Log()), ChildSpec("w", Watcher, (log,)))) as system:
        w = await system.wait_for("w")
        await w.call(("monitor", "a"), within=1)
        for _ in range(2):
            system.ref("a").cast(deed)
            await trio.sleep(1)
        assert log == [f"down a {kind}"]


async def test_a_monitor_of_a_dead_path_delivers_at_once() -> None:
    log = Log()
    a = fake("a", Log(), restart=Restart.TRANSIENT)
    async with running(tree(a, ChildSpec("w", Watcher, (log,)))) as system:
        w = await system.wait_for("w")
        await w.call(("monitor", "nobody"), within=1)
        system.ref("a").cast(Deed.QUIT)
        await trio.sleep(1)
        await w.call(("monitor", "a"), within=1)
        await w.call("flush", within=1)
        assert log == ["down nobody lost", "down a normal"]


async def test_no_down_arrives_after_a_monitor_was_taken_back() -> None:
    log = Log()
    async with running(tree(fake("a", Log()), ChildSpec("w", Watcher, (log,)))) as system:
        w = await system.wait_for("w")
        await w.call(("monitor", "a"), within=1)
        await w.call(("demonitor",), within=1)
        sys.kill(system.ref("a"))
        await trio.sleep(1)
        await w.call(("monitor", "a"), within=1)
        sys.suspend(w)
        sys.kill(system.ref("a"))
        await trio.sleep(1)
        w.cast(("demonitor",))
        figures = w.statistics()
        assert figures is not None
        assert figures.urgent == 1
        cell = w.cell
        assert cell is not None
        assert cell.life is not None
        assert isinstance(cell.life.actor, Watcher)
        cell.life.actor.monitor_of.cancel()
        sys.resume(w)
        await trio.sleep(1)
        assert log == []


async def test_a_monitor_dies_with_the_incarnation_that_set_it() -> None:
    log = Log()
    async with running(tree(fake("a", Log()), ChildSpec("w", Watcher, (log,)))) as system:
        w = await system.wait_for("w")
        await w.call(("monitor", "a"), within=1)
        sys.kill(w)
        await trio.sleep(1)
        sys.kill(system.ref("a"))
        await w.call("flush", within=1)
        assert log == ["crash w"]


async def test_the_name_is_settled_and_every_call_answered_when_a_down_comes() -> None:
    async with running(tree(fake("a", Log(), restart=TEMPORARY))) as system:
        a = await system.wait_for("a")
        seen: list[tuple[bool, bool]] = []
        answers: list[object] = []

        async def ask() -> None:
            answers.append(await a.attempt(Deed.HANG, within=99))

        async with trio.open_nursery() as nursery:
            nursery.start_soon(ask)
            await trio.sleep(1)
            cell = a.cell
            assert cell is not None
            assert cell.life is not None
            assert cell.life.in_hand is not None
            reply = cell.life.in_hand[3]
            assert reply is not None
            system.monitor("a", lambda _down: seen.append((reply.done, a.alive)))
            sys.kill(a)
        assert seen == [(True, False)]
        assert len(answers) == 1


@pytest.mark.parametrize("victim", ["a", "w"])
async def test_linked_actors_die_together(victim: str) -> None:
    log = Log()
    other: Log = Log()
    async with running(tree(fake("a", other), ChildSpec("w", Watcher, (log,)))) as system:
        w = await system.wait_for("w")
        await w.call(("link", "a"), within=1)
        sys.kill(system.ref(victim))
        await trio.sleep(1)
        assert log == ["crash w"]
        assert other == ["start a", "crash a", "start a"]
        kinds = {
            info.id: info.last_exit.kind
            for info in system.supervisor().which_children()
            if info.last_exit is not None
        }
        survivor = "w" if victim == "a" else "a"
        assert kinds == {victim: ExitKind.KILLED, survivor: ExitKind.LINKED}
        # The link was of those two incarnations, not of the paths.
        sys.kill(system.ref(victim))
        await trio.sleep(1)
        assert system.supervisor().statistics().restarts == 3


async def test_nothing_is_left_of_the_links_and_monitors_of_the_dead() -> None:
    log = Log()
    children = [ChildSpec("a", Trapper, (log,)), ChildSpec("t", Trapper, (Log(),))]
    async with running(tree(*children)) as system:
        t = await system.wait_for("t")
        for _ in range(3):
            for wish in ("link", "monitor"):
                await t.call((wish, "a"), within=1)
            sys.kill(t)
            await trio.sleep(1)
        cell = system.ref("a").cell
        assert cell is not None
        assert cell.life is not None
        assert log == ["broken t killed"] * 3
        assert not cell.life.subscriptions
        assert not cell.watchers


async def test_a_normal_end_breaks_no_link() -> None:
    log = Log()
    a = fake("a", Log(), restart=Restart.TRANSIENT)
    async with running(tree(a, ChildSpec("w", Watcher, (log,)))) as system:
        w = await system.wait_for("w")
        await w.call(("link", "a"), within=1)
        system.ref("a").cast(Deed.QUIT)
        await trio.sleep(1)
        assert log == []
        assert w.alive


async def test_a_link_to_nobody_is_broken_at_once() -> None:
    log = Log()
    async with running(tree(ChildSpec("w", Watcher, (log,)))) as system:
        w = await system.wait_for("w")
        w.cast(("link", "nobody"))
        await trio.sleep(1)
        assert log == ["crash w"]


async def test_an_actor_that_traps_links_lives_and_is_told() -> None:
    log = Log()
    async with running(tree(fake("a", Log()), ChildSpec("t", Trapper, (log,)))) as system:
        t = await system.wait_for("t")
        await t.call(("link", "a"), within=1)
        sys.kill(system.ref("a"))
        await trio.sleep(1)
        assert log == ["broken a killed"]


async def test_linking_twice_is_one_link_from_whichever_side() -> None:
    log, other = Log(), Log()
    children = [ChildSpec("a", Trapper, (other,)), ChildSpec("t", Trapper, (log,))]
    async with running(tree(*children)) as system:
        t, a = await system.wait_for("t"), await system.wait_for("a")
        for _ in range(2):  # once more after both were told: a new incarnation is a new link
            await t.call(("link", "a"), within=1)
            await t.call(("link", "a"), within=1)
            await a.call(("link", "t"), within=1)
            sys.kill(a)
            await trio.sleep(1)
        assert log == ["broken a killed"] * 2
        sys.kill(t)
        await trio.sleep(1)
        assert "broken t killed" not in other
        for ref in (t, a):
            assert ref.cell is not None
            assert ref.cell.life is not None
            assert not ref.cell.life.links


async def test_a_link_to_oneself_is_none() -> None:
    log = Log()
    async with running(tree(ChildSpec("t", Trapper, (log,)))) as system:
        t = await system.wait_for("t")
        await t.call(("link", "t"), within=1)
        sys.kill(t)
        await trio.sleep(1)
        assert log == ["crash t"]
        assert t.alive


async def test_in_an_ordered_stop_of_everything_links_do_not_jump_the_queue() -> None:
    log = Log()
    other = Log()
    children = [fake("a", other), ChildSpec("w", Watcher, (log,)), fake("c", other)]
    async with running(tree(*children)) as system:
        w = await system.wait_for("w")
        await system.wait_for("c")
        await w.call(("link", "c"), within=1)
    assert log == []
    assert other == ["start a", "start c", "stop c", "stop a"]
