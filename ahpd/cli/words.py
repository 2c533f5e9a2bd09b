"""What numbers and states of the protocol are called on the command line. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

#: The activity in a status: bits 0 to 4 (R-7.31).
_ACTIVITY = 31
_ACTIVITIES: Mapping[int, str] = {1: "idle", 2: "failed", 8: "working", 24: "waits for you"}
_READ = 32
_ARCHIVED = 64

#: Where a tool call stands (RULES 10).
_CALLS: Mapping[str, str] = {
    "streaming": "being written",
    "pending-confirmation": "waits for approval",
    "running": "running",
    "auth-required": "waits for a token",
    "pending-result-confirmation": "its result waits for approval",
}
_NOT_RUN: Mapping[str, str] = {
    "denied": "denied",
    "skipped": "skipped",
    "result-denied": "result denied",
}

#: How a turn ended.
ENDINGS: Mapping[str, str] = {"complete": "done", "cancelled": "cancelled", "error": "failed"}


def status(bits: float) -> str:
    """The status of a session or chat; a bit that is not known is not told."""
    number = int(bits)
    words = [_ACTIVITIES.get(number & _ACTIVITY, "unknown")]
    if not number & _READ:
        words.append("unread")
    if number & _ARCHIVED:
        words.append("archived")
    return ", ".join(words)


def activity(bits: float) -> str:
    """The activity alone."""
    return _ACTIVITIES.get(int(bits) & _ACTIVITY, "unknown")


def call(tool_call: Any) -> str:
    """Where a tool call stands."""
    match getattr(tool_call, "status", None):
        case "completed":
            return "done" if tool_call.success else "failed"
        case "cancelled":
            return _NOT_RUN.get(tool_call.reason, tool_call.reason)
        case str(known) if known in _CALLS:
            return _CALLS[known]
        case other:
            return str(other)


def ago(moment: str, now: datetime) -> str:
    """How long before `now` an ISO 8601 time was; the text itself when it is none."""
    try:
        then = datetime.fromisoformat(moment)
    except ValueError:
        return moment
    if then.tzinfo is None:
        then = then.replace(tzinfo=UTC)
    seconds = (now - then).total_seconds()
    if seconds < 60:
        return "just now"
    for unit, size, limit in (("min", 60, 3600), ("h", 3600, 86400), ("d", 86400, 30 * 86400)):
        if seconds < limit:
            return f"{int(seconds // size)} {unit} ago"
    return then.date().isoformat()


def count(number: int, what: str, many: str | None = None) -> str:
    """A number with its noun; `many` where the plural is not made by an s."""
    return f"{number} {what if number == 1 else many or what + 's'}"


def clock(moment: str) -> str:
    """The local time of day of an ISO 8601 time; empty when it is none."""
    try:
        return datetime.fromisoformat(moment).astimezone().strftime("%H:%M:%S")
    except ValueError:
        return ""
