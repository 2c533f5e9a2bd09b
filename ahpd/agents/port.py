"""What the host needs of an agent: `Agent` makes a `Backend` for each chat."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol, TypeAlias

import attrs

from ahpd.agents.events import Event, Outcome
from ahpd.protocol.messages import Message
from ahpd.protocol.model import Object
from ahpd.protocol.root import AgentInfo
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
class OpenRequest:
    """What a backend is opened for. `config` holds the session's configuration values."""

    session: URI
    chat: URI
    working_directories: Sequence[URI] = ()
    config: Object = attrs.field(factory=dict)


@attrs.frozen
class Prompt:
    """One turn's work. `resume` means: go on with the turn that failed, the message is the same."""

    turn_id: str
    message: Message
    resume: bool = False


@attrs.frozen
class Permission:
    """The answer to a `ToolAsks`. `input` holds the edited input when somebody changed it."""

    call_id: str
    approved: bool
    option_id: str | None = None
    input: str | None = None
    reason: str | None = None


class Backend(Protocol):
    """Drives one agent for one chat. One turn at a time.

    `prompt` runs in a task of its own; the other methods are called while it does and return at
    once. Any exception out of `prompt` is a crash of the backend: the turn ends in error and a new
    backend is opened for the next one.
    """

    async def prompt(self, prompt: Prompt, events: EventSink) -> Outcome:
        """Run a turn to its end. trio-cancelled only when `cancel` was not obeyed in time."""
        ...

    def answer(self, permission: Permission) -> None:
        """Somebody decided about a call that asked. Unknown calls are ignored."""
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
