"""What a wire type's annotations mean: the one description that decoding and checking read.

`shape_of` turns an annotation into a `Shape`; `ahpd.protocol.compiled` makes fast functions from
shapes and `ahpd.protocol.faults` walks them to say where a value does not fit.

| annotation | shape |
|---|---|
| `str`, `AnyText` | `Scalar` str |
| `bool` | `Scalar` bool |
| `float`, ``Annotated[int, NUMBER]`` | `Scalar` number (1 and 1.0 are the same in JSON) |
| `int`, ``Annotated[int, Minimum(n)]`` | `Scalar` integer |
| ``Literal[…]`` | `Choice` |
| `JSON` | `Anything` |
| `Object` | `Scalar` object, its values open |
| ``Mapping[str, T]`` | `Map` |
| ``tuple[T, ...]``, a subclass of `Seq` | `Array` |
| a `Wire` class | `Record` |
| a union of `Wire` classes | `Tagged`, or `ByKeys` when they share no tag |
| a union of strings or primitives and others | `Either` |
"""

from __future__ import annotations

import functools
import inspect
import operator
import sys
import types
import typing
from collections.abc import Iterable, Mapping
from typing import Any, Literal, TypeAlias, Union, get_args, get_origin

import attrs
from msgspec import Struct, structs

from ahpd.protocol.model import TAGS, Unknown, Wire, WireType
from ahpd.protocol.persistent import Seq, Text


class Minimum(Struct, frozen=True):
    """Annotation: the least value of an integer."""

    value: int


class AtMostOnePerKind(Struct, frozen=True):
    """Annotation: an array in which no two objects of a known variant share their ``kind``."""


#: Variants of a union that a message lists; one with more is told by its name.
SHOWN_VARIANTS = 8

#: Annotation of an `int` that the protocol declares as a number: the host only makes whole ones.
NUMBER = "number"


class Scalar(Struct, frozen=True):
    """A value of one JSON type: ``string``, ``boolean``, ``number``, ``integer``, ``object``."""

    kind: str
    minimum: int | None = None
    grows: bool = False  # a string that may be held as `Text`

    def __str__(self) -> str:
        """What a person expects to read."""
        return self.kind if self.minimum is None else f"{self.kind} of at least {self.minimum}"


class Choice(Struct, frozen=True):
    """One of some literal values. Only `faults` in strict mode insists, unless it is a tag."""

    values: tuple[str | bool, ...]

    def __str__(self) -> str:
        """The values."""
        return " or ".join(_json(value) for value in self.values)


class Anything(Struct, frozen=True):
    """Any JSON value."""

    def __str__(self) -> str:
        """What a person expects to read."""
        return "any value"


class Null(Struct, frozen=True):
    """The value ``null``."""

    def __str__(self) -> str:
        """What a person expects to read."""
        return "null"


class Array(Struct, frozen=True):
    """A JSON array whose items have one shape, decoded to `build`."""

    item: Shape
    build: type[tuple[Any, ...]] | type[Seq[Any]]
    one_per_kind: bool = False

    def __str__(self) -> str:
        """What a person expects to read."""
        return f"array of {self.item}"


class Map(Struct, frozen=True):
    """A JSON object whose values have one shape."""

    value: Shape

    def __str__(self) -> str:
        """What a person expects to read."""
        return f"object of {self.value}"


class Record(Struct, frozen=True):
    """An object of one wire type."""

    cls: WireType

    def __str__(self) -> str:
        """The type's name."""
        return self.cls.__name__


@attrs.frozen
class Tagged:
    """A union told apart by the value of `tag`; unknown tags are kept as `Unknown` (R-1.21).

    `union` is the annotation it was made from, for its name alone.
    """

    tag: str
    variants: Mapping[str | bool, Record | Tagged] = attrs.field(hash=False)
    union: Any = attrs.field(default=None, eq=False, repr=False)

    def __str__(self) -> str:
        """Its name when it is large and has one, else the tag and its values."""
        return self._name or f"object with {self._values}"

    @property
    def tag_text(self) -> str:
        """What a person expects to read where its tag should be."""
        return f"a {self.tag} of {self._name}" if self._name else str(self)

    @property
    def _name(self) -> str | None:
        return alias_of(self.union) if len(self.variants) > SHOWN_VARIANTS else None

    @property
    def _values(self) -> str:
        names = [_json(value) for value in self.variants]
        more = ", …" if len(names) > SHOWN_VARIANTS else ""
        return f"{self.tag} of {', '.join(names[:SHOWN_VARIANTS])}{more}"

    @property
    def open(self) -> bool:
        """Whether a value that is no variant's tag may come from a newer peer."""
        return all(isinstance(value, str) for value in self.variants)


class ByKeys(Struct, frozen=True):
    """A union without a tag: the first variant whose required keys are all there."""

    variants: tuple[tuple[frozenset[str], Record], ...]

    def __str__(self) -> str:
        """The variants' names."""
        return " or ".join(str(record) for _, record in self.variants)


class Either(Struct, frozen=True):
    """A string or another primitive, or something else; told apart by JSON type."""

    options: tuple[Shape, ...]

    def __str__(self) -> str:
        """The options."""
        return " or ".join(str(option) for option in self.options)


Shape: TypeAlias = (
    Scalar | Choice | Anything | Null | Array | Map | Record | Tagged | ByKeys | Either
)


class Field(Struct, frozen=True):
    """One field of a wire type: Python name, wire name, shape.

    `optional`: the key may be absent. `is_tag`: the class stands for these values alone.
    """

    name: str
    key: str
    shape: Shape
    optional: bool
    is_tag: bool


@functools.cache
def fields_of(cls: WireType) -> tuple[Field, ...]:
    """The fields of a wire type in declaration order."""
    hints = typing.get_type_hints(cls, include_extras=True)
    return tuple(_field(cls, name, hints[name]) for name in cls.wire_names)


def _field(cls: WireType, name: str, hint: Any) -> Field:
    has_default = name in cls.wire_defaults
    optional = has_default and cls.wire_defaults[name] is None
    if optional and get_origin(hint) in (Union, types.UnionType):
        hint = _union_of(arg for arg in get_args(hint) if arg is not types.NoneType)
    shape = shape_of(hint)
    is_tag = has_default and not optional and isinstance(shape, Choice)
    return Field(name, cls.wire_names[name], shape, optional, is_tag)


_SCALARS = {str: "string", bool: "boolean", float: "number", int: "integer"}


def shape_of(hint: Any) -> Shape:
    """The shape that an annotation stands for.

    Raises `TypeError` when the annotation is none of those in the module's table.
    """
    if hint is Any:
        return Anything()
    if hint is types.NoneType:
        return Null()
    if hint in _SCALARS:
        return Scalar(_SCALARS[hint])
    if isinstance(hint, WireType):
        return Record(hint)
    origin, args = get_origin(hint), get_args(hint)
    if origin is typing.Annotated:
        return _annotated(args[0], args[1])
    if origin is Literal:
        return Choice(args)
    if origin is tuple:
        return Array(shape_of(args[0]), tuple)
    if origin in (Mapping, typing.Mapping):
        return Scalar("object") if args[1] is Any else Map(shape_of(args[1]))
    base = origin if origin is not None else hint
    if isinstance(base, type) and issubclass(base, Seq):
        return Array(shape_of(_seq_item(base, args)), base)
    if origin in (Union, types.UnionType):
        return _union(args)
    raise TypeError(f"no shape for the annotation {hint!r}")


def _annotated(hint: Any, note: Any) -> Shape:
    if note == NUMBER:
        return Scalar("number")
    if isinstance(note, Minimum):
        return Scalar("integer", note.value)
    if isinstance(note, AtMostOnePerKind):
        inner = shape_of(hint)
        assert isinstance(inner, Array)
        return structs.replace(inner, one_per_kind=True)
    raise TypeError(f"no shape for the note {note!r}")


def _seq_item(cls: type, args: tuple[Any, ...]) -> Any:
    """The item type of a `Seq` subclass: ``class Turns(Seq["Turn"])``."""
    if args:
        return args[0]
    hint = get_args(cls.__orig_bases__[0])[0]  # type: ignore[attr-defined]
    if isinstance(hint, str):  # names a type that is written further down in the module
        return eval(hint, vars(sys.modules[cls.__module__]))
    return hint


def _union_of(members: Iterable[Any]) -> Any:
    return functools.reduce(operator.or_, members)


def _union(args: tuple[Any, ...]) -> Shape:
    if args == (str, Text):
        return Scalar("string", grows=True)
    members = [arg for arg in args if arg is not Unknown]
    if len(members) == 1 and Unknown not in args:
        return shape_of(members[0])
    if all(isinstance(member, WireType) for member in members):
        shape = _record_union(members)
        return attrs.evolve(shape, union=_union_of(args)) if isinstance(shape, Tagged) else shape
    return Either(tuple(shape_of(member) for member in members))


def _record_union(members: list[WireType], tried: tuple[str, ...] = ()) -> Record | Tagged | ByKeys:
    if len(members) == 1 and tried:
        return Record(members[0])
    for tag in TAGS:
        if tag in tried:
            continue
        groups: dict[str | bool, list[WireType]] = {}
        for cls in members:
            values = _tag_values(cls, tag)
            if not values:
                groups.clear()
                break
            for value in values:
                groups.setdefault(value, []).append(cls)
        if not groups:
            continue
        if len(members) > 1 and any(len(group) == len(members) for group in groups.values()):
            continue  # tells nothing apart
        variants: dict[str | bool, Record | Tagged] = {}
        for value, group in groups.items():
            variant = _record_union(group, (*tried, tag))
            assert not isinstance(variant, ByKeys)
            variants[value] = variant
        return Tagged(tag, variants)
    return _by_keys(members)


def _tag_values(cls: WireType, tag: str) -> tuple[Any, ...]:
    """What a field called `tag` may hold when it is a `Literal`; nothing when there is none.

    Looks at that field alone: all of them would lead on to every type the class refers to.
    """
    for name, key in cls.wire_names.items():
        if key == tag:
            hint = _hint_of(cls, name)
            return get_args(hint) if get_origin(hint) is Literal else ()
    return ()


def _hint_of(cls: WireType, name: str) -> Any:
    for base in cls.__mro__:
        hint: Any = inspect.get_annotations(base).get(name)
        if hint is not None:
            return eval(hint, vars(sys.modules[base.__module__])) if isinstance(hint, str) else hint
    raise TypeError(f"{cls.__name__} has no field {name}")


def _by_keys(members: list[WireType]) -> ByKeys:
    required = [
        (frozenset(field.key for field in fields_of(cls) if not field.optional), Record(cls))
        for cls in members
    ]
    required.sort(key=lambda pair: -len(pair[0]))  # the most demanding first
    return ByKeys(tuple(required))


def _json(value: str | bool) -> str:
    return f'"{value}"' if isinstance(value, str) else str(value).lower()


@functools.cache
def alias_of(hint: Any) -> str | None:
    """The name that the protocol's modules give to a union; None when they give it none.

    Looked for only when somebody is to read it: a union does not know its name.
    """
    package = __name__.rpartition(".")[0]
    names = {
        name
        for module, content in list(sys.modules.items())
        if module.startswith(f"{package}.")
        for name, value in list(vars(content).items())
        if get_origin(value) in (Union, types.UnionType) and value == hint
    }
    return min(names, default=None)


def is_wire(hint: Any) -> bool:
    """Whether a type is a wire class."""
    return isinstance(hint, WireType) and hint is not Wire
