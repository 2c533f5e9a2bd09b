"""Rows and summaries, computed from states: the one place that says how (R-7.20).

A chat's row in its session, the session's summary in lists, and what waits for people are each a
pure function of a state. Actors compare what it gives now with what was last said, and say the
difference; a message about a change that got lost in a crash is made up for by the next look.
"""

from __future__ import annotations

from typing import Any

from actors.clock import from_iso
from actors.edits import total
from ahpd.protocol.annotations import AnnotationsState, AnnotationsSummary
from ahpd.protocol.chat import (
    ChatState,
    ChatSummary,
    InputRequestResponsePart,
    PartialChatSummary,
    ToolCallResponsePart,
    ToolChatOrigin,
)
from ahpd.protocol.common import ChangesSummary
from ahpd.protocol.session import (
    PartialSessionSummary,
    SessionChatInputRequest,
    SessionChatSummary,
    SessionInputRequest,
    SessionState,
    SessionSummary,
    SessionToolAuthenticationRequest,
    SessionToolClientExecutionRequest,
    SessionToolConfirmationRequest,
)
from ahpd.protocol.tools import (
    ToolCallAuthRequiredState,
    ToolCallClientContributor,
    ToolCallPendingConfirmationState,
    ToolCallPendingResultConfirmationState,
    ToolCallRunningState,
)
from ahpd.protocol.uris import URI, annotations_of
from ahpd.reducers.status import ACTIVITY, ERROR, IDLE, INPUT_NEEDED, set_activity

#: Fields of a summary that never change, and so are never in a partial (R-7.15).
_FIXED = frozenset({"resource", "provider", "created_at"})


def is_worker(chat: ChatState | ChatSummary) -> bool:
    """Whether a tool call started this chat: then the actor of another one serves it."""
    return isinstance(chat.origin, ToolChatOrigin)


def chat_row(chat: ChatState, title: str, changes: ChangesSummary | None) -> ChatSummary:
    """A chat's row.

    The title and the counts of `changes` are its session's to keep: no chat action carries them
    (R-24.30).
    """
    return ChatSummary(
        resource=chat.resource,
        title=title,
        status=chat.status,
        activity=chat.activity,
        modified_at=chat.modified_at,
        changes=changes,
        origin=chat.origin,
        movable=chat.movable,
        interactivity=chat.interactivity,
        working_directories=chat.working_directories,
    )


def row_changes(before: ChatSummary, after: ChatSummary) -> PartialChatSummary | None:
    """The fields of a row that moved; None when none did.

    A field that went away is sent empty: a partial cannot say that there is none any more, and the
    strict type allows no null.
    """
    changes = _changes(before, after)
    return PartialChatSummary(**changes) if changes else None


def summary_changes(before: SessionSummary, after: SessionSummary) -> PartialSessionSummary | None:
    """The fields of a summary that moved; None when none did."""
    changes = _changes(before, after)
    return PartialSessionSummary(**changes) if changes else None


def _changes(before: Any, after: Any) -> dict[str, Any]:
    changes = {}
    for name in type(after).wire_names:
        old, new = getattr(before, name), getattr(after, name)
        if new is None:
            new = _gone(name, old)
        if name not in _FIXED and new is not None and old != new and (old or new):
            changes[name] = new
    return changes


def _gone(name: str, old: Any) -> Any:
    """What a field that went away is sent as."""
    if isinstance(old, AnnotationsSummary):
        return old.evolve(annotation_count=0, entry_count=0)
    if isinstance(old, ChangesSummary):
        return old.evolve(additions=0, deletions=0, files=0)
    return _EMPTY.get(name)


_EMPTY: dict[str, Any] = {"activity": "", "working_directories": (), "chats": ()}


def session_summary(
    uri: URI, session: SessionState, created_at: str, annotations: AnnotationsState | None = None
) -> SessionSummary:
    """A session's summary, with its chats' rows and its aggregated status (R-7.37 to R-7.41)."""
    leading = _leading(session)
    times = [created_at, *(row.modified_at for row in session.chats)]
    return SessionSummary(
        resource=uri,
        provider=session.provider,
        title=session.title,
        status=set_activity(session.status, _activity(session, leading)),
        activity=leading.activity if leading is not None else session.activity,
        origin=session.origin,
        project=session.project,
        working_directories=session.working_directories,
        annotations=_counts(uri, annotations),
        created_at=created_at,
        modified_at=max(times, key=moment),
        changes=total(row.changes for row in session.chats),
        chats=tuple(_compact(row) for row in session.chats),
        default_chat=session.default_chat,
    )


def moment(time: str) -> float:
    """For comparing times: a client may have written one, with any offset."""
    return from_iso(time) or 0.0


def _counts(session: URI, state: AnnotationsState | None) -> AnnotationsSummary | None:
    """How many annotations there are; left out when there are none (R-3.8, R-16.11)."""
    if state is None or not state.annotations:
        return None
    return AnnotationsSummary(
        resource=annotations_of(session),
        annotation_count=len(state.annotations),
        entry_count=sum(len(each.entries) for each in state.annotations),
    )


def older_summary(summary: Any) -> Any:
    """As a 0.9 client is told it: without the compact chats (R-2.14). None: nothing is left."""
    older = summary.evolve(chats=None, default_chat=None)
    return older if older.wire() else None


def _leading(session: SessionState) -> ChatSummary | None:
    """The chat that speaks for the session: the default one, else the latest (R-7.37)."""
    for row in session.chats:
        if row.resource == session.default_chat:
            return row
    return max(session.chats, key=lambda row: moment(row.modified_at), default=None)


def _activity(session: SessionState, leading: ChatSummary | None) -> int:
    """R-7.38; a question somebody can answer outranks an error."""
    activities = [int(row.status) & ACTIVITY for row in session.chats]
    if INPUT_NEEDED in activities:
        return INPUT_NEEDED
    if ERROR in activities or session.lifecycle == "failed":
        return ERROR
    return int(leading.status) & ACTIVITY if leading is not None else IDLE


def _compact(row: ChatSummary) -> SessionChatSummary:
    return SessionChatSummary(
        resource=row.resource,
        title=row.title,
        origin=row.origin,
        interactivity=row.interactivity,
        status=row.status,
        changes=row.changes,
    )


def input_needed(chat: ChatState) -> dict[str, SessionInputRequest]:
    """What of a chat waits for somebody, by the id of its entry in the session (R-11.16).

    The ids are made from the chat and from what waits, so that the same wait has the same entry
    whoever looks, and no two waits share one.
    """
    turn = chat.active_turn
    if turn is None:
        return {}
    found: dict[str, SessionInputRequest] = {}
    for part in turn.response_parts:
        match part:
            case InputRequestResponsePart(response=None):
                key = f"{chat.resource}#{turn.id}/request/{part.request.id}"
                found[key] = SessionChatInputRequest(
                    id=key, chat=chat.resource, request=part.request
                )
            case ToolCallResponsePart():
                key = f"{chat.resource}#{turn.id}/call/"
                entry = _call_entry(key, chat.resource, turn.id, part.tool_call)
                if entry is not None:
                    found[entry.id] = entry
            case _:
                pass
    return found


def _call_entry(prefix: str, chat: URI, turn_id: str, call: Any) -> Any:
    key = prefix + call.tool_call_id
    match call:
        case ToolCallPendingConfirmationState() | ToolCallPendingResultConfirmationState():
            return SessionToolConfirmationRequest(
                id=key, chat=chat, turn_id=turn_id, tool_call=call
            )
        case ToolCallAuthRequiredState():
            return SessionToolAuthenticationRequest(
                id=key, chat=chat, turn_id=turn_id, tool_call=call
            )
        case ToolCallRunningState(contributor=ToolCallClientContributor() as owner):
            return SessionToolClientExecutionRequest(
                id=key, chat=chat, turn_id=turn_id, client_id=owner.client_id, tool_call=call
            )
        case _:
            return None
