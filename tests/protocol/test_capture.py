"""Lines of a capture."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ahpd.protocol.capture import Captured, Way, line_of, parse_line
from ahpd.protocol.jsontext import ParseError
from tests.protocol.strategies import OPEN


@given(way=st.sampled_from(("c2h", "h2c")), frame=OPEN)
def test_a_line_stands_for_its_frame(way: Way, frame: Any) -> None:
    line = line_of(way, frame)
    assert line.endswith(b"\n")
    assert line.count(b"\n") == 1
    assert parse_line(line) == Captured(way, frame)


def test_other_keys_are_not_looked_at() -> None:
    assert parse_line('{"at":1,"x":2,"dir":"c2h","frame":null}') == Captured("c2h", None)


def test_what_a_line_says_of_its_frame() -> None:
    line = line_of("h2c", {"a": 1}, conn=7, at="2031-01-01T00:00:00Z", lost=3)
    assert parse_line(line) == Captured("h2c", {"a": 1}, "7", "2031-01-01T00:00:00Z", 3)
    log = '{"a":1,"_ahpLog":{"dir":"s2c","connectionId":"x-7","ts":"2031","lost":3,"more":{}}}'
    assert parse_line(log) == Captured("h2c", {"a": 1}, "x-7", "2031", 3)
    assert parse_line('{"_raw":"{","_ahpLog":{"dir":"c2s"}}') == Captured("c2h", "{")
    # In a frame of the first shape the key is a key like any other.
    assert parse_line('{"dir":"c2h","frame":{},"_ahpLog":{}}') == Captured("c2h", {})


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ('{"_ahpLog":{}}', '_ahpLog/dir: expected "c2s" or "s2c", got nothing'),
        ('{"_ahpLog":{"dir":"c2h"}}', '_ahpLog/dir: expected "c2s" or "s2c", got'),
        ('{"_ahpLog":7}', 'dir: expected "c2h" or "h2c", got nothing'),
    ],
)
def test_a_line_of_the_second_shape_that_is_none(line: str, why: str) -> None:
    with pytest.raises(ParseError, match="^" + re.escape(why)):
        parse_line(line)


@given(line=OPEN.map(repr) | st.binary(max_size=30))
def test_any_other_line_is_refused(line: bytes | str) -> None:
    with pytest.raises(ParseError):
        parse_line(line)
