"""Chats that are made from others: copied by the agent, or told to it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.actors.support import C, S
from tests.agents.acp.support import rogue
from tests.agents.acp.test_on_a_host import session, state, texts, turn
from tests.harness import RawPeer, Refused

pytestmark = pytest.mark.real_time

HELLO = "Hello\u2028you\u0085."


def sent(folder: Path, method: str) -> list[Any]:
    lines = [json.loads(line) for line in (folder / "log").read_text().strip().split("\n")]
    return [each["params"] for each in lines if each.get("method") == method]


async def fork(ann: RawPeer, chat: str, turn_id: str) -> None:
    source = {"kind": "fork", "chat": C, "turnId": turn_id}
    await ann.request("createChat", channel=S, chat=chat, source=source)
    await ann.subscribe(chat)


async def test_a_whole_conversation_is_copied_by_the_agent(tmp_path: Path) -> None:
    async with session(rogue(tmp_path, "forks", name="puppet"), tmp_path) as (host, ann):
        await turn(ann, host, "t1", "hello")
        await fork(ann, "ahp-chat:/whole", "t1")
        done = await turn(ann, host, "t2", "hello", "ahp-chat:/whole")
        assert texts(done) == HELLO, "what the copy repeats is not said again"
        assert [each["sessionId"] for each in sent(tmp_path, "session/fork")] == ["rogue-1"]
        assert len(sent(tmp_path, "session/new")) == 1
        prompt = sent(tmp_path, "session/prompt")[-1]
        assert prompt["sessionId"] == "forked-rogue-1"
        assert len(prompt["prompt"]) == 1
        turns = state(host, "ahp-chat:/whole")["turns"]
        assert [each["message"]["text"] for each in turns] == ["hello", "hello"]


async def test_a_part_of_one_or_one_that_fails_is_told_as_text(tmp_path: Path) -> None:
    async with session(rogue(tmp_path, "forks", name="puppet"), tmp_path) as (host, ann):
        await turn(ann, host, "t1", "hello")
        await turn(ann, host, "t2", "messages")
        await fork(ann, "ahp-chat:/part", "t1")
        await turn(ann, host, "t3", "hello", "ahp-chat:/part")
        assert sent(tmp_path, "session/fork") == []
        told = sent(tmp_path, "session/prompt")[-1]["prompt"][1]["text"]
        assert told.endswith(f"before:\nUser: hello\nAgent: {HELLO}")
        await turn(ann, host, "t4", "hello", "ahp-chat:/part")
        assert len(sent(tmp_path, "session/prompt")[-1]["prompt"]) == 1, "it is told once"

        (tmp_path / "fork-fails").touch()
        await fork(ann, "ahp-chat:/failed", "t2")
        assert texts(await turn(ann, host, "t5", "hello", "ahp-chat:/failed")) == HELLO
        assert "one\n\ntwo" in sent(tmp_path, "session/prompt")[-1]["prompt"][1]["text"]


async def test_a_side_chat_is_told_of_the_other(tmp_path: Path) -> None:
    async with session(rogue(tmp_path, name="puppet"), tmp_path) as (host, ann):
        await turn(ann, host, "t1", "hello")
        source = {"kind": "sideChat", "chat": C, "turnId": "t1", "selection": {"text": "you"}}
        await ann.request("createChat", channel=S, chat="ahp-chat:/side", source=source)
        await ann.subscribe("ahp-chat:/side")
        for turn_id in ("t2", "t3"):
            await turn(ann, host, turn_id, "hello", "ahp-chat:/side")
        first, second = (each["prompt"] for each in sent(tmp_path, "session/prompt")[1:])
        assert [each["text"] for each in first] == [
            "hello",
            f"For your information, another conversation:\nUser: hello\nAgent: {HELLO}",
            "This conversation is about this part of it:\nyou",
        ]
        assert [each["text"] for each in second] == ["hello"]
        assert len(state(host, "ahp-chat:/side")["turns"]) == 2


async def test_an_agent_that_cannot_copy_is_not_asked_to(tmp_path: Path) -> None:
    async with session(rogue(tmp_path, name="puppet"), tmp_path) as (host, ann):
        await turn(ann, host, "t1", "hello")
        with pytest.raises(Refused, match="cannot copy a conversation"):
            await fork(ann, "ahp-chat:/fork", "t1")
