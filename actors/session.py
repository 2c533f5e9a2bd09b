"""A session: its chats, who takes part in it, and what of it waits for people.

What it says about its chats it reads off their states (`actors.summaries`): whenever a chat may
have moved it looks, compares with what it said last, and says the difference. It looks at all of
them when it starts, so nothing that was missed in a crash stays wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, TypeAlias

from actors import customizing, directories, mailboxes
from actors.annotations import annotations_spec
from actors.chat import chat_spec, child_id
from actors.desk import Desk
from actors.edits import Edits
from actors.endings import close_channel
from actors.forgetting import forget
from actors.host import Host
from actors.ledger import Channel
from actors.making import chat_path, supervisor_id, supervisor_of
from actors.messages import (
    AgentChanged,
    AgentSaysMeta,
    AuthorizeServer,
    ChatArchived,
    ChatConfigured,
    ChatMoved,
    ChatOpened,
    ChatTitled,
    ClientLeft,
    ClientsMoved,
    ConfigMoved,
    Control,
    CreateChat,
    Dispatch,
    DisposeChat,
    Echoed,
    MatchChats,
    OpenAgent,
    StartTurn,
    Switch,
    TurnBegan,
)
from actors.metas import set_meta
from actors.moving import say_movable, why_fixed
from actors.refusal import refusal
from actors.rules import session as rules
from actors.rules.messages import message_fault
from actors.rules.names import chat_name_fault
from actors.rules.titles import cut
from actors.settings import begin_chat, note, refusal_of
from actors.sources import beginning, made_chat
from actors.summaries import chat_row, input_needed, is_worker, row_changes
from actors.telling import stir_session, tell
from actors.upkeep import conversation_of
from ahpd.agents.events import CommandsChanged, CustomizationsChanged, ServerChanged
from ahpd.agents.port import ServerRequest
from ahpd.protocol import session_actions as act
from ahpd.protocol.actions import StateAction
from ahpd.protocol.chat import (
    ChatOrigin,
    ChatState,
    ChatSummary,
    CreateChatParams,
    ForkChatOrigin,
    PartialChatSummary,
    ToolChatOrigin,
)
from ahpd.protocol.common import ErrorInfo
from ahpd.protocol.errors import ErrorCode
from ahpd.protocol.model import Unknown
from ahpd.protocol.session import SessionInputRequest, SessionState
from ahpd.protocol.uris import URI
from ahpd.reducers.status import READ
from supervisors import Actor, Beyond, ChildSpec, NoSuchChild, Reject, SupervisorSpec

Incoming: TypeAlias = (
    Dispatch
    | Echoed
    | AgentChanged
    | ChatConfigured
    | AuthorizeServer
    | AgentSaysMeta
    | MatchChats
    | CreateChat
    | DisposeChat
    | ChatMoved
    | ChatOpened
    | TurnBegan
    | ChatTitled
    | ChatArchived
    | ClientLeft
)

#: Longest title made from a message, in characters.
TITLE = 60


#: What people want of MCP servers.
_REQUESTS: Mapping[type, ServerRequest] = {
    act.SessionMcpServerStartRequestedAction: "start",
    act.SessionMcpServerStopRequestedAction: "stop",
    act.SessionMcpServerBackgroundRequestedAction: "background",
}


class Session(Actor[Incoming]):
    """One session; see the module's docstring."""

    kind = "session"

    def __init__(self, host: Host, channel: Channel) -> None:
        # The channel and not its URI: when this starts again the session may have ended, and
        # another have been made under the same name.
        self._host = host
        self._channel = channel
        #: By chat.
        self._edits: dict[URI, Edits] = {}

    async def on_start(self) -> None:
        """Say what changed while nobody looked, and get ready if it is not yet."""
        self._desk = Desk(self._host, self._channel, self.ref)
        if self._channel.closed:
            return  # it ended: this actor is about to be stopped
        for row in self._state.chats:
            self._look_at(row.resource)
        for channel in list(self._host.ledger.channels.values()):
            if channel.owner == self._channel.uri:
                self._look_at(channel.uri)
        for entry in self._state.input_needed or ():
            if not isinstance(entry, Unknown) and self._row(entry.chat) is None:
                self._desk.say(act.SessionInputNeededRemovedAction(id=entry.id))
        self._drop_absent()
        stir_session(self.find, self._channel)
        self._tell_chats(lambda _: ClientsMoved())
        self._tell_chats(lambda _: ConfigMoved())
        self.ref.cast(MatchChats())
        if self._state.lifecycle == "creating" and self._state.default_chat is not None:
            chat = self._host.ledger.find(self._state.default_chat)
            if chat is not None:
                tell(self.find(chat.path), OpenAgent())

    async def handle(self, message: Incoming) -> Any:
        """One message; see `actors.messages` for what each says."""
        if self._channel.closed:  # it ended while this waited: its actors are on their way down
            if isinstance(message, CreateChat | DisposeChat):
                gone = f"there is no session {self._channel.uri}"
                raise refusal(ErrorCode.SESSION_NOT_FOUND, gone)
            return
        match message:
            case ChatMoved():
                self._look_at(message.chat)
            case Dispatch():
                self._take(message)
            case CreateChat():
                await self._create_chat(message.params, message.client_id)
            case DisposeChat():
                await self._dispose_chat(message.chat)
            case Echoed(channel=channel):
                while channel.echoes:
                    self._echoed(channel.echoes.pop(0))
            case AgentChanged():
                self._agent_changed(message.event)
            case ChatConfigured():
                self._chat_configured(message)
            case AuthorizeServer():
                self._tell_chats(lambda _: message)
            case AgentSaysMeta() if self._own_chat(message.chat) is not None:
                set_meta(self._host, self._channel, message.chat, message.meta)
            case ChatOpened():
                self._opened(message)
            case TurnBegan():
                self._turn_began(message)
            case ChatTitled():
                self._titled(message.chat, message.title)
            case ChatArchived():
                self._archived(message)
            case ClientLeft():
                self._client_left(message.client_id)
            case MatchChats():
                await self._match_chats()
        stir_session(self.find, self._channel)

    def _drop_absent(self) -> None:
        """Clients whose time was up while nobody was here to be told."""
        for client in self._state.active_clients:
            record = self._host.clients.find(client.client_id)
            if record is None or record.has_lost_place:
                self._desk.say(act.SessionActiveClientRemovedAction(client_id=client.client_id))

    # ---- what it is --------------------------------------------------------------------------

    @property
    def _state(self) -> SessionState:
        state: SessionState = self._channel.state
        return state

    def _chat(self, uri: URI) -> ChatState | None:
        state: ChatState | None = self._host.ledger.state_of(uri, "chat")
        return state

    def _row(self, uri: URI) -> ChatSummary | None:
        return next((row for row in self._state.chats if row.resource == uri), None)

    def _take(self, dispatch: Dispatch) -> None:
        agent = self._host.agent_of(self._state.provider)
        case = rules.Case(
            self._state,
            agent.info.capabilities,
            dispatch.origin.client_id,
            self._is_busy(),
            can_switch=agent.can_switch,
            can_control=agent.can_control,
            refuses=refusal_of(agent),
        )
        taken = self._desk.take(dispatch, lambda _, action: rules.judge(case, action))
        for chat, change in directories.narrowed(self._host, self._channel, taken):
            Desk(self._host, chat).say(change)
            self._look_at(chat.uri)
        if taken is None and isinstance(dispatch.action, act.SessionCustomizationToggledAction):
            self._show_again(dispatch.action.id)
        if isinstance(taken, act.SessionActiveClientRemovedAction):
            self._tell_chats(lambda _: ClientsMoved())
        if isinstance(taken, act.SessionConfigChangedAction):
            default = self._state.default_chat
            shown = self._host.ledger.find(default) if default is not None else None
            note(self._channel, shown, taken.config)

    def _client_left(self, client_id: str) -> None:
        """It takes no part any more, and what it was to do nobody does (R-10.36, R-10.37)."""
        if self._desk.say(act.SessionActiveClientRemovedAction(client_id=client_id)):
            self._tell_chats(lambda _: ClientsMoved())

    # ---- settings -----------------------------------------------------------------------------

    def _chat_configured(self, message: ChatConfigured) -> None:
        """Settings that a client changed on a chat's channel: that chat's own, or the session's."""
        chat = self._host.ledger.find(message.chat)
        if chat is None or chat.owner != self._channel.uri:
            return
        note(self._channel, chat, message.config)
        if not self._desk.say_and_act(act.SessionConfigChangedAction(config=message.config)):
            self._tell_chats(lambda _: ConfigMoved())  # another chat had the same value shown

    # ---- what it is customized with ----------------------------------------------------------

    def _echoed(self, action: StateAction) -> None:
        """The envelope is out: what somebody decided, and wants done, goes to the agents."""
        match action:
            case act.SessionConfigChangedAction():
                self._tell_chats(lambda _: ConfigMoved())
            case act.SessionCustomizationToggledAction():
                self._tell_chats(lambda _: Switch(action.id, action.enablement))
            case _ if (wanted := _REQUESTS.get(type(action))) is not None:
                server: str = action.id  # type: ignore[union-attr]
                default = self._state.default_chat
                self._tell_chats(lambda chat: Control(server, wanted, chat.uri == default))
            case _:
                pass

    def _tell_chats(self, message: Callable[[Channel], object]) -> None:
        for row in self._state.chats:
            channel = self._host.ledger.find(row.resource)
            if channel is not None and not is_worker(row):
                tell(self.find(channel.path), message(channel))

    def _show_again(self, wanted: str) -> None:
        """A decision that was not taken: whoever draws a switch has to see it as it is (R-18.12).

        Said though it changes nothing here, since it does where the decision was already drawn.
        """
        entry = customizing.holder(self._state.customizations or (), wanted)
        if entry is not None:
            action = act.SessionCustomizationUpdatedAction(customization=entry)
            self._host.ledger.append(self._channel, action, self._state)

    def _agent_changed(
        self, event: CommandsChanged | CustomizationsChanged | ServerChanged
    ) -> None:
        """What the last of the session's agents said counts: they are all of one kind."""
        tree = self._state.customizations or ()
        match event:
            case CommandsChanged():
                tree = customizing.with_commands(tree, self._state.provider, event.commands)
            case CustomizationsChanged():
                tree = customizing.with_agents(tree, event.customizations)
            case ServerChanged():
                self._desk.say(
                    act.SessionMcpServerStateChangedAction(
                        id=event.server, state=event.state, channel=event.channel
                    )
                )
                return
        if tree or self._state.customizations:
            self._desk.say(act.SessionCustomizationsChangedAction(customizations=tree))

    # ---- what its chats are doing ------------------------------------------------------------

    def _look_at(self, uri: URI) -> None:
        """Say what moved in a chat's row and in what waits there (R-7.43, R-11.16)."""
        row, channel = self._row(uri), self._host.ledger.find(uri)
        if channel is None or channel.kind != "chat":
            return
        channel.stirred = False
        say_movable(self._host, self._channel, channel)
        chat: ChatState = channel.state
        if row is None and is_worker(chat) and channel.owner == self._channel.uri:
            row = chat_row(chat, chat.title, None)  # an agent has opened it
            self._desk.say(act.SessionChatAddedAction(summary=row))
        if row is None:
            return
        edits = self._edits.setdefault(uri, Edits()).summary(chat.turns)
        changes = row_changes(row, chat_row(chat, row.title, edits))
        if changes is not None:
            self._desk.say(act.SessionChatUpdatedAction(chat=uri, changes=changes))
        self._mirror(uri, input_needed(chat))
        if uri == self._state.default_chat:
            self._desk.say(act.SessionActivityChangedAction(activity=chat.activity))
        if isinstance(chat.origin, ToolChatOrigin):
            self._look_at(chat.origin.chat)  # which can only be moved while its workers rest

    def _mirror(self, uri: URI, waiting: dict[str, SessionInputRequest]) -> None:
        """Make the session's list say what waits in this chat, and nothing else (R-11.20)."""
        for entry in self._state.input_needed or ():
            if not isinstance(entry, Unknown) and entry.chat == uri and entry.id not in waiting:
                self._desk.say(act.SessionInputNeededRemovedAction(id=entry.id))
        for entry in waiting.values():
            self._desk.say(act.SessionInputNeededSetAction(request=entry))

    def _turn_began(self, message: TurnBegan) -> None:
        """Something new to read (R-7.46), and perhaps a first message to be named after."""
        if int(self._state.status) & READ:
            self._desk.say(act.SessionIsReadChangedAction(is_read=False))
        row = self._row(message.chat)
        if row is not None and not row.title:
            named = message.chat == self._state.default_chat and self._state.title
            self._titled(message.chat, named or title_from(message.text))

    def _titled(self, uri: URI, title: str) -> None:
        """A chat has a name; the session is called as its default chat (R-24.30)."""
        row, title = self._row(uri), cut(title)
        if row is None or not title.strip() or row.title == title:
            return
        changes = PartialChatSummary(title=title)
        self._desk.say(act.SessionChatUpdatedAction(chat=uri, changes=changes))
        if uri == self._state.default_chat:
            self._desk.say(act.SessionTitleChangedAction(title=title))

    def _archived(self, message: ChatArchived) -> None:
        """R-9.91: the default chat is archived with its session."""
        if message.chat == self._state.default_chat:
            self._desk.say(act.SessionIsArchivedChangedAction(is_archived=message.is_archived))

    def _is_busy(self) -> bool:
        """Whether a turn runs in any of its chats."""
        chats = (self._chat(row.resource) for row in self._state.chats)
        return any(chat is not None and chat.active_turn is not None for chat in chats)

    def _opened(self, message: ChatOpened) -> None:
        """The first chat's agent is up, or will not come up: exactly one of the two (R-8.4)."""
        if self._state.lifecycle != "creating" or message.chat != self._state.default_chat:
            return
        if message.error is None:
            self._desk.say(act.SessionReadyAction())
        else:
            failed = message.error
            error = ErrorInfo(
                error_type=failed.error_type, message=failed.message, meta=failed.meta
            )
            self._desk.say(act.SessionCreationFailedAction(error=error))

    # ---- making and ending chats -------------------------------------------------------------

    async def _create_chat(self, params: CreateChatParams, client_id: str) -> None:
        """R-9.1 to R-9.12; the chat is in the catalogue before the answer goes out."""
        host = self._host
        agent = host.agent_of(self._state.provider).info
        if host.ledger.find(params.chat) is not None:
            if params.chat == self._state.default_chat:
                return  # some clients create it again, and mean no harm (quirk 24)
            raise refusal(ErrorCode.ALREADY_EXISTS, f"{params.chat} already exists")
        if agent.capabilities is None or agent.capabilities.multiple_chats is None:
            raise Reject(f"the agent {agent.provider} has one chat for each session")
        if self._state.lifecycle == "failed":
            raise Reject("the session could not be started")
        wrong = chat_name_fault(params.chat, self._channel.uri, list(host.agents))
        if wrong is not None:
            raise refusal(ErrorCode.INVALID_PARAMS, f"createChat: chat: {wrong}")
        begins = beginning(params, self._state, agent, self._own_chat)
        reason = message_fault(params.initial_message, host.ledger.state_of)
        if reason is not None:
            raise Reject(f"createChat: initialMessage: {reason}")
        title = self._inherited_title(begins.origin)
        chat = made_chat(params.chat, host.clock.now(), begins, title)
        if params.initial_message is None and why_fixed(host, self._channel, chat) is None:
            chat = chat.evolve(movable=True)
        path = chat_path(self._channel)
        channel = host.ledger.open(params.chat, "chat", chat, path, self._channel.uri)
        begin_chat(self._channel, channel, client_id)
        channel.note(
            heritage=begins.heritage, settings={**channel.notes.settings, **begins.settings}
        )
        channel.consume(*(turn.id for turn in begins.turns))
        self._desk.say(act.SessionChatAddedAction(summary=chat_row(chat, title, None)))
        spec = chat_spec(host, channel)
        await self.system.supervisor(self._supervisor).start_child(spec)
        if params.initial_message is not None:
            tell(self.find(path), StartTurn(params.initial_message, client_id))

    def _own_chat(self, uri: URI) -> Channel | None:
        """The channel of a chat of this session."""
        return self._host.ledger.find(uri) if self._row(uri) is not None else None

    def _inherited_title(self, origin: ChatOrigin) -> str:
        """A fork goes on with its source's conversation, and so with its name."""
        row = self._row(origin.chat) if isinstance(origin, ForkChatOrigin) else None
        return row.title if row is not None else ""

    @property
    def _supervisor(self) -> str:
        """Where the supervisor of this session and its chats is."""
        return supervisor_of(self._channel)

    def _chat_paths(self) -> list[str]:
        return self.system.registry.children(f"{self._supervisor}/chat")

    async def _dispose_chat(self, uri: URI) -> None:
        """R-9.17 to R-9.20; the chats of its workers go with it."""
        channel = self._host.ledger.find(uri)
        if channel is None or self._row(uri) is None:
            raise refusal(ErrorCode.NOT_FOUND, f"the session has no chat {uri}")
        if is_worker(channel.state):
            if channel.state.active_turn is not None:
                raise Reject("a worker stops with the turn that started it")
            self._remove(channel)
            return
        others = [row.resource for row in self._state.chats if not is_worker(row)]
        others.remove(uri)
        if not others:
            raise Reject("the last chat of a session cannot be ended; end the session instead")
        was_default = uri == self._state.default_chat
        for each in list(self._host.ledger.channels.values()):
            if each.path == channel.path and each is not channel:
                self._remove(each)
        self._say_removed(channel)
        if was_default:
            self._succeed(others[0])
        request = conversation_of(self._host, channel)
        close_channel(self._host, channel)
        with suppress(NoSuchChild):  # it came from another session and had no actor here yet
            await self._stop(child_id(channel))
        agent = self._host.agent_of(self._state.provider)
        self.spawn(forget, self._host, agent, [request], name=f"forget {uri}")

    def _remove(self, channel: Channel) -> None:
        self._say_removed(channel)
        close_channel(self._host, channel)

    def _say_removed(self, channel: Channel) -> None:
        for entry in self._state.input_needed or ():
            if not isinstance(entry, Unknown) and entry.chat == channel.uri:
                self._desk.say(act.SessionInputNeededRemovedAction(id=entry.id))
        self._desk.say(act.SessionChatRemovedAction(chat=channel.uri))
        set_meta(self._host, self._channel, channel.uri, None)

    def _succeed(self, uri: URI) -> None:
        """Another chat is the default one now, and speaks for the session (R-8.32)."""
        self._desk.say(act.SessionDefaultChatChangedAction(default_chat=uri))
        self._look_at(uri)
        channel = self._host.ledger.find(uri)
        if self._state.lifecycle == "creating" and channel is not None:
            tell(self.find(channel.path), OpenAgent())  # the one that was asked is gone

    async def _match_chats(self) -> None:
        """Finish what an earlier incarnation had begun: chats without an actor, and the reverse."""
        ledger = self._host.ledger
        mine = {
            channel.path: channel
            for channel in ledger.channels_of(self._channel.uri)
            if channel.kind == "chat" and not is_worker(channel.state)
        }
        running = set(self._chat_paths())
        supervisor = self.system.supervisor(self._supervisor)
        for path in sorted(mine.keys() - running):
            await supervisor.start_child(chat_spec(self._host, mine[path]))
        for path in sorted(running - mine.keys()):
            await self._stop("chat-" + path.rpartition("/")[2])

    async def _stop(self, child: str) -> None:
        supervisor = self.system.supervisor(self._supervisor)
        await supervisor.stop_child(child, "the session has this chat no longer")


def title_from(text: str) -> str:
    """A title from a message: its first line that says something, cut at a word."""
    line = next((line.strip() for line in text.splitlines() if line.strip()), "")
    if len(line) <= TITLE:
        return line
    head = line[:TITLE].rsplit(" ", 1)[0] or line[:TITLE]
    return head.rstrip(" ,.;:") + "…"


def session_spec(host: Host, session: Channel, chats: Sequence[Channel]) -> ChildSpec:
    """A session, its annotations and chats: each restarts alone, parked when it fails too often.

    A chat does not need its session's actor to go on with a turn, since the session reads what it
    missed off the chats' states; so a crash of either leaves the other alone. Dynamic, so that of a
    chat which ended nothing is left.
    """
    actor = ChildSpec(
        "session", Session, (host, session), mailbox=mailboxes.CHANNEL, path=session.path
    )
    annotations = annotations_spec(host, session)
    children = (actor, annotations, *(chat_spec(host, chat) for chat in chats))
    return ChildSpec(
        supervisor_id(session),
        SupervisorSpec(children, dynamic=True, beyond=Beyond.PARK),
        path=supervisor_of(session),
    )
