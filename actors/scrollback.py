"""How much of a terminal's output is kept: the newest, up to a bound (R-12.25, R-12.26).

The host cuts its own copy and says nothing of it, so its state and its clients' may differ in what
is oldest (R-12.27). A cut is between characters and never inside an escape sequence, whose rest
would be shown as text. Pure.
"""

from __future__ import annotations

import re
from typing import Any

from ahpd.protocol.persistent import Text
from ahpd.protocol.terminal import (
    TerminalCommandPart,
    TerminalContent,
    TerminalState,
    TerminalUnclassifiedPart,
)

#: How much more than the bound there may be before it is cut: so that cutting, which costs as much
#: as there is, costs the same for each character that comes.
SLACK = 4
#: What a part costs besides its text, in characters: or commands that say nothing would pile up.
PART = 100
#: Characters after the place of a cut in which a line's end is looked for.
LINE_WITHIN = 4096
#: Characters after that in which the sequence that is there ends, nearly always.
SEQUENCE_WITHIN = 4096

#: Characters that are copied at most to see what of a line was written over.
OVER_AT_MOST = 16 << 20

#: A whole sequence, or all there is of one.
_SEQUENCE = re.compile(
    "\x1b(?:"
    r"\[[0-?]*[ -/]*[@-~]?"
    "|\\][^\x07\x18\x1a\x1b\x9c]*(?:[\x07\x9c]|\x1b\\\\|(?=\x1b)|[\x18\x1a]|\\Z)"
    "|[P_^X][^\x18\x1a\x1b\x9c]*(?:\x9c|\x1b\\\\|(?=\x1b)|[\x18\x1a]|\\Z)"
    "|[ -/]*[0-~]?"
    ")"
)


def size(state: TerminalState) -> int:
    """Characters that its parts hold, each with what it costs besides its text."""
    return sum(map(_cost, state.content))


def _cost(part: Any) -> int:
    line = len(part.command_line) if isinstance(part, TerminalCommandPart) else 0
    return len(_text(part)) + line + PART


def is_over(length: int, limit: int) -> bool:
    """Whether so many characters are to be cut down to `limit`."""
    return length > limit + limit // SLACK


def trimmed(state: TerminalState, limit: int) -> TerminalState:
    """The state with at most the newest `limit` characters; the same when there are no more."""
    excess = size(state) - limit
    if excess <= 0:
        return state
    parts = list(state.content)
    first = 0
    while excess >= len(_text(parts[first])) and first < len(parts) - 1:
        excess -= _cost(parts[first])
        first += 1
    if excess > 0:
        parts[first] = _shortened(parts[first], excess)
    return state.evolve(content=TerminalContent(parts[first:]))


def _text(part: Any) -> Any:
    match part:
        case TerminalUnclassifiedPart():
            return part.value
        case TerminalCommandPart():
            return part.output
        case _:
            return ""


def _shortened(part: Any, excess: int) -> Any:
    value = _text(part)
    text = value if isinstance(value, Text) else Text(value)
    place = _place_in(text, excess)
    rest = text.without_first(place)
    if isinstance(part, TerminalUnclassifiedPart):
        return part.evolve(value=rest)
    return part.evolve(output=rest)


def _place_in(text: Text, least: int) -> int:
    """As `place_of_cut`, of as little of the text as says it."""
    head = text.first(least + LINE_WITHIN + SEQUENCE_WITHIN)
    place = place_of_cut(head, least)
    return place if place < len(head) else place_of_cut(str(text), least)


def plain_text(state: TerminalState) -> str:
    """All of its output without escape sequences, in lines that end as those of files do."""
    return plain("".join(str(_text(part)) for part in state.content))


def plain(text: str) -> str:
    """The same of any output. What was written over, as by a bar of progress, is not there."""
    lines = _SEQUENCE.sub("", text).replace("\r\n", "\n").split("\n")
    return "\n".join([_written_over(line) if "\r" in line else line for line in lines])


def _written_over(line: str) -> str:
    parts = line.split("\r")
    if len(parts) * len(line) > OVER_AT_MOST:
        return next((part for part in reversed(parts) if part), "")
    shown = ""
    for part in parts:
        shown = part + shown[len(part) :]
    return shown


def place_of_cut(text: str, least: int) -> int:
    """Where to cut `text`, at `least` or a little later: at a line's beginning if there is one."""
    end = text.find("\n", least, least + LINE_WITHIN)
    place = least if end < 0 else end + 1
    # No sequence has another's beginning in it but that which ends it: so it is this one, or none.
    last = text.rfind("\x1b", 0, place)
    found = _SEQUENCE.match(text, last) if last >= 0 else None
    return place if found is None else max(place, found.end())
