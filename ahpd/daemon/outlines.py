"""Values in a few words, for crash reports: bounded, whatever they are, and without secrets.

No foreign ``__repr__`` is called: it may take for ever, fail, or show what is nobody's business.
"""

from __future__ import annotations

import enum
from collections import deque
from collections.abc import Iterable, Mapping, Sequence, Set
from pathlib import PurePath
from typing import Any

import attrs
from msgspec import Struct

from ahpd.protocol.discreet import Discreet
from ahpd.transports.redaction import Redactor, names_secret

#: Characters of a text, entries of a container, and fields of a record that are shown.
TEXT, ENTRIES, FIELDS = 160, 8, 16
#: Characters of a whole outline.
LONGEST = 1000
#: Characters of a text that are looked at: a secret must not be cut in two before it is found.
LOOKED_AT = 4096
#: Whole numbers with more bits are not written out.
_BITS = 256


class Outliner:
    """Makes outlines; `depth` is how far it goes into what is in something."""

    def __init__(self, redact: Redactor, *, depth: int = 3) -> None:
        self._redact = redact
        self._depth = depth

    def __call__(self, value: object) -> str:
        """The outline of a value. Sync; never fails for a value of any kind."""
        text = self._of(value, self._depth)
        return text if len(text) <= LONGEST else f"{text[:LONGEST]}…"

    def named(self, name: str, value: object) -> str:
        """As ``name = value``; what is named like a secret is not shown."""
        return f"{name} = {'***' if _hides(name, value) else self(value)}"

    def _of(self, value: object, depth: int) -> str:
        kind = type(value)
        if value is None or kind in (bool, float):
            return repr(value)
        if isinstance(value, enum.Enum):
            return f"{kind.__name__}.{value.name}"
        if kind is int:
            return self._int(value)  # type: ignore[arg-type]
        if kind in (str, bytes, bytearray):
            return self._text(value)  # type: ignore[arg-type]
        if isinstance(value, str):  # a kind of its own, which may be there to hide what it holds
            return f"<{kind.__name__}>"
        if isinstance(value, PurePath):
            return f"{kind.__name__}({self._text(str(value))})"
        if isinstance(value, BaseException):
            return f"{kind.__name__}({', '.join(self._of(each, 0) for each in value.args[:3])})"
        return self._made_of(value, depth)

    def _made_of(self, value: object, depth: int) -> str:
        kind = type(value)
        if isinstance(value, Struct):
            hidden = value.hidden if isinstance(value, Discreet) else frozenset()
            return self._record(
                value, [n for n in value.__struct_fields__ if n not in hidden], depth
            )
        if attrs.has(kind):
            return self._record(value, [f.name for f in attrs.fields(kind) if f.repr], depth)
        # Of other classes only what is sure to answer at once, and not to change by being asked.
        if isinstance(value, dict) and kind is dict:
            return self._mapping(value, depth)
        if kind in (list, tuple, set, frozenset, deque):
            return self._entries(value, depth)  # type: ignore[arg-type]
        if isinstance(value, (Sequence, Set, Mapping)):
            return f"<{kind.__name__} of {_len(value)}>"
        name = getattr(value, "__qualname__", None)
        if isinstance(name, str):
            return f"<{kind.__name__} {name[:TEXT]}>"
        return f"<{kind.__module__}.{kind.__qualname__}>"

    def _int(self, value: int) -> str:
        bits = value.bit_length()
        return repr(value) if bits <= _BITS else f"<int of {bits} bits>"

    def _text(self, value: str | bytes | bytearray) -> str:
        whole = len(value)
        start = value[:LOOKED_AT]
        text = start if isinstance(start, str) else bytes(start).decode("utf-8", "backslashreplace")
        shown = self._redact(text)
        prefix = "" if isinstance(value, str) else "b"
        if len(shown) > TEXT or whole > LOOKED_AT:
            return f"{prefix}{shown[:TEXT]!r}… ({whole})"
        return f"{prefix}{shown!r}"

    def _record(self, value: object, names: Sequence[str], depth: int) -> str:
        kind = type(value).__name__
        if not depth:
            return f"{kind}(…)"
        shown = [self._field(value, name, depth) for name in names[:FIELDS]]
        if len(names) > FIELDS:
            shown.append("…")
        return f"{kind}({', '.join(shown)})"

    def _field(self, value: object, name: str, depth: int) -> str:
        try:
            inner: Any = getattr(value, name)
        except AttributeError:
            return f"{name}=<not set>"
        if _hides(name, inner):
            return f"{name}=***"
        return f"{name}={self._of(inner, depth - 1)}"

    def _mapping(self, value: Mapping[object, object], depth: int) -> str:
        if not depth and value:
            return f"<{len(value)} entries>"
        shown = []
        for key in _first(value):
            inner = value[key]
            hidden = isinstance(key, str) and _hides(key, inner)
            shown.append(f"{self._of(key, 0)}: {'***' if hidden else self._of(inner, depth - 1)}")
        return "{" + ", ".join(shown) + _more(value, "}")

    def _entries(self, value: Sequence[object] | Set[object], depth: int) -> str:
        kind = type(value).__name__
        if not depth and len(value):
            return f"<{kind} of {len(value)}>"
        shown = ", ".join(self._of(each, depth - 1) for each in _first(value))
        return f"{kind}[{shown}" + _more(value, "]")


def _first(values: Iterable[Any]) -> list[Any]:
    return [each for each, _ in zip(values, range(ENTRIES), strict=False)]


def _more(value: Sequence[object] | Set[object] | Mapping[object, object], end: str) -> str:
    return f", … {len(value) - ENTRIES} more{end}" if len(value) > ENTRIES else end


def _hides(name: str, value: object) -> bool:
    return isinstance(value, (str, bytes)) and names_secret(name)


def _len(value: Sequence[object] | Set[object] | Mapping[object, object]) -> str:
    try:
        return str(len(value))
    except Exception:  # noqa: BLE001 - somebody else's class
        return "unknown length"
