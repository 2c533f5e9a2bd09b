"""Reading what other programs write: JSON as it comes, and values of whatever shape."""

from __future__ import annotations

import json
import math
from typing import Any

from ahpd.protocol.jsontext import MAX_DEPTH, ParseError, loads
from ahpd.protocol.model import JSON


def read_json(line: bytes) -> JSON:
    """The value of a line. Raises `ParseError` for what is no JSON by any reading.

    Numbers that JSON does not have become null, and halves of characters, which JavaScript may cut
    a text into, and bytes that are no UTF-8, the replacement character: a response that is dropped
    for one of these would be waited for in vain.
    """
    try:
        return loads(line)
    except ParseError as error:
        if line.lstrip()[:1] not in (b"{", b"["):
            raise
        if f"deeper than {MAX_DEPTH}" in str(error):
            raise
    try:
        text = line.decode(errors="replace")
        value = json.loads(text, parse_constant=lambda _: None, parse_float=_finite)
        # Through bytes once more: with whole characters, and held against the limits.
        pairs = json.dumps(value, ensure_ascii=False).encode("utf-16", "surrogatepass")
        return loads(pairs.decode("utf-16", "replace"))
    except (ValueError, RecursionError) as error:
        raise ParseError(f"not JSON: {error}") from None


def _finite(text: str) -> float | None:
    number = float(text)
    return number if math.isfinite(number) else None


def text_of(value: Any, *keys: str) -> str | None:
    """The text at a path of keys; None when there is none, or something else."""
    for key in keys:
        value = value.get(key) if isinstance(value, dict) else None
    return value if isinstance(value, str) else None


def dict_of(value: Any, *keys: str) -> dict[str, Any]:
    """The object at a path of keys; an empty one when there is none."""
    for key in keys:
        value = value.get(key) if isinstance(value, dict) else None
    return value if isinstance(value, dict) else {}


def dicts_of(value: Any, *keys: str) -> list[dict[str, Any]]:
    """The objects in the array at a path of keys; what is none of them is left out."""
    for key in keys:
        value = value.get(key) if isinstance(value, dict) else None
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []


def number_of(value: Any, *keys: str) -> float | None:
    """The number at a path of keys."""
    for key in keys:
        value = value.get(key) if isinstance(value, dict) else None
    return value if isinstance(value, (int, float)) and not isinstance(value, bool) else None
