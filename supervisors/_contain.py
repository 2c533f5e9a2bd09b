"""One incarnation, contained: its ordinary exceptions stop here and become one `Exit`.

Everything that is not the child's to decide goes through untouched: a ``Cancelled`` of an outer
scope, ``KeyboardInterrupt``, ``SystemExit``, trio's internal error, our own `Bug`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

import trio

from supervisors._events import Note
from supervisors._exits import Crash
from supervisors.errors import Bug

if TYPE_CHECKING:
    from supervisors._cell import Life

#: Ordinary exceptions that are not contained.
FATAL = (trio.TrioInternalError, Bug)


class TaskLost(Exception):
    """A planned fault: the task vanishes. Never seen outside this package."""


async def contained(life: Life, body: Callable[[Life], Awaitable[None]]) -> None:
    """Run `body` in the life's own scope and report its exit, exactly once, whatever happens."""
    crash: Crash | None = None
    finished = False
    life.task = trio.lowlevel.current_task()
    try:
        try:
            # The scope is inside the try: `cancelled_caught` is the only evidence that it was our
            # cancel that ended the body.
            with life.scope:
                await body(life)
        # `except*` because a child that fails while it is cancelled raises a group of its error
        # and a Cancelled; the error stays here and the Cancelled flies on.
        except* FATAL:
            raise
        except* TaskLost:
            life.lost = True
        except* Exception as group:  # noqa: BLE001 containment is this file's purpose
            crash = Crash(group)
        finished = True
        if (crash is not None or life.doom is not None) and not life.lost:
            await _crash_hook(life, crash)
    finally:
        # Sync: an await here would raise in a cancelled scope and lose the report.
        exit = life.end(crash, finished=finished)
        life.parent.child_ended(life.cell, exit)


async def _crash_hook(life: Life, crash: Crash | None) -> None:
    actor = life.actor
    if actor is None:
        return
    within = life.cell.spec.shutdown.cleanup
    try:
        with trio.move_on_after(within, shield=True) as scope:
            await actor.on_crash(crash.error if crash is not None else None)
    except* FATAL:
        raise
    except* Exception as group:  # noqa: BLE001 containment is this file's purpose
        text = f"on_crash failed: {Crash(group).text}"
        life.cell.system.report(Note.HOOK_FAILED, life.cell.path, text)
    else:
        if scope.cancelled_caught:
            text = f"on_crash was not done within {within} s"
            life.cell.system.report(Note.HOOK_FAILED, life.cell.path, text)
