"""What the resend rules look up in states. Pure.

Each function with the arguments ``(state, action)`` gives what is there now of that which the
action would set.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

from ahpd.protocol.chat import ChatState, input_request_key, tool_call_key
from ahpd.protocol.messages import PendingMessage
from ahpd.protocol.tools import ToolCallClientContributor, ToolCallRunningState
from ahpd.reducers.status import ARCHIVED, READ


def has_turn(chat: ChatState, turn_id: str) -> bool:
    """Whether a turn with this id runs or has ended."""
    active = chat.active_turn
    return (active is not None and active.id == turn_id) or chat.turns.index_of(turn_id) >= 0


def shows_all_since(chat: ChatState, basis: ChatState) -> bool:
    """Whether every turn that ended after `basis` is loaded, older ones or not (R-4.29)."""
    if chat.turns_next_cursor is None:
        return True
    return bool(basis.turns) and chat.turns.index_of(basis.turns[-1].id) >= 0


def queued(chat: ChatState, message_id: str) -> PendingMessage | None:
    """The queued message with this id."""
    return next((each for each in chat.queued_messages or () if each.id == message_id), None)


def queue_ids(chat: ChatState, _: Any) -> tuple[str, ...]:
    """The ids of the queue, in order."""
    return tuple(each.id for each in chat.queued_messages or ())


def runs_for(chat: ChatState, tool_call_id: str, client_id: str) -> bool:
    """Whether a tool call of the running turn runs at this client."""
    part = _part(chat, tool_call_key(tool_call_id))
    call = None if part is None else part.tool_call
    return (
        isinstance(call, ToolCallRunningState)
        and isinstance(call.contributor, ToolCallClientContributor)
        and call.contributor.client_id == client_id
    )


def draft_answer(chat: ChatState, action: Any) -> Any:
    """The answer so far to one question of a request."""
    part = _part(chat, input_request_key(action.request_id))
    return None if part is None else (part.request.answers or {}).get(action.question_id)


def read_bit(state: Any, _: Any) -> int:
    """The read flag of a chat or session."""
    return int(state.status) & READ


def archived_bit(state: Any, _: Any) -> int:
    """The archived flag of a chat or session."""
    return int(state.status) & ARCHIVED


def config_values(state: Any, action: Any) -> Any:
    """The values that a configuration change lays over; all of them when it replaces."""
    if state.config is None:
        return None
    values = state.config.values
    return values if action.replace else {key: values.get(key) for key in action.config}


def config_target(action: Any) -> Hashable:
    """The keys that a configuration change sets."""
    return bool(action.replace), tuple(sorted(action.config))


def enablement(session: Any, action: Any) -> Any:
    """What is decided for one entry: a list for plugins and servers, its outcome for others."""
    entry = _find_entry(session.customizations, action.id)
    return getattr(entry, "enablement", None), getattr(entry, "enabled", None)


def review_marks(changeset: Any, action: Any) -> Any:
    """The review marks of the files named."""
    wanted = set(action.files)
    return {each.id: each.reviewed for each in changeset.files if each.id in wanted}


def directories(state: Any, _: Any) -> Any:
    """The working directories."""
    return state.working_directories


def annotation(state: Any, action: Any) -> Any:
    """The annotation that is set or updated."""
    wanted = action.annotation.id if hasattr(action, "annotation") else action.annotation_id
    return _by_id(state.annotations, wanted)


def annotation_target(action: Any) -> Hashable:
    """The properties of an annotation that an update sets."""
    given = (action.origin, action.resource, action.range, action.resolved)
    return action.annotation_id, tuple(each is not None for each in given)


def annotation_entry(state: Any, action: Any) -> Any:
    """One entry of an annotation."""
    found = _by_id(state.annotations, action.annotation_id)
    return None if found is None else _by_id(found.entries, action.entry.id)


def _by_id(items: Any, wanted: str) -> Any:
    return next((each for each in items or () if each.id == wanted), None)


def _part(chat: ChatState, key: Hashable) -> Any:
    if chat.active_turn is None:
        return None
    place = chat.active_turn.response_parts.index_of(key)
    return None if place < 0 else chat.active_turn.response_parts[place]


def _find_entry(entries: Any, wanted: str) -> Any:
    """An entry by id, or one of its children."""
    for each in entries or ():
        if getattr(each, "id", None) == wanted:
            return each
        found = _find_entry(getattr(each, "children", None), wanted)
        if found is not None:
            return found
    return None
