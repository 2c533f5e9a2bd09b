"""The messages that the host's actors send each other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from msgspec import Struct

from actors.ledger import Channel, Origin
from actors.subscriptions import Peer
from ahpd.agents.events import (
    CommandsChanged,
    CustomizationsChanged,
    Event,
    Failed,
    Outcome,
    ServerChanged,
)
from ahpd.agents.port import PastConversation, ServerRequest
from ahpd.protocol.actions import StateAction
from ahpd.protocol.chat import CreateChatParams
from ahpd.protocol.customizations import CustomizationEnablement
from ahpd.protocol.discreet import Discreet
from ahpd.protocol.messages import Message
from ahpd.protocol.model import JSON, Object
from ahpd.protocol.resources import ResourceWatchState
from ahpd.protocol.session import CreateSessionParams, SessionConfigState
from ahpd.protocol.uris import URI
from ahpd.resources.port import Watched
from supervisors import Request


class Dispatch(Struct, eq=False):
    """A client proposes an action on `channel`, to the actor that answers for it.

    `action` is None when `raw` could not be decoded; `fault` then says why. `answered` is set in
    the step that answers it, so that whoever finds it lost in a crash knows whether it took effect.
    """

    channel: Channel
    origin: Origin
    asker: Peer
    raw: JSON
    action: StateAction | None
    fault: str = ""
    answered: bool = False


class Echoed(Struct, frozen=True):
    """Envelopes are out: now the side effects of `channel.echoes` may start (R-5.8).

    One message for all that have come: however much a client sends, it fills no mailbox.
    """

    channel: Channel


# ---- to the catalogue ---------------------------------------------------------------------------


class Configured(Struct, frozen=True):
    """The configuration that a session begins with; `chat_scoped` settings each chat has itself."""

    state: SessionConfigState | None = None
    chat_scoped: frozenset[str] = frozenset()


class CreateSession(Struct, Request[None], frozen=True):
    """Make a session; `client_id` is the connection's."""

    params: CreateSessionParams
    client_id: str
    config: Configured = Configured()


class DisposeSession(Struct, Request[None], frozen=True):
    """End a session and everything in it."""

    session: URI


class SessionMoved(Struct, frozen=True):
    """Something in this session's summary may have changed: look."""

    session: URI


class CollectDraft(Struct, frozen=True):
    """This session has been unused for long: end it, if it still is."""

    session: URI


class WakeSession(Struct, Request[None], frozen=True):
    """This session is kept and not loaded, and somebody asks for it. Harmless when it is loaded."""

    session: URI


class LookForPast(Struct, frozen=True):
    """Somebody asked for a list: agents may keep conversations that it does not have."""


class PastFound(Struct, frozen=True):
    """These are all the conversations that an agent keeps."""

    provider: str
    conversations: Sequence[PastConversation]


class MatchSessions(Struct, frozen=True):
    """Give actors to the sessions that have none: one was made elsewhere."""


# ---- to the watches ------------------------------------------------------------------------------


class RelayWatch(Struct, Request[None], frozen=True):
    """Make the channel on which this client says what changed of its files."""

    channel: URI
    state: ResourceWatchState
    client_id: str


class OpenWatch(Struct, Request[None], frozen=True):
    """Make the channel on which is said what changes in files of this machine."""

    channel: URI
    state: ResourceWatchState
    watched: Watched
    client_id: str


class WatchFailed(Struct, frozen=True):
    """The actor at this path failed too often."""

    path: str


# ---- to the root ---------------------------------------------------------------------------------


class SessionsCounted(Struct, frozen=True):
    """How many sessions there are now."""

    count: int


# ---- to a session -------------------------------------------------------------------------------


class CreateChat(Struct, Request[None], frozen=True):
    """Make a chat in this session; `client_id` is the connection's."""

    params: CreateChatParams
    client_id: str


class DisposeChat(Struct, Request[None], frozen=True):
    """End a chat of this session."""

    chat: URI


class MatchChats(Struct, frozen=True):
    """Make the actors that run agree with the chats there are; sent to itself."""


class ChatMoved(Struct, frozen=True):
    """Something in this chat's row, or in what it waits for, may have changed: look."""

    chat: URI


class ChatOpened(Struct, frozen=True):
    """The chat's agent is up, or (with an `error`) will not come up."""

    chat: URI
    error: Failed | None = None


class TurnBegan(Struct, frozen=True):
    """A turn started in this chat, with this message."""

    chat: URI
    text: str


class ChatTitled(Struct, frozen=True):
    """A name for the chat, from its agent or from somebody who renamed it there."""

    chat: URI
    title: str


class AgentChanged(Struct, frozen=True):
    """The agent of one of its chats said what concerns the whole session."""

    event: CommandsChanged | CustomizationsChanged | ServerChanged


class ChatArchived(Struct, frozen=True):
    """Somebody archived this chat or took it back; of a default chat that means its session."""

    chat: URI
    is_archived: bool


class ClientLeft(Struct, frozen=True):
    """A client unsubscribed, stayed away too long, or came back without this session (R-10.36)."""

    client_id: str


class ChatConfigured(Struct, frozen=True):
    """A client changed settings on a chat's channel; they were judged there."""

    chat: URI
    config: Object


class AuthorizeServer(Discreet, frozen=True):
    """A token came that an MCP server of the session waits for (R-19.13)."""

    hidden = frozenset({"token"})

    server_id: str
    token: str


class AgentSaysMeta(Struct, frozen=True):
    """What this chat's agent has to say in the session's `_meta`; None: nothing any more."""

    chat: URI
    meta: Object | None


# ---- to a chat ----------------------------------------------------------------------------------


class StartTurn(Struct, frozen=True):
    """Start a turn with this message of a client's, in a chat that was just made (R-9.11)."""

    message: Message
    client_id: str


class ClientsMoved(Struct, frozen=True):
    """Who takes part in the session has changed: look."""


class ConfigMoved(Struct, frozen=True):
    """Settings of the session, or of this chat, may have changed: look."""


class AgentReplaced(Struct, frozen=True):
    """The backend was let go of and another opened, with other settings or tokens."""


class OpenAgent(Struct, frozen=True):
    """Bring the agent up before anybody needs it, and tell the session."""


class RunBegan(Struct, frozen=True):
    """The agent has a turn's message now, and can be given others."""


class AgentSays(Struct, frozen=True):
    """Events of the run with this number, in order."""

    run: int
    events: Sequence[Event]


class AsideSays(Struct, frozen=True):
    """Events that belong to no turn, from the backend that was opened as this one in number."""

    opened: int
    events: Sequence[Event]


class AsideFailed(Struct, frozen=True):
    """That backend broke down beside the turns."""

    opened: int
    outcome: Failed


class SilenceDue(Struct, frozen=True):
    """The run with this number may have been silent for too long: look."""

    run: int


class Authorize(Discreet, frozen=True):
    """Here is the token that a paused call waits for, in the chat or in that of a worker of its.

    A call that does not wait for one takes no notice.
    """

    hidden = frozenset({"token"})

    chat: URI
    call_id: str
    token: str


class LetBe(Struct, frozen=True):
    """A client lets the terminal of a call of this turn be (R-12.6)."""

    turn_id: str | None
    call_id: str


class Switch(Struct, frozen=True):
    """Somebody decided where a customization is on; all decisions, the most specific first."""

    customization_id: str
    enablement: Sequence[CustomizationEnablement]


class Control(Struct, frozen=True):
    """Somebody wants something of an MCP server; `opens`: for that the agent is brought up."""

    server_id: str
    request: ServerRequest
    opens: bool


class RunOver(Struct, frozen=True):
    """The run with this number has ended; nothing more comes from it.

    `broken`: the backend is of no use any more, and the next turn needs a new one.
    """

    run: int
    outcome: Outcome
    broken: bool = False


class CancelOverdue(Struct, frozen=True):
    """The run with this number was asked to stop and has not, in time."""

    run: int


class Relocation(Protocol):
    """A move of a chat (`actors.moving`)."""

    @property
    def leaves(self) -> bool:
        """Whether it goes to another session, where another actor answers for it."""
        ...

    def check(self) -> None:
        """Raise `Reject` if it cannot be done; changes nothing."""
        ...

    def carry_out(self) -> None:
        """Check again and do it, in one step."""
        ...


class Relocate(Struct, Request[bool], frozen=True):
    """Let the chat be moved, in a step in which nothing else waits for it; False: try again."""

    move: Relocation


class LoadTurns(Struct, Request[None], frozen=True):
    """Send the page of turns before `cursor` to the chat's subscribers."""

    cursor: str
