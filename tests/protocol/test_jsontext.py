"""JSON text: what is read, what is refused, and within which limits."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ahpd.protocol import StateAction, decode
from ahpd.protocol.jsontext import MAX_DEPTH, Fragment, ParseError, dumps, loads
from tests.protocol.strategies import OPEN


@given(value=OPEN)
def test_what_is_written_is_read_back(value: Any) -> None:
    assert json.dumps(loads(dumps(value))) == json.dumps(value)


@pytest.mark.parametrize(
    "text",
    [
        "", " ", "{", "[1,]", "{'a':1}", "NaN", "[Infinity]", "-Infinity", "[1e999]", "[-1e999]",
        "01", "+1", '"\\ud800"', '"\ud800"', b'"\xff"', b"\xef\xbb\xbf{}", "{}{}", "\x00", '"\n"',
        "nul", b"\xed\xa0\x80",
    ],
)  # fmt: skip
def test_what_is_not_json_is_refused(text: str | bytes) -> None:
    with pytest.raises(ParseError):
        loads(text)


@given(noise=st.binary(max_size=60) | st.text(max_size=60))
def test_noise_gives_a_value_or_the_one_error(noise: bytes | str) -> None:
    try:
        value = loads(noise)
    except ParseError:
        return
    dumps(value)


@pytest.mark.parametrize("bracket", ["[", '{"a":', '[{"a":'])
def test_a_hundred_thousand_brackets_are_refused(bracket: str) -> None:
    for text in (bracket * 100_000, bracket * 100_000 + "1" + "]" * 100_000):
        with pytest.raises(ParseError):
            loads(text)
        with pytest.raises(ParseError):
            loads(text.encode())


def nested(depth: int) -> bytes:
    return b"[" * depth + b"]" * depth


@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview, bytes.decode])
def test_nesting_is_refused_beyond_the_limit_and_not_before(kind: Any) -> None:
    assert loads(kind(nested(MAX_DEPTH)))
    with pytest.raises(ParseError, match="nested deeper than 192"):
        loads(kind(nested(MAX_DEPTH + 1)))


def test_what_is_read_at_the_limit_can_be_written_inside_a_frame() -> None:
    value = loads(nested(MAX_DEPTH))
    assert dumps({"params": {"action": {"part": [value]}}})


def test_many_brackets_side_by_side_are_fine() -> None:
    assert len(loads(b"[" + b",".join([b"{}"] * 1000) + b"]")) == 1000


def test_brackets_in_strings_do_not_count() -> None:
    assert loads(dumps(["[" * 1000])) == ["[" * 1000]


def test_the_last_of_repeated_keys_counts() -> None:
    assert loads('{"a":1,"b":2,"a":3}') == {"a": 3, "b": 2}


def test_whole_numbers_beyond_64_bits_become_floats() -> None:
    assert loads(str(2**64 - 1)) == 2**64 - 1
    assert isinstance(loads(str(2**64)), float)
    assert isinstance(loads("1" * 300), float)


@pytest.mark.parametrize("value", ["\ud800", 2**64, object(), {1}, b"x", {1: 2}])
def test_what_json_does_not_have_cannot_be_written(value: Any) -> None:
    with pytest.raises(ParseError, match="cannot be written"):
        dumps([value])


def test_what_is_nested_too_deep_cannot_be_written() -> None:
    value: list[Any] = []
    for _ in range(300):
        value = [value]
    with pytest.raises(ParseError, match="cannot be written"):
        dumps(value)


def test_a_fragment_is_put_in_unchanged() -> None:
    assert dumps({"a": Fragment(b'{"b": 1}')}) == b'{"a":{"b": 1}}'


def test_numbers_that_only_python_has_are_written_as_null() -> None:
    assert dumps([float("nan"), float("inf")]) == b"[null,null]"
    with pytest.raises(ParseError):
        dumps({1: 2})
    action = {"type": "root/activeSessionsChanged", "activeSessions": float("inf")}
    assert decode(StateAction, action).active_sessions == float("inf")
