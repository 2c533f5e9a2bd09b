"""Recordings of real agents, played to a host: every turn ends once, and all frames are right."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ahpd.agents.acp.agent import AcpAgent
from tests.actors.support import ENDINGS, C, S, actions, approved, ending, started
from tests.agents.acp.support import PATIENCE
from tests.agents.acp.test_on_a_host import session, state, texts
from tests.harness import RawPeer
from tests.interop.player import frames

#: AHPD_TEST_RECORDINGS names another folder with some.
FRAMES = Path(
    os.environ.get("AHPD_TEST_RECORDINGS", Path(__file__).parents[3] / "shared" / "acp" / "frames")
)
RECORDINGS = sorted(FRAMES.glob("*.txt")) if FRAMES.is_dir() else []

pytestmark = pytest.mark.real_time


def test_there_are_recordings() -> None:
    if not RECORDINGS:
        pytest.skip("there are no recordings beside the project")
    assert any(method == "session/prompt" for each in RECORDINGS for method in asked(each))


def asked(recording: Path) -> list[str]:
    """The methods that the agent was asked, in their order."""
    return [
        each["method"]
        for way, each in frames(recording)
        if way == ">" and "method" in each and "id" in each
    ]


#: What an agent asks people by.
ASKS = ("chat/toolCallReady", "chat/inputRequested")


def said(recording: Path) -> list[str | None]:
    """What the agent said in each of its turns, without spaces, as the recording has it.

    None where it said more than text, or in another session than the first. Up to the first prompt
    that another one overtook: what belongs to which is not to be told then.
    """
    turns = list(_turns(frames(recording)))
    first = turns[0][0]["params"]["sessionId"] if turns else None
    return [_said(turn) if turn[0]["params"]["sessionId"] == first else None for turn in turns]


def _turns(recorded: list[tuple[str, Any]]) -> Iterator[list[Any]]:
    """Each prompt with what came from the agent up to its answer, or to the end."""
    for place, (way, prompt) in enumerate(recorded):
        if not _is_prompt(way, prompt):
            continue
        turn = [prompt]
        for other_way, other in recorded[place + 1 :]:
            if _is_prompt(other_way, other):
                return
            if other_way == "<" and isinstance(other, dict):
                turn.append(other)
                if other.get("id") == prompt["id"] and "method" not in other:
                    break
        yield turn


def _is_prompt(way: str, frame: Any) -> bool:
    return way == ">" and isinstance(frame, dict) and frame.get("method") == "session/prompt"


def _said(turn: list[Any]) -> str | None:
    session, text = turn[0]["params"]["sessionId"], ""
    for frame in turn[1:]:
        params = frame.get("params", {})
        update = params.get("update", {}) if params.get("sessionId") == session else {}
        if update.get("sessionUpdate") == "agent_message_chunk":
            if update["content"].get("type") != "text":
                return None
            text += update["content"]["text"]
    return re.sub(r"\s", "", text)


async def play(ann: RawPeer, turn_id: str) -> Any:
    """A turn in which everything is approved; what ended it."""
    await ann.dispatch(C, started(turn_id, "Go on"))
    while True:
        message = await ann.wait(
            lambda it: (
                it.get("method") == "action" and it["params"]["action"]["type"] in (*ENDINGS, *ASKS)
            ),
            PATIENCE,
        )
        action = message["params"]["action"]
        if action["type"] in ENDINGS:
            ann.inbox.insert(0, message)
            return await ending(ann, turn_id, PATIENCE)
        if action["type"] == "chat/inputRequested":
            answer = {"requestId": action["request"]["id"], "response": "decline"}
            await ann.dispatch(C, {"type": "chat/inputCompleted", **answer})
            continue
        if "confirmed" not in action:
            await ann.dispatch(C, approved(turn_id, action["toolCallId"]))


@pytest.mark.parametrize("recording", RECORDINGS, ids=[each.stem for each in RECORDINGS])
async def test_a_recording(recording: Path, tmp_path: Path) -> None:
    player = Path(__file__).with_name("player.py")
    agent = AcpAgent("puppet", (sys.executable, "-S", str(player), str(recording)))
    prompts = asked(recording).count("session/prompt")
    async with session(agent, tmp_path) as (host, ann):
        if state(host, S)["lifecycle"] == "failed":
            assert state(host, S)["creationError"]["message"]
            return
        for number in range(prompts):
            ended = await play(ann, f"t{number}")
            assert [each["type"] for each in actions(ann, C) if each["type"] in ENDINGS] == []
            if ended["type"] == "chat/error":
                assert ended["part"]["error"]["errorType"] != "AgentCrashed", ended
                break  # a process that has ended is played from its beginning
        turns = state(host)["turns"]
        assert [each["id"] for each in turns] == [f"t{number}" for number in range(len(turns))]
        for each in turns:
            for part in each["responseParts"]:
                if part["kind"] == "toolCall":
                    assert part["toolCall"]["status"] in ("completed", "cancelled")
        for each, text in zip(turns, said(recording), strict=False):
            assert text in (None, re.sub(r"\s", "", texts(each)))
