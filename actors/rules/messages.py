"""Rules for messages, wherever a client sends one: in a turn, to wait, with a new chat."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from ahpd.protocol.messages import (
    Message,
    MessageAnnotationsAttachment,
    MessageChatAttachment,
    SimpleMessageAttachment,
)
from ahpd.protocol.uris import URI, ChannelKind

#: The state of the open channel of that URI, if it is one of that kind.
Find: TypeAlias = Callable[[URI, ChannelKind], Any]


def message_fault(message: Message | None, find: Find) -> str | None:
    """Why a client may not send this message (R-9.35 to R-9.38); None when it may."""
    if message is None:
        return None
    if message.origin.kind != "user":
        return f"a client sends messages of its user, not of origin {message.origin.kind}"
    for attachment in message.attachments or ():
        rule = _ATTACHMENTS.get(type(attachment))
        reason = rule(attachment, find) if rule is not None else None
        if reason is not None:
            return reason
    return None


def _chat(attachment: MessageChatAttachment, find: Find) -> str | None:
    """R-9.37: the chat must exist, and a turn that is named must be one of it that has ended."""
    chat, wanted = find(attachment.resource, "chat"), attachment.end_turn
    if chat is None:
        return f"the attached chat {attachment.resource} does not exist"
    if wanted is None or chat.turns.index_of(wanted) >= 0:
        return None
    if chat.active_turn is not None and chat.active_turn.id == wanted:
        return f"the turn {wanted} of the attached chat is still running"
    return f"the attached chat has no completed turn {wanted}"


def _annotations(attachment: MessageAnnotationsAttachment, find: Find) -> str | None:
    held = find(attachment.resource, "annotations")
    if held is None:
        return f"there are no annotations {attachment.resource}"
    known = {annotation.id for annotation in held.annotations}
    for wanted in attachment.annotation_ids or ():
        if wanted not in known:
            return f"there is no annotation {wanted} to attach"
    return None


def _simple(attachment: SimpleMessageAttachment, find: Find) -> str | None:
    """R-9.36: without its text it must have come from completions, which mark theirs."""
    if attachment.model_representation is None and attachment.meta is None:
        return f"the attachment {attachment.label} has no text for the model"
    return None


#: Attachments that may be refused; any other is the agent's to make something of.
_ATTACHMENTS: Mapping[type, Callable[[Any, Find], str | None]] = {
    MessageChatAttachment: _chat,
    MessageAnnotationsAttachment: _annotations,
    SimpleMessageAttachment: _simple,
}
