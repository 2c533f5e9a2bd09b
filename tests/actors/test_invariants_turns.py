"""Invariants 7 to 10 of the design: turns end once, and what states and replicas hold."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
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
from ahpd.protocol.uris import ROOT
from supervisors import sys
from tests.actors.support import (
    C2,
    C,
    S,
    at_work,
    cancelled,
    ending,
    pending,
    room,
    started,
    turn,
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
