"""Sub-agents: what an agent's other sessions say, as what its workers do.

An agent tells of a sub-agent (`subagent_update`), or lets it speak without a word about it, under
an id of a session that no answer ever named. Each is shown as a worker of a tool call that is made
for it, begun when it is first heard of in a turn. One that still runs when the turn ends goes on
as background work.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from msgspec import Struct

from ahpd.agents.acp.mapping import Updates
from ahpd.agents.acp.tolerant import text_of
from ahpd.agents.events import (
    BackgroundGone,
    BackgroundSet,
    CommandsChanged,
    Done,
    Event,
    Failed,
    MetaChanged,
    Outcome,
    Stopped,
    ToolFinished,
    ToolReady,
    ToolStarted,
    WorkerEnded,
    WorkerSays,
    WorkerStarted,
)
from ahpd.protocol.chat import BackgroundSubagentWork

#: Sub-agents of one conversation that are remembered; of more nothing is shown.
MOST = 1000

#: What of a sub-agent's would be said of the whole session.
_NOT_ITS_OWN = (CommandsChanged, MetaChanged)


class _Child(Struct, eq=False):
    """A sub-agent. `call_id` is the call that is shown for it while it `runs`."""

    updates: Updates
    parent: str | None = None
    title: str = "Sub-agent"
    description: str | None = None
    runs: bool = False
    in_background: bool = False
    call_id: str = ""
    times: int = 0


class Children:
    """The sub-agents of one conversation. `make` makes what reads the updates of one."""

    def __init__(self, make: Callable[[str], Updates], now: Callable[[], str]) -> None:
        self._make = make
        self._now = now
        self._children: dict[str, _Child] = {}

    def updates_of(self, session: str) -> Updates | None:
        """What reads this one's updates, while it runs."""
        child = self._children.get(session)
        return child.updates if child is not None and child.runs else None

    # ---- what is said ------------------------------------------------------------------------

    def heard(self, session: str, update: dict[str, Any], *, in_turn: bool) -> Sequence[Event]:
        """A sub-agent says something."""
        child = self._child(session, None)
        if child is None:
            return ()
        begins = self._begin(session, child) if in_turn and not child.runs else ()
        if not child.runs:
            return ()
        events = [
            each for each in child.updates.in_turn(update) if not isinstance(each, _NOT_ITS_OWN)
        ]
        return (*begins, *([WorkerSays(session, events)] if events else ()))

    def told(self, parent: str | None, update: dict[str, Any], *, in_turn: bool) -> Sequence[Event]:
        """A `subagent_update`; `parent` is the sub-agent that it comes from, if it is one's."""
        session = text_of(update, "sessionId")
        child = None if session is None else self._child(session, parent)
        if session is None or child is None:
            return ()
        child.title = text_of(update, "title") or child.title
        child.description = text_of(update, "description") or child.description
        match text_of(update, "state", "state"):
            case "running" | "requires_action" if in_turn and not child.runs:
                return self._begin(session, child)
            case "idle" if child.runs:
                return self._end(session, child, _outcome(update))
            case _:
                return ()

    def says(self, session: str, events: Sequence[Event]) -> Sequence[Event]:
        """The events as this sub-agent's, or as they are when it is none."""
        if session not in self._children or not events:
            return events
        return (WorkerSays(session, events),)

    # ---- turns -------------------------------------------------------------------------------

    def turn_is_over(self, *, cancelled: bool) -> Sequence[Event]:
        """What runs goes on beside the turns, or has ended with one that was cancelled."""
        events: list[Event] = []
        for session, child in self._children.items():
            if not child.runs or child.in_background:
                continue
            if cancelled:
                child.runs = False
                continue
            child.in_background = True
            work = BackgroundSubagentWork(
                id=_work_id(session), label=child.title, started_at=self._now(), chat=""
            )
            message = f"{child.title} goes on in the background"
            finished = ToolFinished(child.call_id, True, message)
            events += [BackgroundSet(work, session), *self.says(child.parent or "", (finished,))]
        return events

    # ---- one of them -------------------------------------------------------------------------

    def _child(self, session: str, parent: str | None) -> _Child | None:
        child = self._children.get(session)
        if child is None and len(self._children) < MOST:
            parent = parent if parent in self._children else None
            child = self._children[session] = _Child(self._make(session), parent)
        return child

    def _begin(self, session: str, child: _Child) -> Sequence[Event]:
        child.runs, child.in_background = True, False
        child.times += 1
        child.call_id = f"subagent {session}" + (f" #{child.times}" if child.times > 1 else "")
        child.updates.begin()
        begun = (
            ToolStarted(child.call_id, "subagent", child.title, "subagent"),
            ToolReady(child.call_id, child.title, child.description),
            WorkerStarted(session, child.call_id, child.title, child.description),
        )
        return self.says(child.parent or "", begun)

    def _end(self, session: str, child: _Child, outcome: Outcome) -> Sequence[Event]:
        child.runs = False
        left = [*child.updates.calls.close()]
        events = [*self.says(session, left), WorkerEnded(session, outcome)]
        if child.in_background:
            child.in_background = False
            return (*events, BackgroundGone(_work_id(session)))
        error = outcome.message if isinstance(outcome, Failed) else None
        finished = ToolFinished(child.call_id, error is None, child.title, error=error)
        return (*events, *self.says(child.parent or "", (finished,)))


def _work_id(session: str) -> str:
    return f"subagent:{session}"


def _outcome(update: dict[str, Any]) -> Outcome:
    """How it says that it ended."""
    state = update.get("state")
    error = text_of(state, "error", "message") or text_of(state, "error")
    if error is not None:
        return Failed(error)
    return Stopped() if text_of(state, "stopReason") == "cancelled" else Done()
