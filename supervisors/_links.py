"""Monitors and links: who is told when an actor ends.

Pure bookkeeping: it calls what it was given and owns no task. A monitor fires once.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import attrs
from msgspec import Struct

from supervisors._contain import raised_by
from supervisors._exits import Exit


class Down(Struct, frozen=True):
    """What a monitor delivers, once: the actor at `path` ended, or was not there."""

    path: str
    monitor: int
    exit: Exit


class Broken(Struct, frozen=True):
    """What an actor with ``traps_links`` gets instead of dying with the actor at `path`."""

    path: str
    exit: Exit


@attrs.frozen
class Monitor:
    """A pending `Down`. `cancel` takes it back, also when it is queued already; sync."""

    number: int
    path: str
    cancel: Callable[[], None] = attrs.field(eq=False, repr=False)


class Watchers:
    """Those who want to know about one incarnation, told in the order they came."""

    __slots__ = ("_by_number",)

    def __init__(self) -> None:
        self._by_number: dict[int, Callable[[Exit], None]] = {}

    def __len__(self) -> int:
        return len(self._by_number)

    def add(self, number: int, tell: Callable[[Exit], None]) -> None:
        """Tell this one too; `tell` must not wait."""
        self._by_number[number] = tell

    def remove(self, number: int) -> None:
        """Do not tell this one; nothing happens when it is not there."""
        self._by_number.pop(number, None)

    def tell(self, path: str, exit: Exit) -> list[BaseException]:
        """Tell each one, once; what some of them raised, which keeps it from nobody else."""
        errors = []
        for number in list(self._by_number):
            # One that is told may take back another.
            tell = self._by_number.pop(number, None)
            if tell is not None and (error := raised_by(partial(tell, exit))) is not None:
                errors.append(error)
        assert not self._by_number, f"{path}: a watcher came while others were told"
        return errors
