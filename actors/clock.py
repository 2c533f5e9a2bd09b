"""What time it is, for what is written into actions (invariant 9: read once, by actors alone)."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Clock:
    """Wall-clock time that never runs backwards while the host runs.

    The wall is read once, at the start; after that a monotonic clock carries on from there, so that
    a jump of the machine's clock changes no duration. `wall` gives Unix seconds, `steady` seconds
    of a clock that only goes forward.
    """

    def __init__(self, wall: Callable[[], float], steady: Callable[[], float]) -> None:
        self._steady = steady
        self._offset = wall() - steady()

    def ms(self) -> float:
        """Unix milliseconds."""
        return (self._steady() + self._offset) * 1000.0

    def now(self) -> str:
        """ISO 8601 in UTC with milliseconds, as actions carry it."""
        return iso(self.ms())


def iso(ms: float) -> str:
    """Unix milliseconds as ISO 8601 in UTC with milliseconds and ``Z``."""
    moment = _EPOCH + timedelta(milliseconds=ms)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def from_iso(text: str) -> float | None:
    """Unix milliseconds of an ISO 8601 time, or None when it is none."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return (moment - _EPOCH) / timedelta(milliseconds=1)
