"""While nothing can be kept: what waits is bounded, and all of it goes on when there is room."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
import trio

from actors.connection import FAILING_WITHIN
from actors.room import Room
from actors.sequencer import RETRY_AT_MOST
from ahpd.agents.events import Done, TextChunk
from ahpd.journal.port import Batch, JournalDamaged, JournalFailed
from tests.actors.support import C, at_work, ending, room, started, types
from tests.harness import PuppetAgent, SlowJournal, running_host
from tests.harness.peer import Refused

PIECE = "x" * 1000


class FullJournal(SlowJournal):
    """Takes nothing while `fault` is set."""

    fault: JournalFailed | None = None

    async def write(self, batch: Batch) -> Mapping[int, int]:
        await trio.lowlevel.checkpoint()
        if self.fault is not None:
            raise self.fault
        return await super().write(batch)


async def test_agents_and_clients_are_not_heard_beyond_the_bound() -> None:
    agent, journal = PuppetAgent(), FullJournal()
    async with running_host(agent, journal=journal) as host:
        ledger = host.ledger
        ledger.room.limit = 50_000
        ann, bob = await room(host), await room(host, "bob")
        await ann.dispatch(C, started("t1"))
        puppet = await at_work(agent, "t1")
        journal.fault = JournalFailed("the disk is full: j cannot grow")
        for _ in range(300):
            puppet.say(TextChunk(PIECE))
        puppet.end(Done())
        draft = {"text": PIECE, "origin": {"kind": "user"}}
        for _ in range(300):  # what is not read waits where it came from
            await ann.dispatch(C, {"type": "chat/draftChanged", "draft": draft})
        await trio.sleep(100)
        heard = len(ann.inbox)
        waiting = ledger.room.taken
        assert 50_000 < waiting < 60_000
        assert str(ledger.failing) == "the disk is full: j cannot grow"
        assert await bob.request("ping") is None
        await trio.sleep(100)
        assert (len(ann.inbox), ledger.room.taken) == (heard, waiting)

        journal.fault = None
        await ending(ann, "t1")
        await trio.sleep(10)
        assert [ledger.failing, ledger.room.taken] == [None, 0]
        part = host.ledger.channels[C].state.turns[0].response_parts[0]
        assert str(part.content) == PIECE * 300
        assert types(ann, C).count("chat/draftChanged") == 300


async def test_a_journal_that_is_damaged_for_good_stops_the_host_in_order() -> None:
    journal = FullJournal()
    async with running_host(journal=journal) as host:
        ann = await room(host)
        heard = len(ann.inbox)
        journal.fault = JournalDamaged("j is damaged")
        await ann.dispatch(C, {"type": "chat/isReadChanged", "isRead": False})
        await ann.ended()
        assert (host.ledger.failing, host.ledger.is_ruined) == ("j is damaged", True)
        assert [each for each in ann.inbox[heard:] if each.get("method") == "action"] == []


async def test_a_sync_that_fails_is_done_again() -> None:
    class Unsafe(FullJournal):
        syncs = 0

        async def sync(self) -> None:
            self.syncs += 1
            if self.syncs < 4:
                raise JournalFailed("input/output error")

    journal = Unsafe()
    async with running_host(journal=journal) as host:
        await room(host)
        await trio.sleep(60)
        assert journal.syncs == 4


async def test_room_is_waited_for_by_all_who_bring_more() -> None:
    hall, came = Room(10), []

    async def bring(name: str) -> None:
        await hall.wait()
        came.append(name)

    hall.take(11)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(bring, "a")
        nursery.start_soon(bring, "b")
        await trio.testing.wait_all_tasks_blocked()
        assert came == []
        hall.free(1)
        await trio.testing.wait_all_tasks_blocked()
        assert sorted(came) == ["a", "b"]
    await hall.wait()  # at once


async def test_b38_a_request_is_told_that_nothing_can_be_kept() -> None:
    """Somebody who comes now learns why nothing happens; what they asked for is not done later."""
    journal = FullJournal()
    async with running_host(journal=journal) as host:
        ann = await room(host)
        journal.fault = JournalFailed("the disk is full: j cannot grow")
        await ann.dispatch(C, {"type": "chat/isReadChanged", "isRead": False})
        await trio.sleep(FAILING_WITHIN / 4)  # what was begun before waits: it may be kept yet
        other = "ahp-session:/other"
        with pytest.raises(Refused, match=r"createSession: the host can keep nothing .* j cannot"):
            await ann.request("createSession", channel=other)
        bob = await host.peer("bob")
        with pytest.raises(Refused, match="initialize: the host can keep nothing now"):
            await bob.hello()
        journal.fault = None
        await trio.sleep(RETRY_AT_MOST + 1)
        await bob.hello()
        assert host.ledger.find(other) is None
        await ann.request("createSession", channel=other)
        assert types(ann, C).count("chat/isReadChanged") == 1


async def test_b38_a_short_pause_refuses_nobody() -> None:
    journal = FullJournal()
    async with running_host(journal=journal) as host:
        ann = await room(host)
        journal.fault = JournalFailed("the disk is full: j cannot grow")
        await ann.dispatch(C, {"type": "chat/isReadChanged", "isRead": False})
        await trio.sleep(FAILING_WITHIN / 4)
        assert host.ledger.failing is not None
        asked = await ann.call("createSession", channel="ahp-session:/other")
        await trio.sleep(FAILING_WITHIN / 4)
        journal.fault = None
        await ann.answer_to(asked)
