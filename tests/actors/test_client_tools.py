"""Tools of clients: offered to the model, run by their client, failed without it (RULES 10)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
import trio

from actors.host import Settings
from ahpd.agents.events import (
    ClientToolCalled,
    Done,
    TextChunk,
    ToolAsks,
    ToolFinished,
    ToolReady,
    ToolStarted,
)
from ahpd.agents.port import ClientResult
from ahpd.protocol.model import JSON
from ahpd.protocol.uris import ROOT, URI
from supervisors import sys
from tests.actors.support import (
    C2,
    C,
    S,
    at_work,
    ending,
    pending,
    room,
    settled,
    started,
    types,
)
from tests.harness import Puppet, PuppetAgent, RawPeer, RunningHost, running_host
from tests.harness.replicas import state_of


def joined(client: str, *tools: str, **more: Any) -> JSON:
    return {
        "type": "session/activeClientSet",
        "activeClient": {"clientId": client, "tools": [{"name": each} for each in tools], **more},
    }


def completed(turn: str, call: str, *, success: bool = True, **more: Any) -> JSON:
    result = {"success": success, "pastTenseMessage": "Opened it"}
    return {
        "type": "chat/toolCallComplete",
        "turnId": turn,
        "toolCallId": call,
        "result": result,
        **more,
    }


def progress(turn: str, call: str, text: str) -> JSON:
    return {
        "type": "chat/toolCallContentChanged",
        "turnId": turn,
        "toolCallId": call,
        "content": [{"type": "text", "text": text}],
    }


def called(name: str, call: str = "c1") -> ClientToolCalled:
    return ClientToolCalled(call, name, name, '{"path": "a"}')


def results(puppet: Puppet) -> list[tuple[str, bool]]:
    """The results that reached the agent, as (call, success)."""
    return [
        (answer.call_id, answer.result.success)
        for answer in puppet.answers
        if isinstance(answer, ClientResult)
    ]


async def joining(peer: RawPeer, *tools: str, **more: Any) -> None:
    answer = await peer.answered(await peer.dispatch(S, joined(peer.name, *tools, **more)))
    assert "rejectionReason" not in answer["params"], answer


async def at_call(
    host: RunningHost, agent: PuppetAgent, *, tools: Sequence[str] = ("open",)
) -> tuple[RawPeer, RawPeer, Puppet]:
    """Ann watches; bob's tool `open` is called as `c1` in the turn `t1` that ann started."""
    ann, bob = await room(host), await room(host, "bob")
    await joining(bob, *tools)
    await ann.dispatch(C, started("t1"))
    puppet = await at_work(agent, "t1")
    puppet.say(called("bob__open"))
    await ann.expect_action("chat/toolCallReady")
    await settled()
    return ann, bob, puppet


def call_of(host: RunningHost, place: int = 0, chat: URI = C) -> Any:
    state = state_of(host, chat)
    parts = (state.get("activeTurn") or state["turns"][-1])["responseParts"]
    calls = [part["toolCall"] for part in parts if part["kind"] == "toolCall"]
    return calls[place]


async def reason(peer: RawPeer, action: JSON, chat: URI = C) -> str | None:
    """Why a dispatch is refused; None when it is not."""
    origin = {"clientId": peer.name, "clientSeq": await peer.dispatch(chat, action)}
    answer = await peer.wait(lambda it: it.get("params", {}).get("origin") == origin)
    found: str | None = answer["params"].get("rejectionReason")
    return found


async def test_the_model_is_given_clients_tools_under_names_that_say_whose_they_are() -> None:
    agent = PuppetAgent()
    async with running_host(agent) as host:
        ann, bob = await room(host), await room(host, "bob")
        await joining(ann, "open", "run me", "a.b")
        await joining(bob, "open", "x-y_Z9", "", "naïve")
        await ann.dispatch(C, started("t1"))
        puppet = await at_work(agent, "t1")
        names = [tool.name for tool in puppet.prompts[0].tools]
        assert names == ["ann__open", "bob__open", "bob__x-y_Z9"]
        puppet.end(Done())


async def test_a_call_is_marked_as_its_clients_and_mirrored_without_asking_anybody() -> None:
    agent = PuppetAgent()
    async with running_host(agent) as host:
        ann, bob, puppet = await at_call(host, agent)
        call = call_of(host)
        assert call["status"] == "running"
        assert call["confirmed"] == "not-needed"
        assert call["contributor"] == {"kind": "client", "clientId": "bob"}
        assert call["toolName"] == call["displayName"] == "open"
        assert call["toolInput"] == '{"path": "a"}'
        entry = (await bob.expect_action("session/inputNeededSet"))["action"]["request"]
        assert entry["kind"] == "toolClientExecution"
        assert (entry["clientId"], entry["turnId"], entry["chat"]) == ("bob", "t1", C)
        assert entry["toolCall"] == call
        assert state_of(host, S)["status"] & 31 != 24
        assert state_of(host, C)["status"] & 31 == 8
        assert await reason(bob, completed("t1", "c1")) is None
        gone = await ann.expect_action("session/inputNeededRemoved")
        assert gone["action"]["id"] == entry["id"]
        puppet.end(Done())


async def test_its_client_alone_reports_and_ends_it_and_the_agent_gets_the_result() -> None:
    agent = PuppetAgent()
    async with running_host(agent) as host:
        ann, bob, puppet = await at_call(host, agent)
        for action in (progress("t1", "c1", "half"), completed("t1", "c1")):
            assert "only the client" in (await reason(ann, action) or "")
        assert await reason(bob, progress("t1", "c1", "half")) is None
        seen = await ann.expect_action("chat/toolCallContentChanged")
        assert seen["origin"]["clientId"] == "bob"
        assert not results(puppet)
        assert "cannot wait" in (
            await reason(bob, completed("t1", "c1", requiresResultConfirmation=True)) or ""
        )
        assert await reason(bob, completed("t1", "c1")) is None
        seen = await ann.expect_action("chat/toolCallComplete")
        assert seen["origin"]["clientId"] == "bob"
        await settled()
        assert results(puppet) == [("c1", True)]
        assert "not running" in (await reason(bob, completed("t1", "c1", success=False)) or "")
        puppet.say(TextChunk("thanks"))
        puppet.end(Done())
        assert (await ending(ann, "t1"))["type"] == "chat/turnComplete"
        assert results(puppet) == [("c1", True)]


async def test_the_agent_gets_the_result_only_when_its_envelope_is_out() -> None:
    agent = PuppetAgent()
    async with running_host(agent) as host:
        ann, bob, puppet = await at_call(host, agent)
        sys.suspend(host.system.ref("sequencer"))
        await bob.dispatch(C, completed("t1", "c1"))
        await trio.sleep(1)
        assert call_of(host)["status"] == "completed"
        assert not results(puppet)
        sys.resume(host.system.ref("sequencer"))
        await ann.expect_action("chat/toolCallComplete")
        await settled()
        assert results(puppet) == [("c1", True)]
        puppet.end(Done())


async def test_a_failed_completion_of_its_owner_is_a_result_too() -> None:
    agent = PuppetAgent()
    async with running_host(agent) as host:
        _, bob, puppet = await at_call(host, agent)
        assert await reason(bob, completed("t1", "c1", success=False)) is None
        await settled()
        assert results(puppet) == [("c1", False)]
        puppet.end(Done())


async def test_no_client_completes_a_call_that_waits_for_approval_or_is_the_agents() -> None:
    agent = PuppetAgent()
    async with running_host(agent) as host:
        ann, bob, puppet = await at_call(host, agent)
        puppet.say(ToolStarted("own", "rm", "rm"), ToolAsks("own", "rm"))
        puppet.say(ToolStarted("run", "ls", "ls"), ToolReady("run", "ls"))
        await settled()
        for peer in (ann, bob):
            for call in ("own", "run", "none"):
                assert await reason(peer, completed("t1", call))
                assert await reason(peer, progress("t1", call, "x"))
        assert call_of(host, 1)["status"] == "pending-confirmation"
        puppet.end(Done())


@pytest.mark.parametrize("within", [600.0, 5.0])
async def test_a_client_that_keeps_silent_fails_its_call_and_the_turn_goes_on(
    within: float,
) -> None:
    agent = PuppetAgent()
    async with running_host(agent, settings=Settings(client_tool_within=within)) as host:
        ann, bob, puppet = await at_call(host, agent)
        await trio.sleep(within * 0.8)
        assert await reason(bob, progress("t1", "c1", "half")) is None  # it is at work
        await trio.sleep(within * 0.8)
        assert call_of(host)["status"] == "running"
        await trio.sleep(within * 0.3)
        done = (await ann.expect_action("chat/toolCallComplete"))["action"]
        assert not done["result"]["success"]
        assert f"{within:g} s" in done["result"]["error"]["message"]
        await settled()
        assert results(puppet) == [("c1", False)]
        assert "inputNeeded" not in state_of(host, S)
        puppet.end(Done())
        assert (await ending(ann, "t1"))["type"] == "chat/turnComplete"


async def test_a_client_may_be_given_all_the_time_there_is() -> None:
    agent = PuppetAgent()
    async with running_host(agent, settings=Settings(client_tool_within=0)) as host:
        _, bob, puppet = await at_call(host, agent)
        await trio.sleep(80_000)
        assert call_of(host)["status"] == "running"
        assert await reason(bob, completed("t1", "c1")) is None
        puppet.end(Done())


async def test_a_client_that_is_gone_fails_its_calls_in_all_chats_after_its_grace() -> None:
    agent = PuppetAgent()
    async with running_host(agent) as host:
        ann, bob, puppet = await at_call(host, agent)
        await ann.request("createChat", channel=S, chat=C2)
        await ann.subscribe(C2)
        await ann.dispatch(C2, started("t2"))
        other = await at_work(agent, "t2", C2)
        other.say(called("bob__open", "c2"))
        await settled()
        bob.cut()
        await trio.sleep(29)
        assert call_of(host)["status"] == call_of(host, chat=C2)["status"] == "running"
        await trio.sleep(2)
        ends = {
            C: await ann.expect_action("chat/toolCallComplete", channel=C),
            C2: await ann.expect_action("chat/toolCallComplete", channel=C2),
        }
        left = await ann.expect_action("session/activeClientRemoved")
        for end in ends.values():
            assert left["serverSeq"] < end["serverSeq"]
            assert end["action"]["result"]["success"] is False
            assert "bob has left" in end["action"]["result"]["pastTenseMessage"]
        await settled()
        assert (results(puppet), results(other)) == ([("c1", False)], [("c2", False)])
        assert "inputNeeded" not in state_of(host, S)
        for turn, each in (("t1", puppet), ("t2", other)):
            each.end(Done())
            assert (await ending(ann, turn))["type"] == "chat/turnComplete"


async def test_a_client_that_comes_back_in_time_still_runs_its_call() -> None:
    agent = PuppetAgent()
    async with running_host(agent) as host:
        _, bob, puppet = await at_call(host, agent)
        bob.cut()
        await trio.sleep(20)
        bob = await host.peer("bob")
        await bob.request(
            "reconnect", clientId="bob", lastSeenServerSeq=host.ledger.seq, subscriptions=[S, C]
        )
        await trio.sleep(100)
        assert await reason(bob, completed("t1", "c1")) is None
        await settled()
        assert results(puppet) == [("c1", True)]
        puppet.end(Done())


async def leave_unsubscribe(host: RunningHost, bob: RawPeer) -> None:
    await bob.notify("unsubscribe", channel=S)


async def leave_reconnect(host: RunningHost, bob: RawPeer) -> None:
    bob.cut()
    again = await host.peer("bob")
    await again.request(
        "reconnect", clientId="bob", lastSeenServerSeq=host.ledger.seq, subscriptions=[ROOT, C]
    )


async def leave_by_action(host: RunningHost, bob: RawPeer) -> None:
    await bob.dispatch(S, {"type": "session/activeClientRemoved", "clientId": "bob"})


@pytest.mark.parametrize("leave", [leave_unsubscribe, leave_reconnect, leave_by_action])
async def test_leaving_the_session_releases_the_role_at_once(leave: Any) -> None:
    agent = PuppetAgent()
    async with running_host(agent) as host:
        ann, bob, puppet = await at_call(host, agent)
        start = trio.current_time()
        await leave(host, bob)
        await ann.expect_action("session/activeClientRemoved", within=1)
        done = await ann.expect_action("chat/toolCallComplete", within=1)
        assert not done["action"]["result"]["success"]
        assert trio.current_time() - start < 1
        await settled()
        assert results(puppet) == [("c1", False)]
        puppet.end(Done())


async def test_b26_leaving_a_chat_keeps_the_role() -> None:
    agent = PuppetAgent()
    async with running_host(agent) as host:
        ann, bob, puppet = await at_call(host, agent)
        await ann.request("createChat", channel=S, chat=C2)
        await bob.subscribe(C2)
        for chat in (C2, C, C, "ahp-chat:/never"):
            await bob.notify("unsubscribe", channel=chat)
        await bob.subscribe(C)
        await bob.subscribe(C)
        await bob.notify("unsubscribe", channel=C)
        await trio.sleep(100)
        assert "session/activeClientRemoved" not in types(ann)
        assert call_of(host)["status"] == "running"
        # It is not subscribed to the chat, so it gets no echo; but it is heard.
        await bob.dispatch(C, completed("t1", "c1"))
        await ann.expect_action("chat/toolCallComplete")
        await settled()
        assert results(puppet) == [("c1", True)]
        puppet.end(Done())


async def test_a_second_window_of_the_same_client_keeps_the_role() -> None:
    agent = PuppetAgent()
    async with running_host(agent) as host:
        ann, bob, puppet = await at_call(host, agent)
        again = await host.peer("bob")
        await again.hello(subscribe=(S,))
        await bob.notify("unsubscribe", channel=S)
        await bob.close()
        await trio.sleep(100)
        assert "session/activeClientRemoved" not in types(ann)
        await again.notify("unsubscribe", channel=S)
        await ann.expect_action("session/activeClientRemoved")
        puppet.end(Done())


async def test_a_call_that_nobody_can_run_fails_at_once_and_says_who_could() -> None:
    agent = PuppetAgent()
    async with running_host(agent) as host:
        ann = await room(host)
        await joining(ann, "open", displayName="Ann's editor")
        await ann.dispatch(C, started("t1"))
        puppet = await at_work(agent, "t1")
        for place, (name, hint) in enumerate(
            [("bob__open", "Ann's editor offers open too"), ("bob__fly", "no client offers")]
        ):
            puppet.say(called(name, f"c{place}"))
            done = (await ann.expect_action("chat/toolCallComplete"))["action"]
            assert not done["result"]["success"]
            assert hint in done["result"]["error"]["message"]
            assert "contributor" not in call_of(host, place)
        await settled()
        assert results(puppet) == [("c0", False), ("c1", False)]
        assert "session/inputNeededSet" not in types(ann)
        puppet.end(Done())


async def test_a_client_that_left_fails_its_call_and_the_reason_says_who_else_could() -> None:
    agent = PuppetAgent()
    async with running_host(agent) as host:
        ann, bob, puppet = await at_call(host, agent)
        await joining(ann, "open")
        await bob.notify("unsubscribe", channel=S)
        done = (await ann.expect_action("chat/toolCallComplete"))["action"]
        assert "bob has left; ann offers open too" in done["result"]["pastTenseMessage"]
        puppet.end(Done())


async def test_a_bare_name_means_the_tool_of_whoever_started_the_turn() -> None:
    agent = PuppetAgent()
    async with running_host(agent) as host:
        ann, bob = await room(host), await room(host, "bob")
        await joining(ann, "open", "only")
        await joining(bob, "open")
        turns = [("t1", ann, "open", "ann"), ("t2", bob, "open", "bob"), ("t3", bob, "only", "ann")]
        for turn_id, peer, name, owner in turns:
            await peer.dispatch(C, started(turn_id))
            puppet = await at_work(agent, turn_id)
            puppet.say(called(name, turn_id))
            await settled()
            assert call_of(host)["contributor"]["clientId"] == owner
            puppet.end(Done())
            await ending(ann, turn_id)
        await ann.dispatch(C, started("t4"))
        await at_work(agent, "t4")
        await bob.dispatch(C, pending("q1"))
        await settled()
        agent.of[C].end(Done())
        await ending(ann, "t4")
        await settled()
        puppet = agent.of[C]
        puppet.say(called("open", "q"))
        await settled()
        assert call_of(host)["contributor"]["clientId"] == "bob"  # a queued message is its sender's
        puppet.end(Done())


async def test_calls_end_with_their_turn_and_a_late_completion_is_refused() -> None:
    agent = PuppetAgent()
    async with running_host(agent) as host:
        ann, bob, puppet = await at_call(host, agent)
        await ann.dispatch(C, {"type": "chat/turnCancelled", "turnId": "t1", "duration": 1})
        await ending(ann, "t1")
        await settled()
        assert call_of(host)["status"] == "cancelled"
        assert "inputNeeded" not in state_of(host, S)
        assert await reason(bob, completed("t1", "c1"))
        await trio.sleep(700)
        assert results(puppet) == [("c1", False)]  # so that it can settle


async def test_one_call_id_is_one_call_whatever_the_agent_says_of_it() -> None:
    agent = PuppetAgent()
    async with running_host(agent) as host:
        ann, bob, puppet = await at_call(host, agent)
        puppet.say(called("bob__open"), called("ann__fly"))
        await settled()
        assert types(ann).count("chat/toolCallStart") == 1
        assert await reason(bob, completed("t1", "c1")) is None
        puppet.say(ToolFinished("c1", True, "the agent's own word for it"))
        await settled()
        assert results(puppet) == [("c1", True)]
        assert call_of(host)["pastTenseMessage"] == "Opened it"
        puppet.end(Done())


async def test_a_session_that_is_started_again_looks_for_calls_of_clients_that_left() -> None:
    agent = PuppetAgent()
    async with running_host(agent) as host:
        ann, bob, puppet = await at_call(host, agent)
        session = host.system.ref(host.ledger.channels[S].path)
        sys.suspend(host.system.ref(host.ledger.channels[C].path))
        await bob.notify("unsubscribe", channel=S)
        await ann.expect_action("session/activeClientRemoved")
        sys.kill(session)
        sys.resume(host.system.ref(host.ledger.channels[C].path))
        await ann.expect_action("chat/toolCallComplete")
        await settled()
        assert results(puppet) == [("c1", False)]
        puppet.end(Done())
