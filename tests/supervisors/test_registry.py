"""Actors are found by path, over restarts too."""

from __future__ import annotations

import pytest
import trio

from supervisors import Backoff, ChildSpec, Ref, running
from supervisors.testing import Deed
from tests.supervisors._tree import Log, fake, tree


async def test_paths_are_listed_in_order_by_what_they_are_under() -> None:
    paths = ["session/ab", "session/ab/chat/1", "session/ab/chat/2", "session/abc", "session-x"]
    children = [fake(str(n), Log(), path=path) for n, path in enumerate(paths)]
    async with running(tree(*children)) as system:
        await system.wait_for("session-x")
        registry = system.registry
        assert registry.under("") == sorted(paths)
        assert registry.under("session/ab") == ["session/ab/chat/1", "session/ab/chat/2"]
        assert registry.under("session") == [
            "session/ab",
            "session/ab/chat/1",
            "session/ab/chat/2",
            "session/abc",
        ]
        assert registry.children("session") == ["session/ab", "session/abc"]
        assert registry.children("session/ab") == ["session/ab/chat/1", "session/ab/chat/2"]
        assert registry.children("nobody") == []
        assert len(registry) == 5


async def test_a_sibling_whose_name_goes_on_with_a_character_below_the_slash_hides_nobody() -> None:
    paths = ["a", "a/x", "a/x/y", "a-b", "a-b/c", "a.c", "a b", "b/x", "b/x/y", "b/x-", "c//d"]
    children = [fake(str(n), Log(), path=path) for n, path in enumerate(paths)]
    async with running(tree(*children)) as system:
        await system.wait_for(paths[-1])
        children_of = system.registry.children
        assert children_of("") == ["a", "a b", "a-b", "a.c", "b/x", "b/x-", "c//d"]
        assert children_of("a") == ["a/x"]
        assert children_of("a/x") == ["a/x/y"]
        assert children_of("b") == ["b/x", "b/x-"]
        assert children_of("c") == ["c//d"]


async def test_waiters_wake_when_a_path_comes_up() -> None:
    async with running(tree(ChildSpec("d", tree(dynamic=True)))) as system:
        found: list[Ref[object]] = []

        async def wait() -> None:
            found.append(await system.wait_for("d/a"))

        async with trio.open_nursery() as nursery:
            for _ in range(3):
                nursery.start_soon(wait)
            await trio.sleep(1)
            assert found == []
            await system.supervisor("d").start_child(fake("a", Log()))
        assert found == [system.ref("d/a")] * 3


async def test_a_waiter_that_gives_up_leaves_nothing_behind() -> None:
    async with running(tree()) as system:
        for _ in range(2):
            with trio.move_on_after(1):
                await system.wait_for("nobody")
        assert not system.registry._waiting


async def test_a_restarted_actor_keeps_its_path_and_waiters_wait_for_it() -> None:
    backoff = Backoff(first=2.0, cap=2.0, jitter=0.0)
    async with running(tree(fake("a", Log()), backoff=backoff)) as system:
        a = await system.wait_for("a")
        a.cast(Deed.CRASH)
        await trio.sleep(1)
        assert system.registry.under("") == ["a"]
        assert not a.alive
        assert await system.wait_for("a") == a
        assert trio.current_time() == 2
        assert await a.call("hello", within=1) == "hello"


async def test_a_path_is_free_again_when_its_actor_is_forgotten() -> None:
    async with running(tree(dynamic=True)) as system:
        for _ in range(2):
            await system.supervisor().start_child(fake("a", Log()))
            assert system.registry.get("a") is not None
            await system.supervisor().stop_child("a")
            assert system.registry.get("a") is None
            with pytest.raises(trio.TooSlowError):
                with trio.fail_after(1):
                    await system.wait_for("a")
