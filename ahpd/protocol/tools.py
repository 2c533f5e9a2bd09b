"""Tools and tool calls: definitions, the states of a call, results (RULES 10)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, TypeAlias

from ahpd.protocol.common import (
    ContentRef,
    FileEdit,
    FileEditCollection,
    ProtectedResourceMetadata,
    StringOrMarkdown,
)
from ahpd.protocol.messages import Message
from ahpd.protocol.model import Object, Unknown, Wire
from ahpd.protocol.persistent import AnyText
from ahpd.protocol.uris import URI

ConfirmationOptionKind: TypeAlias = Literal["approve", "deny"]


McpAuthRequiredReason: TypeAlias = Literal["required", "expired", "insufficientScope"]


ToolCallCancellationReason: TypeAlias = Literal["denied", "skipped", "result-denied"]


ToolCallConfirmationReason: TypeAlias = Literal["not-needed", "user-action", "setting"]


ToolCallRiskAssessmentKind: TypeAlias = Literal["judge"]


class ConfirmationOption(Wire):
    """One of the answers offered for a tool call that waits for approval."""

    id: str
    label: str
    kind: ConfirmationOptionKind
    group: float | None = None


class McpAuthRequirement(Wire):
    """The token an MCP server wants; `requiredScopes` alone says what it must grant."""

    reason: McpAuthRequiredReason
    oauth_client: McpOAuthClient | None = None
    resource: ProtectedResourceMetadata
    required_scopes: tuple[str, ...] | None = None
    description: str | None = None


class McpOAuthClient(Wire):
    """An OAuth client registered in advance (R-18.26)."""

    client_id: str
    client_secret: str | None = None


class TerminalCommandResult(Wire):
    """How the command of a terminal content ended."""

    exit_code: float | None = None
    preview: str | None = None
    truncated: bool | None = None


class ToolAnnotations(Wire):
    """Hints about what a tool does."""

    title: str | None = None
    read_only_hint: bool | None = None
    destructive_hint: bool | None = None
    idempotent_hint: bool | None = None
    open_world_hint: bool | None = None


class ToolCallActionBase(Wire):
    """What every action on a tool call names."""

    turn_id: str
    tool_call_id: str
    meta: Object | None = None


class ToolCallBase(Wire):
    """What a tool call has in every state."""

    tool_call_id: str
    tool_name: str
    display_name: str
    intention: str | None = None
    contributor: ToolCallContributor | None = None
    meta: Object | None = None


class ToolCallAuthRequiredState(ToolCallBase):
    """Paused: its MCP server wants a token (R-10.27)."""

    status: Literal["auth-required"] = "auth-required"
    contributor: ToolCallMcpContributor
    invocation_message: StringOrMarkdown
    tool_input: ToolInput | None = None
    confirmed: ToolCallConfirmationReason
    selected_option: ConfirmationOption | None = None
    auth: McpAuthRequirement
    content: tuple[ToolResultContent, ...] | None = None


class ToolCallCancelledState(ToolCallBase):
    """Over without a result: denied, skipped, or its result was denied."""

    status: Literal["cancelled"] = "cancelled"
    invocation_message: StringOrMarkdown
    tool_input: ToolInput | None = None
    reason: ToolCallCancellationReason
    reason_message: StringOrMarkdown | None = None
    user_suggestion: Message | None = None
    selected_option: ConfirmationOption | None = None


class ToolCallClientContributor(Wire):
    """The tool belongs to a client, which runs it (R-10.32)."""

    kind: Literal["client"] = "client"
    client_id: str


class ToolCallCompletedState(ToolCallBase):
    """Over with a result, good or bad."""

    status: Literal["completed"] = "completed"
    invocation_message: StringOrMarkdown
    tool_input: ToolInput | None = None
    success: bool
    past_tense_message: StringOrMarkdown
    content: tuple[ToolResultContent, ...] | None = None
    structured_content: Object | None = None
    error: ToolCallError | None = None
    confirmed: ToolCallConfirmationReason
    selected_option: ConfirmationOption | None = None


class ToolCallMcpContributor(Wire):
    """The tool belongs to an MCP server."""

    kind: Literal["mcp"] = "mcp"
    customization_id: str


class ToolCallParameterFields(Wire):
    """What a call asks for."""

    invocation_message: StringOrMarkdown
    tool_input: ToolInput | None = None


class ToolCallPendingConfirmationState(ToolCallBase):
    """Waits for somebody's approval (R-10.13)."""

    status: Literal["pending-confirmation"] = "pending-confirmation"
    invocation_message: StringOrMarkdown
    tool_input: ToolInput | None = None
    confirmation_title: StringOrMarkdown | None = None
    risk_assessment: ToolCallRiskAssessment | None = None
    edits: FileEditCollection | None = None
    editable: bool | None = None
    options: tuple[ConfirmationOption, ...] | None = None


class ToolCallPendingResultConfirmationState(ToolCallBase):
    """Its result waits for approval before the model sees it (R-10.24)."""

    status: Literal["pending-result-confirmation"] = "pending-result-confirmation"
    invocation_message: StringOrMarkdown
    tool_input: ToolInput | None = None
    success: bool
    past_tense_message: StringOrMarkdown
    content: tuple[ToolResultContent, ...] | None = None
    structured_content: Object | None = None
    error: ToolCallError | None = None
    confirmed: ToolCallConfirmationReason
    selected_option: ConfirmationOption | None = None


class ToolCallPostConfirmationFields(Wire):
    """How a call came to be allowed."""

    confirmed: ToolCallConfirmationReason
    selected_option: ConfirmationOption | None = None


class ToolCallResult(Wire):
    """What a tool gave back; a failure has `success` false and an `error` (R-10.4)."""

    success: bool
    past_tense_message: StringOrMarkdown
    content: tuple[ToolResultContent, ...] | None = None
    structured_content: Object | None = None
    error: ToolCallError | None = None


class ToolCallRiskAssessmentBase(Wire):
    """What every assessment says."""

    kind: ToolCallRiskAssessmentKind


class ToolCallRiskAssessmentCompleteState(Wire):
    """A judgement of how safe the call is."""

    status: Literal["complete"] = "complete"
    kind: ToolCallRiskAssessmentKind
    reason: StringOrMarkdown
    safety: float


class ToolCallRiskAssessmentLoadingState(Wire):
    """A judgement that is still being made."""

    status: Literal["loading"] = "loading"
    kind: ToolCallRiskAssessmentKind


class ToolCallRunningState(ToolCallBase):
    """Allowed and at work."""

    status: Literal["running"] = "running"
    invocation_message: StringOrMarkdown
    tool_input: ToolInput | None = None
    confirmed: ToolCallConfirmationReason
    selected_option: ConfirmationOption | None = None
    content: tuple[ToolResultContent, ...] | None = None


class ToolCallStreamingState(ToolCallBase):
    """The agent is still writing the call's input."""

    status: Literal["streaming"] = "streaming"
    partial_input: AnyText | None = None
    invocation_message: StringOrMarkdown | None = None


class ToolDefinition(Wire):
    """A tool as offered to the model."""

    name: str
    title: str | None = None
    description: str | None = None
    input_schema: ToolSchema | None = None
    output_schema: ToolSchema | None = None
    annotations: ToolAnnotations | None = None
    meta: Object | None = None


class ToolResultEmbeddedResourceContent(Wire):
    """Content carried inside the result, base64."""

    type: Literal["embeddedResource"] = "embeddedResource"
    data: str
    content_type: str


class ToolResultFileEditContent(FileEdit):
    """A file that the tool changed."""

    type: Literal["fileEdit"] = "fileEdit"


class ToolResultResourceContent(ContentRef):
    """Content by reference."""

    type: Literal["resource"] = "resource"


class ToolResultSubagentContent(Wire):
    """The chat in which a worker does the call's work (R-10.48)."""

    type: Literal["subagent"] = "subagent"
    resource: URI
    title: str
    agent_name: str | None = None
    description: str | None = None


class ToolResultTerminalContent(Wire):
    """The terminal in which a command runs (R-10.47)."""

    type: Literal["terminal"] = "terminal"
    resource: URI
    title: str
    is_pty: bool | None = None
    result: TerminalCommandResult | None = None


class ToolResultTextContent(Wire):
    """Plain text."""

    type: Literal["text"] = "text"
    text: str


class ToolCallError(Wire):
    """Why a tool failed."""

    message: str
    code: str | None = None


class ToolSchema(Wire):
    """The JSON Schema of a tool's input or output."""

    type: Literal["object"] = "object"
    properties: Mapping[str, Object] | None = None
    required: tuple[str, ...] | None = None


ToolCallConfirmationState: TypeAlias = (
    ToolCallPendingConfirmationState | ToolCallPendingResultConfirmationState | Unknown
)


ToolCallContributor: TypeAlias = ToolCallClientContributor | ToolCallMcpContributor | Unknown


ToolCallRiskAssessment: TypeAlias = (
    ToolCallRiskAssessmentLoadingState | ToolCallRiskAssessmentCompleteState | Unknown
)


ToolCallState: TypeAlias = (
    ToolCallStreamingState
    | ToolCallPendingConfirmationState
    | ToolCallRunningState
    | ToolCallAuthRequiredState
    | ToolCallPendingResultConfirmationState
    | ToolCallCompletedState
    | ToolCallCancelledState
    | Unknown
)


ToolInput: TypeAlias = str | ContentRef


ToolResultContent: TypeAlias = (
    ToolResultTextContent
    | ToolResultEmbeddedResourceContent
    | ToolResultResourceContent
    | ToolResultFileEditContent
    | ToolResultTerminalContent
    | ToolResultSubagentContent
    | Unknown
)
