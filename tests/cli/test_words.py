"""Numbers and states of the protocol in words."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from ahpd.cli import words

NOW = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("bits", "told"),
    [
        (1 | 32, "idle"),
        (1, "idle, unread"),
        (2 | 32, "failed"),
        (8 | 32, "working"),
        (24, "waits for you, unread"),
        (97, "idle, archived"),
        (24.0, "waits for you, unread"),
        (1 | 32 | 1 << 20, "idle"),
        (4 | 32, "unknown"),
    ],
)
def test_a_status_in_words(bits: float, told: str) -> None:
    assert words.status(bits) == told


@pytest.mark.parametrize(
    ("moment", "told"),
    [
        ("2026-03-01T11:59:30.000Z", "just now"),
        ("2026-03-01T12:00:30.000Z", "just now"),
        ("2026-03-01T11:58:00.000Z", "2 min ago"),
        ("2026-03-01T09:00:00+00:00", "3 h ago"),
        ("2026-03-01T11:00:00", "1 h ago"),
        ("2026-02-27T12:00:00Z", "2 d ago"),
        ("2025-12-24T12:00:00Z", "2025-12-24"),
        ("whenever", "whenever"),
    ],
)
def test_how_long_ago(moment: str, told: str) -> None:
    assert words.ago(moment, NOW) == told


def test_counts() -> None:
    assert words.count(1, "chat") == "1 chat"
    assert words.count(0, "chat") == "0 chats"
    assert words.count(2, "dispatch", "dispatches") == "2 dispatches"
