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
from functools import partial
from typing import Any

import trio
from msgspec import Struct

from ahpd.agents.acp import handshake, permissions
from ahpd.agents.acp.handshake import Abilities, Begun
from ahpd.agents.acp.mapping import Updates, merged
from ahpd.agents.acp.process import AgentGone, AgentProcess
from ahpd.agents.acp.prompting import blocks
from ahpd.agents.acp.rpc import (
    AUTH_REQUIRED,
    METHOD_NOT_FOUND,
    Answered,
    Asked,
    Link,
    RpcFault,
)
from ahpd.agents.acp.settings import (
    MODE,
    Setting,
    changed,
    request_for,
    settings_of,
    with_value,
)
from ahpd.agents.acp.tolerant import dict_of, text_of
from ahpd.agents.events import (
    ConversationNamed,
    Done,
    Event,
    Failed,
    Outcome,
    SettingsChanged,
    Stopped,
    SystemNotice,
    TextChunk,
    ThoughtChunk,
    ToolFinished,
    ToolOutput,
)
from ahpd.agents.port import (
    AgentFailed,
    Answer,
    EventSink,
    OpenRequest,
    Permission,
    Prompt,
    ServerRequest,
)
from ahpd.protocol.customizations import CustomizationEnablement
from ahpd.protocol.messages import Message
from ahpd.protocol.model import JSON, Object

_log = logging.getLogger("ahpd.agents.acp")

#: Bytes of events that may wait for the turn's task before nothing more is read.
WAITING_BYTES = 1 << 20
#: And how many events that belong to no turn.
WAITING_BESIDE = 1000
#: A conversation that was taken up is settled when nothing has come for so many seconds, and after
#: so many in any case: agents may send what was said before after they answered (hazard B31).
QUIET = 0.3
SETTLED_WITHIN = 5.0
#: Updates kept that come before it is known which conversation is ours.
_EARLY = 10_000

#: The kinds of updates that bring values of settings.
_SETTINGS = ("config_option_update", "current_mode_update")

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


class _Ask(Struct, frozen=True, eq=False):
    """What the agent wants permission for."""

    request: Asked
    row: str


class _Turn:
    """A turn that runs, and what waits for its task."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.weight = 0
        self.prompted = False
        self.cancelled = False
        #: The prompt was answered, with this; None in it: the agent is gone.
        self.is_over = False
        self.answer: Answered | None = None
        self.done = trio.Event()
        self._bell = trio.Event()
        self._room = trio.Event()

    @property
    def listens(self) -> bool:
        """What the agent says now belongs to it."""
        return self.prompted and not self.is_over

    def add(self, events: Sequence[Event]) -> None:
        for event in events:
            self.events.append(event)
            self.weight += _weight(event)
        if events:
            self.ring()

    def take(self) -> Sequence[Event]:
        events, self.events, self.weight = self.events, [], 0
        self._room.set()
        return merged(events)

    def ring(self) -> None:
        self._bell.set()

    async def rung(self) -> None:
        """Until something is there that was not. A checkpoint."""
        self._bell = trio.Event()
        await self._bell.wait()

    async def room(self) -> None:
        while self.weight > WAITING_BYTES and not self.done.is_set():
            self._room = trio.Event()
            await self._room.wait()

    def leave(self) -> None:
        """The task is over: nothing waits for it any more."""
        self.done.set()
        self._room.set()


class AcpBackend:
    """See the module. Implements `Backend`. `begin` must be called first, and `close` last."""

    def __init__(self, process: AgentProcess, cwd: str) -> None:
        self._process = process
        self._link = Link(process, self)
        self._cwd = cwd
        self._updates = Updates(cwd)
        self._able = Abilities()
        self._session: str | None = None
        self._early: list[dict[str, Any]] = []
        #: What can be set, with its values.
        self.settings: Mapping[str, Setting] = {}
        self._turn: _Turn | None = None
        self._asks: dict[str, _Ask] = {}
        self._beside: list[Event] = []
        self._beside_bell = trio.Event()
        self._beside_taken = trio.Event()
        #: When it said something last; and whether what it says may be of before.
        self._heard_at = 0.0
        self._replays = False
        #: The host knows what the conversation is called; and what it is told with the next turn.
        self._is_named = False
        self._notice: str | None = None

    @property
    def pid(self) -> int:
        """Its process, which may have ended."""
        return self._process.pid

    # ---- its beginning -----------------------------------------------------------------------

    async def begin(self, version: str, others: Sequence[str], request: OpenRequest) -> None:
        """Agree on everything, and begin a conversation or take one up. Raises `AgentFailed`.

        `version` is the host's own, `others` are the working directories besides the first.
        """
        failed: AgentFailed | None = None
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._link.run)
            try:
                await self._begin(version, others, request.conversation)
                await self._set_all(request.config)
            except AgentFailed as error:  # out of the nursery it would be a group
                failed = error
            nursery.cancel_scope.cancel("the conversation has begun, or will not")
        if failed is not None:
            raise failed

    async def _begin(self, version: str, others: Sequence[str], conversation: str | None) -> None:
        self._able = await handshake.initialize(self._link, version)
        begun: Begun | None = None
        if conversation is not None:
            begun = await handshake.take_up(self._link, self._able, conversation, self._cwd, others)
            self._is_named = begun is not None
            if begun is None:
                self._notice = _LOST
        if begun is None:
            begun = await handshake.new(self._link, self._able, self._cwd, others)
        self._session, self._replays = begun.session, begun.replays
        self._heard_at = trio.current_time()
        self.settings = settings_of(begun.answer) or {}
        early, self._early = self._early, []
        for params in early:
            self.heard("session/update", params)

    # ---- settings ----------------------------------------------------------------------------

    async def _set_all(self, values: Object) -> None:
        """Set what is not as it is wanted. What the agent does not take is said in the chat."""
        for key, value in values.items():
            setting = self.settings.get(key)
            if setting is None or setting.value == value:
                continue
            method, params = request_for(self._session or "", key, setting, value)
            try:
                answer = await self._link.request(method, params, handshake.SET_WITHIN)
            except RpcFault as fault:
                self._notice = self._not_set(setting, value, fault)
            else:
                self.settings = settings_of(answer) or with_value(self.settings, key, value)

    def configure(self, values: Object) -> None:
        """See `Tunable`. A setting that the agent does not take goes back to what it was."""
        for key, value in values.items():
            setting = self.settings.get(key)
            if setting is None or setting.value == value or self._link.ended is not None:
                continue
            method, params = request_for(self._session or "", key, setting, value)
            self._link.call(method, params, partial(self._was_set, key, setting, value))
            self.settings = with_value(self.settings, key, value)

    def _was_set(self, key: str, before: Setting, value: JSON, answer: Answered | None) -> None:
        if answer is None:
            return
        if answer.fault is None:
            self._take_settings(settings_of(answer.result))
            return
        self._notice = self._not_set(before, value, answer.fault)
        if key in self.settings:
            self._take_settings(with_value(self.settings, key, before.value))

    def _not_set(self, setting: Setting, value: JSON, fault: RpcFault) -> str:
        why = handshake.told(fault, self._able)
        return f"The agent does not take {value!r} for {setting.schema.title}: {why}"

    def _take_settings(self, settings: Mapping[str, Setting] | None) -> None:
        """The agent says what its settings are now."""
        if settings is None:
            return
        values = changed(self.settings, settings)
        self.settings = settings
        if values:
            self._say_beside([SettingsChanged(values)])

    def _settings_in(self, update: dict[str, Any]) -> None:
        mode = text_of(update, "currentModeId")
        match text_of(update, "sessionUpdate"):
            case "config_option_update":
                self._take_settings(settings_of(update))
            case "current_mode_update" if mode is not None and (
                (known := self.settings.get(MODE)) is not None and known.kind == "mode"
            ):
                self._take_settings(with_value(self.settings, MODE, mode))
            case _:
                pass

    # ---- what the agent says -----------------------------------------------------------------

    def heard(self, method: str, params: dict[str, Any]) -> None:
        """See `Listener`."""
        self._heard_at = trio.current_time()
        if method == "$/cancel_request":
            self._take_back(params.get("requestId"))
        if method != "session/update":
            return
        if self._session is None:
            if len(self._early) < _EARLY:
                self._early.append(params)
            return
        if params.get("sessionId") not in (None, self._session):
            return  # of a worker of the agent's, which nobody was told of
        update, turn = dict_of(params, "update"), self._turn
        if update.get("sessionUpdate") in _SETTINGS:
            self._settings_in(update)
        if turn is not None and turn.listens:
            turn.add(self._updates.in_turn(update))
        else:
            self._say_beside(self._updates.beside(update))

    def asked(self, request: Asked) -> None:
        """See `Listener`. What was not offered to the agent is refused as not known."""
        if request.method != "session/request_permission":
            self._link.refuse(request, METHOD_NOT_FOUND, f"{request.method} is not served here")
            return
        turn = self._turn
        if turn is None or not turn.listens or turn.cancelled:
            self._link.reply(request, permissions.CANCELLED)
            return
        call = dict_of(request.params, "toolCall")
        row, events = self._updates.calls.asks(call, permissions.offered(request.params))
        self._asks[row] = _Ask(request, row)
        turn.add(events)

    async def room(self) -> None:
        """See `Listener`."""
        if self._turn is not None:
            await self._turn.room()
        while len(self._beside) > WAITING_BESIDE:
            self._beside_taken = trio.Event()
            await self._beside_taken.wait()

    def _take_back(self, request_id: Any) -> None:
        for row, ask in list(self._asks.items()):
            if ask.request.id == request_id and type(ask.request.id) is type(request_id):
                del self._asks[row]
                self._link.reply(ask.request, permissions.CANCELLED)
                if self._turn is not None:
                    self._turn.add(self._updates.calls.withdrawn(row))

    def _say_beside(self, events: Sequence[Event]) -> None:
        if events:
            self._beside += events
            self._beside_bell.set()

    # ---- turns -------------------------------------------------------------------------------

    async def prompt(self, prompt: Prompt, events: EventSink) -> Outcome:
        """See `Backend`. Raises `AgentFailed` when the agent is gone, after its last words.

        Cancelled (from outside) before the agent has answered, it kills the agent's group.
        """
        assert self._turn is None, "one turn at a time"
        turn = self._turn = _Turn()
        try:
            if self._replays:
                await self._settle(turn)
            if turn.cancelled:
                return Stopped()
            self._updates.begin()
            self._send(turn, prompt)
            while True:
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
            self._answer_all()
            if turn.listens:
                _log.warning("agent %d: left in the middle of a turn", self._process.pid)
                self._process.signal(signal.SIGKILL)

    async def _settle(self, turn: _Turn) -> None:
        """Let pass what the agent still repeats of a conversation that it has taken up."""
        with trio.move_on_after(SETTLED_WITHIN):
            while not turn.cancelled and self._link.ended is None:
                quiet_at = max(self._heard_at + QUIET, trio.current_time())
                if quiet_at <= trio.current_time():
                    break
                with trio.move_on_at(quiet_at):
                    await turn.rung()
        self._replays = False

    def _send(self, turn: _Turn, prompt: Prompt) -> None:
        def answered(answer: Answered | None) -> None:
            turn.answer = answer
            if answer is not None:
                turn.add(self._updates.used(dict_of(answer.result, "usage")))
                if not turn.cancelled:
                    turn.add([*self._updates.calls.close()])
            turn.is_over = True
            turn.ring()

        params = {"sessionId": self._session, "prompt": blocks(prompt, self._able.prompts)}
        self._link.call("session/prompt", params, answered)
        turn.prompted = True

    def _first_words(self) -> Sequence[Event]:
        """What the host has to know with the first thing that the agent says in a conversation.

        Not before: many agents keep none in which nothing was said.
        """
        first: list[Event] = []
        if not self._is_named:
            self._is_named = True
            first.append(ConversationNamed(self._session))
        if self._notice is not None:
            first.append(SystemNotice(self._notice))
            self._notice = None
        return first

    def _outcome(self, turn: _Turn, answer: Answered) -> Outcome:
        if turn.cancelled:
            return Stopped()  # agents answer all kinds of things then (hazard 18)
        if answer.fault is not None:
            needs_auth = answer.fault.code == AUTH_REQUIRED
            kind = "AuthRequired" if needs_auth else "AgentError"
            return Failed(handshake.told(answer.fault, self._able), kind)
        reason = text_of(answer.result, "stopReason") or ""
        if reason not in _STOPS:
            _log.info(
                "agent %d: ended a turn for a reason not known: %r", self._process.pid, reason
            )
        return _STOPS.get(reason, Done())

    def answer(self, answer: Answer) -> None:
        """See `Backend`."""
        ask = self._asks.pop(answer.call_id, None) if isinstance(answer, Permission) else None
        if ask is None or not isinstance(answer, Permission):
            return
        self._updates.calls.answered(ask.row, approved=answer.approved)
        self._link.reply(ask.request, permissions.outcome(ask.request.params, answer))

    def _answer_all(self) -> None:
        """Nobody decides any more about what the agent asked: some wait for ever (hazard B28)."""
        asks, self._asks = self._asks, {}
        for ask in asks.values():
            self._updates.calls.answered(ask.row, approved=False)
            self._link.reply(ask.request, permissions.CANCELLED)

    def cancel(self) -> None:
        """See `Backend`."""
        turn = self._turn
        if turn is None or turn.cancelled:
            return
        turn.cancelled = True
        turn.ring()
        if turn.listens:
            self._link.notify("session/cancel", {"sessionId": self._session})
            self._answer_all()

    def steer(self, message: Message) -> bool:
        """False: ACP has no word for it."""
        return False

    # ---- beside turns ------------------------------------------------------------------------

    async def aside(self, events: EventSink) -> None:
        """See `Backend`. Raises `AgentFailed` when the agent is gone, and no turn runs any more."""
        failed: Exception | None = None
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._run_link)
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
        self._link.close("the agent was let go of")
        await self._process.end()


def _weight(event: Event) -> int:
    """Bytes that an event holds on to, roughly."""
    match event:
        case TextChunk() | ThoughtChunk():
            return 64 + len(event.text)
        case ToolOutput() | ToolFinished():
            return 64 + sum(
                64 + len(getattr(each, "text", "")) + len(getattr(each, "data", ""))
                for each in event.content
            )
        case _:
            return 256
