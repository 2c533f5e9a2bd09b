"""One incarnation, contained: what its code raises stops here and becomes one `Exit`.

That is whatever it raises of its own, ``SystemExit`` (a library's ``sys.exit``), ``GeneratorExit``
and other classes beside `Exception` too. What is not the child's to decide goes through untouched:
a ``Cancelled`` of an outer scope, ``KeyboardInterrupt``, trio's internal error, our own `Bug`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

import trio

from supervisors._events import Note
from supervisors._exits import Crash, leaves, name_of
from supervisors.errors import Bug

if TYPE_CHECKING:
    from supervisors._cell import Life

#: What is nobody's own and is never contained.
PASSES = (trio.Cancelled, KeyboardInterrupt, trio.TrioInternalError, Bug)


class TaskLost(Exception):
    """A planned fault: the task vanishes. Never seen outside this package."""


def divided(
    error: BaseException, kinds: tuple[type[BaseException], ...] = PASSES
) -> tuple[BaseException | None, BaseException | None]:
    """What of an exception is of `kinds`, and the rest; None where there is nothing.

    Done by hand because ``except*`` cannot say "all but these", and puts a bare exception that it
    raises again into a group.
    """
    matching = [leaf for leaf in leaves(error) if isinstance(leaf, kinds)]
    if not matching:
        return None, error
    if not isinstance(error, BaseExceptionGroup):
        return error, None
    parts = None
    with suppress(Exception):  # a group of a foreign class may not be dividable
        parts = error.split(kinds)
    return parts or (BaseExceptionGroup("the rest is contained", matching), error)


class Wordless(Exception):
    """Stands for an exception whose ``repr`` fails, which is its ``__cause__``.

    A nursery of trio's puts what it sees into words, and does not survive when that fails.
    """


def speakable(error: BaseException) -> BaseException:
    """The exception, or what is to be raised from it in its place before a nursery sees it."""
    passing, own = divided(error)
    if own is None or raised_by(partial(repr, error)) is None:
        return error
    kinds = ", ".join(name_of(type(leaf)) for leaf in leaves(own))
    stand_in = Wordless(f"{kinds}, whose repr failed")
    return stand_in if passing is None else BaseExceptionGroup("both", [passing, stand_in])


def raised_by(hook: Callable[[], object]) -> BaseException | None:
    """What a hook of somebody's raises of its own; None when it returns. Sync.

    For code that runs in the middle of things, where what it raises would hurt others.
    """
    raised: BaseException | None = None
    try:
        hook()
    except PASSES:
        raise
    except BaseException as error:  # noqa: BLE001 containment is this file's purpose
        raised = error
    return raised


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
        except trio.Cancelled:
            raise
        # A child that fails while it is cancelled raises a group of its error and a Cancelled; the
        # error stays here and the Cancelled flies on.
        except BaseException as error:  # noqa: BLE001 containment is this file's purpose
            passing, own = divided(error)
            if own is not None:
                lost, own = divided(own, (TaskLost,))
                life.lost = lost is not None
            if own is not None:
                in_hand = life.in_hand[0] if life.in_hand is not None else None
                crash = Crash(own, life.actor, in_hand)
            if passing is not None:
                raise passing from None
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
    except trio.Cancelled:
        raise
    except BaseException as error:  # noqa: BLE001 containment is this file's purpose
        passing, own = divided(error)
        if own is not None:
            text = f"on_crash failed: {Crash(own).text}"
            life.cell.system.report(Note.HOOK_FAILED, life.cell.path, text)
        if passing is not None:
            raise passing from None
    else:
        if scope.cancelled_caught:
            text = f"on_crash was not done within {within} s"
            life.cell.system.report(Note.HOOK_FAILED, life.cell.path, text)
