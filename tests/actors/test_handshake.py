"""Coming in and coming back: `initialize`, and `reconnect` by replay or by snapshots (B22)."""

from __future__ import annotations

from typing import Any

import pytest
import trio

from ahpd.agents.events import Done, TextChunk
from ahpd.protocol.uris import ROOT
from tests.actors.support import (
    C2,
    S2,
    C,
    S,
    at_work,
    cancelled,
    ending,
    refused,
    room,
    settled,
    started,
)
from tests.harness import PuppetAgent, RawPeer, RunningHost, SlowJournal, running_host
from tests.harness.replicas import state_of


async def back(
    host: RunningHost, name: str, seen: float, subscriptions: list[str]
) -> tuple[RawPeer, Any]:
    """The client comes back; its new connection and the answer."""
    peer = await host.peer(name)
    result = await peer.request(
        "reconnect", clientId=name, lastSeenServerSeq=seen, subscriptions=subscriptions
    )
    return peer, result


async def test_r_4_1_what_initialize_answers() -> None:
    """A channel that does not exist is left out (R-4.6); one named twice is given once."""
    async with running_host() as host:
        await room(host)
        bob = await host.peer("bob")
        result = await bob.hello(subscribe=(ROOT, S, "ahp-chat:/never", S, "ahp-root:", C))
        assert [each["resource"] for each in result["snapshots"]] == [ROOT, S, C]
        assert result["serverSeq"] == host.ledger.seq
        assert {each["fromSeq"] for each in result["snapshots"]} == {result["serverSeq"]}
        assert result["protocolVersion"] == "1.0.0"
        assert not result.keys() & {"automations", "telemetry", "terminalCommandPrefix"}
        nobody = await host.peer("nobody")
        assert (await nobody.hello(subscribe=()))["snapshots"] == []


@pytest.mark.parametrize("client_id", ["", "x" * 513])
async def test_a_client_id_is_neither_empty_nor_endless(client_id: str) -> None:
    async with running_host() as host:
        peer = await host.peer("peer")
        with refused(-32602, "clientId"):
            await peer.request("initialize", clientId=client_id, protocolVersions=["1.0.0"])


async def test_b22_a_replay_is_complete_in_order_and_of_the_listed_channels_alone() -> None:
    """While the chat streams; nothing live comes before the answer, no gap and no double after."""
    agent = PuppetAgent()
    async with running_host(agent, journal=SlowJournal(22, 0.02)) as host:
        bob = await room(host, "bob")
        await bob.request("createChat", channel=S, chat=C2)
        await bob.request("createSession", channel=S2)
        ann = await room(host, subscribe=(ROOT, S, C, S2))
        await bob.dispatch(C, started("t1"))
        puppet = await at_work(agent, "t1")
        await trio.sleep(1)
        seen = host.ledger.seq
        ann.wire.hold("down")
        own = await ann.dispatch(C, {"type": "chat/isReadChanged", "isRead": True})
        puppet.say(TextChunk("a"), TextChunk("b"), TextChunk("c"))
        refusal = await bob.dispatch(C, cancelled("t9"))
        await bob.dispatch(C2, {"type": "chat/isReadChanged", "isRead": False})
        await bob.dispatch(C2, {"type": "chat/isReadChanged", "isRead": True})
        await bob.request("disposeSession", channel=S2)
        await trio.sleep(1)
        ann.cut()
        ann.wire.release()
        streaming = True

        async def stream() -> None:
            while streaming:
                puppet.say(TextChunk("."))
                await trio.sleep(0.003)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(stream)
            await trio.sleep(0.05)
            again, result = await back(
                host, "ann", seen, [ROOT, S, C, S2, C, "ahp-root:", "ahp-session:/gone"]
            )
            await trio.sleep(0.5)
            streaming = False
        await trio.sleep(1)
        assert result["type"] == "replay"
        assert sorted(result["missing"]) == sorted([S2, "ahp-session:/gone"])
        replayed = result["actions"]
        assert {each["channel"] for each in replayed} == {ROOT, S, C}
        origins = [each["origin"] for each in replayed if "origin" in each]
        assert {"clientId": "ann", "clientSeq": own} in origins
        assert {"clientId": "bob", "clientSeq": refusal} not in origins
        first = again.frames[1][1]
        assert first["result"] == result  # nothing came before it
        live = [it["params"] for it in again.inbox if it.get("method") == "action"]
        heard = [each["serverSeq"] for each in replayed + live]
        wanted = [
            entry.seq
            for entry in host.stream.said()
            if entry.seq > seen and entry.channel.uri in (ROOT, S, C)
        ]
        assert heard == wanted


async def test_b22_what_is_not_listed_any_more_is_not_heard_any_more() -> None:
    async with running_host() as host:
        ann, bob = await room(host), await room(host, "bob")
        ann.cut()
        again, result = await back(host, "ann", host.ledger.seq, [])
        assert result == {"type": "replay", "actions": [], "missing": []}
        await bob.dispatch(S, {"type": "session/titleChanged", "title": "x"})
        await settled()
        assert again.inbox == []


async def test_b22_a_channel_without_a_baseline_turns_the_whole_answer_into_snapshots() -> None:
    """R-6.15: the number proves what was seen, not that there was a state to apply it to."""
    async with running_host() as host:
        ann = await room(host, subscribe=(ROOT, S))
        await ann.request("listSessions")
        ann.cut()
        again, result = await back(host, "ann", host.ledger.seq, [ROOT, S, C, "ahp-chat:/no"])
        assert result["type"] == "snapshot"
        assert [each["resource"] for each in result["snapshots"]] == [ROOT, S, C]
        await again.dispatch(C, {"type": "chat/isReadChanged", "isRead": True})
        await again.expect_action("chat/isReadChanged", channel=C)


LOST = ["initialize", "reconnect", "unsubscribe"]


@pytest.mark.parametrize("how", LOST)
async def test_b22_what_a_client_once_held_is_no_baseline_after_it_let_go(how: str) -> None:
    """It initialised again, or came back without the channel, or unsubscribed: then a gap."""
    async with running_host() as host:
        ann, bob = await room(host), await room(host, "bob")
        await ann.request("listSessions")
        if how == "unsubscribe":
            await ann.notify("unsubscribe", channel=C)
            await ann.request("listSessions")
        elif how == "initialize":
            ann.cut()
            ann = await host.peer("ann")
            await ann.hello(subscribe=(ROOT,))
        else:
            ann.cut()
            ann, _ = await back(host, "ann", host.ledger.seq, [ROOT])
        await bob.dispatch(C, {"type": "chat/isReadChanged", "isRead": True})
        await bob.expect_action("chat/isReadChanged")
        ann.cut()
        _, result = await back(host, "ann", host.ledger.seq, [ROOT, C])
        assert result["type"] == "snapshot"
        chat = next(each for each in result["snapshots"] if each["resource"] == C)
        assert chat["state"] == state_of(host, C)


async def test_a_subscribe_and_its_end_in_one_go_leave_no_subscription() -> None:
    """And the other way round leaves one: their order is the client's."""
    async with running_host(journal=SlowJournal(5, 0.05)) as host:
        ann, bob = await room(host), await room(host, "bob", subscribe=())
        for last in ("unsubscribe", "subscribe"):
            id = await bob.call("subscribe", channel=C)
            await bob.notify("unsubscribe", channel=C)
            if last == "subscribe":
                id = await bob.call("subscribe", channel=C)
            await bob.answer_to(id)
            await trio.sleep(1)
            bob.inbox.clear()
            read = last == "unsubscribe"
            await ann.dispatch(C, {"type": "chat/isReadChanged", "isRead": read})
            await ann.expect_action("chat/isReadChanged")
            await trio.sleep(1)
            assert len(bob.inbox) == (last == "subscribe")


async def test_quirk_4_an_unknown_client_is_refused_so_that_it_initialises() -> None:
    async with running_host() as host:
        peer = await host.peer("never-seen")
        with refused(-32008, "never-seen"):
            await peer.request(
                "reconnect", clientId="never-seen", lastSeenServerSeq=0, subscriptions=[ROOT]
            )
        await peer.hello()
        assert (await peer.request("listSessions"))["items"] == []


async def test_quirk_5_a_number_above_the_present_one_is_answered_with_snapshots() -> None:
    async with running_host() as host:
        ann = await room(host)
        ann.cut()
        _, result = await back(host, "ann", host.ledger.seq + 1000, [ROOT, C, "ahp-chat:/no"])
        assert result["type"] == "snapshot"
        assert [each["resource"] for each in result["snapshots"]] == [ROOT, C]
        assert "missing" not in result


@pytest.mark.parametrize("behind", [2, 3, 4])
async def test_r_6_14_a_replay_reaches_back_as_far_as_the_window_does(behind: int) -> None:
    async with running_host(replay=3) as host:
        ann, bob = await room(host), await room(host, "bob")
        await ann.request("listSessions")
        ann.cut()
        seen = host.ledger.seq
        for number in range(behind):
            await bob.dispatch(C, {"type": "chat/isReadChanged", "isRead": number % 2 == 0})
        await bob.request("listSessions")
        while host.ledger.seq < seen + behind:
            await trio.sleep(0.01)
        gone = host.ledger.seq - seen > 3
        _, result = await back(host, "ann", seen, [C])
        assert result["type"] == ("snapshot" if gone else "replay")


async def test_quirk_10_subscriptions_belong_to_a_socket_not_to_its_client() -> None:
    async with running_host() as host:
        one = await room(host)
        two = await room(host, "ann", subscribe=(S,))
        bob = await room(host, "bob")
        one.inbox.clear()
        two.inbox.clear()
        await bob.dispatch(C, {"type": "chat/isReadChanged", "isRead": True})
        await bob.dispatch(S, {"type": "session/titleChanged", "title": "x"})
        await one.expect_action("session/titleChanged", channel=S)
        await two.expect_action("session/titleChanged", channel=S)
        await one.expect_action("chat/isReadChanged", channel=C)
        assert not any(it["params"].get("channel") == C for it in two.inbox)
        refusal = await two.dispatch(S, {"type": "session/titleChanged", "title": " "})
        assert "blank" in (await two.answered(refusal))["params"]["rejectionReason"]
        await settled()
        assert not any("rejectionReason" in it.get("params", {}) for it in one.inbox)


async def test_quirk_7_what_is_sent_again_after_a_replay_is_judged_by_what_it_is() -> None:
    agent = PuppetAgent()
    async with running_host(agent) as host:
        ann = await room(host)
        seen = host.ledger.seq
        ann.wire.hold("down")
        seq = await ann.dispatch(C, started("t1"))
        await at_work(agent, "t1")
        ann.cut()
        ann.wire.release()
        again, result = await back(host, "ann", seen, [ROOT, S, C])
        echoes = [e for e in result["actions"] if e.get("origin", {}).get("clientSeq") == seq]
        assert [echo["action"]["type"] for echo in echoes] == ["chat/turnStarted"]
        await again.dispatch(C, started("t1"), client_seq=seq)
        assert "already" in (await again.answered(seq))["params"]["rejectionReason"]
        agent.of[C].end(Done())
        await ending(again, "t1")
