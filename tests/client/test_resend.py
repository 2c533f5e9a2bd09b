"""What becomes of an operation without an answer: the table, row by row."""

from __future__ import annotations

from typing import Any

import pytest

from ahpd.client.resend import RESEND, Case, Drop, Replace, Resend, rule_for
from ahpd.client.store import OptimisticStore
from ahpd.protocol import ACTIONS, decode
from ahpd.protocol.actions import StateAction
from ahpd.protocol.connection import Snapshot
from ahpd.protocol.model import JSON
from tests.client.resend_rows import QUEUE, ROWS, START, Row, chat, running, said


def store_of(state: JSON) -> OptimisticStore[Any]:
    snapshot = decode(Snapshot, {"resource": "ahp-x:/x", "state": state, "fromSeq": 0})
    return OptimisticStore("phone", snapshot)


def case_of(row: Row, *, superseded: bool = False) -> Case:
    store = store_of(row.now)
    return Case(
        action=decode(StateAction, row.action),
        evidence=row.evidence,
        client_id="phone",
        confirmed=store.confirmed,
        view=store.optimistic,
        basis=store_of(row.basis).confirmed,
        superseded=superseded,
        reduce=store.reduce,
    )


@pytest.mark.parametrize(
    "row", ROWS, ids=lambda row: f"{row.action['type']}: {row.what}, {row.evidence}"
)
def test_it_is_judged_by_what_is_known_and_what_is_shown(row: Row) -> None:
    case = case_of(row)
    verdict = rule_for(case.action).judge(case)
    assert isinstance(verdict, row.verdict), verdict
    if isinstance(verdict, Drop | Replace):
        assert row.reason in verdict.reason


def test_every_action_of_a_client_has_a_row() -> None:
    assert set(RESEND) == {name for name, info in ACTIONS.items() if info.client_may_dispatch}


@pytest.mark.parametrize(
    "row",
    [row for row in ROWS if row.verdict is Resend and RESEND[row.action["type"]].target],
    ids=lambda row: f"{row.action['type']}: {row.what}",
)
def test_where_the_last_one_counts_earlier_ones_are_not_sent(row: Row) -> None:
    case = case_of(row, superseded=True)
    verdict = rule_for(case.action).judge(case)
    assert isinstance(verdict, Drop)
    assert "stands for it" in verdict.reason


def test_a_turn_behind_another_is_queued_under_its_own_id() -> None:
    row = Row("", chat(), chat(activeTurn=running("t1")), START, "unsent", Replace)
    case = case_of(row)
    verdict = rule_for(case.action).judge(case)
    assert isinstance(verdict, Replace)
    assert verdict.action.wire() == QUEUE | {"id": "mine", "message": said("hello")}
