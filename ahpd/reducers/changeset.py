"""The changeset channel (RULES 15)."""

from __future__ import annotations

from ahpd.protocol.actions import StateAction
from ahpd.protocol.changeset import (
    ChangesetClearedAction,
    ChangesetContentChangedAction,
    ChangesetFile,
    ChangesetFileRemovedAction,
    ChangesetFileSetAction,
    ChangesetFilesReviewChangedAction,
    ChangesetOperationsChangedAction,
    ChangesetOperationStatusChangedAction,
    ChangesetState,
    ChangesetStatusChangedAction,
)
from ahpd.reducers.change import Handlers, changed, dispatch, place_of, put, with_item, without


def _status(changeset: ChangesetState, action: ChangesetStatusChangedAction) -> ChangesetState:
    """An error stays only with the status that has one (R-15.11)."""
    error = action.error if action.status == "error" else None
    return changed(changeset, status=action.status, error=error)


def _content(changeset: ChangesetState, action: ChangesetContentChangedAction) -> ChangesetState:
    """The files, and the operations if they are given; status and error stay (R-15.13)."""
    operations = changeset.operations if action.operations is None else action.operations
    return changed(changeset, files=action.files, operations=operations)


def _file_set(changeset: ChangesetState, action: ChangesetFileSetAction) -> ChangesetState:
    return changed(changeset, files=put(changeset.files, action.file))


def _file_removed(changeset: ChangesetState, action: ChangesetFileRemovedAction) -> ChangesetState:
    return changed(changeset, files=without(changeset.files, action.file_id))


def _cleared(changeset: ChangesetState, _: ChangesetClearedAction) -> ChangesetState:
    return changed(changeset, files=())


def _review(changeset: ChangesetState, action: ChangesetFilesReviewChangedAction) -> ChangesetState:
    """Marks the listed files that are there (R-15.17)."""
    wanted = frozenset(action.files)

    def marked(file: ChangesetFile) -> ChangesetFile:
        return changed(file, reviewed=action.reviewed) if file.id in wanted else file

    return changed(changeset, files=tuple(marked(file) for file in changeset.files))


def _operations(
    changeset: ChangesetState, action: ChangesetOperationsChangedAction
) -> ChangesetState:
    return changed(changeset, operations=action.operations)


def _operation_status(
    changeset: ChangesetState, action: ChangesetOperationStatusChangedAction
) -> ChangesetState:
    """An error stays only with the status that has one (R-15.22)."""
    operations = changeset.operations or ()
    place = place_of(operations, action.operation_id)
    if place < 0:
        return changeset
    error = action.error if action.status == "error" else None
    new = operations[place].evolve(status=action.status, error=error)
    return changed(changeset, operations=with_item(operations, place, new))


HANDLERS: Handlers[ChangesetState] = {
    ChangesetClearedAction: _cleared,
    ChangesetContentChangedAction: _content,
    ChangesetFileRemovedAction: _file_removed,
    ChangesetFileSetAction: _file_set,
    ChangesetFilesReviewChangedAction: _review,
    ChangesetOperationStatusChangedAction: _operation_status,
    ChangesetOperationsChangedAction: _operations,
    ChangesetStatusChangedAction: _status,
}


def reduce(state: ChangesetState, action: StateAction) -> ChangesetState:
    """The changeset after `action`; the same object when it changes nothing."""
    return dispatch(HANDLERS, state, action)
