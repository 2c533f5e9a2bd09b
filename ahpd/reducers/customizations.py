"""A session's customizations and MCP servers (R-18.1 to R-18.21).

Entries are found by id, those at the top first, then the children of containers, which are one
level deep. Entries of an unknown type have an id but no children that could be looked at.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from ahpd.protocol.customizations import (
    ContainerCustomizationBase,
    Customization,
    CustomizationEnablement,
    McpServerCustomization,
    McpServerStartingState,
    McpServerStoppedState,
    PluginCustomization,
)
from ahpd.protocol.model import Unknown
from ahpd.protocol.session import SessionState
from ahpd.protocol.session_actions import (
    SessionCustomizationRemovedAction,
    SessionCustomizationsChangedAction,
    SessionCustomizationToggledAction,
    SessionCustomizationUpdatedAction,
    SessionMcpServerBackgroundRequestedAction,
    SessionMcpServerStartRequestedAction,
    SessionMcpServerStateChangedAction,
    SessionMcpServerStopRequestedAction,
)
from ahpd.reducers.change import Handlers, changed, place_of, put, with_item, without

Entries: TypeAlias = tuple[Any, ...]


def _replaced(session: SessionState, action: SessionCustomizationsChangedAction) -> SessionState:
    return changed(session, customizations=action.customizations)


def _updated(session: SessionState, action: SessionCustomizationUpdatedAction) -> SessionState:
    """One entry at the top, with all its children: there is no update of a child (R-18.4)."""
    return changed(session, customizations=put(session.customizations, action.customization))


def _removed(session: SessionState, action: SessionCustomizationRemovedAction) -> SessionState:
    entries = session.customizations or ()
    left = without(entries, action.id)
    if left is entries:
        left = _in_children(entries, lambda children: without(children, action.id))
    return session if left is entries else session.evolve(customizations=left)


def _with_entry(session: SessionState, wanted: str, change: Callable[[Any], Any]) -> SessionState:
    """The session with `change` applied to the entry or child with an id."""
    entries = session.customizations or ()
    place = place_of(entries, wanted)
    if place >= 0:
        new: Entries = with_item(entries, place, change(entries[place]))
    else:
        new = _in_children(entries, lambda children: _with_child(children, wanted, change))
    return session if new is entries else session.evolve(customizations=new)


def _with_child(children: Entries, wanted: str, change: Callable[[Any], Any]) -> Entries:
    place = place_of(children, wanted)
    return children if place < 0 else with_item(children, place, change(children[place]))


def _in_children(
    entries: tuple[Customization, ...], change: Callable[[Entries], Entries]
) -> tuple[Customization, ...]:
    """`entries` with the children of the first container that `change` changes."""
    for place, entry in enumerate(entries):
        if isinstance(entry, ContainerCustomizationBase) and entry.children:
            children = change(entry.children)
            if children is not entry.children:
                return with_item(entries, place, entry.evolve(children=children))
    return entries


def _toggled(session: SessionState, action: SessionCustomizationToggledAction) -> SessionState:
    """All decisions for one entry, in place of the old ones (R-18.9)."""
    return _with_entry(session, action.id, lambda entry: _decided(entry, action.enablement))


def _decided(entry: Any, enablement: tuple[CustomizationEnablement, ...]) -> Any:
    """Plugins and servers keep the list; other entries only its outcome (R-18.10).

    The list is sorted, so its first decision counts; none at all means enabled.
    """
    if isinstance(entry, Unknown):
        return entry
    if isinstance(entry, (PluginCustomization, McpServerCustomization)):
        return changed(entry, enablement=enablement or None)
    first = enablement[0] if enablement else None
    if isinstance(first, Unknown):
        return entry  # a newer peer's scope: what it decides is not known
    return changed(entry, enabled=True if first is None else first.enabled)


# --- MCP servers


def _with_server(
    session: SessionState, wanted: str, change: Callable[[McpServerCustomization], Any]
) -> SessionState:
    """As `_with_entry`, for MCP servers only (R-18.18)."""
    return _with_entry(
        session,
        wanted,
        lambda entry: change(entry) if isinstance(entry, McpServerCustomization) else entry,
    )


def _server_state(
    session: SessionState, action: SessionMcpServerStateChangedAction
) -> SessionState:
    return _with_server(
        session,
        action.id,
        lambda server: server.evolve(state=action.state, channel=action.channel),
    )


def _server_start(
    session: SessionState, action: SessionMcpServerStartRequestedAction
) -> SessionState:
    """Also a restart (R-18.19)."""
    return _with_server(
        session,
        action.id,
        lambda server: server.evolve(state=McpServerStartingState(), channel=None),
    )


def _server_stop(
    session: SessionState, action: SessionMcpServerStopRequestedAction
) -> SessionState:
    return _with_server(
        session,
        action.id,
        lambda server: server.evolve(state=McpServerStoppedState(), channel=None),
    )


def _server_background(
    session: SessionState, action: SessionMcpServerBackgroundRequestedAction
) -> SessionState:
    """Nobody waits for the server any more (R-18.21)."""
    return _with_server(session, action.id, _in_background)


def _in_background(server: McpServerCustomization) -> McpServerCustomization:
    state = server.state
    if not isinstance(state, McpServerStartingState) or not state.blocking:
        return server
    return server.evolve(state=state.evolve(blocking=None))


HANDLERS: Handlers[SessionState] = {
    SessionCustomizationRemovedAction: _removed,
    SessionCustomizationToggledAction: _toggled,
    SessionCustomizationUpdatedAction: _updated,
    SessionCustomizationsChangedAction: _replaced,
    SessionMcpServerBackgroundRequestedAction: _server_background,
    SessionMcpServerStartRequestedAction: _server_start,
    SessionMcpServerStateChangedAction: _server_state,
    SessionMcpServerStopRequestedAction: _server_stop,
}
