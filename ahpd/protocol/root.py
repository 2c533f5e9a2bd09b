"""The root channel: agents, host configuration, notifications, authentication (RULES 7, 19)."""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

from ahpd.protocol.common import BaseParams, ConfigSchema, ProtectedResourceMetadata
from ahpd.protocol.customizations import Customization
from ahpd.protocol.model import Object, Wire
from ahpd.protocol.session import PartialSessionSummary, SessionSummary
from ahpd.protocol.shapes import Minimum
from ahpd.protocol.terminal import TerminalInfo
from ahpd.protocol.uris import URI

AuthRequiredReason: TypeAlias = Literal["required", "expired"]


PolicyState: TypeAlias = Literal["enabled", "disabled", "unconfigured"]


class AgentCapabilities(Wire):
    """What an agent can do; absent means it must not be used (R-7.10)."""

    multiple_chats: MultipleChatsCapability | None = None
    multiple_working_directories: MultipleWorkingDirectoriesCapability | None = None


class AgentInfo(Wire):
    """An agent that sessions can use."""

    provider: str
    display_name: str
    description: str
    models: tuple[SessionModelInfo, ...]
    protected_resources: tuple[ProtectedResourceMetadata, ...] | None = None
    customizations: tuple[Customization, ...] | None = None
    capabilities: AgentCapabilities | None = None


class AuthRequiredErrorData(Wire):
    """What AuthRequired (-32007) carries (R-19.4)."""

    resources: tuple[ProtectedResourceMetadata, ...]


class AuthRequiredParams(Wire):
    """A token is needed, or has expired (R-19.12)."""

    channel: URI
    resource: ProtectedResourceMetadata
    reason: AuthRequiredReason | None = None


class AuthenticateParams(BaseParams):
    """Hands over a token for a resource; an empty one takes it back (R-19.7)."""

    channel: Literal["ahp-root://"] = "ahp-root://"
    resource: str
    token: str
    expires_in: Annotated[int, Minimum(1)] | None = None
    scopes: tuple[str, ...] | None = None


class AuthenticateResult(Wire):
    """Empty: the token was taken."""


class MultipleChatsCapability(Wire):
    """Several chats a session."""

    fork: bool | None = None
    side_chat: bool | None = None


class MultipleWorkingDirectoriesCapability(Wire):
    """Several working directories a session (R-8.50)."""

    immutable_primary: bool | None = None
    primary_replacement: bool | None = None


class ProgressParams(Wire):
    """How far a long request is (R-7.47)."""

    channel: URI
    progress_token: str
    progress: float
    total: float | None = None
    message: str | None = None


class RootActiveSessionsChangedAction(Wire):
    """How many sessions are not disposed."""

    type: Literal["root/activeSessionsChanged"] = "root/activeSessionsChanged"
    active_sessions: float


class RootAgentsChangedAction(Wire):
    """The agents, whole (R-7.8)."""

    type: Literal["root/agentsChanged"] = "root/agentsChanged"
    agents: tuple[AgentInfo, ...]


class RootConfigChangedAction(Wire):
    """Host configuration, merged or replaced (R-7.5)."""

    type: Literal["root/configChanged"] = "root/configChanged"
    config: Object
    replace: bool | None = None


class RootConfigState(Wire):
    """The host's configuration."""

    schema: ConfigSchema
    values: Object


class RootState(Wire):
    """The host as everybody sees it."""

    agents: tuple[AgentInfo, ...]
    active_sessions: float | None = None
    terminals: tuple[TerminalInfo, ...] | None = None
    config: RootConfigState | None = None
    meta: Object | None = None


class RootTerminalsChangedAction(Wire):
    """The terminals, whole (R-7.4)."""

    type: Literal["root/terminalsChanged"] = "root/terminalsChanged"
    terminals: tuple[TerminalInfo, ...]


class SessionAddedParams(Wire):
    """A session appeared."""

    channel: URI
    summary: SessionSummary


class SessionModelInfo(Wire):
    """A model that an agent offers."""

    id: str
    provider: str
    name: str
    max_context_window: float | None = None
    max_output_tokens: float | None = None
    max_prompt_tokens: float | None = None
    supports_vision: bool | None = None
    policy_state: PolicyState | None = None
    config_schema: ConfigSchema | None = None
    meta: Object | None = None


class SessionRemovedParams(Wire):
    """A session is gone."""

    channel: URI
    session: URI


class SessionSummaryChangedParams(Wire):
    """Fields of a session's summary changed (R-7.14)."""

    channel: URI
    session: URI
    changes: PartialSessionSummary
