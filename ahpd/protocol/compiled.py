"""Functions made from shapes: decode a JSON value, encode a wire value, copy one with changes.

Source text is generated and compiled once for each class, on first use, so that the hot path runs
straight-line code: no table look-up for each field and no path kept for errors that do not happen.
A decoder that meets a value which does not fit raises `Mismatch`, which says nothing more; the
caller (`ahpd.protocol.codec`) then lets `ahpd.protocol.faults` find the first fault and its path.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeAlias

from ahpd.protocol.model import Unknown, Wire, WireType
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

Decoder: TypeAlias = Callable[[Any], Any]


class Mismatch(Exception):
    """A value does not fit its shape; internal to this package."""


@functools.cache
def decoder_of(shape: Shape) -> Decoder:
    """A function from a plain JSON value to the Python value of `shape`, or `Mismatch`."""
    match shape:
        case Anything():
            return lambda value: value
        case Null():
            return _null
        case Scalar():
            return _compile("scalar", _scalar_lines(shape, "value"), {}, result="value")
        case Choice():
            return _choice(shape)
        case Record():
            return record_decoder(shape.cls)
        case Array():
            return _array(shape)
        case Map():
            return _map(shape)
        case Tagged():
            return _tagged(shape)
        case ByKeys():
            return _by_keys(shape)
        case Either():
            return _either(shape)


def _compile(
    name: str, lines: list[str], names: dict[str, Any], result: str, arguments: str = "value"
) -> Callable[..., Any]:
    """A function of `arguments` that runs `lines` and returns `result`."""
    body = "\n    ".join([*lines, f"return {result}"])
    namespace = {"Mismatch": Mismatch, **names}
    exec(f"def {name}({arguments}):\n    {body}\n", namespace)
    return namespace[name]  # type: ignore[no-any-return]


_CHECKS = {
    "string": "{0}.__class__ is not str",
    "boolean": "{0}.__class__ is not bool",
    "number": "{0}.__class__ is not int and {0}.__class__ is not float",
    "integer": "{0}.__class__ is not int and not ({0}.__class__ is float and {0}.is_integer())",
    "object": "{0}.__class__ is not dict",
}


def _scalar_lines(shape: Scalar, variable: str) -> list[str]:
    test = _CHECKS[shape.kind].format(variable)
    if shape.minimum is not None:
        test += f" or {variable} < {shape.minimum}"
    return [f"if {test}: raise Mismatch"]


def _null(value: Any) -> None:
    if value is not None:
        raise Mismatch


def _choice(shape: Choice) -> Decoder:
    """Only the JSON type is checked: a newer peer may send a value not known here (R-1.21)."""
    kinds = {type(value) for value in shape.values}
    if kinds == {bool}:  # `approved`: no third truth value will ever come
        wanted = shape.values[0] if len(shape.values) == 1 else None

        def truth(value: Any) -> bool:
            if value.__class__ is not bool or (wanted is not None and value is not wanted):
                raise Mismatch
            return bool(value)

        return truth
    return _compile("choice", _scalar_lines(Scalar("string"), "value"), {}, result="value")


def _array(shape: Array) -> Decoder:
    item, build = decoder_of_lazily(shape.item), shape.build

    def array(value: Any) -> Any:
        if value.__class__ is not list:
            raise Mismatch
        return build([item(each) for each in value])

    return array


def _map(shape: Map) -> Decoder:
    item = decoder_of_lazily(shape.value)

    def mapping(value: Any) -> dict[str, Any]:
        if value.__class__ is not dict:
            raise Mismatch
        return {key: item(each) for key, each in value.items()}

    return mapping


def _tagged(shape: Tagged) -> Decoder:
    tag, is_open = shape.tag, shape.open
    table: dict[Any, Decoder] = {
        value: decoder_of_lazily(variant) for value, variant in shape.variants.items()
    }
    kinds = tuple({type(value) for value in shape.variants})

    def tagged(value: Any) -> Any:
        if value.__class__ is not dict:
            raise Mismatch
        name = value.get(tag)
        if name.__class__ not in kinds:  # also keeps 1 from passing for True
            raise Mismatch
        decode = table.get(name)
        if decode is not None:
            return decode(value)
        if not is_open:
            raise Mismatch
        return Unknown(raw=value)

    return tagged


def _by_keys(shape: ByKeys) -> Decoder:
    variants = [(keys, decoder_of_lazily(record)) for keys, record in shape.variants]

    def by_keys(value: Any) -> Any:
        if value.__class__ is not dict:
            raise Mismatch
        for keys, decode in variants:
            if keys <= value.keys():
                return decode(value)
        return Unknown(raw=value)

    return by_keys


def _either(shape: Either) -> Decoder:
    options = [decoder_of_lazily(option) for option in shape.options]

    def either(value: Any) -> Any:
        for decode in options:
            try:
                return decode(value)
            except Mismatch:
                continue
        raise Mismatch

    return either


def decoder_of_lazily(shape: Shape) -> Decoder:
    """As `decoder_of`, but records are compiled when first met: types refer to each other."""
    if isinstance(shape, Record):
        cls = shape.cls
        return lambda value: record_decoder(cls)(value)  # noqa: PLW0108 - compiles when called
    return decoder_of(shape)


@functools.cache
def record_decoder(cls: WireType) -> Decoder:
    """The decoder of one wire class.

    Keys that the class does not declare, and declared optional ones that hold null, go to `extra`.
    """
    names: dict[str, Any] = {
        "cls": cls,
        "new": object.__new__,
        "known": frozenset(field.key for field in fields_of(cls)),
        "no_extra": {},
    }
    lines = [
        "if value.__class__ is not dict: raise Mismatch",
        "self = new(cls)",
        "count = 0",
    ]
    required = [field for field in fields_of(cls) if not field.optional]
    if required:
        lines += ["try:"]
        lines += [f"    v_{field.name} = value[{field.key!r}]" for field in required]
        lines += ["except KeyError: raise Mismatch from None"]
    for number, field in enumerate(fields_of(cls)):
        lines += _field_lines(field, number, names)
    lines += [
        f"if len(value) == count + {len(required)}: self.extra = no_extra",
        "else:",
        "    self.extra = {",
        "        k: v for k, v in value.items() if k not in known or v is None and k in optional",
        "    }",
    ]
    names["optional"] = frozenset(field.key for field in fields_of(cls) if field.optional)
    return _compile(f"decode_{cls.__name__}", lines, names, result="self")


def _field_lines(field: Field, number: int, names: dict[str, Any]) -> list[str]:
    variable = f"v_{field.name}"
    check: list[str] = []
    expression = variable
    match field.shape:
        case Anything():
            pass
        case Scalar():
            check = _scalar_lines(field.shape, variable)
        case Choice() if all(isinstance(value, str) for value in field.shape.values):
            check = _choice_lines(field, number, names, variable)
        case _:
            names[f"d_{number}"] = decoder_of_lazily(field.shape)
            expression = f"d_{number}({variable})"
    if not field.optional:
        return [*check, f"self.{field.name} = {expression}"]
    return [
        f"{variable} = value.get({field.key!r})",
        f"if {variable} is None: self.{field.name} = None",
        "else:",
        *(f"    {line}" for line in check),
        f"    self.{field.name} = {expression}",
        "    count += 1",
    ]


def _choice_lines(field: Field, number: int, names: dict[str, Any], variable: str) -> list[str]:
    """A tag must be one of its values; any other choice may hold a newer peer's string."""
    assert isinstance(field.shape, Choice)
    lines = _scalar_lines(Scalar("string"), variable)
    if field.is_tag:
        names[f"c_{number}"] = frozenset(field.shape.values)
        lines.append(f"if {variable} not in c_{number}: raise Mismatch")
    return lines


def compile_encoder(cls: WireType) -> Callable[[Any], dict[str, Any]]:
    """The function behind `Wire.wire` of one class."""
    if cls is Unknown:
        return lambda self: dict(self.raw)
    names: dict[str, Any] = {}
    always: list[str] = []
    lines: list[str] = []
    for number, field in enumerate(fields_of(cls)):
        if field.optional:
            encoded = _encoder_source(field.shape, "x", number, names)
            lines += [f"x = self.{field.name}", f"if x is not None: out[{field.key!r}] = {encoded}"]
        else:
            encoded = _encoder_source(field.shape, f"self.{field.name}", number, names)
            always.append(f"{field.key!r}: {encoded}")
    lines = [f"out = {{{', '.join(always)}}}", *lines]
    lines += [
        "if self.extra:",
        "    for key, x in self.extra.items():",
        "        if key not in out: out[key] = x",
    ]
    return _compile(f"encode_{cls.__name__}", lines, names, result="out", arguments="self")


def _encoder_source(shape: Shape, x: str, number: int, names: dict[str, Any]) -> str:
    """An expression that gives the JSON value of `x`."""
    match shape:
        case Record() | Tagged() | ByKeys():
            return f"{x}.wire()"
        case Scalar(grows=True):
            return f"({x} if {x}.__class__ is str else str({x}))"
        case Array() | Map() | Either():
            names[f"e_{number}"] = encoder_of(shape)
            return f"e_{number}({x})"
        case _:
            return x


@functools.cache
def encoder_of(shape: Shape) -> Callable[[Any], Any]:
    """A function from the Python value of `shape` to its plain JSON value."""
    match shape:
        case Record() | Tagged() | ByKeys():
            return lambda value: value.wire()
        case Array(item=Record() | Tagged() | ByKeys()):
            return lambda value: [item.wire() for item in value]
        case Array(item=Scalar() | Choice() | Anything()):
            return list
        case Array():
            item = encoder_of(shape.item)
            return lambda value: [item(each) for each in value]
        case Map():
            each_value = encoder_of(shape.value)
            return lambda value: {key: each_value(each) for key, each in value.items()}
        case Either():
            return lambda value: value.wire() if isinstance(value, Wire) else value
        case _:
            return lambda value: value


def compile_evolve(cls: WireType) -> Callable[..., Any]:
    """The function behind `Wire.evolve` of one class."""
    lines = ["copy = new(cls)"]
    lines += [f"copy.{name} = self.{name}" for name in (*cls.wire_names, "extra")]
    lines += ["for name in changes: setattr(copy, name, changes[name])"]
    return _compile(
        f"evolve_{cls.__name__}",
        lines,
        {"cls": cls, "new": object.__new__},
        result="copy",
        arguments="self, **changes",
    )
