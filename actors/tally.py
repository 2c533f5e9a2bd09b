"""`Tally`: what is counted from the process's start on, because nothing else knows it later."""

from __future__ import annotations

from collections import Counter

from msgspec import Struct, field

from ahpd.agents.events import Failed, Outcome, Stopped
from supervisors import Note, Report


class Tally(Struct, eq=False):
    """Counts of things that are rare beside messages. Everything is sync."""

    #: Turns that ended, by how: ``complete``, ``cancelled`` or ``error``.
    turns: Counter[str] = field(default_factory=Counter)
    #: Clients that came back, by how they were answered: ``replay`` or ``snapshot``.
    reconnects: Counter[str] = field(default_factory=Counter)
    #: Envelopes, and bytes of them, that were sent again to those who came back.
    replayed: int = 0
    replayed_bytes: int = 0
    restarts: int = 0
    crashes: int = 0
    parked: int = 0

    def turn_ended(self, outcome: Outcome) -> None:
        """A turn is over."""
        kind = "error" if isinstance(outcome, Failed) else "complete"
        self.turns["cancelled" if isinstance(outcome, Stopped) else kind] += 1

    def note(self, report: Report) -> None:
        """Something happened to an actor."""
        self.restarts += report.note is Note.RESTARTING
        self.parked += report.note is Note.PARKED
        self.crashes += report.exit is not None and report.exit.crash is not None
