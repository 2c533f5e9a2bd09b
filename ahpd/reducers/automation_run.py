"""The channel of one automation run (R-17.35 to R-17.41)."""

from __future__ import annotations

from ahpd.protocol.actions import StateAction
from ahpd.protocol.automation import (
    AutomationRunCancelRequestedAction,
    AutomationRunLifecycleChangedAction,
    AutomationRunPrimarySessionChangedAction,
    AutomationRunSessionRemovedAction,
    AutomationRunSessionSetAction,
    AutomationRunState,
)
from ahpd.reducers.change import Handlers, changed, dispatch, unchanged


def _lifecycle(
    run: AutomationRunState, action: AutomationRunLifecycleChangedAction
) -> AutomationRunState:
    """Whatever the host says; that a final one stays is not checked here (R-5.27)."""
    return changed(run, lifecycle=action.lifecycle)


def _session_set(
    run: AutomationRunState, action: AutomationRunSessionSetAction
) -> AutomationRunState:
    if action.session in run.sessions:
        return run
    return run.evolve(sessions=(*run.sessions, action.session))


def _session_removed(
    run: AutomationRunState, action: AutomationRunSessionRemovedAction
) -> AutomationRunState:
    """A session that left cannot be the one to open first (R-17.41)."""
    if action.session not in run.sessions:
        return run
    sessions = tuple(session for session in run.sessions if session != action.session)
    primary = None if run.primary_session == action.session else run.primary_session
    return run.evolve(sessions=sessions, primary_session=primary)


def _primary(
    run: AutomationRunState, action: AutomationRunPrimarySessionChangedAction
) -> AutomationRunState:
    return changed(run, primary_session=action.primary_session)


HANDLERS: Handlers[AutomationRunState] = {
    AutomationRunCancelRequestedAction: unchanged,  # the run may still end otherwise
    AutomationRunLifecycleChangedAction: _lifecycle,
    AutomationRunPrimarySessionChangedAction: _primary,
    AutomationRunSessionRemovedAction: _session_removed,
    AutomationRunSessionSetAction: _session_set,
}


def reduce(state: AutomationRunState, action: StateAction) -> AutomationRunState:
    """The run after `action`; the same object when it changes nothing."""
    return dispatch(HANDLERS, state, action)
