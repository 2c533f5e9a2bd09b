"""What drives a chat of the scripted agent (`ahpd.agents.scripted`).

A turn plays the entry of the script that fits its message (`ahpd.agents.script`). What a step
means is in `ahpd.agents.plays`; here it is done: events go to the sink, time passes on trio's
clock, permissions are waited for, steering messages are said back, and a cancel ends it all.

**Resume.** ``Prompt(resume=True)`` plays the entry from the step after the one the turn ended at.
A backend that was opened since does not know that place: it goes on after the entry's first
``fail`` or ``crash``, or plays all of an entry that has neither. Its tool calls then carry a tag,
since the turn may hold calls of the same steps already.

**What waited for people** when the host was left is asked again by a new backend, in the same
words, and the entry goes on from there.

**Rewinding** costs nothing, since a script remembers no turn but the one it may go on with.

**Customizations.** What a ``customizations`` step lists can be switched, and its MCP servers can be
started and stopped: each says at once that it is ready, or that it is not any more.

**Steering.** The running turn says ``(steered: …)`` at the next boundary of steps, or at once while
it sleeps, hangs, runs a tool or waits for a permission.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from random import Random
from typing import Any

import attrs
import trio

from ahpd.agents.events import Done, Event, Outcome, ServerChanged, Stopped, TextChunk
from ahpd.agents.plays import (
    AskTime,
    Emit,
    End,
    Later,
    Mark,
    Pause,
    Play,
    Scene,
    Wait,
    place_of,
    play,
)
from ahpd.agents.port import (
    AgentFailed,
    Answer,
    Answers,
    EventSink,
    Prompt,
    ServerRequest,
)
from ahpd.agents.script import Entry, Script
from ahpd.protocol.customizations import (
    CustomizationEnablement,
    McpServerReadyState,
    McpServerStoppedState,
)
from ahpd.protocol.messages import Message

#: Seconds that `ScriptedBackend.close` waits at most for a running turn.
CLOSE_WITHIN = 1.0


@attrs.frozen
class _Place:
    """How far a turn has come: the number of the last step begun (0: none), the tag of its run."""

    turn_id: str
    step: int = 0
    tag: str = ""


class ScriptedBackend:
    """Plays the script in one chat. Implements `Backend`; its methods may be called at any time."""

    def __init__(
        self,
        script: Script,
        random: Random | None = None,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._script = script
        self._random = random or Random()
        self.now = now
        self._turn: _Turn | None = None
        self._closed = False
        #: What is said beside turns, and when; a new event before each wait.
        self._later: list[tuple[float, Sequence[Event]]] = []
        self._put_off = trio.Event()
        #: Where the turn played last has come to.
        self._reached: _Place | None = None

    async def prompt(self, prompt: Prompt, events: EventSink) -> Outcome:
        """Play the entry that fits. A checkpoint.

        Raises `ScriptedCrash` where the script says so, and `AgentFailed` after `close`.
        """
        if self._closed:
            raise AgentFailed("the scripted agent was closed")
        assert self._turn is None, "one turn at a time"
        turn = self._turn = _Turn(self, events)
        outcome: Outcome = Stopped()
        try:
            with turn.scope:
                outcome = await self._play(turn, prompt)
        finally:
            self._turn = None
            turn.ended.set()
        return Stopped() if turn.scope.cancel_called else outcome

    async def _play(self, turn: _Turn, prompt: Prompt) -> Outcome:
        text = prompt.message.text
        entry = self._script.entry_for(text)
        place = self._first_place(prompt, entry)
        waiting = prompt.waiting
        for number, step in enumerate(entry.steps[place.step :], place.step + 1):
            await turn.boundary()
            self._reached = attrs.evolve(place, step=number)
            scene = Scene(prompt.turn_id, text, number, place.tag, iso(self.now()))
            with contextlib.closing(play(step, scene)) as moves:
                ended = await turn.perform(moves, waiting)
            waiting = None
            if ended is not None:
                return ended
        await turn.boundary()
        return Done()

    def _first_place(self, prompt: Prompt, entry: Entry) -> _Place:
        asked = None if prompt.waiting is None else place_of(prompt.waiting)
        if asked is not None:
            number, tag = asked
            return _Place(prompt.turn_id, number - 1, tag)
        if not prompt.resume:
            return _Place(prompt.turn_id)
        if self._reached is not None and self._reached.turn_id == prompt.turn_id:
            return self._reached
        tag = f"{self._random.getrandbits(32):08x}"
        return _Place(prompt.turn_id, entry.after_first_end, tag)

    async def aside(self, events: EventSink) -> None:
        """Say what steps have put off, each when its time has come."""
        while True:
            self._put_off = trio.Event()
            due = min((at for at, _ in self._later), default=math.inf)
            with trio.move_on_at(due):
                await self._put_off.wait()
            now = trio.current_time()
            ripe = [said for at, said in self._later if at <= now]
            self._later = [(at, said) for at, said in self._later if at > now]
            for said in ripe:
                await events(said)

    def put_off(self, seconds: float, events: Sequence[Event]) -> None:
        """Have these said in so many seconds, whether or not a turn runs then."""
        self._later.append((trio.current_time() + seconds, events))
        self._put_off.set()

    def answer(self, answer: Answer) -> None:
        """The first answer to what waits counts; any other is ignored."""
        if self._turn is not None:
            self._turn.answer(answer)

    async def rewind(self, turn_id: str | None) -> None:
        """A turn that was taken away cannot be gone on with. A checkpoint."""
        await trio.lowlevel.checkpoint()
        if self._reached is not None and self._reached.turn_id != turn_id:
            self._reached = None

    def switch(self, customization_id: str, enablement: Sequence[CustomizationEnablement]) -> None:
        """Nothing a script does depends on it, but a server that is turned off stops (R-18.23)."""
        if enablement and not getattr(enablement[0], "enabled", True):
            self.put_off(0, (ServerChanged(customization_id, McpServerStoppedState()),))

    def control(self, server_id: str, request: ServerRequest) -> None:
        """A server is up, or down, as soon as that is wanted; it never holds up anything."""
        if request != "background":
            state = McpServerReadyState() if request == "start" else McpServerStoppedState()
            self.put_off(0, (ServerChanged(server_id, state),))

    def steer(self, message: Message) -> bool:
        """True: the running turn will say it back. False when none runs."""
        if self._turn is None or self._turn.scope.cancel_called:
            return False
        self._turn.steer(message)
        return True

    def cancel(self) -> None:
        """No call of the sink begins after this one. Nothing happens when no turn runs."""
        if self._turn is not None:
            self._turn.scope.cancel("the turn was cancelled")

    async def close(self) -> None:
        """Cancel the running turn and wait for its end, `CLOSE_WITHIN` at most. A checkpoint."""
        self._closed = True
        self.cancel()
        if self._turn is None:
            await trio.lowlevel.checkpoint()
            return
        # A sink that shields itself may hold the turn up; the bound is for that.
        with trio.move_on_after(CLOSE_WITHIN):
            await self._turn.ended.wait()


def iso(moment: datetime) -> str:
    """As the protocol writes times: UTC, with milliseconds and ``Z``."""
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


class _Turn:
    """A turn that runs: its sink, and what the other tasks have left for it."""

    def __init__(self, backend: ScriptedBackend, events: EventSink) -> None:
        self._backend = backend
        self.scope = trio.CancelScope()
        self.ended = trio.Event()
        self._sink = events
        #: Others have had their turn since the last events.
        self._rested = False
        self._steered: list[Message] = []
        #: What the turn waits for, and what came.
        self._asking: tuple[type[Any], str] | None = None
        self._answer: Any = None
        #: Set when something was left; a new one before each wait, since an event cannot be reset.
        self._bell = trio.Event()

    def steer(self, message: Message) -> None:
        self._steered.append(message)
        self._bell.set()

    def answer(self, answer: Answer) -> None:
        about = answer.request_id if isinstance(answer, Answers) else answer.call_id
        if self._asking == (type(answer), about) and self._answer is None:
            self._answer = answer
            self._bell.set()

    async def perform(self, moves: Play, waiting: str | None = None) -> Outcome | None:
        """Do what a step's player says. Returns the outcome if that ends the turn.

        What comes before it waits for an answer about `waiting` has been done.
        """
        start = trio.current_time()
        answer: Any = None
        while True:
            try:
                move = moves.send(answer)
            except StopIteration:
                return None
            answer = None
            match move:
                case Wait(about=about) if about == waiting:
                    waiting = None
                case _ if waiting is not None:
                    continue
                case _:
                    pass
            match move:
                case Emit(events):
                    await self._emit(events)
                case Pause(ms, talks):
                    # From the start and not from now: late wake-ups do not add up.
                    await self._pause(start + ms / 1000, talks=talks)
                case Wait(events, kind, about):
                    # Before the sink is called: the answer may come while it still works.
                    self._asking, self._answer = (kind, about), None
                    await self._emit(events)
                    answer = await self._answered()
                    start = trio.current_time()
                case Mark():
                    start = trio.current_time()
                case AskTime():
                    answer = self._backend.now()
                case Later(ms, events):
                    self._backend.put_off(ms / 1000, events)
                case End(outcome):
                    return outcome

    async def boundary(self) -> None:
        """Between two steps: say what was steered. On return nothing is left. A checkpoint."""
        await trio.lowlevel.checkpoint()
        while self._steered:
            await self._say_steered()

    async def _emit(self, events: Sequence[Event]) -> None:
        # The sink may never have to wait: others must go on, and a cancel get through, even then.
        if self._rested:
            self._rested = False
            await trio.lowlevel.checkpoint_if_cancelled()
        else:
            await trio.lowlevel.checkpoint()
        await self._sink(events)

    async def _say_steered(self) -> None:
        messages, self._steered = self._steered, []
        await self._emit([TextChunk(f"\n(steered: {message.text})\n") for message in messages])

    async def _pause(self, until: float, *, talks: bool) -> None:
        self._rested = True
        if not talks:
            await trio.sleep_until(until)
            return
        while True:
            while self._steered:
                await self._say_steered()
            with trio.move_on_at(until) as deadline:
                await self._rung()
            if deadline.cancelled_caught:
                return

    async def _answered(self) -> Any:
        while self._answer is None:
            if self._steered:
                await self._say_steered()
            else:
                await self._rung()
        answer, self._asking, self._answer = self._answer, None, None
        return answer

    async def _rung(self) -> None:
        """Wait until something is left that is not there yet. A checkpoint."""
        bell = self._bell = trio.Event()
        await bell.wait()
