"""The turns of a chat: start, stream, end, resume, truncate, load (RULES 9)."""

from __future__ import annotations

from collections.abc import Iterator

from ahpd.protocol.chat import (
    ActiveTurn,
    ChatState,
    ErrorResponsePart,
    MarkdownResponsePart,
    ReasoningResponsePart,
    ResponseParts,
    Turn,
    Turns,
    TurnState,
)
from ahpd.protocol.chat_actions import (
    ChatDeltaAction,
    ChatErrorAction,
    ChatReasoningAction,
    ChatResponsePartAction,
    ChatTruncatedAction,
    ChatTurnCancelledAction,
    ChatTurnCompleteAction,
    ChatTurnResumeAction,
    ChatTurnsLoadedAction,
    ChatTurnStartedAction,
    ChatUsageAction,
)
from ahpd.protocol.persistent import append_text
from ahpd.reducers.change import Handlers, changed, without
from ahpd.reducers.status import ERROR, IDLE, IN_PROGRESS, READ, set_activity, set_flag
from ahpd.reducers.times import after
from ahpd.reducers.tool_calls import skipped


def _started(chat: ChatState, action: ChatTurnStartedAction) -> ChatState:
    """Opens a turn, over one that may run (R-5.27), and takes its pending message (R-9.81)."""
    steering, queued = chat.steering_message, chat.queued_messages
    taken = action.queued_message_id
    if taken is not None:
        if steering is not None and steering.id == taken:
            steering = None
        if queued is not None:
            queued = without(queued, taken) or None
    return changed(
        chat,
        active_turn=ActiveTurn(
            id=action.turn_id,
            started_at=action.started_at,
            message=action.message,
            response_parts=ResponseParts(),
        ),
        steering_message=steering,
        queued_messages=queued,
        status=set_flag(set_activity(chat.status, IN_PROGRESS), READ, False),
    )


def _delta(chat: ChatState, action: ChatDeltaAction) -> ChatState:
    return _append(chat, action, MarkdownResponsePart)


def _reasoning(chat: ChatState, action: ChatReasoningAction) -> ChatState:
    return _append(chat, action, ReasoningResponsePart)


def _append(
    chat: ChatState,
    action: ChatDeltaAction | ChatReasoningAction,
    kind: type[MarkdownResponsePart] | type[ReasoningResponsePart],
) -> ChatState:
    """Text for the first part with the id, if that is of the right kind (R-9.46, R-9.47).

    The one path that runs for every token: nothing here looks at other parts or turns.
    """
    turn = chat.active_turn
    if turn is None or turn.id != action.turn_id or not action.content:
        return chat
    parts = turn.response_parts
    place = parts.index_of(action.part_id)
    if place < 0:
        return chat
    part = parts[place]
    if not isinstance(part, kind):
        return chat
    part = part.evolve(content=append_text(part.content, action.content))
    return chat.evolve(active_turn=turn.evolve(response_parts=parts.set(place, part)))


def _part(chat: ChatState, action: ChatResponsePartAction) -> ChatState:
    """A new part; an error comes only with `chat/error` (R-9.48)."""
    turn = chat.active_turn
    if turn is None or turn.id != action.turn_id or isinstance(action.part, ErrorResponsePart):
        return chat
    parts = turn.response_parts.append(action.part)
    return chat.evolve(active_turn=turn.evolve(response_parts=parts))


def _usage(chat: ChatState, action: ChatUsageAction) -> ChatState:
    turn = chat.active_turn
    if turn is None or turn.id != action.turn_id:
        return chat
    new = changed(turn, usage=action.usage)
    return chat if new is turn else chat.evolve(active_turn=new)


def _completed(chat: ChatState, action: ChatTurnCompleteAction) -> ChatState:
    return _end(chat, action, "complete", IDLE)


def _cancelled(chat: ChatState, action: ChatTurnCancelledAction) -> ChatState:
    return _end(chat, action, "cancelled", IDLE)


def _failed(chat: ChatState, action: ChatErrorAction) -> ChatState:
    return _end(chat, action, "error", ERROR, action.part)


def _end(
    chat: ChatState,
    action: ChatTurnCompleteAction | ChatTurnCancelledAction | ChatErrorAction,
    state: TurnState,
    activity: int,
    error: ErrorResponsePart | None = None,
) -> ChatState:
    """Moves the turn to the ended ones, with open calls skipped and the error last (R-9.57).

    The chat was modified when the turn ended (R-9.58); where its start cannot be read, the old
    time stays.
    """
    turn = chat.active_turn
    if turn is None or turn.id != action.turn_id:
        return chat
    duration = max(0, action.duration)
    parts = skipped(turn.response_parts)
    ended = Turn(
        id=turn.id,
        started_at=turn.started_at,
        duration=duration,
        message=turn.message,
        response_parts=parts if error is None else parts.append(error),
        usage=turn.usage,
        state=state,
    )
    return chat.evolve(
        turns=chat.turns.append(ended),
        active_turn=None,
        status=set_activity(chat.status, activity),
        modified_at=after(turn.started_at, duration) or chat.modified_at,
    )


def _resumed(chat: ChatState, action: ChatTurnResumeAction) -> ChatState:
    """Opens the last turn again when it failed in a way that allows it (R-9.63, R-9.64).

    A turn without a start time cannot run, since its end could not be told.
    """
    if chat.active_turn is not None or not chat.turns:
        return chat
    turn = chat.turns[-1]
    if turn.id != action.turn_id or turn.state != "error" or turn.started_at is None:
        return chat
    last = next(_errors(turn), None)
    if last is None or not last.resumable:
        return chat
    return chat.evolve(
        turns=Turns(chat.turns[:-1]),
        active_turn=ActiveTurn(
            id=turn.id,
            started_at=turn.started_at,
            message=turn.message,
            response_parts=turn.response_parts,
            usage=turn.usage,
        ),
        status=set_activity(chat.status, IN_PROGRESS),
    )


def _errors(turn: Turn) -> Iterator[ErrorResponsePart]:
    """The error parts of a turn, the last first."""
    parts = turn.response_parts
    for place in range(len(parts) - 1, -1, -1):
        part = parts[place]
        if isinstance(part, ErrorResponsePart):
            yield part


def _truncated(chat: ChatState, action: ChatTruncatedAction) -> ChatState:
    """Keeps turns up to one, or none; a running turn is dropped (R-9.67, R-9.68)."""
    turns, cursor = chat.turns, chat.turns_next_cursor
    if action.turn_id is None:
        turns, cursor = Turns(), None
    else:
        place = turns.index_of(action.turn_id)
        if place < 0:
            return chat
        if place < len(turns) - 1:
            turns = Turns(turns[: place + 1])
    return changed(
        chat,
        turns=turns,
        turns_next_cursor=cursor,
        active_turn=None,
        status=set_activity(chat.status, IDLE),
    )


def _loaded(chat: ChatState, action: ChatTurnsLoadedAction) -> ChatState:
    """Older turns in front, but for those already there (R-9.73)."""
    older = [turn for turn in action.turns if chat.turns.index_of(turn.id) < 0]
    turns = Turns([*older, *chat.turns]) if older else chat.turns
    return changed(chat, turns=turns, turns_next_cursor=action.turns_next_cursor)


HANDLERS: Handlers[ChatState] = {
    ChatTurnStartedAction: _started,
    ChatDeltaAction: _delta,
    ChatReasoningAction: _reasoning,
    ChatResponsePartAction: _part,
    ChatUsageAction: _usage,
    ChatTurnCompleteAction: _completed,
    ChatTurnCancelledAction: _cancelled,
    ChatErrorAction: _failed,
    ChatTurnResumeAction: _resumed,
    ChatTruncatedAction: _truncated,
    ChatTurnsLoadedAction: _loaded,
}
