"""`AcpBackend`: one conversation with one agent's process.

Everything that the agent sends is read in one place, in its order, by the task beside the turns
(`aside`). What belongs to the running turn waits for the task of the turn (`prompt`), the response
that ends it behind everything before it; when too much waits, nothing more is read.

**Cancel.** The agent is told once, and all it asked is answered with `cancelled`. The turn is over
when its prompt is answered, whatever with, and not before, so nothing of it gets into the next one.
An agent that does not answer has the turn taken from it by whoever runs it; then its process group
is killed, and the next turn has another process.
"""

from __future__ import annotations

import logging
import signal
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import trio

from ahpd.agents.acp import handshake
from ahpd.agents.acp.asks import CANCELLED, Asks
from ahpd.agents.acp.children import Children
from ahpd.agents.acp.contents import block_text
from ahpd.agents.acp.early import REPLAYED, Early
from ahpd.agents.acp.handshake import Abilities, Begun, NotTakenUp, Where
from ahpd.agents.acp.mapping import Updates
from ahpd.agents.acp.process import AgentGone, AgentProcess
from ahpd.agents.acp.prompting import Before, blocks
from ahpd.agents.acp.rpc import AUTH_REQUIRED, Answered, Asked, Link, RpcFault
from ahpd.agents.acp.servers import for_agent
from ahpd.agents.acp.services import Services
from ahpd.agents.acp.settings import Setting
from ahpd.agents.acp.tolerant import dict_of, text_of
from ahpd.agents.acp.tuning import Tuning
from ahpd.agents.acp.turns import Turn
from ahpd.agents.events import (
    ConversationNamed,
    Done,
    Event,
    Failed,
    Outcome,
    Stopped,
    SystemNotice,
)
from ahpd.agents.port import (
    AgentFailed,
    Answer,
    EventSink,
    OpenRequest,
    Prompt,
    ServerRequest,
    SignInNeeded,
)
from ahpd.protocol.customizations import CustomizationEnablement
from ahpd.protocol.messages import Message
from ahpd.protocol.model import JSON, Object

if TYPE_CHECKING:
    from ahpd.agents.acp.agent import AcpAgent
    from ahpd.agents.acp.signin import Grant

_log = logging.getLogger("ahpd.agents.acp")

#: How many events that belong to no turn may wait before nothing more is read.
WAITING_BESIDE = 1000
#: A conversation that was taken up is settled when nothing has come for so many seconds, and after
#: so many in any case: agents may send what was said before after they answered (hazard B31).
QUIET = 0.3
SETTLED_WITHIN = 5.0
#: The same of an agent that was seen to say it all before its answer.
QUIET_AT_ONCE = 0.02
#: Seconds that an agent may take to close a conversation before its input ends.
CLOSE_WITHIN = 0.5
#: Characters kept of what an agent says between turns.
BETWEEN = 64 * 1024

_LOST = "The agent could not take up the conversation: it does not know what was said before."

#: How a turn ended that did not just end, by the agent's `stopReason`.
_STOPS: dict[str, Outcome] = {
    "end_turn": Done(),
    "cancelled": Stopped(),
    "max_tokens": Failed("the answer reached the limit of the model's tokens", "MaxTokens"),
    "max_turn_requests": Failed(
        "the agent reached its limit of requests to the model in one turn", "MaxTurnRequests"
    ),
    "refusal": Failed("the agent refuses to go on with this", "Refusal"),
}


#: The kinds of updates that are said to people whether or not a turn runs; and how many are kept.
_LATE = ("agent_message_chunk", "notice", "compaction_update")
_MOST_NOTICES = 20

#: What is served in any case.
_CAPABILITIES: dict[str, JSON] = {
    "session": {"configOptions": {"boolean": {}}, "notices": {}, "compaction": {}},
    "elicitation": {"form": {}, "url": {}},
    "plan": {},
    "subagents": {},
}


class AcpBackend:
    """See the module. Implements `Backend`. `begin` must be called first, and `close` last."""

    def __init__(
        self, agent: AcpAgent, process: AgentProcess, request: OpenRequest, where: Where
    ) -> None:
        self._agent = agent
        self._process = process
        self._where = where
        self._wanted = request.conversation
        self._parent = request.parent
        #: What a new conversation begins with, as text: what a fork has in common with another.
        self._before = Before(request.history, request.context, request.selection)
        self._link = Link(process, self)
        self._asks = Asks(self._link)
        commands = request.commands if agent.options.terminals else None
        files = request.files if agent.options.files else None
        self._services = Services(self._link, where.cwd, commands, files)
        self._updates = self._reader("")
        self._children = Children(lambda session: self._reader(f"{session}/"), _now)
        self._able = Abilities()
        self._session: str | None = None
        self._early = Early()
        self._turn: Turn | None = None
        self._beside: list[Event] = []
        self._beside_bell = trio.Event()
        self._beside_taken = trio.Event()
        #: When it said something last; and whether what it says may be of before.
        self._heard_at = 0.0
        self._replays = False
        self._replays_late = False
        #: What it said after a turn or before one, which is shown with the next.
        self._between = ""
        self._hears_between = True
        #: The host knows what the conversation is called; and what it is told with the next turn.
        self._is_named = False
        self._notices: list[str] = []
        self._tuning = Tuning(self._link, self._say_beside, self._notices.append)

    def _reader(self, prefix: str) -> Updates:
        return Updates(self._where.cwd, self._services.shown, prefix)

    @property
    def pid(self) -> int:
        """Its process, which may have ended."""
        return self._process.pid

    # ---- its beginning -----------------------------------------------------------------------

    async def begin(self, grant: Grant, config: Object) -> None:
        """Agree on everything, and begin a conversation or take one up. Raises `AgentFailed`."""
        failed: AgentFailed | None = None
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._link.run)
            try:
                await self._begin(grant)
                await self._tuning.set_all(config)
            except AgentFailed as error:  # out of the nursery it would be a group
                failed = error
            nursery.cancel_scope.cancel("the conversation has begun, or will not")
        if failed is not None:
            raise failed

    async def _begin(self, grant: Grant) -> None:
        agent = self._agent
        about = Abilities(agent.name, agent.command, conceal=self._process.concealed)
        capabilities: dict[str, JSON] = {**_CAPABILITIES, **self._services.capabilities}
        self._able = await handshake.initialize(self._link, about, agent.version, capabilities)
        agent.learned.meet(self._able)
        self._notices += for_agent(self._where.servers, self._able.servers)[1]
        learned = agent.learned
        if grant.method is not None and not (grant.once and learned.is_signed_in):
            await handshake.sign_in(self._link, self._able, grant.method)
            learned.is_signed_in = grant.once
        begun = await self._take_up() or await self._fork()
        if begun is None:
            begun = await handshake.new(self._link, self._able, self._where)
        else:
            self._before = Before()
        self._session = begun.session
        learned.begun.add(begun.session)
        self._heard_at = trio.current_time()
        if begun.replays:
            # One that resumes without a word has nothing to repeat.
            self._replays = begun.way != "resume" or bool(self._early)
        self._tuning.begin(begun.session, self._able, begun.answer)
        for params in self._early.take():
            self.heard("session/update", params)
        self._replays_late = False

    async def _fork(self) -> Begun | None:
        """Begin with a copy of the conversation that the chat was made from, if there is one."""
        parent = self._parent if self._wanted is None else None
        if parent is None:
            return None
        return await handshake.fork(self._link, self._able, parent, self._where)

    async def _take_up(self) -> Begun | None:
        """Go on with the conversation that is wanted; the second time that fails, without it.

        An agent that ended of it twice is not asked again. Raises `AgentFailed`.
        """
        wanted, lost = self._wanted, self._agent.learned.lost
        if wanted is None:
            return None
        why, begun = _LOST, None
        tried = lost.get(wanted, 0)
        try:
            if tried < 2:
                begun = await handshake.take_up(self._link, self._able, wanted, self._where)
            else:
                why = f"{_LOST} It ended twice when it should take it up."
        except NotTakenUp as error:
            if not tried:
                lost[wanted] = 1
                raise
            why = f"{_LOST} It said: {error.message}"
        except AgentGone:
            lost[wanted] = tried + 1
            raise
        if begun is None:
            self._notices.append(why)
        else:
            self._is_named = True
        lost.pop(wanted, None)
        return begun

    @property
    def settings(self) -> Mapping[str, Setting]:
        """What can be set, with its values."""
        return self._tuning.settings

    def configure(self, values: Object) -> None:
        """See `Tunable`."""
        self._tuning.configure(values)

    # ---- what the agent says -----------------------------------------------------------------

    def heard(self, method: str, params: dict[str, Any]) -> None:
        """See `Listener`."""
        self._heard_at = trio.current_time()
        match method:
            case "session/update":
                self._updated(params)
            case "$/cancel_request":
                request_id = params.get("requestId")
                if not self._services.take_back(request_id):
                    self._say_of(self._asks.take_back(request_id))
            case "elicitation/complete":
                self._say_of(self._asks.complete(text_of(params, "elicitationId")))
            case _:
                pass

    def _updated(self, params: dict[str, Any]) -> None:
        if self._session is None:
            self._early.keep(params)
            return
        session, update = params.get("sessionId"), dict_of(params, "update")
        turn = self._turn
        listens = turn is not None and turn.listens
        is_ours = session in (None, self._session)
        if update.get("sessionUpdate") == "subagent_update":
            parent = None if is_ours else str(session)
            events = self._children.told(parent, update, in_turn=listens)
        elif not is_ours:
            events = self._children.heard(str(session), update, in_turn=listens)
        else:
            self._tuning.heard(update)
            if listens:
                events = self._updates.in_turn(update)
            else:
                events = self._updates.beside(update)
                self._hear_between(update)
        if turn is not None and listens:
            turn.add(events)
        else:
            self._say_beside(events)

    def _hear_between(self, update: dict[str, Any]) -> None:
        """What belongs to no turn that runs, and yet is said to people."""
        kind, turn = update.get("sessionUpdate"), self._turn
        if self._replays and kind in REPLAYED:
            self._replays_late = True
        elif kind not in _LATE or not self._hears_between:
            return
        elif turn is not None and turn.is_over:  # right behind its end
            if not turn.cancelled:
                turn.add(self._updates.in_turn(update))
        elif kind == "agent_message_chunk":
            self._between += block_text(update.get("content")) or ""
            self._between = self._between[-BETWEEN:]
        elif len(self._notices) < _MOST_NOTICES:
            said = self._updates.in_turn(update)
            self._notices += [str(each.content) for each in said if isinstance(each, SystemNotice)]

    def _say_of(self, said: tuple[str, Sequence[Event]] | None) -> None:
        """Something about what was asked, in the running turn."""
        if said is not None and self._turn is not None:
            session, events = said
            self._turn.add(self._children.says(session, events))

    def asked(self, request: Asked) -> None:
        """See `Listener`. What was not offered to the agent is refused as not known."""
        if request.method not in CANCELLED:
            self._services.take(request)
            return
        turn, session = self._turn, request.params.get("sessionId")
        if turn is None or not turn.listens or turn.cancelled:
            self._asks.cancel(request)
            return
        asker = str(session) if session not in (None, self._session) else ""
        reader = (self._children.updates_of(asker) if asker else None) or self._updates
        turn.add(self._children.says(asker, self._asks.ask(request, asker, reader.calls)))

    async def room(self) -> None:
        """See `Listener`."""
        if self._turn is not None:
            await self._turn.room()
        while len(self._beside) > WAITING_BESIDE:
            self._beside_taken = trio.Event()
            await self._beside_taken.wait()

    def _say_beside(self, events: Sequence[Event]) -> None:
        if events:
            self._beside += events
            self._beside_bell.set()

    # ---- turns -------------------------------------------------------------------------------

    async def prompt(self, prompt: Prompt, events: EventSink) -> Outcome:
        """See `Backend`. Raises `AgentFailed` when the agent is gone, after its last words.

        So it does when somebody has to sign in: then the next turn has another process.
        Cancelled (from outside) before the agent has answered, it kills the agent's group.
        """
        assert self._turn is None, "one turn at a time"
        turn = self._turn = Turn(prompt.window)
        try:
            if self._replays:
                await self._settle(turn)
            if turn.cancelled:
                return Stopped()
            self._updates.begin()
            self._send(turn, prompt)
            while True:
                if turn.events:
                    await turn.gathered()
                said = turn.take()
                if said:
                    await events((*self._first_words(), *said))
                elif turn.is_over:
                    break
                else:
                    await turn.rung()
            if turn.answer is None:
                raise AgentGone(self._link.ended or "the agent is gone")
            first = self._first_words()
            if first:
                await events(first)
            return self._outcome(turn, turn.answer)
        finally:
            self._turn = None
            turn.leave()
            self._asks.release()
            self._hears_between = not turn.cancelled
            if turn.listens:
                _log.warning("agent %d: left in the middle of a turn", self._process.pid)
                self._process.signal(signal.SIGKILL)

    async def _settle(self, turn: Turn) -> None:
        """Let pass what the agent still repeats of a conversation that it has taken up."""
        learned = self._agent.learned
        quiet = QUIET_AT_ONCE if learned.repeats_at_once else QUIET
        with trio.move_on_after(SETTLED_WITHIN):
            while not turn.cancelled and self._link.ended is None:
                quiet_at = max(self._heard_at + quiet, trio.current_time())
                if quiet_at <= trio.current_time():
                    break
                with trio.move_on_at(quiet_at):
                    await turn.rung()
        if not turn.cancelled:
            learned.repeats_at_once = not self._replays_late
        self._replays = False

    def _send(self, turn: Turn, prompt: Prompt) -> None:
        def answered(answer: Answered | None) -> None:
            turn.answer = answer
            if answer is not None:
                turn.add(self._updates.used(dict_of(answer.result, "usage")))
                if not turn.cancelled:
                    turn.add([*self._updates.calls.close()])
                turn.add(self._children.turn_is_over(cancelled=turn.cancelled))
            turn.is_over = True
            turn.ring()

        said = blocks(prompt, self._able.prompts, self._before)
        self._link.call("session/prompt", {"sessionId": self._session, "prompt": said}, answered)
        turn.prompted = True
        self._before = Before()

    def _first_words(self) -> Sequence[Event]:
        """What the host has to know with the first thing that the agent says in a conversation.

        Not before: many agents keep none in which nothing was said.
        """
        first: list[Event] = []
        if not self._is_named:
            self._is_named = True
            first.append(ConversationNamed(self._session))
        notices = list(self._notices)
        self._notices.clear()
        if self._between:
            notices.append(f"Said between turns: {self._between}")
            self._between = ""
        return [*first, *map(SystemNotice, notices)]

    def _outcome(self, turn: Turn, answer: Answered) -> Outcome:
        if turn.cancelled:
            return Stopped()  # agents answer all kinds of things then (hazard 18)
        if answer.fault is not None:
            if answer.fault.code == AUTH_REQUIRED:
                failed = handshake.failed(answer.fault, self._able)
                if isinstance(failed, SignInNeeded):
                    self._agent.learned.note_sign_in(failed)
                raise failed
            return Failed(handshake.told(answer.fault, self._able))
        reason = text_of(answer.result, "stopReason") or ""
        if reason not in _STOPS:
            _log.info(
                "agent %d: ended a turn for a reason not known: %r", self._process.pid, reason
            )
        return _STOPS.get(reason, Done())

    def answer(self, answer: Answer) -> None:
        """See `Backend`."""
        self._asks.answer(answer)

    def cancel(self) -> None:
        """See `Backend`."""
        turn = self._turn
        if turn is None or turn.cancelled:
            return
        turn.cancelled = True
        turn.ring()
        if turn.listens:
            self._link.notify("session/cancel", {"sessionId": self._session})
            self._asks.release()

    def steer(self, message: Message) -> bool:
        """False: ACP has no word for it."""
        return False

    # ---- beside turns ------------------------------------------------------------------------

    async def aside(self, events: EventSink) -> None:
        """See `Backend`. Raises `AgentFailed` when the agent is gone, and no turn runs any more."""
        failed: Exception | None = None
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._run_link)
            nursery.start_soon(self._services.run)
            try:
                await self._pass_on(events)
            except Exception as error:  # noqa: BLE001 - raised below, where it is in no group
                failed = error
            nursery.cancel_scope.cancel("what is beside turns is over")
        raise failed or AgentGone(self._link.ended or "the agent is gone")

    async def _run_link(self) -> None:
        await self._link.run()
        if self._turn is not None:
            await self._turn.done.wait()  # it tells itself how it ended
        self._beside_bell.set()

    async def _pass_on(self, events: EventSink) -> None:
        while True:
            said, self._beside = self._beside, []
            self._beside_taken.set()
            if said:
                await events(said)
            elif self._link.ended is not None and self._turn is None:
                return
            else:
                self._beside_bell = trio.Event()
                await self._beside_bell.wait()

    # ---- what it cannot do -------------------------------------------------------------------

    async def rewind(self, turn_id: str | None) -> None:
        """Never called, since `AcpAgent.can_rewind` is false. Raises `AgentFailed`."""
        await trio.lowlevel.checkpoint()
        raise AgentFailed("an agent by ACP cannot forget turns")

    def switch(self, customization_id: str, enablement: Sequence[CustomizationEnablement]) -> None:
        """Never called, since `AcpAgent.can_switch` is false."""

    def control(self, server_id: str, request: ServerRequest) -> None:
        """Never called, since `AcpAgent.can_control` is false."""

    # ---- its end -----------------------------------------------------------------------------

    async def close(self) -> None:
        """End the agent's process and its group, each step within a bound."""
        await self._close_conversation()
        self._link.close("the agent was let go of")
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._services.close)
            await self._process.end()

    async def _close_conversation(self) -> None:
        """Let the agent put away what it has in memory, if it is there and knows how to."""
        if not self._able.closes or self._session is None or self._link.ended is not None:
            return
        with trio.move_on_after(CLOSE_WITHIN):
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._link.run)
                with suppress(RpcFault, AgentGone):
                    params: JSON = {"sessionId": self._session}
                    await self._link.request("session/close", params, CLOSE_WITHIN)
                nursery.cancel_scope.cancel("the conversation is closed")


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
