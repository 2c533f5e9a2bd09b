"""Questions in the running turn, and the answers to them (R-11.1 to R-11.12)."""

from __future__ import annotations

from ahpd.protocol.chat import ChatState, InputRequestResponsePart, input_request_key
from ahpd.protocol.chat_actions import (
    ChatInputAnswerChangedAction,
    ChatInputCompletedAction,
    ChatInputRequestedAction,
)
from ahpd.reducers.change import Handlers, changed, same
from ahpd.reducers.status import READ, refreshed, set_flag


def _open(chat: ChatState, request_id: str) -> tuple[int, InputRequestResponsePart] | None:
    """The open request with this id and its place; answered ones may have the same id."""
    if chat.active_turn is None:
        return None
    parts = chat.active_turn.response_parts
    for place in parts.places_of(input_request_key(request_id)):
        part = parts[place]
        assert isinstance(part, InputRequestResponsePart)
        if part.response is None:
            return place, part
    return None


def _with_part(chat: ChatState, place: int | None, part: InputRequestResponsePart) -> ChatState:
    """The chat with a part of its turn replaced, or added at the end."""
    turn = chat.active_turn
    assert turn is not None
    parts = turn.response_parts
    parts = parts.append(part) if place is None else parts.set(place, part)
    return chat.evolve(active_turn=turn.evolve(response_parts=parts))


def _requested(chat: ChatState, action: ChatInputRequestedAction) -> ChatState:
    """Adds a request, or replaces the open one and keeps its drafts (R-11.2); unread (R-7.35)."""
    if chat.active_turn is None:
        return chat
    request = action.request
    found = _open(chat, request.id)
    if found is None:
        chat = _with_part(chat, None, InputRequestResponsePart(request=request))
    else:
        place, part = found
        if request.answers is None:
            request = request.evolve(answers=part.request.answers)
        if not same(part.request, request):
            chat = _with_part(chat, place, part.evolve(request=request))
    chat = refreshed(chat)
    return changed(chat, status=set_flag(chat.status, READ, False))


def _answer_changed(chat: ChatState, action: ChatInputAnswerChangedAction) -> ChatState:
    """Sets one answer, or takes it away; the last one takes the map with it (R-11.4)."""
    found = _open(chat, action.request_id)
    if found is None:
        return chat
    place, part = found
    answers = dict(part.request.answers or {})
    if action.answer is None:
        answers.pop(action.question_id, None)
    else:
        answers[action.question_id] = action.answer
    request = changed(part.request, answers=answers or None)
    if request is part.request:
        return chat
    return _with_part(chat, place, part.evolve(request=request))


def _completed(chat: ChatState, action: ChatInputCompletedAction) -> ChatState:
    """Closes a request, its final answers laid over the drafts (R-11.8)."""
    found = _open(chat, action.request_id)
    if found is None:
        return chat
    place, part = found
    request = part.request
    if action.answers:
        request = request.evolve(answers={**(request.answers or {}), **action.answers})
    return refreshed(
        _with_part(chat, place, part.evolve(request=request, response=action.response))
    )


HANDLERS: Handlers[ChatState] = {
    ChatInputRequestedAction: _requested,
    ChatInputAnswerChangedAction: _answer_changed,
    ChatInputCompletedAction: _completed,
}
