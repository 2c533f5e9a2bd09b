"""How the serving commands end: what went wrong becomes a sentence and an exit code.

Click is not needed here, because ``ahpd --stdio`` does without it.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from ahpd.cli import exits
from ahpd.daemon.errors import (
    AlreadyRunning,
    CannotServe,
    ConfigError,
    HostFailed,
    JournalUnusable,
    PeerBroke,
    StateError,
)


class Outcome:
    """Why serving ended, and the exit code for that."""

    def __init__(self) -> None:
        self.reason = ""
        self.error: int | None = None

    @property
    def code(self) -> int:
        """An error's own code; Ctrl-C's; else 0, also for a host that was told to stop."""
        if self.error is not None:
            return self.error
        return exits.INTERRUPTED if self.reason == "SIGINT" else exits.OK


def say(sentence: str) -> None:
    """Tell the person at the terminal, or whoever reads the log; nobody when that is closed."""
    if sys.stderr is not None:  # print would take standard output instead
        with suppress(OSError):
            print(f"ahpd: {sentence}", file=sys.stderr, flush=True)


@contextmanager
def explained() -> Iterator[Outcome]:
    """Run a host in the block, and set `reason`; what it fails with is said and becomes a code."""
    outcome = Outcome()
    try:
        yield outcome
    except (ConfigError, StateError, CannotServe, PeerBroke, HostFailed) as error:
        say(str(error))
        outcome.error = _code(error)


def _code(error: Exception) -> int:
    match error:
        case AlreadyRunning():
            return exits.ALREADY_RUNNING
        case JournalUnusable():
            return exits.JOURNAL_UNUSABLE
        case CannotServe():
            return exits.CANNOT_SERVE
        case PeerBroke():
            return exits.PEER_BROKE
        case HostFailed():
            return exits.HOST_FAILED
        case _:
            return exits.USAGE
