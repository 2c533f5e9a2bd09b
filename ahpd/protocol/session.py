"""The session channel: its state, its summary in lists, and its commands (RULES 7, 8, 22)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, TypeAlias

from ahpd.protocol.annotations import AnnotationsSummary
from ahpd.protocol.changeset import Changeset
from ahpd.protocol.chat import ChatInteractivity, ChatOrigin, ChatSummary
from ahpd.protocol.common import (
    BaseParams,
    ChangesSummary,
    ConfigPropertySchema,
    ErrorInfo,
    ProjectInfo,
    SessionStatus,
)
from ahpd.protocol.customizations import ClientPluginCustomization, Customization
from ahpd.protocol.inputs import ChatInputRequest
from ahpd.protocol.model import Object, Unknown, Wire
from ahpd.protocol.tools import (
    ToolCallAuthRequiredState,
    ToolCallConfirmationState,
    ToolCallRunningState,
    ToolDefinition,
)
from ahpd.protocol.uris import URI

SessionLifecycle: TypeAlias = Literal["creating", "ready", "failed"]


class AutomationSessionOrigin(Wire):
    """The run that made a session (R-17.40)."""

    kind: Literal["automation"] = "automation"
    automation: URI
    run: URI


class CreateSessionParams(BaseParams):
    """Makes the session named by `channel` (R-8.1)."""

    provider: str | None = None
    working_directories: tuple[URI, ...] | None = None
    config: Object | None = None
    active_client: SessionActiveClient | None = None
    progress_token: str | None = None


class DisposeSessionParams(BaseParams):
    """Ends the session named by `channel` (R-8.22)."""


class ListSessionsParams(BaseParams):
    """Asks for sessions, all of them unless paged (R-7.23)."""

    channel: Literal["ahp-root://"] = "ahp-root://"
    limit: float | None = None
    cursor: str | None = None


class ListSessionsResult(Wire):
    """Sessions, most recently modified first (R-7.25)."""

    next_cursor: str | None = None
    items: tuple[SessionSummary, ...]


class ResolveSessionConfigParams(BaseParams):
    """Asks what can be configured in this context (R-22.8)."""

    channel: Literal["ahp-root://"] = "ahp-root://"
    provider: str | None = None
    working_directory: URI | None = None
    config: Object | None = None


class ResolveSessionConfigResult(Wire):
    """The schema, and the values with defaults filled in."""

    schema: SessionConfigSchema
    values: Object


class SessionActiveClient(Wire):
    """A client that takes part in a session: its tools and plugins."""

    client_id: str
    display_name: str | None = None
    tools: tuple[ToolDefinition, ...]
    customizations: tuple[ClientPluginCustomization, ...] | None = None


class SessionInputRequestBase(Wire):
    """What every entry of `inputNeeded` names."""

    id: str
    chat: URI


class SessionChatInputRequest(SessionInputRequestBase):
    """Questions of a chat that wait for people."""

    kind: Literal["chatInput"] = "chatInput"
    request: ChatInputRequest


class SessionChatSummary(Wire):
    """A chat's compact row in the session's summary (R-7.18)."""

    resource: URI
    title: str
    origin: ChatOrigin | None = None
    interactivity: ChatInteractivity | None = None
    status: SessionStatus | None = None
    changes: ChangesSummary | None = None


class SessionConfigCompletionsParams(BaseParams):
    """Asks for values of a dynamic property (R-22.10)."""

    channel: Literal["ahp-root://"] = "ahp-root://"
    provider: str | None = None
    working_directory: URI | None = None
    config: Object | None = None
    property: str
    query: str | None = None


class SessionConfigCompletionsResult(Wire):
    """Values that fit."""

    items: tuple[SessionConfigValueItem, ...]


class SessionConfigPropertySchema(ConfigPropertySchema):
    """One configuration value; `sessionMutable`: may change later (R-22.13)."""

    enum_dynamic: bool | None = None
    session_mutable: bool | None = None


class SessionConfigSchema(Wire):
    """The schema of a session's configuration."""

    type: Literal["object"] = "object"
    properties: Mapping[str, SessionConfigPropertySchema]
    required: tuple[str, ...] | None = None


class SessionConfigState(Wire):
    """A session's configuration."""

    schema: SessionConfigSchema
    values: Object


class SessionConfigValueItem(Wire):
    """A value to choose from."""

    value: str
    label: str
    description: str | None = None


class SessionMetadata(Wire):
    """What state and summary of a session have in common."""

    provider: str
    title: str
    status: SessionStatus
    activity: str | None = None
    origin: SessionOrigin | None = None
    project: ProjectInfo | None = None
    working_directories: tuple[URI, ...] | None = None
    annotations: AnnotationsSummary | None = None


class SessionState(SessionMetadata):
    """A session: its chats, clients, customizations, and what waits for people."""

    lifecycle: SessionLifecycle
    creation_error: ErrorInfo | None = None
    server_tools: tuple[ToolDefinition, ...] | None = None
    active_clients: tuple[SessionActiveClient, ...]
    chats: tuple[ChatSummary, ...]
    default_chat: URI | None = None
    config: SessionConfigState | None = None
    customizations: tuple[Customization, ...] | None = None
    changesets: tuple[Changeset, ...] | None = None
    input_needed: tuple[SessionInputRequest, ...] | None = None
    meta: Object | None = None


class SessionSummary(SessionMetadata):
    """A session's row in lists."""

    resource: URI
    created_at: str
    modified_at: str
    changes: ChangesSummary | None = None
    chats: tuple[SessionChatSummary, ...] | None = None
    default_chat: URI | None = None
    meta: Object | None = None


class SessionToolAuthenticationRequest(SessionInputRequestBase):
    """A tool call that waits for a token (R-11.19)."""

    kind: Literal["toolAuthentication"] = "toolAuthentication"
    turn_id: str
    tool_call: ToolCallAuthRequiredState


class SessionToolClientExecutionRequest(SessionInputRequestBase):
    """A tool call that its client has to run (R-10.46)."""

    kind: Literal["toolClientExecution"] = "toolClientExecution"
    turn_id: str
    client_id: str
    tool_call: ToolCallRunningState


class SessionToolConfirmationRequest(SessionInputRequestBase):
    """A tool call, or its result, that waits for approval."""

    kind: Literal["toolConfirmation"] = "toolConfirmation"
    turn_id: str
    tool_call: ToolCallConfirmationState


class PartialSessionSummary(Wire):
    """The fields of a summary that changed (R-7.16)."""

    provider: str | None = None
    title: str | None = None
    status: SessionStatus | None = None
    activity: str | None = None
    origin: SessionOrigin | None = None
    project: ProjectInfo | None = None
    working_directories: tuple[URI, ...] | None = None
    annotations: AnnotationsSummary | None = None
    resource: URI | None = None
    created_at: str | None = None
    modified_at: str | None = None
    changes: ChangesSummary | None = None
    chats: tuple[SessionChatSummary, ...] | None = None
    default_chat: URI | None = None
    meta: Object | None = None


SessionInputRequest: TypeAlias = (
    SessionChatInputRequest
    | SessionToolConfirmationRequest
    | SessionToolClientExecutionRequest
    | SessionToolAuthenticationRequest
    | Unknown
)


SessionOrigin: TypeAlias = AutomationSessionOrigin | Unknown
