"""Where the tasks of an actor wait, with the source lines."""

from __future__ import annotations

import linecache

import trio
from msgspec import Struct

from supervisors._cell import Cell


class Place(Struct, frozen=True):
    """One frame of a task that waits: a function, the file, the line in it, and its text."""

    function: str
    file: str
    line: int
    text: str


class Stack(Struct, frozen=True):
    """A task, and where it waits: outermost frame first; empty when it has not begun."""

    name: str
    places: tuple[Place, ...]


def stacks_of(cell: Cell) -> tuple[Stack, ...]:
    """The actor's own task, then its helpers by name. Reads source files the first time."""
    life = cell.life
    if life is None or life.task is None:
        return ()
    nursery = life.nursery
    helpers = sorted(nursery.child_tasks, key=lambda task: task.name) if nursery is not None else ()
    return tuple(_stack(task) for task in (life.task, *helpers))


def _stack(task: trio.lowlevel.Task) -> Stack:
    if task.coro.cr_frame is None:
        return Stack(task.name, ())
    places = tuple(
        Place(
            frame.f_code.co_qualname,
            frame.f_code.co_filename,
            line,
            linecache.getline(frame.f_code.co_filename, line).strip(),
        )
        for frame, line in task.iter_await_frames()
    )
    return Stack(task.name, places)
