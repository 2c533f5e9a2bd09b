"""`Post`: all that hangs on one actor while people are attached to it.

It has the last messages, knows who holds the actor and why, and tells everybody there what happens.
It is made for the first who comes and gone with the last, who leaves nothing behind: no trace, no
breakpoint, and no actor that is paused.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from typing import Protocol

from msgspec import Struct

from actors.host import Host
from actors.notices import Notices
from actors.sentences import paused
from ahpd.inspection.breaks import Break, said_since
from ahpd.inspection.subjects import Subject
from ahpd.inspection.words import brief, how_it_ended
from ahpd.protocol.actions import StateAction
from supervisors import Exit, SupervisorsError, sys
from supervisors.sys import TraceEvent, TraceKind

#: Messages that are remembered.
KEPT = 200


class Watcher(Protocol):
    """Somebody who is attached. All of it is sync and never fails."""

    name: str
    breaks: dict[int, Break]

    def tell(self, what: str, **more: object) -> None:
        """Something happened: its kind, and what is to be known about it."""

    def traced(self, event: Happening) -> None:
        """The actor did something."""


class Happening(Struct, eq=False):
    """One thing that the actor did. `at` is ISO 8601, `took` seconds, None while it is at it."""

    at: str
    kind: str
    message: object = None
    call: bool = False
    took: float | None = None
    #: What it said meanwhile.
    said: Sequence[StateAction] = ()


class Post:
    """See the module."""

    def __init__(self, subject: Subject, host: Host, notices: Notices) -> None:
        self.subject = subject
        self.recent: deque[Happening] = deque(maxlen=KEPT)
        #: Who holds it, and why.
        self.holders: dict[Watcher, str] = {}
        self.watchers: dict[Watcher, None] = {}
        self._host = host
        self._notices = notices
        self._in_debugger = False
        self._seq = host.ledger.seq
        #: Whose breakpoint is about to hold it, and why.
        self._hit: tuple[Watcher, str] | None = None
        self._undo = (
            sys.trace(subject.ref, self._sink),
            sys.break_when(subject.ref, self.hit_before),
        )

    # ---- who is there ------------------------------------------------------------------------

    def come(self, watcher: Watcher) -> None:
        """Somebody is attached."""
        self.watchers[watcher] = None

    def leave(self, watcher: Watcher) -> None:
        """Somebody is gone: what only they held goes on. Sync, and harmless twice."""
        self.watchers.pop(watcher, None)
        if self.holders.pop(watcher, None) is not None and not self.holders:
            self._go_on(f"{watcher.name} left")
        if not self.watchers:
            for undo in self._undo:
                undo()

    def tell_all(self, what: str, **more: object) -> None:
        """Tell everybody who is attached."""
        for watcher in list(self.watchers):
            watcher.tell(what, **more)

    # ---- holding it --------------------------------------------------------------------------

    def hold(self, watcher: Watcher, why: str) -> None:
        """Have it take no further message, until resumed. Raises `ActorGone`.

        The others are told; whoever does it knows.
        """
        sys.suspend(self.subject.ref)
        self.holders.setdefault(watcher, why)
        self._say_so()
        for each in list(self.watchers):
            if each is not watcher:
                each.tell("held", why=why)

    def release(self, watcher: Watcher) -> bool:
        """Have it go on, whoever holds it; False when nobody does."""
        if not self.holders:
            return False
        self.holders.clear()
        self._go_on(f"resumed by {watcher.name}")
        return True

    def hit_before(self, message: object) -> bool:
        """Whether a breakpoint of somebody's holds it before this message. Sync; never fails."""
        actor = self.subject.actor
        if actor is None:
            return False
        channel = self.subject.channel
        for watcher in self.watchers:
            for each in watcher.breaks.values():
                why = each.hit_before(message, channel, actor)
                if why is not None:
                    each.held_before = message
                    self._hit = (watcher, f"breakpoint {each.number} of {watcher.name}: {why}")
                    return True
        return False

    def still_held(self) -> None:
        """A message was handled in between: say again what it may have said otherwise."""
        if self.holders:
            self._say_so()

    def debugged(self, message: str | None) -> None:
        """Somebody's debugger is about to be in the middle of this message; None: not any more.

        Nothing is said on the channel meanwhile: its state is the handler's, who may be about to
        change it.
        """
        if message is not None:
            self._say_so()
            self.tell_all("debugged", message=message)
        self._in_debugger = message is not None
        if message is None and not self.holders:
            self._notices.take_back(self.subject.path)

    def _say_so(self) -> None:
        if not self._in_debugger:
            self._notices.say(self.subject.path, paused(self.subject.path))

    def _go_on(self, why: str) -> None:
        if not self._in_debugger:
            self._notices.take_back(self.subject.path)
        with suppress(SupervisorsError):  # it is gone, and so is what was to go on
            sys.resume(self.subject.ref)
        self.tell_all("resumed", why=why)

    # ---- what happens ------------------------------------------------------------------------

    def _sink(self, event: TraceEvent) -> None:
        """In the actor's own step: quick, and nothing of it is written here."""
        seen = Happening(self._host.clock.now(), event.kind.value, event.message, event.call)
        match event.kind:
            case TraceKind.MESSAGE:
                self._seq = self._host.ledger.seq
                self.recent.append(seen)
            case TraceKind.HANDLED:
                seen.took, seen.said = event.took, self._said()
                if self.recent and self.recent[-1].message is event.message:
                    self.recent[-1].took, self.recent[-1].said = seen.took, seen.said
                self._look_for_breaks(seen)
            case TraceKind.HELD:
                self._held()
            case TraceKind.ENDED:
                self._ended(event.message)
            case TraceKind.STARTED:
                self.tell_all("started")
            case _:
                pass
        for watcher in list(self.watchers):
            watcher.traced(seen)

    def _said(self) -> list[StateAction]:
        return said_since(self._host, self._seq, self.subject.path)

    def _look_for_breaks(self, seen: Happening) -> None:
        channel, actor = self.subject.channel, self.subject.actor
        if channel is None or actor is None or not seen.said:
            return
        for watcher in list(self.watchers):
            for each in watcher.breaks.values():
                if each.held_before is seen.message:
                    continue  # for this very message it was held before
                why = each.hit_after(seen.said, seen.message, channel, actor)
                if why is not None:
                    self._hit = (watcher, f"breakpoint {each.number} of {watcher.name}: {why}")
                    if self.holders:
                        self._held()
                    else:
                        sys.suspend(self.subject.ref)

    def _held(self) -> None:
        hit, self._hit = self._hit, None
        if hit is None:
            return  # by hand: who did it tells
        watcher, why = hit
        self.holders.setdefault(watcher, why)
        self._say_so()
        self.tell_all("held", why=why, message=self._next())

    def _next(self) -> str | None:
        cell = self.subject.ref.cell
        head = cell.mailbox.peek() if cell is not None else None
        return None if head is None else brief(head[0])

    def _ended(self, exit: object) -> None:
        why = how_it_ended(exit) if isinstance(exit, Exit) else "ended"
        self.tell_all("ended", why=why)
        if self.holders:
            self.holders.clear()
            self._go_on(f"the actor ended ({why}), and the pause with it")
