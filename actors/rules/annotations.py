"""Rules for what clients dispatch to a session's annotations (RULES 16)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ahpd.protocol import annotations as act
from ahpd.protocol.actions import StateAction
from ahpd.protocol.annotations import Annotation, AnnotationsState


def _find(state: AnnotationsState, wanted: str) -> Annotation | None:
    return next((each for each in state.annotations if each.id == wanted), None)


def _set(state: AnnotationsState, action: act.AnnotationsSetAction) -> str | None:
    annotation = action.annotation
    if not annotation.entries:
        return "an annotation has at least one entry"
    if annotation.resolved and _find(state, annotation.id) is None:
        return "a new annotation is not resolved yet"
    return None


def _known(state: AnnotationsState, action: Any) -> str | None:
    """R-16.7: the reducer would change nothing, and its sender go on with a mark nobody has."""
    if _find(state, action.annotation_id) is None:
        return f"there is no annotation {action.annotation_id}"
    return None


def _entry_removed(
    state: AnnotationsState, action: act.AnnotationsEntryRemovedAction
) -> str | None:
    annotation = _find(state, action.annotation_id)
    if annotation is None:
        return _known(state, action)
    left = [entry for entry in annotation.entries if entry.id != action.entry_id]
    if len(left) == len(annotation.entries):
        return f"the annotation has no entry {action.entry_id}"
    return None if left else "this is its last entry; remove the annotation instead"


#: Every action of the channel: clients may send them all (R-16.1).
RULES: Mapping[type, Callable[[AnnotationsState, Any], str | None]] = {
    act.AnnotationsSetAction: _set,
    act.AnnotationsUpdatedAction: _known,
    act.AnnotationsRemovedAction: _known,
    act.AnnotationsEntrySetAction: _known,
    act.AnnotationsEntryRemovedAction: _entry_removed,
}


def judge(state: AnnotationsState, action: StateAction) -> str | None:
    """Why this action is refused; None when it is not."""
    return RULES[type(action)](state, action)
