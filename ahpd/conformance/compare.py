"""Where two JSON values differ, for people to read."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Final

from ahpd.protocol.model import JSON

#: Longest part of a value that a difference shows, in characters.
SHOWN = 120

_NOTHING: Final = object()


def differences(expected: JSON, got: JSON, *, null_is_absent: bool) -> Iterator[str]:
    """``turns/0/id: expected "a", got nothing``, one line for each place.

    Numbers are equal by value and ``true`` is not 1. With `null_is_absent` a key that holds null
    equals one that is not there, as in results of reducers (R-24.34).
    """
    yield from _at("", expected, got, null_is_absent=null_is_absent)


def _at(path: str, expected: object, got: object, *, null_is_absent: bool) -> Iterator[str]:
    if isinstance(expected, dict) and isinstance(got, dict):
        for key in (*expected, *(key for key in got if key not in expected)):
            mine, theirs = (side.get(key, _NOTHING) for side in (expected, got))
            if null_is_absent:
                mine, theirs = (None if side is _NOTHING else side for side in (mine, theirs))
            yield from _at(_join(path, key), mine, theirs, null_is_absent=null_is_absent)
    elif isinstance(expected, list) and isinstance(got, list):
        for place in range(max(len(expected), len(got))):
            mine, theirs = (
                side[place] if place < len(side) else _NOTHING for side in (expected, got)
            )
            yield from _at(_join(path, place), mine, theirs, null_is_absent=null_is_absent)
    elif not _same_leaf(expected, got):
        yield f"{path or '.'}: expected {_shown(expected)}, got {_shown(got)}"


def _same_leaf(expected: object, got: object) -> bool:
    if isinstance(expected, bool) or isinstance(got, bool):
        return expected is got
    return expected == got


def _join(path: str, step: str | int) -> str:
    return f"{path}/{step}" if path else str(step)


def _shown(value: object) -> str:
    if value is _NOTHING:
        return "nothing"
    text = json.dumps(value, ensure_ascii=True)
    return text if len(text) <= SHOWN else text[: SHOWN - 1] + "…"
