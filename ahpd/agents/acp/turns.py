"""A turn that runs, and what waits for the task that runs it."""

from __future__ import annotations

from collections.abc import Sequence

import trio

from ahpd.agents.acp.mapping import merged
from ahpd.agents.acp.rpc import Answered
from ahpd.agents.events import (
    Event,
    TextChunk,
    ThoughtChunk,
    ToolAsks,
    ToolFinished,
    ToolOutput,
    WorkerSays,
)

#: Bytes of events that may wait for the turn's task before nothing more is read.
WAITING_BYTES = 1 << 20


class Turn:
    """See the module.

    With a `window` (seconds) text that follows other text is gathered until so much time has
    passed since that; the first piece, and anything else, goes at once.
    """

    def __init__(self, window: float = 0.0) -> None:
        self.events: list[Event] = []
        self.weight = 0
        self.prompted = False
        self.cancelled = False
        #: The prompt was answered, with this; None in it: the agent is gone.
        self.is_over = False
        self.answer: Answered | None = None
        self.done = trio.Event()
        self._window = window
        self._text_until = float("-inf")
        self._bell = trio.Event()
        self._room = trio.Event()

    @property
    def listens(self) -> bool:
        """What the agent says now belongs to it."""
        return self.prompted and not self.is_over

    def add(self, events: Sequence[Event]) -> None:
        """The agent said this in it."""
        for event in events:
            self.events.append(event)
            self.weight += weight(event)
        if events:
            self.ring()

    async def gathered(self) -> None:
        """Let text be gathered, while nothing but text waits. A checkpoint if there is a window."""
        while self._window > 0 and not self.is_over and self._is_text():
            with trio.move_on_at(self._text_until) as scope:
                await self.rung()
            if scope.cancelled_caught:
                break
        if self._window > 0 and self._is_text():
            self._text_until = trio.current_time() + self._window

    def _is_text(self) -> bool:
        if self.weight > WAITING_BYTES:
            return False
        return all(isinstance(each, TextChunk | ThoughtChunk) for each in self.events)

    def take(self) -> Sequence[Event]:
        """All that waits; pieces of one text are one."""
        events, self.events, self.weight = self.events, [], 0
        self._room.set()
        return merged(events)

    def ring(self) -> None:
        """There is something that was not."""
        self._bell.set()

    async def rung(self) -> None:
        """Until something is there that was not. A checkpoint."""
        self._bell = trio.Event()
        await self._bell.wait()

    async def room(self) -> None:
        """While too much waits."""
        while self.weight > WAITING_BYTES and not self.done.is_set():
            self._room = trio.Event()
            await self._room.wait()

    def leave(self) -> None:
        """The task is over: nothing waits for it any more."""
        self.done.set()
        self._room.set()


def weight(event: Event) -> int:
    """Bytes that an event holds on to, roughly."""
    match event:
        case TextChunk() | ThoughtChunk():
            return 64 + len(event.text)
        case ToolOutput() | ToolFinished():
            return 64 + sum(
                64 + len(getattr(each, "text", "")) + len(getattr(each, "data", ""))
                for each in event.content
            )
        case ToolAsks():
            return 256 + sum(
                len(side.content.uri)
                for edit in event.edits
                for side in (edit.before, edit.after)
                if side is not None
            )
        case WorkerSays():
            return 64 + sum(map(weight, event.events))
        case _:
            return 256
