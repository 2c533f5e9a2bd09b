"""The automation catalogue (R-17.2, R-17.6, R-17.12)."""

from __future__ import annotations

from ahpd.protocol.actions import StateAction
from ahpd.protocol.automation import (
    AutomationCreateRequestedAction,
    AutomationRemovedAction,
    AutomationSetAction,
    AutomationState,
    AutomationUpdateRequestedAction,
)
from ahpd.reducers.change import Handlers, changed, dispatch, put, resource_of, unchanged, without


def _set(state: AutomationState, action: AutomationSetAction) -> AutomationState:
    return changed(state, entries=put(state.entries, action.automation, resource_of))


def _removed(state: AutomationState, action: AutomationRemovedAction) -> AutomationState:
    return changed(state, entries=without(state.entries, action.resource, resource_of))


HANDLERS: Handlers[AutomationState] = {
    # The two requests are answered by the host with `automation/set`.
    AutomationCreateRequestedAction: unchanged,
    AutomationUpdateRequestedAction: unchanged,
    AutomationSetAction: _set,
    AutomationRemovedAction: _removed,
}


def reduce(state: AutomationState, action: StateAction) -> AutomationState:
    """The catalogue after `action`; the same object when it changes nothing."""
    return dispatch(HANDLERS, state, action)
