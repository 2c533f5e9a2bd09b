"""Recordings of real agents, with damage from seeds: every turn ends, and nothing breaks."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from random import Random
from typing import Any

import pytest

from ahpd.agents.acp.agent import AcpAgent
from tests.actors.support import S
from tests.agents.acp.test_on_a_host import session, state
from tests.interop.player import frames
from tests.interop.test_recordings import RECORDINGS, asked, play

pytestmark = pytest.mark.real_time

#: The first of the seeds.
FIRST = int(os.environ.get("AHPD_TEST_SEED", "0"))
SPOKEN = [each for each in RECORDINGS if "session/prompt" in asked(each)]
JUNK: list[Any] = [
    None,
    True,
    -1,
    1e300,
    "",
    "x",
    {},
    [],
    [None],
    {"type": "text"},
    {"type": "diff"},
]
#: What says what kind of message it is: seldom spoilt, or nothing would be left of it.
_KINDS = ("method", "sessionUpdate")


def spoilt(value: Any, random: Random) -> Any:
    """The same with other values here and there, and parts that are missing or out of order."""
    if random.random() < 0.03:
        return random.choice(JUNK)
    if isinstance(value, dict):
        kept = {key: each for key, each in value.items() if random.random() > 0.02}
        return {
            key: each if key in _KINDS and random.random() > 0.02 else spoilt(each, random)
            for key, each in kept.items()
        }
    if isinstance(value, list):
        found = [spoilt(each, random) for each in value]
        if random.random() < 0.05:
            random.shuffle(found)
        return found
    return value


def damaged(frame: Any, random: Random) -> list[Any]:
    """What comes instead of one of the agent's frames. Answers stay: they are waited for."""
    if not isinstance(frame, dict) or _begins(frame.get("result")):
        return [frame]
    made = {
        key: spoilt(frame[key], random) for key in ("params", "result", "error") if key in frame
    }
    made = {**frame, **made}
    if "id" in frame:
        if random.random() < 0.1:
            made.pop("result", None)
        return [made]
    return [made] * random.choice([0, 1, 1, 1, 1, 1, 1, 1, 1, 2])


def _begins(result: Any) -> bool:
    """Whether it is a result without which there is no conversation at all."""
    return isinstance(result, dict) and ("agentCapabilities" in result or "sessionId" in result)


def _text(frame: Any) -> str:
    return frame if isinstance(frame, str) else json.dumps(frame)


@pytest.mark.skipif(not SPOKEN, reason="there are no recordings beside the project")
@pytest.mark.parametrize("seed", range(FIRST, FIRST + 6))
async def test_a_damaged_recording(seed: int, tmp_path: Path) -> None:
    random = Random(seed)
    recording = random.choice(SPOKEN)
    file = tmp_path / recording.name
    lines: list[str] = []
    for way, frame in frames(recording):
        made = damaged(frame, random) if way == "<" else [frame]
        lines += [f"0.0 {way} {_text(each)}\n" for each in made]
    file.write_text("".join(lines))
    player = Path(__file__).with_name("player.py")
    agent = AcpAgent("puppet", (sys.executable, "-S", str(player), str(file)))
    async with session(agent, tmp_path) as (host, ann):
        if state(host, S)["lifecycle"] == "failed":
            return
        for number in range(asked(recording).count("session/prompt")):
            ended = await play(ann, f"t{number}")
            if ended["type"] == "chat/error":
                assert ended["part"]["error"]["errorType"] != "AgentCrashed", ended
                break
