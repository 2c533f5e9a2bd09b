"""What is ended, and what else goes with it: agents' copies, and sessions nobody ever used."""

from __future__ import annotations

from typing import Any

import pytest
import trio

from actors.endings import close_channel
from actors.host import Settings
from ahpd.agents.events import Done
from ahpd.protocol.model import JSON
from ahpd.protocol.uris import ROOT, URI, annotations_of
from supervisors import sys
from tests.actors.support import (
    C2,
    C,
    S,
    at_work,
    channel_of,
    message,
    pending,
    refused,
    room,
    settled,
    started,
    turn,
    withdrawn,
)
from tests.harness import PuppetAgent, RawPeer, RunningHost, running_host

# ---- what an agent keeps ------------------------------------------------------------------------


async def test_with_a_session_its_agents_copies_of_all_chats_go() -> None:
    agent = PuppetAgent()
    async with running_host(agent) as host:
        ann = await room(host)
        await ann.request("createChat", channel=S, chat=C2)
        await turn(ann, agent, "t1", Done())
        opened = agent.of[C].request
        await ann.request("disposeSession", channel=S)
        await settled()
        assert [request.chat for request in agent.forgotten] == [C, C2]
        assert agent.forgotten[0] == opened
        assert all(puppet.closed for puppet in agent.made)


async def test_with_a_chat_its_agents_copy_goes_and_the_others_stay() -> None:
    agent = PuppetAgent()
    async with running_host(agent) as host:
        ann = await room(host)
        await ann.request("createChat", channel=S, chat=C2)
        await ann.request("disposeChat", channel=C2)
        await settled()
        assert [request.chat for request in agent.forgotten] == [C2]
        await turn(ann, agent, "t1", Done())


async def test_a_chat_that_has_moved_away_is_not_deleted_with_the_session_it_left() -> None:
    agent = PuppetAgent()
    async with running_host(agent) as host:
        ann = await room(host)
        await ann.request("createChat", channel=S, chat=C2)
        await settled()
        await ann.request("moveChat", channel=C2, destination={"kind": "newSession"})
        await ann.request("disposeSession", channel=S)
        await settled()
        assert [request.chat for request in agent.forgotten] == [C]


async def test_an_agent_that_does_not_manage_it_holds_nobody_up() -> None:
    agent = PuppetAgent()
    async with running_host(agent) as host:
        ann = await room(host)
        agent.broken = "the disk is full"
        await ann.request("disposeSession", channel=S)
        await settled()
        agent.broken = None
        await ann.request("createSession", channel=S)
        agent.opens_in = 10_000
        await ann.request("disposeSession", channel=S)
        await trio.sleep(60)
        agent.opens_in = 0
        await ann.request("createSession", channel=S)
        await settled()
        assert agent.forgotten == []


async def test_what_was_made_again_under_the_same_name_is_left_alone() -> None:
    agent = PuppetAgent()
    async with running_host(agent) as host:
        ann = await room(host)
        await ann.subscribe(C)
        await ann.dispatch(C, started("t1"))
        await at_work(agent, "t1")
        await ann.call("disposeSession", channel=S)
        await ann.request("createSession", channel=S)
        await settled()
        assert agent.forgotten == []


# ---- sessions that nobody used ------------------------------------------------------------------

HOUR = 3600.0


async def with_draft(host: RunningHost, *subscribe: URI) -> RawPeer:
    ann = await host.peer("ann")
    await ann.hello(subscribe=(ROOT,))
    await ann.request("createSession", channel=S)
    await settled()
    for channel in subscribe:
        await ann.subscribe(channel)
    return ann


async def test_by_default_nothing_is_collected() -> None:
    async with running_host() as host:
        ann = await with_draft(host)
        await ann.close()
        await trio.sleep(100 * HOUR)
        assert host.ledger.find(S) is not None


async def test_a_session_that_was_never_used_is_ended_when_its_time_is_up() -> None:
    agent = PuppetAgent()
    async with running_host(agent, settings=Settings(drafts_after=HOUR)) as host:
        ann = await with_draft(host)
        await trio.sleep(HOUR * 0.9)
        assert host.ledger.find(S) is not None
        await trio.sleep(HOUR)
        removed = await ann.expect("root/sessionRemoved")
        assert removed["session"] == S
        with refused(-32001):
            await ann.subscribe(S)
        assert [request.chat for request in agent.forgotten] == [C]


USES: dict[str, tuple[URI, list[JSON]]] = {
    "a turn": (C, [started("t1")]),
    "a message that waited": (C, [pending("m1", "steering"), withdrawn("m1", "steering")]),
    "a draft": (C, [{"type": "chat/draftChanged", "draft": message("not yet")}]),
    "a name": (S, [{"type": "session/titleChanged", "title": "Mine"}]),
    "a name sent to the chat": (C, [{"type": "session/titleChanged", "title": "Mine"}]),
    "somebody who takes part": (
        S,
        [{"type": "session/activeClientSet", "activeClient": {"clientId": "ann", "tools": []}}],
    ),
    "annotations": (
        annotations_of(S),
        [
            {
                "type": "annotations/set",
                "annotation": {
                    "id": "a",
                    "origin": {"session": S},
                    "resource": "file:///a",
                    "resolved": False,
                    "entries": [{"id": "e", "text": "?"}],
                },
            }
        ],
    ),
}


@pytest.mark.parametrize("use", USES)
async def test_whatever_somebody_did_keeps_a_session(use: str) -> None:
    channel, done = USES[use]
    async with running_host(settings=Settings(drafts_after=HOUR)) as host:
        ann = await with_draft(host)
        for action in done:
            await ann.dispatch(channel, action)
        await settled()
        await trio.sleep(10 * HOUR)
        assert host.ledger.find(S) is not None


@pytest.mark.parametrize("channel", [S, C, annotations_of(S)])
async def test_whoever_listens_keeps_a_session_and_its_time_begins_when_they_leave(
    channel: URI,
) -> None:
    async with running_host(settings=Settings(drafts_after=HOUR)) as host:
        ann = await with_draft(host, channel)
        await trio.sleep(10 * HOUR)
        assert host.ledger.find(S) is not None
        await ann.notify("unsubscribe", channel=channel)
        await trio.sleep(HOUR * 0.9)
        assert host.ledger.find(S) is not None
        await trio.sleep(HOUR)
        assert host.ledger.find(S) is None


async def test_a_first_message_that_is_under_way_keeps_a_session() -> None:
    """Its creator is gone and the chat has not looked at it yet, when the time is up."""
    agent = PuppetAgent()
    async with running_host(agent, settings=Settings(drafts_after=HOUR)) as host:
        ann = await with_draft(host)
        channel = host.ledger.find(C)
        assert channel is not None
        chat = host.system.ref(channel.path)
        sys.suspend(chat)
        await ann.dispatch(C, started("t1"))
        await settled()
        await ann.close()
        await trio.sleep(10 * HOUR)
        assert host.ledger.find(S) is not None
        sys.resume(chat)
        assert (await at_work(agent, "t1")).request.chat == C


@pytest.mark.parametrize("fault", ["broken", "slow"])
async def test_a_session_that_did_not_come_up_is_not_taken_for_an_unused_one(fault: str) -> None:
    agent = PuppetAgent()
    agent.broken, agent.opens_in = ("no", 0.0) if fault == "broken" else (None, 1e9)
    async with running_host(agent, settings=Settings(drafts_after=HOUR)) as host:
        await with_draft(host)
        await trio.sleep(10 * HOUR)
        assert host.ledger.find(S) is not None
        if fault == "slow":
            agent.opens_in = 0.0


async def test_one_with_several_chats_is_kept_and_so_is_one_that_is_restarted() -> None:
    settings: Any = Settings(drafts_after=HOUR)
    async with running_host(settings=settings) as host:
        ann = await with_draft(host)
        await ann.request("createChat", channel=S, chat=C2)
        await trio.sleep(10 * HOUR)
        assert host.ledger.find(S) is not None
        await ann.request("disposeChat", channel=C2)
        for _ in range(5):
            await trio.sleep(HOUR * 0.9)
            sys.kill(host.system.ref("drafts"))
        assert host.ledger.find(S) is not None
        await trio.sleep(2 * HOUR)
        assert host.ledger.find(S) is None


# ---- actors that start again just then ----------------------------------------------------------


@pytest.mark.parametrize("again", [False, True], ids=["gone", "made again"])
@pytest.mark.parametrize("child", ["session", "annotations", "chat-0"])
async def test_an_actor_that_starts_again_when_its_session_has_ended_touches_no_other(
    child: str, again: bool
) -> None:
    """Whoever was to stop it is late. It must not take another session's channel for its own."""
    agent = PuppetAgent()
    async with running_host(agent) as host:
        ann = await room(host, subscribe=(ROOT,))
        base = channel_of(host, S).path.rpartition("/")[0]
        for channel in [*host.ledger.channels_of(S), channel_of(host, S)]:
            close_channel(host.tables, channel)
        assert host.tables.catalogue is not None
        del host.tables.catalogue[S]
        if again:
            await ann.request("createSession", channel=S)
            await settled()
        there = host.ledger.channels_of(S)
        seq, made = host.ledger.seq, len(agent.made)
        await host.system.supervisor(base).restart_child(child)
        await settled()
        assert (host.ledger.seq, len(agent.made)) == (seq, made)
        assert host.ledger.channels_of(S) == there
        sys.kill(host.system.ref("catalogue"))  # starts again, and stops what is left over
        await trio.sleep(60)
        assert not host.system.registry.under(f"{base}/")
        if again:
            await ann.request("fetchTurns", channel=C)


async def test_what_was_asked_of_a_session_before_it_ended_is_refused_after_it() -> None:
    async with running_host() as host:
        ann, bob = await room(host), await room(host, "bob")
        session = host.system.ref(channel_of(host, S).path)
        sys.suspend(session)
        asked = [
            (ann, await ann.call("createChat", channel=S, chat=C2)),
            (bob, await bob.call("disposeChat", channel=C)),
        ]
        await settled()
        for channel in [*host.ledger.channels_of(S), channel_of(host, S)]:
            close_channel(host.tables, channel)
        sys.resume(session)
        for peer, id in asked:
            with refused(-32001):
                await peer.answer_to(id)
