"""Is anything left over? Asked after a tree is gone, or while it is at rest."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import trio

from supervisors._system import System


@asynccontextmanager
async def leak_check() -> AsyncIterator[None]:
    """Raise AssertionError when tasks are left at the end of the block that were not there before.

    Leaves an exception of the block alone.
    """
    before = _tasks()
    yield
    await trio.lowlevel.checkpoint()
    left = sorted(task.name for task in _tasks() - before)
    if left:
        raise AssertionError(f"tasks left over: {', '.join(left)}")


def check_tree(system: System) -> None:
    """Raise AssertionError when the figures of a tree contradict each other. Sync, at any moment.

    Every mailbox is within its bounds and counts its bytes right, every child of every supervisor
    is registered, and every path belongs to a supervisor that knows it.
    """
    known = 0
    for path in ["", *system.registry.under("")]:
        cell = system.registry.get(path)
        if cell is not None:
            mailbox = cell.mailbox
            figures = mailbox.statistics()
            waiting = list(mailbox)[figures.urgent :]
            assert figures.size == sum(envelope[1] for envelope in waiting), f"{path}: bytes"
            assert figures.size <= mailbox.max_size, f"{path}: over its bytes"
            assert figures.depth <= mailbox.max_items, f"{path}: over its count"
            if cell.driver is None:
                continue
        elif path:
            raise AssertionError(f"{path}: listed, not there")
        driver = system.driver(path)
        known += len(driver.cells)
        alive = sum(cell.life is not None for cell in driver.cells.values())
        figures_now = driver.statistics()
        # An exit that is still in the driver's inbox makes the policy's count the larger one.
        assert alive <= figures_now.alive, f"{path}: {alive} alive, {figures_now.alive} counted"
    assert known == len(system.registry), f"{known} children, {len(system.registry)} paths"


def _tasks() -> set[trio.lowlevel.Task]:
    root = trio.lowlevel.current_root_task()
    found: set[trio.lowlevel.Task] = set()
    todo = [root] if root is not None else []
    while todo:
        task = todo.pop()
        found.add(task)
        for nursery in task.child_nurseries:
            todo.extend(nursery.child_tasks)
    return found
