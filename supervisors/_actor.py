"""An actor: a class with messages, a mailbox and a receive loop.

This file holds what an actor's author sees, and the loop that runs it. How it ends is in
`_contain`, who restarts it in `_driver`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar

import attrs
import trio
from msgspec import Struct

from supervisors._calls import Reply, Runner, current_runner
from supervisors._contain import speakable
from supervisors._links import Broken, Down, Monitor
from supervisors._mailbox import Envelope
from supervisors._ref import Ref
from supervisors.errors import Bug, Failure, FailureKind, Reject

if TYPE_CHECKING:
    from supervisors._cell import Life
    from supervisors._system import System

M = TypeVar("M")

#: Messages handled between two checkpoints of a busy actor. More is faster, and less fair.
BURST = 32

Handle = Callable[[Any], Awaitable[Any]]


class Helper(Struct, eq=False):
    """A task of an actor, beside its mailbox."""

    name: str
    scope: trio.CancelScope
    done: bool = False

    def cancel(self, reason: str) -> None:
        """Cancel it; sync, and nothing happens when it is done."""
        self.scope.cancel(reason=reason)


class Actor(Generic[M]):
    """Base of all actors. Subclass it, name the messages, write `handle`.

    Its supervisor makes a new object for every incarnation, so ``__init__`` is the place for the
    first state. `kind` is what full mailboxes look at when this actor sends; with `traps_links` a
    broken link is the message `Broken` instead of its death.
    """

    kind: ClassVar[str] = "actor"
    traps_links: ClassVar[bool] = False
    _life: Life

    # ---- for the author -------------------------------------------------------------------------

    async def handle(self, message: M) -> Any:
        """Handle one message; the value returned is the reply when it was a call.

        `Reject` answers a call with a refusal, and tells the `on_lost` of a send. Any other
        exception is a crash, and so is `Reject` when nobody can be told: of a cast, or of a send
        without `on_lost`. What waits on the outside belongs in a helper (`spawn`) that casts its
        results back: while this runs, nothing else of this actor's mailbox does, stops included.
        """
        raise NotImplementedError

    async def on_start(self) -> None:
        """Called first; the actor is ready when it returns. An exception is a failed start."""

    async def on_stop(self, reason: str) -> None:
        """Called at an orderly end, helpers still running; cancelled when the grace is over."""

    async def on_crash(self, error: BaseException | None) -> None:
        """Called after a crash or a kill (then with None), helpers already gone.

        Runs shielded for at most ``shutdown.cleanup`` seconds; what it raises is reported only.
        """

    def inspect(self) -> object:
        """The state, for people to look at. May be called in the middle of a message."""
        return {k: v for k, v in vars(self).items() if k != "_life"}

    # ---- for use in handlers --------------------------------------------------------------------

    @property
    def path(self) -> str:
        """Where this actor is found."""
        return self._life.cell.path

    @property
    def ref(self) -> Ref[M]:
        """A ref to itself, for helpers and messages."""
        return Ref(self._life.cell.system, self._life.cell.path)

    @property
    def system(self) -> System:
        """The tree it lives in: its registry, clock and random source."""
        return self._life.cell.system

    def find(self, path: str) -> Ref[Any]:
        """A ref to `path`, whether or not somebody is there yet."""
        return Ref(self._life.cell.system, path)

    def spawn(
        self,
        fn: Callable[..., Awaitable[object]],
        *args: object,
        name: str = "helper",
        kind: str | None = None,
    ) -> Helper:
        """Start ``fn(*args)`` beside the mailbox. It dies with the actor; its crash is the actor's.

        A `Reply` among `args` is the helper's to answer from now on. `kind` is the helper's as a
        sender, when it differs from the actor's. Not before `on_start`.
        """
        life = self._life
        if life.nursery is None:
            raise Bug(f"{self.path}: a helper before on_start")
        runner = Runner(f"{self.path}#{name}", kind or self.kind)
        for argument in args:
            if isinstance(argument, Reply) and not argument.done:
                argument.holder = runner
        helper = Helper(runner.label, trio.CancelScope())
        life.nursery.start_soon(_run_helper, helper, runner, fn, args, name=runner.label)
        return helper

    def defer(self) -> Reply[Any]:
        """Take over the reply to the message in hand: answer it later, here or in a helper.

        For a cast it is a reply that nobody waits for. Unanswered ones fail when the actor ends.
        """
        life = self._life
        reply = life.in_hand[3] if life.in_hand is not None else None
        if reply is None:
            return Reply(None, float("inf"))
        if life.deferred is None:
            life.deferred = {}
        life.deferred[reply] = None
        reply.deferred_in = life.deferred
        return reply

    def stop(self, reason: str = "done") -> None:
        """End by itself after this message; exit kind ``normal``."""
        self._life.quit(reason)

    def monitor(self, path: str) -> Monitor:
        """Have one `Down` put into the urgent lane when the actor at `path` ends.

        At once when nobody runs there, a restart under way included. It dies with this incarnation.
        """
        life = self._life
        mailbox = life.cell.mailbox

        def tell(down: Down) -> None:
            life.unsubscribe(take_back)
            mailbox.push_urgent(down)

        def take_back() -> None:
            life.unsubscribe(take_back)
            plain.cancel()
            mailbox.discard_urgent(
                lambda message: isinstance(message, Down) and message.monitor == plain.number
            )

        life.subscribe(take_back)
        plain = life.cell.system.monitor(path, tell)
        return attrs.evolve(plain, cancel=take_back)

    def link(self, path: str) -> None:
        """Die together with the actor at `path`: an end of either but a normal one ends both.

        With `traps_links` this side gets `Broken` instead. When nobody runs there it is broken at
        once. Two incarnations are linked once, however often and from whichever side it is asked.
        """
        self._life.cell.system.link(self._life, path)


async def _run_helper(
    helper: Helper,
    runner: Runner,
    fn: Callable[..., Awaitable[object]],
    args: tuple[object, ...],
) -> None:
    current_runner.set(runner)
    try:
        with helper.scope:
            await fn(*args)
    except trio.Cancelled:
        raise
    except BaseException as error:
        if (shown := speakable(error)) is not error:
            raise shown from error
        raise
    finally:
        helper.done = True


# ---- the loop -----------------------------------------------------------------------------------


async def run_actor(life: Life) -> None:
    """One incarnation from start to its own end; whatever else happens flies out of here."""
    cell = life.cell
    current_runner.set(cell.runner)
    actor: Actor[Any] = cell.spec.start(*cell.spec.args)  # type: ignore[operator]
    actor._life = life
    life.actor = actor
    cell.runner.kind = actor.kind
    async with trio.open_nursery() as nursery:
        life.nursery = nursery
        try:
            await actor.on_start()
            life.ready()
            await serve(life, actor.handle)
            await actor.on_stop(life.stop_reason or life.quit_reason or "")
        except trio.Cancelled:
            raise
        except BaseException as error:
            if (shown := speakable(error)) is not error:
                raise shown from error
            raise
        if nursery.child_tasks:
            nursery.cancel_scope.cancel(reason=f"{cell.path} ended")


async def serve(life: Life, handle: Handle) -> None:
    """Handle messages, one at a time, until a stop is wanted.

    The one test of `attention` is all that looking, steering and faults cost when they are off.
    """
    mailbox = life.cell.mailbox
    take = mailbox.take
    left = BURST
    while True:
        if life.attention:
            if not await _with_attention(life, handle):
                return
            left -= 1
            if not left:
                await trio.lowlevel.checkpoint()
                left = BURST
            continue
        envelope = take()
        if envelope is None:
            await mailbox.wait()
            left = BURST
            continue
        life.in_hand = envelope
        if envelope[3] is None:
            await handle(envelope[0])
        else:
            await _answer(life, handle, envelope[0], envelope[3])
        life.in_hand = None
        life.handled += 1
        left -= 1
        if not left:
            await trio.lowlevel.checkpoint()
            left = BURST


async def _answer(life: Life, handle: Handle, message: object, reply: Reply[Any]) -> None:
    if reply.abandoned:
        return  # nobody waits, so it did not happen
    runner = life.cell.runner
    runner.deadline = reply.deadline
    try:
        value = await handle(message)
    except Reject as refusal:
        failure = Failure(
            FailureKind.REJECTED, life.cell.path, refusal.reason, detail=refusal.detail
        )
        reply.fail(failure)
    else:
        if reply.deferred_in is None:
            reply.answer(value)
    finally:
        runner.deadline = float("inf")


async def _with_attention(life: Life, handle: Handle) -> bool:
    """One turn of the loop with someone looking, or a stop wanted; false when it is over."""
    cell = life.cell
    mailbox = cell.mailbox
    probe = cell.probe
    if life.quit_reason is not None:
        return False
    if life.stop_reason is not None and not (mailbox.spec.drain and len(mailbox)):
        return False
    if probe is not None and probe.errands:
        await probe.run_errands(life)
        return True
    if life.stop_reason is None and probe is not None and probe.holds(life):
        await mailbox.wait()
        return True
    envelope = mailbox.take()
    if envelope is None:
        await mailbox.wait()
        return True
    life.in_hand = envelope
    if probe is not None:
        await probe.before(life, envelope)
        handle = probe.wrapped(handle)
    await _handle_one(life, handle, envelope)
    if probe is not None:
        await probe.after(life, envelope)
    life.in_hand = None
    life.handled += 1
    return True


async def _handle_one(life: Life, handle: Handle, envelope: Envelope) -> None:
    if envelope[3] is None:
        await handle(envelope[0])
    else:
        await _answer(life, handle, envelope[0], envelope[3])


__all__ = ["Actor", "Broken", "Down", "Helper", "run_actor", "serve"]
