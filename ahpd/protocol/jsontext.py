"""JSON text to plain values and back, with one documented error and known limits.

orjson does the work. It takes only what RFC 8259 allows (no NaN, no infinity, no lone surrogate)
and keeps the last of repeated keys, as the peers' parsers do. Two limits are added here:

* nesting beyond `MAX_DEPTH` is refused when read. orjson reads 1024 levels and writes 254, and a
  host must be able to write what it read, inside the frames it wraps around it;
* whole numbers beyond 64 bits come out of orjson as floats, as in JavaScript.
"""

from __future__ import annotations

from typing import TypeAlias

import orjson

from ahpd.protocol.model import JSON

#: Deepest nesting of objects and arrays that `loads` accepts.
MAX_DEPTH = 192

#: JSON text that is put into a larger value unchanged, without decoding it.
Fragment: TypeAlias = orjson.Fragment


class ParseError(ValueError):
    """Text that is not JSON, or that is nested too deep; the message says what and where."""


def loads(text: bytes | bytearray | memoryview | str) -> JSON:
    """The value of a JSON text in UTF-8.

    Raises `ParseError` and nothing else, whatever the text.
    """
    try:
        value = orjson.loads(text)
    except orjson.JSONDecodeError as error:
        raise ParseError(f"not JSON: {error}") from None
    except (ValueError, TypeError, UnicodeError) as error:  # a str with lone surrogates
        raise ParseError(f"not JSON: {error}") from None
    if _may_be_deep(text) and _deeper_than(value, MAX_DEPTH):
        raise ParseError(f"nested deeper than {MAX_DEPTH} levels")
    return value


def _may_be_deep(text: bytes | bytearray | memoryview | str) -> bool:
    """Counts brackets, which costs next to nothing: few of them cannot nest deep."""
    if isinstance(text, str):
        return text.count("[") + text.count("{") > MAX_DEPTH
    if isinstance(text, memoryview):
        text = bytes(text)
    return text.count(b"[") + text.count(b"{") > MAX_DEPTH


def _deeper_than(value: JSON, limit: int) -> bool:
    level = [value]
    for _ in range(limit):
        inner: list[JSON] = []
        for item in level:
            if isinstance(item, dict):
                inner += [each for each in item.values() if isinstance(each, (dict, list))]
            elif isinstance(item, list):
                inner += [each for each in item if isinstance(each, (dict, list))]
        if not inner:
            return False
        level = inner
    return True


def dumps(value: JSON) -> bytes:
    """The JSON text of a plain value, in UTF-8, in one line.

    Raises `ParseError` when the value is not JSON (a lone surrogate, a number beyond 64 bits, a key
    that is no string, a type JSON does not have), and writes NaN and infinities as ``null``: values
    that came from `loads` hold none of these.
    """
    try:
        return orjson.dumps(value)
    except TypeError as error:
        raise ParseError(f"cannot be written as JSON: {error}") from None
