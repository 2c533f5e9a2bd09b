"""One run of an agent: the task beside a chat's mailbox in which a turn is worked on.

The chat stays free to take confirmations, cancels and pending messages while its agent talks,
because the run only sends messages to it: what the agent says, and that it is over. The agent is
slowed down by a chat that is behind, since sending waits for room in its mailbox.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

import attrs
import trio

from actors.host import Host
from actors.ledger import Channel
from actors.messages import AgentSays, RunBegan, RunOver
from actors.sources import history_left
from ahpd.agents.events import Event, Failed, Outcome, Stopped
from ahpd.agents.port import Agent, AgentFailed, Backend, OpenRequest, Prompt
from ahpd.protocol.session import SessionState
from supervisors import Helper, Ref, SendRefused

_log = logging.getLogger("ahpd.agents")

#: Seconds that letting go of a backend may take; what is left then is abandoned.
CLOSE_WITHIN = 5.0


@attrs.define(eq=False)
class Run:
    """A turn that an agent works on, or has been asked to stop working on.

    `prompted`: the agent has the turn's message, and can be asked to stop or given another.
    `stopping`: it was asked to stop, and nothing it still says is shown.
    """

    number: int
    turn_id: str
    prompted: bool = False
    stopping: bool = False
    helper: Helper | None = None


def open_request(host: Host, chat: Channel) -> OpenRequest:
    """What a chat's backend is opened for, as things are now.

    Raises `AgentFailed` when the session is gone: nobody is to work for it any more.
    """
    owner = host.ledger.find(chat.owner) if chat.owner is not None else None
    if owner is None:
        raise AgentFailed("the session has ended")
    session: SessionState = owner.state
    directories = chat.state.working_directories
    if directories is None:
        directories = session.working_directories or ()
    history = history_left(chat.heritage, chat.state)
    known = {turn.id for turn in (*history, *chat.heritage.context)}
    return OpenRequest(
        owner.uri,
        chat.uri,
        directories,
        session.config.values if session.config is not None else {},
        history=history,
        context=chat.heritage.context,
        selection=chat.heritage.selection,
        attached={key: held for key, held in chat.heritage.attached.items() if key in known},
    )


class Engine:
    """A chat's backend: opened when first needed, and again after it broke or is to work elsewhere.

    `request` says what it is to be opened for, and is asked each time: that may have changed.
    """

    def __init__(self, agent: Agent, request: Callable[[], OpenRequest]) -> None:
        self._agent = agent
        self._request = request
        self._opened: OpenRequest | None = None
        self._opening = trio.Lock()
        self.backend: Backend | None = None

    async def open(self) -> Backend:
        """The backend, opened if there is none. Raises `AgentFailed`."""
        async with self._opening:
            request = self._request()
            if self._opened is not None and _elsewhere(request, self._opened):
                await self.close()
            if self.backend is None:
                self._opened = request
                self.backend = await self._agent.open(self._opened)
            return self.backend

    async def close(self) -> None:
        """Let go of the backend, within `CLOSE_WITHIN`; never raises an error of the agent's."""
        backend, self.backend = self.backend, None
        if backend is None or self._opened is None:
            return
        chat = self._opened.chat
        with trio.move_on_after(CLOSE_WITHIN, shield=True) as scope:
            try:
                await backend.close()
            except Exception:  # noqa: BLE001 an agent's own code: not the chat's fault
                _log.exception("%s: closing the agent failed", chat)
        if scope.cancelled_caught:
            _log.warning("%s: the agent did not close in %s s", chat, CLOSE_WITHIN)


def _elsewhere(wanted: OpenRequest, opened: OpenRequest) -> bool:
    """Whether an agent that was opened so works in other directories than it should by now."""
    return tuple(wanted.working_directories) != tuple(opened.working_directories)


async def work(engine: Engine, run: Run, prompt: Prompt, chat: Ref[Any]) -> None:
    """The body of a run's task. However the agent ends, exactly one `RunOver` is sent.

    Cancelled (the chat stops, or the agent did not obey a cancel): nothing is sent.
    """

    async def say(events: Sequence[Event]) -> None:
        await chat.send(AgentSays(run.number, events), cost=_weight(events))

    outcome: Outcome
    broken = False
    try:
        backend = await engine.open()
        if run.stopping:  # before the agent had anything to stop
            outcome = Stopped()
        else:
            run.prompted = True
            with suppress(SendRefused):  # full: then what it would start is late, not lost
                chat.cast(RunBegan(), urgent=True)
            outcome = await backend.prompt(prompt, say)
    except AgentFailed as error:
        outcome, broken = Failed(error.message, "AgentFailed", error.resumable), True
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
    return sum(64 + len(getattr(event, "text", "")) for event in events)
