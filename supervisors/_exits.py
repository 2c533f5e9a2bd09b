"""How an actor ended, and what its supervisor makes of it: a table, tested as data.

Pure: no trio, no clock. Anyone in the package may import it.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterator
from enum import Enum
from typing import Any

import attrs
from msgspec import Struct


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

#: The name of a class itself, whatever its metaclass says.
name_of: Callable[[type], str] = type.__dict__["__name__"].__get__


def said(value: object, how: Callable[[Any], str] = str) -> str:
    """The text of an object that is not ours; never fails, whatever its ``__str__`` does.

    Words about a child are made in the middle of its supervisor's work, where an exception would
    end the whole tree.
    """
    if type(value) is str and how is str:
        return value
    text = None
    try:
        # A subclass of str could still fail later, when it is formatted.
        text = str.__str__(how(value))
    except KeyboardInterrupt:
        raise
    except BaseException:  # noqa: BLE001 a foreign method may raise anything
        pass
    return text if text is not None else f"({name_of(type(value))} without words: its own failed)"


class Crash(Struct, frozen=True, eq=False):
    """An exception that ended an actor, kept for people to read.

    `error` is the live object (an exception group when it came through a nursery). It keeps its
    frames alive, so only the last crash of each path is held. `actor` is the incarnation that
    crashed, and `in_hand` the message that it was at; None where there was none.
    """

    error: BaseException
    actor: object = None
    in_hand: object = None

    def __repr__(self) -> str:
        """The exception alone: states and messages may be of any size."""
        return f"Crash(error={said(self.error, repr)})"

    @property
    def type_name(self) -> str:
        """Class name of the first exception that is not a group."""
        return name_of(type(next(leaves(self.error))))

    @property
    def text(self) -> str:
        """``Type: message`` for every exception in it, in order. Never fails."""
        return "; ".join(f"{name_of(type(leaf))}: {said(leaf)}" for leaf in leaves(self.error))

    @property
    def traceback(self) -> str:
        """The whole traceback, formatted now; groups are shown as groups. Never fails."""
        return said(self.error, _formatted)


@attrs.frozen
class Exit:
    """How one incarnation ended.

    `at` is in seconds of trio's clock. `swallowed_cancel` says that the actor was cancelled, kept
    the ``Cancelled`` to itself and returned: a bug in the actor that trio cannot show otherwise.
    A `reason` that is no text becomes its text.
    """

    kind: ExitKind
    reason: str = attrs.field(default="", converter=said)
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

    @property
    def without_frames(self) -> Exit:
        """The same in words alone: it keeps no traceback, and so nothing of the actor, alive."""
        if self.crash is None:
            return self
        return attrs.evolve(self, reason=self.detail, crash=None)


def _formatted(error: BaseException) -> str:
    return "".join(traceback.format_exception(error))


def leaves(error: BaseException) -> Iterator[BaseException]:
    """The exceptions in a group, depth first; a single exception is its own leaf."""
    left = [error]
    while left:
        each = left.pop()
        if isinstance(each, BaseExceptionGroup):
            left.extend(reversed(each.exceptions))
        else:
            yield each
