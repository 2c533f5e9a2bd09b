"""The ten invariants of the design, each under the faults it is about."""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AsyncExitStack
from random import Random
from typing import Any

import pytest
import trio

from ahpd.agents.events import (
    ActivityChanged,
    Done,
    Failed,
    TextChunk,
    ToolAsks,
    ToolReady,
    ToolStarted,
)
from ahpd.agents.port import AgentFailed
from ahpd.journal.port import Batch, JournalFailed
from ahpd.protocol.connection import SubscriptionDeliveryOptions
from ahpd.protocol.uris import ROOT
from supervisors import sys
from tests.actors.support import (
    C2,
    S2,
    C,
    S,
    actions,
    answer,
    approved,
    at_work,
    cancelled,
    denied,
    ending,
    message,
    pending,
    room,
    settled,
    started,
    turn,
    withdrawn,
)
from tests.harness import (
    Puppet,
    PuppetAgent,
    RawPeer,
    RunningHost,
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


# ---- 5: every dispatch is answered ---------------------------------------------------------------


def some_action(dice: Random, number: int) -> Any:
    """Accepted, refused or changing nothing: whatever comes."""
    return dice.choice(
        [
            {"type": "chat/isReadChanged", "isRead": dice.random() < 0.5},
            {"type": "chat/draftChanged", "draft": message(f"draft {number}")},
            {"type": "chat/draftChanged"},
            started(f"t{number}"),
            started(f"t{number // 3}"),
            cancelled(f"t{number // 2}"),
            pending(f"q{number % 7}"),
            pending("s", "steering"),
            withdrawn(f"q{number % 5}"),
            approved("t1", "c1"),
            {"type": "chat/delta", "turnId": "t1", "partId": "p", "content": "x"},
            {"type": "session/titleChanged", "title": "x"},
            {"type": "chat/queuedMessagesReordered", "order": ["q3", "q1"]},
            {"type": "chat/truncated"},
        ]
    )


@pytest.mark.parametrize("seed", range(6))
async def test_5_every_dispatch_is_answered_exactly_once_and_to_the_right_people(
    seed: int,
) -> None:
    dice = Random(seed)
    agent = PuppetAgent(takes_steering=seed % 2 == 0)
    async with running_host(agent, journal=SlowJournal(seed, 0.01)) as host:
        peers = [await room(host, name) for name in ("ann", "bob", "eve")]
        sent: set[tuple[str, int]] = set()
        for number in range(60):
            peer = dice.choice(peers)
            sent.add((peer.name, await peer.dispatch(C, some_action(dice, number))))
            if dice.random() < 0.3:
                await trio.sleep(0.02)
            puppet = agent.of.get(C)
            if puppet is not None and dice.random() < 0.3:
                puppet.end(Done() if dice.random() < 0.5 else Failed("no"))
        await trio.sleep(5)
        for peer in peers:
            heard = [
                it["params"]
                for it in peer.inbox
                if it.get("method") == "action" and it["params"]["channel"] == C
            ]
            numbers = [params["serverSeq"] for params in heard]
            assert len(set(numbers)) == len(numbers)
            answers = Counter(
                (params["origin"]["clientId"], params["origin"]["clientSeq"])
                for params in heard
                if "origin" in params
            )
            assert set(answers.values()) == {1}
            mine = {key for key in answers if key[0] == peer.name}
            assert mine == {key for key in sent if key[0] == peer.name}
            public = {e.seq for e in host.stream.entries if e.audience is None}
            for params in heard:
                if params["serverSeq"] not in public:
                    assert params["origin"]["clientId"] == peer.name
                assert "rejectionReason" not in params or params["serverSeq"] not in public
        started_turns, ended_turns = host.stream.turns()
        active = state_of(host, C).get("activeTurn", {"id": None})["id"]
        assert started_turns - ended_turns == Counter([active] if active else [])


async def test_5_a_private_answer_is_replayed_to_its_sender_alone() -> None:
    async with running_host() as host:
        ann, bob = await room(host), await room(host, "bob")
        seen = host.ledger.seq
        for peer in (ann, bob):
            peer.wire.hold("down")
        refusal = await ann.dispatch(C, cancelled("never"))
        nothing = await ann.dispatch(C, {"type": "chat/draftChanged"})
        await settled()
        for peer in (ann, bob):
            peer.cut()
            peer.wire.release()
        replays = {}
        for name in ("ann", "bob"):
            again = await host.peer(name)
            result = await again.request(
                "reconnect", clientId=name, lastSeenServerSeq=seen, subscriptions=[C]
            )
            replays[name] = result["actions"]
        assert [it["origin"]["clientSeq"] for it in replays["ann"]] == [refusal, nothing]
        assert ["rejectionReason" in it for it in replays["ann"]] == [True, False]
        assert replays["bob"] == []


async def test_5_r_3_4_a_dispatch_needs_no_subscription_and_then_gets_no_echo() -> None:
    agent = PuppetAgent()
    async with running_host(agent) as host:
        ann, bob = await room(host), await room(host, "bob", subscribe=(ROOT,))
        await ann.dispatch(C, started("t1"))
        puppet = await at_work(agent, "t1")
        puppet.say(ToolStarted("c1", "run", "Run"), ToolAsks("c1", "Run it"))
        await ann.expect_action("chat/toolCallReady")
        bob.inbox.clear()
        await bob.dispatch(C, approved("t1", "c1"))
        confirmed = await ann.expect_action("chat/toolCallConfirmed")
        assert confirmed["origin"]["clientId"] == "bob"
        await settled()
        assert puppet.permissions[0].approved
        assert actions(bob) == []


# ---- 6: a resend is not a second wish ------------------------------------------------------------


async def comes_back(host: RunningHost, peer: RawPeer) -> RawPeer:
    """On a new connection, by replay; its `clientSeq` starts at 1 again (R-5.6)."""
    seen = host.ledger.seq
    peer.cut()
    again = await host.peer(peer.name)
    await again.request(
        "reconnect", clientId=peer.name, lastSeenServerSeq=seen, subscriptions=[ROOT, S, C]
    )
    return again


async def said_again(peer: RawPeer, action: Any) -> str | None:
    """The reason with which an action that is sent again is refused; None: an echo."""
    params = await answer(peer, await peer.dispatch(C, action))
    reason: str | None = params.get("rejectionReason")
    return reason


async def test_6_a_turn_is_started_once_however_often_it_is_sent() -> None:
    agent = PuppetAgent()
    async with running_host(agent) as host:
        ann = await room(host)
        await ann.dispatch(C, started("t1"))
        puppet = await at_work(agent, "t1")
        puppet.say(TextChunk("half an answer"))
        ann = await comes_back(host, ann)
        assert "already" in str(await said_again(ann, started("t1")))
        assert state_of(host, C)["activeTurn"]["responseParts"][0]["content"] == "half an answer"
        puppet.end(Done())
        await ending(ann, "t1")
        ann = await comes_back(host, ann)
        assert "already" in str(await said_again(ann, started("t1")))
        assert len(puppet.prompts) == 1


async def test_6_a_pending_message_is_taken_up_once() -> None:
    agent = PuppetAgent()
    async with running_host(agent) as host:
        ann = await room(host)
        await ann.dispatch(C, started("t1"))
        puppet = await at_work(agent, "t1")
        await ann.dispatch(C, pending("q1"))
        await ann.dispatch(C, pending("s1", "steering"))
        await trio.sleep(1)
        ann = await comes_back(host, ann)
        assert await said_again(ann, pending("q1")) is None  # it still waits: nothing new
        assert "taken up" in str(await said_again(ann, pending("s1", "steering")))
        puppet.end(Done())
        await trio.sleep(1)
        ann = await comes_back(host, ann)
        assert "taken up" in str(await said_again(ann, pending("q1")))
        assert "taken up" in str(await said_again(ann, withdrawn("q1")))
        assert [prompt.message.text for prompt in puppet.prompts] == ["Tidy up", "message q1"]
        assert [text.text for text in puppet.steered] == ["message s1"]


@pytest.mark.parametrize("kind", ["queued", "steering"])
async def test_6_a_message_that_was_taken_back_stays_taken_back(kind: str) -> None:
    agent = PuppetAgent()
    # Slow, so that the agent has not yet been given the steering message when it is taken back.
    async with running_host(agent, journal=SlowJournal(longest=10)) as host:
        ann = await room(host)
        await ann.dispatch(C, started("t1"))
        puppet = await at_work(agent, "t1")
        await ann.dispatch(C, pending("q1", kind))
        await ann.dispatch(C, withdrawn("q1", kind))
        await trio.sleep(60)
        ann = await comes_back(host, ann)
        assert "taken back" in str(await said_again(ann, pending("q1", kind)))
        puppet.end(Done())
        await trio.sleep(60)
        assert len(puppet.prompts) == 1
        assert puppet.steered == []


async def test_6_a_call_is_confirmed_once_and_the_first_answer_counts() -> None:
    agent = PuppetAgent()
    async with running_host(agent) as host:
        ann, bob = await room(host), await room(host, "bob")
        await ann.dispatch(C, started("t1"))
        puppet = await at_work(agent, "t1")
        puppet.say(ToolStarted("c1", "run", "Run"), ToolAsks("c1", "Run it"))
        await ann.expect_action("chat/toolCallReady")
        await bob.dispatch(C, denied("t1", "c1", reasonMessage="too risky"))
        await ann.expect_action("chat/toolCallConfirmed")
        assert "not waiting" in str(await said_again(ann, approved("t1", "c1")))
        bob = await comes_back(host, bob)
        assert "not waiting" in str(await said_again(bob, denied("t1", "c1")))
        assert [(each.approved, each.reason) for each in puppet.permissions] == [
            (False, "too risky")
        ]


async def test_6_the_same_client_seq_on_another_connection_is_another_dispatch() -> None:
    async with running_host() as host:
        ann = await room(host)
        for title in ("One", "Two", "Three"):
            action = {"type": "session/titleChanged", "title": title}
            await ann.dispatch(S, action, client_seq=1)
            assert (await answer(ann, 1))["action"] == action
            ann = await comes_back(host, ann)
        assert state_of(host, S)["title"] == "Three"


# ---- 7: a turn ends once -------------------------------------------------------------------------

End = Callable[[RunningHost, RawPeer, Puppet], Awaitable[object]]


async def done(host: RunningHost, ann: RawPeer, puppet: Puppet) -> None:
    puppet.end(Done())


async def failed(host: RunningHost, ann: RawPeer, puppet: Puppet) -> None:
    puppet.end(Failed("no", resumable=True))


async def broken(host: RunningHost, ann: RawPeer, puppet: Puppet) -> None:
    puppet.crash(AgentFailed("gone", resumable=True))


async def buggy(host: RunningHost, ann: RawPeer, puppet: Puppet) -> None:
    puppet.crash(ZeroDivisionError("division by zero"))


async def unsayable(host: RunningHost, ann: RawPeer, puppet: Puppet) -> None:
    puppet.say(TextChunk("\ud800"))


async def cancel(host: RunningHost, ann: RawPeer, puppet: Puppet) -> None:
    await ann.dispatch(C, cancelled("t1"))
    await ann.dispatch(C, cancelled("t1"))


async def ignored_cancel(host: RunningHost, ann: RawPeer, puppet: Puppet) -> None:
    puppet.deaf = True
    await cancel(host, ann, puppet)


async def late_cancel(host: RunningHost, ann: RawPeer, puppet: Puppet) -> None:
    puppet.end(Done())
    await cancel(host, ann, puppet)


async def chat_killed(host: RunningHost, ann: RawPeer, puppet: Puppet) -> None:
    sys.kill(host.system.ref(host.ledger.channels[C].path))


async def session_killed(host: RunningHost, ann: RawPeer, puppet: Puppet) -> None:
    sys.kill(host.system.ref(host.ledger.channels[S].path))
    puppet.end(Done())


async def chat_disposed(host: RunningHost, ann: RawPeer, puppet: Puppet) -> None:
    await ann.request("disposeChat", channel=C)


async def session_disposed(host: RunningHost, ann: RawPeer, puppet: Puppet) -> None:
    await ann.request("disposeSession", channel=S)


ENDS: dict[End, str] = {
    done: "chat/turnComplete",
    failed: "chat/error",
    broken: "chat/error",
    buggy: "chat/error",
    unsayable: "chat/error",
    cancel: "chat/turnCancelled",
    ignored_cancel: "chat/turnCancelled",
    late_cancel: "",  # whichever comes first
    chat_killed: "chat/error",
    session_killed: "chat/turnComplete",
    chat_disposed: "chat/turnCancelled",
    session_disposed: "chat/turnCancelled",
}


@pytest.mark.parametrize("end", ENDS, ids=lambda end: end.__name__)
async def test_7_a_turn_ends_once_and_leaves_nothing_open(end: End) -> None:
    agent = PuppetAgent()
    async with running_host(agent) as host:
        ann, bob = await room(host), await room(host, "bob")
        await ann.request("createChat", channel=S, chat=C2)
        await ann.dispatch(C, started("t1"))
        puppet = await at_work(agent, "t1")
        puppet.say(
            ActivityChanged("Working"),
            ToolStarted("asks", "run", "Run"),
            ToolAsks("asks", "Run it"),
            ToolStarted("runs", "run", "Run"),
            ToolReady("runs", "Running"),
            ToolStarted("streams", "run", "Run"),
        )
        await bob.expect_action("session/inputNeededSet")
        await trio.sleep(1.5)
        await end(host, ann, puppet)
        action = await ending(bob, "t1")
        assert action["type"] == (ENDS[end] or action["type"])
        if not end.__name__.endswith("cancel"):  # a client's cancel carries its own
            again = 300 if end is chat_killed else 5  # the pause before it is started again
            assert 1499 < action["duration"] < 1500 + again
        await trio.sleep(120)
        started_turns, ended_turns = host.stream.turns()
        assert started_turns == ended_turns == {"t1": 1}
        if host.ledger.find(C) is not None:
            [ended] = state_of(host, C)["turns"]
            calls = [part["toolCall"] for part in ended["responseParts"] if "toolCall" in part]
            assert [call["status"] for call in calls] == ["cancelled"] * 3
            assert state_of(host, C)["status"] & 8 == 0
            assert "activity" not in state_of(host, C)
        if host.ledger.find(S) is not None:
            assert "inputNeeded" not in state_of(host, S)
            assert not state_of(host, S).get("activity")
            listed = (await ann.request("listSessions"))["items"][0]
            assert listed["status"] & 8 == 0
        if end not in (chat_disposed, session_disposed):
            assert (await turn(ann, agent, "t2", Done()))["type"] == "chat/turnComplete"


async def test_7_a_resumed_turn_ends_once_more_with_the_whole_duration() -> None:
    """R-9.64, on this host's clock: the client's may be hours off."""
    agent = PuppetAgent()
    async with running_host(agent) as host:
        ann = await room(host)
        start = started("t1") | {"startedAt": "1999-01-01T05:00:00.000+05:00"}
        await ann.dispatch(C, start)
        (await at_work(agent, "t1")).end(Failed("busy", resumable=True))
        await ending(ann, "t1")
        await trio.sleep(10)
        await ann.dispatch(C, {"type": "chat/turnResume", "turnId": "t1"})
        await trio.sleep(2)
        puppet = await at_work(agent, "t1")
        assert puppet.prompts[-1].resume
        puppet.end(Done())
        ended = await ending(ann, "t1")
        assert ended["type"] == "chat/turnComplete"
        assert ended["duration"] == pytest.approx(12_000, abs=5)


# ---- 8: state is the journal's -------------------------------------------------------------------


@pytest.mark.parametrize("victim", ["session/*/session", "session/*/chat/0", "catalogue", "root",
                                    "sequencer", "grace"])  # fmt: skip
async def test_8_who_starts_again_holds_what_its_clients_hold(victim: str) -> None:
    agent = PuppetAgent()
    async with running_host(agent, journal=SlowJournal(8, 0.02)) as host:
        ann = await room(host)
        async with host.client("laptop", subscriptions=(ROOT, S, C)) as laptop:
            for number in range(4):
                path = victim.replace("*", host.ledger.channels[S].path.split("/")[1])
                await ann.dispatch(C, started(f"t{number}"))
                await ann.dispatch(C, pending(f"q{number}"))
                await ann.dispatch(S, {"type": "session/titleChanged", "title": f"No {number}"})
                sys.kill(host.system.ref(path))
                for _ in range(2):
                    await trio.sleep(2)
                    if agent.of[C].prompted is not None:
                        agent.of[C].end(Done())
            await trio.sleep(5)
            assert differences(laptop, host) == []
            assert state_of(host, S)["title"] == "No 3"
            assert "queuedMessages" not in state_of(host, C)


# ---- 9: the clock is read once -------------------------------------------------------------------


async def test_9_times_come_from_actions_so_replicas_agree_whenever_they_reduce() -> None:
    agent = PuppetAgent()
    async with running_host(agent) as host:
        ann = await room(host)
        async with host.client("laptop", subscriptions=(ROOT, S, C)) as laptop:
            host.wires["laptop"].hold("down")
            await ann.dispatch(C, pending("q1"))
            puppet_turn = (await ann.expect_action("chat/turnStarted"))["action"]
            assert puppet_turn["startedAt"] == host.tables.clock.now()
            await trio.sleep(2.25)
            agent.of[C].end(Done())
            ended = await ending(ann, puppet_turn["turnId"])
            assert ended["duration"] == pytest.approx(2250, abs=1)
            await trio.sleep(3600)
            host.wires["laptop"].release("down")
            await trio.sleep(1)
            assert differences(laptop, host) == []


# ---- 10: what is unknown survives ----------------------------------------------------------------

STRANGE: dict[str, Any] = {
    "text": "hi",
    "origin": {"kind": "user", "xDevice": "watch"},
    "xFuture": {"deep": [1, None, {"a": 1.5}]},
    "attachments": [{"type": "hologram", "label": "h", "xDepth": 3}],
    "_meta": {"any": "thing"},
}


async def test_10_unknown_keys_and_variants_are_kept_and_sent_on() -> None:
    agent = PuppetAgent()
    async with running_host(agent, provoked=["."]) as host:
        ann, bob = await room(host), await room(host, "bob")
        action = {**started("t1"), "message": STRANGE, "xKey": [1]}
        await ann.dispatch(C, action)
        assert (await bob.expect_action("chat/turnStarted"))["action"] == action
        await ann.dispatch(C, {"type": "chat/draftChanged", "draft": STRANGE})
        await bob.expect_action("chat/draftChanged")
        (await at_work(agent, "t1")).end(Done())
        await ending(bob, "t1")
        eve = await room(host, "eve", subscribe=())
        state = (await eve.subscribe(C))["state"]
        assert state["turns"][0]["message"] == STRANGE
        assert state["draft"] == STRANGE
        client = {"clientId": "ann", "tools": [], "xTheme": "dark"}
        await ann.dispatch(S, {"type": "session/activeClientSet", "activeClient": client})
        await bob.expect_action("session/activeClientSet")
        assert (await eve.subscribe(S))["state"]["activeClients"] == [client]
