"""What goes into the policy and what comes out: plain data, nothing else.

Pure. The driver turns commands into tasks and cancels; tests read them.
"""

from __future__ import annotations

from enum import Enum

from msgspec import Struct

from supervisors._exits import Exit
from supervisors._spec import ChildSpec

# ---- events: what happened ----------------------------------------------------------------------


class Boot(Struct, frozen=True):
    """Start the children of the spec, in order."""


class ChildReady(Struct, frozen=True):
    """A starting child says that it is up."""

    id: str


class ChildExit(Struct, frozen=True):
    """A child's task ended."""

    id: str
    exit: Exit


class AddChild(Struct, frozen=True):
    """Someone wants a new child."""

    spec: ChildSpec


class StopChild(Struct, frozen=True):
    """Someone wants this child down, and to stay down."""

    id: str
    reason: str


class RestartChild(Struct, frozen=True):
    """Someone wants this child down, if it is up, and then up, whatever its intensity says."""

    id: str


class StopAll(Struct, frozen=True):
    """Someone wants the supervisor to end."""

    reason: str


class Tick(Struct, frozen=True):
    """A wake-up time has come."""


Event = Boot | ChildReady | ChildExit | AddChild | StopChild | RestartChild | StopAll | Tick

# ---- commands: what to do -----------------------------------------------------------------------


class Start(Struct, frozen=True):
    """Start a task for this child; its exit will be reported exactly once."""

    id: str
    incarnation: int


class AskStop(Struct, frozen=True):
    """Ask this child to stop."""

    id: str
    reason: str


class Cancel(Struct, frozen=True):
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


class Settle(Struct, frozen=True):
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


class Tell(Struct, frozen=True):
    """Report something; `next` says what happens now."""

    note: Note
    id: str
    text: str
    next: str = ""
    exit: Exit | None = None


class GiveUp(Struct, frozen=True):
    """All children are down; fail with this reason."""

    reason: str
    exits: tuple[Exit, ...]


class Done(Struct, frozen=True):
    """All children are down; end."""

    reason: str


Command = Start | AskStop | Cancel | Settle | Tell | GiveUp | Done
