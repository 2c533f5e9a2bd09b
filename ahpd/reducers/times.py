"""Times in actions: reducers read no clock, so that all replicas agree (R-5.28)."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)


def after(start: str, milliseconds: float) -> str | None:
    """`start` plus a duration, as UTC with milliseconds and ``Z`` (R-9.58).

    `start` may be any ISO 8601 time; one without an offset is taken as UTC, since a replica's own
    time zone must not matter. None when it is none, or when the end is no year that four digits
    can say: no rule covers that, and the callers keep the time they had.
    """
    try:
        begun = datetime.fromisoformat(start.upper())
        if begun.tzinfo is None:
            begun = begun.replace(tzinfo=UTC)
        whole = int((begun - _EPOCH) // _MILLISECOND + milliseconds)
        end = _EPOCH + timedelta(milliseconds=whole)
    except (ValueError, OverflowError):
        return None
    return end.replace(tzinfo=None).isoformat(timespec="milliseconds") + "Z"
