"""Rules for what clients dispatch to a session (RULES 8, 18)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from msgspec import Struct

from actors import customizing
from actors.rules import config
from actors.rules.titles import title_fault
from ahpd.protocol import session_actions as act
from ahpd.protocol.actions import StateAction
from ahpd.protocol.customizations import McpServerCustomization
from ahpd.protocol.root import AgentCapabilities
from ahpd.protocol.session import SessionState


class Case(Struct, frozen=True):
    """What a rule may look at: the session, its agent's capabilities, who asks, and whether a turn
    runs in any of its chats.
    """

    session: SessionState
    capabilities: AgentCapabilities | None
    client_id: str
    busy: bool = False
    #: Whether the agent can switch customizations, and be told to start and stop MCP servers.
    can_switch: bool = False
    can_control: bool = False
    #: Why the agent does not take a value for a setting.
    refuses: config.Refusal = config.takes_all


def _title(case: Case, action: act.SessionTitleChangedAction) -> str | None:
    return title_fault(action.title)


def _client_set(case: Case, action: act.SessionActiveClientSetAction) -> str | None:
    if action.active_client.client_id != case.client_id:
        return "a client may only add itself"
    return None


def _client_removed(case: Case, action: act.SessionActiveClientRemovedAction) -> str | None:
    return None if action.client_id == case.client_id else "a client may only remove itself"


def _directory_set(case: Case, action: act.SessionWorkingDirectorySetAction) -> str | None:
    changes = action.directory not in (case.session.working_directories or ())
    return _directories(case) or _at_rest(case, changes=changes)


def _directories(case: Case) -> str | None:
    """R-8.51: without the capability the set is fixed."""
    if case.capabilities is None or case.capabilities.multiple_working_directories is None:
        return "this agent works in the directories it was started with"
    return None


def _at_rest(case: Case, *, changes: bool) -> str | None:
    """R-8.56: a change starts the agents again, which would cut off what they are doing."""
    if changes and case.busy:
        return "a turn is running; the directories can be changed when it has ended"
    return None


def _directory_removed(case: Case, action: act.SessionWorkingDirectoryRemovedAction) -> str | None:
    changes = action.directory in (case.session.working_directories or ())
    return _directories(case) or _primary(case, action.directory) or _at_rest(case, changes=changes)


def _primary(case: Case, directory: str) -> str | None:
    """R-8.52: only this check protects entry 0; the reducer would take it away."""
    held = case.session.working_directories or ()
    several = case.capabilities.multiple_working_directories if case.capabilities else None
    if several is not None and several.immutable_primary and held[:1] == (directory,):
        return "the first working directory cannot be taken away"
    return None


def _directory_replaced(
    case: Case, action: act.SessionWorkingDirectoryReplacedAction
) -> str | None:
    changes = action.directory in (case.session.working_directories or ())
    return (
        _directories(case)
        or _replaceable(case, action.directory)
        or _at_rest(case, changes=changes)
    )


def _replaceable(case: Case, directory: str) -> str | None:
    """R-8.55: the only way to change a first directory that is protected."""
    several = case.capabilities.multiple_working_directories if case.capabilities else None
    if several is not None and several.primary_replacement:
        return None
    return _primary(case, directory)


def _config(case: Case, action: act.SessionConfigChangedAction) -> str | None:
    return config.judge(case.session.config, action, case.refuses)


def _toggled(case: Case, action: act.SessionCustomizationToggledAction) -> str | None:
    if customizing.find(case.session.customizations or (), action.id) is None:
        return f"the session has no customization {action.id}"
    reason = customizing.order_fault(action.enablement)
    if reason is None and not case.can_switch:
        return "this agent cannot switch its customizations"
    return reason


def _server(case: Case, action: Any) -> str | None:
    entry = customizing.find(case.session.customizations or (), action.id)
    if not isinstance(entry, McpServerCustomization):
        return f"the session has no MCP server {action.id}"
    return None if case.can_control else "this agent cannot be told about its MCP servers"


def _anything(case: Case, action: StateAction) -> str | None:
    return None


#: Every action that a client may dispatch to a session. What is not here is refused by the desk.
RULES: Mapping[type, Callable[[Case, Any], str | None]] = {
    act.SessionTitleChangedAction: _title,
    act.SessionActiveClientSetAction: _client_set,
    act.SessionActiveClientRemovedAction: _client_removed,
    act.SessionWorkingDirectorySetAction: _directory_set,
    act.SessionWorkingDirectoryRemovedAction: _directory_removed,
    act.SessionWorkingDirectoryReplacedAction: _directory_replaced,
    act.SessionConfigChangedAction: _config,
    act.SessionCustomizationToggledAction: _toggled,
    act.SessionMcpServerStartRequestedAction: _server,
    act.SessionMcpServerStopRequestedAction: _server,
    act.SessionMcpServerBackgroundRequestedAction: _server,
    act.SessionIsReadChangedAction: _anything,
    act.SessionIsArchivedChangedAction: _anything,
}


def judge(case: Case, action: StateAction) -> str | None:
    """Why this action is refused; None when it is not."""
    return RULES[type(action)](case, action)
