"""What the host needs of an agent: `Agent` makes a `Backend` for each chat."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Literal, Protocol, TypeAlias, runtime_checkable

from msgspec import Struct, field

from ahpd.agents.events import Event, Failed, Outcome
from ahpd.protocol.annotations import Annotation
from ahpd.protocol.chat import Turn
from ahpd.protocol.common import ProtectedResourceMetadata
from ahpd.protocol.customizations import Customization, CustomizationEnablement
from ahpd.protocol.discreet import Discreet
from ahpd.protocol.inputs import ChatInputAnswer, ChatInputResponseKind
from ahpd.protocol.messages import Message
from ahpd.protocol.model import JSON, Object
from ahpd.protocol.root import AgentInfo
from ahpd.protocol.session import SessionConfigSchema, SessionConfigValueItem
from ahpd.protocol.tools import ToolCallResult, ToolDefinition
from ahpd.protocol.uris import URI

#: Where a backend sends events, a few at a time and in order. Waits while the chat is behind,
#: which is how a fast agent is slowed down; no checkpoint while the chat keeps up. Only the task
#: that runs the turn may call it.
EventSink: TypeAlias = Callable[[Sequence[Event]], Awaitable[None]]

#: What people may want of an MCP server (R-18.19, R-18.21). "background": wait for it no longer.
ServerRequest: TypeAlias = Literal["start", "stop", "background"]


class AgentFailed(Exception):
    """The agent cannot be opened or broke down; the message is for people.

    `resumable`: the conversation is still there and a later try may go on with it.
    """

    def __init__(self, message: str, *, resumable: bool = False) -> None:
        super().__init__(message)
        self.message = message
        self.resumable = resumable


class SignInNeeded(AgentFailed):
    """The agent wants somebody to sign in. `resources` are what a client can bring tokens for.

    `methods` are the agent's own ways to sign in, as they are shown in `_meta`.
    """

    def __init__(
        self, message: str, resources: Sequence[ProtectedResourceMetadata], methods: JSON
    ) -> None:
        super().__init__(message)
        self.resources = resources
        self.methods = methods


def failure(error: AgentFailed) -> Failed:
    """How a turn, or the making of a session, ends by this."""
    if not isinstance(error, SignInNeeded):
        return Failed(error.message, "AgentFailed", error.resumable)
    meta: JSON = {"ahpd.authMethods": error.methods} if error.methods else None
    return Failed(error.message, "AuthRequired", error.resumable, meta, error.resources)


class Transcript(Struct, frozen=True):
    """A chat that a message refers to, as far as it went when the message was accepted.

    Chats that its own messages refer to are not followed (R-9.40).
    """

    chat: URI
    turns: Sequence[Turn] = ()


class Remarks(Struct, frozen=True):
    """Annotations that a message refers to, as they were when it was accepted (R-16.12)."""

    channel: URI
    annotations: Sequence[Annotation] = ()


class HostRefused(Exception):
    """The host does not do what an agent wants; the message is for the agent and for people."""

    def __init__(self, message: str, kind: Literal["not found", "not allowed", "failed"]) -> None:
        super().__init__(message)
        self.message = message
        self.kind = kind


class CommandWanted(Struct, frozen=True):
    """A command that an agent wants run: a line for a shell, the path of a folder, variables."""

    line: str
    cwd: str
    environment: Mapping[str, str] = field(default_factory=dict)


class CommandOver(Struct, frozen=True):
    """How a command ended: its exit code, or the name of the signal, as ``SIGTERM``."""

    exit_code: int | None = None
    signal: str | None = None


class RunningCommand(Protocol):
    """A command on a terminal of the session, which people can see and type into."""

    @property
    def uri(self) -> URI:
        """The terminal's channel."""
        ...

    @property
    def title(self) -> str:
        """What the terminal is called."""
        ...

    @property
    def over(self) -> CommandOver | None:
        """How it ended; None while it runs."""
        ...

    def output(self) -> str:
        """What it has written, as far as that is kept, without escape sequences."""
        ...

    async def wait(self) -> CommandOver:
        """Until it has ended, and all that it wrote is in `output`. A checkpoint."""
        ...

    async def end(self) -> None:
        """End it, within a bound. Its terminal stays, to be read. Harmless again. Never fails."""
        ...


class Commands(Protocol):
    """Runs commands for one chat's agent."""

    async def run(self, wanted: CommandWanted) -> RunningCommand:
        """Start one. Raises `HostRefused`."""
        ...


class Files(Protocol):
    """Text files, in the folders that one chat works in and nowhere else."""

    async def read(self, uri: URI) -> str:
        """All of a file. Raises `HostRefused`."""
        ...

    async def write(self, uri: URI, text: str) -> None:
        """Make this the content of a file, which need not exist. Raises `HostRefused`."""
        ...


#: What an attachment stands for that says only where to look.
Attached: TypeAlias = Transcript | Remarks


class OpenRequest(Discreet, frozen=True):
    """What a backend is opened for. `config` holds the session's configuration values.

    `history` is what a fork has in common with the chat it was made from, `context` what a side
    chat is to know of another chat without showing it, and `selection` the text in it that the side
    chat is about (R-9.7 to R-9.10); `attached` holds what the messages of both refer to, by the id
    of the turn. `tokens` are those of the client on whose behalf it is opened, by resource; never
    logged, never stored. `customizations` are the session's as far as they are known, with what
    people decided about them. `conversation` is what an earlier backend of the chat said that the
    agent itself knows it by (`ConversationNamed`). `commands` and `files` are what the host can do
    for the agent; None: nothing of the kind. `servers` are the MCP servers that clients have, by
    name and as editors write them, and `plugins` the plugins that they brought. `parent` is what
    the agent knows a conversation by that has just `history` in it, and nothing else yet.
    """

    hidden = frozenset({"tokens", "servers"})

    session: URI
    chat: URI
    working_directories: Sequence[URI] = ()
    config: Object = field(default_factory=dict)
    history: Sequence[Turn] = ()
    context: Sequence[Turn] = ()
    selection: str | None = None
    attached: Mapping[str, Sequence[Attached]] = field(default_factory=dict)
    tokens: Mapping[str, str] = field(default_factory=dict)
    customizations: Sequence[Customization] = ()
    conversation: str | None = None
    commands: Commands | None = None
    files: Files | None = None
    servers: Object = field(default_factory=dict)
    plugins: Sequence[URI] = ()
    parent: str | None = None


class Ran(Struct, frozen=True):
    """What a person had the host run on a terminal: the command, a sentence on how it ended.

    `output` is the end of what it said, without escape sequences.
    """

    command: str
    outcome: str
    output: str = ""


class Prompt(Struct, frozen=True):
    """One turn's work. `resume` means: go on with the turn that failed, the message is the same.

    `tools` are those that clients offer for this turn, under the names that the model is to know
    them by; the backend says `ClientToolCalled` when it calls one. `attached` is what the message's
    attachments of chats and annotations stand for, in their order.

    `ran` is what people ran on terminals since the last prompt.

    `waiting`, given to an `Enduring` agent's backend alone: the turn was left when it waited for an
    answer about this; ask for it once more, in the same words, and go on from there.

    `window`: seconds in which text that follows other text may be gathered; 0: not at all.
    """

    turn_id: str
    message: Message
    resume: bool = False
    tools: Sequence[ToolDefinition] = ()
    attached: Sequence[Attached] = ()
    waiting: str | None = None
    window: float = 0.0
    ran: Sequence[Ran] = ()


class Permission(Struct, frozen=True):
    """The answer to a `ToolAsks`. `input` holds the edited input when somebody changed it."""

    call_id: str
    approved: bool
    option_id: str | None = None
    input: str | None = None
    reason: str | None = None


class Answers(Struct, frozen=True):
    """The answer to `QuestionsAsked`; decline and cancel are answers too (R-11.10)."""

    request_id: str
    response: ChatInputResponseKind
    answers: Mapping[str, ChatInputAnswer] = field(default_factory=dict)


class Verdict(Struct, frozen=True):
    """Whether the result of a finished call may be used (`ToolFinished.asks_approval`)."""

    call_id: str
    approved: bool


class ClientResult(Struct, frozen=True):
    """What came of a `ClientToolCalled`; a client that is gone gives a failed result."""

    call_id: str
    result: ToolCallResult


class Authorized(Discreet, frozen=True):
    """The token that a `ToolNeedsAuth` waited for; None: there will be none, the call is over."""

    hidden = frozenset({"token"})

    call_id: str
    token: str | None


class Released(Struct, frozen=True):
    """Somebody lets the terminal of a call be: the call may finish, what runs goes on (R-12.6)."""

    call_id: str


#: What a waiting backend is told. One for something that does not wait is ignored.
Answer: TypeAlias = Permission | Answers | Verdict | ClientResult | Authorized | Released


class Backend(Protocol):
    """Drives one agent for one chat. One turn at a time.

    `prompt` and `aside` run in tasks of their own; the sync methods are called while they do, and
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
        """Somebody decided about what the agent waits for. Anything else is ignored."""
        ...

    async def rewind(self, turn_id: str | None) -> None:
        """Forget every turn after this one; None: all of them.

        Called between turns, and only where `Agent.can_rewind`; also of a backend that was opened
        since. Raises `AgentFailed`.
        """
        ...

    def switch(self, customization_id: str, enablement: Sequence[CustomizationEnablement]) -> None:
        """Somebody decided where a customization is on; only where `Agent.can_switch`.

        All decisions, the most specific first (R-18.10). Backends opened later get them with the
        `OpenRequest`.
        """
        ...

    def control(self, server_id: str, request: ServerRequest) -> None:
        """Somebody wants something of an MCP server; only where `Agent.can_control`.

        What becomes of it is told with `ServerChanged`.
        """
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

    @property
    def can_rewind(self) -> bool:
        """Whether its backends can forget turns."""
        ...

    @property
    def can_switch(self) -> bool:
        """Whether its backends can turn customizations on and off."""
        ...

    @property
    def can_control(self) -> bool:
        """Whether its backends can be told to start and stop MCP servers."""
        ...

    async def open(self, request: OpenRequest) -> Backend:
        """A backend for one chat; raises `AgentFailed`."""
        ...

    async def forget(self, request: OpenRequest) -> None:
        """Delete what the agent itself keeps of a chat that has ended, if it keeps anything.

        Its backend has been closed, if it ever had one. Raises `AgentFailed`.
        """
        ...


@runtime_checkable
class Changing(Protocol):
    """An agent whose `info` may change while the host runs, as when its models become known."""

    def watch(self, changed: Callable[[], None]) -> None:
        """Call `changed` whenever `info` may be another; whoever was told before is not any more.

        `changed` is sync and never fails.
        """
        ...


class ConfigContext(Struct, frozen=True):
    """Where a session is to be, and what has been chosen for it so far.

    `may_wait`: somebody wants to choose, and waits while it is found out what there is.
    """

    working_directory: URI | None = None
    values: Object = field(default_factory=dict)
    may_wait: bool = False


class Configuration(Struct, frozen=True):
    """What can be set in a session. `chat_scoped`: settings that each chat has for itself."""

    schema: SessionConfigSchema
    chat_scoped: frozenset[str] = frozenset()


@runtime_checkable
class Configurable(Protocol):
    """An agent whose sessions can be configured."""

    async def config_schema(self, context: ConfigContext) -> Configuration:
        """What can be set here, which may depend on what was chosen; raises `AgentFailed`."""
        ...

    async def config_values(
        self, context: ConfigContext, key: str, query: str
    ) -> Sequence[SessionConfigValueItem]:
        """Values for a setting marked `enumDynamic`; with an empty query the first to offer."""
        ...

    def config_refusal(self, key: str, value: JSON) -> str | None:
        """Why this agent does not take a value that fits the schema, for people; None: it does."""
        ...


@runtime_checkable
class Authorizable(Protocol):
    """A backend that takes tokens for its MCP servers while it lives."""

    def authorize_server(self, server_id: str, token: str) -> None:
        """Here is the token that this server waits for; it says `ServerChanged` when it goes on."""
        ...


class PastConversation(Struct, frozen=True):
    """A conversation that an agent keeps: what it knows it by, and what it says of it.

    `modified_at` is an ISO time; `folder` is where it was at work.
    """

    name: str
    title: str | None = None
    folder: URI | None = None
    modified_at: str | None = None


class PastTurn(Struct, frozen=True):
    """What was said in such a conversation, from one message to the next."""

    message: Message
    events: Sequence[Event] = ()


@runtime_checkable
class Remembering(Protocol):
    """An agent that keeps conversations, some of which began elsewhere."""

    async def conversations(self) -> Sequence[PastConversation] | None:
        """All that it keeps; None: it does not tell. Raises `AgentFailed`."""
        ...

    async def recall(self, conversation: PastConversation) -> Sequence[PastTurn]:
        """What was said in one, the oldest first. Raises `AgentFailed`."""
        ...


@runtime_checkable
class Leaving(Protocol):
    """An agent that can be signed out."""

    async def sign_out(self, resource: str) -> None:
        """Somebody took back the token of this resource of its. Raises `AgentFailed`."""
        ...


@runtime_checkable
class Enduring(Protocol):
    """An agent that can go on with a turn which waited for people when the host was left."""

    def takes_up(self, waiting: str) -> bool:
        """Whether a new backend can take the answer to what was asked under this id."""
        ...


@runtime_checkable
class Tunable(Protocol):
    """A backend that takes other settings while it lives; any other is opened again for them."""

    def configure(self, values: Object) -> None:
        """Use these settings, which are all there are, from now on."""
        ...
