"""An agent that misbehaves, as the people see it who share a session with it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import trio

from actors.host import Settings
from ahpd.agents.port import Agent
from tests.actors.support import C, S, approved, cancelled, denied, ending, room, started
from tests.agents.acp.support import PATIENCE, rogue
from tests.harness import RawPeer, RunningHost, running_host

pytestmark = pytest.mark.real_time


@asynccontextmanager
async def session(
    agent: Agent, folder: Path, settings: Settings | None = None, **served: Any
) -> AsyncIterator[tuple[RunningHost, RawPeer]]:
    """A host with a session in a folder, and Ann, who is in it; `served`: terminals, resources."""
    async with running_host(agent, settings=settings, **served) as host:
        maker = await host.peer("maker")
        await maker.hello()
        await maker.request("createSession", channel=S, workingDirectories=[folder.as_uri()])
        ann = await room(host)
        await until(lambda: state(host, S)["lifecycle"] != "creating")
        yield host, ann


def state(host: RunningHost, uri: str = C) -> Any:
    channel = host.ledger.find(uri)
    assert channel is not None
    return channel.state.wire()


async def until(holds: Any) -> None:
    with trio.fail_after(PATIENCE):
        while not holds():
            await trio.sleep(0.01)


def texts(turn: Any) -> str:
    return "".join(part["content"] for part in turn["responseParts"] if part["kind"] == "markdown")


def calls(turn: Any) -> list[Any]:
    return [part["toolCall"] for part in turn["responseParts"] if part["kind"] == "toolCall"]


async def turn(ann: RawPeer, host: RunningHost, turn_id: str, text: str, chat: str = C) -> Any:
    """A whole turn, and what is left of it."""
    await ann.dispatch(chat, started(turn_id, text))
    await ending(ann, turn_id, PATIENCE)
    return state(host, chat)["turns"][-1]


async def test_a_turn_with_a_call_that_somebody_allows(tmp_path: Path) -> None:
    async with session(rogue(tmp_path, name="puppet"), tmp_path) as (host, ann):
        await ann.dispatch(C, started("t1", "usual"))
        await ann.expect_action("chat/toolCallReady", PATIENCE)
        (waiting,) = calls(state(host)["activeTurn"])
        assert waiting["status"] == "pending-confirmation"
        assert len(waiting["edits"]["items"]) == 1
        await ann.dispatch(C, approved("t1", "c1", selectedOptionId="yes"))
        assert (await ending(ann, "t1", PATIENCE))["type"] == "chat/turnComplete"
        done = state(host)["turns"][-1]
        assert texts(done) == "chose yes"
        (call,) = calls(done)
        assert (call["status"], call["success"]) == ("completed", True)
        assert [each["type"] for each in call["content"]] == ["fileEdit", "text"]
        assert done["usage"]["inputTokens"] == 3


async def test_a_call_that_somebody_denies(tmp_path: Path) -> None:
    async with session(rogue(tmp_path, name="puppet"), tmp_path) as (host, ann):
        await ann.dispatch(C, started("t1", "usual"))
        await ann.expect_action("chat/toolCallReady", PATIENCE)
        await ann.dispatch(C, denied("t1", "c1"))
        assert (await ending(ann, "t1", PATIENCE))["type"] == "chat/turnComplete"
        done = state(host)["turns"][-1]
        assert texts(done) == "chose no"
        assert [(each["status"], each["reason"]) for each in calls(done)] == [
            ("cancelled", "denied")
        ]


async def test_what_is_left_open_is_over_with_the_turn(tmp_path: Path) -> None:
    async with session(rogue(tmp_path, name="puppet"), tmp_path) as (host, ann):
        done = await turn(ann, host, "t1", "open after")
        told = {each["toolCallId"]: each for each in calls(done)}
        assert told["running"]["success"] is False
        assert told["waiting"]["status"] == "cancelled"
        assert texts(await turn(ann, host, "t2", "hello")) == "Hello\u2028you\u0085."


async def test_output_that_grows_is_not_sent_again_and_again(tmp_path: Path) -> None:
    async with session(rogue(tmp_path, name="puppet"), tmp_path) as (host, ann):
        done = await turn(ann, host, "t1", "grows")
        (call,) = calls(done)
        assert call["content"] == [{"type": "text", "text": "x" * 199}]


async def test_a_crash_ends_the_turn_once_and_the_next_one_goes_on(tmp_path: Path) -> None:
    async with session(rogue(tmp_path, "loads", name="puppet"), tmp_path) as (host, ann):
        await turn(ann, host, "t1", "hello")
        await ann.dispatch(C, started("t2", "hello open die"))
        ended = await ending(ann, "t2", PATIENCE)
        assert ended["type"] == "chat/error"
        assert "exit code 3; it said last:\n" in ended["part"]["error"]["message"]
        done = await turn(ann, host, "t3", "hello")
        assert texts(done) == "Hello\u2028you\u0085.", "nothing is said again"
        assert [each["id"] for each in state(host)["turns"]] == ["t1", "t2", "t3"]
        assert all(
            each["status"] in ("completed", "cancelled") for each in calls(state(host)["turns"][1])
        )


async def test_a_crash_with_everything_open_leaves_nothing_open(tmp_path: Path) -> None:
    async with session(rogue(tmp_path, "loads", name="puppet"), tmp_path) as (host, ann):
        await ann.dispatch(C, started("t1", "open killed"))
        await ann.expect_action("chat/inputRequested", PATIENCE)
        assert len(state(host, S)["inputNeeded"]) == 2
        ended = await ending(ann, "t1", PATIENCE)
        assert ended["part"]["error"]["message"] == "the agent was ended by signal 9"
        assert {each["status"] for each in calls(state(host)["turns"][0])} == {"cancelled"}
        await until(lambda: "inputNeeded" not in state(host, S))
        assert state(host)["status"] & 8 == 0
        assert texts(await turn(ann, host, "t2", "hello")) == "Hello\u2028you\u0085."


@pytest.mark.parametrize("words", ["wait late", "hello hang"])
async def test_nothing_of_a_cancelled_turn_is_in_the_next(words: str, tmp_path: Path) -> None:
    settings = Settings(cancel_within=0.5)
    async with session(rogue(tmp_path, "loads", name="puppet"), tmp_path, settings) as (host, ann):
        await ann.dispatch(C, started("t1", words))
        await until(lambda: "session/prompt" in (tmp_path / "log").read_text())
        await ann.dispatch(C, cancelled("t1"))
        await ann.dispatch(C, cancelled("t1"))
        done = await turn(ann, host, "t2", "hello")
        assert texts(done) == "Hello\u2028you\u0085."
        assert calls(done) == []
        assert (tmp_path / "log").read_text().count("session/cancel") <= 1


@pytest.mark.parametrize(
    ("start", "told"),
    [("dies", "no key\nno key"), ("needs-auth", "Its ways to sign in: Browser (opens a page).")],
)
async def test_a_session_whose_agent_does_not_start(start: str, told: str, tmp_path: Path) -> None:
    async with session(rogue(tmp_path, start, name="puppet"), tmp_path) as (host, _):
        made = state(host, S)
        assert made["lifecycle"] == "failed"
        assert made["creationError"]["message"].endswith(told)


async def test_what_an_agent_offers_is_the_sessions(tmp_path: Path) -> None:
    async with session(rogue(tmp_path, "early", name="puppet"), tmp_path) as (host, ann):
        await turn(ann, host, "t1", "odd")
        made = state(host, S)
        assert made["title"] == "A title"
        assert made["_meta"]["ahpd.mode"] == "code"
