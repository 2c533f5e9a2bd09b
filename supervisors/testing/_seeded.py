"""A trio run that is the same for the same seed.

The only file of this project that touches trio's private scheduling switch. trio shuffles each
batch of runnable tasks; with the switch on it sorts the batch by age first, and the shuffle comes
from a generator that we seed.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import trio
import trio.testing
from trio._core import _run

T = TypeVar("T")


def run_seeded(
    fn: Callable[..., Awaitable[T]], *args: Any, seed: int, rate: float | None = None
) -> T:
    """``trio.run(fn, *args)`` on a mock clock, with the order of tasks taken from `seed`.

    The clock jumps to the next deadline when all tasks wait; with `rate` it runs at that many
    virtual seconds a second instead. The code under test must keep to trio's clock and to seeded
    random sources, and must not use threads or sockets. trio's switch is put back afterwards.
    """
    private: Any = _run
    before = private._ALLOW_DETERMINISTIC_SCHEDULING, private._r.getstate()
    private._ALLOW_DETERMINISTIC_SCHEDULING = True
    private._r.seed(seed)
    if rate is None:
        clock = trio.testing.MockClock(autojump_threshold=0)
    else:
        clock = trio.testing.MockClock(rate=rate)
    try:
        return trio.run(fn, *args, clock=clock)
    finally:
        private._ALLOW_DETERMINISTIC_SCHEDULING = before[0]
        private._r.setstate(before[1])
