"""How an actor ended, and what its supervisor makes of it: a table, tested as data.

Pure: no trio, no clock. Anyone in the package may import it.
"""

from __future__ import annotations

import traceback
from collections.abc import Iterator
from enum import Enum

import attrs


class Restart(Enum):
    """Whether a child is started again after it ends."""

    PERMANENT = "permanent"  #: always
    TRANSIENT = "transient"  #: only when it ended abnormally
    TEMPORARY = "temporary"  #: never; its spec is forgotten with it


class ExitKind(Enum):
    """Why one incarnation of an actor ended."""

    NORMAL = "normal"  #: it ended by itself
    STOPPED = "stopped"  #: its supervisor asked, or the cancel after the grace ended it
    CRASHED = "crashed"  #: an exception left it, or left one of its helpers
    KILLED = "killed"  #: someone outside ended it at once
    LINKED = "linked"  #: an actor it is linked to ended abnormally
    LOST = "lost"  #: its task vanished without a word
    START_FAILED = "start_failed"  #: it never became ready
    GAVE_UP = "gave_up"  #: a supervisor that passed its intensity


class Verdict(Enum):
    """What a supervisor does about an exit it did not ask for."""

    RESTART = "restart"
    LEAVE_DOWN = "leave down"
    FORGET = "forget"


_ABNORMAL = {
    Restart.PERMANENT: Verdict.RESTART,
    Restart.TRANSIENT: Verdict.RESTART,
    Restart.TEMPORARY: Verdict.FORGET,
}

#: Exit kind and restart kind to verdict. A supervisor that gave up counts as abnormal: the polite
#: end would let a transient entry above it stay down for ever.
VERDICTS: dict[ExitKind, dict[Restart, Verdict]] = {
    ExitKind.NORMAL: {
        Restart.PERMANENT: Verdict.RESTART,
        Restart.TRANSIENT: Verdict.LEAVE_DOWN,
        Restart.TEMPORARY: Verdict.FORGET,
    },
    ExitKind.STOPPED: {
        Restart.PERMANENT: Verdict.LEAVE_DOWN,
        Restart.TRANSIENT: Verdict.LEAVE_DOWN,
        Restart.TEMPORARY: Verdict.FORGET,
    },
    ExitKind.CRASHED: _ABNORMAL,
    ExitKind.KILLED: _ABNORMAL,
    ExitKind.LINKED: _ABNORMAL,
    ExitKind.LOST: _ABNORMAL,
    ExitKind.START_FAILED: _ABNORMAL,
    ExitKind.GAVE_UP: _ABNORMAL,
}

#: Exits that do not count as a failure.
ORDERLY = (ExitKind.NORMAL, ExitKind.STOPPED)


@attrs.frozen(eq=False)
class Crash:
    """An exception that ended an actor, kept for people to read.

    `error` is the live object (an exception group when it came through a nursery). It keeps its
    frames alive, so only the last crash of each path is held.
    """

    error: BaseException

    @property
    def type_name(self) -> str:
        """Class name of the first exception that is not a group."""
        return type(next(leaves(self.error))).__name__

    @property
    def text(self) -> str:
        """``Type: message`` for every exception in it, in order."""
        return "; ".join(f"{type(leaf).__name__}: {leaf}" for leaf in leaves(self.error))

    @property
    def traceback(self) -> str:
        """The whole traceback, formatted now; groups are shown as groups."""
        return "".join(traceback.format_exception(self.error))


@attrs.frozen
class Exit:
    """How one incarnation ended.

    `at` is in seconds of trio's clock. `swallowed_cancel` says that the actor was cancelled, kept
    the ``Cancelled`` to itself and returned: a bug in the actor that trio cannot show otherwise.
    """

    kind: ExitKind
    reason: str = ""
    crash: Crash | None = attrs.field(default=None, eq=False)
    swallowed_cancel: bool = False
    at: float = attrs.field(default=0.0, eq=False)

    @property
    def abnormal(self) -> bool:
        """Whether it counts as a failure."""
        return self.kind not in ORDERLY

    @property
    def detail(self) -> str:
        """The reason, or what crashed it, in words."""
        return self.reason or (self.crash.text if self.crash else "")

    def __str__(self) -> str:
        return f"{self.kind.value}: {self.detail}" if self.detail else self.kind.value


def leaves(error: BaseException) -> Iterator[BaseException]:
    """The exceptions in a group, depth first; a single exception is its own leaf."""
    if isinstance(error, BaseExceptionGroup):
        for inner in error.exceptions:
            yield from leaves(inner)
    else:
        yield error
