"""What the host needs of an agent: `Agent` makes a `Backend` for each chat."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Protocol, TypeAlias

import attrs

from ahpd.agents.events import Event, Outcome
from ahpd.protocol.annotations import Annotation
from ahpd.protocol.chat import Turn
from ahpd.protocol.inputs import ChatInputAnswer, ChatInputResponseKind
from ahpd.protocol.messages import Message
from ahpd.protocol.model import Object
from ahpd.protocol.root import AgentInfo
from ahpd.protocol.tools import ToolCallResult
from ahpd.protocol.uris import URI

#: Where a backend sends events, a few at a time and in order. Waits while the chat is behind,
#: which is how a fast agent is slowed down. Only the task that runs the turn may call it.
EventSink: TypeAlias = Callable[[Sequence[Event]], Awaitable[None]]


class AgentFailed(Exception):
    """The agent cannot be opened or broke down; the message is for people.

    `resumable`: the conversation is still there and a later try may go on with it.
    """

    def __init__(self, message: str, *, resumable: bool = False) -> None:
        super().__init__(message)
        self.message = message
        self.resumable = resumable


@attrs.frozen
class Transcript:
    """A chat that a message refers to, as far as it went when the message was accepted.

    Chats that its own messages refer to are not followed (R-9.40).
    """

    chat: URI
    turns: Sequence[Turn] = ()


@attrs.frozen
class Remarks:
    """Annotations that a message refers to, as they were when it was accepted (R-16.12)."""

    channel: URI
    annotations: Sequence[Annotation] = ()


#: What an attachment stands for that says only where to look.
Attached: TypeAlias = Transcript | Remarks


@attrs.frozen
class OpenRequest:
    """What a backend is opened for. `config` holds the session's configuration values.

    `history` is what a fork has in common with the chat it was made from, `context` what a side
    chat is to know of another chat without showing it, and `selection` the text in it that the side
    chat is about (R-9.7 to R-9.10); `attached` holds what the messages of both refer to, by the id
    of the turn. `tokens` are those of the client on whose behalf it is opened,
    by resource; never logged, never stored.
    """

    session: URI
    chat: URI
    working_directories: Sequence[URI] = ()
    config: Object = attrs.field(factory=dict)
    history: Sequence[Turn] = ()
    context: Sequence[Turn] = ()
    selection: str | None = None
    attached: Mapping[str, Sequence[Attached]] = attrs.field(factory=dict)
    tokens: Mapping[str, str] = attrs.field(factory=dict, repr=False)


@attrs.frozen
class Prompt:
    """One turn's work. `resume` means: go on with the turn that failed, the message is the same.

    `attached` is what the message's attachments of chats and annotations stand for, in their order.
    """

    turn_id: str
    message: Message
    resume: bool = False
    attached: Sequence[Attached] = ()


@attrs.frozen
class Permission:
    """The answer to a `ToolAsks`. `input` holds the edited input when somebody changed it."""

    call_id: str
    approved: bool
    option_id: str | None = None
    input: str | None = None
    reason: str | None = None


@attrs.frozen
class Answers:
    """The answer to `QuestionsAsked`; decline and cancel are answers too (R-11.10)."""

    request_id: str
    response: ChatInputResponseKind
    answers: Mapping[str, ChatInputAnswer] = attrs.field(factory=dict)


@attrs.frozen
class Verdict:
    """Whether the result of a finished call may be used (`ToolFinished.asks_approval`)."""

    call_id: str
    approved: bool


@attrs.frozen
class ClientResult:
    """What came of a `ClientToolCalled`; a client that is gone gives a failed result."""

    call_id: str
    result: ToolCallResult


@attrs.frozen
class Authorized:
    """A token that a `ToolNeedsAuth` waited for."""

    call_id: str
    token: str = attrs.field(repr=False)


#: What a waiting backend is told. One for something that does not wait is ignored.
Answer: TypeAlias = Permission | Answers | Verdict | ClientResult | Authorized


class Backend(Protocol):
    """Drives one agent for one chat. One turn at a time.

    `prompt` and `aside` run in tasks of their own; the other methods are called while they do, and
    return at once. Any exception out of `prompt` is a crash of the backend: the turn ends in error
    and a new backend is opened for the next one.
    """

    async def prompt(self, prompt: Prompt, events: EventSink) -> Outcome:
        """Run a turn to its end. trio-cancelled only when `cancel` was not obeyed in time."""
        ...

    async def aside(self, events: EventSink) -> None:
        """Say what belongs to no turn (work beside turns, commands), as long as it lives.

        Runs beside the turns in a task of its own, cancelled before `close`. An exception is a
        crash of the backend like one of `prompt`.
        """
        ...

    def answer(self, answer: Answer) -> None:
        """Somebody decided about what the turn waits for. Anything else is ignored."""
        ...

    def steer(self, message: Message) -> bool:
        """Give the running turn another message; False when this agent cannot take one."""
        ...

    def cancel(self) -> None:
        """Ask the running turn to stop; `prompt` then returns `Stopped`, soon."""
        ...

    async def close(self) -> None:
        """Let go of everything, within a bound. Called once, also after a crash."""
        ...


class Agent(Protocol):
    """A kind of agent that sessions can use: what the protocol calls a provider."""

    @property
    def info(self) -> AgentInfo:
        """What clients are told about it."""
        ...

    @property
    def can_resume(self) -> bool:
        """Whether a new backend can go on with a turn that the last one left unfinished."""
        ...

    async def open(self, request: OpenRequest) -> Backend:
        """A backend for one chat; raises `AgentFailed`."""
        ...

    async def forget(self, request: OpenRequest) -> None:
        """Delete what the agent itself keeps of a chat that has ended, if it keeps anything.

        Its backend has been closed, if it ever had one. Raises `AgentFailed`.
        """
        ...
