"""What waits to be written to one connection: `Outbox`.

Anybody may put something in without waiting; one task, the connection's writer, takes it out, all
that is there at once. Bounded in bytes: a peer that does not read is cut off (R-1.40).
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Sequence
from typing import TypeAlias

import trio
from msgspec import Struct, structs

from actors.ledger import Entry
from ahpd.protocol.chat_actions import ChatDeltaAction, ChatReasoningAction
from ahpd.protocol.frame import Frame
from ahpd.protocol.jsontext import dumps
from ahpd.protocol.terminal import TerminalDataAction

#: Bytes that may wait and still be written without the writer.
DIRECT = 64 << 10

#: Called when everything put in before it has been handed to the kernel.
Written: TypeAlias = Callable[[], None]


class Batch(Struct, frozen=True):
    """What to write now, and whom to tell afterwards."""

    frames: list[Frame]
    written: list[Written]
    size: int
    #: Frames that the transport has taken over and could not write at once come before these.
    has_rest: bool = False


class _Held(Struct, eq=False):
    """An envelope of a subscription that allows some delay."""

    entry: Entry
    frame: Frame


class Outbox:
    """First in, first out, with an urgent lane for signs of life.

    A subscription may allow its envelopes to be held back for a while (R-4.22), so that deltas of
    one part can be joined (R-4.23). Invariant 3: only neighbours in this queue are joined, under
    the later one's number, so numbers still only grow and no update overtakes a held one; and when
    something comes that may not wait, everything before it goes with it.
    """

    def __init__(self, limit: Callable[[], int], on_overflow: Callable[[str], None]) -> None:
        #: Bytes that may wait; asked each time, because it can be set while the host runs.
        self._limit = limit
        self._on_overflow = on_overflow
        #: Bytes that wait or are being written.
        self.size = 0
        #: The longest frame since nothing waited.
        self._longest = 0
        self.closed = False
        self._urgent: deque[Frame] = deque()
        self._queue: deque[Frame | _Held | Written] = deque()
        self._due = math.inf
        self._wake = trio.Event()
        #: Items in the queue that are no plain frames.
        self._uncommon = 0
        #: The writer is at work on a batch, or has one waiting.
        self._is_writing = False
        self._rest: Batch | None = None

    def put(self, frame: Frame) -> None:
        """Write `frame` after everything before it."""
        if self._admit(frame):
            self._queue.append(frame)
            self._hurry()

    def put_urgent(self, frame: Frame) -> None:
        """Write `frame` before anything that waits; for answers that depend on no state."""
        if self._admit(frame):
            self._urgent.append(frame)
            self._wake.set()  # and no more: what is held back stays so, and is still waited for

    def put_entry(self, entry: Entry, frame: Frame, hold: float = 0.0) -> None:
        """Write an envelope, within `hold` seconds; `flush` must follow."""
        if not self._admit(frame):
            return
        if hold <= 0.0:
            self._queue.append(frame)
            self._due = -math.inf
            return
        self._queue.append(_Held(entry, frame))
        self._uncommon += 1
        due = trio.current_time() + hold
        if due < self._due:
            self._due = due
            self._wake.set()

    def flush(self, send: Callable[[Sequence[Frame]], bool] | None) -> None:
        """Write what may go now with `send`, as `Immediate` has it; what is long is the writer's.

        A stream to many connections needs no turn of the scheduler for each of them this way.
        """
        if self._is_writing or self._due > trio.current_time():
            return
        if send is None or self._urgent or self.size > DIRECT:
            self._wake.set()
            return
        batch = self._take_all()
        if not batch.frames or send(batch.frames):
            self.done(batch)
            return
        self._rest = Batch([], batch.written, batch.size, has_rest=True)
        self._is_writing = True
        self._wake.set()

    def after(self, written: Written) -> None:
        """Call `written` once everything put in so far has been handed to the kernel."""
        if not self.closed:
            self._queue.append(written)
            self._uncommon += 1
            self._hurry()

    def close(self) -> None:
        """Take nothing more and forget what waits; the writer's `take` returns an empty batch."""
        self.closed = True
        self._queue.clear()
        self._urgent.clear()
        self.size = 0
        self._hurry()

    def _admit(self, frame: Frame) -> bool:
        if self.closed:
            return False
        # One frame, the longest, does not count: a snapshot of any size must get through to whoever
        # reads it, and what comes meanwhile with it.
        if self.size - self._longest > self._limit():
            waiting = self.size
            self.close()
            self._on_overflow(
                f"{waiting} bytes wait to be read, over the limit of {self._limit()} "
                "(clientQueueBytes)"
            )
            return False
        size = len(frame.text)
        self.size += size
        self._longest = max(self._longest, size)
        return True

    def _hurry(self) -> None:
        self._due = -math.inf
        self._wake.set()

    async def take(self) -> Batch:
        """Everything that may go now; waits until there is something. A checkpoint.

        The bytes count as waiting until `done`. Empty only after `close`.
        """
        await trio.lowlevel.checkpoint()
        while not self.closed:
            self._is_writing = True
            if self._rest is not None:
                batch, self._rest = self._rest, None
                return batch
            if self._urgent:
                frames = list(self._urgent)
                self._urgent.clear()
                return Batch(frames, [], sum(map(len, frames)))
            if self._queue and self._due <= trio.current_time():
                return self._take_all()
            self._is_writing = False
            self._wake = trio.Event()
            if self._due == math.inf:
                await self._wake.wait()
            else:
                with trio.move_on_at(self._due):
                    await self._wake.wait()
        return Batch([], [], 0)

    def done(self, batch: Batch) -> None:
        """The batch was handed to the kernel."""
        self.size = max(0, self.size - batch.size)
        if not self.size:
            self._longest = 0
        for written in batch.written:
            written()

    def _take_all(self) -> Batch:
        if not self._uncommon:  # nothing but frames, and nothing else weighs anything now
            batch = Batch(list(self._queue), [], self.size)  # type: ignore[arg-type]
            self._queue.clear()
            self._due = math.inf
            return batch
        self._uncommon = 0
        batch = Batch([], [], 0)
        size = 0
        run: list[_Held] = []
        for item in self._queue:
            if isinstance(item, _Held):
                size += len(item.frame)
                if run and not _joinable(run[-1].entry, item.entry):
                    batch.frames.append(_joined(run))
                    run = []
                run.append(item)
                continue
            if run:
                batch.frames.append(_joined(run))
                run = []
            if isinstance(item, Frame):
                size += len(item)
                batch.frames.append(item)
            else:
                batch.written.append(item)
        if run:
            batch.frames.append(_joined(run))
        self._queue.clear()
        self._due = math.inf
        return structs.replace(batch, size=size)


#: Actions that append text, and the field that holds it: neighbours can be joined (R-4.23).
_APPENDED: dict[type, str] = {
    ChatDeltaAction: "content",
    ChatReasoningAction: "content",
    TerminalDataAction: "data",
}


def _joinable(first: Entry, second: Entry) -> bool:
    """Whether one envelope can say what these two say, to the same state."""
    one, two = first.action, second.action
    field = _APPENDED.get(type(one))
    if field is None or first.channel is not second.channel or type(one) is not type(two):
        return False
    assert one is not None
    assert two is not None
    return bool(one.evolve(**{field: ""}) == two.evolve(**{field: ""}))


def _joined(run: list[_Held]) -> Frame:
    """One frame for neighbours that are joinable, under the last one's number."""
    last = run[-1]
    if len(run) == 1:
        return last.frame
    action = last.entry.action
    assert action is not None
    field = _APPENDED[type(action)]
    text = "".join(getattr(held.entry.action, field) for held in run)
    params = {
        "channel": last.entry.channel.uri,
        "action": action.evolve(**{field: text}).wire(),
        "serverSeq": last.entry.seq,
    }
    return Frame(dumps({"jsonrpc": "2.0", "method": "action", "params": params}))
