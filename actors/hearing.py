"""`Hearing`: where the things go that a chat's agent says: into which chat, or to the session.

An agent speaks in a turn of its chat, beside its turns, and for the workers that it has at work in
chats of their own (`actors.workers`). In a turn everything counts; beside turns only what belongs
to none, and a question that nobody could see is refused at once (hazard B28).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from actors.client_calls import ClientCalls, ClientSilent
from actors.conversation import Conversation
from actors.host import Host
from actors.ledger import Channel
from actors.messages import AgentChanged, AgentSaysMeta, Authorize, ChatConfigured, ChatTitled
from actors.outputs import OutputDue
from actors.rules.values import fault
from actors.run import Engine
from actors.serving_agents import claim_for_call, let_be
from actors.telling import tell
from actors.workers import Workers
from ahpd.agents import events as ev
from ahpd.agents.events import Outcome
from ahpd.agents.port import Authorized
from ahpd.protocol import chat_actions as act
from ahpd.protocol.actions import StateAction
from ahpd.protocol.session import SessionState
from ahpd.protocol.uris import URI
from ahpd.reducers.change import id_of
from supervisors import Actor, Ref

#: What an agent may say at any time: it belongs to no turn.
_BESIDE_TURNS = (
    ev.TitleProposed
    | ev.CommandsChanged
    | ev.CustomizationsChanged
    | ev.ServerChanged
    | ev.MetaChanged
    | ev.ConversationNamed
    | ev.SettingsChanged
    | ev.BackgroundSet
    | ev.BackgroundGone
    | ev.WorkerSays
    | ev.WorkerEnded
)


class Hearing:
    """See the module. `moved` is called with a channel whose row may have changed."""

    def __init__(
        self,
        host: Host,
        channel: Channel,
        engine: Engine,
        *,
        actor: Actor[Any],
        session: Ref[Any],
        moved: Callable[[Channel], None],
    ) -> None:
        self._host = host
        self._channel = channel
        self._engine = engine
        self._actor = actor
        self._calls = ClientCalls(host, actor)
        self._session = session
        self._moved = moved
        self.talk = self._open_talk(channel)
        self._workers = Workers(
            host,
            channel,
            open_talk=self._open_talk,
            hear=self._hear,
            hear_beside=self._hear_beside,
            tell_agent=engine.tell,
            release=lambda over: self._release(lambda chat: chat == over),
            moved=moved,
        )

    def _open_talk(self, channel: Channel) -> Conversation:
        engine = self._engine
        return Conversation(self._host, channel, self._actor, engine.waits, engine.tell)

    def talk_in(self, channel: Channel) -> Conversation:
        """The conversation in the chat itself, or in that of a worker."""
        return self.talk if channel is self._channel else self._workers.talk_in(channel)

    # ---- what is said ------------------------------------------------------------------------

    def hear(self, event: ev.Event) -> None:
        """Something said in the running turn. Raises `ParseError` for what no JSON can hold."""
        self._hear(self.talk, event)

    def hear_text(self, events: Sequence[ev.TextChunk | ev.ThoughtChunk]) -> bool:
        """Pieces of text said in one go; False when each is to be heard by itself."""
        return self.talk.hear_text(events)

    def hear_beside(self, event: ev.Event) -> None:
        """Something said beside the turns, or after the turn it was meant for. Raises as `hear`."""
        self._hear_beside(self.talk, event)

    def _hear(self, speaker: Conversation, event: ev.Event) -> None:
        match event:
            case ev.WorkerStarted():
                self._workers.hear(speaker, event)
            case ev.ClientToolCalled():
                self._call_client(speaker, event)
            case _ if isinstance(event, _BESIDE_TURNS):
                self._hear_beside(speaker, event)
            case _:
                if speaker.hear(event):
                    self._moved(speaker.channel)
                self._claim(speaker, event)

    def _claim(self, speaker: Conversation, event: ev.Event) -> None:
        """Terminals belong to the call that shows them, while it runs."""
        if isinstance(event, ev.ToolOutput):
            claim_for_call(self._host, speaker.channel, event.call_id, event.content)
        elif isinstance(event, ev.ToolFinished):
            let_be(self._host, speaker.channel, event.call_id)

    def _hear_beside(self, speaker: Conversation, event: ev.Event) -> None:
        match event:
            case ev.TitleProposed():
                tell(self._session, ChatTitled(speaker.channel.uri, event.title))
            case ev.CommandsChanged() | ev.CustomizationsChanged() | ev.ServerChanged():
                tell(self._session, AgentChanged(event))
            case ev.MetaChanged():
                tell(self._session, AgentSaysMeta(self._channel.uri, event.meta))
            case ev.ConversationNamed() if speaker is self.talk:
                if event.name != self._channel.notes.conversation:
                    self._channel.note(conversation=event.name)
                    self._moved(self._channel)
            case ev.SettingsChanged() if speaker is self.talk:
                self._set(event)
            case ev.WorkerSays() | ev.WorkerEnded():
                self._workers.hear(speaker, event)
            case ev.BackgroundSet():
                located = self._workers.located(event)
                if located is not None:
                    speaker.hear_beside(located)
            case ev.BackgroundGone():
                speaker.hear_beside(event)
            case _:
                speaker.refuse(event)

    def _set(self, event: ev.SettingsChanged) -> None:
        """The agent set something: of what its session can be set to, that is said."""
        session = self._session_state
        if session is None or session.config is None:
            return
        schemas = session.config.schema.properties
        values = {
            key: value
            for key, value in event.values.items()
            if key in schemas and fault(schemas[key], value) is None
        }
        if values:
            tell(self._session, ChatConfigured(self._channel.uri, values))

    # ---- tools of clients --------------------------------------------------------------------

    def _call_client(self, speaker: Conversation, event: ev.ClientToolCalled) -> None:
        session = self._session_state
        if session is None:
            speaker.refuse(event)
            return
        self._calls.called(speaker, event, session, self._channel.notes.starter)
        self._moved(speaker.channel)

    @property
    def _session_state(self) -> SessionState | None:
        owner = self._channel.owner
        channel = self._host.ledger.find(owner) if owner is not None else None
        return channel.state if channel is not None else None

    def clients_moved(self) -> None:
        """Somebody takes part in the session no longer, perhaps: its calls have ended then."""
        session, path = self._session_state, self._channel.path
        if session is None:
            return
        mine = [each for each in self._host.ledger.channels.values() if each.path == path]
        for talk in self._calls.match(map(self.talk_in, mine), session):
            self._moved(talk.channel)

    def output_due(self, message: OutputDue) -> None:
        """Output of a call was held back for long enough."""
        channel = self._host.ledger.find(message.chat)
        if channel is not None and channel.path == self._channel.path:
            talk = self.talk_in(channel)
            if talk.output_due(message.call_id):
                self._moved(channel)

    def client_silent(self, message: ClientSilent) -> None:
        """The client of a call has had its time."""
        channel = self._host.ledger.find(message.chat)
        if channel is not None and channel.path == self._channel.path:
            talk = self.talk_in(channel)
            if self._calls.silent(talk, message):
                self._moved(channel)

    def client_says(self, channel: Channel, action: StateAction) -> None:
        """The envelope is out in which a client says something of a call of its tool."""
        match action:
            case act.ChatToolCallContentChangedAction():
                self._calls.heard(self.talk_in(channel), action.tool_call_id)
            case act.ChatToolCallCompleteAction():
                self._calls.over(self.talk_in(channel), action.tool_call_id)
            case _:
                pass

    def authorize(self, message: Authorize) -> bool:
        """A token came: the call goes on (R-10.29), wherever it is. False: it did not wait."""
        channel = self._host.ledger.find(message.chat)
        if channel is None or channel.path != self._channel.path:
            return False
        talk = self.talk_in(channel)
        turn = talk.state.active_turn
        if turn is None or not talk.desk.say(
            act.ChatToolCallAuthResolvedAction(turn_id=turn.id, tool_call_id=message.call_id)
        ):
            return False
        self._engine.answer(channel.uri, Authorized(message.call_id, message.token))
        self._moved(channel)
        return True

    # ---- what is over ------------------------------------------------------------------------

    def turn_is_over(self, turn_id: str, outcome: Outcome) -> None:
        """What was going on in the turn has ended too."""
        let_be(self._host, self._channel)
        self.talk.turn_is_over()
        self._calls.turn_over(self.talk)
        self._workers.end_turn(turn_id, outcome)

    def agent_is_gone(self, outcome: Outcome) -> None:
        """What it did beside the turns is gone with it (R-9.98)."""
        self._workers.end_all(outcome)
        for entry in self.talk.state.background_work or ():
            self.talk.desk.say(act.ChatBackgroundWorkRemovedAction(id=str(id_of(entry))))

    def release(self) -> None:
        """Nobody answers any more what was asked in turns that are over (R-11.15)."""
        running = self._workers.running_in()
        self._release(lambda chat: chat not in running)

    def _release(self, is_over: Callable[[URI], bool]) -> None:
        for answer in self._engine.waits.release(is_over):
            self._engine.tell(answer)
