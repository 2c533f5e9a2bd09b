"""The one order of the host: numbers, channels, and the queue of what goes out."""

from __future__ import annotations

import pytest

from actors.ledger import Entry, Ledger, Origin
from ahpd.protocol.chat_actions import ChatDeltaAction, ChatIsReadChangedAction
from ahpd.protocol.jsontext import ParseError, loads
from tests.actors.support import C, S

READ = ChatIsReadChangedAction(is_read=True)


def test_numbers_grow_by_one_and_only_envelopes_have_them() -> None:
    ledger = Ledger(seq=41)
    channel = ledger.open(C, "chat", "old", "path")
    assert channel.seq == 41
    ledger.post(lambda: None)
    assert ledger.append(channel, READ, "new")
    ledger.answer(channel, {"type": "x"}, origin=Origin("ann", 1), asker=None, reason="no")
    assert ledger.seq == 43
    assert channel.state == "new"
    assert channel.seq == 42  # a private answer changes no state
    assert [item.seq for item in ledger.queue if isinstance(item, Entry)] == [42, 43]


def test_what_cannot_be_written_takes_no_number_and_changes_nothing() -> None:
    ledger = Ledger()
    channel = ledger.open(C, "chat", "old", "path")
    bad = ChatDeltaAction(turn_id="t", part_id="p", content="\ud800")
    with pytest.raises(ParseError):
        ledger.append(channel, bad, "new")
    with pytest.raises(ParseError):
        ledger.append(channel, READ, "new", windowed=bad)
    assert (ledger.seq, channel.state, len(ledger.queue)) == (0, "old", 0)


def test_b41_nothing_is_said_on_a_channel_that_is_closed() -> None:
    ledger = Ledger()
    old = ledger.open(S, "session", "old", "path")
    ledger.close(old)
    new = ledger.open(S, "session", "new", "path")
    assert not ledger.append(old, READ, "revived")
    ledger.answer(old, {}, origin=Origin("ann", 1), asker=None, reason=None)
    ledger.close(old)  # again: the new one stays
    assert ledger.find(S) is new
    assert (ledger.seq, len(ledger.queue), old.state) == (0, 0, "old")


def test_r_5_4_the_text_of_an_envelope_has_what_it_has_and_no_null() -> None:
    ledger = Ledger()
    channel = ledger.open('a:/\u2028"', "chat", None, "path")
    raw = {"type": "chat/isReadChanged", "isRead": True, "xNew": 1.0}
    ledger.append(channel, READ, None)
    ledger.append(channel, READ, None, origin=Origin("ann", 3), raw=raw)
    ledger.answer(channel, raw, origin=Origin("ann", 4), asker=None, reason="so")
    host, echo, refusal = (loads(e.params) for e in ledger.queue if isinstance(e, Entry))
    assert host == {"channel": 'a:/\u2028"', "serverSeq": 1, "action": READ.wire()}
    assert echo == {**host, "serverSeq": 2, "action": raw,
                    "origin": {"clientId": "ann", "clientSeq": 3}}  # fmt: skip
    assert refusal["rejectionReason"] == "so"


def test_whoever_lets_out_is_woken_when_there_is_something_and_not_for_each() -> None:
    ledger = Ledger()
    woken: list[int] = []
    ledger.on_work = lambda: woken.append(len(ledger.queue))
    for _ in range(3):
        ledger.post(lambda: None)
    ledger.queue.clear()
    ledger.post(lambda: None)
    assert woken == [1, 1]
