"""From what an agent says to the actions of a chat: the one place where events become actions.

Pure. `actions_for` looks at the running turn as it is and gives the actions that one event means
now; the chat actor says them. Part ids count the parts of the turn, so they are unique in the chat,
because turn ids are.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ahpd.agents import events as ev
from ahpd.protocol.actions import StateAction
from ahpd.protocol.chat import (
    ActiveTurn,
    ErrorResponsePart,
    MarkdownResponsePart,
    ReasoningResponsePart,
    ToolCallResponsePart,
    tool_call_key,
)
from ahpd.protocol.chat_actions import (
    ChatActivityChangedAction,
    ChatDeltaAction,
    ChatErrorAction,
    ChatReasoningAction,
    ChatResponsePartAction,
    ChatToolCallCompleteAction,
    ChatToolCallContentChangedAction,
    ChatToolCallDeltaAction,
    ChatToolCallReadyAction,
    ChatToolCallStartAction,
    ChatTurnCancelledAction,
    ChatTurnCompleteAction,
    ChatUsageAction,
)
from ahpd.protocol.common import ErrorInfo, UsageInfo
from ahpd.protocol.jsontext import dumps, loads
from ahpd.protocol.tools import ToolCallBase, ToolCallError, ToolCallResult, ToolCallStreamingState


def actions_for(turn: ActiveTurn, event: ev.Event) -> Sequence[StateAction]:
    """The actions that `event` means for the running `turn`; none when it means nothing there."""
    return _HANDLERS[type(event)](turn, event)


def ending(turn_id: str, duration: float, outcome: ev.Outcome) -> StateAction:
    """The one action that ends a turn (invariant 7); `duration` in milliseconds (R-9.55)."""
    match outcome:
        case ev.Done():
            return ChatTurnCompleteAction(turn_id=turn_id, duration=duration)
        case ev.Stopped():
            return ChatTurnCancelledAction(turn_id=turn_id, duration=duration)
        case ev.Failed():
            return ChatErrorAction(
                turn_id=turn_id,
                duration=duration,
                part=ErrorResponsePart(
                    error=ErrorInfo(
                        error_type=outcome.error_type, message=outcome.message, meta=outcome.meta
                    ),
                    resumable=True if outcome.resumable else None,
                ),
            )


def _text(turn: ActiveTurn, event: ev.TextChunk) -> Sequence[StateAction]:
    last = turn.response_parts[-1] if turn.response_parts else None
    if isinstance(last, MarkdownResponsePart):
        return (ChatDeltaAction(turn_id=turn.id, part_id=last.id, content=event.text),)
    part = MarkdownResponsePart(id=_next_part(turn), content=event.text)
    return (ChatResponsePartAction(turn_id=turn.id, part=part),)


def _thought(turn: ActiveTurn, event: ev.ThoughtChunk) -> Sequence[StateAction]:
    last = turn.response_parts[-1] if turn.response_parts else None
    if isinstance(last, ReasoningResponsePart):
        return (ChatReasoningAction(turn_id=turn.id, part_id=last.id, content=event.text),)
    part = ReasoningResponsePart(id=_next_part(turn), content=event.text)
    return (ChatResponsePartAction(turn_id=turn.id, part=part),)


def _next_part(turn: ActiveTurn) -> str:
    return f"{turn.id}/{len(turn.response_parts)}"


def _tool_started(turn: ActiveTurn, event: ev.ToolStarted) -> Sequence[StateAction]:
    if _call(turn, event.call_id) is not None:
        return ()  # a second start would make a second row for one call
    return (
        ChatToolCallStartAction(
            turn_id=turn.id,
            tool_call_id=event.call_id,
            tool_name=event.name,
            display_name=event.title,
            meta=None if event.kind is None else {"toolKind": event.kind},
        ),
    )


def _tool_input(turn: ActiveTurn, event: ev.ToolInputChunk) -> Sequence[StateAction]:
    if not isinstance(_call(turn, event.call_id), ToolCallStreamingState):
        return ()
    return (
        ChatToolCallDeltaAction(turn_id=turn.id, tool_call_id=event.call_id, content=event.text),
    )


def _tool_ready(turn: ActiveTurn, event: ev.ToolReady) -> Sequence[StateAction]:
    return (
        ChatToolCallReadyAction(
            turn_id=turn.id,
            tool_call_id=event.call_id,
            invocation_message=event.message,
            tool_input=event.input,
            confirmed="not-needed",
        ),
    )


def _tool_asks(turn: ActiveTurn, event: ev.ToolAsks) -> Sequence[StateAction]:
    return (
        ChatToolCallReadyAction(
            turn_id=turn.id,
            tool_call_id=event.call_id,
            invocation_message=event.message,
            tool_input=event.input,
            confirmation_title=event.title,
            editable=True if event.editable else None,
            options=tuple(event.options) or None,
        ),
    )


def _tool_output(turn: ActiveTurn, event: ev.ToolOutput) -> Sequence[StateAction]:
    return (
        ChatToolCallContentChangedAction(
            turn_id=turn.id, tool_call_id=event.call_id, content=tuple(event.content)
        ),
    )


def _tool_finished(turn: ActiveTurn, event: ev.ToolFinished) -> Sequence[StateAction]:
    call = _call(turn, event.call_id)
    if call is None:
        return ()
    actions: list[StateAction] = []
    if isinstance(call, ToolCallStreamingState):
        # A completion is dropped by every reducer while the input streams (quirk 38).
        actions += _tool_ready(turn, ev.ToolReady(event.call_id, event.message))
    actions.append(
        ChatToolCallCompleteAction(
            turn_id=turn.id,
            tool_call_id=event.call_id,
            result=ToolCallResult(
                success=event.success,
                past_tense_message=event.message,
                content=tuple(event.content) or None,
                error=None if event.error is None else ToolCallError(message=event.error),
            ),
        )
    )
    return actions


def _call(turn: ActiveTurn, call_id: str) -> ToolCallBase | None:
    place = turn.response_parts.index_of(tool_call_key(call_id))
    part = turn.response_parts[place] if place >= 0 else None
    if isinstance(part, ToolCallResponsePart) and isinstance(part.tool_call, ToolCallBase):
        return part.tool_call
    return None


def _finite(number: float | None) -> float | None:
    """Agents compute, and may get what JSON has no word for (hazard B67)."""
    return number if number is not None and math.isfinite(number) else None


def _usage(turn: ActiveTurn, event: ev.UsageReport) -> Sequence[StateAction]:
    usage = UsageInfo(
        input_tokens=_finite(event.input_tokens),
        output_tokens=_finite(event.output_tokens),
        cache_read_tokens=_finite(event.cache_read_tokens),
        model=event.model,
        meta=event.extra if event.extra is None else loads(dumps(event.extra)),
    )
    return (ChatUsageAction(turn_id=turn.id, usage=usage),)


def _activity(turn: ActiveTurn, event: ev.ActivityChanged) -> Sequence[StateAction]:
    return (ChatActivityChangedAction(activity=event.activity),)


def _title(turn: ActiveTurn, event: ev.TitleProposed) -> Sequence[StateAction]:
    return ()  # a title belongs to the session; the chat actor passes it up


_HANDLERS: Mapping[type, Callable[[ActiveTurn, Any], Sequence[StateAction]]] = {
    ev.TextChunk: _text,
    ev.ThoughtChunk: _thought,
    ev.ToolStarted: _tool_started,
    ev.ToolInputChunk: _tool_input,
    ev.ToolReady: _tool_ready,
    ev.ToolAsks: _tool_asks,
    ev.ToolOutput: _tool_output,
    ev.ToolFinished: _tool_finished,
    ev.UsageReport: _usage,
    ev.ActivityChanged: _activity,
    ev.TitleProposed: _title,
}
