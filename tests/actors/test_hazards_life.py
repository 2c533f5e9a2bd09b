"""The protocol hazards in the lives of connections, sessions and turns, each by its number."""

from __future__ import annotations

import trio

from ahpd.agents.events import Done, TextChunk, ToolAsks, ToolStarted
from ahpd.protocol.uris import ROOT
from tests.actors.support import (
    C2,
    S2,
    C,
    S,
    actions,
    answer,
    at_work,
    cancelled,
    ending,
    room,
    settled,
    started,
    turn,
)
from tests.harness import PuppetAgent, running_host
from tests.harness.replicas import state_of

# ---- B02, B65: one connection -------------------------------------------------------------------


async def test_b02_a_session_that_is_slow_to_start_delays_nothing() -> None:
    agent = PuppetAgent()
    agent.opens_in = 30.0
    async with running_host(agent) as host:
        ann = await room(host)
        begun = trio.current_time()
        await ann.dispatch(C, started("t1"))
        await ann.expect_action("chat/turnStarted")
        await ann.request("ping")
        await ann.request("listSessions")
        assert trio.current_time() == begun
        await at_work(agent, "t1")
        assert trio.current_time() >= 30.0


async def test_b02_a_session_that_is_slow_to_end_delays_nothing() -> None:
    async with running_host() as host:
        ann = await room(host)
        await ann.request("createSession", channel=S2)
        puppet = host.tables.agents["puppet"].of[C]  # type: ignore[attr-defined]

        async def close() -> None:
            puppet.closed = True
            await trio.sleep(3)

        puppet.close = close
        id = await ann.call("disposeSession", channel=S)
        begun = trio.current_time()
        seq = await ann.dispatch(S2, {"type": "session/titleChanged", "title": "Two"})
        await ann.subscribe(S2)
        assert state_of(host, S2)["title"] == "Two", seq
        assert trio.current_time() == begun
        await ann.answer_to(id)  # the session is gone; what it ran may take its time to go
        assert trio.current_time() == begun
        assert host.system.registry.under("session/" + S.partition(":/")[2])
        await trio.sleep(4)
        assert not host.system.registry.under("session/" + S.partition(":/")[2])


async def test_b65_the_end_of_an_old_connection_takes_nothing_from_the_new_one() -> None:
    """The same client on a second socket; the first, half open, goes later (quirk 10)."""
    async with running_host() as host:
        old = await room(host)
        client = {"clientId": "ann", "tools": [], "customizations": []}
        await old.dispatch(S, {"type": "session/activeClientSet", "activeClient": client})
        await old.expect_action("session/activeClientSet")
        seen = host.ledger.seq
        old_transport = old._transport
        new = await host.peer("ann")
        result = await new.request(
            "reconnect", clientId="ann", lastSeenServerSeq=seen, subscriptions=[ROOT, S, C]
        )
        assert result == {"type": "replay", "actions": [], "missing": []}
        await old_transport.close()
        await trio.sleep(120)
        assert [each["clientId"] for each in state_of(host, S)["activeClients"]] == ["ann"]
        await new.dispatch(C, started("t1"))
        await new.expect_action("chat/turnStarted")


# ---- B17, B28, B41 ------------------------------------------------------------------------------


async def test_b17_nothing_of_a_cancelled_turn_gets_into_the_next() -> None:
    agent = PuppetAgent()
    async with running_host(agent) as host:
        ann = await room(host)
        await ann.dispatch(C, started("t1"))
        puppet = await at_work(agent, "t1")
        puppet.deaf = True
        puppet.say(TextChunk("of t1 "))
        await ann.dispatch(C, cancelled("t1"))
        again = await ann.dispatch(C, cancelled("t1"))
        assert "rejectionReason" in (await answer(ann, again))
        await trio.sleep(0.1)
        await ann.dispatch(C, started("t2"))
        for _ in range(5):
            await trio.sleep(0.4)
            puppet.say(TextChunk("late"), ToolStarted("late", "late", "Late"))
        assert puppet.cancels == 1
        assert [prompt.turn_id for prompt in puppet.prompts] == ["t1"]
        puppet.hear()
        (await at_work(agent, "t2")).say(TextChunk("of t2"))
        agent.of[C].end(Done())
        await ending(ann, "t2")
        one, two = state_of(host, C)["turns"]
        assert [part["content"] for part in one["responseParts"]] == ["of t1 "]
        assert [part["content"] for part in two["responseParts"]] == ["of t2"]
        assert puppet is agent.of[C]


async def test_b17_an_agent_that_never_obeys_is_ended_and_the_next_turn_gets_a_fresh_one() -> None:
    agent = PuppetAgent()
    async with running_host(agent) as host:
        ann = await room(host)
        await ann.dispatch(C, started("t1"))
        puppet = await at_work(agent, "t1")
        puppet.deaf = True
        await ann.dispatch(C, cancelled("t1"))
        await ann.dispatch(C, started("t2"))
        fresh = await at_work(agent, "t2")
        assert fresh is not puppet
        assert puppet.closed
        assert puppet.cancels == 1
        fresh.end(Done())
        await ending(ann, "t2")


async def test_b28_a_question_during_the_abort_is_not_shown() -> None:
    agent = PuppetAgent()
    async with running_host(agent) as host:
        ann = await room(host)
        await ann.dispatch(C, started("t1"))
        puppet = await at_work(agent, "t1")
        puppet.deaf = True
        puppet.say(ToolStarted("c1", "run", "Run"), ToolAsks("c1", "Run it"))
        await ann.expect_action("session/inputNeededSet")
        await ann.dispatch(C, cancelled("t1"))
        await ann.expect_action("session/inputNeededRemoved")
        puppet.say(ToolStarted("c2", "run", "Run"), ToolAsks("c2", "Run it"))
        await trio.sleep(30)
        assert "inputNeeded" not in state_of(host, S)
        assert puppet.closed
        assert (await turn(ann, agent, "t2", Done()))["type"] == "chat/turnComplete"


async def test_b41_late_events_do_not_revive_a_session_that_ended() -> None:
    agent = PuppetAgent()
    async with running_host(agent) as host:
        ann, bob = await room(host), await room(host, "bob", subscribe=(ROOT,))
        await ann.dispatch(C, started("t1"))
        puppet = await at_work(agent, "t1")
        puppet.deaf = True
        id = await ann.call("disposeSession", channel=S)
        for _ in range(4):
            puppet.say(TextChunk("late"))
            await trio.sleep(0.25)
        await bob.expect("root/sessionRemoved", session=S)
        await ann.answer_to(id)
        bob.inbox.clear()
        ann.inbox.clear()
        await bob.request("createSession", channel=S)
        for _ in range(4):
            puppet.say(TextChunk("late"))
            await trio.sleep(0.25)
        assert actions(ann, S) == actions(ann, C) == []
        assert next(m["method"] for m in bob.inbox if "method" in m) == "root/sessionAdded"
        assert state_of(host, C)["turns"] == []
        assert "activeTurn" not in state_of(host, C)
        assert state_of(host, S)["lifecycle"] == "ready"


# ---- B26: who takes part ------------------------------------------------------------------------


async def test_b26_leaving_a_chat_is_not_leaving_the_session() -> None:
    async with running_host() as host:
        ann = await room(host)
        await ann.request("createChat", channel=S, chat=C2)
        await ann.subscribe(C2)
        await ann.subscribe(C)
        tools = [{"name": "look", "inputSchema": {"type": "object"}}]
        client = {"clientId": "ann", "tools": tools}
        await ann.dispatch(S, {"type": "session/activeClientSet", "activeClient": client})
        bob = await room(host, "bob", subscribe=(ROOT, S))
        for channel in (C2, C, C, "ahp-chat:/never"):
            await ann.notify("unsubscribe", channel=channel)
        await ann.request("ping")
        await trio.sleep(60)
        assert len(state_of(host, S)["activeClients"]) == 1
        await ann.notify("unsubscribe", channel=S)
        await bob.expect_action("session/activeClientRemoved", channel=S)
        await ann.notify("unsubscribe", channel=S)
        await trio.sleep(60)
        assert state_of(host, S)["activeClients"] == []
        assert "session/activeClientRemoved" not in [a["type"] for a in actions(bob, S)]


async def test_b26_a_second_window_keeps_the_client_in_the_session() -> None:
    """R-8.48: it stays active until the last of its windows leaves."""
    async with running_host() as host:
        one = await room(host)
        client = {"clientId": "ann", "tools": []}
        await one.dispatch(S, {"type": "session/activeClientSet", "activeClient": client})
        two = await room(host, "ann", subscribe=(S,))
        await one.notify("unsubscribe", channel=S)
        await trio.sleep(60)
        assert len(state_of(host, S)["activeClients"]) == 1
        await two.notify("unsubscribe", channel=S)
        await settled()
        assert state_of(host, S)["activeClients"] == []
