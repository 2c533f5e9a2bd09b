"""Rules for what clients dispatch to a chat (the validation table of RULES 9, and 10, 11)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from msgspec import Struct

from actors.clock import from_iso
from actors.ledger import Channel
from actors.rules import config, questions
from actors.rules.messages import Find, message_fault
from actors.rules.titles import title_fault
from actors.summaries import is_worker
from ahpd.protocol import chat_actions as act
from ahpd.protocol.actions import StateAction
from ahpd.protocol.chat import (
    ChatState,
    ErrorResponsePart,
    InputRequestResponsePart,
    ResponseParts,
    ToolCallResponsePart,
    input_request_key,
    tool_call_key,
)
from ahpd.protocol.inputs import ChatInputRequest
from ahpd.protocol.messages import Message, PendingMessage
from ahpd.protocol.root import AgentCapabilities
from ahpd.protocol.session import SessionState
from ahpd.protocol.session_actions import (
    SessionConfigChangedAction,
    SessionTitleChangedAction,
)
from ahpd.protocol.tools import (
    ToolCallAuthRequiredState,
    ToolCallBase,
    ToolCallPendingConfirmationState,
    ToolCallPendingResultConfirmationState,
)
from ahpd.reducers.status import ARCHIVED

#: Milliseconds; with more the end of a turn is no date any more, and replicas fail on it.
LONGEST_TURN = 1e12


class Case(Struct, frozen=True):
    """What a rule may look at: the chat, its session, and who asks."""

    channel: Channel
    chat: ChatState
    session: SessionState | None
    client_id: str
    find: Find
    capabilities: AgentCapabilities | None = None
    #: Whether the agent can forget turns, and go on with one that failed.
    can_rewind: bool = False
    can_resume: bool = False
    #: Why the agent cannot work for who asks, and does not take a value for a setting.
    lacks: str | None = None
    refuses: config.Refusal = config.takes_all

    @property
    def parts(self) -> ResponseParts | None:
        """The parts of the running turn."""
        return None if self.chat.active_turn is None else self.chat.active_turn.response_parts


def _writable(case: Case) -> str | None:
    if case.chat.interactivity in ("read-only", "hidden"):
        return "this chat can only be read"
    if case.session is not None and case.session.lifecycle == "failed":
        return "the session could not be started"
    return None


def _turn_started(case: Case, action: act.ChatTurnStartedAction) -> str | None:
    if action.turn_id in case.channel.used:
        return f"a turn with the id {action.turn_id} was already started"
    if case.chat.active_turn is not None:
        return "a turn is running; queue the message instead"
    if action.queued_message_id is not None:
        return "only the host takes messages from the queue"
    reason = _writable(case) or _time(action.started_at) or _message(case, action.message)
    return reason or case.lacks


def _time(text: str) -> str | None:
    """R-1.39; every replica computes with it when the turn ends (R-9.58)."""
    return None if from_iso(text) is not None else f"startedAt is no time: {text[:40]!r}"


def _message(case: Case, message: Message) -> str | None:
    return message_fault(message, case.find)


def _turn_cancelled(case: Case, action: act.ChatTurnCancelledAction) -> str | None:
    turn = case.chat.active_turn
    if turn is None:
        return "no turn is running"
    if is_worker(case.chat):
        return "a worker stops with the turn that started it"
    if turn.id != action.turn_id:
        return f"the running turn is {turn.id}, not {action.turn_id}"
    if action.duration > LONGEST_TURN:
        return f"no turn can have taken {action.duration:g} ms"
    return None


def _turn_resume(case: Case, action: act.ChatTurnResumeAction) -> str | None:
    """R-9.63: three conditions, and the agent has to be able to."""
    if case.chat.active_turn is not None:
        return "a turn is running"
    last = case.chat.turns[-1] if case.chat.turns else None
    if last is None or last.id != action.turn_id or last.state != "error":
        return "only the last turn can be resumed, and only after an error"
    errors = [part for part in last.response_parts if isinstance(part, ErrorResponsePart)]
    if not errors or not errors[-1].resumable:
        return "the error of this turn cannot be resumed"
    if not case.can_resume:
        return "this agent cannot go on with a turn that failed"
    return _writable(case) or case.lacks


def _truncated(case: Case, action: act.ChatTruncatedAction) -> str | None:
    """R-9.68, R-9.71: judged against all turns there are, whatever part of them a client holds."""
    if not case.can_rewind:
        return "this agent cannot take a conversation back to an earlier turn"
    if action.turn_id is not None and case.chat.turns.index_of(action.turn_id) < 0:
        return f"the chat has no completed turn {action.turn_id}"
    return _writable(case)


def _call(case: Case, action: Any) -> ToolCallBase | None:
    turn, parts = case.chat.active_turn, case.parts
    if turn is None or parts is None or turn.id != action.turn_id:
        return None
    place = parts.index_of(tool_call_key(action.tool_call_id))
    part = parts[place] if place >= 0 else None
    if isinstance(part, ToolCallResponsePart) and isinstance(part.tool_call, ToolCallBase):
        return part.tool_call
    return None


def _confirmed(
    case: Case, action: act.ChatToolCallApprovedAction | act.ChatToolCallDeniedAction
) -> str | None:
    call = _call(case, action)
    if call is None:
        return f"the running turn has no tool call {action.tool_call_id}"
    if not isinstance(call, ToolCallPendingConfirmationState):
        return "this tool call is not waiting for approval; somebody may have answered before"
    return _option(call, action) or _edited(call, action)


def _option(
    call: ToolCallPendingConfirmationState,
    action: act.ChatToolCallApprovedAction | act.ChatToolCallDeniedAction,
) -> str | None:
    """R-10.15: an option that is not offered, or says the opposite, would silently be lost."""
    wanted = action.selected_option_id
    if wanted is None:
        return None
    option = next((option for option in call.options or () if option.id == wanted), None)
    if option is None:
        return f"the tool call offers no option {wanted}"
    if (option.kind == "approve") is not action.approved:
        return f"the option {wanted} is one to {option.kind}"
    return None


def _edited(
    call: ToolCallPendingConfirmationState,
    action: act.ChatToolCallApprovedAction | act.ChatToolCallDeniedAction,
) -> str | None:
    edits = isinstance(action, act.ChatToolCallApprovedAction) and (
        action.edited_tool_input is not None
    )
    return "the input of this tool call cannot be edited" if edits and not call.editable else None


def _result_confirmed(case: Case, action: act.ChatToolCallResultConfirmedAction) -> str | None:
    call = _call(case, action)
    if call is None:
        return f"the running turn has no tool call {action.tool_call_id}"
    if not isinstance(call, ToolCallPendingResultConfirmationState):
        return "the result of this tool call is not waiting for approval"
    return None


def _contributed(
    case: Case, action: act.ChatToolCallCompleteAction | act.ChatToolCallContentChangedAction
) -> str | None:
    """R-10.35: progress and result of a call are its owner's to send; ours are the agent's."""
    call = _call(case, action)
    if call is None:
        return f"the running turn has no tool call {action.tool_call_id}"
    if isinstance(call, ToolCallAuthRequiredState):
        return _given_up(action)
    owner = getattr(call.contributor, "client_id", None)
    if owner != case.client_id:
        return "only the client that provides this tool may say what it does"
    if call.status != "running":  # type: ignore[attr-defined]
        return "this tool call is not running"
    if isinstance(action, act.ChatToolCallCompleteAction) and action.requires_result_confirmation:
        return (
            "the result of a client's tool goes to the agent at once, it cannot wait for approval"
        )
    return None


def _given_up(
    action: act.ChatToolCallCompleteAction | act.ChatToolCallContentChangedAction,
) -> str | None:
    """R-24.7: whoever could bring the token may also say that there will be none."""
    if isinstance(action, act.ChatToolCallCompleteAction) and not action.result.success:
        return None
    return "this tool call waits for a token; it can only be given up"


def _pending_set(case: Case, action: act.ChatPendingMessageSetAction) -> str | None:
    if action.id in case.channel.used:
        return f"the message {action.id} was already taken up, or taken back"
    return _writable(case) or _message(case, action.message)


def _pending_removed(case: Case, action: act.ChatPendingMessageRemovedAction) -> str | None:
    waiting: tuple[PendingMessage, ...] = case.chat.queued_messages or ()
    if action.kind == "steering":
        waiting = (case.chat.steering_message,) if case.chat.steering_message else ()
    if all(message.id != action.id for message in waiting):
        past = action.id in case.channel.used
        taken = "was already taken up, or taken back" if past else "is not waiting"
        return f"the {action.kind} message {action.id} {taken}"
    return None


def _draft(case: Case, action: act.ChatDraftChangedAction) -> str | None:
    message = action.draft
    if message is not None and message.origin.kind != "user":
        return f"a draft is its user's, not of origin {message.origin.kind}"
    return "this chat can only be read" if is_worker(case.chat) else None


def _request(case: Case, request_id: str) -> ChatInputRequest | None:
    """The open request of that id; one that was answered may have had the same."""
    parts = case.parts
    if parts is None or parts.index_of(input_request_key(request_id)) < 0:
        return None
    for part in parts:
        if (
            isinstance(part, InputRequestResponsePart)
            and part.request.id == request_id
            and part.response is None
        ):
            return part.request
    return None


def _answer_changed(case: Case, action: act.ChatInputAnswerChangedAction) -> str | None:
    request = _request(case, action.request_id)
    if request is None:
        return f"no question {action.request_id} is open"
    return questions.answer_fault(request, action.question_id, action.answer)


def _completed(case: Case, action: act.ChatInputCompletedAction) -> str | None:
    request = _request(case, action.request_id)
    if request is None:
        return f"no question {action.request_id} is open"
    return questions.completion_fault(request, action)


def _directory_set(case: Case, action: act.ChatWorkingDirectorySetAction) -> str | None:
    """R-9.94. It counts from the next turn on, which starts the agent again in what it may use."""
    held = () if case.session is None else case.session.working_directories or ()
    if action.directory not in held:
        return f"{action.directory} is not one of the session's working directories"
    return _directories(case)


def _directory_removed(case: Case, action: act.ChatWorkingDirectoryRemovedAction) -> str | None:
    held = case.chat.working_directories or ()
    return _directories(case) if action.directory in held else None


def _directories(case: Case) -> str | None:
    if case.capabilities is None or case.capabilities.multiple_working_directories is None:
        return "this agent works in the directories it was started with"
    return None


def _archived(case: Case, action: act.ChatIsArchivedChangedAction) -> str | None:
    """R-9.90, R-9.91: with the default chat it is the session that is archived, not the chat.

    An echo would set the chat's own bit, so its sender is told that it was done elsewhere. A chat
    that was archived before it became the default one can still lose its bit.
    """
    is_default = case.session is not None and case.session.default_chat == case.chat.resource
    if is_default and action.is_archived and not int(case.chat.status) & ARCHIVED:
        return "archiving the default chat archives its session; that was done instead"
    return None


def _title(case: Case, action: SessionTitleChangedAction) -> str | None:
    return title_fault(action.title)


def _config(case: Case, action: SessionConfigChangedAction) -> str | None:
    if action.replace:
        return "only on the session's channel are all settings replaced"
    held = case.session.config if case.session is not None else None
    return config.judge(held, action, case.refuses)


def _anything(case: Case, action: StateAction) -> str | None:
    return None


#: Every action that a client may dispatch to a chat. What is not here is refused by the desk.
RULES: Mapping[type, Callable[[Case, Any], str | None]] = {
    act.ChatTurnStartedAction: _turn_started,
    act.ChatTurnCancelledAction: _turn_cancelled,
    act.ChatTurnResumeAction: _turn_resume,
    act.ChatTruncatedAction: _truncated,
    act.ChatToolCallApprovedAction: _confirmed,
    act.ChatToolCallDeniedAction: _confirmed,
    act.ChatToolCallResultConfirmedAction: _result_confirmed,
    act.ChatToolCallCompleteAction: _contributed,
    act.ChatToolCallContentChangedAction: _contributed,
    act.ChatPendingMessageSetAction: _pending_set,
    act.ChatPendingMessageRemovedAction: _pending_removed,
    act.ChatQueuedMessagesReorderedAction: _anything,
    act.ChatDraftChangedAction: _draft,
    act.ChatInputAnswerChangedAction: _answer_changed,
    act.ChatInputCompletedAction: _completed,
    act.ChatWorkingDirectorySetAction: _directory_set,
    act.ChatWorkingDirectoryRemovedAction: _directory_removed,
    act.ChatIsReadChangedAction: _anything,
    act.ChatIsArchivedChangedAction: _archived,
    SessionTitleChangedAction: _title,
    SessionConfigChangedAction: _config,
}


def judge(case: Case, action: StateAction) -> str | None:
    """Why this action is refused; None when it is not."""
    return RULES[type(action)](case, action)
