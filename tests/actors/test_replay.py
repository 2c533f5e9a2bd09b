"""The replay window: what is kept for clients that come back."""

from __future__ import annotations

import pytest

from actors.ledger import Channel, Entry
from actors.replay import ReplayWindow
from tests.actors.support import C2, C

ONE = Channel(C, "chat", None, "x", None, 0, b'"c"')
TWO = Channel(C2, "chat", None, "y", None, 0, b'"d"')


def entry(seq: int, size: int = 10, channel: Channel = ONE, audience: str | None = None) -> Entry:
    return Entry(seq, channel, None, b"x" * size, audience)


def numbers(window: ReplayWindow, seen: float, client: str = "ann") -> list[int]:
    return [each.seq for each in window.since(seen, {C}, client)]


def test_r_6_13_it_is_bounded_by_count_and_by_bytes_and_keeps_the_newest() -> None:
    window = ReplayWindow(0, limit=3, limit_bytes=100)
    for seq in range(1, 6):
        window.add(entry(seq))
    assert (len(window), window.evicted_up_to, window.size) == (3, 2, 30)
    window.add(entry(6, size=85))
    assert (len(window), window.evicted_up_to) == (2, 4)
    window.add(entry(7, size=10_000))
    assert (len(window), window.evicted_up_to, window.size) == (1, 6, 10_000)


@pytest.mark.parametrize(
    ("seen", "reached"), [(1, False), (2, True), (5, True), (6, False), (-1, False), (1e300, False)]
)
def test_r_6_14_whom_it_can_answer(seen: float, reached: bool) -> None:
    window = ReplayWindow(0, limit=3)
    for seq in range(1, 6):
        window.add(entry(seq))
    assert window.reaches(seen, 5) is reached


def test_r_6_3_it_gives_what_a_client_missed_with_its_own_private_answers() -> None:
    window = ReplayWindow(0)
    for each in (entry(1), entry(2, channel=TWO), entry(3, audience="ann"),
                 entry(4, audience="bob"), entry(5)):  # fmt: skip
        window.add(each)
    assert numbers(window, 0) == [1, 3, 5]
    assert numbers(window, 1) == [3, 5]
    assert numbers(window, 0, "bob") == [1, 4, 5]


def test_a_host_that_was_started_again_cannot_answer_what_was_before() -> None:
    window = ReplayWindow(500)
    assert not window.reaches(499, 500)
    assert window.reaches(500, 500)
