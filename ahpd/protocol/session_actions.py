"""The actions of the session channel (RULES 8)."""

from __future__ import annotations

from typing import Literal

from ahpd.protocol.changeset import Changeset
from ahpd.protocol.chat import ChatSummary, PartialChatSummary
from ahpd.protocol.common import ErrorInfo
from ahpd.protocol.customizations import Customization, CustomizationEnablement, McpServerState
from ahpd.protocol.model import Object, Wire
from ahpd.protocol.session import SessionActiveClient, SessionInputRequest
from ahpd.protocol.tools import ToolDefinition
from ahpd.protocol.uris import URI


class SessionActiveClientRemovedAction(Wire):
    """A client no longer takes part (R-8.46)."""

    type: Literal["session/activeClientRemoved"] = "session/activeClientRemoved"
    client_id: str


class SessionActiveClientSetAction(Wire):
    """A client takes part, its entry whole (R-8.44)."""

    type: Literal["session/activeClientSet"] = "session/activeClientSet"
    active_client: SessionActiveClient


class SessionActivityChangedAction(Wire):
    """What the session is doing, in words; absent clears it."""

    type: Literal["session/activityChanged"] = "session/activityChanged"
    activity: str | None = None


class SessionChangesetsChangedAction(Wire):
    """The changeset catalogue, whole."""

    type: Literal["session/changesetsChanged"] = "session/changesetsChanged"
    changesets: tuple[Changeset, ...] | None = None


class SessionChatAddedAction(Wire):
    """A chat, inserted or replaced by URI (R-8.27)."""

    type: Literal["session/chatAdded"] = "session/chatAdded"
    summary: ChatSummary


class SessionChatRemovedAction(Wire):
    """A chat is gone (R-8.28)."""

    type: Literal["session/chatRemoved"] = "session/chatRemoved"
    chat: URI


class SessionChatUpdatedAction(Wire):
    """Fields of a chat's row (R-8.29)."""

    type: Literal["session/chatUpdated"] = "session/chatUpdated"
    chat: URI
    changes: PartialChatSummary


class SessionChatsReorderedAction(Wire):
    """The complete order of the chats (R-8.30)."""

    type: Literal["session/chatsReordered"] = "session/chatsReordered"
    chats: tuple[URI, ...]


class SessionConfigChangedAction(Wire):
    """Configuration values, merged or replaced (R-8.41)."""

    type: Literal["session/configChanged"] = "session/configChanged"
    config: Object
    replace: bool | None = None


class SessionCreationFailedAction(Wire):
    """The session could not start (R-8.17)."""

    type: Literal["session/creationFailed"] = "session/creationFailed"
    error: ErrorInfo


class SessionCustomizationRemovedAction(Wire):
    """An entry or child is gone (R-18.4)."""

    type: Literal["session/customizationRemoved"] = "session/customizationRemoved"
    id: str


class SessionCustomizationToggledAction(Wire):
    """All explicit decisions for one entry (R-18.9)."""

    type: Literal["session/customizationToggled"] = "session/customizationToggled"
    id: str
    enablement: tuple[CustomizationEnablement, ...]


class SessionCustomizationUpdatedAction(Wire):
    """One top-level entry with its children (R-18.4)."""

    type: Literal["session/customizationUpdated"] = "session/customizationUpdated"
    customization: Customization


class SessionCustomizationsChangedAction(Wire):
    """The customizations, whole (R-18.4)."""

    type: Literal["session/customizationsChanged"] = "session/customizationsChanged"
    customizations: tuple[Customization, ...]


class SessionDefaultChatChangedAction(Wire):
    """Which chat to open first, or none (R-8.31)."""

    type: Literal["session/defaultChatChanged"] = "session/defaultChatChanged"
    default_chat: URI | None = None


class SessionInputNeededRemovedAction(Wire):
    """Nothing waits under this id any more (R-11.20)."""

    type: Literal["session/inputNeededRemoved"] = "session/inputNeededRemoved"
    id: str


class SessionInputNeededSetAction(Wire):
    """Something waits for a person or a client (R-11.16)."""

    type: Literal["session/inputNeededSet"] = "session/inputNeededSet"
    request: SessionInputRequest


class SessionIsArchivedChangedAction(Wire):
    """Archives the session (R-8.35)."""

    type: Literal["session/isArchivedChanged"] = "session/isArchivedChanged"
    is_archived: bool


class SessionIsReadChangedAction(Wire):
    """Marks the session read or unread (R-8.35)."""

    type: Literal["session/isReadChanged"] = "session/isReadChanged"
    is_read: bool


class SessionMcpServerBackgroundRequestedAction(Wire):
    """Stop waiting for a starting server (R-18.21)."""

    type: Literal["session/mcpServerBackgroundRequested"] = "session/mcpServerBackgroundRequested"
    id: str


class SessionMcpServerStartRequestedAction(Wire):
    """Start, or start again (R-18.19)."""

    type: Literal["session/mcpServerStartRequested"] = "session/mcpServerStartRequested"
    id: str


class SessionMcpServerStateChangedAction(Wire):
    """A server's state and channel (R-18.18)."""

    type: Literal["session/mcpServerStateChanged"] = "session/mcpServerStateChanged"
    id: str
    state: McpServerState
    channel: URI | None = None


class SessionMcpServerStopRequestedAction(Wire):
    """Stop (R-18.19)."""

    type: Literal["session/mcpServerStopRequested"] = "session/mcpServerStopRequested"
    id: str


class SessionMetaChangedAction(Wire):
    """`_meta`, whole (R-8.38)."""

    type: Literal["session/metaChanged"] = "session/metaChanged"
    meta: Object | None = None


class SessionReadyAction(Wire):
    """The session can be used (R-8.16)."""

    type: Literal["session/ready"] = "session/ready"


class SessionServerToolsChangedAction(Wire):
    """The host's tools, whole (R-8.40)."""

    type: Literal["session/serverToolsChanged"] = "session/serverToolsChanged"
    tools: tuple[ToolDefinition, ...]


class SessionTitleChangedAction(Wire):
    """The title (R-8.33)."""

    type: Literal["session/titleChanged"] = "session/titleChanged"
    title: str


class SessionWorkingDirectoryRemovedAction(Wire):
    """Takes a directory away (R-8.49)."""

    type: Literal["session/workingDirectoryRemoved"] = "session/workingDirectoryRemoved"
    directory: URI


class SessionWorkingDirectoryReplacedAction(Wire):
    """Swaps one directory for another (R-8.54)."""

    type: Literal["session/workingDirectoryReplaced"] = "session/workingDirectoryReplaced"
    directory: URI
    replacement: URI


class SessionWorkingDirectorySetAction(Wire):
    """Adds a directory (R-8.49)."""

    type: Literal["session/workingDirectorySet"] = "session/workingDirectorySet"
    directory: URI
