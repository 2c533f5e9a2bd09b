"""The chat channel (RULES 9 to 11): its own fields here, the rest in the modules it names."""

from __future__ import annotations

from ahpd.protocol.actions import StateAction
from ahpd.protocol.chat import ChatState
from ahpd.protocol.chat_actions import (
    ChatActivityChangedAction,
    ChatBackgroundWorkRemovedAction,
    ChatBackgroundWorkSetAction,
    ChatCanvasesChangedAction,
    ChatChangesetsChangedAction,
    ChatDraftChangedAction,
    ChatIsArchivedChangedAction,
    ChatIsReadChangedAction,
    ChatMovableChangedAction,
    ChatWorkingDirectoryRemovedAction,
    ChatWorkingDirectorySetAction,
)
from ahpd.reducers import input_requests, pending_messages, tool_calls, turns
from ahpd.reducers.change import Handlers, changed, dispatch, put, without
from ahpd.reducers.directories import with_directory, without_directory
from ahpd.reducers.status import ARCHIVED, READ, set_flag


def _activity(chat: ChatState, action: ChatActivityChangedAction) -> ChatState:
    return changed(chat, activity=action.activity)


def _draft(chat: ChatState, action: ChatDraftChangedAction) -> ChatState:
    return changed(chat, draft=action.draft)


def _movable(chat: ChatState, action: ChatMovableChangedAction) -> ChatState:
    return changed(chat, movable=action.movable)


def _is_read(chat: ChatState, action: ChatIsReadChangedAction) -> ChatState:
    return changed(chat, status=set_flag(chat.status, READ, action.is_read))


def _is_archived(chat: ChatState, action: ChatIsArchivedChangedAction) -> ChatState:
    return changed(chat, status=set_flag(chat.status, ARCHIVED, action.is_archived))


def _changesets(chat: ChatState, action: ChatChangesetsChangedAction) -> ChatState:
    return changed(chat, changesets=action.changesets)


def _canvases(chat: ChatState, action: ChatCanvasesChangedAction) -> ChatState:
    """Absent and empty both clear the list (R-21.1)."""
    return changed(chat, canvases=action.canvases or None)


def _work_set(chat: ChatState, action: ChatBackgroundWorkSetAction) -> ChatState:
    return changed(chat, background_work=put(chat.background_work, action.work))


def _work_removed(chat: ChatState, action: ChatBackgroundWorkRemovedAction) -> ChatState:
    """Work that is over; an empty list is left out (R-9.98)."""
    work = chat.background_work or ()
    left = without(work, action.id)
    return chat if left is work else chat.evolve(background_work=left or None)


def _directory_set(chat: ChatState, action: ChatWorkingDirectorySetAction) -> ChatState:
    directories = with_directory(chat.working_directories, action.directory)
    return changed(chat, working_directories=directories)


def _directory_removed(chat: ChatState, action: ChatWorkingDirectoryRemovedAction) -> ChatState:
    directories = without_directory(chat.working_directories, action.directory)
    return changed(chat, working_directories=directories)


HANDLERS: Handlers[ChatState] = {
    **turns.HANDLERS,
    **tool_calls.HANDLERS,
    **input_requests.HANDLERS,
    **pending_messages.HANDLERS,
    ChatActivityChangedAction: _activity,
    ChatBackgroundWorkRemovedAction: _work_removed,
    ChatBackgroundWorkSetAction: _work_set,
    ChatCanvasesChangedAction: _canvases,
    ChatChangesetsChangedAction: _changesets,
    ChatDraftChangedAction: _draft,
    ChatIsArchivedChangedAction: _is_archived,
    ChatIsReadChangedAction: _is_read,
    ChatMovableChangedAction: _movable,
    ChatWorkingDirectoryRemovedAction: _directory_removed,
    ChatWorkingDirectorySetAction: _directory_set,
}


def reduce(state: ChatState, action: StateAction) -> ChatState:
    """The chat after `action`; the same object when it changes nothing."""
    return dispatch(HANDLERS, state, action)
