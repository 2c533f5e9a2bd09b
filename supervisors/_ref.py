"""How messages are sent: a `Ref` names a path and keeps working over restarts.

The sender's side of every rule is here: what its kind meets at a full mailbox, how long a call may
take, whether a wait would close a circle.
"""

from __future__ import annotations

from collections.abc import Callable
from math import isnan
from typing import TYPE_CHECKING, Any, Generic, TypeVar, overload

import trio

from supervisors._calls import Receipt, Reply, Request, Runner, current_runner, cycle
from supervisors._mailbox import Mailbox, MailboxStats, Shut
from supervisors._spec import AtBound
from supervisors.errors import (
    ActorGone,
    CallFailed,
    Failure,
    FailureKind,
    MailboxFull,
    MailboxOverrun,
    MessageTooLarge,
    WaitCycle,
)

if TYPE_CHECKING:
    from supervisors._cell import Cell
    from supervisors._system import System

M = TypeVar("M")
R = TypeVar("R")

#: What a message costs in bytes when its sender does not say.
COST = 64

#: Seconds that a nested call ends before the call it serves. With equal deadlines both would end in
#: the same tick, and either might be seen first.
HOP = 0.01

_NOBODY = Shut(ActorGone, FailureKind.GONE, "no actor at this path")


class Ref(Generic[M]):
    """The actor at a path, whichever incarnation runs; equal to every other ref of that path.

    Cheap to make and to send along in messages. `cost` is always the bytes a message holds on to;
    one that is no number from 0 on is a `ValueError`.
    """

    __slots__ = ("_cell", "_system", "path")

    def __init__(self, system: System, path: str) -> None:
        self.path = path
        self._system = system
        self._cell = system.registry.get(path)

    # ---- casts ----------------------------------------------------------------------------------

    def cast(self, message: M, *, cost: int = COST, urgent: bool = False) -> None:
        """Send without waiting and without an answer. Sync: not a checkpoint.

        `urgent` takes the priority lane, which overtakes data. At a full mailbox the sender's kind
        decides: `MailboxOverrun` for a fault, else `MailboxFull`. Raises `MessageTooLarge` when it
        could never fit, `ActorGone` (`ActorParked`) when nobody takes messages there.
        """
        cell = self._cell
        if not urgent and cell is not None and cell.mailbox.offer(message, cost, None):
            return
        mailbox = self._open_mailbox()
        if self._offer(mailbox, message, cost, None, urgent):
            return
        self._refuse(mailbox, cost)
        raise MailboxFull(self.path, f"mailbox full: {_depth(mailbox)}")

    async def send(
        self,
        message: M,
        *,
        cost: int = COST,
        urgent: bool = False,
        on_lost: Callable[[Failure], None] | None = None,
    ) -> None:
        """Send without an answer; a sender whose kind waits at the bound waits for room.

        Always a checkpoint; cancelled means that the message was not sent. The urgent lane never
        waits. Raises what `cast` raises, and `WaitCycle` when the receiver waits for this sender.

        `on_lost` is called once when the message was sent and the actor ended before it was done
        with it (while it waited, or in the middle of it), or answered it with `Reject`. It is sync;
        what it raises is reported and hurts nobody.
        """
        await trio.lowlevel.checkpoint_if_cancelled()
        mailbox = self._open_mailbox()
        receipt = None if on_lost is None else Receipt(on_lost, self._on_lost_failed)
        if self._offer(mailbox, message, cost, receipt, urgent):
            await trio.lowlevel.cancel_shielded_checkpoint()
        elif self._refuse(mailbox, cost) and not urgent:
            await self._wait_for_room(mailbox, message, cost, receipt)
        else:
            raise MailboxFull(self.path, f"mailbox full: {_depth(mailbox)}")

    def _on_lost_failed(self, error: BaseException) -> None:
        self._system.hook_failed(self.path, "on_lost", error)

    # ---- calls ----------------------------------------------------------------------------------

    @overload
    async def call(
        self, message: Request[R], *, within: float, cost: int = COST, urgent: bool = False
    ) -> R: ...
    @overload
    async def call(
        self, message: M, *, within: float, cost: int = COST, urgent: bool = False
    ) -> Any: ...
    async def call(
        self, message: Any, *, within: float, cost: int = COST, urgent: bool = False
    ) -> Any:
        """Send and wait at most `within` seconds for the reply. A checkpoint.

        Raises `CallFailed`, whose `failure` says why, and `MailboxOverrun` when the sender's kind
        makes a full mailbox a fault. Inside a handler that serves a call the time left to that
        call is the upper limit. Cancelled or timed out means: a late reply is dropped, and a
        message still queued is not handled.
        """
        reply = await self._exchange(message, within, cost, urgent)
        if reply.failure is not None:
            raise CallFailed(reply.failure)
        return reply.value

    @overload
    async def attempt(
        self, message: Request[R], *, within: float, cost: int = COST, urgent: bool = False
    ) -> R | Failure: ...
    @overload
    async def attempt(
        self, message: M, *, within: float, cost: int = COST, urgent: bool = False
    ) -> Any: ...
    async def attempt(
        self, message: Any, *, within: float, cost: int = COST, urgent: bool = False
    ) -> Any:
        """As `call`, with the `Failure` as a value instead of an exception."""
        reply = await self._exchange(message, within, cost, urgent)
        return reply.value if reply.failure is None else reply.failure

    async def _exchange(
        self, message: object, within: float, cost: int, urgent: bool
    ) -> Reply[Any]:
        """One call, to its end: the reply that comes back is done."""
        if isnan(within):
            raise ValueError(f"{self.path}: a call within {within} s ends at no time")
        await trio.lowlevel.checkpoint_if_cancelled()
        runner = current_runner.get()
        deadline = self._system.now() + within
        if runner is not None:
            deadline = min(deadline, runner.deadline - HOP)
        cell = self._cell
        reply: Reply[Any] = Reply(cell.runner if cell is not None else None, deadline)
        if cell is None or runner is not None or cell.mailbox.shut is not None:
            self._prepare(reply, runner)
            if reply.done:
                await trio.lowlevel.cancel_shielded_checkpoint()
                return reply
            cell = self._cell
            assert cell is not None
        try:
            with trio.CancelScope(deadline=deadline):
                if not self._offer(cell.mailbox, message, cost, reply, urgent):
                    await self._enter(cell.mailbox, message, cost, reply, urgent)
                if runner is not None:
                    if runner.waits_for is None:
                        runner.waits_for = reply
                    else:
                        runner.waits(reply)
                await reply.wait()
        finally:
            if runner is not None:
                if runner.waits_for is reply and runner.also is None:
                    runner.waits_for = None
                else:
                    runner.waited(reply)
            # Whoever gets to it later sees that nobody waits any more.
            reply.abandoned = not reply.done
        if not reply.done:
            reply.fail(Failure(FailureKind.TIMEOUT, self.path, f"no reply within {within} s"))
        return reply

    def _prepare(self, reply: Reply[Any], runner: Runner | None) -> None:
        """The slow way in: find the cell, refuse what cannot work."""
        shut = self._resolve()
        cell = self._cell
        if shut is not None:
            crash = (
                cell.last_exit.crash if cell is not None and cell.last_exit is not None else None
            )
            reply.fail(Failure(shut.failure, self.path, shut.why, crash=crash))
            return
        assert cell is not None
        reply.holder = cell.runner
        chain = cycle(runner, cell.runner) if runner is not None else ()
        if chain:
            reply.fail(Failure(FailureKind.CYCLE, self.path, " -> ".join(chain), chain=chain))

    async def _enter(
        self, mailbox: Mailbox, message: object, cost: int, reply: Reply[Any], urgent: bool
    ) -> None:
        """At the bound with a call: wait for room if the sender's kind does, else say why not."""
        try:
            if self._refuse(mailbox, cost) and not urgent:
                await self._wait_for_room(mailbox, message, cost, reply)
                return
            failure = Failure(FailureKind.FULL, self.path, f"mailbox full: {_depth(mailbox)}")
        except MessageTooLarge as error:
            failure = Failure(FailureKind.FULL, self.path, error.why)
        except WaitCycle as error:
            failure = Failure(FailureKind.CYCLE, self.path, str(error), chain=error.chain)
        except ActorGone as error:
            shut = mailbox.shut
            kind = shut.failure if shut is not None else FailureKind.GONE
            failure = Failure(kind, self.path, error.why)
        reply.fail(failure)
        await trio.lowlevel.cancel_shielded_checkpoint()

    # ---- finding it -----------------------------------------------------------------------------

    def _resolve(self) -> Shut | None:
        """Find the cell at the path now; why it takes nothing, if so."""
        cell = self._cell
        if cell is None or cell.mailbox.shut is not None:
            found = self._system.registry.get(self.path)
            # A path that is free again keeps its last cell here, for what it says about its end.
            cell = self._cell = found if found is not None else cell
        return _NOBODY if cell is None else cell.mailbox.shut

    def _open_mailbox(self) -> Mailbox:
        shut = self._resolve()
        if shut is not None:
            raise shut.error(self.path, shut.why)
        assert self._cell is not None
        return self._cell.mailbox

    @property
    def cell(self) -> Cell | None:
        """The place behind the path, for the looking and steering functions."""
        self._resolve()
        return self._cell

    # ---- at the bound ---------------------------------------------------------------------------

    @staticmethod
    def _offer(
        mailbox: Mailbox, message: object, cost: int, reply: Reply[Any] | None, urgent: bool
    ) -> bool:
        if urgent:
            return mailbox.offer_urgent(message, reply)
        return mailbox.offer(message, cost, reply)

    def _refuse(self, mailbox: Mailbox, cost: int) -> bool:
        """Whether the sender's kind waits for room; raises for a fault, or if waiting is vain."""
        if not cost >= 0:  # NaN neither
            raise ValueError(f"{self.path}: a cost of {cost} is not a number >= 0")
        if cost > mailbox.max_size:
            why = f"a message of {cost} bytes can never fit into {mailbox.max_size}"
            raise MessageTooLarge(self.path, why)
        runner = current_runner.get()
        kind = runner.kind if runner is not None else "outside"
        choice = mailbox.spec.at_bound.get(kind, mailbox.spec.otherwise)
        if choice is AtBound.FAULT:
            sender = runner.label if runner is not None else trio.lowlevel.current_task().name
            figures = mailbox.statistics()
            raise MailboxOverrun(
                sender, kind, self.path, figures.depth + figures.urgent, figures.size
            )
        return choice is AtBound.WAIT

    async def _wait_for_room(
        self, mailbox: Mailbox, message: object, cost: int, reply: Reply[Any] | None
    ) -> None:
        runner = current_runner.get()
        if runner is None:
            await mailbox.wait_for_room(message, cost, reply)
            return
        assert self._cell is not None
        chain = cycle(runner, self._cell.runner)
        if chain:
            raise WaitCycle(chain)
        receiver = self._cell.runner
        runner.waits(receiver)
        try:
            await mailbox.wait_for_room(message, cost, reply)
        finally:
            runner.waited(receiver)

    # ---- looking --------------------------------------------------------------------------------

    @property
    def alive(self) -> bool:
        """Whether an incarnation runs now."""
        cell = self.cell
        return cell is not None and cell.life is not None

    @property
    def backlog(self) -> int:
        """How many messages wait in its mailbox; 0 when there is no actor at the path."""
        cell = self._cell
        return len(cell.mailbox) if cell is not None else 0

    def statistics(self) -> MailboxStats | None:
        """Figures of its mailbox; None when there is no actor at the path."""
        cell = self.cell
        return cell.mailbox.statistics() if cell is not None else None

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Ref):
            return NotImplemented
        return self.path == other.path and self._system is other._system

    def __hash__(self) -> int:
        return hash(self.path)

    def __repr__(self) -> str:
        return f"Ref({self.path!r})"


def _depth(mailbox: Mailbox) -> str:
    figures = mailbox.statistics()
    return f"{figures.depth} messages and {figures.size} bytes wait, {figures.urgent} urgent"
