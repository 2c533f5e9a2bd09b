"""The root: cancels and signals become an ordered stop that always ends."""

from __future__ import annotations

import os
import signal

import pytest
import trio

from supervisors import Backoff, GaveUp, Note, Report, Shutdown, Strategy, System, run_tree, running
from supervisors.testing import Deed, leak_check
from tests.supervisors._tree import Log, fake, tree


async def test_an_outside_cancel_becomes_an_ordered_stop() -> None:
    log = Log()
    async with leak_check():
        with trio.move_on_after(5):
            await run_tree(tree(fake("a", log), fake("b", log), fake("c", log)))
    assert log[3:] == ["stop c", "stop b", "stop a"]
    assert trio.current_time() == 5


async def test_the_budget_of_the_stop_ends_a_child_that_will_not() -> None:
    log = Log()
    hangs = fake("b", log, on_stop=Deed.HANG, shutdown=Shutdown(grace=1000.0))
    with trio.move_on_after(5):
        await run_tree(tree(fake("a", log), hangs), stop_within=3.0)
    assert log[2:] == ["stop b"]
    assert trio.current_time() == 8


async def test_a_stop_from_inside_has_the_same_budget() -> None:
    hangs = fake("a", Log(), on_stop=Deed.HANG, shutdown=Shutdown(grace=None))
    async with running(tree(hangs), stop_within=3.0) as system:
        await system.wait_for("a")
        system.stop("time to go")
        await trio.sleep(2)
        system.stop("really")
    assert trio.current_time() == 3


async def test_the_last_resort_is_told_who_is_left() -> None:
    left: list[str] = []
    shields = fake("b", Log(), shielded=100.0)
    with trio.move_on_after(5):
        async with running(
            tree(fake("a", Log()), shields), stop_within=3.0, last_resort=left.append
        ) as system:
            (await system.wait_for("b")).cast(Deed.SHIELD)
            await trio.sleep_forever()
    assert left == ["b"]
    assert trio.current_time() == 100


async def test_no_last_resort_is_needed_for_a_tree_that_stops() -> None:
    left: list[str] = []
    async with running(tree(fake("a", Log())), last_resort=left.append):
        await trio.sleep(1)
    await trio.sleep(100)
    assert left == []


async def test_the_system_can_be_stopped_from_inside_and_says_why() -> None:
    async with trio.open_nursery() as nursery:
        reasons: list[str] = []

        async def run(task_status: trio.TaskStatus[System]) -> None:
            reasons.append(await run_tree(tree(fake("a", Log())), task_status=task_status))

        system = await nursery.start(run)
        await system.wait_for("a")
        system.stop("time to go")
    assert reasons == ["time to go"]


async def test_a_root_that_gives_up_cancels_the_block() -> None:
    with pytest.RaisesGroup(GaveUp):
        async with running(tree(fake("a", Log()))) as system:
            a = await system.wait_for("a")
            while True:
                if a.alive:
                    a.cast(Deed.CRASH)
                await trio.sleep(0.1)


async def test_an_error_in_the_block_stops_the_tree_in_order() -> None:
    log = Log()
    with pytest.RaisesGroup(LookupError):
        async with running(tree(fake("a", log), fake("b", log))) as system:
            await system.wait_for("b")
            raise LookupError
    assert log[2:] == ["stop b", "stop a"]


async def test_a_report_sink_that_raises_is_taken_out() -> None:
    def sink(report: Report) -> None:
        raise LookupError(report.text)

    async with running(tree(fake("a", Log())), report=sink) as system:
        assert await (await system.wait_for("a")).call("hello", within=1) == "hello"


# ---- real signals, so real time; bounded --------------------------------------------------------


@pytest.mark.real_time
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_a_signal_in_the_middle_of_a_restart_ends_in_order(number: signal.Signals) -> None:
    log = Log()
    reports: list[Report] = []
    children = [fake(id, log) for id in "abc"]
    # The backoff keeps the group down until the signal is there, whatever the machine does.
    spec = tree(
        *children,
        strategy=Strategy.REST_FOR_ONE,
        backoff=Backoff(first=3.0, cap=3.0, jitter=0.0),
    )
    with trio.fail_after(10):
        async with trio.open_nursery() as nursery:
            outcome: list[str] = []

            async def run(task_status: trio.TaskStatus[System]) -> None:
                outcome.append(
                    await run_tree(
                        spec, signals=True, report=reports.append, task_status=task_status
                    )
                )

            system = await nursery.start(run)
            await system.wait_for("c")
            log.take()
            system.ref("b").cast(Deed.CRASH)
            while len(log) < 2:
                await trio.sleep(0.001)
            os.kill(os.getpid(), number)
    assert log == ["crash b", "stop c", "stop a"]
    assert outcome == [number.name]
    assert [report.note for report in reports[-1:]] == [Note.STOPPED]


@pytest.mark.real_time
async def test_a_second_signal_cancels_what_the_first_asked() -> None:
    log = Log()
    hangs = fake("a", log, on_stop=Deed.HANG, shutdown=Shutdown(grace=1000.0))
    with trio.fail_after(10):
        async with trio.open_nursery() as nursery:

            async def run(task_status: trio.TaskStatus[System]) -> None:
                await run_tree(
                    tree(hangs), signals=True, stop_within=1000.0, task_status=task_status
                )

            system = await nursery.start(run)
            await system.wait_for("a")
            os.kill(os.getpid(), signal.SIGTERM)
            while len(log) < 2:
                await trio.sleep(0.001)
            os.kill(os.getpid(), signal.SIGTERM)
    assert log == ["start a", "stop a"]


async def test_a_tree_can_be_dropped_where_it_stands() -> None:
    log = Log()
    async with leak_check(), trio.open_nursery() as nursery:
        reasons: list[str] = []

        async def run(task_status: trio.TaskStatus[System]) -> None:
            spec = tree(fake("a", log), fake("b", log, on_stop=Deed.HANG))
            reasons.append(await run_tree(spec, task_status=task_status))

        system = await nursery.start(run)
        await system.wait_for("b")
        system.drop()
    assert log == ["start a", "start b"]
    assert len(reasons) == 1
    assert not system.registry.under("")
