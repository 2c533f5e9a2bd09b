"""How long an agent may keep silent in a turn, and how long it may take to stop.

Silence counts from when the run began, from the last thing that the agent said and the last that it
was told. It has no limit unless one is set, and none while the agent waits for people. An agent
that was asked to stop has a time for that; one that is still being opened has none, for there is
nobody to ask.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import trio

from actors.host import Host
from actors.messages import CancelOverdue, SilenceDue
from actors.run import Engine, Run
from ahpd.agents.events import Failed
from supervisors import Actor, SendRefused


class Patience:
    """See the module. `actor` is the chat's, which is told when somebody's time may be up."""

    def __init__(self, host: Host, engine: Engine, actor: Actor[Any]) -> None:
        self._host = host
        self._engine = engine
        self._actor = actor

    # ---- silence -----------------------------------------------------------------------------

    def watch(self, run: Run) -> None:
        """Have the chat look when this run may have been silent for too long."""
        limit = self._host.settings.silence_limit
        if limit > 0:
            self._actor.spawn(self._watch, run, limit, name=f"watch {run.number}")

    async def _watch(self, run: Run, limit: float) -> None:
        await trio.sleep_until(run.heard + limit)
        with suppress(SendRefused):
            await self._actor.ref.send(SilenceDue(run.number))

    def note_sound(self, run: Run | None) -> None:
        """The agent has something to go on with: its silence is counted from now."""
        if run is not None:
            run.heard = trio.current_time()

    def lost(self, run: Run, *, can_resume: bool) -> Failed | None:
        """How a run ends whose agent was silent for too long; None: it was not, and is watched."""
        limit = self._host.settings.silence_limit
        if self._engine.waits:
            self.note_sound(run)
        if trio.current_time() - run.heard < limit:
            self.watch(run)
            return None
        said = f"the agent said nothing for {limit:g} seconds and was stopped"
        return Failed(said, "AgentSilent", resumable=can_resume)

    # ---- stopping ----------------------------------------------------------------------------

    def stop(self, run: Run) -> None:
        """Ask the agent to stop working on what it does, and count from now."""
        run.stopping = True
        if run.stopped is not None:
            run.stopped.set()  # the agent has no part in it, and ending a process takes its time
            return
        if self._engine.backend is None:
            self._actor.ref.cast(CancelOverdue(run.number))
            return
        if run.prompted:  # else it will not be, and a cancel now might hit the next turn (B17)
            self._engine.backend.cancel()
        self._actor.spawn(self._overdue, run.number, name="cancel deadline")

    async def _overdue(self, number: int) -> None:
        await trio.sleep(self._host.settings.cancel_within)
        self._actor.ref.cast(CancelOverdue(number))
