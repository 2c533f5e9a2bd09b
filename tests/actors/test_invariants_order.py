"""Invariants 1 to 4 of the design: the order, snapshots, connections, durability."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from contextlib import AsyncExitStack
from random import Random

import pytest
import trio

from ahpd.agents.events import (
    Done,
    TextChunk,
)
from ahpd.journal.port import Batch, JournalFailed
from ahpd.protocol.connection import SubscriptionDeliveryOptions
from ahpd.protocol.uris import ROOT
from supervisors import sys
from tests.actors.support import (
    S2,
    C,
    S,
    actions,
    at_work,
    ending,
    room,
    settled,
    started,
    turn,
)
from tests.harness import (
    PuppetAgent,
    SlowJournal,
    differences,
    running_host,
)
from tests.harness.replicas import state_of

# ---- 1: one order --------------------------------------------------------------------------------


async def test_1_one_counter_numbers_every_envelope_of_the_host() -> None:
    """Of all channels, refusals and no-ops included; a sequencer that is killed leaves no hole."""
    agent = PuppetAgent()
    async with running_host(agent, journal=SlowJournal(1, 0.05)) as host:
        ann = await room(host)
        await ann.request("createSession", channel=S2)
        for number in range(5):
            await ann.dispatch(C, {"type": "chat/isReadChanged", "isRead": bool(number % 2)})
            await ann.dispatch(S2, {"type": "session/titleChanged", "title": ""})
            sys.kill(host.system.ref("sequencer"))
            await turn(ann, agent, f"t{number}", Done())
        await trio.sleep(5)
        numbers = [entry.seq for entry in host.stream.entries]
        assert numbers == list(range(1, host.ledger.seq + 1))
        assert {entry.channel.kind for entry in host.stream.entries} >= {"root", "session", "chat"}


# ---- 2: snapshots fit ----------------------------------------------------------------------------


@pytest.mark.parametrize("longest", [0.0, 0.03])
async def test_2_a_subscriber_that_comes_at_any_point_of_a_stream_misses_nothing(
    longest: float,
) -> None:
    agent = PuppetAgent()
    async with running_host(agent, journal=SlowJournal(2, longest)) as host, AsyncExitStack() as up:
        ann = await room(host)
        await ann.dispatch(C, started("t1"))
        puppet = await at_work(agent, "t1")
        clients = []
        for point in range(24):
            coming = up.enter_async_context(host.client(f"c{point}", subscriptions=(ROOT, S, C)))
            puppet.say(TextChunk(f"{point} "), TextChunk("and "))
            clients.append(await coming)
            await trio.sleep(0.011)
        puppet.end(Done())
        await ending(ann, "t1")
        await trio.sleep(1)
        for client in clients:
            assert differences(client, host) == []
        text = "".join(f"{point} and " for point in range(24))
        assert state_of(host, C)["turns"][0]["responseParts"][0]["content"] == text


async def test_2_everything_after_a_snapshot_is_above_its_number() -> None:
    agent = PuppetAgent()
    async with running_host(agent, journal=SlowJournal(3, 0.02)) as host:
        ann, bob = await room(host), await room(host, "bob", subscribe=())
        await ann.dispatch(C, started("t1"))
        puppet = await at_work(agent, "t1")
        for _ in range(20):
            for _ in range(3):
                puppet.say(TextChunk("x"))
            bob.inbox.clear()
            id = await bob.call("subscribe", channel=C)
            puppet.say(TextChunk("y"))
            from_seq = (await bob.answer_to(id))["snapshot"]["fromSeq"]
            await trio.sleep(0.2)
            numbers = [it["params"]["serverSeq"] for it in bob.inbox if "params" in it]
            after = [e.seq for e in host.stream.said(C) if e.seq > from_seq]
            assert [n for n in numbers if n > from_seq] == after
            await bob.notify("unsubscribe", channel=C)
            await bob.request("listSessions")


# ---- 3: one connection, one direction ------------------------------------------------------------


async def test_3_a_held_update_is_never_overtaken_and_joined_ones_make_the_same_state() -> None:
    """R-4.22 to R-4.24; that numbers grow on every connection is checked by the harness."""
    agent = PuppetAgent()
    async with running_host(agent) as host, AsyncExitStack() as up:
        ann = await room(host)
        slow = await room(host, "slow", subscribe=(ROOT, S))
        await slow.subscribe(C, delivery={"maxLatencyMs": 1000})
        quick = await up.enter_async_context(host.client("quick", subscriptions=(ROOT, S, C)))
        lazy = await up.enter_async_context(host.client("lazy", subscriptions=(ROOT,)))
        await lazy.subscribe(C, delivery=SubscriptionDeliveryOptions(max_latency_ms=1000))
        await ann.dispatch(C, started("t1"))
        puppet = await at_work(agent, "t1")
        dice = Random(3)
        for number in range(200):
            puppet.say(TextChunk(f"{number} "))
            if dice.random() < 0.05:
                title = {"type": "session/titleChanged", "title": f"Title {number}"}
                await ann.dispatch(S, title)
            await trio.sleep(dice.uniform(0, 0.02))
        puppet.end(Done())
        await ending(slow, "t1")
        await trio.sleep(2)
        deltas = [a for a in actions(slow, C) if a["type"] == "chat/delta"]
        assert 1 < len(deltas) < 100
        assert "".join(a["content"] for a in deltas).endswith("198 199 ")
        for client in (quick, lazy):
            assert differences(client, host) == []


async def test_3_what_is_held_arrives_within_its_time_whatever_else_is_said() -> None:
    """Also behind a ping, which does not wait for what is held."""
    agent = PuppetAgent()
    async with running_host(agent) as host:
        ann = await room(host)
        bob = await room(host, "bob", subscribe=())
        await bob.subscribe(C, delivery={"maxLatencyMs": 500})
        await ann.dispatch(C, started("t1"))
        puppet = await at_work(agent, "t1")
        await trio.sleep(1)
        for _ in range(3):
            bob.inbox.clear()
            begun = trio.current_time()
            await bob.request("ping")
            puppet.say(TextChunk("a"))
            await settled()
            assert actions(bob) == []
            await bob.request("ping")
            assert trio.current_time() == begun
            await bob.wait(lambda it: it.get("method") == "action", within=0.6)
            assert trio.current_time() - begun == pytest.approx(0.5)


@pytest.mark.parametrize(("asked", "held"), [(1e300, 10), (1e19, 10), (-1e300, 0), (0, 0)])
async def test_r_4_22_no_bound_however_large_holds_an_envelope_for_long(
    asked: float, held: float
) -> None:
    """The bound is the most that a client takes, not what the host has to use up."""
    agent = PuppetAgent()
    async with running_host(agent) as host:
        ann = await room(host)
        bob = await room(host, "bob", subscribe=())
        await bob.subscribe(C, delivery={"maxLatencyMs": asked}, view={"turns": 1e300})
        await ann.dispatch(C, started("t1"))
        puppet = await at_work(agent, "t1")
        await trio.sleep(11)
        bob.inbox.clear()
        begun = trio.current_time()
        puppet.say(TextChunk("a"))
        await bob.wait(lambda it: it.get("method") == "action", within=11)
        assert trio.current_time() - begun == pytest.approx(held)


async def test_3_what_was_held_when_the_connection_broke_comes_by_replay() -> None:
    agent = PuppetAgent()
    async with running_host(agent) as host:
        ann = await room(host)
        async with host.client("lazy", subscriptions=(ROOT,)) as lazy:
            await lazy.subscribe(C, delivery=SubscriptionDeliveryOptions(max_latency_ms=5000))
            await ann.dispatch(C, started("t1"))
            puppet = await at_work(agent, "t1")
            await lazy.until(C, lambda chat: chat.active_turn is not None)
            for number in range(10):
                puppet.say(TextChunk(str(number)))
                await trio.sleep(0.01)
            host.wires["lazy"].cut()
            await trio.sleep(0.1)
            await lazy.reconnect_now()
            puppet.say(TextChunk("end"))
            await trio.sleep(10)
            assert differences(lazy, host) == []


# ---- 4: durable before visible -------------------------------------------------------------------


class StubbornJournal(SlowJournal):
    """Blocks while `open` is not set, then fails as often as it is told."""

    def __init__(self) -> None:
        super().__init__()
        self.open = trio.Event()
        self.open.set()
        self.failures = 0

    async def write(self, batch: Batch) -> Mapping[int, int]:
        await self.open.wait()
        if self.failures:
            self.failures -= 1
            raise JournalFailed("the disk is full")
        return await super().write(batch)


async def test_4_while_the_journal_blocks_nothing_leaves() -> None:
    """Neither envelopes nor snapshots nor answers; only signs of life, which depend on nothing."""
    journal = StubbornJournal()
    async with running_host(journal=journal) as host:
        ann, bob = await room(host), await room(host, "bob")
        journal.open = trio.Event()
        here = len(ann.inbox), len(bob.inbox), host.journal.seq
        await ann.dispatch(C, started("t1"))
        await bob.call("subscribe", channel=C)
        await ann.call("createSession", channel=S2)
        await ann.dispatch(S, {"type": "session/titleChanged", "title": " "})
        await trio.sleep(10)
        assert (len(ann.inbox), len(bob.inbox), host.journal.seq) == here
        assert await bob.request("ping") is None
        agent = host.tables.agents["puppet"]
        assert isinstance(agent, PuppetAgent)
        assert agent.of[C].prompted is None  # side effects come after the echo
        journal.open.set()
        await ann.expect_action("chat/turnStarted")
        await at_work(agent, "t1")


async def test_4_a_journal_that_fails_and_recovers_loses_and_doubles_nothing() -> None:
    journal = StubbornJournal()
    async with running_host(journal=journal, crashes=["sequencer"]) as host:
        ann = await room(host)
        async with host.client("laptop", subscriptions=(ROOT, S, C)) as laptop:
            journal.failures = 4
            for number in range(20):
                await ann.dispatch(C, {"type": "chat/isReadChanged", "isRead": number % 2 == 0})
            await trio.sleep(30)
            assert journal.failures == 0
            answers = Counter(
                it["params"]["origin"]["clientSeq"]
                for it in ann.inbox
                if it.get("method") == "action" and it["params"].get("origin")
            )
            assert set(answers.values()) == {1}
            assert len(answers) == 20
            assert differences(laptop, host) == []
