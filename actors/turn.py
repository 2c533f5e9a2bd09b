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
    SystemNotificationResponsePart,
    ToolCallResponsePart,
    tool_call_key,
)
from ahpd.protocol.chat_actions import (
    ChatActivityChangedAction,
    ChatBackgroundWorkRemovedAction,
    ChatBackgroundWorkSetAction,
    ChatDeltaAction,
    ChatErrorAction,
    ChatInputCompletedAction,
    ChatInputRequestedAction,
    ChatReasoningAction,
    ChatResponsePartAction,
    ChatToolCallAuthRequiredAction,
    ChatToolCallAuthResolvedAction,
    ChatToolCallCompleteAction,
    ChatToolCallContentChangedAction,
    ChatToolCallDeltaAction,
    ChatToolCallReadyAction,
    ChatToolCallStartAction,
    ChatTurnCancelledAction,
    ChatTurnCompleteAction,
    ChatUsageAction,
)
from ahpd.protocol.common import ErrorInfo, FileEditCollection, UsageInfo
from ahpd.protocol.jsontext import dumps, loads
from ahpd.protocol.model import Object
from ahpd.protocol.tools import (
    ToolCallAuthRequiredState,
    ToolCallBase,
    ToolCallClientContributor,
    ToolCallError,
    ToolCallMcpContributor,
    ToolCallPendingConfirmationState,
    ToolCallResult,
    ToolCallRunningState,
    ToolCallStreamingState,
    ToolResultContent,
)


def actions_for(turn: ActiveTurn, event: ev.Event) -> Sequence[StateAction]:
    """The actions that `event` means for the running `turn`; none when it means nothing there."""
    handle = _HANDLERS.get(type(event))
    return actions_beside(event) if handle is None else handle(turn, event)


def actions_beside(event: ev.Event) -> Sequence[StateAction]:
    """The actions that `event` means whether or not a turn runs; none when it means nothing so."""
    match event:
        case ev.BackgroundSet():
            return (ChatBackgroundWorkSetAction(work=event.work),)
        case ev.BackgroundGone():
            return (ChatBackgroundWorkRemovedAction(id=event.work_id),)
        case _:
            return ()


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
            contributor=_server(event.server),
            meta=None if event.kind is None else {"toolKind": event.kind},
        ),
    )


def _server(server: str | None) -> ToolCallMcpContributor | None:
    """R-18.28."""
    return None if server is None else ToolCallMcpContributor(customization_id=server)


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
            edits=FileEditCollection(items=tuple(event.edits)) if event.edits else None,
        ),
    )


def _risk(turn: ActiveTurn, event: ev.RiskJudged) -> Sequence[StateAction]:
    """R-10.12: the question again, with everything it had; too late once it is answered."""
    call = _call(turn, event.call_id)
    if not isinstance(call, ToolCallPendingConfirmationState):
        return ()
    return (
        ChatToolCallReadyAction(
            turn_id=turn.id,
            tool_call_id=event.call_id,
            invocation_message=call.invocation_message,
            tool_input=call.tool_input,
            risk_assessment=event.assessment,
        ),
    )


def _needs_auth(turn: ActiveTurn, event: ev.ToolNeedsAuth) -> Sequence[StateAction]:
    """R-10.27: only a running call pauses, and only one that is known to be an MCP server's."""
    call = _call(turn, event.call_id)
    if not isinstance(call, ToolCallRunningState):
        return ()
    if isinstance(call.contributor, ToolCallClientContributor):
        return ()
    names_server = () if call.contributor is not None else _with_server(turn, call, event.server)
    pause = ChatToolCallAuthRequiredAction(
        turn_id=turn.id, tool_call_id=event.call_id, auth=event.requirement
    )
    return (*names_server, pause)


def _with_server(
    turn: ActiveTurn, call: ToolCallRunningState, server: str
) -> Sequence[StateAction]:
    """Say whose tool it is (R-10.6); the rest of the call is said again, or it would be lost."""
    ready = ChatToolCallReadyAction(
        turn_id=turn.id,
        tool_call_id=call.tool_call_id,
        contributor=_server(server),
        invocation_message=call.invocation_message,
        tool_input=call.tool_input,
        confirmed=call.confirmed,
    )
    if not call.content:
        return (ready,)
    return (ready, _content(turn, call.tool_call_id, call.content))


def _goes_on(turn: ActiveTurn, call: ToolCallBase | None) -> Sequence[StateAction]:
    """A paused call that does something has its token, wherever the agent got that from."""
    if not isinstance(call, ToolCallAuthRequiredState):
        return ()
    return (ChatToolCallAuthResolvedAction(turn_id=turn.id, tool_call_id=call.tool_call_id),)


def _tool_output(turn: ActiveTurn, event: ev.ToolOutput) -> Sequence[StateAction]:
    goes_on = _goes_on(turn, _call(turn, event.call_id))
    return (*goes_on, _content(turn, event.call_id, event.content))


def _content(
    turn: ActiveTurn, call_id: str, content: Sequence[ToolResultContent]
) -> ChatToolCallContentChangedAction:
    return ChatToolCallContentChangedAction(
        turn_id=turn.id, tool_call_id=call_id, content=tuple(content)
    )


def _tool_finished(turn: ActiveTurn, event: ev.ToolFinished) -> Sequence[StateAction]:
    call = _call(turn, event.call_id)
    if call is None:
        return ()
    actions = list(_goes_on(turn, call))
    if isinstance(call, ToolCallStreamingState):
        # A completion is dropped by every reducer while the input streams (quirk 38).
        actions += _tool_ready(turn, ev.ToolReady(event.call_id, event.message))
    return (*actions, *_completion(turn, event))


def _completion(turn: ActiveTurn, event: ev.ToolFinished) -> Sequence[StateAction]:
    return (
        ChatToolCallCompleteAction(
            turn_id=turn.id,
            tool_call_id=event.call_id,
            result=ToolCallResult(
                success=event.success,
                past_tense_message=event.message,
                content=tuple(event.content) or None,
                error=None if event.error is None else ToolCallError(message=event.error),
            ),
            requires_result_confirmation=True if event.asks_approval else None,
        ),
    )


def _client_tool(turn: ActiveTurn, event: ev.ClientToolCalled) -> Sequence[StateAction]:
    return ()  # which client's it is depends on the session: `actors.client_calls` says it


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
        meta=_usage_meta(event),
    )
    return (ChatUsageAction(turn_id=turn.id, usage=usage),)


def _usage_meta(event: ev.UsageReport) -> Object | None:
    """What the protocol names no field for; numbers that JSON does not have become null."""
    meta: dict[str, Any] = dict(event.extra or {})
    if event.cost is not None:
        meta["ahpd.cost"] = {"amount": event.cost.amount, "currency": event.cost.currency}
    if event.context is not None:
        meta["ahpd.context"] = {"used": event.context.used, "size": event.context.size}
    return loads(dumps(meta)) if meta else None


def _notice(turn: ActiveTurn, event: ev.SystemNotice) -> Sequence[StateAction]:
    """R-9.51."""
    part = SystemNotificationResponsePart(content=event.content)
    return (ChatResponsePartAction(turn_id=turn.id, part=part),)


def _questions(turn: ActiveTurn, event: ev.QuestionsAsked) -> Sequence[StateAction]:
    """R-11.2: the action makes its own part."""
    return (ChatInputRequestedAction(request=event.request),)


def _questions_over(turn: ActiveTurn, event: ev.QuestionsOver) -> Sequence[StateAction]:
    return (ChatInputCompletedAction(request_id=event.request_id, response=event.response),)


def _activity(turn: ActiveTurn, event: ev.ActivityChanged) -> Sequence[StateAction]:
    return (ChatActivityChangedAction(activity=event.activity),)


#: What is not here means the same beside turns, or nothing in a chat.
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
    ev.SystemNotice: _notice,
    ev.QuestionsAsked: _questions,
    ev.QuestionsOver: _questions_over,
    ev.RiskJudged: _risk,
    ev.ToolNeedsAuth: _needs_auth,
    ev.ClientToolCalled: _client_tool,
}
