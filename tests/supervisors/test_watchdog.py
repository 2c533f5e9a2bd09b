"""The watchdog sees real threads and real time; these few tests block for a moment, bounded."""

from __future__ import annotations

import time

import pytest
import trio

from supervisors import Actor, ChildSpec, SupervisorSpec, running
from supervisors.watchdog import Stall, watching


class Hog(Actor[str]):
    def __init__(self, stalls: list[Stall]) -> None:
        self.stalls = stalls

    async def handle(self, message: str) -> None:
        # Until it is seen, at most a second: that is the promise.
        until = time.perf_counter() + 1.0
        if message == "block":
            while not self.stalls and time.perf_counter() < until:
                time.sleep(0.01)  # noqa: ASYNC251 to block is the point
        elif message == "spin":
            while not self.stalls and time.perf_counter() < until:
                pass
        elif message == "help":
            self.spawn(self.handle, "block", name="blocker")


@pytest.mark.real_time
@pytest.mark.parametrize(
    ("message", "path"), [("block", "hog"), ("spin", "hog"), ("help", "hog#blocker")]
)
async def test_whoever_holds_up_everybody_is_named_with_its_stack(message: str, path: str) -> None:
    stalls: list[Stall] = []
    with watching(stalls.append, limit=0.05):
        async with running(SupervisorSpec([ChildSpec("hog", Hog, (stalls,))])) as system:
            hog = await system.wait_for("hog")
            hog.cast(message)
            with trio.move_on_after(2):
                while not stalls:
                    await trio.sleep(0.01)
    assert [stall.path for stall in stalls] == [path]
    assert "in handle" in stalls[0].stack
    assert stalls[0].seconds >= 0.05


@pytest.mark.real_time
async def test_a_busy_actor_that_lets_others_in_is_not_reported() -> None:
    stalls: list[Stall] = []
    with watching(stalls.append, limit=0.25):
        async with running(SupervisorSpec([ChildSpec("hog", Hog, (stalls,))])) as system:
            hog = await system.wait_for("hog")
            for _ in range(2000):
                await hog.call("nothing", within=5)
    assert stalls == []
