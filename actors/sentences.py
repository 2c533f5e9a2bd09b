"""What others than its actor say in a channel's `activity`: that the actor is paused, or set aside.

It is true of actors of this process alone, so whoever finds it in what was kept takes it back.
"""

from __future__ import annotations

_PAUSED = "Paused by somebody who looks inside"
_SET_ASIDE = "Set aside after failing too often"


def paused(path: str) -> str:
    """Of an actor that takes no messages, because somebody is attached to it."""
    return f"{_PAUSED} (ahpd attach {path})"


def set_aside(path: str) -> str:
    """Of an actor that is parked."""
    return f"{_SET_ASIDE}. To try again: ahpd restart {path}"


def is_sentence(activity: str | None) -> bool:
    """Whether an activity is one of these."""
    return activity is not None and activity.startswith((_PAUSED, _SET_ASIDE))
