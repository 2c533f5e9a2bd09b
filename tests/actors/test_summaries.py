"""Rows and summaries: pure functions of states, and the differences between two of them."""

from __future__ import annotations

from typing import Any

import pytest

from actors.summaries import (
    chat_row,
    moment,
    older_summary,
    row_changes,
    session_summary,
    summary_changes,
)
from ahpd.protocol.chat import ChatState, ChatSummary, Turns
from ahpd.protocol.session import PartialSessionSummary, SessionState
from ahpd.reducers.status import ARCHIVED, ERROR, IDLE, IN_PROGRESS, INPUT_NEEDED, READ
from tests.actors.support import C2, C, S

THEN, LATER = "2026-09-21T14:13:20.000Z", "2026-09-21T14:13:21.000Z"


def row(uri: str, status: int = IDLE, **more: Any) -> ChatSummary:
    return ChatSummary(resource=uri, title="", status=status, modified_at=THEN).evolve(**more)


def session(*chats: ChatSummary, status: int = IDLE, **more: Any) -> SessionState:
    return SessionState(
        provider="puppet",
        title="",
        status=status,
        lifecycle="ready",
        active_clients=(),
        chats=chats,
        default_chat=C,
    ).evolve(**more)


STATUSES = [
    ([IDLE], IDLE),
    ([IN_PROGRESS], IN_PROGRESS),
    ([IDLE, IN_PROGRESS], IDLE),  # the default chat speaks
    ([IN_PROGRESS, IDLE], IN_PROGRESS),
    ([IDLE, ERROR], ERROR),
    ([INPUT_NEEDED, ERROR], INPUT_NEEDED),
    ([ERROR, INPUT_NEEDED], INPUT_NEEDED),
    ([IDLE | READ | ARCHIVED, IDLE], IDLE),  # its own bits are its own
]


@pytest.mark.parametrize(("rows", "expected"), STATUSES)
def test_r_7_37_the_activity_of_a_session(rows: list[int], expected: int) -> None:
    state = session(*(row(uri, status) for uri, status in zip((C, C2), rows, strict=False)))
    assert session_summary(S, state, THEN).status == expected
    flagged = state.evolve(status=IDLE | READ | ARCHIVED)
    assert session_summary(S, flagged, THEN).status == expected | READ | ARCHIVED


def test_a_session_that_could_not_be_started_shows_an_error() -> None:
    assert session_summary(S, session(row(C), lifecycle="failed"), THEN).status == ERROR


def test_r_7_40_times_and_activity_come_from_the_chats() -> None:
    state = session(
        row(C, activity="First"),
        row(C2, modified_at="2026-09-21T10:13:21.000-04:00", activity="Second"),
    )
    summary = session_summary(S, state, THEN)
    assert moment(summary.modified_at) == moment(LATER)
    assert summary.activity == "First"
    headless = state.evolve(default_chat=None)
    assert session_summary(S, headless, THEN).activity == "Second"


def test_r_7_15_only_what_moved_is_told_and_what_went_away_as_empty() -> None:
    before = session_summary(S, session(row(C, activity="Busy")), THEN)
    after = session_summary(S, session(row(C), title="New"), THEN)
    assert summary_changes(before, before) is None
    changes = summary_changes(before, after)
    assert changes == PartialSessionSummary(title="New", activity="")
    chat = ChatState(resource=C, title="old", status=IDLE, modified_at=THEN, turns=Turns())
    assert row_changes(row(C), chat_row(chat, "", None)) is None
    moved = row_changes(row(C, activity="Busy"), chat_row(chat, "Named", None))
    assert moved is not None
    assert moved.wire() == {"title": "Named", "activity": ""}
    assert row_changes(row(C, activity=""), chat_row(chat, "", None)) is None


def test_r_2_14_for_an_older_client_the_chats_are_left_out_and_nothing_is_none() -> None:
    summary = session_summary(S, session(row(C)), THEN)
    assert not older_summary(summary).wire().keys() & {"chats", "defaultChat"}
    assert older_summary(PartialSessionSummary(default_chat=C)) is None
    assert older_summary(PartialSessionSummary(default_chat=C, title="x")).wire() == {"title": "x"}
