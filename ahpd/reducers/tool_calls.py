"""Tool calls: the state machine as a table of (state, action) -> step (RULES 10).

A pair that is not in the table changes nothing (R-10.1). Each step makes the call's next state
from the fields that survive it; what a step does not name is lost on purpose.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from ahpd.protocol.chat import ChatState, ResponseParts, ToolCallResponsePart, tool_call_key
from ahpd.protocol.chat_actions import (
    ChatToolCallApprovedAction,
    ChatToolCallAuthRequiredAction,
    ChatToolCallAuthResolvedAction,
    ChatToolCallCompleteAction,
    ChatToolCallContentChangedAction,
    ChatToolCallDeltaAction,
    ChatToolCallDeniedAction,
    ChatToolCallReadyAction,
    ChatToolCallResultConfirmedAction,
    ChatToolCallStartAction,
)
from ahpd.protocol.model import WireType
from ahpd.protocol.persistent import append_text
from ahpd.protocol.tools import (
    ConfirmationOption,
    ToolCallActionBase,
    ToolCallAuthRequiredState,
    ToolCallBase,
    ToolCallCancelledState,
    ToolCallClientContributor,
    ToolCallCompletedState,
    ToolCallContributor,
    ToolCallMcpContributor,
    ToolCallPendingConfirmationState,
    ToolCallPendingResultConfirmationState,
    ToolCallResult,
    ToolCallRunningState,
    ToolCallState,
    ToolCallStreamingState,
)
from ahpd.reducers.change import Handlers, changed, same
from ahpd.reducers.status import refreshed

Step: TypeAlias = Callable[[Any, Any], ToolCallState]

_OVER = (ToolCallCompletedState, ToolCallCancelledState)


def _base(call: ToolCallBase, action: ToolCallActionBase | None = None) -> dict[str, Any]:
    """What a call keeps through all its states; an action's `_meta` replaces the old (R-10.2)."""
    meta = call.meta if action is None or action.meta is None else action.meta
    return {
        "tool_call_id": call.tool_call_id,
        "tool_name": call.tool_name,
        "display_name": call.display_name,
        "intention": call.intention,
        "contributor": call.contributor,
        "meta": meta,
    }


def _delta(call: ToolCallStreamingState, action: ChatToolCallDeltaAction) -> ToolCallState:
    """More input, another message, or both (R-10.8)."""
    new: ToolCallStreamingState = _with_meta(call, action)
    if action.invocation_message is not None:
        new = changed(new, invocation_message=action.invocation_message)
    if action.content is not None and (action.content or call.partial_input is None):
        new = new.evolve(partial_input=append_text(call.partial_input or "", action.content))
    return new


def _with_meta(call: Any, action: ToolCallActionBase) -> Any:
    return call if action.meta is None else changed(call, meta=action.meta)


Ready: TypeAlias = ToolCallStreamingState | ToolCallPendingConfirmationState | ToolCallRunningState


def _ready(call: Ready, action: ChatToolCallReadyAction) -> ToolCallState:
    """Ready to run, or to ask; also asked again, or with more to show (R-10.9 to R-10.12)."""
    fields = _base(call, action)
    fields["contributor"] = _refined(call.contributor, action.contributor)
    fields["invocation_message"] = action.invocation_message
    fields["tool_input"] = action.tool_input
    if action.intention is not None:
        fields["intention"] = action.intention
    if action.tool_input is None and not isinstance(call, ToolCallStreamingState):
        fields["tool_input"] = call.tool_input
    if action.confirmed is not None:
        return ToolCallRunningState(**fields, confirmed=action.confirmed)
    shown: dict[str, Any] = {
        "confirmation_title": action.confirmation_title,
        "risk_assessment": action.risk_assessment,
        "edits": action.edits,
        "editable": action.editable,
        "options": action.options,
    }
    if isinstance(call, ToolCallPendingConfirmationState):
        shown = {
            name: getattr(call, name) if value is None else value for name, value in shown.items()
        }
    return ToolCallPendingConfirmationState(**fields, **shown)


def _refined(
    old: ToolCallContributor | None, new: ToolCallContributor | None
) -> ToolCallContributor | None:
    """The contributor after ready, which must not change who executes the call (R-10.7)."""
    if new is None:
        return old
    client = ToolCallClientContributor
    return old if isinstance(old, client) or isinstance(new, client) else new


def _approved(
    call: ToolCallPendingConfirmationState, action: ChatToolCallApprovedAction
) -> ToolCallState:
    """Runs; edited input replaces inline input only, as the host rewrites a resource (R-10.18)."""
    edited = action.edited_tool_input
    inline = isinstance(call.tool_input, str)
    return ToolCallRunningState(
        **_base(call, action),
        invocation_message=call.invocation_message,
        tool_input=edited if inline and edited is not None else call.tool_input,
        confirmed=action.confirmed,
        selected_option=_option(call, action.selected_option_id),
    )


def _denied(
    call: ToolCallPendingConfirmationState, action: ChatToolCallDeniedAction
) -> ToolCallState:
    return ToolCallCancelledState(
        **_base(call, action),
        invocation_message=call.invocation_message,
        tool_input=call.tool_input,
        reason=action.reason,
        reason_message=action.reason_message,
        user_suggestion=action.user_suggestion,
        selected_option=_option(call, action.selected_option_id),
    )


def _option(
    call: ToolCallPendingConfirmationState, wanted: str | None
) -> ConfirmationOption | None:
    """The whole option that an answer names; nothing for an id that was not offered (R-10.14)."""
    return next((option for option in call.options or () if option.id == wanted), None)


def _content(call: ToolCallRunningState, action: ChatToolCallContentChangedAction) -> ToolCallState:
    return _with_meta(changed(call, content=action.content), action)  # type: ignore[no-any-return]


def _auth_required(
    call: ToolCallRunningState, action: ChatToolCallAuthRequiredAction
) -> ToolCallState:
    """Pauses; only a call of an MCP server can (R-10.27)."""
    if not isinstance(call.contributor, ToolCallMcpContributor):
        return call
    return ToolCallAuthRequiredState(
        **_base(call, action), **_paused_fields(call), auth=action.auth
    )


def _auth_resolved(
    call: ToolCallAuthRequiredState, action: ChatToolCallAuthResolvedAction
) -> ToolCallState:
    return ToolCallRunningState(**_base(call, action), **_paused_fields(call))


def _paused_fields(call: ToolCallRunningState | ToolCallAuthRequiredState) -> dict[str, Any]:
    return {
        "invocation_message": call.invocation_message,
        "tool_input": call.tool_input,
        "confirmed": call.confirmed,
        "selected_option": call.selected_option,
        "content": call.content,
    }


def _complete(call: ToolCallRunningState, action: ChatToolCallCompleteAction) -> ToolCallState:
    return _finished(call, action, confirmed=call.confirmed, selected_option=call.selected_option)


def _complete_unconfirmed(
    call: ToolCallPendingConfirmationState, action: ChatToolCallCompleteAction
) -> ToolCallState:
    """A call that nobody approved; the host keeps clients from doing this (R-10.26)."""
    return _finished(call, action, confirmed="not-needed")


def _finished(
    call: ToolCallRunningState | ToolCallPendingConfirmationState,
    action: ChatToolCallCompleteAction,
    **confirmation: Any,
) -> ToolCallState:
    kind = (
        ToolCallPendingResultConfirmationState
        if action.requires_result_confirmation
        else ToolCallCompletedState
    )
    return kind(
        **_base(call, action),
        invocation_message=call.invocation_message,
        tool_input=call.tool_input,
        **_result(action.result),
        **confirmation,
    )


def _result(result: ToolCallResult | ToolCallPendingResultConfirmationState) -> dict[str, Any]:
    return {
        "success": result.success,
        "past_tense_message": result.past_tense_message,
        "content": result.content,
        "structured_content": result.structured_content,
        "error": result.error,
    }


def _give_up(call: ToolCallAuthRequiredState, action: ChatToolCallCompleteAction) -> ToolCallState:
    """Ends a paused call without its token: only a failure can, and it is final (R-10.30)."""
    if action.result.success:
        return call
    fields = _paused_fields(call) | _result(action.result)
    if action.result.content is None:
        fields["content"] = call.content
    return ToolCallCompletedState(**_base(call, action), **fields)


def _result_confirmed(
    call: ToolCallPendingResultConfirmationState, action: ChatToolCallResultConfirmedAction
) -> ToolCallState:
    fields = _base(call, action) | {
        "invocation_message": call.invocation_message,
        "tool_input": call.tool_input,
        "selected_option": call.selected_option,
    }
    if action.approved:
        return ToolCallCompletedState(**fields, **_result(call), confirmed=call.confirmed)
    return ToolCallCancelledState(**fields, reason="result-denied")


#: (state of the call, action) -> the step it takes.
STEPS: Mapping[tuple[WireType, WireType], Step] = {
    (ToolCallStreamingState, ChatToolCallDeltaAction): _delta,
    (ToolCallStreamingState, ChatToolCallReadyAction): _ready,
    (ToolCallPendingConfirmationState, ChatToolCallReadyAction): _ready,
    (ToolCallPendingConfirmationState, ChatToolCallApprovedAction): _approved,
    (ToolCallPendingConfirmationState, ChatToolCallDeniedAction): _denied,
    (ToolCallPendingConfirmationState, ChatToolCallCompleteAction): _complete_unconfirmed,
    (ToolCallRunningState, ChatToolCallReadyAction): _ready,
    (ToolCallRunningState, ChatToolCallContentChangedAction): _content,
    (ToolCallRunningState, ChatToolCallAuthRequiredAction): _auth_required,
    (ToolCallRunningState, ChatToolCallCompleteAction): _complete,
    (ToolCallAuthRequiredState, ChatToolCallAuthResolvedAction): _auth_resolved,
    (ToolCallAuthRequiredState, ChatToolCallCompleteAction): _give_up,
    (ToolCallPendingResultConfirmationState, ChatToolCallResultConfirmedAction): _result_confirmed,
}


def skipped(parts: ResponseParts) -> ResponseParts:
    """The parts of a turn that ends: calls still open become cancelled (R-9.57).

    A call in a state that is not known here stays as it is: nothing says what it would keep.
    """
    moved = {}
    for place, part in enumerate(parts):
        if not isinstance(part, ToolCallResponsePart):
            continue
        call = part.tool_call
        if isinstance(call, ToolCallBase) and not isinstance(call, _OVER):
            moved[place] = part.evolve(tool_call=_skipped(call))
    return parts.set_all(moved) if moved else parts


def _skipped(call: Any) -> ToolCallCancelledState:
    message = call.invocation_message
    return ToolCallCancelledState(
        **_base(call),
        invocation_message="" if message is None else message,
        tool_input=None if isinstance(call, ToolCallStreamingState) else call.tool_input,
        reason="skipped",
    )


def _start(chat: ChatState, action: ChatToolCallStartAction) -> ChatState:
    """A new call, in a part of its own; ids are not checked (R-10.3)."""
    turn = chat.active_turn
    if turn is None or turn.id != action.turn_id:
        return chat
    call = ToolCallStreamingState(
        tool_call_id=action.tool_call_id,
        tool_name=action.tool_name,
        display_name=action.display_name,
        intention=action.intention,
        contributor=action.contributor,
        meta=action.meta,
    )
    parts = turn.response_parts.append(ToolCallResponsePart(tool_call=call))
    return chat.evolve(active_turn=turn.evolve(response_parts=parts))


def _step(chat: ChatState, action: ToolCallActionBase) -> ChatState:
    """Moves every call of the running turn that has the id: starts do not check it (R-10.3)."""
    turn = chat.active_turn
    if turn is None or turn.id != action.turn_id:
        return chat
    parts = turn.response_parts
    changes = {}
    for place in parts.places_of(tool_call_key(action.tool_call_id)):
        part = parts[place]
        assert isinstance(part, ToolCallResponsePart)
        call = part.tool_call
        step = STEPS.get((type(call), type(action)))
        moved = call if step is None else step(call, action)
        if not same(call, moved):
            changes[place] = part.evolve(tool_call=moved)
    if not changes:
        return chat
    return chat.evolve(active_turn=turn.evolve(response_parts=parts.set_all(changes)))


def _step_and_refresh(chat: ChatState, action: ToolCallActionBase) -> ChatState:
    """As `_step`, for actions that can begin or end a wait.

    The activity is computed even when no call moved: a stale action after `chat/error` turns
    Error into Idle, here as in the other peers; the host refuses it before that (R-7.36).
    """
    return refreshed(_step(chat, action))


HANDLERS: Handlers[ChatState] = {
    ChatToolCallStartAction: _start,
    ChatToolCallDeltaAction: _step,
    ChatToolCallContentChangedAction: _step,
    ChatToolCallReadyAction: _step_and_refresh,
    ChatToolCallApprovedAction: _step_and_refresh,
    ChatToolCallDeniedAction: _step_and_refresh,
    ChatToolCallCompleteAction: _step_and_refresh,
    ChatToolCallResultConfirmedAction: _step_and_refresh,
    ChatToolCallAuthRequiredAction: _step_and_refresh,
    ChatToolCallAuthResolvedAction: _step_and_refresh,
}
