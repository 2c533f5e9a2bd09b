"""From what people decided in a chat to the answers that its agent waits for.

Pure. An action may answer one of several things: which one the agent waits for is known to
`actors.waits`, so all that it may mean are given, the likeliest first.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ahpd.agents.port import Answer, Answers, Authorized, ClientResult, Permission, Verdict
from ahpd.protocol import chat_actions as act
from ahpd.protocol.actions import StateAction
from ahpd.protocol.chat import ChatState, InputRequestResponsePart
from ahpd.protocol.inputs import ChatInputAnswer


def answers_in(action: StateAction, chat: ChatState) -> Sequence[Answer]:
    """What `action` may answer; `chat` is the state that it, and perhaps more, has led to."""
    find = _ANSWERS.get(type(action))
    return () if find is None else find(action, chat)


def _approved(action: act.ChatToolCallApprovedAction, _: ChatState) -> Sequence[Answer]:
    return (
        Permission(
            action.tool_call_id,
            approved=True,
            option_id=action.selected_option_id,
            input=action.edited_tool_input,
        ),
    )


def _denied(action: act.ChatToolCallDeniedAction, _: ChatState) -> Sequence[Answer]:
    """R-10.22: the reason is for the agent too, and so is what to do instead."""
    reason, instead = action.reason_message, action.user_suggestion
    text = reason if reason is None or isinstance(reason, str) else reason.markdown
    if instead is not None:
        text = "\n".join(filter(None, (text, instead.text)))
    return (
        Permission(
            action.tool_call_id, approved=False, option_id=action.selected_option_id, reason=text
        ),
    )


def _result_confirmed(
    action: act.ChatToolCallResultConfirmedAction, _: ChatState
) -> Sequence[Answer]:
    return (Verdict(action.tool_call_id, action.approved),)


def _complete(action: act.ChatToolCallCompleteAction, _: ChatState) -> Sequence[Answer]:
    """A client has run its tool, or gives up on a token that a call waits for (R-10.30)."""
    return (
        ClientResult(action.tool_call_id, action.result),
        Authorized(action.tool_call_id, None),
    )


def _input_completed(action: act.ChatInputCompletedAction, chat: ChatState) -> Sequence[Answer]:
    """All answers given so far: those of the action lie over the drafts (R-11.8)."""
    return (Answers(action.request_id, action.response, _given(action, chat)),)


def _given(action: act.ChatInputCompletedAction, chat: ChatState) -> Mapping[str, ChatInputAnswer]:
    parts = chat.active_turn.response_parts if chat.active_turn is not None else ()
    for part in reversed(parts):
        if (
            isinstance(part, InputRequestResponsePart)
            and part.request.id == action.request_id
            and part.response is not None
        ):
            return part.request.answers or {}
    return action.answers or {}


_ANSWERS: Mapping[type, Callable[[Any, ChatState], Sequence[Answer]]] = {
    act.ChatToolCallApprovedAction: _approved,
    act.ChatToolCallDeniedAction: _denied,
    act.ChatToolCallResultConfirmedAction: _result_confirmed,
    act.ChatToolCallCompleteAction: _complete,
    act.ChatInputCompletedAction: _input_completed,
}
