"""What people wish for, as the actions that say it."""

from __future__ import annotations

from typing import Any

from ahpd.protocol import chat_actions as act
from ahpd.protocol.chat import ChatState, InputRequestResponsePart, ToolCallResponsePart
from ahpd.protocol.inputs import ChatInputAnswered, ChatInputRequest, ChatInputTextAnswerValue
from ahpd.protocol.messages import Message, MessageChatAttachment, MessageOrigin
from ahpd.protocol.tools import ToolCallPendingConfirmationState, ToolCallState
from ahpd.protocol.uris import URI

#: Places in which agents can be asked to work; sessions begin with some of the first.
DIRECTORIES = ("file:///a", "file:///b", "file:///c")

_STARTED_AT = "2026-09-21T14:13:20.000Z"


def message(text: str, *, about: URI | None = None) -> Message:
    """What a person types; `about`: with this chat attached."""
    attached = MessageChatAttachment(label="that chat", resource=about) if about else None
    attachments = None if attached is None else (attached,)
    return Message(text=text, origin=MessageOrigin(kind="user"), attachments=attachments)


def start_message(turn: str) -> act.ChatTurnStartedAction:
    """Ask for something."""
    return act.ChatTurnStartedAction(
        turn_id=turn, started_at=_STARTED_AT, message=message(f"Do {turn}")
    )


def queue_message(wanted: str) -> act.ChatPendingMessageSetAction:
    """Ask for something that can wait."""
    return act.ChatPendingMessageSetAction(
        kind="queued", id=wanted, message=message(f"Then {wanted}")
    )


def type_draft(text: str) -> act.ChatDraftChangedAction:
    """Type something, and do not send it."""
    return act.ChatDraftChangedAction(draft=message(text))


def cancel_turn(chat: ChatState) -> act.ChatTurnCancelledAction:
    """Cancel the turn that runs."""
    assert chat.active_turn is not None
    return act.ChatTurnCancelledAction(turn_id=chat.active_turn.id, duration=1.0)


def calls_of(chat: ChatState) -> list[ToolCallState]:
    """The tool calls of the running turn."""
    parts = chat.active_turn.response_parts if chat.active_turn is not None else ()
    return [part.tool_call for part in parts if isinstance(part, ToolCallResponsePart)]


def waiting_calls(chat: ChatState) -> list[ToolCallPendingConfirmationState]:
    """Those that somebody has to decide about."""
    return [call for call in calls_of(chat) if isinstance(call, ToolCallPendingConfirmationState)]


def confirm(chat: ChatState, *, approved: bool, call: Any = None) -> Any:
    """Decide about a call; about the first that waits, unless told."""
    assert chat.active_turn is not None
    call = call if call is not None else waiting_calls(chat)[0]
    turn, options = chat.active_turn.id, getattr(call, "options", None)
    if approved:
        return act.ChatToolCallApprovedAction(
            turn_id=turn,
            tool_call_id=call.tool_call_id,
            confirmed="user-action",
            selected_option_id="once" if options else None,
            edited_tool_input="{}" if getattr(call, "editable", None) else None,
        )
    return act.ChatToolCallDeniedAction(
        turn_id=turn,
        tool_call_id=call.tool_call_id,
        reason="denied",
        reason_message="not that",
        selected_option_id="never" if options else None,
    )


def questions_of(chat: ChatState) -> list[ChatInputRequest]:
    """The questions that wait for an answer."""
    parts = chat.active_turn.response_parts if chat.active_turn is not None else ()
    return [
        part.request
        for part in parts
        if isinstance(part, InputRequestResponsePart) and part.response is None
    ]


def name_them(text: str, *, submitted: bool) -> ChatInputAnswered:
    """An answer in words."""
    value = ChatInputTextAnswerValue(value=text)
    return ChatInputAnswered(state="submitted" if submitted else "draft", value=value)
