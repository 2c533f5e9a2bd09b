"""How often the output of a running call is said (hazard B46).

An agent tells all the output so far with each update, and so does the action (R-10.34): to pass on
every one would cost the square of the output, for every subscriber and for whoever comes back. So
an update is said when the output has grown by half, or when as much time has gone by as its size is
worth; until then the newest one is held, and it alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import trio
from msgspec import Struct

from ahpd.agents.events import ToolOutput
from ahpd.protocol.tools import ToolResultContent
from ahpd.protocol.uris import URI
from supervisors import Actor

#: Bytes a second that the updates of one call may cost, beyond what growth allows.
RATE = 128 << 10
#: How much an output has to grow to be said at once.
GROWTH = 1.5


class OutputDue(Struct, frozen=True):
    """The output of this call that is held may be said now."""

    chat: URI
    call_id: str


class _Call(Struct):
    """The size that was said last, until when the next is held, and what is held."""

    size: int = 0
    due: float = 0.0
    held: ToolOutput | None = None
    timed: bool = False


class Outputs:
    """The outputs of one chat's running calls; `actor` is the chat's, and gets `OutputDue`."""

    def __init__(self, actor: Actor[Any], chat: URI) -> None:
        self._actor = actor
        self._chat = chat
        self._calls: dict[str, _Call] = {}

    def may_say(self, event: ToolOutput) -> bool:
        """Whether to say it now; if not it is held, in place of what was held before."""
        call = self._calls.setdefault(event.call_id, _Call())
        now, size = trio.current_time(), weight(event.content)
        if now < call.due and size < GROWTH * call.size:
            call.held = event
            if not call.timed:
                call.timed = True
                self._actor.spawn(self._wait, call, event.call_id, name=f"output {event.call_id}")
            return False
        call.size, call.due, call.held = size, now + size / RATE, None
        return True

    async def _wait(self, call: _Call, call_id: str) -> None:
        """Helper: say when what is held is due."""
        await trio.sleep_until(call.due)
        call.timed = False
        self._actor.ref.cast(OutputDue(self._chat, call_id))

    def take(self, call_id: str) -> ToolOutput | None:
        """What is held of a call, to be said now; None when nothing is."""
        call = self._calls.get(call_id)
        if call is None or call.held is None:
            return None
        event, call.held = call.held, None
        call.size = weight(event.content)
        call.due = trio.current_time() + call.size / RATE
        return event

    def forget(self, call_id: str) -> None:
        """The call has another content now, or none any more."""
        call = self._calls.get(call_id)
        if call is not None:
            call.held = None

    def clear(self) -> None:
        """The turn is over, and its calls with it."""
        for call in self._calls.values():
            call.held = None
        self._calls = {}


def weight(content: Sequence[ToolResultContent]) -> int:
    """Bytes that this content holds on to, roughly."""
    return sum(
        64 + len(getattr(each, "text", "")) + len(getattr(each, "data", "")) for each in content
    )
