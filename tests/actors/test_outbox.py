"""The outbox: what waits for one connection's writer."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
import trio

from actors.ledger import Channel, Entry, Ledger
from actors.outbox import DIRECT, Outbox
from ahpd.protocol.actions import StateAction
from ahpd.protocol.chat_actions import ChatDeltaAction, ChatReasoningAction
from ahpd.protocol.frame import Frame
from ahpd.protocol.jsontext import loads
from tests.actors.support import C2, C


@pytest.fixture
def ledger() -> Ledger:
    made = Ledger()
    made.open(C, "chat", None, "x")
    made.open(C2, "chat", None, "y")
    return made


def outbox(limit: int = 1 << 20) -> tuple[Outbox, list[str]]:
    overflows: list[str] = []
    return Outbox(lambda: limit, overflows.append), overflows


def envelope(ledger: Ledger, action: StateAction, uri: str = C) -> Entry:
    channel = ledger.find(uri)
    assert isinstance(channel, Channel)
    ledger.append(channel, action, None)
    entry = ledger.queue[-1]
    assert isinstance(entry, Entry)
    return entry


def delta(text: str, part: str = "p") -> ChatDeltaAction:
    return ChatDeltaAction(turn_id="t", part_id=part, content=text)


async def test_everything_that_waits_goes_in_one_batch_in_order() -> None:
    box, _ = outbox()
    for text in (b"1", b"22", b"333"):
        box.put(Frame(text))
    batch = await box.take()
    assert [frame.text for frame in batch.frames] == [b"1", b"22", b"333"]
    assert box.size == 6
    box.done(batch)
    assert box.size == 0


async def test_signs_of_life_overtake_and_free_nothing_that_is_held(ledger: Ledger) -> None:
    box, _ = outbox()
    entry = envelope(ledger, delta("a"))
    box.put_entry(entry, entry.frame, 2.0)
    box.put_urgent(Frame(b"ping"))
    assert [frame.text for frame in (await box.take()).frames] == [b"ping"]
    begun = trio.current_time()
    assert (await box.take()).frames == [entry.frame]
    assert trio.current_time() - begun == pytest.approx(2.0)


async def test_neighbours_that_append_to_one_part_are_joined_under_the_later_number(
    ledger: Ledger,
) -> None:
    box, _ = outbox()
    actions: list[tuple[StateAction, str]] = [
        (delta("a"), C),
        (delta("b"), C),
        (delta("c", "other"), C),
        (delta("d", "other"), C2),
        (delta("e", "other"), C2),
        (ChatReasoningAction(turn_id="t", part_id="other", content="f"), C2),
        (delta("g"), C),
    ]
    for action, uri in actions:
        entry = envelope(ledger, action, uri)
        box.put_entry(entry, entry.frame, 1.0)
    frames = [loads(frame.text) for frame in (await box.take()).frames]
    said = [(f["params"]["serverSeq"], f["params"]["action"]["content"]) for f in frames]
    assert said == [(2, "ab"), (3, "c"), (5, "de"), (6, "f"), (7, "g")]


async def test_what_may_not_wait_takes_everything_before_it_along(ledger: Ledger) -> None:
    box, _ = outbox()
    first, second = envelope(ledger, delta("a")), envelope(ledger, delta("b"))
    box.put_entry(first, first.frame, 60.0)
    box.put_entry(second, second.frame)
    begun = trio.current_time()
    assert (await box.take()).frames == [first.frame, second.frame]
    assert trio.current_time() == begun


async def test_the_shortest_time_of_what_is_held_counts(ledger: Ledger) -> None:
    box, _ = outbox()
    for hold in (60.0, 1.0, 30.0):
        entry = envelope(ledger, delta("a"))
        box.put_entry(entry, entry.frame, hold)
    begun = trio.current_time()
    assert len((await box.take()).frames) == 1
    assert trio.current_time() - begun == pytest.approx(1.0)


async def test_over_the_limit_it_is_closed_once_and_takes_nothing_more() -> None:
    box, overflows = outbox(limit=10)
    box.put(Frame(b"x" * 100))  # one frame may be as large as it is
    for _ in range(11):  # and beside it the limit holds for all the others
        box.put(Frame(b"y"))
    assert overflows == []
    for _ in range(3):
        box.put(Frame(b"y"))
    assert len(overflows) == 1
    assert "clientQueueBytes" in overflows[0]
    assert (await box.take()).frames == []
    assert box.size == 0


async def test_a_long_frame_counts_for_nothing_only_while_something_waits() -> None:
    box, overflows = outbox(limit=10)
    box.put(Frame(b"x" * 100))
    box.done(await box.take())
    for _ in range(12):
        box.put(Frame(b"y"))
    assert overflows == []
    box.put(Frame(b"y"))
    assert len(overflows) == 1


async def test_who_asked_is_told_when_what_came_before_is_written() -> None:
    box, _ = outbox()
    told: list[int] = []
    box.put(Frame(b"1"))
    box.after(lambda: told.append(1))
    batch = await box.take()
    assert told == []
    box.done(batch)
    assert told == [1]
    box.close()
    box.after(lambda: told.append(2))
    assert told == [1]


# ---- without the writer -------------------------------------------------------------------------


async def test_a_flush_writes_everything_that_waits_at_once(ledger: Ledger) -> None:
    box, _ = outbox()
    told: list[str] = []
    entries = [envelope(ledger, delta(text)) for text in "ab"]
    for entry in entries:
        box.put_entry(entry, entry.frame)
    box.after(lambda: told.append("written"))
    sent: list[Frame] = []

    def send(frames: Sequence[Frame]) -> bool:
        sent.extend(frames)
        return True

    box.flush(send)
    assert sent == [entry.frame for entry in entries]
    assert (box.size, told) == (0, ["written"])
    box.flush(send)
    assert len(sent) == 2


async def test_what_a_flush_could_not_write_is_seen_through_before_anything_else(
    ledger: Ledger,
) -> None:
    box, _ = outbox()
    told: list[str] = []
    first, second = (envelope(ledger, delta(text)) for text in "ab")
    box.put_entry(first, first.frame)
    box.after(lambda: told.append("written"))
    box.flush(lambda _: False)
    assert (box.size, told) == (len(first.frame), [])
    box.put_entry(second, second.frame)
    box.flush(lambda _: pytest.fail("nothing may overtake what the transport still has"))
    batch = await box.take()
    assert (batch.frames, batch.has_rest) == ([], True)
    box.flush(lambda _: pytest.fail("while the writer writes, it writes alone"))
    box.done(batch)
    assert told == ["written"]
    batch = await box.take()
    assert (batch.frames, batch.has_rest) == ([second.frame], False)
    box.done(batch)
    assert box.size == 0


async def test_a_flush_leaves_alone_what_is_held_back_and_what_is_long(ledger: Ledger) -> None:
    box, _ = outbox()
    entry = envelope(ledger, delta("a"))
    box.put_entry(entry, entry.frame, 2.0)
    box.flush(lambda _: pytest.fail("it may wait"))
    long = envelope(ledger, delta("x" * (DIRECT + 1)))
    box.put_entry(long, long.frame)
    box.flush(lambda _: pytest.fail("a long one is the writer's"))
    assert [frame.text for frame in (await box.take()).frames] == [
        entry.frame.text,
        long.frame.text,
    ]
