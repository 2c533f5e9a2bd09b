"""Decode and encode wire values; the one error a bad value gives; the cattrs converter.

`decode` is for anybody; code on the hot path asks once for `decoder(T)` and keeps the function.
Encoding is the method `Wire.wire`, or `encode` for values that are not one wire object.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar, overload

from ahpd.protocol.compiled import Mismatch, decoder_of, encoder_of
from ahpd.protocol.faults import Fault, faults
from ahpd.protocol.model import JSON
from ahpd.protocol.shapes import alias_of, is_wire, shape_of

if TYPE_CHECKING:
    import cattrs

T = TypeVar("T")


class DecodeError(ValueError):
    """A value does not have the shape of its type.

    `fault` holds the path, the expected type and the value of the first fault. It is the only
    error that decoding raises. `type_name` is the class's or the alias's.
    """

    def __init__(self, type_name: str, fault: Fault) -> None:
        super().__init__(f"{type_name}: {fault}")
        self.type_name = type_name
        self.fault = fault


@overload
def decode(hint: type[T], value: JSON) -> T: ...
@overload
def decode(hint: object, value: JSON) -> Any: ...
def decode(hint: Any, value: JSON) -> Any:
    """The wire value of type `hint` (a class or a union alias) that a plain JSON value stands for.

    Raises `DecodeError`. `value` is taken over: open objects in it are kept by reference. It is one
    that `jsontext.loads` could give: NaN, infinities, whole numbers beyond 64 bits and keys that
    are no strings are not looked for.
    """
    return decoder(hint)(value)


@overload
def decoder(hint: type[T]) -> Callable[[JSON], T]: ...
@overload
def decoder(hint: object) -> Callable[[JSON], Any]: ...
def decoder(hint: object) -> Callable[[JSON], Any]:
    """The function behind `decode` for one type."""
    return _decoder(hint)


@functools.cache
def _decoder(hint: Any) -> Callable[[JSON], Any]:
    shape = shape_of(hint)
    fast = decoder_of(shape)

    def decode_value(value: JSON) -> Any:
        try:
            try:
                return fast(value)
            except Mismatch:
                fault = next(faults(shape, value), None)
        except RecursionError:
            fault = Fault((), "a value that is not nested without end", "one that is")
        name = getattr(hint, "__name__", None) or alias_of(hint) or str(shape)
        assert fault is not None, f"decoder and checker of {name} disagree about {value!r:.200}"
        raise DecodeError(name, fault) from None

    return decode_value


def encode(hint: Any, value: Any) -> JSON:
    """The plain JSON value of a wire value of type `hint`."""
    return encoder_of(shape_of(hint))(value)


@functools.cache
def converter() -> cattrs.Converter:
    """A cattrs converter that knows the wire types, for attrs classes of our own that hold them.

    Configuration, agent scripts and stored records are structured with it. cattrs is imported on
    the first call, since the wire itself does not need it.
    """
    import cattrs  # noqa: PLC0415 - 40 ms that a start of the host can do without

    made = cattrs.Converter(forbid_extra_keys=True)
    made.register_structure_hook_factory(
        is_wire, lambda hint: lambda value, _: decoder(hint)(value)
    )
    made.register_unstructure_hook_factory(is_wire, lambda _: lambda value: value.wire())
    return made
