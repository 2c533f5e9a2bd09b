"""What the host needs of terminals: `Terminals` starts a process on one, `Terminal` drives it.

Output comes as neutral *pieces*: text, and what a shell that tells of itself has said in between.
An adapter knows nothing of envelopes or channels; the terminal's actor turns pieces into actions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import Enum
from typing import Protocol, TypeAlias

from msgspec import Struct, field

from ahpd.protocol.uris import URI


class Fault(Enum):
    """Why a process could not be started."""

    NOT_FOUND = "not found"  #: there is no such folder
    NOT_ALLOWED = "not allowed"  #: the folder cannot be entered
    FAILED = "failed"  #: anything else


class SpawnFailed(Exception):
    """A process could not be started; a sentence for people. Nothing of it is left."""

    def __init__(self, message: str, fault: Fault = Fault.FAILED) -> None:
        super().__init__(message)
        self.message = message
        self.fault = fault


class TerminalOver(Exception):
    """There is nobody to write to: the process ended, or was let go of."""


class Spawn(Struct, frozen=True):
    """What to start, where, and in how many cells.

    `cwd` is a path, None for the person's home. `command` is a line for the person's shell to run
    by itself; None: the shell, to be talked to. `environment` comes on top of the host's own.
    """

    cwd: str | None = None
    cols: int = 80
    rows: int = 24
    command: str | None = None
    environment: Mapping[str, str] = field(default_factory=dict)


class Output(Struct, frozen=True):
    """Text that the process wrote, escape sequences included; never empty."""

    text: str


class Detected(Struct, frozen=True):
    """Commands are told apart from now on; said once (R-12.30)."""


class Prompted(Struct, frozen=True):
    """The shell waits at its prompt."""


class CommandBegan(Struct, frozen=True):
    """The shell runs a command; `line` is empty when it did not tell which."""

    line: str


class CommandEnded(Struct, frozen=True):
    """The command that began last is over; no code when the shell did not tell."""

    exit_code: int | None


class Moved(Struct, frozen=True):
    """The shell is in another folder now."""

    cwd: URI


Piece: TypeAlias = Output | Detected | Prompted | CommandBegan | CommandEnded | Moved


class Ended(Struct, frozen=True):
    """The process ended by itself with a code, or by a signal; exactly one is there."""

    exit_code: int | None
    signal: int | None = None


class Terminal(Protocol):
    """A process on a pseudo-terminal. One reader, one writer.

    Somebody has to be in `wait` from the beginning on: it is what tells the reader of the end.
    """

    #: What it is called until somebody calls it otherwise.
    title: str

    async def read(self) -> Sequence[Piece]:
        """What it has said, as soon as there is something; empty: it ended, and this was all.

        Every byte is given before that, also when other processes hold the terminal open. A
        checkpoint. Cancelled: nothing is lost.
        """
        ...

    async def write(self, data: bytes) -> None:
        """Give it all of these bytes, waiting while it does not read. Raises `TerminalOver`.

        Cancelled: it may have some of them.
        """
        ...

    def resize(self, cols: int, rows: int) -> None:
        """Tell it its size; nothing happens when it is over. Sync."""
        ...

    async def wait(self) -> Ended:
        """How it ended, once it has; what it wrote may still have to be read. A checkpoint."""
        ...

    async def is_reading(self) -> bool:
        """Whether what is in front waits for somebody to type, as far as the system tells.

        A checkpoint. False when it is over, or when nobody knows.
        """
        ...

    async def close(self) -> None:
        """End the process and all that it started on this terminal, and let go of everything.

        Hangs up, then asks, then kills, each with a bound, shielded from cancellation. Harmless
        again. Never raises an error of the system's.
        """
        ...


class Terminals(Protocol):
    """Starts processes on terminals."""

    def tells(self) -> bool:
        """Whether a shell to be talked to tells of its commands, if it comes up as it should."""
        ...

    async def spawn(self, spawn: Spawn) -> Terminal:
        """Start one. Raises `SpawnFailed`. Cancelled: it was not started, or is given all the same.

        Never holds up anybody else, however slow the folder is.
        """
        ...
