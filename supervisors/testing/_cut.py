"""Cancel at every step: exhaustive where random faults are only likely to hit."""

from __future__ import annotations

from collections.abc import Callable

import trio


class Cutter(trio.abc.Instrument):
    """Counts the steps of one task by name, and calls `cut` before the step it was made for."""

    def __init__(self, task_name: str, at: int | None = None) -> None:
        self.task_name = task_name
        self.at = at
        self.steps = 0
        #: What to do at that step; a test sets it, to the cancel of a scope as a rule.
        self.cut: Callable[[], object] = lambda: None

    def before_task_step(self, task: trio.lowlevel.Task) -> None:
        """A task gets its turn."""
        if task.name == self.task_name:
            self.steps += 1
            if self.steps == self.at:
                self.cut()


def cut_at_every_step(run: Callable[[Cutter], None], task_name: str, *, most: int = 1000) -> int:
    """Call `run` once to count the steps of the named task, then once for each of them.

    `run` does its own ``trio.run`` with the cutter among its instruments, sets `Cutter.cut`, and
    asserts what must hold after a cut. Returns how many steps there were; raises AssertionError
    when there were none, or more than `most`.
    """
    counter = Cutter(task_name)
    run(counter)
    if not 0 < counter.steps <= most:
        raise AssertionError(f"{task_name}: {counter.steps} steps, expected 1 to {most}")
    for step in range(1, counter.steps + 1):
        run(Cutter(task_name, step))
    return counter.steps
