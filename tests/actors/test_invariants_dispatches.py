"""Invariants 5 and 6 of the design: every dispatch is answered, and a resend is no second wish."""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import Any

import pytest
import trio

from ahpd.agents.events import (
    Done,
    Failed,
    TextChunk,
    ToolAsks,
    ToolStarted,
)
from ahpd.protocol.uris import ROOT
from tests.actors.support import (
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
    withdrawn,
)
from tests.harness import (
    PuppetAgent,
    RawPeer,
    RunningHost,
    SlowJournal,
    running_host,
)
from tests.harness.replicas import state_of

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
