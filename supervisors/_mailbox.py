"""A mailbox: two lanes, bounded by count and by bytes, for one reader.

It belongs to a path, not to an incarnation, so that a message can wait out a restart. It knows
nothing of actors: whether a sender waits, is refused or faults is decided where the sender is
known, in `Ref`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import trio
from msgspec import Struct

from supervisors._spec import MailboxSpec
from supervisors.errors import ActorGone, FailureKind, MessageTooLarge

if TYPE_CHECKING:
    from supervisors._calls import Reply

#: Message, cost in bytes, time it came (seconds of trio's clock), whom to answer.
#: A plain tuple because one is made for every message.
Envelope = tuple[Any, int, float, "Reply[Any] | None"]


class Shut(Struct, frozen=True):
    """Why a mailbox takes nothing: the error for a cast, the failure for a call, and the text."""

    error: type[ActorGone]
    failure: FailureKind
    why: str


class MailboxStats(Struct, frozen=True):
    """Figures of a mailbox at one moment; sizes in bytes, ages in seconds."""

    depth: int
    size: int
    urgent: int
    oldest_age: float
    senders_waiting: int
    dropped: int


class _Waiter(Struct, eq=False):
    """A sender that waits for room; its message is put in by the reader who made the room."""

    task: trio.lowlevel.Task
    message: object
    cost: int
    reply: Reply[Any] | None
    refused: Shut | None = None


class Mailbox:
    """FIFO within each lane; the urgent lane is read first. One reader, any number of senders.

    Admission is strictly FIFO: while someone waits for room nobody else gets in, or a large message
    would be overtaken by small ones for ever.
    """

    __slots__ = (
        "_data",
        "_now",
        "_room",
        "_sleeper",
        "_urgent",
        "dropped",
        "max_items",
        "max_size",
        "path",
        "shut",
        "size",
        "spec",
    )

    def __init__(self, path: str, spec: MailboxSpec, now: Callable[[], float]) -> None:
        self.path = path
        self.spec = spec
        self.max_items = spec.items
        self.max_size = spec.size
        #: Invariant: sum of the costs in the data lane; never over `max_size`.
        self.size = 0
        self.shut: Shut | None = None
        #: Messages taken in and then thrown away unhandled, over all incarnations.
        self.dropped = 0
        self._now = now
        self._data: deque[Envelope] = deque()
        # Made on first use: most actors never see either, and a deque is 0.7 KiB.
        self._urgent: deque[Envelope] | None = None
        self._room: dict[_Waiter, None] | None = None
        self._sleeper: trio.lowlevel.Task | None = None

    # ---- senders --------------------------------------------------------------------------------

    def offer(self, message: object, cost: int, reply: Reply[Any] | None) -> bool:
        """Put it in the data lane if there is room now; sync, so it never waits."""
        data = self._data
        if (
            len(data) >= self.max_items
            or not 0 <= cost <= self.max_size - self.size
            or self.shut is not None
            or self._room
        ):
            return False
        data.append((message, cost, self._now(), reply))
        self.size += cost
        if self._sleeper is not None:
            self.wake()
        return True

    def offer_urgent(self, message: object, reply: Reply[Any] | None) -> bool:
        """Put it in the urgent lane if there is room now."""
        if self.shut is not None or (self._urgent and len(self._urgent) >= self.spec.urgent):
            return False
        self.push_urgent(message, reply)
        return True

    def push_urgent(self, message: object, reply: Reply[Any] | None = None) -> None:
        """Put it in the urgent lane whatever the bound: for the runtime's own messages."""
        if self._urgent is None:
            self._urgent = deque()
        self._urgent.append((message, 0, self._now(), reply))
        self.wake()

    async def wait_for_room(self, message: object, cost: int, reply: Reply[Any] | None) -> None:
        """Wait until there is room and put it in. Cancelled means: it was not put in.

        Raises `MessageTooLarge` when no wait could help, `ActorGone` when the mailbox shuts.
        """
        if cost > self.max_size:
            why = f"a message of {cost} bytes can never fit into {self.max_size}"
            raise MessageTooLarge(self.path, why)
        room = self._room = {} if self._room is None else self._room
        waiter = _Waiter(trio.lowlevel.current_task(), message, cost, reply)
        room[waiter] = None

        def abort(_raise_cancel: object) -> trio.lowlevel.Abort:
            del room[waiter]
            self._admit()  # a smaller message behind it may fit now
            return trio.lowlevel.Abort.SUCCEEDED

        await trio.lowlevel.wait_task_rescheduled(abort)
        if waiter.refused is not None:
            raise waiter.refused.error(self.path, waiter.refused.why)

    # ---- the reader -----------------------------------------------------------------------------

    def take(self) -> Envelope | None:
        """The next message, urgent first; None when there is none."""
        if self._urgent:
            return self._urgent.popleft()
        if not self._data:
            return None
        envelope = self._data.popleft()
        self.size -= envelope[1]
        if self._room:
            self._admit()
        return envelope

    def peek(self) -> Envelope | None:
        """What `take` would give, left where it is."""
        if self._urgent:
            return self._urgent[0]
        return self._data[0] if self._data else None

    async def wait(self) -> None:
        """Sleep until the next message or `wake`; always a checkpoint. Only the reader may call."""
        assert self._sleeper is None, f"{self.path}: two readers"
        self._sleeper = trio.lowlevel.current_task()
        await trio.lowlevel.wait_task_rescheduled(self._abort)

    def wake(self) -> None:
        """Wake the reader, if it sleeps, to look around."""
        sleeper = self._sleeper
        if sleeper is not None:
            self._sleeper = None
            trio.lowlevel.reschedule(sleeper)

    def _abort(self, _raise_cancel: object) -> trio.lowlevel.Abort:
        self._sleeper = None
        return trio.lowlevel.Abort.SUCCEEDED

    def _admit(self) -> None:
        room = self._room
        while room:
            waiter = next(iter(room))
            if len(self._data) >= self.max_items or self.size + waiter.cost > self.max_size:
                return
            del room[waiter]
            self._data.append((waiter.message, waiter.cost, self._now(), waiter.reply))
            self.size += waiter.cost
            trio.lowlevel.reschedule(waiter.task)
            self.wake()

    # ---- its owner ------------------------------------------------------------------------------

    def close(self, shut: Shut) -> list[Envelope]:
        """Take nothing more; give back what waited, senders waiting for room are refused."""
        self.shut = shut
        left = [*(self._urgent or ()), *self._data]
        self._urgent = None
        self._data.clear()
        self.size = 0
        self.dropped += len(left)
        for waiter in self._room or ():
            waiter.refused = shut
            trio.lowlevel.reschedule(waiter.task)
        self._room = None
        return left

    def reopen(self) -> None:
        """Take messages again, for the next incarnation."""
        self.shut = None

    def discard_urgent(self, unwanted: Callable[[object], bool]) -> None:
        """Throw away urgent messages that have lost their meaning."""
        if self._urgent:
            self._urgent = deque(e for e in self._urgent if not unwanted(e[0])) or None

    def __len__(self) -> int:
        return len(self._data) + len(self._urgent or ())

    def __iter__(self) -> Iterator[Envelope]:
        """What waits, in the order it would be taken."""
        yield from self._urgent or ()
        yield from self._data

    def statistics(self) -> MailboxStats:
        """The figures of this moment."""
        oldest = min((lane[0][2] for lane in (self._urgent, self._data) if lane), default=None)
        return MailboxStats(
            depth=len(self._data),
            size=self.size,
            urgent=len(self._urgent or ()),
            oldest_age=0.0 if oldest is None else self._now() - oldest,
            senders_waiting=len(self._room or ()),
            dropped=self.dropped,
        )
