"""The helpers for tests do find what they are for."""

from __future__ import annotations

import pytest
import trio
import trio.testing
from trio._core import _run

from supervisors import running
from supervisors.testing import Cutter, check_tree, cut_at_every_step, leak_check, run_seeded
from tests.supervisors._tree import Log, fake, tree


async def test_a_leak_is_found_and_named() -> None:
    async with trio.open_nursery() as nursery:
        with pytest.raises(AssertionError, match="tasks left over: the leak"):
            async with leak_check():
                nursery.start_soon(trio.sleep_forever, name="the leak")
        nursery.cancel_scope.cancel()


async def test_a_mailbox_that_miscounts_is_found() -> None:
    async with running(tree(fake("a", Log()))) as system:
        a = await system.wait_for("a")
        check_tree(system)
        assert a.cell is not None
        a.cell.mailbox.size += 1
        with pytest.raises(AssertionError, match="a: bytes"):
            check_tree(system)
        a.cell.mailbox.size -= 1


def test_every_step_is_cut_once() -> None:
    reached: list[int] = []

    def run(cutter: Cutter) -> None:
        async def victim() -> None:
            done = 0
            with trio.CancelScope() as scope:
                cutter.cut = scope.cancel
                for _ in range(3):
                    await trio.lowlevel.checkpoint()
                    done += 1
            reached.append(done)

        async def main() -> None:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(victim, name="victim")

        trio.run(main, instruments=[cutter])

    # The first step begins before the scope is there, so that cut cuts nothing.
    assert cut_at_every_step(run, "victim") == 4
    assert reached[0] == 3
    assert set(reached) == {0, 1, 2, 3}


def test_a_task_that_never_runs_is_an_error() -> None:
    with pytest.raises(AssertionError, match="0 steps"):
        cut_at_every_step(lambda _cutter: None, "nobody")


def test_a_seeded_run_gives_its_value_and_puts_the_switch_back() -> None:
    private = (_run._ALLOW_DETERMINISTIC_SCHEDULING, _run._r.getstate())

    async def main(value: int) -> tuple[int, float]:
        await trio.sleep(100)
        return value, trio.current_time()

    assert run_seeded(main, 5, seed=1) == (5, 100)
    assert (_run._ALLOW_DETERMINISTIC_SCHEDULING, _run._r.getstate()) == private


def test_a_seeded_run_can_let_time_flow() -> None:
    async def main() -> float:
        await trio.sleep(10)
        return trio.current_time()

    assert run_seeded(main, seed=1, rate=10_000) >= 10
