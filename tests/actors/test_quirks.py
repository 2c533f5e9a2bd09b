"""What existing clients force on a host, by number; those that other files test are named there."""

from __future__ import annotations

from typing import Any

import pytest
import trio

from ahpd.agents.events import ActivityChanged, Done, Failed, TextChunk
from ahpd.protocol.uris import ROOT, default_chat
from tests.actors.support import C2, C, S, at_work, ending, refused, room, settled, started, turn
from tests.harness import PuppetAgent, SlowJournal, running_host
from tests.harness.replicas import state_of

NULL = [
    ("createSession", {"channel": "puppet:/new"}),
    ("createChat", {"channel": S, "chat": C2}),
    ("createChat", {"channel": S, "chat": C}),
    ("disposeChat", {"channel": C}),
    ("disposeSession", {"channel": S}),
    ("ping", {}),
]


async def test_quirk_24_what_makes_or_ends_something_answers_null() -> None:
    async with running_host() as host:
        ann = await room(host)
        for method, params in NULL:
            id = await ann.call(method, **params)
            message = await ann.wait(lambda it, id=id: it.get("id") == id)  # type: ignore[misc]
            assert message == {"jsonrpc": "2.0", "id": id, "result": None}


async def test_quirk_3_reconnect_may_be_the_first_frame_and_name_no_channel() -> None:
    async with running_host(provoked=["c2h"]) as host:
        ann = await room(host)
        ann.cut()
        again = await host.peer("ann")
        params = {"clientId": "ann", "lastSeenServerSeq": host.ledger.seq, "subscriptions": [C]}
        await again.send({"jsonrpc": "2.0", "id": 1, "method": "reconnect", "params": params})
        assert (await again.answer_to(1))["type"] == "replay"


async def test_quirk_6_missing_is_an_array_and_repeats_cost_nothing() -> None:
    async with running_host() as host:
        ann = await room(host)
        ann.cut()
        again = await host.peer("ann")
        result = await again.request(
            "reconnect",
            clientId="ann",
            lastSeenServerSeq=host.ledger.seq,
            subscriptions=[C, "ahp-chat:/gone"] * 500,
        )
        assert result == {"type": "replay", "actions": [], "missing": ["ahp-chat:/gone"]}


async def test_quirk_8_initialize_always_has_snapshots_and_the_root_spelled_right() -> None:
    async with running_host() as host:
        ann = await host.peer("ann")
        result = await ann.hello(subscribe=("ahp-root:",))
        assert result["snapshots"][0]["resource"] == ROOT
        assert isinstance(result["serverSeq"], int)


async def test_quirk_9_a_ping_is_answered_at_once_whatever_else_goes_on() -> None:
    """Also while nothing can be made durable, and behind a thousand other messages."""
    async with running_host(journal=SlowJournal(1, 5.0)) as host:
        ann = await host.peer("ann")
        await ann.request("ping")
        await ann.hello()
        begun = trio.current_time()
        for number in range(1000):
            await ann.dispatch(ROOT, {"type": "root/configChanged", "config": {f"k{number}": 1}})
        for _ in range(20):
            assert await ann.request("ping") is None
        assert trio.current_time() == begun


async def test_quirks_14_and_15_a_session_and_its_chat_have_one_name_everywhere() -> None:
    async with running_host() as host:
        ann = await room(host)
        added = (await ann.request("listSessions"))["items"][0]
        state = state_of(host, S)
        assert added["resource"] == S
        names = {
            state["defaultChat"],
            state["chats"][0]["resource"],
            state_of(host, C)["resource"],
            added["defaultChat"],
            added["chats"][0]["resource"],
        }
        assert names == {default_chat(S)}
        assert "=" not in default_chat(S)
        provider = state_of(host, ROOT)["agents"][0]["provider"]
        assert S.startswith(f"{provider}:/")


async def test_quirk_25_the_client_of_a_new_session_is_the_connections_own() -> None:
    tools = [{"name": "look", "inputSchema": {"type": "object"}}]
    async with running_host() as host:
        ann = await host.peer("ann")
        await ann.hello()
        client = {"clientId": "bob", "tools": tools}
        with refused(-32602, "bob"):
            await ann.request("createSession", channel=S, activeClient=client)
        client["clientId"] = "ann"
        await ann.request("createSession", channel=S, activeClient=client)
        assert state_of(host, S)["activeClients"] == [client]


async def test_quirk_27_cleared_activity_is_said_and_the_fixed_fields_never_are() -> None:
    """As an empty text: the strict schema allows no null there, and a missing key is no change."""
    agent = PuppetAgent()
    async with running_host(agent) as host:
        ann = await room(host)
        await ann.dispatch(C, started("t1"))
        (await at_work(agent, "t1")).say(ActivityChanged("Reading"))
        await settled()
        agent.of[C].end(Done())
        await ending(ann, "t1")
        await settled()
        changes: list[Any] = [
            it["params"]["changes"]
            for it in ann.inbox
            if it.get("method") == "root/sessionSummaryChanged"
        ]
        assert [each["activity"] for each in changes if "activity" in each] == ["Reading", ""]
        assert not any(each.keys() & {"resource", "provider", "createdAt"} for each in changes)


async def test_quirk_33_chat_subscriptions_may_be_dropped_and_retaken_in_bursts() -> None:
    agent = PuppetAgent()
    async with running_host(agent) as host:
        ann = await room(host)
        await ann.dispatch(C, started("t1"))
        puppet = await at_work(agent, "t1")
        for number in range(30):
            await ann.notify("unsubscribe", channel=C)
            puppet.say(TextChunk(f"{number} "))
            state = (await ann.subscribe(C))["state"]
            parts = state["activeTurn"]["responseParts"]
            assert len("".join(part["content"] for part in parts).split()) >= number
        assert agent.made == [puppet]


@pytest.mark.parametrize("outcome", [Done(), Failed("It broke", "Overloaded", resumable=True)])
async def test_quirks_34_to_37_a_turn_as_clients_need_it(outcome: Any) -> None:
    agent = PuppetAgent()
    async with running_host(agent) as host:
        ann = await room(host)
        seq = await ann.dispatch(C, started("t1"))
        echo = (await ann.answered(seq))["params"]
        assert echo["origin"] == {"clientId": "ann", "clientSeq": seq}
        (await at_work(agent, "t1")).say(TextChunk("a"))
        await ann.expect_action("chat/responsePart")
        running = state_of(host, C)
        assert running["activeTurn"]["id"] == "t1"
        assert running["turns"] == []
        agent.of[C].end(outcome)
        ended = await ending(ann, "t1")
        assert isinstance(ended["duration"], (int, float))
        [kept] = state_of(host, C)["turns"]
        assert kept["message"]["origin"] == {"kind": "user"}
        assert kept["startedAt"]
        if isinstance(outcome, Failed):
            assert ended["part"]["kind"] == "error"
            assert ended["part"]["error"] == {"errorType": "Overloaded", "message": "It broke"}
            assert kept["responseParts"][-1] == ended["part"]


async def test_quirk_44_a_refusal_is_its_senders_and_what_the_host_says_has_no_origin() -> None:
    agent = PuppetAgent()
    async with running_host(agent) as host:
        ann, bob = await room(host), await room(host, "bob")
        await turn(ann, agent, "t1", Done())
        refusal = (await ann.answered(await ann.dispatch(C, started("t1"))))["params"]
        assert refusal["action"] == started("t1")
        await settled()
        envelopes = [it["params"] for it in bob.inbox if it.get("method") == "action"]
        assert not any("rejectionReason" in each for each in envelopes)
        for each in envelopes:
            by_client = each["action"]["type"] == "chat/turnStarted"
            assert ("origin" in each) == by_client
