"""Every action of the protocol: its class, its channel, who may send it, since when."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

from msgspec import Struct

from ahpd.protocol.annotations import (
    AnnotationsEntryRemovedAction,
    AnnotationsEntrySetAction,
    AnnotationsRemovedAction,
    AnnotationsSetAction,
    AnnotationsUpdatedAction,
)
from ahpd.protocol.automation import (
    AutomationCreateRequestedAction,
    AutomationRemovedAction,
    AutomationRunCancelRequestedAction,
    AutomationRunLifecycleChangedAction,
    AutomationRunPrimarySessionChangedAction,
    AutomationRunSessionRemovedAction,
    AutomationRunSessionSetAction,
    AutomationSetAction,
    AutomationUpdateRequestedAction,
)
from ahpd.protocol.canvas import (
    CanvasStateChangedAction,
)
from ahpd.protocol.changeset import (
    ChangesetClearedAction,
    ChangesetContentChangedAction,
    ChangesetFileRemovedAction,
    ChangesetFileSetAction,
    ChangesetFilesReviewChangedAction,
    ChangesetOperationsChangedAction,
    ChangesetOperationStatusChangedAction,
    ChangesetStatusChangedAction,
)
from ahpd.protocol.chat_actions import (
    ChatActivityChangedAction,
    ChatBackgroundWorkRemovedAction,
    ChatBackgroundWorkSetAction,
    ChatCanvasesChangedAction,
    ChatChangesetsChangedAction,
    ChatDeltaAction,
    ChatDraftChangedAction,
    ChatErrorAction,
    ChatInputAnswerChangedAction,
    ChatInputCompletedAction,
    ChatInputRequestedAction,
    ChatIsArchivedChangedAction,
    ChatIsReadChangedAction,
    ChatMovableChangedAction,
    ChatPendingMessageRemovedAction,
    ChatPendingMessageSetAction,
    ChatQueuedMessagesReorderedAction,
    ChatReasoningAction,
    ChatResponsePartAction,
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
    ChatTruncatedAction,
    ChatTurnCancelledAction,
    ChatTurnCompleteAction,
    ChatTurnResumeAction,
    ChatTurnsLoadedAction,
    ChatTurnStartedAction,
    ChatUsageAction,
    ChatWorkingDirectoryRemovedAction,
    ChatWorkingDirectorySetAction,
)
from ahpd.protocol.model import Unknown, WireType
from ahpd.protocol.resources import (
    ResourceWatchChangedAction,
)
from ahpd.protocol.root import (
    RootActiveSessionsChangedAction,
    RootAgentsChangedAction,
    RootConfigChangedAction,
    RootTerminalsChangedAction,
)
from ahpd.protocol.session_actions import (
    SessionActiveClientRemovedAction,
    SessionActiveClientSetAction,
    SessionActivityChangedAction,
    SessionChangesetsChangedAction,
    SessionChatAddedAction,
    SessionChatRemovedAction,
    SessionChatsReorderedAction,
    SessionChatUpdatedAction,
    SessionConfigChangedAction,
    SessionCreationFailedAction,
    SessionCustomizationRemovedAction,
    SessionCustomizationsChangedAction,
    SessionCustomizationToggledAction,
    SessionCustomizationUpdatedAction,
    SessionDefaultChatChangedAction,
    SessionInputNeededRemovedAction,
    SessionInputNeededSetAction,
    SessionIsArchivedChangedAction,
    SessionIsReadChangedAction,
    SessionMcpServerBackgroundRequestedAction,
    SessionMcpServerStartRequestedAction,
    SessionMcpServerStateChangedAction,
    SessionMcpServerStopRequestedAction,
    SessionMetaChangedAction,
    SessionReadyAction,
    SessionServerToolsChangedAction,
    SessionTitleChangedAction,
    SessionWorkingDirectoryRemovedAction,
    SessionWorkingDirectoryReplacedAction,
    SessionWorkingDirectorySetAction,
)
from ahpd.protocol.terminal import (
    TerminalClaimedAction,
    TerminalClearedAction,
    TerminalCommandDetectionAvailableAction,
    TerminalCommandExecutedAction,
    TerminalCommandFinishedAction,
    TerminalCwdChangedAction,
    TerminalDataAction,
    TerminalExitedAction,
    TerminalInputAction,
    TerminalResizedAction,
    TerminalTitleChangedAction,
)
from ahpd.protocol.uris import ChannelKind

#: Any action of a channel that carries state; an unknown type is kept as `Unknown` (R-1.21).
StateAction: TypeAlias = (
    RootActiveSessionsChangedAction
    | RootAgentsChangedAction
    | RootConfigChangedAction
    | RootTerminalsChangedAction
    | SessionActiveClientRemovedAction
    | SessionActiveClientSetAction
    | SessionActivityChangedAction
    | SessionChangesetsChangedAction
    | SessionChatAddedAction
    | SessionChatRemovedAction
    | SessionChatUpdatedAction
    | SessionChatsReorderedAction
    | SessionConfigChangedAction
    | SessionCreationFailedAction
    | SessionCustomizationRemovedAction
    | SessionCustomizationToggledAction
    | SessionCustomizationUpdatedAction
    | SessionCustomizationsChangedAction
    | SessionDefaultChatChangedAction
    | SessionInputNeededRemovedAction
    | SessionInputNeededSetAction
    | SessionIsArchivedChangedAction
    | SessionIsReadChangedAction
    | SessionMcpServerBackgroundRequestedAction
    | SessionMcpServerStartRequestedAction
    | SessionMcpServerStateChangedAction
    | SessionMcpServerStopRequestedAction
    | SessionMetaChangedAction
    | SessionReadyAction
    | SessionServerToolsChangedAction
    | SessionTitleChangedAction
    | SessionWorkingDirectoryRemovedAction
    | SessionWorkingDirectoryReplacedAction
    | SessionWorkingDirectorySetAction
    | ChatActivityChangedAction
    | ChatBackgroundWorkRemovedAction
    | ChatBackgroundWorkSetAction
    | ChatCanvasesChangedAction
    | ChatChangesetsChangedAction
    | ChatDeltaAction
    | ChatDraftChangedAction
    | ChatErrorAction
    | ChatInputAnswerChangedAction
    | ChatInputCompletedAction
    | ChatInputRequestedAction
    | ChatIsArchivedChangedAction
    | ChatIsReadChangedAction
    | ChatMovableChangedAction
    | ChatPendingMessageRemovedAction
    | ChatPendingMessageSetAction
    | ChatQueuedMessagesReorderedAction
    | ChatReasoningAction
    | ChatResponsePartAction
    | ChatToolCallAuthRequiredAction
    | ChatToolCallAuthResolvedAction
    | ChatToolCallCompleteAction
    | ChatToolCallApprovedAction
    | ChatToolCallDeniedAction
    | ChatToolCallContentChangedAction
    | ChatToolCallDeltaAction
    | ChatToolCallReadyAction
    | ChatToolCallResultConfirmedAction
    | ChatToolCallStartAction
    | ChatTruncatedAction
    | ChatTurnCancelledAction
    | ChatTurnCompleteAction
    | ChatTurnResumeAction
    | ChatTurnStartedAction
    | ChatTurnsLoadedAction
    | ChatUsageAction
    | ChatWorkingDirectoryRemovedAction
    | ChatWorkingDirectorySetAction
    | TerminalClaimedAction
    | TerminalClearedAction
    | TerminalCommandDetectionAvailableAction
    | TerminalCommandExecutedAction
    | TerminalCommandFinishedAction
    | TerminalCwdChangedAction
    | TerminalDataAction
    | TerminalExitedAction
    | TerminalInputAction
    | TerminalResizedAction
    | TerminalTitleChangedAction
    | ChangesetClearedAction
    | ChangesetContentChangedAction
    | ChangesetFileRemovedAction
    | ChangesetFileSetAction
    | ChangesetFilesReviewChangedAction
    | ChangesetOperationStatusChangedAction
    | ChangesetOperationsChangedAction
    | ChangesetStatusChangedAction
    | AnnotationsEntryRemovedAction
    | AnnotationsEntrySetAction
    | AnnotationsRemovedAction
    | AnnotationsSetAction
    | AnnotationsUpdatedAction
    | ResourceWatchChangedAction
    | AutomationCreateRequestedAction
    | AutomationRemovedAction
    | AutomationSetAction
    | AutomationUpdateRequestedAction
    | AutomationRunCancelRequestedAction
    | AutomationRunLifecycleChangedAction
    | AutomationRunPrimarySessionChangedAction
    | AutomationRunSessionRemovedAction
    | AutomationRunSessionSetAction
    | CanvasStateChangedAction
    | Unknown
)


class ActionInfo(Struct, frozen=True):
    """What the protocol says about one action type.

    `since` is the published version; see R-2.13 for why it does not decide what is sent.
    """

    type: str
    classes: tuple[WireType, ...]
    channel: ChannelKind
    client_may_dispatch: bool
    since: str


_CLIENT, _HOST = True, False

_ROWS: dict[ChannelKind, tuple[tuple[str, tuple[WireType, ...], bool, str], ...]] = {
    "root": (
        ("root/activeSessionsChanged", (RootActiveSessionsChangedAction,), _HOST, "0.1.0"),
        ("root/agentsChanged", (RootAgentsChangedAction,), _HOST, "0.1.0"),
        ("root/configChanged", (RootConfigChangedAction,), _CLIENT, "0.1.0"),
        ("root/terminalsChanged", (RootTerminalsChangedAction,), _HOST, "0.1.0"),
    ),
    "session": (
        ("session/activeClientRemoved", (SessionActiveClientRemovedAction,), _CLIENT, "0.5.0"),
        ("session/activeClientSet", (SessionActiveClientSetAction,), _CLIENT, "0.5.0"),
        ("session/activityChanged", (SessionActivityChangedAction,), _HOST, "0.1.0"),
        ("session/changesetsChanged", (SessionChangesetsChangedAction,), _HOST, "0.2.0"),
        ("session/chatAdded", (SessionChatAddedAction,), _HOST, "0.4.0"),
        ("session/chatRemoved", (SessionChatRemovedAction,), _HOST, "0.4.0"),
        ("session/chatUpdated", (SessionChatUpdatedAction,), _HOST, "0.4.0"),
        ("session/chatsReordered", (SessionChatsReorderedAction,), _HOST, "0.9.0"),
        ("session/configChanged", (SessionConfigChangedAction,), _CLIENT, "0.1.0"),
        ("session/creationFailed", (SessionCreationFailedAction,), _HOST, "0.1.0"),
        ("session/customizationRemoved", (SessionCustomizationRemovedAction,), _HOST, "0.2.0"),
        ("session/customizationToggled", (SessionCustomizationToggledAction,), _CLIENT, "0.1.0"),
        ("session/customizationUpdated", (SessionCustomizationUpdatedAction,), _HOST, "0.1.0"),
        ("session/customizationsChanged", (SessionCustomizationsChangedAction,), _HOST, "0.1.0"),
        ("session/defaultChatChanged", (SessionDefaultChatChangedAction,), _HOST, "0.4.0"),
        ("session/inputNeededRemoved", (SessionInputNeededRemovedAction,), _HOST, "0.5.1"),
        ("session/inputNeededSet", (SessionInputNeededSetAction,), _HOST, "0.5.1"),
        ("session/isArchivedChanged", (SessionIsArchivedChangedAction,), _CLIENT, "0.1.0"),
        ("session/isReadChanged", (SessionIsReadChangedAction,), _CLIENT, "0.1.0"),
        (
            "session/mcpServerBackgroundRequested",
            (SessionMcpServerBackgroundRequestedAction,),
            _CLIENT,
            "0.9.0",
        ),
        (
            "session/mcpServerStartRequested",
            (SessionMcpServerStartRequestedAction,),
            _CLIENT,
            "0.5.2",
        ),
        ("session/mcpServerStateChanged", (SessionMcpServerStateChangedAction,), _HOST, "0.3.0"),
        (
            "session/mcpServerStopRequested",
            (SessionMcpServerStopRequestedAction,),
            _CLIENT,
            "0.5.2",
        ),
        ("session/metaChanged", (SessionMetaChangedAction,), _HOST, "0.1.0"),
        ("session/ready", (SessionReadyAction,), _HOST, "0.1.0"),
        ("session/serverToolsChanged", (SessionServerToolsChangedAction,), _HOST, "0.1.0"),
        ("session/titleChanged", (SessionTitleChangedAction,), _CLIENT, "0.1.0"),
        (
            "session/workingDirectoryRemoved",
            (SessionWorkingDirectoryRemovedAction,),
            _CLIENT,
            "0.7.0",
        ),
        (
            "session/workingDirectoryReplaced",
            (SessionWorkingDirectoryReplacedAction,),
            _CLIENT,
            "0.8.0",
        ),
        ("session/workingDirectorySet", (SessionWorkingDirectorySetAction,), _CLIENT, "0.7.0"),
    ),
    "chat": (
        ("chat/activityChanged", (ChatActivityChangedAction,), _HOST, "0.5.0"),
        ("chat/backgroundWorkRemoved", (ChatBackgroundWorkRemovedAction,), _HOST, "0.9.0"),
        ("chat/backgroundWorkSet", (ChatBackgroundWorkSetAction,), _HOST, "0.9.0"),
        ("chat/canvasesChanged", (ChatCanvasesChangedAction,), _HOST, "0.10.0"),
        ("chat/changesetsChanged", (ChatChangesetsChangedAction,), _HOST, "0.9.0"),
        ("chat/delta", (ChatDeltaAction,), _HOST, "0.4.0"),
        ("chat/draftChanged", (ChatDraftChangedAction,), _CLIENT, "0.5.0"),
        ("chat/error", (ChatErrorAction,), _HOST, "0.4.0"),
        ("chat/inputAnswerChanged", (ChatInputAnswerChangedAction,), _CLIENT, "0.4.0"),
        ("chat/inputCompleted", (ChatInputCompletedAction,), _CLIENT, "0.4.0"),
        ("chat/inputRequested", (ChatInputRequestedAction,), _HOST, "0.4.0"),
        ("chat/isArchivedChanged", (ChatIsArchivedChangedAction,), _CLIENT, "0.9.0"),
        ("chat/isReadChanged", (ChatIsReadChangedAction,), _CLIENT, "0.9.0"),
        ("chat/movableChanged", (ChatMovableChangedAction,), _HOST, "0.9.0"),
        ("chat/pendingMessageRemoved", (ChatPendingMessageRemovedAction,), _CLIENT, "0.4.0"),
        ("chat/pendingMessageSet", (ChatPendingMessageSetAction,), _CLIENT, "0.4.0"),
        ("chat/queuedMessagesReordered", (ChatQueuedMessagesReorderedAction,), _CLIENT, "0.4.0"),
        ("chat/reasoning", (ChatReasoningAction,), _HOST, "0.4.0"),
        ("chat/responsePart", (ChatResponsePartAction,), _HOST, "0.4.0"),
        ("chat/toolCallAuthRequired", (ChatToolCallAuthRequiredAction,), _HOST, "0.6.0"),
        ("chat/toolCallAuthResolved", (ChatToolCallAuthResolvedAction,), _HOST, "0.6.0"),
        ("chat/toolCallComplete", (ChatToolCallCompleteAction,), _CLIENT, "0.4.0"),
        (
            "chat/toolCallConfirmed",
            (
                ChatToolCallApprovedAction,
                ChatToolCallDeniedAction,
            ),
            _CLIENT,
            "0.4.0",
        ),
        ("chat/toolCallContentChanged", (ChatToolCallContentChangedAction,), _CLIENT, "0.4.0"),
        ("chat/toolCallDelta", (ChatToolCallDeltaAction,), _HOST, "0.4.0"),
        ("chat/toolCallReady", (ChatToolCallReadyAction,), _HOST, "0.4.0"),
        ("chat/toolCallResultConfirmed", (ChatToolCallResultConfirmedAction,), _CLIENT, "0.4.0"),
        ("chat/toolCallStart", (ChatToolCallStartAction,), _HOST, "0.4.0"),
        ("chat/truncated", (ChatTruncatedAction,), _CLIENT, "0.4.0"),
        ("chat/turnCancelled", (ChatTurnCancelledAction,), _CLIENT, "0.4.0"),
        ("chat/turnComplete", (ChatTurnCompleteAction,), _HOST, "0.4.0"),
        ("chat/turnResume", (ChatTurnResumeAction,), _CLIENT, "0.9.0"),
        ("chat/turnStarted", (ChatTurnStartedAction,), _CLIENT, "0.4.0"),
        ("chat/turnsLoaded", (ChatTurnsLoadedAction,), _HOST, "0.5.1"),
        ("chat/usage", (ChatUsageAction,), _HOST, "0.4.0"),
        ("chat/workingDirectoryRemoved", (ChatWorkingDirectoryRemovedAction,), _CLIENT, "0.7.0"),
        ("chat/workingDirectorySet", (ChatWorkingDirectorySetAction,), _CLIENT, "0.7.0"),
    ),
    "terminal": (
        ("terminal/claimed", (TerminalClaimedAction,), _CLIENT, "0.1.0"),
        ("terminal/cleared", (TerminalClearedAction,), _CLIENT, "0.1.0"),
        (
            "terminal/commandDetectionAvailable",
            (TerminalCommandDetectionAvailableAction,),
            _HOST,
            "0.1.0",
        ),
        ("terminal/commandExecuted", (TerminalCommandExecutedAction,), _HOST, "0.1.0"),
        ("terminal/commandFinished", (TerminalCommandFinishedAction,), _HOST, "0.1.0"),
        ("terminal/cwdChanged", (TerminalCwdChangedAction,), _HOST, "0.1.0"),
        ("terminal/data", (TerminalDataAction,), _HOST, "0.1.0"),
        ("terminal/exited", (TerminalExitedAction,), _HOST, "0.1.0"),
        ("terminal/input", (TerminalInputAction,), _CLIENT, "0.1.0"),
        ("terminal/resized", (TerminalResizedAction,), _CLIENT, "0.1.0"),
        ("terminal/titleChanged", (TerminalTitleChangedAction,), _CLIENT, "0.1.0"),
    ),
    "changeset": (
        ("changeset/cleared", (ChangesetClearedAction,), _HOST, "0.2.0"),
        ("changeset/contentChanged", (ChangesetContentChangedAction,), _HOST, "0.4.0"),
        ("changeset/fileRemoved", (ChangesetFileRemovedAction,), _HOST, "0.2.0"),
        ("changeset/fileSet", (ChangesetFileSetAction,), _HOST, "0.2.0"),
        ("changeset/filesReviewChanged", (ChangesetFilesReviewChangedAction,), _CLIENT, "0.6.0"),
        (
            "changeset/operationStatusChanged",
            (ChangesetOperationStatusChangedAction,),
            _HOST,
            "0.3.0",
        ),
        ("changeset/operationsChanged", (ChangesetOperationsChangedAction,), _HOST, "0.2.0"),
        ("changeset/statusChanged", (ChangesetStatusChangedAction,), _HOST, "0.2.0"),
    ),
    "annotations": (
        ("annotations/entryRemoved", (AnnotationsEntryRemovedAction,), _CLIENT, "0.4.0"),
        ("annotations/entrySet", (AnnotationsEntrySetAction,), _CLIENT, "0.4.0"),
        ("annotations/removed", (AnnotationsRemovedAction,), _CLIENT, "0.4.0"),
        ("annotations/set", (AnnotationsSetAction,), _CLIENT, "0.4.0"),
        ("annotations/updated", (AnnotationsUpdatedAction,), _CLIENT, "0.4.0"),
    ),
    "resourceWatch": (("resourceWatch/changed", (ResourceWatchChangedAction,), _HOST, "0.2.0"),),
    "automation": (
        ("automation/createRequested", (AutomationCreateRequestedAction,), _CLIENT, "0.8.0"),
        ("automation/removed", (AutomationRemovedAction,), _CLIENT, "0.8.0"),
        ("automation/set", (AutomationSetAction,), _HOST, "0.8.0"),
        ("automation/updateRequested", (AutomationUpdateRequestedAction,), _CLIENT, "0.8.0"),
    ),
    "automationRun": (
        ("automationRun/cancelRequested", (AutomationRunCancelRequestedAction,), _CLIENT, "0.8.0"),
        ("automationRun/lifecycleChanged", (AutomationRunLifecycleChangedAction,), _HOST, "0.8.0"),
        (
            "automationRun/primarySessionChanged",
            (AutomationRunPrimarySessionChangedAction,),
            _HOST,
            "0.8.0",
        ),
        ("automationRun/sessionRemoved", (AutomationRunSessionRemovedAction,), _HOST, "0.8.0"),
        ("automationRun/sessionSet", (AutomationRunSessionSetAction,), _HOST, "0.8.0"),
    ),
    "canvas": (("canvas/stateChanged", (CanvasStateChangedAction,), _HOST, "0.10.0"),),
}

#: Action type -> what is known about it; all 106 of 1.0.0.
ACTIONS: Mapping[str, ActionInfo] = {
    name: ActionInfo(name, classes, channel, client, since)
    for channel, rows in _ROWS.items()
    for name, classes, client, since in rows
}


def action_type(action: StateAction) -> str:
    """The wire name of an action's type, also for one that is not known here."""
    return action.tag if isinstance(action, Unknown) else action.type
