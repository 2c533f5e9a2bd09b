"""Plugins, directories, MCP servers and what they contain (RULES 18)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, TypeAlias

from ahpd.protocol.common import ErrorInfo, Icon, TextRange
from ahpd.protocol.model import Object, Unknown, Wire
from ahpd.protocol.tools import McpAuthRequirement
from ahpd.protocol.uris import URI

ChildCustomizationType: TypeAlias = Literal["agent", "skill", "prompt", "rule", "hook", "mcpServer"]


class CustomizationBase(Wire):
    """What every customization has."""

    id: str
    uri: URI
    name: str
    icons: tuple[Icon, ...] | None = None
    range: TextRange | None = None
    meta: Object | None = None


class ChildCustomizationBase(CustomizationBase):
    """What every child of a container has."""

    enabled: bool | None = None


class AgentCustomization(ChildCustomizationBase):
    """An agent that a customization brings."""

    type: Literal["agent"] = "agent"
    description: str | None = None
    model: str | None = None
    tools: tuple[str, ...] | None = None
    disable_model_invocation: bool | None = None
    disable_user_invocation: bool | None = None


class AhpMcpUiHostCapabilities(Wire):
    """What the host serves an MCP app on its channel (R-18.31)."""

    server_tools: McpListChanges | None = None
    server_resources: McpListChanges | None = None
    logging: Object | None = None
    sampling: McpSampling | None = None


class ContainerCustomizationBase(CustomizationBase):
    """What plugins and directories share: where they come from, and children."""

    client_id: str | None = None
    load: CustomizationLoadState | None = None
    children: tuple[ChildCustomization, ...] | None = None


class ClientPluginCustomization(ContainerCustomizationBase):
    """A plugin as its client publishes it."""

    type: Literal["plugin"] = "plugin"
    enablement: tuple[CustomizationEnablement, ...] | None = None
    version: str | None = None
    nonce: str | None = None
    child_enablement: Mapping[str, tuple[CustomizationEnablement, ...]] | None = None


class CustomizationDegradedState(Wire):
    """Loaded, but not all of it."""

    kind: Literal["degraded"] = "degraded"
    message: str


class GlobalEnablement(Wire):
    """A decision for every session."""

    kind: Literal["global"] = "global"
    enabled: bool


class WorkspaceEnablement(Wire):
    """A decision for one workspace."""

    kind: Literal["workspace"] = "workspace"
    uri: URI
    enabled: bool


class SessionEnablement(Wire):
    """A decision for this session."""

    kind: Literal["session"] = "session"
    enabled: bool


class CustomizationErrorState(Wire):
    """Could not be loaded."""

    kind: Literal["error"] = "error"
    message: str


class CustomizationLoadedState(Wire):
    """Loaded."""

    kind: Literal["loaded"] = "loaded"


class CustomizationLoadingState(Wire):
    """Being loaded."""

    kind: Literal["loading"] = "loading"


class DirectoryCustomization(ContainerCustomizationBase):
    """A folder that holds customizations of one kind (R-18.13)."""

    type: Literal["directory"] = "directory"
    enabled: bool
    contents: ChildCustomizationType
    writable: bool


class HookCustomization(ChildCustomizationBase):
    """A command run at certain moments."""

    type: Literal["hook"] = "hook"


class McpServerAuthRequiredState(McpAuthRequirement):
    """Wants a token before it starts."""

    kind: Literal["authRequired"] = "authRequired"


class McpServerCustomization(CustomizationBase):
    """An MCP server, at the top or inside a container."""

    type: Literal["mcpServer"] = "mcpServer"
    enablement: tuple[CustomizationEnablement, ...] | None = None
    state: McpServerState
    channel: URI | None = None
    mcp_app: McpServerCustomizationApps | None = None


class McpServerCustomizationApps(Wire):
    """What apps of this server may use."""

    capabilities: AhpMcpUiHostCapabilities


class McpServerErrorState(Wire):
    """Failed."""

    kind: Literal["error"] = "error"
    error: ErrorInfo


class McpServerReadyState(Wire):
    """At work."""

    kind: Literal["ready"] = "ready"


class McpServerStartingState(Wire):
    """Starting; `blocking` holds messages until it is done (R-18.21)."""

    kind: Literal["starting"] = "starting"
    blocking: bool | None = None


class McpServerStoppedState(Wire):
    """Not running."""

    kind: Literal["stopped"] = "stopped"


class PluginCustomization(ContainerCustomizationBase):
    """A plugin and what it contains."""

    type: Literal["plugin"] = "plugin"
    enablement: tuple[CustomizationEnablement, ...] | None = None
    version: str | None = None


class PromptCustomization(ChildCustomizationBase):
    """A prompt, offered as a slash command."""

    type: Literal["prompt"] = "prompt"
    description: str | None = None


class RuleCustomization(ChildCustomizationBase):
    """Instructions that apply always or to some files."""

    type: Literal["rule"] = "rule"
    description: str | None = None
    always_apply: bool | None = None
    globs: tuple[str, ...] | None = None


class SkillCustomization(ChildCustomizationBase):
    """A skill."""

    type: Literal["skill"] = "skill"
    description: str | None = None
    disable_model_invocation: bool | None = None
    disable_user_invocation: bool | None = None


class McpListChanges(Wire):
    """Whether changes of the list are told."""

    list_changed: bool | None = None


class McpSampling(Wire):
    """What sampling supports."""

    tools: Object | None = None


ChildCustomization: TypeAlias = (
    AgentCustomization
    | SkillCustomization
    | PromptCustomization
    | RuleCustomization
    | HookCustomization
    | McpServerCustomization
    | Unknown
)


Customization: TypeAlias = (
    PluginCustomization | DirectoryCustomization | McpServerCustomization | Unknown
)


CustomizationEnablement: TypeAlias = (
    GlobalEnablement | WorkspaceEnablement | SessionEnablement | Unknown
)


CustomizationLoadState: TypeAlias = (
    CustomizationLoadingState
    | CustomizationLoadedState
    | CustomizationDegradedState
    | CustomizationErrorState
    | Unknown
)


McpServerState: TypeAlias = (
    McpServerStartingState
    | McpServerReadyState
    | McpServerAuthRequiredState
    | McpServerErrorState
    | McpServerStoppedState
    | Unknown
)
