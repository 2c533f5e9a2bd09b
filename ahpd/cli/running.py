"""Runs a command under trio so that signals end it in order, with the exit code they ask for."""

from __future__ import annotations

import signal
from collections.abc import Awaitable, Callable
from types import FrameType
from typing import TYPE_CHECKING, Self

import attrs

if TYPE_CHECKING:
    import trio

#: Signals that end a command; its exit code is then 128 and the signal's number.
_ENDS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@attrs.define(eq=False)
class Running:
    """What a command may use while it runs.

    `nursery` is for what goes on beside it, until it ends. `on_interrupt` is asked at each Ctrl-C
    and returns whether it took care of it; else the command ends. It must not wait.
    """

    nursery: trio.Nursery
    on_interrupt: Callable[[], bool] = lambda: False


def run(main: Callable[[Running], Awaitable[int]]) -> int:
    """Run `main` to its end and return its exit code, or that of the signal that ended it.

    What `main` raises comes out as it is, and a reader that went away as `BrokenPipeError`.
    """
    import trio  # noqa: PLC0415 - not for --help

    try:
        return trio.run(_run, main)
    except* BrokenPipeError as group:  # wherever it was printed from
        broken = group.exceptions[0]
    raise BrokenPipeError from broken


class _Interrupts:
    """Counts Ctrl-C beside a receiver of trio's, which makes one of two that come at once."""

    def __enter__(self) -> Self:
        self._count = 0
        self._receiver = signal.getsignal(signal.SIGINT)
        signal.signal(signal.SIGINT, self._came)
        return self

    def __exit__(self, *_: object) -> None:
        signal.signal(signal.SIGINT, self._receiver)

    def _came(self, number: int, frame: FrameType | None) -> None:
        self._count += 1
        if callable(self._receiver):
            self._receiver(number, frame)

    def taken(self) -> range:
        """One for each that came since; the first may have come before anybody counted."""
        count, self._count = self._count, 0
        return range(max(count, 1))


async def _run(main: Callable[[Running], Awaitable[int]]) -> int:
    import trio  # noqa: PLC0415

    code: int | None = None
    failure: Exception | None = None
    by_signal = 0

    async def listen() -> None:
        nonlocal by_signal
        async for number in signals:
            if number == signal.SIGINT and all(running.on_interrupt() for _ in interrupts.taken()):
                continue
            by_signal = number
            nursery.cancel_scope.cancel(reason=f"signal {number}")
            return

    with trio.open_signal_receiver(*_ENDS) as signals, _Interrupts() as interrupts:
        async with trio.open_nursery() as nursery:
            running = Running(nursery)
            nursery.start_soon(listen)
            try:
                code = await main(running)
            except Exception as error:  # noqa: BLE001 - raised again below, outside the group
                failure = error
            nursery.cancel_scope.cancel(reason="the command is done")
    if failure is not None:
        raise failure
    return 128 + by_signal if code is None else code
