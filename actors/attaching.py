"""What the attachments of a message stand for: settled in the step that accepts the message.

A `#chat` attachment without an end is pinned to the latest turn that has ended by then (R-9.38).
The action is echoed as its client sent it (R-5.29), so the pin is in no state. It is kept beside
it, under the id of the turn or of the message that waits, as what the agent will be given: turns
never change once they have ended, so neither later ones nor the end of that chat make a difference
(R-9.41), and whoever works on the turn again gets the same (R-9.39).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from actors.ledger import Channel
from actors.rules.messages import Find
from ahpd.agents.port import Attached, Remarks, Transcript
from ahpd.protocol.messages import Message, MessageAnnotationsAttachment, MessageChatAttachment


def attach(channel: Channel, key: str, message: Message, find: Find) -> None:
    """Keep what the attachments of a chat's message stand for now, under its id."""
    found: list[Attached] = []
    for attachment in message.attachments or ():
        resolve = _RESOLVE.get(type(attachment))
        if resolve is not None:
            found.append(resolve(attachment, find))
    if found:
        channel.note(attached={**channel.notes.attached, key: tuple(found)})
    else:
        detach(channel, key)


def detach(channel: Channel, key: str) -> None:
    """The message is no longer waiting."""
    if key in channel.notes.attached:
        channel.note(attached=_without(channel.notes.attached, key))


def hand_on(channel: Channel, waited: str, turn_id: str) -> None:
    """A message that waited becomes a turn: it means what it meant when it was accepted."""
    held = channel.notes.attached
    if waited in held:
        channel.note(attached={**_without(held, waited), turn_id: held[waited]})


def attached_to(channel: Channel, turn_id: str) -> tuple[Attached, ...]:
    """What is attached to the message of a turn, one that a fork inherited included."""
    notes = channel.notes
    return notes.attached.get(turn_id) or notes.heritage.attached.get(turn_id, ())


def _without(held: Mapping[str, tuple[Attached, ...]], key: str) -> dict[str, tuple[Attached, ...]]:
    return {each: what for each, what in held.items() if each != key}


def _transcript(attachment: MessageChatAttachment, find: Find) -> Transcript:
    """R-9.40: from the first turn to the pinned one; a chat without turns has an empty one."""
    chat, wanted = find(attachment.resource, "chat"), attachment.end_turn
    if chat is None:
        return Transcript(attachment.resource)
    end = len(chat.turns) if wanted is None else chat.turns.index_of(wanted) + 1
    return Transcript(attachment.resource, tuple(chat.turns[:end]))


def _remarks(attachment: MessageAnnotationsAttachment, find: Find) -> Remarks:
    """R-16.12: all of them, or those that are named."""
    state, wanted = find(attachment.resource, "annotations"), attachment.annotation_ids
    held = () if state is None else state.annotations
    return Remarks(
        attachment.resource,
        tuple(each for each in held if wanted is None or each.id in wanted),
    )


_RESOLVE: Mapping[type, Callable[[Any, Find], Attached]] = {
    MessageChatAttachment: _transcript,
    MessageAnnotationsAttachment: _remarks,
}
