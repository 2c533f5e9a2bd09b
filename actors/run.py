"""An agent at work for a chat: its backend, and the tasks beside the chat's mailbox.

A *run* is the task in which a turn is worked on. Beside the runs there is one task, as long as the
backend lives, for what it says that belongs to no turn.

The chat stays free to take confirmations, cancels and pending messages while its agent talks,
because these tasks only send messages to it: what the agent says, and that it is over. The agent is
slowed down by a chat that is behind, since sending waits for room in its mailbox, and by a journal
that is: what it says is not taken while too much waits there.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

import trio
from msgspec import Struct, field, structs

from actors.ledger import Channel
from actors.messages import (
    AgentReplaced,
    AgentSays,
    AsideFailed,
    AsideSays,
    RunBegan,
    RunOver,
)
from actors.outputs import weight
from actors.room import Room
from actors.waits import Waits
from ahpd.agents.events import Event, Failed, Outcome, Stopped, ToolFinished, ToolOutput, WorkerSays
from ahpd.agents.port import (
    Agent,
    AgentFailed,
    Answer,
    Backend,
    OpenRequest,
    Prompt,
    Tunable,
    failure,
)
from ahpd.protocol.model import Object
from ahpd.protocol.uris import URI
from supervisors import Helper, Ref, SendRefused

_log = logging.getLogger("ahpd.agents")

#: Seconds that letting go of a backend may take; what is left then is abandoned.
CLOSE_WITHIN = 5.0


class Run(Struct, eq=False):
    """A turn that an agent works on, or has been asked to stop working on.

    `prompted`: the agent has the turn's message, and can be asked to stop or given another.
    `stopping`: it was asked to stop, and nothing it still says is shown. `heard`: when it last said
    something, or was answered.
    """

    number: int
    turn_id: str
    prompted: bool = False
    stopping: bool = False
    heard: float = field(default_factory=trio.current_time)
    #: Of a command that the host runs in the place of the agent: set when it is to stop.
    stopped: trio.Event | None = None
    helper: Helper | None = None


class Engine:
    """A chat's backend: opened when first needed, and again after it broke or is to work otherwise.

    `agent` and `request` say whose it is and what it is to be opened for, and are asked each time:
    that may have changed, or there may be no session any more.
    `start_aside` starts the task for what it says beside the turns, when it is opened as the one
    with that number. In `room` what it says waits for the journal.
    """

    def __init__(
        self,
        agent: Callable[[], Agent],
        channel: Channel,
        room: Room,
        request: Callable[[], OpenRequest],
        start_aside: Callable[[Backend, int], Aside],
    ) -> None:
        self.room = room
        self._agent = agent
        self._channel = channel
        self._request = request
        self._start_aside = start_aside
        #: What the backend was opened for, with the settings that it was told since.
        self._opened: OpenRequest | None = None
        self._opening = trio.Lock()
        self._aside: Aside | None = None
        self.backend: Backend | None = None
        #: How many backends there have been.
        self.opened = 0
        self.waits = Waits()

    @property
    def pid(self) -> int | None:
        """The process that the backend lives in, if it has one."""
        return getattr(self.backend, "pid", None)

    async def open(self) -> Backend:
        """The backend, opened if there is none. Raises `AgentFailed`."""
        async with self._opening:
            if self.backend is None:
                await self._open(self._request())
            assert self.backend is not None
            return self.backend

    async def refresh(self) -> bool:
        """Before a turn: let go of a backend that was opened with other tokens, settings or places.

        True when it was; then what it did beside the turns is gone. Raises `AgentFailed` when
        there is something that it could not work without.
        """
        async with self._opening:
            wanted = self._request()
            self.configure(wanted.config)  # it may not have been told yet
            opened = self._opened
            if self.backend is None or opened is None or _works_as(wanted) == _works_as(opened):
                return False
            await self.close()
            return True

    async def _open(self, request: OpenRequest) -> None:
        self.backend = await self._agent().open(request)
        self._opened = request
        self.opened += 1
        self._aside = self._start_aside(self.backend, self.opened)

    def configure(self, config: Object) -> None:
        """The settings may have changed: tell a backend that takes other ones while it lives."""
        opened = self._opened
        if isinstance(self.backend, Tunable) and opened is not None and config != opened.config:
            self._opened = structs.replace(opened, config=config)
            self.backend.configure(config)

    async def forget(self, backend: Backend) -> None:
        """Have it forget the turns that were taken away, before the next one (R-9.70).

        It may still have to when this fails, or when the chat does: so the channel knows.
        """
        while (cut := self._channel.notes.cut) is not None:
            await backend.rewind(cut[0])
            if self._channel.notes.cut is cut:
                self._channel.note(cut=None)

    def tell(self, answer: Answer) -> None:
        """Give the backend an answer, if there is one."""
        if self.backend is not None:
            self.backend.answer(answer)

    def answer(self, chat: URI, answer: Answer) -> bool:
        """Give the backend the answer to what it asked in that chat; False: it does not wait."""
        if not self.waits.take(chat, answer):
            return False
        self.tell(answer)
        return True

    async def close(self) -> None:
        """Let go of the backend, within `CLOSE_WITHIN`; never raises an error of the agent's."""
        backend, self.backend = self.backend, None
        self.waits.release()
        if backend is None:
            return
        with trio.move_on_after(CLOSE_WITHIN, shield=True) as scope:
            if self._aside is not None:
                await self._aside.end()
            try:
                await backend.close()
            except Exception:  # noqa: BLE001 an agent's own code: not the chat's fault
                _log.exception("%s: closing the agent failed", self._channel.uri)
        if scope.cancelled_caught:
            _log.warning("%s: the agent did not close in %s s", self._channel.uri, CLOSE_WITHIN)


def _works_as(request: OpenRequest) -> tuple[object, ...]:
    """What of it a backend cannot be told while it lives."""
    return (request.tokens, request.config, tuple(request.working_directories))


class Aside:
    """The task for what a backend says that belongs to no turn."""

    def __init__(self, backend: Backend, opened: int, room: Room, chat: Ref[Any]) -> None:
        self._backend = backend
        self._opened = opened
        self._room = room
        self._chat = chat
        self._over = trio.Event()
        self.helper: Helper | None = None

    async def run(self) -> None:
        """The body of the task. A breakdown of the agent's is told to the chat."""
        outcome: Failed | None = None
        try:
            await self._backend.aside(self._say)
        except SendRefused:
            pass  # the chat is gone
        except AgentFailed as error:
            outcome = failure(error)
        except Exception as error:  # noqa: BLE001 an agent's own code: not the chat's fault
            _log.exception("%s: the agent crashed beside its turns", self._chat.path)
            outcome = Failed(f"the agent crashed: {error}", "AgentCrashed", resumable=True)
        finally:
            self._over.set()
        if outcome is not None:
            with suppress(SendRefused):
                await self._chat.send(AsideFailed(self._opened, outcome))

    async def _say(self, events: Sequence[Event]) -> None:
        await self._room.wait()
        await self._chat.send(AsideSays(self._opened, events), cost=_weight(events))

    async def end(self) -> None:
        """Cancel the task and wait until it is over."""
        if self.helper is None or self.helper.done:
            return
        self.helper.cancel("the agent is let go of")
        await self._over.wait()


async def work(engine: Engine, run: Run, prompt: Prompt, chat: Ref[Any]) -> None:
    """The body of a run's task. However the agent ends, exactly one `RunOver` is sent.

    Cancelled (the chat stops, or the agent did not obey a cancel): nothing is sent.
    """

    async def say(events: Sequence[Event]) -> None:
        await engine.room.wait()
        said, cost = AgentSays(run.number, events), _weight(events)
        if chat.backlog:
            await chat.send(said, cost=cost)
        else:  # the chat keeps up: no turn of the scheduler for each word
            chat.cast(said, cost=cost)

    outcome: Outcome
    broken = False
    try:
        if not run.stopping and await engine.refresh():
            with suppress(SendRefused):
                await chat.send(AgentReplaced())
        backend = await engine.open()
        if not run.stopping:
            await engine.forget(backend)
        if run.stopping:  # before the agent had anything to stop
            outcome = Stopped()
        else:
            run.prompted = True
            with suppress(SendRefused):  # full: then what it would start is late, not lost
                chat.cast(RunBegan(), urgent=True)
            outcome = await backend.prompt(prompt, say)
    except AgentFailed as error:
        outcome, broken = failure(error), True
    except SendRefused:
        return  # the chat is gone, and with it whoever would want to know
    except Exception as error:  # noqa: BLE001 an agent's own code: the turn's end, not the chat's
        _log.exception("%s: the agent crashed", run.turn_id)
        outcome, broken = (
            Failed(f"the agent crashed: {error}", "AgentCrashed", resumable=True),
            True,
        )
    with suppress(SendRefused):
        await chat.send(RunOver(run.number, outcome, broken))


def _weight(events: Sequence[Event]) -> int:
    """Bytes that these events hold on to, roughly: what bounds the chat's mailbox."""
    return sum(64 + _held(event) for event in events)


def _held(event: Event) -> int:
    match event:
        case WorkerSays():
            return _weight(event.events)
        case ToolOutput() | ToolFinished():
            return weight(event.content)
        case _:
            return len(getattr(event, "text", ""))
