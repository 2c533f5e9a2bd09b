"""Where a JSON value does not fit a shape: path, what was expected, what was there.

Two ways of looking. *Tolerant* agrees with the decoders of `ahpd.protocol.compiled`: what a newer
peer may send (undeclared keys, unknown variants and choices, null for an optional field) is no
fault. *Strict* is for captures: there each of those is one, as in a closed JSON schema. Both take
plain JSON values only: a subclass of `str` or `dict` is not one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from msgspec import Struct

from ahpd.protocol.shapes import (
    Anything,
    Array,
    ByKeys,
    Choice,
    Either,
    Field,
    Map,
    Null,
    Record,
    Scalar,
    Shape,
    Tagged,
    fields_of,
)

#: Longest part of a faulty value that a message shows, in characters.
SHOWN = 80


class Fault(Struct, frozen=True):
    """One place where a value does not fit.

    `path` holds object keys and array places from the top; `expected` is for people to read.
    """

    path: tuple[str | int, ...]
    expected: str
    found: str

    def __str__(self) -> str:
        """``turns/0/id: expected string, got 7``."""
        return f"{self.where}: expected {self.expected}, got {self.found}"

    @property
    def where(self) -> str:
        """The path as one string; ``.`` is the value itself."""
        return "/".join(str(step) for step in self.path) or "."


def shown(value: object) -> str:
    """A short text for any value: JSON-like for what JSON has, its type for the rest."""
    match value:
        case None:
            return "null"
        case bool():
            return str(value).lower()
        case dict():
            return "an object"
        case list() | tuple():
            return "an array"
        case int() if value.bit_length() > 4 * SHOWN:
            return f"a whole number of {value.bit_length()} bits"  # Python may refuse to print it
        case str() | int() | float():
            text = ascii(value)
            return text if len(text) <= SHOWN else text[: SHOWN - 1] + "…"
        case _:
            return f"a {type(value).__name__}"


def faults(shape: Shape, value: object, *, strict: bool = False) -> Iterator[Fault]:
    """Every fault of `value`, outermost first; none when it fits."""
    return _Walk(strict=strict).of(shape, value, ())


Path = tuple[str | int, ...]


class _Walk(Struct, frozen=True):
    strict: bool

    def of(self, shape: Shape, value: object, path: Path) -> Iterator[Fault]:
        fits = True
        match shape:
            case Anything():
                pass
            case Scalar():
                fits = _scalar_fits(shape, value)
            case Null():
                fits = value is None
            case Choice():
                fits = self._choice_fits(shape, value, tag=False)
            case Array():
                return self._array(shape, value, path)
            case Map():
                return self._map(shape, value, path)
            case Record():
                return self._record(shape, value, path)
            case Tagged():
                return self._tagged(shape, value, path)
            case ByKeys():
                return self._by_keys(shape, value, path)
            case Either():
                return self._either(shape, value, path)
        return iter(()) if fits else iter((Fault(path, str(shape), shown(value)),))

    def _choice_fits(self, shape: Choice, value: object, *, tag: bool) -> bool:
        if not any(type(value) is type(option) for option in shape.values):
            return False
        if isinstance(value, bool):
            return any(value is option for option in shape.values)
        return value in shape.values or not (self.strict or tag)

    def _array(self, shape: Array, value: object, path: Path) -> Iterator[Fault]:
        if type(value) is not list:
            yield Fault(path, str(shape), shown(value))
            return
        for place, item in enumerate(value):
            yield from self.of(shape.item, item, (*path, place))
        if self.strict and shape.one_per_kind:
            kinds = [item.get("kind") for item in value if isinstance(item, dict)]
            for kind in ("afterRuns", "afterDate"):
                if kinds.count(kind) > 1:
                    yield Fault(path, f"at most one {kind}", f"{kinds.count(kind)}")

    def _map(self, shape: Map, value: object, path: Path) -> Iterator[Fault]:
        if type(value) is not dict:
            yield Fault(path, str(shape), shown(value))
            return
        for key, item in value.items():
            yield from self.of(shape.value, item, (*path, str(key)))

    def _record(self, shape: Record, value: object, path: Path) -> Iterator[Fault]:
        if type(value) is not dict:
            yield Fault(path, str(shape), shown(value))
            return
        fields = fields_of(shape.cls)
        for field in fields:
            yield from self._field(field, value, path)
        if self.strict:
            for key in value.keys() - {field.key for field in fields}:
                yield Fault((*path, str(key)), f"no such key in {shape}", shown(value[key]))

    def _field(self, field: Field, value: Mapping[str, Any], path: Path) -> Iterator[Fault]:
        here = (*path, field.key)
        if field.key not in value:
            if not field.optional:
                yield Fault(here, str(field.shape), "nothing")
            return
        item = value[field.key]
        if field.optional and item is None and not self.strict:
            return
        if field.is_tag and isinstance(field.shape, Choice):
            if not self._choice_fits(field.shape, item, tag=True):
                yield Fault(here, str(field.shape), shown(item))
            return
        yield from self.of(field.shape, item, here)

    def _tagged(self, shape: Tagged, value: object, path: Path) -> Iterator[Fault]:
        if type(value) is not dict:
            yield Fault(path, str(shape), shown(value))
            return
        tag = value.get(shape.tag)
        options = list(shape.variants)
        known = [option for option in options if type(option) is type(tag) and option == tag]
        if known:
            yield from self.of(shape.variants[known[0]], value, path)
        elif self.strict or not shape.open or type(tag) is not str:
            found = shown(tag) if shape.tag in value else "nothing"
            yield Fault((*path, shape.tag), shape.tag_text, found)

    def _by_keys(self, shape: ByKeys, value: object, path: Path) -> Iterator[Fault]:
        if type(value) is not dict:
            yield Fault(path, str(shape), shown(value))
            return
        for keys, record in shape.variants:
            if keys <= value.keys():
                yield from self.of(record, value, path)
                return
        if self.strict:
            yield Fault(path, str(shape), shown(value))

    def _either(self, shape: Either, value: object, path: Path) -> Iterator[Fault]:
        found = [list(self.of(option, value, path)) for option in shape.options]
        if all(found):
            # The option that got furthest into the value is the one its writer meant.
            deepest = max(found, key=lambda option: len(option[0].path))
            if len(deepest[0].path) > len(path):
                yield from deepest
            else:
                yield Fault(path, str(shape), shown(value))


_KINDS: Mapping[str, tuple[type, ...]] = {
    "string": (str,),
    "boolean": (bool,),
    "object": (dict,),
    "number": (int, float),
    "integer": (int, float),
}


def _scalar_fits(shape: Scalar, value: Any) -> bool:
    if type(value) not in _KINDS[shape.kind]:
        return False
    if shape.kind == "integer" and type(value) is float and not value.is_integer():
        return False
    return shape.minimum is None or value >= shape.minimum
