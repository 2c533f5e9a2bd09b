"""Finding actors by path. One registry for each tree, never a module global.

Paths are strings of names joined by ``/``; what they mean is the user's.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from typing import TYPE_CHECKING

import trio

from supervisors._events import Settled
from supervisors.errors import NameTaken

if TYPE_CHECKING:
    from supervisors._cell import Cell


class Registry:
    """The cells of one tree by path, and those who wait for one to come up."""

    def __init__(self) -> None:
        self._cells: dict[str, Cell] = {}
        #: Invariant: the keys of `_cells`, sorted; so the paths under a prefix are neighbours.
        self._paths: list[str] = []
        self._waiting: dict[str, trio.Event] = {}

    def get(self, path: str) -> Cell | None:
        """The cell at `path`, whether or not its actor runs."""
        return self._cells.get(path)

    def add(self, cell: Cell) -> None:
        """Put a cell in. Raises `NameTaken` when its path has one."""
        if cell.path in self._cells:
            raise NameTaken(f"{cell.path}: a live actor has that path")
        self._cells[cell.path] = cell
        insort(self._paths, cell.path)

    def remove(self, cell: Cell) -> None:
        """Take a cell out; its path is free."""
        assert self._cells.get(cell.path) is cell, f"{cell.path}: not registered"
        del self._cells[cell.path]
        del self._paths[bisect_left(self._paths, cell.path)]

    def announce(self, path: str) -> None:
        """The actor at `path` is up: wake those who wait for it."""
        event = self._waiting.pop(path, None)
        if event is not None:
            event.set()

    async def wait_for(self, path: str) -> Cell:
        """Wait until an actor at `path` is up. A checkpoint; cancelled means nothing happened."""
        await trio.lowlevel.checkpoint()
        while True:
            cell = self._cells.get(path)
            # The life is asked too: its end is known before the supervisor hears of it.
            if cell is not None and cell.settled is Settled.UP and cell.is_ready:
                return cell
            event = self._waiting.get(path)
            if event is None:
                event = self._waiting[path] = trio.Event()
            try:
                await event.wait()
            finally:
                # The last one to give up takes the entry with it.
                if not event.is_set() and event.statistics().tasks_waiting == 0:
                    self._waiting.pop(path, None)

    def under(self, path: str) -> list[str]:
        """All paths below `path`, sorted; all there are for ``""``."""
        if not path:
            return list(self._paths)
        # "0" is the character after "/".
        first, last = bisect_left(self._paths, path + "/"), bisect_left(self._paths, path + "0")
        return self._paths[first:last]

    def children(self, path: str) -> list[str]:
        """Paths below `path` that are below no other path in between, sorted."""
        start = len(path) + 1 if path else 0
        return [inner for inner in self.under(path) if not self._has_parent(inner, start)]

    def _has_parent(self, path: str, start: int) -> bool:
        """Whether a path that ends at a "/" of this one, from `start` on, is there too."""
        # The parent need not be its neighbour: "a-b" sorts between "a" and "a/b".
        cut = path.find("/", start)
        while cut >= 0:
            if path[:cut] in self._cells:
                return True
            cut = path.find("/", cut + 1)
        return False

    def __len__(self) -> int:
        return len(self._cells)
