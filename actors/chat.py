"""A chat: takes turns, messages and confirmations from clients, and lets an agent work on them.

One turn runs at a time (R-9.32). It is in the state as `active_turn` from its start to its end; the
agent works on it in a *run*, a task beside the mailbox (`actors.run`), which starts when the turn's
start is out and may outlive the turn, because an agent that was cancelled needs time to settle.
The next run starts when the last one is over, so nothing of one turn can get into another.

What ends a turn: the agent (done, or failed), a client's cancel, or this actor starting again after
it crashed. Each is one action with a duration (invariant 7), and what an agent says after it is not
shown.

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
from actors.attaching import attach, attached_to, detach, hand_on
from actors.desk import Desk
from actors.endings import clear_activity, end_turn, note_start
from actors.host import Host
from actors.ledger import Channel
from actors.messages import (
    AgentSays,
    CancelOverdue,
    ChatArchived,
    ChatOpened,
    ChatTitled,
    Dispatch,
    Echoed,
    LoadTurns,
    OpenAgent,
    Relocate,
    Relocation,
    RunBegan,
    RunOver,
    StartTurn,
    TurnBegan,
)
from actors.paging import page_before
from actors.rules import chat as rules
from actors.run import Engine, Run, open_request, work
from actors.telling import stir_chat, tell
from actors.turn import actions_for
from ahpd.agents.events import Failed, Outcome, Stopped, TitleProposed
from ahpd.agents.port import AgentFailed, Permission, Prompt
from ahpd.protocol import chat_actions as act
from ahpd.protocol.actions import StateAction
from ahpd.protocol.chat import ChatState
from ahpd.protocol.jsontext import ParseError
from ahpd.protocol.messages import Message, PendingMessage
from ahpd.protocol.root import AgentCapabilities
from ahpd.protocol.session import SessionState
from ahpd.protocol.session_actions import SessionTitleChangedAction
from ahpd.protocol.uris import URI
from supervisors import Actor, ChildSpec, Reject

_log = logging.getLogger("ahpd.agents")

Incoming: TypeAlias = (
    Dispatch
    | Echoed
    | StartTurn
    | OpenAgent
    | RunBegan
    | AgentSays
    | RunOver
    | CancelOverdue
    | LoadTurns
    | Relocate
)

#: What an agent says all the time and no row depends on: no reason to look at the row.
_STREAM = (act.ChatDeltaAction, act.ChatReasoningAction, act.ChatToolCallDeltaAction)


class Chat(Actor[Incoming]):
    """One chat; see the module's docstring."""

    kind = "chat"

    def __init__(self, host: Host, uri: URI) -> None:
        channel = host.ledger.find(uri)
        assert channel is not None, f"{uri}: no channel for this chat"
        self._host = host
        self._channel: Channel = channel
        self._run: Run | None = None
        self._runs = 0
        #: The turn whose start is out, so that a run may work on it, and whether it is resumed.
        self._cleared: str | None = None
        self._resumes = False
        self._engine = Engine(self._agent, partial(open_request, host, channel))
        #: An agent failed: the queue waits for a person.
        self._queue_held = False

    async def on_start(self) -> None:
        """End the turn that an earlier incarnation left running; then go on with the queue."""
        self._desk = Desk(self._host, self._channel, self.ref)
        if self._channel.path != self.path:
            return  # moved away: another actor answers for it, and this one is about to be stopped
        if self._state.active_turn is not None:
            self._end_turn(
                Failed(
                    "the host had to start this chat again; what the agent was doing is lost",
                    "HostRestarted",
                    resumable=self._agent.can_resume,
                )
            )
        self._moved()
        if self._opens_session:
            self.spawn(self._open_agent, name="open")
        self._advance()

    async def on_stop(self, reason: str) -> None:
        """Let go of the agent."""
        await self._engine.close()

    async def on_crash(self, error: BaseException | None) -> None:
        """Let go of the agent."""
        await self._engine.close()

    async def handle(self, message: Incoming) -> Any:
        """One message; see `actors.messages` for what each says."""
        match message:
            case AgentSays():
                self._agent_says(message)
            case Dispatch():
                self._take(message)
            case Echoed():
                self._echoed(message.action)
            case RunBegan():
                self._steer()
            case RunOver():
                await self._run_over(message)
            case CancelOverdue():
                await self._cancel_overdue(message)
            case OpenAgent():
                self.spawn(self._open_agent, name="open")
            case LoadTurns():
                self._load_turns(message.cursor)
            case StartTurn():
                self._start_turn(message.message)
            case Relocate():
                return await self._relocate(message.move)
        return None

    # ---- what it is --------------------------------------------------------------------------

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
        if self._owner is not None:
            tell(self.find(self._owner.path), message)

    @property
    def _capabilities(self) -> AgentCapabilities | None:
        session = self._session_state
        return None if session is None else self._host.agents[session.provider].info.capabilities

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
        return self._host.agents[session.provider]

    # ---- clients -----------------------------------------------------------------------------

    def _take(self, dispatch: Dispatch) -> None:
        """Judge a client's action and, when it is accepted, note what it consumed."""
        case = rules.Case(
            self._channel,
            self._state,
            self._session_state,
            dispatch.origin.client_id,
            self._host.ledger.state_of,
            self._capabilities,
        )
        action = self._desk.take(dispatch, lambda _, action: rules.judge(case, action))
        match action:
            case act.ChatTurnStartedAction():
                self._attach(action.turn_id, action.message)
                self._note_start(action.turn_id, action.message)
            case act.ChatTurnCancelledAction():
                clear_activity(self._host, self._channel)
            case act.ChatPendingMessageSetAction():
                self._attach(action.id, action.message)
            case act.ChatPendingMessageRemovedAction():
                detach(self._channel, action.id)
            case None:
                self._pass_up(dispatch.action)
                return
            case _:
                self._pass_up(action)
        self._moved()

    def _attach(self, key: str, message: Message) -> None:
        attach(self._channel, key, message, self._host.ledger.state_of)

    def _pass_up(self, action: StateAction | None) -> None:
        """What was sent to the chat and is its session's to say, whatever it means for the chat.

        No chat action carries a title (quirk 22), and a default chat is archived with its session.
        """
        match action:
            case SessionTitleChangedAction(title=title) if title.strip():
                self._tell_session(ChatTitled(self._channel.uri, title))
            case act.ChatIsArchivedChangedAction(is_archived=is_archived):
                self._tell_session(ChatArchived(self._channel.uri, is_archived))
            case _:
                pass

    def _echoed(self, action: StateAction) -> None:
        """The envelope is out: the side effects of an action, after a fresh look at the state."""
        match action:
            case act.ChatTurnStartedAction() | act.ChatTurnResumeAction():
                self._cleared = action.turn_id
                self._resumes = isinstance(action, act.ChatTurnResumeAction)
                self._queue_held = False
            case act.ChatTurnCancelledAction():
                self._stop_run(action.turn_id)
            case act.ChatToolCallApprovedAction() | act.ChatToolCallDeniedAction():
                self._answer(action)
            case act.ChatPendingMessageSetAction(kind="steering"):
                self._steer()
            case act.ChatPendingMessageSetAction() | act.ChatQueuedMessagesReorderedAction():
                self._queue_held = False
            case _:
                return
        self._advance()

    def _answer(
        self, action: act.ChatToolCallApprovedAction | act.ChatToolCallDeniedAction
    ) -> None:
        """Tell the agent what somebody decided about a call that it asked about."""
        run, backend = self._run, self._engine.backend
        if run is None or run.stopping or run.turn_id != action.turn_id or backend is None:
            return
        if isinstance(action, act.ChatToolCallApprovedAction):
            permission = Permission(
                action.tool_call_id,
                approved=True,
                option_id=action.selected_option_id,
                input=action.edited_tool_input,
            )
        else:
            reason = action.reason_message
            permission = Permission(
                action.tool_call_id,
                approved=False,
                option_id=action.selected_option_id,
                reason=reason if reason is None or isinstance(reason, str) else reason.markdown,
            )
        backend.answer(permission)

    def _load_turns(self, cursor: str) -> None:
        """Say the page of turns before `cursor`; those who hold everything are told no cursor."""
        page = page_before(self._state, cursor, self._host.settings.page)
        if page is None:
            raise Reject(f"the chat has no turns behind the cursor {cursor}")
        self._host.ledger.append(
            self._channel,
            act.ChatTurnsLoadedAction(turns=page.turns),
            self._state,
            windowed=act.ChatTurnsLoadedAction(turns=page.turns, turns_next_cursor=page.older),
            page=(page.start, page.end),
        )

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

    async def _open_agent(self) -> None:
        """Helper: bring the agent up and tell the session how that went."""
        try:
            await self._engine.open()
        except AgentFailed as error:
            self._tell_session(ChatOpened(self._channel.uri, error.message))
        except Exception as error:  # noqa: BLE001 an agent's own code: not this chat's end
            _log.exception("%s: opening the agent failed", self._channel.uri)
            self._tell_session(ChatOpened(self._channel.uri, f"the agent crashed: {error}"))
        else:
            self._tell_session(ChatOpened(self._channel.uri))

    def _agent_says(self, message: AgentSays) -> None:
        run = self._run
        if run is None or run.number != message.run or run.stopping:
            return  # of a turn that has ended (hazards B17, B41)
        look = False
        for event in message.events:
            turn = self._state.active_turn
            if turn is None or turn.id != run.turn_id:
                return
            if isinstance(event, TitleProposed):
                self._tell_session(ChatTitled(self._channel.uri, event.title))
            try:
                for action in actions_for(turn, event):
                    look |= self._desk.say(action) and not isinstance(action, _STREAM)
            except ParseError as error:
                self._end_turn(Failed(f"the agent said what no client could read: {error}"))
                self._stop_run(turn.id)
                look = True
                break
        if look:
            self._moved()

    async def _run_over(self, message: RunOver) -> None:
        run = self._run
        if run is None or run.number != message.run:
            return
        self._run = None
        turn = self._state.active_turn
        if turn is not None and turn.id == run.turn_id:
            self._queue_held = isinstance(message.outcome, Failed)
            self._end_turn(message.outcome)
        if message.broken:
            await self._engine.close()
        self._moved()
        self._advance()

    def _stop_run(self, turn_id: str) -> None:
        """Ask the agent to stop working on a turn that has ended; once (hazard B17)."""
        run = self._run
        if run is None or run.turn_id != turn_id or run.stopping:
            return
        run.stopping = True
        backend = self._engine.backend
        if backend is None:
            self.ref.cast(CancelOverdue(run.number))  # still opening: nothing there to ask
            return
        if not run.prompted:
            return  # it will not be: a cancel now might be taken for one of the next turn (B17)
        backend.cancel()
        self.spawn(partial(self._overdue, run.number), name="cancel deadline")

    async def _overdue(self, number: int) -> None:
        """Helper: say when a cancel was not obeyed in time."""
        await trio.sleep(self._host.settings.cancel_within)
        self.ref.cast(CancelOverdue(number))

    async def _cancel_overdue(self, message: CancelOverdue) -> None:
        """The agent was asked to stop and did not: end the run, and the agent with it."""
        run = self._run
        if run is None or run.number != message.run:
            return
        if run.helper is not None:
            run.helper.cancel("the agent did not stop when it was asked to")
        self._run = None
        await self._engine.close()
        self._advance()

    # ---- turns -------------------------------------------------------------------------------

    def _advance(self) -> None:
        """Start what can start now: a run for the turn that waits for one, or the next message."""
        if self._run is not None:
            return
        turn = self._state.active_turn
        if turn is not None:
            if turn.id == self._cleared:
                attached = attached_to(self._channel, turn.id)
                self._start_run(Prompt(turn.id, turn.message, self._resumes, attached))
            return
        steering, queued = self._state.steering_message, self._state.queued_messages
        if steering is not None:
            self._start_pending("steering", steering)
        elif queued and not self._queue_held:
            self._start_pending("queued", queued[0])

    def _start_run(self, prompt: Prompt) -> None:
        self._runs += 1
        run = Run(self._runs, prompt.turn_id)
        run.helper = self.spawn(
            work, self._engine, run, prompt, self.ref, name=f"run {run.number}", kind="agent"
        )
        self._run = run

    def _start_pending(self, kind: Any, pending: PendingMessage) -> None:
        """Take a waiting message up into a turn: the two steps of R-9.79."""
        self._take_pending(kind, pending)
        self._start_turn(pending.message, pending.id)

    def _start_turn(self, message: Message, pending_id: str | None = None) -> None:
        """A turn that the host starts; nothing may be running."""
        turn_id = self._host.new_id()
        if pending_id is None:
            self._attach(turn_id, message)
        else:
            hand_on(self._channel, pending_id, turn_id)
        self._note_start(turn_id, message)
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
        self._channel.used.add(pending.id)
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
        plain = pending.id not in self._channel.attached
        if plain and backend is not None and backend.steer(pending.message):
            self._take_pending("steering", pending)
        else:
            self._end_turn(Stopped())
            self._stop_run(turn.id)
            self._moved()

    def _note_start(self, turn_id: str, message: Message) -> None:
        """A turn starts: its id is used up, and it may name the conversation."""
        self._channel.used.add(turn_id)
        note_start(self._host, self._channel, turn_id)
        self._tell_session(TurnBegan(self._channel.uri, message.text))

    def _end_turn(self, outcome: Outcome) -> None:
        end_turn(self._host, self._channel, outcome)

    def _moved(self) -> None:
        """Let the session look at this chat's row and at what waits in it."""
        stir_chat(self.find, self._channel, self._owner)


def child_id(chat: Channel) -> str:
    """The id of a chat under its session's supervisor."""
    return "chat-" + chat.path.rpartition("/")[2]


def chat_spec(host: Host, chat: Channel) -> ChildSpec:
    """How a chat's actor is supervised."""
    return ChildSpec(
        child_id(chat),
        Chat,
        (host, chat.uri),
        mailbox=mailboxes.CHANNEL,
        path=chat.path,
    )
