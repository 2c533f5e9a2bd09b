"""The terminal channel (RULES 12)."""

from __future__ import annotations

from ahpd.protocol.actions import StateAction
from ahpd.protocol.persistent import append_text
from ahpd.protocol.terminal import (
    TerminalClaimedAction,
    TerminalClearedAction,
    TerminalCommandDetectionAvailableAction,
    TerminalCommandExecutedAction,
    TerminalCommandFinishedAction,
    TerminalCommandPart,
    TerminalContent,
    TerminalContentPart,
    TerminalCwdChangedAction,
    TerminalDataAction,
    TerminalExitedAction,
    TerminalExitedLifecycleState,
    TerminalInputAction,
    TerminalResizedAction,
    TerminalState,
    TerminalTitleChangedAction,
    TerminalUnclassifiedPart,
)
from ahpd.reducers.change import Handlers, changed, dispatch, unchanged


def _data(terminal: TerminalState, action: TerminalDataAction) -> TerminalState:
    """To the last part when it is open, else to a new one; runs for every chunk (R-12.18)."""
    content = terminal.content
    last = content[-1] if content else None
    new: TerminalContentPart
    if isinstance(last, TerminalUnclassifiedPart):
        new = last.evolve(value=append_text(last.value, action.data))
    elif isinstance(last, TerminalCommandPart) and not last.is_complete:
        new = last.evolve(output=append_text(last.output, action.data))
    else:
        part = TerminalUnclassifiedPart(value=action.data)
        return terminal.evolve(content=content.append(part))
    if not action.data:
        return terminal
    return terminal.evolve(content=content.set(len(content) - 1, new))


def _command_executed(
    terminal: TerminalState, action: TerminalCommandExecutedAction
) -> TerminalState:
    """A new part, which also shows that commands are detected (R-12.31)."""
    part = TerminalCommandPart(
        command_id=action.command_id,
        command_line=action.command_line,
        output="",
        timestamp=action.timestamp,
        is_complete=False,
    )
    return terminal.evolve(content=terminal.content.append(part), supports_command_detection=True)


def _command_finished(
    terminal: TerminalState, action: TerminalCommandFinishedAction
) -> TerminalState:
    """Sought from the end, where it nearly always is."""
    content = terminal.content
    for place in range(len(content) - 1, -1, -1):
        part = content[place]
        if isinstance(part, TerminalCommandPart) and part.command_id == action.command_id:
            new = changed(
                part,
                is_complete=True,
                exit_code=action.exit_code,
                duration_ms=action.duration_ms,
            )
            if new is part:
                return terminal
            return terminal.evolve(content=content.set(place, new))
    return terminal


def _detection(
    terminal: TerminalState, _: TerminalCommandDetectionAvailableAction
) -> TerminalState:
    return changed(terminal, supports_command_detection=True)


def _cleared(terminal: TerminalState, _: TerminalClearedAction) -> TerminalState:
    """The content only (R-12.21)."""
    return terminal.evolve(content=TerminalContent()) if terminal.content else terminal


def _exited(terminal: TerminalState, action: TerminalExitedAction) -> TerminalState:
    """Without a code when a signal ended the process (R-12.14)."""
    return changed(terminal, lifecycle=TerminalExitedLifecycleState(exit_code=action.exit_code))


def _claimed(terminal: TerminalState, action: TerminalClaimedAction) -> TerminalState:
    return changed(terminal, claim=action.claim)


def _resized(terminal: TerminalState, action: TerminalResizedAction) -> TerminalState:
    return changed(terminal, cols=action.cols, rows=action.rows)


def _title(terminal: TerminalState, action: TerminalTitleChangedAction) -> TerminalState:
    return changed(terminal, title=action.title)


def _cwd(terminal: TerminalState, action: TerminalCwdChangedAction) -> TerminalState:
    return changed(terminal, cwd=action.cwd)


HANDLERS: Handlers[TerminalState] = {
    TerminalClaimedAction: _claimed,
    TerminalClearedAction: _cleared,
    TerminalCommandDetectionAvailableAction: _detection,
    TerminalCommandExecutedAction: _command_executed,
    TerminalCommandFinishedAction: _command_finished,
    TerminalCwdChangedAction: _cwd,
    TerminalDataAction: _data,
    TerminalExitedAction: _exited,
    TerminalInputAction: unchanged,  # for the process, not for the state
    TerminalResizedAction: _resized,
    TerminalTitleChangedAction: _title,
}


def reduce(state: TerminalState, action: StateAction) -> TerminalState:
    """The terminal after `action`; the same object when it changes nothing."""
    return dispatch(HANDLERS, state, action)
