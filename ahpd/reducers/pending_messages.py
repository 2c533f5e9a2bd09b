"""Messages that wait: the one that steers, and the queue (R-9.76 to R-9.85)."""

from __future__ import annotations

from ahpd.protocol.chat import ChatState
from ahpd.protocol.chat_actions import (
    ChatPendingMessageRemovedAction,
    ChatPendingMessageSetAction,
    ChatQueuedMessagesReorderedAction,
)
from ahpd.protocol.messages import PendingMessage
from ahpd.reducers.change import Handlers, changed, put, without


def _set(chat: ChatState, action: ChatPendingMessageSetAction) -> ChatState:
    """Queued: in place by id, or at the end. Steering: whatever was there goes (R-9.76)."""
    message = PendingMessage(id=action.id, message=action.message)
    match action.kind:
        case "steering":
            return changed(chat, steering_message=message)
        case "queued":
            return changed(chat, queued_messages=put(chat.queued_messages, message))
        case _:  # a newer peer's kind
            return chat


def _removed(chat: ChatState, action: ChatPendingMessageRemovedAction) -> ChatState:
    """Takes away the one with that kind and id; an empty queue is left out (R-9.77)."""
    match action.kind:
        case "steering":
            steering = chat.steering_message
            if steering is None or steering.id != action.id:
                return chat
            return chat.evolve(steering_message=None)
        case "queued":
            queue = chat.queued_messages or ()
            left = without(queue, action.id)
            return chat if left is queue else chat.evolve(queued_messages=left or None)
        case _:
            return chat


def _reordered(chat: ChatState, action: ChatQueuedMessagesReorderedAction) -> ChatState:
    """Listed messages first, the others behind them in their old order (R-9.85)."""
    queue = chat.queued_messages
    if queue is None:
        return chat
    rank: dict[str, int] = {}
    for wanted in action.order:
        rank.setdefault(wanted, len(rank))
    return changed(
        chat, queued_messages=tuple(sorted(queue, key=lambda each: rank.get(each.id, len(rank))))
    )


HANDLERS: Handlers[ChatState] = {
    ChatPendingMessageSetAction: _set,
    ChatPendingMessageRemovedAction: _removed,
    ChatQueuedMessagesReorderedAction: _reordered,
}
