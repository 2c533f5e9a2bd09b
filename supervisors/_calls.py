"""A call's reply slot, and who waits for whom.

The invariant of a call: it ends in exactly one of a reply, a failure, or the caller's own cancel.
Whoever holds a slot when an actor ends answers it; see `Life.end`.
"""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from functools import partial
from typing import Generic, TypeVar

import trio
from msgspec import Struct

from supervisors._contain import raised_by
from supervisors.errors import Failure

R = TypeVar("R")


class Request(Generic[R]):
    """Base for message classes that are called: ``class Get(Request[int])`` types the reply."""

    __slots__ = ()


class Runner(Struct, eq=False):
    """A task that may send: an actor's own loop, or one of its helpers.

    `waits_for` is what it is blocked on, as the runner that has to move first. A handler that opens
    a nursery may wait for several things at once: the others are in `also`, which is None as a
    rule. `deadline` is the caller's, while a call is being handled.
    """

    label: str
    kind: str
    waits_for: Reply[object] | Runner | None = None
    also: list[Reply[object] | Runner] | None = None
    deadline: float = float("inf")

    def waits(self, thing: Reply[object] | Runner) -> None:
        """It is blocked on `thing`, perhaps beside others, until `waited`."""
        if self.waits_for is None:
            self.waits_for = thing
        elif self.also is None:
            self.also = [thing]
        else:
            self.also.append(thing)

    def waited(self, thing: Reply[object] | Runner) -> None:
        """It is not blocked on `thing` any more; nothing happens when it was not."""
        also = self.also
        if self.waits_for is thing:
            self.waits_for = also.pop() if also else None
        elif also:
            # By identity: two waits for room may be for the same runner.
            place = next((n for n, each in enumerate(also) if each is thing), -1)
            if place >= 0:
                del also[place]
        if not also:
            self.also = None

    def blocker(self) -> Runner | None:
        """The runner that must act before this one can go on, if that is known; the first of many.

        The others are among `blockers`.
        """
        waits_for = self.waits_for
        return waits_for.holder if isinstance(waits_for, Reply) else waits_for

    def blockers(self) -> list[Runner]:
        """All runners that must act before this one can go on."""
        things = (self.waits_for, *(self.also or ()))
        found = [thing.holder if isinstance(thing, Reply) else thing for thing in things]
        return [runner for runner in found if runner is not None]


#: The runner of the current task; helpers are given their own, everything else inherits.
current_runner: ContextVar[Runner | None] = ContextVar("current_runner", default=None)


def cycle(waiter: Runner, target: Runner) -> tuple[str, ...]:
    """The chain that would close if `waiter` now waited for `target`; empty when there is none."""
    chain = [waiter.label, target.label]
    runner: Runner | None = target
    while runner is not waiter:
        if runner is None:
            return ()
        if runner.also is not None:
            return _cycle_among_many(waiter, target)
        if (runner := runner.blocker()) is None:
            return ()
        chain.append(runner.label)
        if len(chain) > 1000:  # a circle that does not go through `waiter`: not ours to report
            return ()
    return tuple(chain)


def _cycle_among_many(waiter: Runner, target: Runner) -> tuple[str, ...]:
    """As `cycle`, where somebody on the way waits for several things at once."""
    came_from: dict[int, Runner] = {id(target): waiter}
    todo = [target]
    while todo:
        runner = todo.pop()
        if runner is waiter:
            chain = [waiter.label]
            while (runner := came_from[id(runner)]) is not waiter:
                chain.append(runner.label)
            return (waiter.label, *reversed(chain))
        for blocker in runner.blockers():
            if id(blocker) not in came_from:
                came_from[id(blocker)] = runner
                todo.append(blocker)
    return ()


class Reply(Generic[R]):
    """Where the answer to one call goes. Answer it once; later answers are dropped.

    A handler gets hold of it with `Actor.defer`, and may give it to a helper.
    """

    __slots__ = (
        "_task",
        "abandoned",
        "deadline",
        "deferred_in",
        "done",
        "failure",
        "holder",
        "value",
    )

    def __init__(self, holder: Runner | None, deadline: float) -> None:
        #: Who is going to answer: the callee's loop, or the helper the reply was handed to.
        self.holder = holder
        self.deadline = deadline
        self.done = False
        #: The caller gave up; nobody reads the answer.
        self.abandoned = False
        #: Where the callee's incarnation remembers that it still owes this one.
        self.deferred_in: dict[Reply[R], None] | None = None
        self._task: trio.lowlevel.Task | None = None
        self.value: R | None = None
        self.failure: Failure | None = None

    def answer(self, value: R) -> None:
        """Send the reply; sync, never fails. The first answer counts."""
        if not self.done:
            self.value = value
            self._finish()

    def fail(self, failure: Failure) -> None:
        """Send a failure instead; sync, never fails."""
        if not self.done:
            self.failure = failure
            self._finish()

    def _finish(self) -> None:
        self.done = True
        self.holder = None
        if self.deferred_in is not None:
            del self.deferred_in[self]
        task, self._task = self._task, None
        if task is not None:
            trio.lowlevel.reschedule(task)

    async def wait(self) -> None:
        """Wait until it is done; a checkpoint unless it is done already. Only the caller."""
        if not self.done:
            self._task = trio.lowlevel.current_task()
            await trio.lowlevel.wait_task_rescheduled(self._abort)

    def _abort(self, _raise_cancel: object) -> trio.lowlevel.Abort:
        self._task = None
        return trio.lowlevel.Abort.SUCCEEDED


class Receipt(Reply[None]):
    """In the reply slot of a message that nobody waits for, but whose loss somebody wants to know.

    It is lost when the actor ends before it was done with it, in hand or still waiting, and when
    the actor rejects it. What `on_lost` raises goes to `hurt`.
    """

    __slots__ = ("_hurt", "_on_lost")

    def __init__(
        self, on_lost: Callable[[Failure], None], hurt: Callable[[BaseException], None]
    ) -> None:
        super().__init__(None, float("inf"))
        self._on_lost = on_lost
        self._hurt = hurt

    def fail(self, failure: Failure) -> None:
        """It was lost: say so, once."""
        if not self.done:
            super().fail(failure)
            error = raised_by(partial(self._on_lost, failure))
            if error is not None:
                self._hurt(error)
