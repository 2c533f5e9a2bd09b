"""Working directories of sessions and of their chats (R-8.49 to R-8.57, R-9.94, R-9.95)."""

from __future__ import annotations

from typing import Any

import pytest

from ahpd.agents.events import Done
from ahpd.protocol.model import JSON
from ahpd.protocol.root import MultipleWorkingDirectoriesCapability
from ahpd.protocol.uris import ROOT, URI
from tests.actors.support import C2, C, S, actions, at_work, refused, room, settled, started, turn
from tests.harness import PuppetAgent, RawPeer, RunningHost, differences, running_host
from tests.harness.replicas import state_of

D1, D2, D3, D4 = (f"file:///d{n}" for n in range(1, 5))

FREE = MultipleWorkingDirectoriesCapability()
FIXED = MultipleWorkingDirectoriesCapability(immutable_primary=True)
SWAPS = MultipleWorkingDirectoriesCapability(immutable_primary=True, primary_replacement=True)


def add(directory: str, kind: str = "session") -> dict[str, Any]:
    return {"type": f"{kind}/workingDirectorySet", "directory": directory}


def drop(directory: str, kind: str = "session") -> dict[str, Any]:
    return {"type": f"{kind}/workingDirectoryRemoved", "directory": directory}


def swap(directory: str, replacement: str) -> dict[str, Any]:
    return {
        "type": "session/workingDirectoryReplaced",
        "directory": directory,
        "replacement": replacement,
    }


async def in_directories(host: RunningHost, *held: str) -> RawPeer:
    ann = await host.peer("ann")
    await ann.hello(subscribe=())
    await ann.request("createSession", channel=S, workingDirectories=list(held))
    await settled()
    for channel in (ROOT, S, C):
        await ann.subscribe(channel)
    return ann


async def say(peer: RawPeer, channel: URI, action: JSON) -> str | None:
    answer = await peer.answered(await peer.dispatch(channel, action))
    reason: str | None = answer["params"].get("rejectionReason")
    return reason


CHANGES: list[tuple[Any, JSON, list[str] | str]] = [
    (FREE, add(D3), [D1, D2, D3]),
    (FREE, add(D2), [D1, D2]),
    (FREE, drop(D1), [D2]),
    (FREE, drop(D4), [D1, D2]),
    (FREE, swap(D1, D3), [D3, D2]),
    (FREE, swap(D2, D1), [D1]),
    (FREE, swap(D4, D3), [D1, D2]),
    (FIXED, add(D3), [D1, D2, D3]),
    (FIXED, drop(D2), [D1]),
    (FIXED, drop(D1), "first working directory"),
    (FIXED, swap(D1, D3), "first working directory"),
    (FIXED, swap(D2, D3), [D1, D3]),
    (SWAPS, drop(D1), "first working directory"),
    (SWAPS, swap(D1, D3), [D3, D2]),
    (SWAPS, swap(D1, D2), [D2]),
    (None, add(D3), "started with"),
    (None, drop(D1), "started with"),
    (None, swap(D1, D3), "started with"),
]


@pytest.mark.parametrize(("can", "action", "expected"), CHANGES)
async def test_what_an_agent_can_decides_what_may_change(
    can: MultipleWorkingDirectoriesCapability | None, action: JSON, expected: Any
) -> None:
    async with running_host(PuppetAgent(directories=can)) as host:
        ann = await in_directories(host, D1, D2)
        # Without the capability the session has the first one alone.
        assert state_of(host, S)["workingDirectories"] == ([D1, D2] if can else [D1])
        reason = await say(ann, S, action)
        if isinstance(expected, str):
            assert reason is not None
            assert expected in reason
            return
        assert reason is None
        assert state_of(host, S)["workingDirectories"] == expected
        await settled()
        (row,) = (await ann.request("listSessions"))["items"]
        assert row["workingDirectories"] == expected


async def test_a_change_starts_the_agents_again_before_their_next_turn() -> None:
    agent = PuppetAgent(directories=SWAPS)
    async with running_host(agent) as host:
        ann = await in_directories(host, D1)
        await turn(ann, agent, "t1", Done())
        first = agent.of[C]
        assert first.request.working_directories == (D1,)
        assert await say(ann, S, swap(D1, D2)) is None
        assert await say(ann, S, add(D3)) is None
        assert not first.closed
        await turn(ann, agent, "t2", Done())
        assert first.closed
        assert agent.of[C].request.working_directories == (D2, D3)
        second = agent.of[C]
        await turn(ann, agent, "t3", Done())
        assert agent.of[C] is second


async def test_while_a_turn_runs_in_any_chat_the_set_stays() -> None:
    agent = PuppetAgent(directories=FREE)
    async with running_host(agent) as host:
        ann = await in_directories(host, D1, D2)
        await ann.request("createChat", channel=S, chat=C2)
        await ann.dispatch(C2, started("t1"))
        puppet = await at_work(agent, "t1", C2)
        for action in (add(D3), drop(D2), swap(D1, D3)):
            reason = await say(ann, S, action)
            assert reason is not None
            assert "a turn is running" in reason
        for action in (add(D2), drop(D3), swap(D3, D4)):  # which change nothing
            assert await say(ann, S, action) is None
        puppet.end(Done())
        await settled()
        assert await say(ann, S, add(D3)) is None


# ---- chats --------------------------------------------------------------------------------------


async def test_a_chat_names_directories_of_its_session_only() -> None:
    agent = PuppetAgent(directories=FREE)
    async with running_host(agent) as host:
        ann = await in_directories(host, D1, D2)
        reason = await say(ann, C, add(D3, "chat"))
        assert reason is not None
        assert "not one of the session's" in reason
        assert await say(ann, C, drop(D3, "chat")) is None
        assert "workingDirectories" not in state_of(host, C)
        for action, expected in (
            (add(D2, "chat"), [D2]),
            (add(D2, "chat"), [D2]),
            (add(D1, "chat"), [D2, D1]),
            (drop(D2, "chat"), [D1]),
            (drop(D1, "chat"), []),
        ):
            assert await say(ann, C, action) is None
            await settled()
            assert state_of(host, C)["workingDirectories"] == expected
            assert state_of(host, S)["chats"][0]["workingDirectories"] == expected
        await turn(ann, agent, "t1", Done())
        assert agent.of[C].request.working_directories == ()
        with refused(-32602, D3):
            await ann.request("createChat", channel=S, chat=C2, workingDirectories=[D3])
        await ann.request("createChat", channel=S, chat=C2, workingDirectories=[D2])
        assert state_of(host, C2)["workingDirectories"] == [D2]


async def test_a_chat_of_an_agent_with_one_directory_has_that_one() -> None:
    async with running_host() as host:
        ann = await in_directories(host, D1)
        reason = await say(ann, C, add(D1, "chat"))
        assert reason is not None
        assert "started with" in reason
        assert await say(ann, C, drop(D1, "chat")) is None


async def test_what_the_session_gives_up_its_chats_give_up_in_the_same_step() -> None:
    agent = PuppetAgent(directories=FREE)
    async with running_host(agent) as host:
        ann = await in_directories(host, D1, D2, D3)
        for chat, named in ((C2, [D2, D3]), ("ahp-chat:/third", [D3])):
            await ann.request("createChat", channel=S, chat=chat, workingDirectories=named)
        await settled()
        async with host.client("laptop", subscriptions=(ROOT, S, C, C2)) as laptop:
            await ann.subscribe(C2)
            ann.inbox.clear()
            assert await say(ann, S, drop(D2)) is None
            await settled()
            said = [a for a in actions(ann, C2) if "irectory" in a["type"]]
            assert said == [drop(D2, "chat")]
            assert state_of(host, C2)["workingDirectories"] == [D3]
            assert state_of(host, "ahp-chat:/third")["workingDirectories"] == [D3]
            assert "workingDirectories" not in state_of(host, C)

            ann.inbox.clear()
            assert await say(ann, S, swap(D3, D4)) is None
            await settled()
            said = [a for a in actions(ann, C2) if "irectory" in a["type"]]
            assert said == [add(D4, "chat"), drop(D3, "chat")]
            rows = {r["resource"]: r.get("workingDirectories") for r in state_of(host, S)["chats"]}
            assert rows == {C: None, C2: [D4], "ahp-chat:/third": [D4]}
            assert differences(laptop, host) == []


async def test_a_set_that_was_given_up_is_seen_by_nobody_half_done() -> None:
    """Whenever somebody looks, each chat names directories of its session only."""
    agent = PuppetAgent(directories=FREE)
    async with running_host(agent) as host:
        ann, bob = await in_directories(host, D1, D2), await room(host, "bob", subscribe=())
        await ann.request("createChat", channel=S, chat=C2, workingDirectories=[D1, D2])
        for number in range(6):
            await ann.dispatch(S, drop(D2) if number % 2 else add(D2))
            session, chat = await bob.subscribe(S), await bob.subscribe(C2)
            late = await bob.subscribe(S)
            held = {*session["state"]["workingDirectories"], *late["state"]["workingDirectories"]}
            assert held >= set(chat["state"]["workingDirectories"])
