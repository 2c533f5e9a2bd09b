"""Hypothesis strategies for legal plain JSON of any wire type, made from the type's own shape.

`values` gives what a peer of this version may send; `newer` what a newer one may: unknown keys,
explicit nulls, unknown variants and choices. `mutated` spoils a value in one place.
"""

from __future__ import annotations

import copy
import importlib
import pkgutil
from collections.abc import Iterator
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st

import ahpd.protocol
from ahpd.protocol.model import JSON, Unknown, WireType
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
    is_wire,
    shape_of,
)

Strategy = st.SearchStrategy[Any]

#: Levels of objects below which optional fields stay away and lists stay empty.
DEPTH = 3

TEXT = st.text(st.characters(codec="utf-8"), max_size=6)
#: What JSON keeps exactly and schemas do not tell apart.
WHOLE = st.integers(-(2**53) + 1, 2**53 - 1)
NUMBER = WHOLE | st.floats(allow_nan=False, allow_infinity=False)
PRIMITIVE = st.none() | st.booleans() | NUMBER | TEXT
OPEN: Strategy = st.recursive(
    PRIMITIVE,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(TEXT, inner, max_size=2),
    max_leaves=3,
)
OBJECT = st.dictionaries(TEXT, OPEN, max_size=2)

_SCALARS: dict[str, Strategy] = {
    "string": TEXT,
    "boolean": st.booleans(),
    "number": NUMBER,
    "object": OBJECT,
}

SHAPES = (Anything, Array, ByKeys, Choice, Either, Map, Null, Record, Scalar, Tagged)


def examples(times: int) -> settings:
    """So many times the examples of the profile that runs."""
    assert settings.default is not None
    return settings(max_examples=times * settings.default.max_examples)


def wire_classes() -> list[WireType]:
    """Every wire class, by name."""
    found = {
        name: value
        for info in pkgutil.iter_modules(ahpd.protocol.__path__)
        for name, value in vars(importlib.import_module(f"ahpd.protocol.{info.name}")).items()
        if is_wire(value) and value is not Unknown
    }
    return [found[name] for name in sorted(found)]


def wire_aliases() -> dict[str, Any]:
    """Every alias in `ahpd.protocol` that stands for wire values: unions, choices, scalars."""
    found: dict[str, Any] = {}
    for info in pkgutil.iter_modules(ahpd.protocol.__path__):
        for name, value in vars(importlib.import_module(f"ahpd.protocol.{info.name}")).items():
            if name[0].isupper() and not isinstance(value, type) and name not in found:
                try:
                    shape_of(value)
                except TypeError:
                    continue
                found[name] = value
    return dict(sorted(found.items()))


def values(hint: Any, depth: int = DEPTH) -> Strategy:
    """Legal plain JSON of a wire type, a union of them, or a shape."""
    shape = hint if isinstance(hint, SHAPES) else shape_of(hint)
    return _Maker(newer=False).of(shape, depth)


def newer(hint: Any, depth: int = DEPTH) -> Strategy:
    """What a newer peer may send for a type: all that decoding must take and keep (R-1.21)."""
    shape = hint if isinstance(hint, SHAPES) else shape_of(hint)
    return _Maker(newer=True).of(shape, depth)


class _Maker:
    """Makes strategies in one of the two modes."""

    _made: dict[tuple[bool, WireType, int], Strategy] = {}

    def __init__(self, *, newer: bool) -> None:
        self.newer = newer

    def of(self, shape: Shape, depth: int) -> Strategy:
        match shape:
            case Anything():
                return OPEN
            case Null():
                return st.none()
            case Scalar():
                return _scalar(shape)
            case Choice():
                return self._choice(shape)
            case Array():
                item = self.of(shape.item, depth - 1) if depth > 0 else st.nothing()
                unique = _kind if shape.one_per_kind else None
                return st.lists(item, max_size=2 if depth > 0 else 0, unique_by=unique)
            case Map():
                if depth <= 0:
                    return st.just({})
                return st.dictionaries(TEXT, self.of(shape.value, depth - 1), max_size=2)
            case Record():
                return self._record(shape.cls, depth)
            case Tagged():
                known = [self.of(variant, depth) for variant in dict.fromkeys(_variants(shape))]
                return st.one_of(*known, *self._unknown(shape))
            case ByKeys():
                return st.one_of(*(self.of(record, depth) for _, record in shape.variants))
            case Either():
                return st.one_of(*(self.of(option, depth) for option in shape.options))

    def _choice(self, shape: Choice) -> Strategy:
        known = st.sampled_from(shape.values)
        is_text = isinstance(shape.values[0], str)
        return known | st.just("not-known-yet") if self.newer and is_text else known

    def _unknown(self, shape: Tagged) -> list[Strategy]:
        if not (self.newer and shape.open):
            return []
        return [OBJECT.map(lambda raw: {**raw, shape.tag: "not-known-yet"})]

    def _record(self, cls: WireType, depth: int) -> Strategy:
        key = self.newer, cls, depth
        if key not in self._made:
            self._made[key] = st.deferred(lambda: self._object(cls, depth))
        return self._made[key]

    def _object(self, cls: WireType, depth: int) -> Strategy:
        required: dict[Any, Strategy] = {}
        optional: dict[Any, Strategy] = {}
        for field in fields_of(cls):
            if not field.optional:
                required[field.key] = self._field(field, depth - 1)
            elif depth > 0:
                optional[field.key] = self._field(field, depth - 1)
        if self.newer:
            optional["xUnknown"] = OPEN
        return st.fixed_dictionaries(required, optional=optional)

    def _field(self, field: Field, depth: int) -> Strategy:
        if field.is_tag:
            assert isinstance(field.shape, Choice)
            return st.sampled_from(field.shape.values)
        made = self.of(field.shape, depth)
        return made | st.none() if self.newer and field.optional else made


def _scalar(shape: Scalar) -> Strategy:
    if shape.kind != "integer":
        return _SCALARS[shape.kind]
    return WHOLE if shape.minimum is None else st.integers(shape.minimum, 2**53 - 1)


def _variants(shape: Tagged) -> Iterator[Shape]:
    yield from shape.variants.values()


def _kind(value: JSON) -> str:
    return str(value.get("kind"))


def places(value: JSON, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """The path of every value inside `value`, itself not included."""
    items: Any = ()
    if isinstance(value, dict):
        items = value.items()
    elif isinstance(value, list):
        items = enumerate(value)
    for key, inner in items:
        yield (*path, key)
        yield from places(inner, (*path, key))


_REPLACEMENTS: tuple[JSON, ...] = (
    None, True, False, 0, -1, 1, 1.5, "", "other", [], {}, [None], {"kind": "other"},
    {"type": "other"}, {"x": 1}, 2**63,
)  # fmt: skip


@st.composite
def mutated(draw: st.DrawFn, base: Strategy) -> JSON:
    """A value of `base` with one place removed, replaced, or given an undeclared key."""
    value = copy.deepcopy(draw(base))
    found = list(places(value))
    if not found:
        return draw(st.sampled_from(_REPLACEMENTS))
    *way, last = draw(st.sampled_from(found))
    holder: Any = value
    for step in way:
        holder = holder[step]
    match draw(st.sampled_from(("remove", "replace", "add"))):
        case "remove":
            del holder[last]
        case "replace":
            holder[last] = draw(st.sampled_from(_REPLACEMENTS))
        case _ if isinstance(holder, dict):
            holder["undeclared"] = draw(st.sampled_from(_REPLACEMENTS))
        case _:
            holder.append(draw(st.sampled_from(_REPLACEMENTS)))
    return value
