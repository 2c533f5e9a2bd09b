"""What goes into the policy and what comes out: plain data, nothing else.

Pure. The driver turns commands into tasks and cancels; tests read them.
"""

from __future__ import annotations

from enum import Enum

import attrs

from supervisors._exits import Exit
from supervisors._spec import ChildSpec

# ---- events: what happened ----------------------------------------------------------------------


@attrs.frozen
class Boot:
    """Start the children of the spec, in order."""


@attrs.frozen
class ChildReady:
    """A starting child says that it is up."""

    id: str


@attrs.frozen
class ChildExit:
    """A child's task ended."""

    id: str
    exit: Exit


@attrs.frozen
class AddChild:
    """Someone wants a new child."""

    spec: ChildSpec


@attrs.frozen
class StopChild:
    """Someone wants this child down, and to stay down."""

    id: str
    reason: str


@attrs.frozen
class RestartChild:
    """Someone wants this child down, if it is up, and then up, whatever its intensity says."""

    id: str


@attrs.frozen
class StopAll:
    """Someone wants the supervisor to end."""

    reason: str


@attrs.frozen
class Tick:
    """A wake-up time has come."""


Event = Boot | ChildReady | ChildExit | AddChild | StopChild | RestartChild | StopAll | Tick

# ---- commands: what to do -----------------------------------------------------------------------


@attrs.frozen
class Start:
    """Start a task for this child; its exit will be reported exactly once."""

    id: str
    incarnation: int


@attrs.frozen
class AskStop:
    """Ask this child to stop."""

    id: str
    reason: str


@attrs.frozen
class Cancel:
    """Cancel this child's scope."""

    id: str
    reason: str


class Settled(Enum):
    """Where a child came to rest."""

    UP = "up"
    WAITING = "waiting"  #: failed, and down until its backoff or its group's turn is over
    AGAIN = "starting again"  #: down because it was asked to be, at once or soon to be up again
    DOWN = "down"  #: stays down, spec kept
    PARKED = "parked"
    FORGOTTEN = "forgotten"  #: spec dropped, path free


@attrs.frozen
class Settle:
    """Tell whoever waits for this child, and its path, where it came to rest."""

    id: str
    where: Settled
    exit: Exit | None = None


class Note(Enum):
    """What a report is about."""

    STARTED = "started"
    EXITED = "exited"  #: an exit nobody asked for
    RESTARTING = "restarting"
    PARKED = "parked"
    STUCK = "stuck"  #: cancelled and still there
    SWALLOWED_CANCEL = "swallowed_cancel"
    LATE_START = "late_start"
    GAVE_UP = "gave_up"
    STOPPED = "stopped"
    SLOW_STEP = "slow_step"  #: one step of its task held up all others
    FAULT = "fault"  #: a planned fault was injected
    HOOK_FAILED = "hook_failed"  #: a hook or a sink raised and was removed


@attrs.frozen
class Tell:
    """Report something; `next` says what happens now."""

    note: Note
    id: str
    text: str
    next: str = ""
    exit: Exit | None = None


@attrs.frozen
class GiveUp:
    """All children are down; fail with this reason."""

    reason: str
    exits: tuple[Exit, ...]


@attrs.frozen
class Done:
    """All children are down; end."""

    reason: str


Command = Start | AskStop | Cancel | Settle | Tell | GiveUp | Done
