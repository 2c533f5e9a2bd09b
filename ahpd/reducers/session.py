"""The session channel (RULES 8, 11.16 to 11.22)."""

from __future__ import annotations

from typing import Any

from ahpd.protocol.actions import StateAction
from ahpd.protocol.chat import ChatSummary, PartialChatSummary
from ahpd.protocol.session import (
    SessionActiveClient,
    SessionInputRequest,
    SessionState,
    SessionToolClientExecutionRequest,
)
from ahpd.protocol.session_actions import (
    SessionActiveClientRemovedAction,
    SessionActiveClientSetAction,
    SessionActivityChangedAction,
    SessionChangesetsChangedAction,
    SessionChatAddedAction,
    SessionChatRemovedAction,
    SessionChatsReorderedAction,
    SessionChatUpdatedAction,
    SessionConfigChangedAction,
    SessionCreationFailedAction,
    SessionDefaultChatChangedAction,
    SessionInputNeededRemovedAction,
    SessionInputNeededSetAction,
    SessionIsArchivedChangedAction,
    SessionIsReadChangedAction,
    SessionMetaChangedAction,
    SessionReadyAction,
    SessionServerToolsChangedAction,
    SessionTitleChangedAction,
    SessionWorkingDirectoryRemovedAction,
    SessionWorkingDirectoryReplacedAction,
    SessionWorkingDirectorySetAction,
)
from ahpd.reducers import customizations
from ahpd.reducers.change import (
    Handlers,
    changed,
    dispatch,
    place_of,
    put,
    resource_of,
    with_item,
    without,
)
from ahpd.reducers.config import merged
from ahpd.reducers.directories import with_directory, with_replaced, without_directory
from ahpd.reducers.status import ARCHIVED, INPUT_NEEDED, READ, WAITS, set_activity, set_flag


def _ready(session: SessionState, _: SessionReadyAction) -> SessionState:
    """Only the lifecycle: a first turn may run already (R-8.16)."""
    return changed(session, lifecycle="ready")


def _creation_failed(session: SessionState, action: SessionCreationFailedAction) -> SessionState:
    return changed(session, lifecycle="failed", creation_error=action.error)


def _title(session: SessionState, action: SessionTitleChangedAction) -> SessionState:
    return changed(session, title=action.title)


def _activity(session: SessionState, action: SessionActivityChangedAction) -> SessionState:
    return changed(session, activity=action.activity)


def _is_read(session: SessionState, action: SessionIsReadChangedAction) -> SessionState:
    return changed(session, status=set_flag(session.status, READ, action.is_read))


def _is_archived(session: SessionState, action: SessionIsArchivedChangedAction) -> SessionState:
    return changed(session, status=set_flag(session.status, ARCHIVED, action.is_archived))


def _changesets(session: SessionState, action: SessionChangesetsChangedAction) -> SessionState:
    return changed(session, changesets=action.changesets)


def _meta(session: SessionState, action: SessionMetaChangedAction) -> SessionState:
    return changed(session, meta=action.meta)


def _server_tools(session: SessionState, action: SessionServerToolsChangedAction) -> SessionState:
    return changed(session, server_tools=action.tools)


def _config(session: SessionState, action: SessionConfigChangedAction) -> SessionState:
    """Merged or replaced; nothing to change without a configuration (R-8.41)."""
    if session.config is None:
        return session
    values = merged(session.config.values, action.config, replace=action.replace)
    config = changed(session.config, values=values)
    return session if config is session.config else session.evolve(config=config)


# --- Chats


def _chat_added(session: SessionState, action: SessionChatAddedAction) -> SessionState:
    return changed(session, chats=put(session.chats, action.summary, resource_of))


def _chat_removed(session: SessionState, action: SessionChatRemovedAction) -> SessionState:
    """Drops the row, and the hint that named it (R-8.28)."""
    chats = without(session.chats, action.chat, resource_of)
    if chats is session.chats:
        return session
    default = None if session.default_chat == action.chat else session.default_chat
    return session.evolve(chats=chats, default_chat=default)


def _chat_updated(session: SessionState, action: SessionChatUpdatedAction) -> SessionState:
    place = place_of(session.chats, action.chat, resource_of)
    if place < 0:
        return session
    row = _updated_row(session.chats[place], action.changes)
    return changed(session, chats=with_item(session.chats, place, row))


#: Fields that a row must have, which a null therefore cannot clear, and the one that stays.
_KEPT = frozenset(ChatSummary.wire_names) - frozenset(ChatSummary.wire_defaults)


def _updated_row(row: ChatSummary, changes: PartialChatSummary) -> ChatSummary:
    """Merges what is given; a null clears, as in any merge of two objects (R-8.29, R-1.38)."""
    fields: dict[str, Any] = {}
    for name in ChatSummary.wire_names:
        value = getattr(changes, name)
        if name != "resource" and (
            value is not None or (name not in _KEPT and changes.is_null(name))
        ):
            fields[name] = value
    declared = ChatSummary.wire_names.values()
    undeclared = {key: value for key, value in changes.extra.items() if key not in declared}
    if undeclared:
        fields["extra"] = {**row.extra, **undeclared}
    return row.evolve(**fields)


def _chats_reordered(session: SessionState, action: SessionChatsReorderedAction) -> SessionState:
    """Applied only when it names every chat exactly once (R-8.30)."""
    by_uri = {chat.resource: chat for chat in session.chats}
    complete = len(action.chats) == len(session.chats) and set(action.chats) == by_uri.keys()
    if not complete:
        return session
    return changed(session, chats=tuple(by_uri[uri] for uri in action.chats))


def _default_chat(session: SessionState, action: SessionDefaultChatChangedAction) -> SessionState:
    return changed(session, default_chat=action.default_chat)


# --- Clients


def _client_id(client: SessionActiveClient) -> object:
    return client.client_id


def _client_set(session: SessionState, action: SessionActiveClientSetAction) -> SessionState:
    clients = put(session.active_clients, action.active_client, _client_id)
    return changed(session, active_clients=clients)


def _client_removed(
    session: SessionState, action: SessionActiveClientRemovedAction
) -> SessionState:
    clients = without(session.active_clients, action.client_id, _client_id)
    return changed(session, active_clients=clients)


# --- Working directories


def _directory_set(session: SessionState, action: SessionWorkingDirectorySetAction) -> SessionState:
    directories = with_directory(session.working_directories, action.directory)
    return changed(session, working_directories=directories)


def _directory_removed(
    session: SessionState, action: SessionWorkingDirectoryRemovedAction
) -> SessionState:
    directories = without_directory(session.working_directories, action.directory)
    return changed(session, working_directories=directories)


def _directory_replaced(
    session: SessionState, action: SessionWorkingDirectoryReplacedAction
) -> SessionState:
    directories = with_replaced(session.working_directories, action.directory, action.replacement)
    return changed(session, working_directories=directories)


# --- What waits for somebody


def _input_needed_set(session: SessionState, action: SessionInputNeededSetAction) -> SessionState:
    return _with_input_needed(session, put(session.input_needed, action.request))


def _input_needed_removed(
    session: SessionState, action: SessionInputNeededRemovedAction
) -> SessionState:
    entries = session.input_needed or ()
    left = without(entries, action.id)
    return session if left is entries else _with_input_needed(session, left)


def _with_input_needed(
    session: SessionState, entries: tuple[SessionInputRequest, ...]
) -> SessionState:
    """The list, left out when empty, and the bit that goes with it (R-11.18, R-11.21, R-11.22).

    Clearing takes one bit only: the session falls back to InProgress even if no turn runs, and
    no other action can tell otherwise (R-7.45).
    """
    if any(not isinstance(each, SessionToolClientExecutionRequest) for each in entries):
        status = set_activity(session.status, INPUT_NEEDED)
    else:
        status = set_flag(session.status, WAITS, False)
    return changed(session, input_needed=entries or None, status=status)


HANDLERS: Handlers[SessionState] = {
    **customizations.HANDLERS,
    SessionActiveClientRemovedAction: _client_removed,
    SessionActiveClientSetAction: _client_set,
    SessionActivityChangedAction: _activity,
    SessionChangesetsChangedAction: _changesets,
    SessionChatAddedAction: _chat_added,
    SessionChatRemovedAction: _chat_removed,
    SessionChatUpdatedAction: _chat_updated,
    SessionChatsReorderedAction: _chats_reordered,
    SessionConfigChangedAction: _config,
    SessionCreationFailedAction: _creation_failed,
    SessionDefaultChatChangedAction: _default_chat,
    SessionInputNeededRemovedAction: _input_needed_removed,
    SessionInputNeededSetAction: _input_needed_set,
    SessionIsArchivedChangedAction: _is_archived,
    SessionIsReadChangedAction: _is_read,
    SessionMetaChangedAction: _meta,
    SessionReadyAction: _ready,
    SessionServerToolsChangedAction: _server_tools,
    SessionTitleChangedAction: _title,
    SessionWorkingDirectoryRemovedAction: _directory_removed,
    SessionWorkingDirectoryReplacedAction: _directory_replaced,
    SessionWorkingDirectorySetAction: _directory_set,
}


def reduce(state: SessionState, action: StateAction) -> SessionState:
    """The session after `action`; the same object when it changes nothing."""
    return dispatch(HANDLERS, state, action)
