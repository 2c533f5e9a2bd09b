"""A chat: takes turns, messages and confirmations from clients, and lets an agent work on them.

One turn runs at a time (R-9.32). It is in the state as `active_turn` from its start to its end; the
agent works on it in a *run*, a task beside the mailbox (`actors.run`), which starts when the turn's
start is out and may outlive the turn, because an agent that was cancelled needs time to settle.
The next run starts when the last one is over, so nothing of one turn can get into another.

What ends a turn: the agent (done, or failed, or silent for too long), a client's cancel, or this
actor starting again after it crashed. Each is one action with a duration (invariant 7), and what an
agent says after it is not shown; what it asks after it is refused at once. A running turn that is
dropped because somebody takes the conversation back to an earlier one is cancelled before.

What happens to waiting messages: a steering message goes to the running agent, if it takes such;
otherwise the turn is ended and the message starts the next one. Queued messages start, in order,
whenever nothing runs; only after an agent failed does the queue wait for a person to do something,
lest it burn against an agent that does not work (R-9.86).
"""

from __future__ import annotations

import logging
from functools import partial
from typing import Any, TypeAlias

import trio

from actors import mailboxes
from actors.answers import answers_in
from actors.attaching import attach, attached_to, detach, hand_on
from actors.authenticating import held_for, say_needs
from actors.beside import ran_beside
from actors.client_calls import ClientSilent
from actors.client_tools import definitions
from actors.commanding import Job, command_in, run_command
from actors.endings import cancelled, clear_activity, end_turn, note_start
from actors.enduring import Waiting, take_up
from actors.hearing import Hearing
from actors.host import Host
from actors.ledger import Channel
from actors.messages import (
    AgentReplaced,
    AgentSays,
    AsideFailed,
    AsideSays,
    Authorize,
    CancelOverdue,
    ClientsMoved,
    Dispatch,
    Echoed,
    LoadTurns,
    OpenAgent,
    Relocate,
    Relocation,
    RunBegan,
    RunOver,
    SilenceDue,
    StartTurn,
    TurnBegan,
)
from actors.outputs import OutputDue
from actors.paging import say_older, say_up_to
from actors.passing import for_session
from actors.patience import Patience
from actors.rules import chat as rules
from actors.run import Aside, Engine, Run, work
from actors.senders import note_sender, take_sender
from actors.settings import refusal_of
from actors.streaks import hear_all
from actors.telling import stir_chat, tell
from actors.upkeep import Errand, Upkeep, open_request
from ahpd.agents.events import Failed, Outcome, Stopped
from ahpd.agents.port import Backend, Prompt
from ahpd.protocol import chat_actions as act
from ahpd.protocol.actions import StateAction
from ahpd.protocol.chat import ActiveTurn, ChatState
from ahpd.protocol.jsontext import ParseError
from ahpd.protocol.messages import Message, PendingMessage
from ahpd.protocol.root import AgentCapabilities
from ahpd.protocol.session import SessionState
from supervisors import Actor, ChildSpec, Reject

_log = logging.getLogger("ahpd.agents")

Incoming: TypeAlias = (
    Dispatch
    | Echoed
    | StartTurn
    | RunBegan
    | AgentSays
    | AsideSays
    | AsideFailed
    | RunOver
    | CancelOverdue
    | SilenceDue
    | LoadTurns
    | Authorize
    | ClientsMoved
    | ClientSilent
    | OutputDue
    | AgentReplaced
    | Relocate
    | Errand
)


#: What means nothing to a chat that has ended, and must not look for a session that has, too.
_OF_OPEN_CHATS = (Dispatch, Echoed, SilenceDue, StartTurn)


class Chat(Actor[Incoming]):
    """One chat; see the module's docstring."""

    kind = "chat"

    def __init__(self, host: Host, channel: Channel) -> None:
        # The channel and not its URI: when this starts again the chat may have ended, and another
        # have been made under the same name.
        self._host = host
        self._channel = channel
        self._run: Run | None = None
        self._runs = 0
        #: The turn whose start is out, so that a run may work on it, and whether it is resumed.
        self._cleared: str | None = None
        self._resumes = False
        #: What the agent waited for in it when the host was left.
        self._waiting: Waiting | None = None
        self._engine = Engine(
            lambda: self._agent,
            channel,
            host.ledger.room,
            lambda: open_request(host, channel, self.system),
            self._start_aside,
        )
        self._patience = Patience(host, self._engine, self)
        #: An agent failed: the queue waits for a person.
        self._queue_held = False

    async def on_start(self) -> None:
        """End the turn that an earlier incarnation left running; then go on with the queue."""
        session = self.find(self.path.rsplit("/", 2)[0] + "/session")
        self._hearing = Hearing(
            self._host,
            self._channel,
            self._engine,
            actor=self,
            session=session,
            moved=self._moved,
        )
        self._desk = self._hearing.talk.desk
        self._upkeep = Upkeep(self._host, self._channel, self._engine, self, session)
        if self._channel.closed or self._channel.path != self.path:
            return  # it ended, or another actor answers for it: this one is about to be stopped
        lost = Failed(
            "the host had to start this chat again; what the agent was doing is lost",
            "HostRestarted",
            resumable=self._agent.can_resume,
        )
        self._take_up_or_end(lost)
        self._hearing.agent_is_gone(lost)
        self._moved()
        if self._opens_session:
            self._upkeep.take(OpenAgent())
        self._advance()

    def _take_up_or_end(self, lost: Failed) -> None:
        """A turn was left: by the host, when it may only wait for people, or by this actor."""
        turn = self._state.active_turn
        self._waiting = take_up(turn, self._channel, self._agent, self._engine.waits)
        if self._waiting is None:
            self._end_turn(lost)
        elif turn is not None:
            self._cleared = turn.id

    async def on_stop(self, reason: str) -> None:
        """Let go of the agent."""
        await self._engine.close()

    async def on_crash(self, error: BaseException | None) -> None:
        """Let go of the agent."""
        await self._engine.close()

    async def handle(self, message: Incoming) -> Any:
        """One message; see `actors.messages` for what each says."""
        if self._channel.closed and isinstance(message, _OF_OPEN_CHATS):
            return None  # it ended while this waited, and perhaps its session with it
        match message:
            case AgentSays():
                self._agent_says(message)
            case AsideSays():
                self._aside_says(message)
            case Dispatch():
                self._take(message)
            case Echoed(channel=channel):
                while channel.echoes:
                    self._echoed(channel, channel.echoes.pop(0))
            case RunBegan():
                self._steer()
            case RunOver():
                await self._run_over(message)
            case AsideFailed():
                await self._aside_failed(message)
            case CancelOverdue():
                await self._cancel_overdue(message)
            case SilenceDue():
                self._silence_due(message)
            case Authorize():
                if self._hearing.authorize(message):
                    self._patience.note_sound(self._run)
            case AgentReplaced():
                self._hearing.agent_is_gone(Stopped())
            case LoadTurns():
                say_older(
                    self._host.ledger, self._channel, message.cursor, self._host.settings.page
                )
            case StartTurn():
                self._start_turn(message.message, message.client_id)
            case ClientsMoved():
                self._hearing.clients_moved()
            case OutputDue():
                self._hearing.output_due(message)
            case ClientSilent():
                self._hearing.client_silent(message)
            case Relocate():
                return await self._relocate(message.move)
            case _:
                self._upkeep.take(message)
        return None

    # ---- what it is --------------------------------------------------------------------------

    @property
    def pid(self) -> int | None:
        """The process of its agent, if that has one."""
        return self._engine.pid

    @property
    def _state(self) -> ChatState:
        state: ChatState = self._channel.state
        return state

    @property
    def _owner(self) -> Channel | None:
        """The session that it belongs to now; None when that has ended."""
        owner = self._channel.owner
        return self._host.ledger.find(owner) if owner is not None else None

    @property
    def _session_state(self) -> SessionState | None:
        return self._owner.state if self._owner is not None else None

    def _tell_session(self, message: object) -> None:
        if self._owner is not None and message is not None:
            tell(self.find(self._owner.path), message)

    @property
    def _capabilities(self) -> AgentCapabilities | None:
        session = self._session_state
        return None if session is None else self._host.agent_of(session.provider).info.capabilities

    @property
    def _opens_session(self) -> bool:
        """The session waits for this chat's agent: it may have asked an earlier incarnation."""
        session = self._session_state
        return (
            session is not None
            and session.lifecycle == "creating"
            and session.default_chat == self._channel.uri
        )

    @property
    def _agent(self) -> Any:
        session = self._session_state
        assert session is not None, f"{self._channel.uri}: a chat without its session"
        return self._host.agent_of(session.provider)

    # ---- clients -----------------------------------------------------------------------------

    def _take(self, dispatch: Dispatch) -> None:
        """Judge a client's action and, when it is accepted, note what it consumed."""
        channel, wanted = dispatch.channel, dispatch.action
        if self._owner is None:
            return  # it has ended, and its channel with it: there is nobody to answer
        desk = self._hearing.talk_in(channel).desk
        case = rules.Case(
            channel,
            channel.state,
            self._session_state,
            dispatch.origin.client_id,
            self._host.ledger.state_of,
            self._capabilities,
            can_rewind=self._agent.can_rewind,
            can_resume=self._agent.can_resume or self._engine.backend is not None,
            lacks=held_for(self._host, dispatch.origin.client_id, self._agent).reason,
            refuses=refusal_of(self._agent),
        )
        if isinstance(wanted, act.ChatTruncatedAction) and rules.judge(case, wanted) is None:
            self._end_turn(Stopped())  # it is dropped, but every turn ends (invariant 7)
            say_up_to(self._host.ledger, self._channel, wanted.turn_id)
        match desk.take(dispatch, lambda _, action: rules.judge(case, action)):
            case act.ChatTurnStartedAction() as action:
                self._attach(action.turn_id, action.message)
                self._note_start(action.turn_id, action.message, dispatch.origin.client_id)
            case act.ChatTurnResumeAction():
                self._channel.note(starter=dispatch.origin.client_id)
            case act.ChatPendingMessageSetAction() as action:
                note_sender(self._channel, action.id, dispatch.origin.client_id)
                self._attach(action.id, action.message)
            case act.ChatPendingMessageRemovedAction() as action:
                # Sent again it would be a second wish, as one that was taken up (invariant 6).
                self._channel.consume(action.id)
                take_sender(self._channel, action.id)
                detach(self._channel, action.id)
            case act.ChatTurnCancelledAction() as action:
                self._turn_is_over(action.turn_id, cancelled(self._host))
            case act.ChatTruncatedAction() as action:
                # What is queued waits for a person, who went back to say something else.
                self._channel.note(cut=(action.turn_id,))
                self._queue_held = True
            case None:
                self._tell_session(for_session(case, wanted))
                return
            case action:
                self._tell_session(for_session(case, action))
        self._moved(channel)

    def _attach(self, key: str, message: Message) -> None:
        attach(self._channel, key, message, self._host.ledger.state_of)

    def _echoed(self, channel: Channel, action: StateAction) -> None:
        """The envelope is out: the side effects of an action, after a fresh look at the state."""
        for answer in answers_in(action, channel.state):
            if self._engine.answer(channel.uri, answer):
                self._patience.note_sound(self._run)
        self._hearing.client_says(channel, action)
        if channel is not self._channel:
            return
        match action:
            case act.ChatTurnStartedAction() | act.ChatTurnResumeAction():
                self._cleared = action.turn_id
                self._resumes = isinstance(action, act.ChatTurnResumeAction)
                self._queue_held = False
            case act.ChatTurnCancelledAction():
                self._stop_run(action.turn_id)
            case act.ChatTruncatedAction():
                self._stop_dropped_run()
            case act.ChatPendingMessageSetAction(kind="steering"):
                self._steer()
            case act.ChatPendingMessageSetAction() | act.ChatQueuedMessagesReorderedAction():
                self._queue_held = False
            case _:
                return
        self._advance()

    async def _relocate(self, move: Relocation) -> bool:
        """Have the chat moved when nothing is left that this actor would have to see to.

        Its agent is let go of first: there must not be two that work on one conversation.
        """
        move.check()
        if self._run is not None:
            raise Reject("the agent of this chat has not stopped yet")
        if move.leaves:
            await self._engine.close()
        waiting = self.ref.statistics()
        if waiting is None or waiting.depth or waiting.urgent or self._desk.under_way:
            return False
        move.carry_out()
        return True

    # ---- the agent ---------------------------------------------------------------------------

    def _start_aside(self, backend: Backend, opened: int) -> Aside:
        aside = Aside(backend, opened, self._engine.room, self.ref)
        aside.helper = self.spawn(aside.run, name=f"aside {opened}", kind="agent")
        return aside

    def _agent_says(self, message: AgentSays) -> None:
        """What the agent says in the run that it works in; after its turn, little of it counts."""
        run = self._run
        if run is None or run.number != message.run:
            return  # of an agent that is gone (hazards B17, B41)
        self._patience.note_sound(run)
        hear_all(
            self._hearing, message.events, partial(self._listens_to, run), partial(self._bad, run)
        )

    def _listens_to(self, run: Run) -> bool:
        turn = self._state.active_turn
        return not run.stopping and turn is not None and turn.id == run.turn_id

    def _bad(self, run: Run, error: ParseError) -> None:
        self._end_turn(Failed(f"the agent said what no client could read: {error}"))
        self._stop_run(run.turn_id)
        self._moved()

    def _aside_says(self, message: AsideSays) -> None:
        if message.opened != self._engine.opened or self._engine.backend is None:
            return  # of an agent that is gone
        for event in message.events:
            try:
                self._hearing.hear_beside(event)
            except ParseError as error:
                _log.warning("%s: the agent said what no client can read: %s", self.path, error)

    async def _run_over(self, message: RunOver) -> None:
        run = self._run
        if run is None or run.number != message.run:
            return
        self._run = None
        turn = self._state.active_turn
        if turn is not None and turn.id == run.turn_id:
            self._queue_held = isinstance(message.outcome, Failed)
            self._end_turn(message.outcome)
            say_needs(self._host, self._channel, message.outcome)
        self._hearing.release()
        if message.broken:
            await self._drop_agent(message.outcome)
        self._moved()
        self._advance()

    async def _aside_failed(self, message: AsideFailed) -> None:
        """The agent broke down beside its turns: as when it does in one."""
        if message.opened != self._engine.opened or self._engine.backend is None:
            return
        run, self._run = self._run, None
        turn = self._state.active_turn
        if run is not None and run.helper is not None:
            run.helper.cancel("the agent broke down")
        if run is not None and turn is not None and turn.id == run.turn_id:
            self._queue_held = True
            self._end_turn(message.outcome)
        await self._drop_agent(message.outcome)
        self._moved()
        self._advance()

    async def _drop_agent(self, outcome: Outcome) -> None:
        await self._engine.close()
        self._hearing.agent_is_gone(outcome)

    def _silence_due(self, message: SilenceDue) -> None:
        """An agent that says nothing has a limit, unless it waits for people."""
        run, turn = self._run, self._state.active_turn
        if run is None or run.number != message.run or run.stopping or turn is None:
            return
        lost = self._patience.lost(run, can_resume=self._agent.can_resume)
        if lost is not None:
            self._queue_held = True
            self._end_turn(lost)
            self._stop_run(turn.id)
            self._moved()

    def _stop_run(self, turn_id: str) -> None:
        """Ask the agent to stop working on a turn that has ended; once (hazard B17)."""
        run = self._run
        if run is None or run.turn_id != turn_id or run.stopping:
            return
        self._patience.stop(run)
        self._hearing.release()

    def _stop_dropped_run(self) -> None:
        """A turn that was taken away is not worked on any more."""
        run, turn = self._run, self._state.active_turn
        if run is not None and (turn is None or turn.id != run.turn_id):
            self._stop_run(run.turn_id)

    async def _cancel_overdue(self, message: CancelOverdue) -> None:
        """The agent was asked to stop and did not: end the run, and the agent with it."""
        run = self._run
        if run is None or run.number != message.run:
            return
        if run.helper is not None:
            run.helper.cancel("the agent did not stop when it was asked to")
        self._run = None
        await self._drop_agent(Stopped())
        self._advance()

    # ---- turns -------------------------------------------------------------------------------

    def _advance(self) -> None:
        """Start what can start now: a run for the turn that waits for one, or the next message."""
        if self._run is not None or self._channel.closed:
            return
        turn = self._state.active_turn
        if turn is not None:
            if turn.id == self._cleared:
                self._start_run(self._prompt(turn))
            return
        steering, queued = self._state.steering_message, self._state.queued_messages
        if steering is not None:
            self._start_pending("steering", steering)
        elif queued and not self._queue_held:
            self._start_pending("queued", queued[0])

    def _prompt(self, turn: ActiveTurn) -> Prompt:
        session, attached = self._session_state, attached_to(self._channel, turn.id)
        tools = () if session is None else definitions(session)
        waiting, self._waiting = self._waiting, None
        about = waiting.about if waiting is not None else None
        window, ran = self._host.settings.delta_window, ran_beside(self._state)
        return Prompt(turn.id, turn.message, self._resumes, tools, attached, about, window, ran)

    def _start_run(self, prompt: Prompt) -> None:
        self._runs += 1
        run = self._run = Run(self._runs, prompt.turn_id)
        name = f"run {run.number}"
        if command_in(self._host, prompt.message) is not None:
            run.stopped = trio.Event()
            job = Job(self._host, self.system, self._channel, run, prompt, self.ref)
            run.helper = self.spawn(run_command, job, name=name, kind="agent")
            return
        run.helper = self.spawn(work, self._engine, run, prompt, self.ref, name=name, kind="agent")
        self._patience.watch(run)

    def _start_pending(self, kind: Any, pending: PendingMessage) -> None:
        """Take a waiting message up into a turn: the two steps of R-9.79."""
        self._take_pending(kind, pending)
        sender = take_sender(self._channel, pending.id)
        self._start_turn(pending.message, sender, pending.id)

    def _start_turn(
        self, message: Message, client_id: str | None, pending_id: str | None = None
    ) -> None:
        """A turn that the host starts for a client; nothing may be running."""
        turn_id = self._host.new_id()
        if pending_id is None:
            self._attach(turn_id, message)
        else:
            hand_on(self._channel, pending_id, turn_id)
        self._note_start(turn_id, message, client_id)
        self._desk.say_and_act(
            act.ChatTurnStartedAction(
                turn_id=turn_id,
                started_at=self._host.clock.now(),
                message=message,
                queued_message_id=pending_id,
            )
        )
        self._moved()

    def _take_pending(self, kind: Any, pending: PendingMessage) -> None:
        self._channel.consume(pending.id)
        self._desk.say(act.ChatPendingMessageRemovedAction(kind=kind, id=pending.id))

    def _steer(self) -> None:
        """Give the steering message to the agent, or end its turn so that it starts the next.

        One with chats or annotations attached starts a turn: only with a prompt can these be given.
        """
        run, pending = self._run, self._state.steering_message
        turn = self._state.active_turn
        if pending is None or turn is None or run is None or run.stopping:
            return  # `_advance` makes it a turn as soon as nothing runs
        if not run.prompted:
            return  # the agent must get the turn's own message first; `RunBegan` comes then
        backend = self._engine.backend
        plain = pending.id not in self._channel.notes.attached
        plain &= command_in(self._host, pending.message) is None
        if plain and backend is not None and backend.steer(pending.message):
            self._take_pending("steering", pending)
        else:
            self._end_turn(Stopped())
            self._stop_run(turn.id)
            self._moved()

    def _note_start(self, turn_id: str, message: Message, client_id: str | None) -> None:
        """A turn starts for a client: its id is used up, and it may name the conversation."""
        self._channel.note(starter=client_id)
        self._channel.consume(turn_id)
        note_start(self._host, self._channel, turn_id)
        self._tell_session(TurnBegan(self._channel.uri, message.text))

    def _end_turn(self, outcome: Outcome) -> None:
        turn = self._state.active_turn
        if turn is not None and end_turn(self._host, self._channel, outcome):
            self._turn_is_over(turn.id, outcome)

    def _turn_is_over(self, turn_id: str, outcome: Outcome) -> None:
        """Whoever ended it: what was going on in it has ended too."""
        clear_activity(self._host, self._channel)
        self._hearing.turn_is_over(turn_id, outcome)

    def _moved(self, channel: Channel | None = None) -> None:
        """Let the session look at a chat's row (this one's) and at what waits in it."""
        stir_chat(self.find, channel or self._channel, self._owner)


def child_id(chat: Channel) -> str:
    """The id of a chat under its session's supervisor."""
    return "chat-" + chat.path.rpartition("/")[2]


def chat_spec(host: Host, chat: Channel) -> ChildSpec:
    """How a chat's actor is supervised."""
    return ChildSpec(
        child_id(chat),
        Chat,
        (host, chat),
        mailbox=mailboxes.CHANNEL,
        path=chat.path,
    )
