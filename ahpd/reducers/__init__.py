"""Reducers: the state of a channel after an action, one module a channel.

They are pure. They read no clock and do no I/O, never change what they were given, and never
raise on a state and an action that decoded. They do not judge either: an action whose target is
missing or in the wrong state returns the same state object (R-5.24), and everything that must be
refused is refused before (R-5.27).
"""

# Not `from __future__ import annotations`: that name is a module here.
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias, TypeVar

from ahpd.protocol.actions import StateAction
from ahpd.protocol.annotations import AnnotationsState
from ahpd.protocol.automation import AutomationRunState, AutomationState
from ahpd.protocol.canvas import CanvasState
from ahpd.protocol.changeset import ChangesetState
from ahpd.protocol.chat import ChatState
from ahpd.protocol.codec import DecodeError, decoder
from ahpd.protocol.model import JSON, WireType
from ahpd.protocol.resources import ResourceWatchState
from ahpd.protocol.root import RootState
from ahpd.protocol.session import SessionState
from ahpd.protocol.terminal import TerminalState
from ahpd.protocol.uris import ChannelKind
from ahpd.reducers import (
    annotations,
    automation,
    automation_run,
    canvas,
    changeset,
    chat,
    resource_watch,
    root,
    session,
    terminal,
)

#: The state of any channel that has one.
ChannelState: TypeAlias = (
    RootState
    | SessionState
    | ChatState
    | TerminalState
    | ChangesetState
    | AnnotationsState
    | ResourceWatchState
    | AutomationState
    | AutomationRunState
    | CanvasState
)

AnyState = TypeVar("AnyState", bound=ChannelState)

#: The class of each channel's state.
STATES: Mapping[ChannelKind, WireType] = {
    "root": RootState,
    "session": SessionState,
    "chat": ChatState,
    "terminal": TerminalState,
    "changeset": ChangesetState,
    "annotations": AnnotationsState,
    "resourceWatch": ResourceWatchState,
    "automation": AutomationState,
    "automationRun": AutomationRunState,
    "canvas": CanvasState,
}

#: The reducer of each channel.
REDUCERS: Mapping[ChannelKind, Callable[[Any, StateAction], Any]] = {
    "root": root.reduce,
    "session": session.reduce,
    "chat": chat.reduce,
    "terminal": terminal.reduce,
    "changeset": changeset.reduce,
    "annotations": annotations.reduce,
    "resourceWatch": resource_watch.reduce,
    "automation": automation.reduce,
    "automationRun": automation_run.reduce,
    "canvas": canvas.reduce,
}


def apply(kind: ChannelKind, state: AnyState, action: StateAction) -> AnyState:
    """The state of a channel after `action`.

    It is the very object `state` when the action changes nothing, is not known here, or belongs
    to a channel of another kind.
    """
    return REDUCERS[kind](state, action)  # type: ignore[no-any-return]


def reduce(channel_kind: ChannelKind, state: JSON, action: JSON) -> JSON:
    """As `apply`, on plain JSON values.

    Raises `KeyError` for a kind of channel that there is not, and `ahpd.protocol.DecodeError`
    when the state or the action is malformed. Neither argument is changed; the result may share
    parts with both.
    """
    before: Any = decoder(STATES[channel_kind])(state)
    after = apply(channel_kind, before, decoder(StateAction)(action))
    return state if after is before else after.wire()


__all__ = ["REDUCERS", "STATES", "ChannelState", "DecodeError", "apply", "reduce"]
