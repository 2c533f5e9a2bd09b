"""What the package relies on in trio. When an upgrade breaks one of these, look here first."""

from __future__ import annotations

from contextlib import suppress

import pytest
import trio
import trio.testing

from supervisors.testing import run_seeded


async def test_an_error_during_a_cancel_comes_with_its_cancelled_and_except_star_splits_them() -> (
    None
):
    caught: list[BaseException] = []

    async def fails() -> None:
        try:
            await trio.sleep_forever()
        finally:
            raise ValueError

    with trio.CancelScope() as outer:
        try:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(fails)
                nursery.start_soon(trio.sleep_forever)
                await trio.testing.wait_all_tasks_blocked()
                outer.cancel()
        except* ValueError as group:
            caught.append(group)
    assert len(caught) == 1
    assert outer.cancelled_caught


async def test_one_error_in_a_nursery_is_a_group_of_one() -> None:
    async def fails() -> None:
        raise ValueError

    with pytest.RaisesGroup(ValueError):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(fails)


async def test_a_swallowed_cancel_shows_as_called_and_not_caught() -> None:
    with trio.CancelScope() as scope:
        scope.cancel()
        with suppress(trio.Cancelled):
            await trio.lowlevel.checkpoint()
    assert scope.cancel_called
    assert not scope.cancelled_caught


async def test_a_cancel_is_delivered_again_at_every_checkpoint() -> None:
    hits = 0
    with trio.CancelScope() as scope:
        scope.cancel()
        for _ in range(2):
            try:
                await trio.lowlevel.checkpoint()
            except trio.Cancelled:
                hits += 1
    assert hits == 2


async def test_a_child_inherits_the_context_of_whoever_starts_it_not_of_the_nursery() -> None:
    from contextvars import ContextVar

    who: ContextVar[str] = ContextVar("who", default="nobody")
    seen: list[str] = []

    async def child() -> None:
        seen.append(who.get())

    async def starter(nursery: trio.Nursery) -> None:
        who.set("starter")
        nursery.start_soon(child)

    async with trio.open_nursery() as inner, trio.open_nursery() as nursery:
        nursery.start_soon(starter, inner)
    assert seen == ["starter"]


async def test_a_rescheduled_task_is_not_cancelled_at_that_wait_any_more() -> None:
    aborted: list[bool] = []
    tasks: list[trio.lowlevel.Task] = []

    def abort(_raise_cancel: object) -> trio.lowlevel.Abort:
        aborted.append(True)
        return trio.lowlevel.Abort.SUCCEEDED

    async def sleeper() -> None:
        tasks.append(trio.lowlevel.current_task())
        await trio.lowlevel.wait_task_rescheduled(abort)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(sleeper)
        await trio.testing.wait_all_tasks_blocked()
        trio.lowlevel.reschedule(tasks[0])
        nursery.cancel_scope.cancel()
    assert aborted == []


async def test_an_instrument_may_cancel_the_task_whose_step_begins() -> None:
    scope = trio.CancelScope()

    class Cut(trio.abc.Instrument):
        def before_task_step(self, task: trio.lowlevel.Task) -> None:
            if task.name == "victim":
                scope.cancel()

    async def victim() -> None:
        with scope:
            await trio.sleep_forever()

    cut = Cut()
    trio.lowlevel.add_instrument(cut)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(victim, name="victim")
    trio.lowlevel.remove_instrument(cut)
    assert scope.cancelled_caught


async def test_a_mock_clock_jumps_when_all_wait_and_not_before() -> None:
    start = trio.current_time()
    for _ in range(100):
        await trio.lowlevel.checkpoint()
    assert trio.current_time() == start
    await trio.sleep(1000)
    assert trio.current_time() == start + 1000


def _trace(seed: int) -> str:
    order: list[str] = []

    async def child(name: str) -> None:
        for _ in range(3):
            await trio.lowlevel.checkpoint()
            order.append(name)

    async def main() -> None:
        async with trio.open_nursery() as nursery:
            for name in "abcdef":
                nursery.start_soon(child, name)

    run_seeded(main, seed=seed)
    return "".join(order)


def test_same_seed_same_trace_and_other_seeds_other_traces() -> None:
    assert _trace(1) == _trace(1)
    assert len({_trace(seed) for seed in range(10)}) > 1


def test_a_task_shows_where_it_waits() -> None:
    async def inner() -> None:
        await trio.sleep_forever()

    async def main() -> list[str]:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(inner)
            await trio.testing.wait_all_tasks_blocked()
            (task,) = nursery.child_tasks
            names = [frame.f_code.co_name for frame, _line in task.iter_await_frames()]
            nursery.cancel_scope.cancel()
        return names

    assert trio.run(main)[:2] == ["inner", "sleep_forever"]
