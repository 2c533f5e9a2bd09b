"""What happens in a chat, as one thing after another: read off its states and envelopes.

`Follower` is told every state of a chat, with the envelope that led there or without one (after a
snapshot), and says what is new in it. Nothing is said twice and nothing left out, however the
state got there. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, TypeAlias

import attrs

from ahpd.cli import words
from ahpd.protocol.chat import (
    ActiveTurn,
    ChatState,
    ErrorResponsePart,
    InputRequestResponsePart,
    MarkdownResponsePart,
    ReasoningResponsePart,
    ResourceResponsePart,
    SystemNotificationResponsePart,
    ToolCallResponsePart,
    Turn,
    tool_call_key,
)
from ahpd.protocol.chat_actions import ChatDeltaAction, ChatReasoningAction
from ahpd.protocol.common import Markdown, StringOrMarkdown
from ahpd.protocol.connection import ActionEnvelope
from ahpd.protocol.inputs import ChatInputRequest
from ahpd.protocol.messages import Message
from ahpd.protocol.tools import ToolCallActionBase


@attrs.frozen
class Began:
    """A turn began; `resumed`: it had failed before and goes on."""

    turn_id: str
    message: Message
    resumed: bool = False


@attrs.frozen
class Said:
    """More text of the answer; `part` is where it belongs."""

    text: str
    part: int


@attrs.frozen
class Thought:
    """More of what the agent thinks."""

    text: str
    part: int


@attrs.frozen
class ToolMoved:
    """A tool call is in another state; `words` says which."""

    call: Any
    words: str


@attrs.frozen
class Questioned:
    """Somebody is asked questions."""

    request: ChatInputRequest


@attrs.frozen
class Noted:
    """Something that is no text of the answer: a notice, a reference, a kind nobody here knows."""

    text: str


@attrs.frozen
class Failed:
    """The agent failed; the turn ends, but may be resumed."""

    text: str
    resumable: bool


@attrs.frozen
class Ended:
    """A turn ended."""

    turn: Turn


Happening: TypeAlias = Began | Said | Thought | ToolMoved | Questioned | Noted | Failed | Ended


class Follower:
    """Follows one chat from the state it is made with: what is in there already is not told.

    With `whole_turn`, a turn that runs by then is told from its beginning.
    """

    def __init__(self, chat: ChatState, *, whole_turn: bool = False) -> None:
        #: The last turn told of, and whether its ending was told.
        self._turn: str | None = chat.turns[-1].id if chat.turns else None
        self._over = True
        #: What was told of each of its parts: a length, or words.
        self._told: list[Any] = []
        if chat.active_turn is not None and not whole_turn:
            self._turn, self._over = chat.active_turn.id, False
            for _ in self._parts(chat.active_turn, None):
                pass

    def look(self, chat: ChatState, envelope: ActionEnvelope | None) -> Iterator[Happening]:
        """What is new in `chat` since the last look."""
        active = chat.active_turn
        if active is not None and active.id == self._turn and not self._over:
            yield from self._parts(active, envelope)
            return
        for turn in self._ended_since(chat):
            if self._over or turn.id != self._turn:
                yield self._begin(turn.id, turn.message)
            yield from self._parts(turn, None)
            self._over = True
            yield Ended(turn)
        if active is not None:
            yield self._begin(active.id, active.message)
            yield from self._parts(active, None)

    def _begin(self, turn_id: str, message: Message) -> Began:
        resumed = turn_id == self._turn
        if not resumed:
            self._told = []
        self._turn, self._over = turn_id, False
        return Began(turn_id, message, resumed)

    def _ended_since(self, chat: ChatState) -> Iterable[Turn]:
        """The turns whose ending was not told."""
        if self._turn is None:
            return tuple(chat.turns)
        place = chat.turns.index_of(self._turn)
        if place < 0:  # it runs, or was taken away and what is there now was told or came since
            return ()
        return [chat.turns[at] for at in range(place + self._over, len(chat.turns))]

    def _parts(
        self, turn: ActiveTurn | Turn, envelope: ActionEnvelope | None
    ) -> Iterator[Happening]:
        parts = turn.response_parts
        action = envelope.action if envelope is not None else None
        if isinstance(action, ChatDeltaAction | ChatReasoningAction):
            place = parts.index_of(action.part_id)
            if 0 <= place < len(self._told):  # so that a delta costs the same in a long turn
                yield from self._part(place, parts[place], action.content)
                return
        if isinstance(action, ToolCallActionBase):
            place = parts.index_of(tool_call_key(action.tool_call_id))
            if 0 <= place < len(self._told) or place == len(self._told) == len(parts) - 1:
                yield from self._part(place, parts[place], None)
                return
        for place, part in enumerate(parts):
            yield from self._part(place, part, None)

    def _part(self, place: int, part: Any, more: str | None) -> Iterator[Happening]:
        if place == len(self._told):
            self._told.append(0)
        told = self._told[place]
        match part:
            case MarkdownResponsePart() | ReasoningResponsePart():
                length = len(part.content)
                if length <= told:
                    return
                new = more if more is not None and len(more) == length - told else None
                text = new if new is not None else str(part.content)[told:]
                self._told[place] = length
                kind = Said if isinstance(part, MarkdownResponsePart) else Thought
                yield kind(text, place)
            case ToolCallResponsePart(tool_call=call):
                state = words.call(call)
                if state != told:
                    self._told[place] = state
                    yield ToolMoved(call, state)
            case InputRequestResponsePart():
                state = part.response or "open"
                if state != told:
                    self._told[place] = state
                    if part.response is None:
                        yield Questioned(part.request)
                    else:
                        yield Noted(f"the questions were answered: {part.response}")
            case _ if not told:
                self._told[place] = 1
                yield _other(part)
            case _:
                pass


def _other(part: Any) -> Happening:
    match part:
        case ErrorResponsePart(error=error):
            return Failed(f"{error.message} ({error.error_type})", bool(part.resumable))
        case SystemNotificationResponsePart():
            return Noted(plain(part.content))
        case ResourceResponsePart():
            return Noted(part.uri)
        case _:
            return Noted(f"something of a kind that is not known here: {part.tag}")


def plain(text: StringOrMarkdown | None) -> str:
    """The text of what may be Markdown."""
    return text.markdown if isinstance(text, Markdown) else text or ""
