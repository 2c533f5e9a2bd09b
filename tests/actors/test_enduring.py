"""Questions outlive the host: who is asked before it is killed can answer after (RULES 11)."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import trio

from ahpd.agents.script import parse_script
from ahpd.agents.scripted import ScriptedAgent
from ahpd.protocol.uris import ROOT
from supervisors import sys
from tests.actors.support import C, S, approved, cancelled, room, settled, started
from tests.harness import FileMedium, RawPeer, RunningHost, running_host

ASK = {"ask": {"message": "Which?", "questions": [{"kind": "text", "id": "n", "message": "N?"}]}}
TOOL = {"tool": {"name": "shell", "input": {"a": 1}, "confirm": True, "output": "done it"}}
RESULT = {"tool": {"name": "shell", "input": {"a": 1}, "resultConfirm": True, "output": "found"}}
WAITS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "a question": (
        ASK,
        {
            "type": "chat/inputCompleted",
            "requestId": "t1-call-2",
            "response": "accept",
            "answers": {"n": {"state": "submitted", "value": {"kind": "text", "value": "me"}}},
        },
    ),
    "a call": (TOOL, approved("t1", "t1-call-2")),
    "a result": (
        RESULT,
        {
            "type": "chat/toolCallResultConfirmed",
            "turnId": "t1",
            "toolCallId": "t1-call-2",
            "approved": True,
        },
    ),
}


@asynccontextmanager
async def waiting(folder: Path, step: Any) -> AsyncIterator[tuple[RunningHost, RawPeer]]:
    """A host whose agent waits in the second step of a turn."""
    steps = [{"text": "Before. "}, step, {"text": "After."}]
    agent = ScriptedAgent("scripted", parse_script({"turns": [{"steps": steps}]}))
    async with running_host(agent, journal=FileMedium(folder / "journal.db")) as host:
        ann = await room(host, subscribe=(ROOT, S, C))
        await ann.dispatch(C, started("t1"))
        await settled()
        yield host, ann


async def back(host: RunningHost) -> RawPeer:
    """Kill the host, start it again, and come back to it."""
    await host.kill()
    await host.start()
    await settled()
    ann = await host.peer("ann")
    await ann.hello(subscribe=(ROOT, S, C))
    return ann


def state(host: RunningHost, uri: str = C) -> Any:
    found = host.ledger.find(uri)
    assert found is not None
    return found.state.wire()


def said(turn: Any) -> str:
    return "".join(part["content"] for part in turn["responseParts"] if part["kind"] == "markdown")


@pytest.mark.parametrize("what", WAITS)
async def test_what_waits_for_somebody_still_waits_after_a_kill(tmp_path: Path, what: str) -> None:
    step, answer = WAITS[what]
    async with waiting(tmp_path, step) as (host, _):
        before = state(host)["activeTurn"]
        entries = state(host, S)["inputNeeded"]
        assert len(entries) == 1
        ann = await back(host)
        assert state(host)["activeTurn"] == before
        assert state(host, S)["inputNeeded"] == entries
        assert (
            "rejectionReason" not in (await ann.answered(await ann.dispatch(C, answer)))["params"]
        )
        await settled()
        (turn,) = state(host)["turns"]
        assert turn["state"] == "complete"
        assert said(turn).startswith("Before. ")
        assert said(turn).endswith("After.")
        assert not state(host, S).get("inputNeeded")


@pytest.mark.parametrize("what", WAITS)
async def test_an_answer_that_comes_before_the_agent_is_up_is_not_lost(
    tmp_path: Path, what: str
) -> None:
    step, answer = WAITS[what]
    async with waiting(tmp_path, step) as (host, _):
        await host.kill()
        await host.start()
        ann = await host.peer("ann")  # nothing has settled: the agent is being opened
        await ann.hello(subscribe=(ROOT, S, C))
        await ann.dispatch(C, answer)
        await settled()
        (turn,) = state(host)["turns"]
        assert turn["state"] == "complete"
        assert said(turn).endswith("After.")


async def test_a_turn_that_waits_can_be_cancelled_after_a_kill(tmp_path: Path) -> None:
    async with waiting(tmp_path, ASK) as (host, _):
        ann = await back(host)
        await ann.dispatch(C, cancelled("t1"))
        await settled()
        (turn,) = state(host)["turns"]
        assert turn["state"] == "cancelled"
        assert not state(host, S).get("inputNeeded")


async def test_a_turn_that_waits_for_one_thing_and_works_on_another_ends(tmp_path: Path) -> None:
    working = {"worker": {"title": "Dig", "steps": [ASK]}}
    async with waiting(tmp_path, working) as (host, _):
        await back(host)
        (turn,) = state(host)["turns"]
        assert turn["state"] == "error"
        assert not state(host, S).get("inputNeeded")


async def test_a_turn_does_not_outlive_its_own_actor(tmp_path: Path) -> None:
    """Not after a start of the host, either, with nothing under way: it may have failed over it."""
    async with waiting(tmp_path, ASK) as (host, ann):
        await ann.dispatch(C, cancelled("t1"))
        await settled()
        ann = await back(host)
        await ann.dispatch(C, started("t2"))
        await settled()
        assert state(host)["activeTurn"]["id"] == "t2"
        found = host.ledger.find(C)
        assert found is not None
        sys.kill(host.system.ref(found.path))
        await trio.sleep(5)
        assert [turn["state"] for turn in state(host)["turns"]] == ["cancelled", "error"]
