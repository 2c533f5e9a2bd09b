"""What annotations mean."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

import pytest

from ahpd.protocol.chat import Turns
from ahpd.protocol.common import Implementation, JsonPrimitive, StringOrMarkdown
from ahpd.protocol.connection import ChannelState
from ahpd.protocol.model import JSON, Object, Unknown, Wire
from ahpd.protocol.persistent import AnyText
from ahpd.protocol.shapes import (
    NUMBER,
    Anything,
    Array,
    ByKeys,
    Choice,
    Either,
    Map,
    Minimum,
    Null,
    Record,
    Scalar,
    Tagged,
    is_wire,
    shape_of,
)


@pytest.mark.parametrize(
    ("hint", "shape", "told"),
    [
        (str, Scalar("string"), "string"),
        (AnyText, Scalar("string", grows=True), "string"),
        (bool, Scalar("boolean"), "boolean"),
        (float, Scalar("number"), "number"),
        (int, Scalar("integer"), "integer"),
        (Annotated[int, NUMBER], Scalar("number"), "number"),
        (Annotated[int, Minimum(3)], Scalar("integer", 3), "integer of at least 3"),
        (Literal["a", "b"], Choice(("a", "b")), '"a" or "b"'),
        (Literal[True], Choice((True,)), "true"),
        (JSON, Anything(), "any value"),
        (type(None), Null(), "null"),
        (Object, Scalar("object"), "object"),
        (Mapping[str, bool], Map(Scalar("boolean")), "object of boolean"),
        (tuple[str, ...], Array(Scalar("string"), tuple), "array of string"),
        (Implementation, Record(Implementation), "Implementation"),
        (StringOrMarkdown, None, "string or Markdown"),
        (JsonPrimitive, None, "string or number or boolean or null"),
    ],
)
def test_an_annotation_has_one_shape(hint: Any, shape: Any, told: str) -> None:
    assert str(shape_of(hint)) == told
    if shape is not None:
        assert shape_of(hint) == shape


def test_a_list_of_a_class_written_further_down() -> None:
    shape = shape_of(Turns)
    assert isinstance(shape, Array)
    assert shape.build is Turns
    assert str(shape) == "array of Turn"


class Cat(Wire):
    """Told by its kind."""

    kind: Literal["cat"] = "cat"


class Dog(Wire):
    """Told by its kind, and then by its size."""

    kind: Literal["dog"] = "dog"
    status: Literal["big"] = "big"


class Puppy(Wire):
    """As `Dog`."""

    kind: Literal["dog"] = "dog"
    status: Literal["small"] = "small"


def test_a_union_is_told_apart_by_its_tags() -> None:
    shape = shape_of(Cat | Dog | Puppy | Unknown)
    assert isinstance(shape, Tagged)
    assert shape.tag == "kind"
    assert shape.variants["cat"] == Record(Cat)
    inner = shape.variants["dog"]
    assert isinstance(inner, Tagged)
    assert (inner.tag, set(inner.variants)) == ("status", {"big", "small"})
    assert str(shape) == 'object with kind of "cat", "dog"'


def test_a_union_of_one_and_the_unknown_is_a_union() -> None:
    assert isinstance(shape_of(Cat | Unknown), Tagged)
    assert shape_of(Cat) == Record(Cat)


def test_states_are_told_apart_by_their_keys() -> None:
    shape = shape_of(ChannelState)
    assert isinstance(shape, ByKeys)
    sizes = [len(keys) for keys, _ in shape.variants]
    assert sizes == sorted(sizes, reverse=True), "the most demanding is tried first"


@pytest.mark.parametrize("hint", [bytes, list[str], dict[str, int], object, Annotated[int, "x"], 7])
def test_other_annotations_are_refused_when_they_are_written(hint: Any) -> None:
    with pytest.raises(TypeError, match="no shape"):
        shape_of(hint)


def test_either_keeps_its_options_in_order() -> None:
    shape = shape_of(StringOrMarkdown)
    assert isinstance(shape, Either)
    assert shape.options[0] == Scalar("string")


def test_what_is_a_wire_class() -> None:
    assert is_wire(Cat)
    assert not is_wire(Wire)
    assert not is_wire(str)
    assert not is_wire("Cat")
