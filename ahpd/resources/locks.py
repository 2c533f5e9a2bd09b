"""Locks on files: what is checked still holds when it is written (R-13.20), and none reads half."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeAlias

#: What names a file whatever it is called: its device and its number there.
Key: TypeAlias = tuple[int, int]

#: Seconds between two looks whether anybody still waits.
_LOOK = 0.1


class Locks:
    """One lock for each file that is in use, between the threads of this process."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._held: set[Key] = set()

    @contextmanager
    def hold(self, key: Key, go_on: Callable[[], None]) -> Iterator[None]:
        """Hold one for the length of the block. `go_on` is called in the wait, and may raise."""
        with self._changed:
            while key in self._held:
                go_on()
                self._changed.wait(_LOOK)
            self._held.add(key)
        try:
            yield
        finally:
            with self._changed:
                self._held.discard(key)
                self._changed.notify_all()


def token() -> str:
    """A name for something that is there for a moment."""
    return f"{threading.get_ident():x}{time.monotonic_ns():x}"
