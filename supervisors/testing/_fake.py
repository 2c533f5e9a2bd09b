"""A child that misbehaves on demand."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from enum import Enum

import trio
from msgspec import Struct

from supervisors._actor import Actor
from supervisors._links import Broken, Down
from supervisors.errors import Reject


class Deed(Enum):
    """What a `FakeChild` can be told to do, as a message or at a point of its life."""

    NOTHING = "nothing"
    CRASH = "crash"  #: raise ValueError
    HANG = "hang"  #: wait for ever
    SWALLOW = "swallow"  #: wait for ever, keep the Cancelled, return
    SHIELD = "shield"  #: be out of reach of any cancel for `FakeChild.shielded` seconds
    CRASH_WHEN_CANCELLED = "crash when cancelled"
    HELPER_CRASH = "helper crash"  #: a helper raises ValueError
    QUIT = "quit"  #: end by itself
    REJECT = "reject"
    EXIT = "exit"  #: raise SystemExit


class Script(Struct, eq=False):
    """What a `FakeChild` does at its start and its stop, and where it writes what happened."""

    on_start: Deed = Deed.NOTHING
    on_stop: Deed = Deed.NOTHING
    log: Callable[[str], object] = lambda _line: None
    shielded: float = 10.0


class FakeChild(Actor[object]):
    """Writes down its life, does the `Deed` it is sent, and answers anything else with itself.

    Its factory arguments are keyword-free so that it fits a `ChildSpec`: the deeds at start and at
    stop, and a function that takes each line of the log.
    """

    def __init__(
        self,
        on_start: Deed = Deed.NOTHING,
        on_stop: Deed = Deed.NOTHING,
        log: Callable[[str], object] = lambda _line: None,
        shielded: float = 10.0,
    ) -> None:
        self.script = Script(on_start, on_stop, log, shielded)
        self.seen: list[object] = []

    async def on_start(self) -> None:
        self.script.log(f"start {self.path}")
        await self.do(self.script.on_start)

    async def on_stop(self, reason: str) -> None:
        self.script.log(f"stop {self.path}")
        await self.do(self.script.on_stop)

    async def on_crash(self, error: BaseException | None) -> None:
        self.script.log(f"crash {self.path}")

    async def handle(self, message: object) -> object:
        self.seen.append(message)
        if isinstance(message, Deed):
            await self.do(message)
        elif isinstance(message, (Down, Broken)):
            self.script.log(f"{self.path} sees {message.path} {message.exit.kind.value}")
        return message

    async def do(self, deed: Deed) -> None:
        """Do it."""
        match deed:
            case Deed.NOTHING:
                pass
            case Deed.CRASH:
                raise ValueError(f"{self.path} crashed as told")
            case Deed.HANG:
                await trio.sleep_forever()
            case Deed.SWALLOW:
                await _swallow()
                self.stop("after keeping a Cancelled")
            case Deed.SHIELD:
                with trio.CancelScope(shield=True):
                    await trio.sleep(self.script.shielded)
            case Deed.CRASH_WHEN_CANCELLED:
                try:
                    await trio.sleep_forever()
                finally:
                    raise ValueError(f"{self.path} crashed while cancelled")
            case Deed.HELPER_CRASH:
                self.spawn(_crash, self.path, name="crasher")
            case Deed.QUIT:
                self.stop("as told")
            case Deed.REJECT:
                raise Reject("as told", detail=self.path)
            case Deed.EXIT:
                raise SystemExit(f"{self.path} exits as told")


async def _crash(path: str) -> None:
    await trio.lowlevel.checkpoint()
    raise ValueError(f"a helper of {path} crashed as told")


async def _swallow() -> None:
    """The bug that the containment has to live with: a Cancelled caught and kept."""
    with suppress(trio.Cancelled):
        await trio.sleep_forever()


__all__ = ["Deed", "FakeChild", "Script"]
