"""The root channel (R-7.1 to R-7.5)."""

from __future__ import annotations

from ahpd.protocol.actions import StateAction
from ahpd.protocol.root import (
    RootActiveSessionsChangedAction,
    RootAgentsChangedAction,
    RootConfigChangedAction,
    RootState,
    RootTerminalsChangedAction,
)
from ahpd.reducers.change import Handlers, changed, dispatch
from ahpd.reducers.config import merged


def _agents(root: RootState, action: RootAgentsChangedAction) -> RootState:
    return changed(root, agents=action.agents)


def _active_sessions(root: RootState, action: RootActiveSessionsChangedAction) -> RootState:
    return changed(root, active_sessions=action.active_sessions)


def _terminals(root: RootState, action: RootTerminalsChangedAction) -> RootState:
    return changed(root, terminals=action.terminals)


def _config(root: RootState, action: RootConfigChangedAction) -> RootState:
    """Merged or replaced; nothing to change without a configuration (R-7.5)."""
    if root.config is None:
        return root
    values = merged(root.config.values, action.config, replace=action.replace)
    config = changed(root.config, values=values)
    return root if config is root.config else root.evolve(config=config)


HANDLERS: Handlers[RootState] = {
    RootActiveSessionsChangedAction: _active_sessions,
    RootAgentsChangedAction: _agents,
    RootConfigChangedAction: _config,
    RootTerminalsChangedAction: _terminals,
}


def reduce(state: RootState, action: StateAction) -> RootState:
    """The root state after `action`; the same object when it changes nothing."""
    return dispatch(HANDLERS, state, action)
