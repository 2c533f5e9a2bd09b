"""Lines of a capture."""

from __future__ import annotations

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
    assert parse_line('{"at":1,"dir":"c2h","frame":null}') == Captured("c2h", None)


@given(line=OPEN.map(repr) | st.binary(max_size=30))
def test_any_other_line_is_refused(line: bytes | str) -> None:
    with pytest.raises(ParseError):
        parse_line(line)
