"""The resource-watch channel: its state is a descriptor that never changes (R-14.7, R-14.8)."""

from __future__ import annotations

from ahpd.protocol.actions import StateAction
from ahpd.protocol.resources import ResourceWatchChangedAction, ResourceWatchState
from ahpd.reducers.change import Handlers, dispatch, unchanged

HANDLERS: Handlers[ResourceWatchState] = {ResourceWatchChangedAction: unchanged}


def reduce(state: ResourceWatchState, action: StateAction) -> ResourceWatchState:
    """The descriptor, whatever `action` reports."""
    return dispatch(HANDLERS, state, action)
