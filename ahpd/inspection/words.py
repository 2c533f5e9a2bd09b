"""Messages and ends of actors in a few words, for a line of a table. Sync; never fails.

Words are made for people who look at a host in trouble, so they are short, hold no secrets, and are
made of values that may be of any size.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

from actors.messages import AgentSays, AsideSays, Dispatch
from ahpd.protocol.jsonrpc import Notification, Request
from supervisors import Exit

#: Characters of a name that somebody else chose.
LONGEST = 60


def cut(text: str, length: int = LONGEST) -> str:
    """The text, with an ellipsis where something is left out."""
    return text if len(text) <= length else text[: length - 1] + "…"


def brief(message: object) -> str:
    """A message in one line: what it is, and what of it tells it from others."""
    name = type(message).__name__
    more = _MORE.get(type(message))
    if more is None:
        return name
    return f"{name} {cut(more(message))}"


def _dispatch(message: Dispatch) -> str:
    raw = message.raw
    return str(raw.get("type")) if isinstance(raw, dict) else ""


def _events(message: AgentSays | AsideSays) -> str:
    kinds = Counter(type(event).__name__ for event in message.events)
    return ", ".join(kind if n == 1 else f"{kind} x{n}" for kind, n in kinds.items())


_MORE: Mapping[type, Callable[[Any], str]] = {
    Dispatch: _dispatch,
    AgentSays: _events,
    AsideSays: _events,
    Request: lambda message: message.method,
    Notification: lambda message: message.method,
}


def how_it_ended(exit: Exit) -> str:
    """An end in one line."""
    return cut(" ".join(str(exit).split()), 200)


def seconds(value: float) -> str:
    """A time in words: ``3 ms``, ``2.1 s``, ``4 min``."""
    if value < 1:
        return f"{value * 1000:.0f} ms"
    if value < 120:
        return f"{value:.1f} s"
    return f"{value / 60:.0f} min" if value < 7200 else f"{value / 3600:.0f} h"


def size(value: float) -> str:
    """Bytes in words: ``512 B``, ``1.5 KiB``, ``3 MiB``."""
    for unit in ("B", "KiB", "MiB"):
        if value < 1024:
            return f"{value:.0f} {unit}" if value >= 100 or unit == "B" else f"{value:.1f} {unit}"
        value /= 1024
    return f"{value:.1f} GiB"
