"""The root of a tree: where an outside cancel or a signal becomes an ordered stop that ends.

A cancel reaches all tasks below a scope in the same instant, so no order is possible under it.
Therefore the tree lives in one shielded scope, the *ward*; a sentinel outside sees the cancel, asks
for an ordered stop and gives the ward a deadline. It is the only shield without a deadline of its
own, and it gets one as soon as somebody wants to leave.
"""

from __future__ import annotations

import os
import signal
from collections.abc import AsyncIterator, Callable
from contextlib import ExitStack, asynccontextmanager
from typing import Any

import trio

from supervisors._driver import Driver
from supervisors._events import Note
from supervisors._spec import SupervisorSpec
from supervisors._system import Faults, Report, System
from supervisors.errors import GaveUp, NameTaken

#: Seconds after the ward was cancelled until `last_resort` is called.
LAST_RESORT_AFTER = 2.0

SIGNALS = (signal.SIGTERM, signal.SIGINT)


async def run_tree(
    spec: SupervisorSpec,
    *,
    stop_within: float = 30.0,
    signals: bool = False,
    seed: int = 0,
    report: Callable[[Report], None] | None = None,
    keep: int = 0,
    faults: Faults | None = None,
    last_resort: Callable[[str], None] | None = None,
    task_status: trio.TaskStatus[System] = trio.TASK_STATUS_IGNORED,
) -> str:
    """Run a tree until it is stopped; returns the reason. ``nursery.start`` gives its `System`.

    A cancel from outside becomes an ordered stop that lasts at most `stop_within` seconds; then
    everything left is cancelled. With `signals` (main thread only) the first SIGTERM or SIGINT asks
    for the same, the second cancels, the third ends the process. trio cannot end a task that keeps
    its ``Cancelled`` or shields itself for ever: `last_resort` is called with the paths that are
    left `LAST_RESORT_AFTER` seconds after that cancel, and by default ends the process when
    `signals` are on.

    `seed` feeds all jitter. `report` is called with every `Report`; it must not wait. `keep` is how
    many recent messages each actor remembers for `sys.inspect`. `faults` is a plan.

    Raises `GaveUp` when the root passes its intensity or does not boot, and `NameTaken` when two of
    its own children have one path.
    """
    system = System(seed=seed, report=report, keep=keep, faults=faults)
    root = Driver(system, "", spec)
    ward = _Ward(system, root, stop_within, last_resort or (_end_process if signals else None))
    system.set_root(root, ward.leave, ward.drop)
    with ExitStack() as stack:
        received = stack.enter_context(trio.open_signal_receiver(*SIGNALS)) if signals else None
        task_status.started(system)
        reason = await ward.run(received)
    if isinstance(reason, Exception):
        raise reason
    return reason


@asynccontextmanager
async def running(spec: SupervisorSpec, **options: Any) -> AsyncIterator[System]:
    """``async with running(spec) as system``: a tree for the length of the block.

    Leaving the block stops it in order. Takes the options of `run_tree`. What leaves the block, or
    a `GaveUp` of the root (which cancels the block), comes out in an exception group.
    """
    async with trio.open_nursery() as nursery:

        async def run(task_status: trio.TaskStatus[System]) -> None:
            await run_tree(spec, **options, task_status=task_status)

        system: System = await nursery.start(run)
        try:
            yield system
        finally:
            system.stop("the block ended")


class _Ward:
    """The shielded scope a tree lives in, and the few who may end it."""

    def __init__(
        self,
        system: System,
        root: Driver,
        stop_within: float,
        last_resort: Callable[[str], None] | None,
    ) -> None:
        self._system = system
        self._root = root
        self._stop_within = stop_within
        self._last_resort = last_resort
        self._scope = trio.CancelScope(shield=True)
        #: Ends when the ward is cancelled, or the tree is down.
        self._cut = trio.CancelScope(shield=True)
        #: Ends when the tree is down.
        self._over = trio.CancelScope(shield=True)

    async def run(self, received: AsyncIterator[int] | None) -> str | GaveUp | NameTaken:
        outcome: str | GaveUp | NameTaken = "cancelled: not stopped in time"
        async with trio.open_nursery() as outer:
            outer.start_soon(self._sentinel, name="supervisors: sentinel")
            if self._last_resort is not None:
                outer.start_soon(self._reaper, self._last_resort, name="supervisors: reaper")
            if received is not None:
                outer.start_soon(self._listen, received, name="supervisors: signals")
            try:
                with self._scope:
                    outcome = await self._root.run()
            except (GaveUp, NameTaken) as error:
                outcome = error
            self._over.cancel(reason="the tree is down")
            self._cut.cancel(reason="the tree is down")
            outer.cancel_scope.cancel(reason="the tree is down")
        return outcome

    def leave(self, reason: str) -> None:
        """Ask for an ordered stop, and see to it that it ends. Sync."""
        self._root.ask_stop(reason)
        deadline = self._system.now() + self._stop_within
        self._scope.deadline = min(self._scope.deadline, deadline)
        self._cut.deadline = self._scope.deadline

    def drop(self, reason: str) -> None:
        """Cancel everything at once, in no order. Sync."""
        self._scope.cancel(reason=reason)
        self._cut.cancel(reason=reason)

    async def _sentinel(self) -> None:
        try:
            await trio.sleep_forever()
        finally:
            self.leave("cancelled from outside")

    async def _listen(self, received: AsyncIterator[int]) -> None:
        count = 0
        async for number in received:
            count += 1
            name = signal.Signals(number).name
            self._system.report(Note.STOPPED, "", f"{name} number {count}")
            if count == 1:
                self.leave(name)
            elif count == 2:
                self._scope.cancel(reason=f"a second {name}")
                self._cut.cancel(reason=f"a second {name}")
            else:
                os._exit(128 + number)

    async def _reaper(self, last_resort: Callable[[str], None]) -> None:
        # Shielded until the tree is down: it is needed most when everything is cancelled.
        with self._cut:
            await trio.sleep_forever()
        with self._over:
            await trio.sleep(LAST_RESORT_AFTER)
            left = [path for path in self._system.registry.under("") if _lives(self._system, path)]
            last_resort(", ".join(left))


def _lives(system: System, path: str) -> bool:
    cell = system.registry.get(path)
    return cell is not None and cell.life is not None


def _end_process(left: str) -> None:
    os.write(2, f"supervisors: cannot stop {left}; ending the process\n".encode())
    os._exit(70)
