"""`Spans`: turns and their tool calls as spans, made of the envelopes that go out (R-20.9).

A turn is a server span, each of its tool calls a client span inside it, and each is said when it
ends. What they are about is named by ids alone; nothing that people, models or tools wrote is in
them (R-20.10). The trace of a turn has an id that follows from the turn's, so log lines of it can
name it too.
"""

from __future__ import annotations

import hashlib
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any

from msgspec import Struct, field

from actors.ledger import Entry
from ahpd.protocol import chat_actions as act
from ahpd.protocol.uris import URI
from ahpd.telemetry.port import Span

#: Spans that wait to be sent; more are lost, the oldest first.
MOST = 10_000


class _Call(Struct, eq=False):
    """A tool call under way."""

    began: int
    name: str
    attributes: dict[str, str | int]


class _Turn(Struct, eq=False):
    """A turn under way."""

    id: str
    began: int
    span_id: bytes
    trace_id: bytes
    attributes: dict[str, str | int]
    calls: dict[str, _Call] = field(default_factory=dict)


class Spans:
    """Hears every envelope while somebody listens. `now` gives Unix nanoseconds. Sync."""

    def __init__(self, now: Callable[[], int]) -> None:
        #: Those that have ended and were not sent.
        self.ended: deque[Span] = deque(maxlen=MOST)
        self._now = now
        self._turns: dict[URI, _Turn] = {}

    def hear(self, entry: Entry) -> None:
        """An envelope became visible."""
        handler = _HANDLERS.get(type(entry.action))
        if handler is not None:
            handler(self, entry)

    # ---- turns ---------------------------------------------------------------------------------

    def _turn_started(self, entry: Entry) -> None:
        self._turns[entry.channel.uri] = self._begin(entry, _turn_id(entry), self._now())

    def _begin(self, entry: Entry, turn_id: str, began: int) -> _Turn:
        channel = entry.channel
        attributes: dict[str, str | int] = {
            "ahp.session.id": channel.owner or "",
            "ahp.chat.id": channel.uri,
            "ahp.turn.id": turn_id,
        }
        if channel.notes.starter is not None:
            attributes["ahp.client.id"] = channel.notes.starter
        trace = trace_of(channel.uri, turn_id)
        return _Turn(turn_id, began, _id(trace, str(entry.seq)), trace, attributes)

    def _turn_of(self, entry: Entry) -> _Turn:
        """The turn that an action is of, also when nobody listened when it began."""
        turn_id = _turn_id(entry)
        turn = self._turns.get(entry.channel.uri)
        if turn is None or turn.id != turn_id:
            began_in, ms = entry.channel.notes.began
            began = round(ms * 1e6) if began_in == turn_id else self._now()
            turn = self._turns[entry.channel.uri] = self._begin(entry, turn_id, began)
        return turn

    def _turn_ended(self, entry: Entry) -> None:
        turn = self._turn_of(entry)
        del self._turns[entry.channel.uri]
        for call_id in list(turn.calls):
            self._end_call(turn, call_id, "the turn ended")
        outcome, failed = _outcome(entry)
        self.ended.append(
            Span(
                trace_id=turn.trace_id,
                span_id=turn.span_id,
                parent=b"",
                name="turn",
                kind="server",
                began=turn.began,
                ended=max(self._now(), turn.began),
                attributes={**turn.attributes, "ahp.turn.outcome": outcome},
                failed=failed,
            )
        )

    def _used(self, entry: Entry) -> None:
        action: Any = entry.action
        turn = self._turn_of(entry)
        for name, count in (
            ("gen_ai.usage.input_tokens", action.usage.input_tokens),
            ("gen_ai.usage.output_tokens", action.usage.output_tokens),
        ):
            if count is not None:
                turn.attributes[name] = int(count)
        if action.usage.model:
            turn.attributes["gen_ai.request.model"] = action.usage.model

    # ---- tool calls ----------------------------------------------------------------------------

    def _call_started(self, entry: Entry) -> None:
        action: Any = entry.action
        turn = self._turn_of(entry)
        attributes = {
            **turn.attributes,
            "ahp.tool_call.id": action.tool_call_id,
            "gen_ai.tool.name": action.tool_name,
        }
        turn.calls[action.tool_call_id] = _Call(self._now(), action.tool_name, attributes)

    def _call_ended(self, entry: Entry) -> None:
        action: Any = entry.action
        failed = None if action.result.success else "the tool failed"
        self._end_call(self._turn_of(entry), action.tool_call_id, failed)

    def _call_denied(self, entry: Entry) -> None:
        action: Any = entry.action
        self._end_call(self._turn_of(entry), action.tool_call_id, "denied")

    def _end_call(self, turn: _Turn, call_id: str, failed: str | None) -> None:
        call = turn.calls.pop(call_id, None)
        if call is None:  # it began before anybody listened
            return
        self.ended.append(
            Span(
                trace_id=turn.trace_id,
                span_id=_id(turn.span_id, call_id),
                parent=turn.span_id,
                name=f"tool {call.name}",
                kind="client",
                began=call.began,
                ended=max(self._now(), call.began),
                attributes=call.attributes,
                failed=failed,
            )
        )


def trace_of(chat: URI, turn_id: str) -> bytes:
    """The id of a turn's trace: 16 bytes that follow from what it is."""
    return hashlib.sha256(f"{chat}\n{turn_id}".encode("utf-8", "replace")).digest()[:16]


def _id(above: bytes, name: str) -> bytes:
    return hashlib.sha256(above + name.encode("utf-8", "replace")).digest()[:8]


def _turn_id(entry: Entry) -> str:
    action: Any = entry.action
    turn_id: str = action.turn_id
    return turn_id


def _outcome(entry: Entry) -> tuple[str, str | None]:
    """How a turn ended, and why it failed, without the words of whoever failed."""
    match entry.action:
        case act.ChatTurnCancelledAction():
            return "cancelled", "cancelled"
        case act.ChatErrorAction(part=part):
            return "error", part.error.error_type
        case _:
            return "complete", None


_HANDLERS: Mapping[type, Callable[[Spans, Entry], None]] = {
    act.ChatTurnStartedAction: Spans._turn_started,
    act.ChatTurnResumeAction: Spans._turn_started,
    act.ChatTurnCompleteAction: Spans._turn_ended,
    act.ChatTurnCancelledAction: Spans._turn_ended,
    act.ChatErrorAction: Spans._turn_ended,
    act.ChatUsageAction: Spans._used,
    act.ChatToolCallStartAction: Spans._call_started,
    act.ChatToolCallCompleteAction: Spans._call_ended,
    act.ChatToolCallDeniedAction: Spans._call_denied,
}
