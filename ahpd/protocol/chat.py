"""The chat channel: its state, turns and response parts, and its commands (RULES 9)."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from typing import Any, Literal, TypeAlias, overload

from ahpd.protocol.canvas import CanvasReference
from ahpd.protocol.changeset import Changeset
from ahpd.protocol.codec import decode
from ahpd.protocol.common import (
    BaseParams,
    ChangesSummary,
    ContentRef,
    ErrorInfo,
    SessionStatus,
    StringOrMarkdown,
    UsageInfo,
)
from ahpd.protocol.inputs import ChatInputRequest, ChatInputResponseKind
from ahpd.protocol.jsontext import loads
from ahpd.protocol.messages import Message, PendingMessage
from ahpd.protocol.model import Object, Unknown, Wire
from ahpd.protocol.persistent import AnyText, Seq
from ahpd.protocol.tools import (
    ToolCallAuthRequiredState,
    ToolCallBase,
    ToolCallPendingConfirmationState,
    ToolCallPendingResultConfirmationState,
    ToolCallState,
)
from ahpd.protocol.uris import URI

ChatInteractivity: TypeAlias = Literal["full", "read-only", "hidden"]


TurnState: TypeAlias = Literal["complete", "cancelled", "error"]


class ActiveTurn(Wire):
    """The turn that runs."""

    id: str
    started_at: str
    message: Message
    response_parts: ResponseParts
    usage: UsageInfo | None = None


class BackgroundWorkBase(Wire):
    """What all background work has."""

    id: str
    label: str
    started_at: str
    meta: Object | None = None


class BackgroundShellWork(BackgroundWorkBase):
    """A command that goes on beside the turns."""

    kind: Literal["shell"] = "shell"
    command: str
    terminal: URI | None = None


class BackgroundSubagentWork(BackgroundWorkBase):
    """A worker that goes on beside the turns."""

    kind: Literal["subagent"] = "subagent"
    chat: URI


class ChatMoveToNewSessionDestination(Wire):
    """A session made for the chat."""

    kind: Literal["newSession"] = "newSession"


class ChatMoveToSessionDestination(Wire):
    """A session that exists; directly after `after`, or first."""

    kind: Literal["session"] = "session"
    session: URI
    after: URI | None = None


class UserChatOrigin(Wire):
    """Made by a person."""

    kind: Literal["user"] = "user"


class ForkChatOrigin(Wire):
    """Copied from another chat up to a turn (R-9.7)."""

    kind: Literal["fork"] = "fork"
    chat: URI
    turn_id: str


class SideChatOrigin(Wire):
    """Opened beside another chat, with its history as context (R-9.8)."""

    kind: Literal["sideChat"] = "sideChat"
    chat: URI
    turn_id: str
    selection: SideChatSelection | None = None


class ToolChatOrigin(Wire):
    """Made by a tool call: a worker (R-9.13)."""

    kind: Literal["tool"] = "tool"
    chat: URI
    tool_call_id: str


class ChatState(Wire):
    """A chat: turns done, the turn that runs, messages that wait."""

    resource: URI
    title: str
    status: SessionStatus
    activity: str | None = None
    modified_at: str
    changes: ChangesSummary | None = None
    origin: ChatOrigin | None = None
    movable: bool | None = None
    interactivity: ChatInteractivity | None = None
    working_directories: tuple[URI, ...] | None = None
    changesets: tuple[Changeset, ...] | None = None
    background_work: tuple[BackgroundWork, ...] | None = None
    canvases: tuple[CanvasReference, ...] | None = None
    turns: Turns
    turns_next_cursor: str | None = None
    active_turn: ActiveTurn | None = None
    steering_message: PendingMessage | None = None
    queued_messages: tuple[PendingMessage, ...] | None = None
    draft: Message | None = None
    meta: Object | None = None


class ChatSummary(Wire):
    """A chat's row in its session."""

    resource: URI
    title: str
    status: SessionStatus
    activity: str | None = None
    modified_at: str
    changes: ChangesSummary | None = None
    origin: ChatOrigin | None = None
    movable: bool | None = None
    interactivity: ChatInteractivity | None = None
    working_directories: tuple[URI, ...] | None = None


class CreateChatParams(BaseParams):
    """Makes a chat in the session named by `channel` (R-9.1)."""

    chat: URI
    initial_message: Message | None = None
    source: ChatSource | None = None
    working_directories: tuple[URI, ...] | None = None


class DisposeChatParams(BaseParams):
    """Ends the chat named by `channel` (R-9.17)."""


class ErrorResponsePart(Wire):
    """How a turn failed; only `chat/error` adds one (R-9.48)."""

    kind: Literal["error"] = "error"
    error: ErrorInfo
    resumable: bool | None = None


class FetchTurnsParams(BaseParams):
    """Asks for a page of older turns (R-9.72)."""

    cursor: str | None = None


class FetchTurnsResult(Wire):
    """Empty: the turns come as `chat/turnsLoaded` before it (R-9.72)."""


class ForkChatSource(Wire):
    """Copies a chat up to a completed turn."""

    kind: Literal["fork"] = "fork"
    chat: URI
    turn_id: str


class InputRequestResponsePart(Wire):
    """Questions to people; open while there is no `response` (R-11.1)."""

    kind: Literal["inputRequest"] = "inputRequest"
    request: ChatInputRequest
    response: ChatInputResponseKind | None = None


class MarkdownResponsePart(Wire):
    """Text of the answer; `chat/delta` appends to it."""

    kind: Literal["markdown"] = "markdown"
    id: str
    content: AnyText


class MoveChatParams(BaseParams):
    """Moves the chat named by `channel` (R-9.21)."""

    destination: ChatMoveDestination


class MoveChatResult(Wire):
    """The session that the chat now belongs to."""

    session: URI


class ReasoningResponsePart(Wire):
    """Thoughts; `chat/reasoning` appends to it."""

    kind: Literal["reasoning"] = "reasoning"
    id: str
    content: AnyText


class ResourceResponsePart(ContentRef):
    """Content by reference."""

    kind: Literal["contentRef"] = "contentRef"


class SideChatSelection(Wire):
    """The exact text that a side chat is about (R-9.10)."""

    text: str
    response_part_id: str | None = None


class SideChatSource(Wire):
    """Gives a new chat another one's history as context."""

    kind: Literal["sideChat"] = "sideChat"
    chat: URI
    turn_id: str
    selection: SideChatSelection | None = None


class SystemNotificationResponsePart(Wire):
    """Said by the harness, not by the model (R-9.51)."""

    kind: Literal["systemNotification"] = "systemNotification"
    content: StringOrMarkdown
    meta: Object | None = None


class ToolCallResponsePart(Wire):
    """A tool call, in the state it is in."""

    kind: Literal["toolCall"] = "toolCall"
    tool_call: ToolCallState


class Turn(Wire):
    """A turn that has ended."""

    id: str
    started_at: str | None = None
    duration: float | None = None
    message: Message
    response_parts: ResponseParts
    usage: UsageInfo | None = None
    state: TurnState


class PartialChatSummary(Wire):
    """The fields of a chat's row that changed."""

    resource: URI | None = None
    title: str | None = None
    status: SessionStatus | None = None
    activity: str | None = None
    modified_at: str | None = None
    changes: ChangesSummary | None = None
    origin: ChatOrigin | None = None
    movable: bool | None = None
    interactivity: ChatInteractivity | None = None
    working_directories: tuple[URI, ...] | None = None


def tool_call_key(tool_call_id: str) -> Hashable:
    """What `ResponseParts.index_of` finds a tool call by."""
    return ("toolCall", tool_call_id)


def input_request_key(request_id: str) -> Hashable:
    """What `ResponseParts.index_of` finds a request's questions by."""
    return ("inputRequest", request_id)


class ResponseParts(Seq["ResponsePart"]):
    """The parts of an answer, searched by the id that deltas, tool calls and requests name."""

    @staticmethod
    def key(item: Any) -> Hashable:
        """A part's own id and its tool call's or request's are different name spaces."""
        match item:
            case MarkdownResponsePart() | ReasoningResponsePart():
                return item.id
            case ToolCallResponsePart(tool_call=ToolCallBase() as call):
                return tool_call_key(call.tool_call_id)
            case InputRequestResponsePart():
                return input_request_key(item.request.id)
            case _:
                return None

    @staticmethod
    def counts(item: Any) -> bool:
        """Whether it waits for somebody, which is what the chat's activity hangs on (R-7.34)."""
        if isinstance(item, ToolCallResponsePart):
            return isinstance(item.tool_call, _WAITING)
        return isinstance(item, InputRequestResponsePart) and item.response is None


#: The states in which a tool call waits for somebody.
_WAITING = (
    ToolCallPendingConfirmationState,
    ToolCallPendingResultConfirmationState,
    ToolCallAuthRequiredState,
)


class StoredTurn:
    """A turn that is still text, as it was stored."""

    __slots__ = ("id", "text")

    def __init__(self, id: str, text: bytes) -> None:
        self.id = id
        self.text = text


class StoredTurns:
    """Some turns, from the place `first` on, that are still text: a line of JSON each."""

    __slots__ = ("_lines", "first", "ids", "texts")

    def __init__(self, first: int, ids: bytes, texts: bytes) -> None:
        self.first = first
        self.ids = ids
        self.texts = texts
        self._lines: list[bytes] | None = None

    def text_at(self, place: int) -> bytes:
        """The text of the turn at a place of the whole list."""
        if self._lines is None:
            self._lines = self.texts.split(b"\n")
        return self._lines[place - self.first]

    def turns(self) -> list[StoredTurn]:
        """Each of them."""
        ids: Any = loads(self.ids)
        return [StoredTurn(id, self.text_at(self.first + k)) for k, id in enumerate(ids)]


class Turns(Seq["Turn"]):
    """Completed turns, oldest first, searched by id.

    Those that were stored are decoded when somebody looks at them: most never are. Until then a
    place holds the text of its turn, or of all the turns that were stored with it.
    """

    @classmethod
    def stored(cls, rows: Iterable[tuple[int, bytes, bytes]]) -> Turns:
        """Turns as they were stored: of each row their number, the JSON list of their ids, and
        their texts, a line each, as `Turn.wire` gave them.
        """
        items: list[Any] = []
        for count, ids, texts in rows:
            items += [StoredTurns(len(items), ids, texts)] * count
        return cls(items)

    @overload
    def __getitem__(self, place: int) -> Turn: ...
    @overload
    def __getitem__(self, place: slice) -> Sequence[Turn]: ...
    def __getitem__(self, place: int | slice) -> Turn | Sequence[Turn]:
        """One turn, or a tuple of some."""
        if isinstance(place, slice):
            return tuple(self[each] for each in range(*place.indices(len(self))))
        item: Any = super().__getitem__(place)
        if item.__class__ is StoredTurns or item.__class__ is StoredTurn:
            return self._decoded(place + len(self) if place < 0 else place, item)
        return item  # type: ignore[no-any-return]

    def __iter__(self) -> Iterator[Turn]:
        """The turns in order."""
        for place in range(len(self)):
            yield self[place]

    def mentioning(self, word: bytes, first: int = 0) -> Iterator[Turn]:
        """The turns from place `first` on, without those whose stored text has no `word` in it.

        Those are not even decoded.
        """
        place = first
        while place < len(self):
            item: Any = super().__getitem__(place)
            if item.__class__ is StoredTurns and word not in item.texts:
                # All that is still of this text, up to its last turn if that is where it was.
                last = min(item.first + item.texts.count(b"\n"), len(self) - 1)
                place = (last if super().__getitem__(last) is item else place) + 1
                continue
            stored = b""
            if item.__class__ is StoredTurns:
                stored = item.text_at(place)
            elif item.__class__ is StoredTurn:
                stored = item.text
            if not stored or word in stored:
                yield self[place]
            place += 1

    def _decoded(self, place: int, item: StoredTurn | StoredTurns) -> Turn:
        """Decode a turn where it stands: equal for every holder of the buffer."""
        text = item.text if isinstance(item, StoredTurn) else item.text_at(place)
        turn = decode(Turn, loads(text))
        if place == self._count:
            self._last = turn
        else:
            self._head[place] = turn
        return turn

    def _indexed(self) -> Any:
        """Searching needs the ids of all of them."""
        if self._index is None or self._index.head is not self._head:
            head = self._head
            place = 0
            while place < len(head):
                item = head[place]
                if item.__class__ is not StoredTurns:
                    place += 1
                    continue
                for turn in item.turns()[place - item.first :]:
                    if place < len(head) and head[place] is item:
                        head[place] = turn
                    place += 1
        if self._last.__class__ is StoredTurns:
            self[self._count]  # its id is looked at, too
        return super()._indexed()

    @staticmethod
    def key(item: Any) -> Hashable:
        """The turn's id."""
        return item.id  # type: ignore[no-any-return]


BackgroundWork: TypeAlias = BackgroundShellWork | BackgroundSubagentWork | Unknown


ChatMoveDestination: TypeAlias = (
    ChatMoveToSessionDestination | ChatMoveToNewSessionDestination | Unknown
)


ChatOrigin: TypeAlias = UserChatOrigin | ForkChatOrigin | SideChatOrigin | ToolChatOrigin | Unknown


ChatSource: TypeAlias = ForkChatSource | SideChatSource | Unknown


ResponsePart: TypeAlias = (
    MarkdownResponsePart
    | ResourceResponsePart
    | ToolCallResponsePart
    | ReasoningResponsePart
    | SystemNotificationResponsePart
    | InputRequestResponsePart
    | ErrorResponsePart
    | Unknown
)
