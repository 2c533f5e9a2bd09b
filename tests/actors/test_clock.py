"""Time as it is written into actions."""

from __future__ import annotations

import pytest

from actors.clock import Clock, from_iso, iso


def test_a_jump_of_the_wall_clock_changes_nothing_while_the_host_runs() -> None:
    wall, steady = [1_000.0], [5.0]
    clock = Clock(lambda: wall[0], lambda: steady[0])
    assert clock.now() == "1970-01-01T00:16:40.000Z"
    wall[0], steady[0] = 0.0, 6.5
    assert clock.ms() == pytest.approx(1_001_500)


@pytest.mark.parametrize("text", ["2026-09-21T14:13:20.000Z", "2026-09-21T16:13:20+02:00",
                                  "2026-09-21T14:13:20"])  # fmt: skip
def test_r_1_39_times_are_iso_8601_in_any_offset(text: str) -> None:
    moment = from_iso(text)
    assert moment is not None
    assert iso(moment) == "2026-09-21T14:13:20.000Z"


@pytest.mark.parametrize("text", ["", "yesterday", "x", "2026-13-01T00:00:00Z", "1790000000"])
def test_what_is_no_time_is_none(text: str) -> None:
    assert from_iso(text) is None
