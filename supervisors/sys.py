"""Looking at actors and steering them, one at a time, while all others run on.

Everything takes a `Ref`. What is not used costs nothing; what is used hangs on the path and stays
over restarts. A suspended actor takes no message, so its senders feel its full mailbox and nothing
else; a stop by its supervisor, a kill, and the death of a link still reach it.

Functions raise `ActorGone` when there is nothing at the path.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import trio
from msgspec import Struct

from supervisors._actor import Actor
from supervisors._cell import Cell
from supervisors._contain import raised_by
from supervisors._exits import Exit, ExitKind
from supervisors._glance import Glance, glance_at, phase_of
from supervisors._mailbox import MailboxStats
from supervisors._probe import Errand, Predicate, Probe, Sink, TraceEvent, TraceKind, Wrap
from supervisors._ref import Ref
from supervisors._spec import ChildSpec
from supervisors._stacks import Place, Stack, stacks_of
from supervisors._system import System, await_frames
from supervisors.errors import ActorGone

__all__ = [
    "Glance",
    "HelperInfo",
    "Inspection",
    "Place",
    "Stack",
    "TraceEvent",
    "TraceKind",
    "actor_at",
    "around_next",
    "between",
    "break_when",
    "glance",
    "held",
    "inspect",
    "inspect_all",
    "keep",
    "kill",
    "paths",
    "resume",
    "stacks",
    "step",
    "stream",
    "suspend",
    "trace",
    "waits_at",
]


class HelperInfo(Struct, frozen=True):
    """One helper task: its name, and where it waits (outermost frame first)."""

    name: str
    waits_at: tuple[str, ...]


class Inspection(Struct, frozen=True):
    """An actor at one moment. Times in trio's seconds.

    `phase` is how it came to rest last, or ``running``/``starting``/``suspended``. `recent` are the
    last messages with the times they were taken, oldest first, as far as `keep` was on. `waits_at`
    is where its task waits now, outermost frame first. `state` is what `Actor.inspect` gave, or the
    exception it raised. `last_exit` has the traceback of a crash.
    """

    path: str
    kind: str
    supervisor: str
    spec: ChildSpec
    phase: str
    incarnation: int
    restarts: int
    since: float | None
    handled: int
    mailbox: MailboxStats
    in_hand: object
    in_hand_sent_at: float | None
    waiting: tuple[object, ...]
    recent: tuple[tuple[float, object], ...]
    waits_at: tuple[str, ...]
    waits_for: str | None
    helpers: tuple[HelperInfo, ...]
    suspended: bool
    breakpoints: int
    owed_replies: int
    last_exit: Exit | None
    state: object


def inspect(ref: Ref[Any]) -> Inspection:
    """All there is to see of one actor, now, in the middle of a message too. Sync."""
    return _inspect(_cell(ref))


def inspect_all(system: System) -> list[Inspection]:
    """All actors and supervisors of a tree, sorted by path. Sync."""
    cells = [system.registry.get(path) for path in system.registry.under("")]
    return [_inspect(cell) for cell in cells if cell is not None]


def paths(system: System, under: str = "") -> list[str]:
    """The paths of all actors and supervisors below one, sorted; of all for ``""``. Sync."""
    return system.registry.under(under)


def glance(system: System, path: str) -> Glance | None:
    """The figures of one actor or supervisor, in passing; None when nothing is there. Sync."""
    cell = system.registry.get(path)
    return None if cell is None else glance_at(cell)


def actor_at(system: System, path: str) -> Actor[Any] | None:
    """The object that is the actor at a path now; None when none runs. Sync.

    Only for reading: between two of its messages, or what cannot change in the middle of one.
    """
    cell = system.registry.get(path)
    return cell.life.actor if cell is not None and cell.life is not None else None


def waits_at(system: System, path: str) -> tuple[str, ...]:
    """Where its task waits now, outermost frame first; empty when none runs. Sync."""
    cell = system.registry.get(path)
    life = cell.life if cell is not None else None
    return tuple(await_frames(life.task)) if life is not None else ()


def suspend(ref: Ref[Any]) -> None:
    """Take no further message; the one in hand is finished. Sync. Again is harmless."""
    cell = _cell(ref)
    _probe(cell).hold(cell, "by hand")
    _changed(cell)


def resume(ref: Ref[Any]) -> None:
    """Go on, past the breakpoint that holds it, if one does. Sync. Again is harmless."""
    cell = _cell(ref)
    if cell.probe is not None:
        cell.probe.release(cell)
        _drop_if_idle(cell)


async def held(ref: Ref[Any]) -> None:
    """Wait until it is suspended with nothing in hand: by `suspend` or at a breakpoint.

    A checkpoint. Waits over restarts, and for ever when the path is given up.
    """
    await trio.lowlevel.checkpoint()
    cell = _cell(ref)
    probe = _probe(cell)
    if probe.suspended and cell.life is not None and cell.life.in_hand is None:
        return
    if probe.held is None:
        probe.held = trio.Event()
    await probe.held.wait()


async def step(ref: Ref[Any], n: int = 1) -> int:
    """Let a suspended actor handle up to `n` messages; how many it did handle.

    Returns when they are handled, when none is left, or when the actor ended. A checkpoint;
    cancelled means that it handles no more of them. Raises ValueError when it is not suspended or
    somebody else steps it.
    """
    cell = _cell(ref)
    probe = _probe(cell)
    if not probe.suspended or probe.stepping is not None:
        raise ValueError(f"{cell.path}: not suspended, or stepped by somebody else")
    if cell.life is None:
        await trio.lowlevel.checkpoint()
        return 0
    before = probe.stepped
    probe.allowance = n
    done = probe.stepping = trio.Event()
    _changed(cell)
    try:
        await done.wait()
    finally:
        if probe.stepping is done:
            probe.end_step()
    return probe.stepped - before


def break_when(ref: Ref[Any], predicate: Predicate) -> Callable[[], None]:
    """Suspend it before the first message for which `predicate` is true; gives the way to undo.

    Sync. The predicate runs in the actor's task; if it raises it is removed and reported.
    """
    cell = _cell(ref)
    number = cell.system.number()
    _probe(cell).breakpoints[number] = predicate
    _changed(cell)
    return _undo(cell, lambda probe: probe.breakpoints.pop(number, None))


async def between(ref: Ref[Any], do: Callable[[Any], Awaitable[None]]) -> bool:
    """Have ``await do(actor)`` done in the actor's own task, between two messages, paused or not.

    A checkpoint. False when the actor ended before it was done, or `do` raised, which is reported
    and hurts nobody. What it waits for holds up the actor. Cancelled: not begun, it is not done.
    """
    await trio.lowlevel.checkpoint()
    cell = _cell(ref)
    if cell.life is None:
        return False
    errand = Errand(do, trio.Event())
    probe = _probe(cell)
    if probe.errands is None:
        probe.errands = deque()
    probe.errands.append(errand)
    _changed(cell)
    try:
        await errand.over.wait()
    finally:
        if probe.errands and errand in probe.errands:
            probe.errands.remove(errand)
        _drop_if_idle(cell)
    return errand.ran


def around_next(ref: Ref[Any], wrap: Wrap) -> Callable[[], None]:
    """Have its next message handled by ``wrap(handle)``; gives the way to undo.

    Sync. What is raised there is the actor's own crash. Raises ValueError when somebody else waits
    for that message.
    """
    cell = _cell(ref)
    probe = _probe(cell)
    if probe.wrap is not None:
        raise ValueError(f"{cell.path}: somebody else waits for its next message")
    probe.wrap = wrap
    _changed(cell)

    def remove(probe: Probe) -> None:
        if probe.wrap is wrap:
            probe.wrap = None

    return _undo(cell, remove)


def stacks(ref: Ref[Any]) -> tuple[Stack, ...]:
    """Where its task and its helpers wait now, with source lines; empty when none runs. Sync."""
    return stacks_of(_cell(ref))


def trace(ref: Ref[Any], sink: Sink) -> Callable[[], None]:
    """Call `sink` with everything it does from now on; gives the way to undo.

    Sync. The sink runs in the actor's task and must not wait; if it raises it is removed and
    reported.
    """
    cell = _cell(ref)
    number = cell.system.number()
    _probe(cell).sinks[number] = sink
    _changed(cell)
    return _undo(cell, lambda probe: probe.sinks.pop(number, None))


@contextmanager
def stream(ref: Ref[Any], buffer: int = 256) -> Iterator[trio.MemoryReceiveChannel[TraceEvent]]:
    """A trace as a channel, for the length of the block.

    A reader that is more than `buffer` events behind loses the newest ones: it never holds up the
    actor.
    """
    send, receive = trio.open_memory_channel[TraceEvent](buffer)

    def sink(event: TraceEvent) -> None:
        with suppress(trio.WouldBlock, trio.BrokenResourceError):
            send.send_nowait(event)

    undo = trace(ref, sink)
    with send, receive:
        try:
            yield receive
        finally:
            undo()


def keep(ref: Ref[Any], n: int) -> None:
    """Remember the last `n` messages from now on; 0 for none. It holds on to the messages. Sync."""
    cell = _cell(ref)
    _probe(cell).recent = deque(maxlen=n) if n else None
    _changed(cell)
    _drop_if_idle(cell)


def kill(ref: Ref[Any], reason: str = "killed by hand") -> bool:
    """End the incarnation at once; its supervisor does what it does about any failure. Sync.

    False when none runs.
    """
    life = _cell(ref).life
    if life is None:
        return False
    life.kill(ExitKind.KILLED, reason)
    return True


# ---- inside -------------------------------------------------------------------------------------


def _cell(ref: Ref[Any]) -> Cell:
    cell = ref.cell
    if cell is None or cell.gone:
        raise ActorGone(ref.path, "no actor at this path")
    return cell


def _probe(cell: Cell) -> Probe:
    if cell.probe is None:
        cell.probe = Probe(cell.path)
    return cell.probe


def _changed(cell: Cell) -> None:
    if cell.life is not None:
        cell.life.probe_changed()


def _drop_if_idle(cell: Cell) -> None:
    if cell.probe is not None and cell.probe.idle:
        cell.probe.end_step()
        cell.probe = None
    _changed(cell)


def _undo(cell: Cell, remove: Callable[[Probe], object]) -> Callable[[], None]:
    def undo() -> None:
        if cell.probe is not None:
            remove(cell.probe)
            _drop_if_idle(cell)

    return undo


def _inspect(cell: Cell) -> Inspection:
    life, probe, runner = cell.life, cell.probe, cell.runner
    in_hand = life.in_hand if life is not None else None
    blocker = runner.blocker()
    nursery = life.nursery if life is not None else None
    return Inspection(
        path=cell.path,
        kind="supervisor" if cell.driver is not None else runner.kind,
        supervisor=cell.parent,
        spec=cell.spec,
        phase=phase_of(cell),
        incarnation=cell.incarnation,
        restarts=cell.restarts,
        since=life.since if life is not None else None,
        handled=life.handled if life is not None else 0,
        mailbox=cell.mailbox.statistics(),
        in_hand=in_hand[0] if in_hand is not None else None,
        in_hand_sent_at=in_hand[2] if in_hand is not None else None,
        waiting=tuple(envelope[0] for envelope in cell.mailbox),
        recent=tuple(probe.recent or ()) if probe is not None else (),
        waits_at=tuple(await_frames(life.task)) if life is not None else (),
        waits_for=blocker.label if blocker is not None else None,
        helpers=tuple(
            HelperInfo(task.name, tuple(await_frames(task)))
            for task in sorted(
                nursery.child_tasks if nursery is not None else (), key=lambda task: task.name
            )
        ),
        suspended=probe is not None and probe.suspended,
        breakpoints=len(probe.breakpoints) if probe is not None else 0,
        owed_replies=len(life.deferred or ()) if life is not None else 0,
        last_exit=cell.last_exit,
        state=_state(cell),
    )


def _state(cell: Cell) -> object:
    actor = cell.life.actor if cell.life is not None else None
    if actor is None:
        return None
    seen: list[object] = []
    # Who looks must not be hurt by what is looked at.
    error = raised_by(lambda: seen.append(actor.inspect()))
    return seen[0] if error is None else error
