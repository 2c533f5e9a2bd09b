"""Where two JSON values differ."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given

from ahpd.conformance.compare import differences
from tests.protocol.strategies import OPEN


def told(expected: Any, got: Any, *, null_is_absent: bool = False) -> list[str]:
    return list(differences(expected, got, null_is_absent=null_is_absent))


@given(value=OPEN)
def test_a_value_is_equal_to_itself(value: Any) -> None:
    assert told(value, value) == []
    assert told(value, value, null_is_absent=True) == []


@pytest.mark.parametrize(("one", "two"), [(1, 1.0), ({"a": 1, "b": 2}, {"b": 2, "a": 1})])
def test_what_json_does_not_tell_apart_is_equal(one: Any, two: Any) -> None:
    assert told(one, two) == []


@pytest.mark.parametrize(
    ("expected", "got", "line"),
    [
        (1, True, ".: expected 1, got true"),
        (False, 0, ".: expected false, got 0"),
        ("1", 1, '.: expected "1", got 1'),
        ([], {}, ".: expected [], got {}"),
        ({"a": [1, {"b": 2}]}, {"a": [1, {"b": 3}]}, "a/1/b: expected 2, got 3"),
        ({"a": 1}, {}, "a: expected 1, got nothing"),
        ({}, {"a": 1}, "a: expected nothing, got 1"),
        ([1], [1, 2], "1: expected nothing, got 2"),
        ([1, 2], [1], "1: expected 2, got nothing"),
        ({"a": None}, {}, "a: expected null, got nothing"),
    ],
)
def test_a_difference_says_where_and_what(expected: Any, got: Any, line: str) -> None:
    assert told(expected, got) == [line]


def test_every_difference_is_told() -> None:
    assert len(told({"a": 1, "b": [1, 2]}, {"a": 2, "b": [2, 1], "c": 0})) == 4


def test_null_equals_absent_only_when_asked_and_only_for_keys() -> None:
    assert told({"a": {"b": None}}, {"a": {}}, null_is_absent=True) == []
    assert told({}, {"a": None}, null_is_absent=True) == []
    assert told([None], [], null_is_absent=True) == ["0: expected null, got nothing"]
    assert told({"a": None}, {"a": 0}, null_is_absent=True) == ["a: expected null, got 0"]


def test_long_values_are_cut() -> None:
    (line,) = told("x" * 1000, None)
    assert len(line) < 200
