"""The optimistic store of one channel."""

from __future__ import annotations

from ahpd.client.store import OptimisticStore, kind_of
from ahpd.protocol import decode
from ahpd.protocol.chat import ChatState
from ahpd.protocol.connection import ChannelState
from ahpd.protocol.session_actions import SessionTitleChangedAction
from ahpd.protocol.terminal import TerminalInputAction
from tests.client.support import (
    SESSION,
    SESSION_STATE,
    TERMINAL,
    TERMINAL_STATE,
    answer_text,
    cancelled,
    complete,
    delta,
    envelope,
    part,
    snapshot,
    started,
    turn_texts,
)


def chat_store(number: int = 0) -> OptimisticStore[ChatState]:
    return OptimisticStore("phone", snapshot(number=number))


def session_store() -> OptimisticStore[object]:
    return OptimisticStore("phone", snapshot(SESSION_STATE, 0, SESSION))


def titled(title: str) -> SessionTitleChangedAction:
    return SessionTitleChangedAction(title=title)


def test_a_proposal_shows_at_once_and_is_not_confirmed() -> None:
    store = chat_store()
    store.propose(1, started("t1"))
    assert turn_texts(store.optimistic) == ["Fix the build"]
    assert turn_texts(store.confirmed) == []


def test_the_echo_confirms_it() -> None:
    store = chat_store()
    proposed = store.propose(1, started("t1"))
    receipt = store.receive(envelope(1, started("t1"), by=("phone", 1)))
    assert receipt.settled is proposed
    assert receipt.answer is not None
    assert receipt.answer.kind == "accepted"
    assert receipt.answer.server_seq == 1
    assert store.pending == ()
    assert store.confirmed == store.optimistic
    assert turn_texts(store.confirmed) == ["Fix the build"]


def test_a_refusal_rolls_it_back_and_keeps_the_reason() -> None:
    store = chat_store()
    store.propose(1, started("t1"))
    receipt = store.receive(envelope(1, started("t1"), by=("phone", 1), refused="busy"))
    assert receipt.answer is not None
    assert (receipt.answer.kind, receipt.answer.reason) == ("refused", "busy")
    assert not receipt.changed
    assert turn_texts(store.optimistic) == []


def test_a_refused_action_of_somebody_else_is_skipped() -> None:
    store = chat_store()
    before = store.optimistic
    receipt = store.receive(envelope(1, started("t9"), by=("desktop", 1), refused="busy"))
    assert (receipt.fresh, receipt.changed, receipt.answer) == (True, False, None)
    assert store.optimistic is before
    assert store.seen == 1


def test_what_the_snapshot_holds_or_was_seen_is_not_applied_again() -> None:
    store = chat_store(number=5)
    assert not store.receive(envelope(5, started("t0"))).fresh
    for number, what in ((6, started("t1")), (7, part("t1")), (8, delta("t1", "once"))):
        assert store.receive(envelope(number, what)).fresh
    assert not store.receive(envelope(8, delta("t1", "once"))).fresh
    assert answer_text(store.confirmed) == "once"


def test_gaps_in_the_numbers_mean_nothing() -> None:
    store = chat_store(number=5)
    assert store.receive(envelope(60, started("t1"))).changed
    assert store.seen == 60


def test_pending_operations_are_laid_over_what_others_do() -> None:
    store: OptimisticStore[ChatState] = chat_store()
    store.receive(envelope(1, started("t1", "theirs")))
    store.propose(1, cancelled("t1"))
    store.receive(envelope(2, part("t1")))
    store.receive(envelope(3, delta("t1", "more")))
    assert store.optimistic.active_turn is None
    assert store.confirmed.active_turn is not None
    assert answer_text(store.optimistic) == "more"


def test_an_echo_out_of_order_is_matched_and_flagged() -> None:
    store = session_store()
    first, second = store.propose(1, titled("a")), store.propose(2, titled("b"))
    receipt = store.receive(envelope(1, titled("b"), channel=SESSION, by=("phone", 2)))
    assert receipt.settled is second
    assert not receipt.in_order
    assert store.out_of_order == 1
    assert store.pending == (first,)


def test_an_echo_of_another_type_under_the_same_number_is_not_mine() -> None:
    store = chat_store()
    store.propose(1, cancelled("t1"))
    receipt = store.receive(envelope(1, started("t1"), by=("phone", 1)))
    assert receipt.settled is None
    assert len(store.pending) == 1


def test_an_echo_that_changes_nothing_says_so() -> None:
    store = session_store()
    store.propose(1, titled("A session"))
    receipt = store.receive(envelope(1, titled("A session"), channel=SESSION, by=("phone", 1)))
    assert receipt.answer is not None
    assert receipt.answer.kind == "unchanged"


def test_keys_typed_change_no_state_and_still_count() -> None:
    store = OptimisticStore[object]("phone", snapshot(TERMINAL_STATE, 0, TERMINAL))
    keys = TerminalInputAction(data="ls\n")
    store.propose(1, keys)
    receipt = store.receive(envelope(1, keys, channel=TERMINAL, by=("phone", 1)))
    assert receipt.answer is not None
    assert receipt.answer.kind == "accepted"


def test_an_answer_without_a_new_number_settles_and_is_not_reduced() -> None:
    store = chat_store(number=5)
    store.receive(envelope(6, started("t1")))
    store.propose(1, started("t2"))
    store.propose(2, started("t1"))
    refused = store.receive(envelope(6, started("t2"), by=("phone", 1), refused="busy"))
    assert refused.settled is not None
    unchanged = store.receive(envelope(6, started("t1"), by=("phone", 2)))
    assert unchanged.answer is not None
    assert unchanged.answer.kind == "unchanged"
    assert store.pending == ()
    assert turn_texts(store.confirmed) == ["Fix the build"]


def test_an_echo_that_the_snapshot_overtook_is_accepted() -> None:
    store = chat_store()
    store.propose(1, started("t1"))
    state = {**store.confirmed.wire(), "activeTurn": None}
    del state["activeTurn"]
    store.reset_to(snapshot(state, 9))
    receipt = store.receive(envelope(7, started("t1"), by=("phone", 1)))
    assert receipt.answer is not None
    assert receipt.answer.kind == "accepted"
    assert not receipt.changed


def test_a_snapshot_replaces_state_and_number_also_downwards() -> None:
    store = chat_store(number=50)
    store.propose(1, started("t1"))
    store.reset_to(snapshot(number=3))
    assert store.seen == 3
    assert [each.unsure for each in store.pending] == [True]
    assert store.receive(envelope(4, started("t0", "theirs"))).changed


def test_what_has_no_answer_is_taken_out_whole() -> None:
    store = chat_store()
    pending = [store.propose(1, started("t1")), store.propose(2, cancelled("t1"))]
    assert list(store.take_unacknowledged()) == pending
    assert store.optimistic is store.confirmed
    store.put_back(pending[0])
    assert turn_texts(store.optimistic) == ["Fix the build"]


def test_the_view_is_computed_once_for_each_change() -> None:
    store = chat_store()
    store.propose(1, started("t1"))
    shown = store.optimistic
    assert store.optimistic is shown
    store.receive(envelope(1, started("t9", "theirs"), by=("desktop", 1), refused="busy"))
    assert store.optimistic is shown


def test_own_changes_are_no_news_to_later_operations_of_the_same_type() -> None:
    store = session_store()
    store.propose(1, titled("a"))
    later = store.propose(2, titled("b"))
    store.receive(envelope(1, titled("a"), channel=SESSION, by=("phone", 1)))
    assert later.basis is store.confirmed
    store.receive(envelope(2, titled("x"), channel=SESSION, by=("desktop", 1)))
    assert later.basis is not store.confirmed


def test_the_reducer_is_bound_by_the_state_and_unknown_states_stay_as_they_are() -> None:
    assert chat_store().kind == "chat"
    assert session_store().kind == "session"
    unknown = decode(ChannelState, {"kind": "x-new"})
    assert kind_of(unknown) is None
    store = OptimisticStore[object]("phone", snapshot({"kind": "x-new"}, 0, SESSION))
    assert not store.receive(envelope(1, titled("a"), channel=SESSION)).changed
    assert store.seen == 1


def test_a_turn_that_is_over_stays_over_when_a_cancel_comes_late() -> None:
    store = chat_store()
    store.receive(envelope(1, started("t1")))
    store.propose(1, cancelled("t1"))
    store.receive(envelope(2, complete("t1")))
    assert [each.state for each in store.optimistic.turns] == ["complete"]
