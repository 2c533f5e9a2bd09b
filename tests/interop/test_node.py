"""Agents on the official JavaScript SDK: one of this project's, and the SDK's own example."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import trio
from msgspec import structs

from ahpd.agents.acp.agent import AcpAgent, Options
from ahpd.protocol.uris import default_chat
from ahpd.resources.files import FileResources
from ahpd.terminals.pty import PtyTerminals
from tests.actors.support import S2, C, S, approved, cancelled, denied, ending, started
from tests.agents.acp.support import PATIENCE
from tests.agents.acp.test_on_a_host import calls, session, state, texts, turn, until
from tests.agents.acp.test_services import plain_shell
from tests.agents.acp.test_settings import again
from tests.harness import RawPeer, RunningHost
from tests.interop.peers import example_agent, node_agent, node_modules

__all__ = ["plain_shell"]

pytestmark = pytest.mark.real_time

EXAMPLE_SAYS = (
    "I'll help you with that. Let me start by reading some files to understand the current"
    " situation."
)


@pytest.fixture(scope="session")
def modules() -> Path:
    return node_modules()


@pytest.fixture
def agent(tmp_path: Path, modules: Path) -> AcpAgent:
    folder, home = tmp_path / "agent", tmp_path / "home"
    folder.mkdir()
    home.mkdir()
    command = ("node", str(node_agent(folder, modules)))
    return AcpAgent("puppet", command, {"NODE_AGENT_HOME": str(home)}, "1")


async def test_a_whole_turn(agent: AcpAgent, tmp_path: Path) -> None:
    async with session(agent, tmp_path) as (host, ann):
        await ann.dispatch(C, started("t1", "all of it"))
        await ann.expect_action("chat/toolCallReady", PATIENCE)
        (waiting,) = calls(state(host)["activeTurn"])
        (edit,) = waiting["edits"]["items"]
        assert edit["after"]["uri"] == (tmp_path / "a.txt").as_uri()
        assert edit["diff"] == {"added": 1, "removed": 0}
        assert state(host)["activity"] == "a"
        await ann.dispatch(C, approved("t1", "c1"))
        assert (await ending(ann, "t1", PATIENCE))["type"] == "chat/turnComplete"
        done = state(host)["turns"][-1]
        assert texts(done) == "Hello from node."
        assert [part["content"] for part in done["responseParts"] if part["kind"] == "reasoning"]
        (call,) = calls(done)
        assert call["success"]
        assert call["content"] == [{"type": "text", "text": "picked y"}], "once, not always"
        assert (tmp_path / "a.txt").read_text() == "hi\n"
        assert done["usage"]["inputTokens"] == 1
        assert done["usage"]["_meta"]["ahpd.cost"] == {"amount": 0.1, "currency": "USD"}
        assert state(host, S)["title"] == "all of it"
        names = [
            each["name"]
            for group in state(host, S)["customizations"]
            for each in group.get("children", [group])
        ]
        assert "early" in names, "it was said before the session was"

        await ann.dispatch(C, started("t2", "perm"))
        await ann.expect_action("chat/toolCallReady", PATIENCE)
        await ann.dispatch(C, denied("t2", "c1"))
        assert (await ending(ann, "t2", PATIENCE))["type"] == "chat/turnComplete"
        assert [each["status"] for each in calls(state(host)["turns"][-1])] == ["cancelled"]

        await ann.dispatch(C, started("t3", "wait"))
        await until(lambda: _says(host, "Hello from node."))
        await ann.dispatch(C, cancelled("t3"))
        assert (await ending(ann, "t3", PATIENCE))["type"] == "chat/turnCancelled"


async def test_what_it_may_say(agent: AcpAgent, tmp_path: Path) -> None:
    async with session(agent, tmp_path) as (host, ann):
        done = await turn(ann, host, "t1", "notice compact messages plan")
        said = [part["content"] for part in done["responseParts"] if "content" in part]
        assert "careful: d" in said
        assert texts(done) == "Hello from node.\n\nOne\n\nTwo"
        many = texts(await turn(ann, host, "t2", "many"))
        assert many == "Hello from node." + "".join(f"{number} " for number in range(2000))
        assert len(texts(await turn(ann, host, "t3", "big"))) == 3_000_000 + len("Hello from node.")
        await ann.dispatch(C, started("t4", "fail"))
        failed = await ending(ann, "t4", PATIENCE)
        assert "scripted failure" in failed["part"]["error"]["message"]


async def test_a_process_that_dies_and_another_that_loads(agent: AcpAgent, tmp_path: Path) -> None:
    async with session(agent, tmp_path) as (host, ann):
        await turn(ann, host, "t1", "hello")
        await ann.dispatch(C, started("t2", "die"))
        failed = await ending(ann, "t2", PATIENCE)
        message = failed["part"]["error"]["message"]
        assert message.startswith("the agent ended with exit code 3")
        assert message.endswith("\ndying")
        assert texts(await turn(ann, host, "t3", "hello")) == "Hello from node."
        assert [each["id"] for each in state(host)["turns"]] == ["t1", "t2", "t3"]
        (kept,) = (tmp_path / "home").glob("*.json")
        assert kept.read_text().count('"hello"') == 2, "it is the same conversation"


@pytest.mark.usefixtures("plain_shell")
async def test_what_the_host_does_for_it(agent: AcpAgent, tmp_path: Path) -> None:
    """Files and commands, as the SDK has agents ask for them."""
    (tmp_path / "in.txt").write_text("one\ntwo\nthree\n")
    agent = structs.replace(agent, options=Options(files=True))
    served: Any = {"terminals": PtyTerminals(), "resources": FileResources()}
    async with session(agent, tmp_path, **served) as (host, ann):
        done = await turn(ann, host, "t1", "fs term")
        assert (tmp_path / "out.txt").read_text() == "ONE\nTWO\n"
        assert texts(done) == "Hello from node. ran: hi 1"
        (call,) = calls(done)
        (shown,) = call["content"]
        assert (shown["type"], shown["result"]) == (
            "terminal",
            {"exitCode": 0, "preview": "hi 1\n"},
        )
        assert state(host, shown["resource"])["lifecycle"]["status"] == "exited"


async def test_what_it_asks_and_its_sub_agent(agent: AcpAgent, tmp_path: Path) -> None:
    async with session(agent, tmp_path) as (host, ann):
        await ann.dispatch(C, started("t1", "elicit url sub"))
        request = (await ann.expect_action("chat/inputRequested", PATIENCE))["action"]["request"]
        kinds = {each["id"]: each["kind"] for each in request["questions"]}
        assert kinds == {"name": "text", "n": "integer", "tags": "multi-select"}
        answers = {
            "name": {"state": "submitted", "value": {"kind": "text", "value": "Ann"}},
            "tags": {"state": "submitted", "value": {"kind": "selected-many", "value": ["b"]}},
        }
        completed = {"type": "chat/inputCompleted", "requestId": request["id"]}
        await ann.dispatch(C, {**completed, "response": "accept", "answers": answers})
        request = (await ann.expect_action("chat/inputRequested", PATIENCE))["action"]["request"]
        assert request["url"] == "https://example.invalid/x"
        completed = {"type": "chat/inputCompleted", "requestId": request["id"]}
        await ann.dispatch(C, {**completed, "response": "accept"})
        assert (await ending(ann, "t1", PATIENCE))["type"] == "chat/turnComplete"
        done = state(host)["turns"][-1]
        told = '{"action":"accept","content":{"name":"Ann","tags":["b"]}}'
        assert texts(done) == f"Hello from node. {told}"
        (call,) = calls(done)
        assert (call["displayName"], call["success"]) == ("child", True)
        (link,) = (each for each in call["content"] if each["type"] == "subagent")
        assert texts(state(host, link["resource"])["turns"][-1]) == "from child"


async def test_what_can_be_set(agent: AcpAgent, tmp_path: Path) -> None:
    async with session(agent, tmp_path) as (host, ann):
        uri, chat = await again(ann, host, tmp_path, model="big")
        config = state(host, uri)["config"]
        assert config["values"] == {"model": "big", "think": False}
        change = {"type": "session/configChanged", "config": {"think": True}}
        await ann.answered(await ann.dispatch(uri, change), PATIENCE)
        await ann.subscribe(chat)
        assert texts(await turn(ann, host, "t1", "hello", chat)) == "Hello from node."
        kept = [each.read_text() for each in (tmp_path / "home").glob("*.json")]
        assert any('"model":"big"' in each and '"think":true' in each for each in kept)


def _says(host: RunningHost, text: str) -> bool:
    running = state(host).get("activeTurn")
    return running is not None and texts(running) == text


# ---- the example, untouched ----------------------------------------------------------------------


@asynccontextmanager
async def two_sessions(modules: Path, folder: Path) -> AsyncIterator[tuple[RunningHost, RawPeer]]:
    """Two sessions with the example; its turns take five seconds, most of which it sleeps."""
    agent = AcpAgent("puppet", example_agent(modules), {}, "1")
    async with session(agent, folder) as (host, ann):
        await ann.request("createSession", channel=S2, workingDirectories=[folder.as_uri()])
        await ann.subscribe(default_chat(S2))
        await until(lambda: state(host, S2)["lifecycle"] != "creating")
        yield host, ann


async def test_the_example(modules: Path, tmp_path: Path) -> None:
    async with two_sessions(modules, tmp_path) as (host, ann):

        async def play(chat: str, turn_id: str, decision: Any) -> None:
            await ann.dispatch(chat, started(turn_id, "Hello"))
            await until(lambda: _waits(host, chat))
            await ann.dispatch(chat, decision(turn_id, "call_2"))
            await until(lambda: "activeTurn" not in state(host, chat))

        async with trio.open_nursery() as nursery:
            nursery.start_soon(play, C, "yes", approved)
            nursery.start_soon(play, default_chat(S2), "no", denied)
        (allowed,) = state(host)["turns"]
        assert allowed["state"] == "complete"
        assert texts(allowed).startswith(EXAMPLE_SAYS)
        assert texts(allowed).endswith("The changes have been applied.")
        assert [each["status"] for each in calls(allowed)] == ["completed", "completed"]
        (refused,) = state(host, default_chat(S2))["turns"]
        assert refused["state"] == "complete"
        # The example leaves the refused call pending for ever.
        assert [each["status"] for each in calls(refused)] == ["completed", "cancelled"]

        await ann.dispatch(C, started("t2", "Hello"))
        await until(lambda: _says(host, EXAMPLE_SAYS))
        await ann.dispatch(C, cancelled("t2"))
        assert (await ending(ann, "t2", PATIENCE))["type"] == "chat/turnCancelled"


def _waits(host: RunningHost, chat: str) -> bool:
    running = state(host, chat).get("activeTurn")
    return running is not None and any(
        each["status"] == "pending-confirmation" for each in calls(running)
    )
