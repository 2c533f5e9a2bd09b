"""States as JSON that is made where somebody looks, and JSONPath over them.

A chat may hold ten thousand turns, and whoever asks for its `activity` is not to wait, nor to have
others wait, until they are all written. So a path (RFC 9535) walks over views of the state, and
only what it finds is made into JSON.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeAlias, overload

import jsonpath
from jsonpath.exceptions import JSONPathError

from ahpd.inspection.slices import Slices
from ahpd.protocol.errors import ErrorCode, ProtocolError
from ahpd.protocol.jsontext import Fragment, dumps
from ahpd.protocol.model import JSON, Unknown, Wire
from ahpd.protocol.persistent import Text

#: Places in a state, and the JSON text of what is there.
Found: TypeAlias = Sequence[tuple[str, bytes]]

#: Values that one path may look at, and bytes of what it may find.
MOST_VALUES, MOST_BYTES = 200_000, 4 << 20


class _TooMuch(Exception):
    """More was looked at than may be in one go."""


class Meter:
    """Counts what is looked at."""

    def __init__(self) -> None:
        self.left = MOST_VALUES

    def count(self) -> None:
        """One more. Raises `_TooMuch`."""
        self.left -= 1
        if self.left < 0:
            raise _TooMuch


def view(value: Any, meter: Meter) -> Any:
    """The value as JSON would have it, its insides made when they are looked at."""
    meter.count()
    match value:
        case Unknown():
            return value.raw
        case Wire() | Mapping():
            return Record(value, meter)
        case Text():
            return str(value)
        case str() | bytes():
            return value
        case Sequence():
            return Array(value, meter)
        case _:
            return value


class Record(Mapping[str, Any]):
    """An object."""

    def __init__(self, value: Wire | Mapping[str, Any], meter: Meter) -> None:
        self._meter = meter
        if isinstance(value, Wire):
            held = {wire: getattr(value, name) for name, wire in type(value).wire_names.items()}
            self._held = {key: each for key, each in held.items() if each is not None}
            self._held.update(value.extra)
        else:
            self._held = dict(value)

    def __getitem__(self, key: str) -> Any:
        return view(self._held[key], self._meter)

    def __iter__(self) -> Iterator[str]:
        return iter(self._held)

    def __len__(self) -> int:
        return len(self._held)


class Array(Sequence[Any]):
    """A list."""

    def __init__(self, value: Sequence[Any], meter: Meter) -> None:
        self._value = value
        self._meter = meter

    @overload
    def __getitem__(self, place: int) -> Any: ...
    @overload
    def __getitem__(self, place: slice) -> Sequence[Any]: ...
    def __getitem__(self, place: int | slice) -> Any:
        if isinstance(place, slice):
            return [self[each] for each in range(*place.indices(len(self)))]
        return view(self._value[place], self._meter)

    def __len__(self) -> int:
        return len(self._value)


class Path:
    """A JSONPath. ``title`` and ``.title`` mean ``$.title``."""

    def __init__(self, text: str) -> None:
        """Raises `ProtocolError` when it is none."""
        self.text = text.strip() or "$"
        if not self.text.startswith("$"):
            joint = "" if self.text.startswith((".", "[")) else "."
            self.text = f"${joint}{self.text}"
        try:
            self._compiled = jsonpath.compile(self.text)
        except (JSONPathError, ValueError, RecursionError) as error:
            words = " ".join(str(error).partition("\n")[0].split())
            raise ProtocolError(
                ErrorCode.INVALID_PARAMS, f"{self.text} is no JSONPath: {words}"
            ) from None

    async def found_in(self, state: Any) -> Found:
        """The places that it means in a state, and the JSON text of what is there.

        A checkpoint or many. Raises `ProtocolError` when that is too much.
        """
        meter, slices = Meter(), Slices()
        await slices.rest()
        found: list[tuple[str, bytes]] = []
        size = 0
        try:
            for match in self._compiled.finditer(view(state, meter)):
                if slices.due:
                    await slices.rest()
                found.append((match.path, await _text(match.obj, slices)))
                size += len(found[-1][1])
                if size > MOST_BYTES:
                    raise _TooMuch
        except _TooMuch:
            raise ProtocolError(
                ErrorCode.INVALID_PARAMS, f"{self.text} is too much of it: name a part"
            ) from None
        except (JSONPathError, RecursionError) as error:
            raise ProtocolError(ErrorCode.INVALID_PARAMS, f"{self.text}: {error}") from None
        return found

    def keys_in(self, state: Any) -> list[str]:
        """The names in the objects that it means, in their order. Sync; empty when it is much."""
        found: dict[str, None] = {}
        try:
            for match in self._compiled.finditer(view(state, Meter())):
                if isinstance(match.obj, Mapping):
                    found.update(dict.fromkeys(match.obj))
        except (_TooMuch, JSONPathError, RecursionError):
            return []
        return list(found)


def matches(found: Found) -> JSON:
    """What a path found, for an answer."""
    return [{"at": at, "value": Fragment(text)} for at, text in found]


async def _text(value: Any, slices: Slices) -> bytes:
    """The JSON text of a view, with rests in between."""
    if slices.due:
        await slices.rest()
    match value:
        case Record():
            parts = [dumps(key) + b":" + await _text(value[key], slices) for key in value]
            return _joined(b"{", parts, b"}")
        case Array():
            return _joined(b"[", [await _text(each, slices) for each in value], b"]")
        case _:
            return dumps(value)


def _joined(head: bytes, parts: Sequence[bytes], tail: bytes) -> bytes:
    if sum(map(len, parts)) > MOST_BYTES:
        raise _TooMuch
    return head + b",".join(parts) + tail
