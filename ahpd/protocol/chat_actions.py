"""The actions of the chat channel (RULES 9 to 11)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, TypeAlias

from ahpd.protocol.canvas import CanvasReference
from ahpd.protocol.changeset import Changeset
from ahpd.protocol.chat import BackgroundWork, ErrorResponsePart, ResponsePart, Turn
from ahpd.protocol.common import FileEditCollection, StringOrMarkdown, UsageInfo
from ahpd.protocol.inputs import ChatInputAnswer, ChatInputRequest, ChatInputResponseKind
from ahpd.protocol.messages import Message, PendingMessageKind
from ahpd.protocol.model import Object, Wire
from ahpd.protocol.tools import (
    ConfirmationOption,
    McpAuthRequirement,
    ToolCallActionBase,
    ToolCallConfirmationReason,
    ToolCallContributor,
    ToolCallResult,
    ToolCallRiskAssessment,
    ToolInput,
    ToolResultContent,
)
from ahpd.protocol.uris import URI


class ChatActivityChangedAction(Wire):
    """What the chat is doing, in words; absent clears it."""

    type: Literal["chat/activityChanged"] = "chat/activityChanged"
    activity: str | None = None


class ChatBackgroundWorkRemovedAction(Wire):
    """Work that is no longer running."""

    type: Literal["chat/backgroundWorkRemoved"] = "chat/backgroundWorkRemoved"
    id: str


class ChatBackgroundWorkSetAction(Wire):
    """Adds or replaces background work by id (R-9.97)."""

    type: Literal["chat/backgroundWorkSet"] = "chat/backgroundWorkSet"
    work: BackgroundWork


class ChatCanvasesChangedAction(Wire):
    """The chat's canvases, whole."""

    type: Literal["chat/canvasesChanged"] = "chat/canvasesChanged"
    canvases: tuple[CanvasReference, ...] | None = None


class ChatChangesetsChangedAction(Wire):
    """The chat's changeset catalogue, whole."""

    type: Literal["chat/changesetsChanged"] = "chat/changesetsChanged"
    changesets: tuple[Changeset, ...] | None = None


class ChatDeltaAction(Wire):
    """Text appended to a markdown part (R-9.46)."""

    type: Literal["chat/delta"] = "chat/delta"
    turn_id: str
    part_id: str
    content: str
    meta: Object | None = None


class ChatDraftChangedAction(Wire):
    """The shared draft, replaced or cleared (R-9.87)."""

    type: Literal["chat/draftChanged"] = "chat/draftChanged"
    draft: Message | None = None


class ChatErrorAction(Wire):
    """Ends the turn in error, adding the part (R-9.62)."""

    type: Literal["chat/error"] = "chat/error"
    turn_id: str
    duration: float
    part: ErrorResponsePart
    meta: Object | None = None


class ChatInputAnswerChangedAction(Wire):
    """One answer of an open request, or none any more (R-11.4)."""

    type: Literal["chat/inputAnswerChanged"] = "chat/inputAnswerChanged"
    request_id: str
    question_id: str
    answer: ChatInputAnswer | None = None


class ChatInputCompletedAction(Wire):
    """An open request is accepted, declined or cancelled (R-11.8)."""

    type: Literal["chat/inputCompleted"] = "chat/inputCompleted"
    request_id: str
    response: ChatInputResponseKind
    answers: Mapping[str, ChatInputAnswer] | None = None


class ChatInputRequestedAction(Wire):
    """Asks, or asks again under the same id (R-11.2)."""

    type: Literal["chat/inputRequested"] = "chat/inputRequested"
    request: ChatInputRequest


class ChatIsArchivedChangedAction(Wire):
    """Archives this chat alone (R-9.90)."""

    type: Literal["chat/isArchivedChanged"] = "chat/isArchivedChanged"
    is_archived: bool


class ChatIsReadChangedAction(Wire):
    """Marks this chat read or unread (R-9.89)."""

    type: Literal["chat/isReadChanged"] = "chat/isReadChanged"
    is_read: bool


class ChatMovableChangedAction(Wire):
    """Whether the chat can be moved (R-9.29)."""

    type: Literal["chat/movableChanged"] = "chat/movableChanged"
    movable: bool


class ChatPendingMessageRemovedAction(Wire):
    """Takes a pending message away (R-9.77)."""

    type: Literal["chat/pendingMessageRemoved"] = "chat/pendingMessageRemoved"
    kind: PendingMessageKind
    id: str


class ChatPendingMessageSetAction(Wire):
    """Queues a message or steers the turn (R-9.76)."""

    type: Literal["chat/pendingMessageSet"] = "chat/pendingMessageSet"
    kind: PendingMessageKind
    id: str
    message: Message


class ChatQueuedMessagesReorderedAction(Wire):
    """Puts the listed messages first (R-9.85)."""

    type: Literal["chat/queuedMessagesReordered"] = "chat/queuedMessagesReordered"
    order: tuple[str, ...]


class ChatReasoningAction(Wire):
    """Text appended to a reasoning part (R-9.46)."""

    type: Literal["chat/reasoning"] = "chat/reasoning"
    turn_id: str
    part_id: str
    content: str
    meta: Object | None = None


class ChatResponsePartAction(Wire):
    """A new part of the answer (R-9.45)."""

    type: Literal["chat/responsePart"] = "chat/responsePart"
    turn_id: str
    part: ResponsePart
    meta: Object | None = None


class ChatToolCallApprovedAction(ToolCallActionBase):
    """A waiting call is approved (R-10.13)."""

    type: Literal["chat/toolCallConfirmed"] = "chat/toolCallConfirmed"
    approved: Literal[True] = True
    confirmed: ToolCallConfirmationReason
    edited_tool_input: str | None = None
    selected_option_id: str | None = None


class ChatToolCallAuthRequiredAction(ToolCallActionBase):
    """A running call pauses for a token (R-10.27)."""

    type: Literal["chat/toolCallAuthRequired"] = "chat/toolCallAuthRequired"
    auth: McpAuthRequirement


class ChatToolCallAuthResolvedAction(ToolCallActionBase):
    """The token came; the call runs on."""

    type: Literal["chat/toolCallAuthResolved"] = "chat/toolCallAuthResolved"


class ChatToolCallCompleteAction(ToolCallActionBase):
    """A call has its result (R-10.23)."""

    type: Literal["chat/toolCallComplete"] = "chat/toolCallComplete"
    result: ToolCallResult
    requires_result_confirmation: bool | None = None


class ChatToolCallContentChangedAction(ToolCallActionBase):
    """Partial output of a running call, whole (R-10.34)."""

    type: Literal["chat/toolCallContentChanged"] = "chat/toolCallContentChanged"
    content: tuple[ToolResultContent, ...]


class ChatToolCallDeltaAction(ToolCallActionBase):
    """More of the input of a call being written (R-10.8)."""

    type: Literal["chat/toolCallDelta"] = "chat/toolCallDelta"
    content: str | None = None
    invocation_message: StringOrMarkdown | None = None


class ChatToolCallDeniedAction(ToolCallActionBase):
    """A waiting call is denied (R-10.22)."""

    type: Literal["chat/toolCallConfirmed"] = "chat/toolCallConfirmed"
    approved: Literal[False] = False
    reason: Literal["denied", "skipped"]
    user_suggestion: Message | None = None
    reason_message: StringOrMarkdown | None = None
    selected_option_id: str | None = None


class ChatToolCallReadyAction(ToolCallActionBase):
    """The call is complete: run it, or ask first (R-10.9)."""

    type: Literal["chat/toolCallReady"] = "chat/toolCallReady"
    contributor: ToolCallContributor | None = None
    intention: str | None = None
    invocation_message: StringOrMarkdown
    tool_input: ToolInput | None = None
    confirmation_title: StringOrMarkdown | None = None
    risk_assessment: ToolCallRiskAssessment | None = None
    edits: FileEditCollection | None = None
    editable: bool | None = None
    confirmed: ToolCallConfirmationReason | None = None
    options: tuple[ConfirmationOption, ...] | None = None


class ChatToolCallResultConfirmedAction(ToolCallActionBase):
    """A waiting result is approved or denied (R-10.24)."""

    type: Literal["chat/toolCallResultConfirmed"] = "chat/toolCallResultConfirmed"
    approved: bool


class ChatToolCallStartAction(ToolCallActionBase):
    """A call begins; its part comes with it (R-9.49)."""

    type: Literal["chat/toolCallStart"] = "chat/toolCallStart"
    tool_name: str
    display_name: str
    intention: str | None = None
    contributor: ToolCallContributor | None = None


class ChatTruncatedAction(Wire):
    """Keeps turns up to one, or none (R-9.67)."""

    type: Literal["chat/truncated"] = "chat/truncated"
    turn_id: str | None = None


class ChatTurnCancelledAction(Wire):
    """Ends the turn as cancelled (R-9.61)."""

    type: Literal["chat/turnCancelled"] = "chat/turnCancelled"
    turn_id: str
    duration: float
    meta: Object | None = None


class ChatTurnCompleteAction(Wire):
    """Ends the turn as complete (R-9.54)."""

    type: Literal["chat/turnComplete"] = "chat/turnComplete"
    turn_id: str
    duration: float
    meta: Object | None = None


class ChatTurnResumeAction(Wire):
    """Opens the last turn again after an error (R-9.64)."""

    type: Literal["chat/turnResume"] = "chat/turnResume"
    turn_id: str


class ChatTurnStartedAction(Wire):
    """Opens a turn (R-9.31)."""

    type: Literal["chat/turnStarted"] = "chat/turnStarted"
    turn_id: str
    started_at: str
    message: Message
    queued_message_id: str | None = None
    meta: Object | None = None


class ChatTurnsLoadedAction(Wire):
    """Older turns, put in front (R-9.73)."""

    type: Literal["chat/turnsLoaded"] = "chat/turnsLoaded"
    turns: tuple[Turn, ...]
    turns_next_cursor: str | None = None


class ChatUsageAction(Wire):
    """The running turn's usage (R-9.50)."""

    type: Literal["chat/usage"] = "chat/usage"
    turn_id: str
    usage: UsageInfo
    meta: Object | None = None


class ChatWorkingDirectoryRemovedAction(Wire):
    """Takes a directory from the chat."""

    type: Literal["chat/workingDirectoryRemoved"] = "chat/workingDirectoryRemoved"
    directory: URI


class ChatWorkingDirectorySetAction(Wire):
    """Gives the chat a directory of its session (R-9.94)."""

    type: Literal["chat/workingDirectorySet"] = "chat/workingDirectorySet"
    directory: URI


ChatToolCallConfirmedAction: TypeAlias = ChatToolCallApprovedAction | ChatToolCallDeniedAction
