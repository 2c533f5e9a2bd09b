"""The annotations channel of a session (RULES 16)."""

from __future__ import annotations

from ahpd.protocol.actions import StateAction
from ahpd.protocol.annotations import (
    Annotation,
    AnnotationsEntryRemovedAction,
    AnnotationsEntrySetAction,
    AnnotationsRemovedAction,
    AnnotationsSetAction,
    AnnotationsState,
    AnnotationsUpdatedAction,
)
from ahpd.reducers.change import Handlers, changed, dispatch, place_of, put, with_item, without


def _set(state: AnnotationsState, action: AnnotationsSetAction) -> AnnotationsState:
    return changed(state, annotations=put(state.annotations, action.annotation))


def _removed(state: AnnotationsState, action: AnnotationsRemovedAction) -> AnnotationsState:
    return changed(state, annotations=without(state.annotations, action.annotation_id))


def _updated(state: AnnotationsState, action: AnnotationsUpdatedAction) -> AnnotationsState:
    """Only what is given, and never entries, so a range cannot be taken away (R-16.3)."""
    given = {
        name: value
        for name in ("origin", "resource", "range", "resolved")
        if (value := getattr(action, name)) is not None
    }
    old = _find(state, action.annotation_id)
    return state if old is None else _with(state, old.evolve(**given))


def _entry_set(state: AnnotationsState, action: AnnotationsEntrySetAction) -> AnnotationsState:
    old = _find(state, action.annotation_id)
    if old is None:
        return state
    return _with(state, old.evolve(entries=put(old.entries, action.entry)))


def _entry_removed(
    state: AnnotationsState, action: AnnotationsEntryRemovedAction
) -> AnnotationsState:
    """Also of the last entry: that this must not happen is checked before (R-16.5)."""
    old = _find(state, action.annotation_id)
    if old is None:
        return state
    return _with(state, old.evolve(entries=without(old.entries, action.entry_id)))


def _find(state: AnnotationsState, wanted: str) -> Annotation | None:
    place = place_of(state.annotations, wanted)
    return state.annotations[place] if place >= 0 else None


def _with(state: AnnotationsState, annotation: Annotation) -> AnnotationsState:
    place = place_of(state.annotations, annotation.id)
    return changed(state, annotations=with_item(state.annotations, place, annotation))


HANDLERS: Handlers[AnnotationsState] = {
    AnnotationsEntryRemovedAction: _entry_removed,
    AnnotationsEntrySetAction: _entry_set,
    AnnotationsRemovedAction: _removed,
    AnnotationsSetAction: _set,
    AnnotationsUpdatedAction: _updated,
}


def reduce(state: AnnotationsState, action: StateAction) -> AnnotationsState:
    """The annotations after `action`; the same object when it changes nothing."""
    return dispatch(HANDLERS, state, action)
