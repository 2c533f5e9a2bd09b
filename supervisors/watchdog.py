"""Finding what holds up everybody: a blocking call, or a loop without checkpoints.

While one task blocks, nothing on trio's thread can say so. An instrument notes which task runs
since when; a thread of its own looks at that note and, when it gets old, reports the task with the
stack it is in at that moment.
"""

from __future__ import annotations

import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import trio
from msgspec import Struct


class Stall(Struct, frozen=True):
    """A task that has been running for `seconds` of real time without a checkpoint.

    `path` is the actor's (``path#helper`` for a helper), or the name of another task. `stack` is
    formatted, innermost call last.
    """

    path: str
    seconds: float
    stack: str


class Watchdog(trio.abc.Instrument):
    """Notes what runs. Must not raise: trio removes an instrument that does."""

    def __init__(self) -> None:
        #: The task that runs and since when, swapped as one object so that a thread can read it.
        self.running: tuple[str, float] | None = None

    def before_task_step(self, task: trio.lowlevel.Task) -> None:
        """A task gets its turn."""
        self.running = (task.name, time.perf_counter())

    def after_task_step(self, _task: trio.lowlevel.Task) -> None:
        """Its turn is over."""
        self.running = None


@contextmanager
def watching(report: Callable[[Stall], None], *, limit: float = 0.5) -> Iterator[None]:
    """Report each step over `limit` real seconds, once, while it still goes on.

    It is seen at most 1.5 times `limit` after it began. `report` is called in the watchdog's own
    thread. Enter it inside ``trio.run``, in trio's thread. Leaving waits for the thread to end.
    """
    watchdog = Watchdog()
    over = threading.Event()
    thread = threading.Thread(
        target=_watch,
        args=(watchdog, threading.get_ident(), over, report, limit),
        name="supervisors watchdog",
        daemon=True,
    )
    trio.lowlevel.add_instrument(watchdog)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
        trio.lowlevel.remove_instrument(watchdog)


def _watch(
    watchdog: Watchdog,
    thread: int,
    over: threading.Event,
    report: Callable[[Stall], None],
    limit: float,
) -> None:
    reported: tuple[str, float] | None = None
    while not over.wait(limit / 2):
        running = watchdog.running
        if running is None or running is reported:
            continue
        seconds = time.perf_counter() - running[1]
        if seconds < limit:
            continue
        frame = sys._current_frames().get(thread)
        # The step may have ended in between; then the stack is somebody else's.
        if frame is not None and watchdog.running is running:
            reported = running
            report(Stall(running[0], seconds, "".join(traceback.format_stack(frame))))
