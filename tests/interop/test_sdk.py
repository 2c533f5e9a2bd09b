"""An agent made with the official Python SDK, in a process of its own, on a host."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from ahpd.agents.acp.agent import AcpAgent, Options
from ahpd.resources.files import FileResources
from ahpd.terminals.pty import PtyTerminals
from tests.actors.support import C, S, approved, cancelled, denied, ending, started
from tests.agents.acp.support import PATIENCE
from tests.agents.acp.test_on_a_host import calls, session, state, texts, turn, until
from tests.agents.acp.test_services import plain_shell

pytest.importorskip("acp", reason="agent-client-protocol is not installed")

__all__ = ["plain_shell"]

pytestmark = pytest.mark.real_time


def agent(folder: Path) -> AcpAgent:
    command = (sys.executable, str(Path(__file__).with_name("sdk_agent.py")))
    return AcpAgent("puppet", command, {"SDK_AGENT_HOME": str(folder)}, "1")


async def test_a_whole_turn(tmp_path: Path) -> None:
    async with session(agent(tmp_path), tmp_path) as (host, ann):
        await ann.dispatch(C, started("t1", "go"))
        await ann.expect_action("chat/toolCallReady", PATIENCE)
        (waiting,) = calls(state(host)["activeTurn"])
        (edit,) = waiting["edits"]["items"]
        assert edit["after"]["uri"] == (tmp_path / "a.txt").as_uri()
        assert edit["diff"] == {"added": 1, "removed": 1}
        options = {each["id"]: each["kind"] for each in waiting["options"]}
        assert options == {"allow": "approve", "always": "approve", "reject": "deny"}
        await ann.dispatch(C, approved("t1", "call_1", selectedOptionId="allow"))
        assert (await ending(ann, "t1", PATIENCE))["type"] == "chat/turnComplete"
        done = state(host)["turns"][-1]
        assert texts(done) == "Hello from ACP."
        assert [part["kind"] for part in done["responseParts"]] == [
            "reasoning",
            "markdown",
            "toolCall",
        ]
        (call,) = calls(done)
        assert call["success"]
        assert [each["type"] for each in call["content"]] == ["fileEdit", "text"]
        assert done["usage"]["inputTokens"] == 20
        assert done["usage"]["_meta"] == {
            "ahpd.cost": {"amount": 0.01, "currency": "USD"},
            "ahpd.context": {"used": 1200, "size": 200000},
        }
        assert state(host, S)["title"] == "go"
        assert len(state(host, S)["_meta"]["ahpd.plan"]) == 2


async def test_a_call_that_is_denied(tmp_path: Path) -> None:
    async with session(agent(tmp_path), tmp_path) as (host, ann):
        await ann.dispatch(C, started("t1", "tool"))
        await ann.expect_action("chat/toolCallReady", PATIENCE)
        await ann.dispatch(C, denied("t1", "call_1"))
        assert (await ending(ann, "t1", PATIENCE))["type"] == "chat/turnComplete"
        assert [each["status"] for each in calls(state(host)["turns"][-1])] == ["cancelled"]


@pytest.mark.parametrize("text", ["wait", "tool"])
async def test_a_cancel(text: str, tmp_path: Path) -> None:
    async with session(agent(tmp_path), tmp_path) as (host, ann):
        await ann.dispatch(C, started("t1", text))
        await until(lambda: _said(host) and (text == "wait" or _asks(host)))
        await ann.dispatch(C, cancelled("t1"))
        assert (await ending(ann, "t1", PATIENCE))["type"] == "chat/turnCancelled"
        assert texts(await turn(ann, host, "t2", "hello")) == "Hello from ACP."


def _said(host: Any) -> bool:
    running = state(host).get("activeTurn")
    return running is not None and texts(running) == "Hello from ACP."


def _asks(host: Any) -> bool:
    return any(
        each["status"] == "pending-confirmation" for each in calls(state(host)["activeTurn"])
    )


async def test_an_error_and_a_crash(tmp_path: Path) -> None:
    async with session(agent(tmp_path), tmp_path) as (host, ann):
        await ann.dispatch(C, started("t1", "boom"))
        failed = await ending(ann, "t1", PATIENCE)
        assert failed["part"]["error"]["message"] == "Internal error: boom"
        for turn_id, text in (("t-fs", "fs"), ("t-term", "term")):  # this host has none of them
            await ann.dispatch(C, started(turn_id, text))
            assert (await ending(ann, turn_id, PATIENCE))["type"] == "chat/error"
        await ann.dispatch(C, started("t2", "die"))
        failed = await ending(ann, "t2", PATIENCE)
        assert failed["part"]["error"]["message"].endswith("\ndying")
        assert texts(await turn(ann, host, "t3", "hello")) == "Hello from ACP."
        assert len(state(host)["turns"]) == 5


@pytest.mark.usefixtures("plain_shell")
async def test_what_the_host_does_for_it_and_what_it_asks(tmp_path: Path) -> None:
    (tmp_path / "in.txt").write_text("one\n")
    served: Any = {"terminals": PtyTerminals(), "resources": FileResources()}
    serving = structs.replace(agent(tmp_path), options=Options(files=True))
    async with session(serving, tmp_path, **served) as (host, ann):
        await ann.dispatch(C, started("t1", "fs term elicit"))
        request = (await ann.expect_action("chat/inputRequested", PATIENCE))["action"]["request"]
        (question,) = request["questions"]
        assert (question["id"], question["kind"], question["required"]) == ("name", "text", True)
        over = {"type": "chat/inputCompleted", "requestId": request["id"], "response": "decline"}
        await ann.dispatch(C, over)
        assert (await ending(ann, "t1", PATIENCE))["type"] == "chat/turnComplete"
        done = state(host)["turns"][-1]
        assert texts(done) == "Hello from ACP. elicited:decline"
        (call,) = calls(done)
        assert [each["type"] for each in call["content"]] == ["terminal"]
        assert (tmp_path / "out.txt").read_text() == "ONE\n"
