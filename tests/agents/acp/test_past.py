"""Conversations that an agent keeps are in lists, and open with what was said in them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import trio

from actors import past
from actors.past import row_uri
from ahpd.agents.port import AgentFailed
from ahpd.protocol.uris import default_chat
from tests.actors.support import C, S
from tests.agents.acp.support import PATIENCE, at_work, rogue
from tests.agents.acp.test_on_a_host import calls, session, state, texts, turn, until
from tests.harness import FileMedium, PuppetAgent, RawPeer, Refused, RunningHost, running_host

pytestmark = pytest.mark.real_time

OLD = row_uri("rogue", "old-1")


def log(folder: Path) -> list[str]:
    if not (folder / "log").exists():
        return []
    return [json.loads(line).get("method") for line in (folder / "log").read_text().splitlines()]


async def listed(ann: RawPeer) -> dict[str, Any]:
    found = await ann.request("listSessions")
    return {each["resource"]: each for each in found["items"]}


async def look(ann: RawPeer, uri: str = OLD) -> Any:
    """The row, once the agent has been asked."""
    with trio.fail_after(PATIENCE):
        while uri not in (rows := await listed(ann)):
            await trio.sleep(0.01)
        return rows[uri]


async def root(host: RunningHost, name: str = "ann") -> RawPeer:
    peer = await host.peer(name)
    await peer.hello()
    await peer.subscribe("ahp-root://")
    return peer


async def test_a_conversation_from_elsewhere_is_a_row_and_opens_with_its_history(
    tmp_path: Path,
) -> None:
    (tmp_path / "said").write_text("First\nWith calls\n")
    agent = rogue(tmp_path, "lists", "loads", "at-once")
    async with running_host(agent) as host:
        ann = await root(host)
        await listed(ann)
        added = (await ann.expect("root/sessionAdded", PATIENCE))["summary"]
        while added["resource"] != OLD:
            added = (await ann.expect("root/sessionAdded", PATIENCE))["summary"]
        assert added == {
            "resource": OLD,
            "provider": "rogue",
            "title": "Old",
            "status": 33,
            "workingDirectories": [tmp_path.as_uri()],
            "createdAt": "2026-01-02T03:04:05Z",
            "modifiedAt": "2026-01-02T03:04:05Z",
            "defaultChat": default_chat(OLD),
        }
        assert log(tmp_path).count("initialize") == 1
        assert log(tmp_path).count("session/list") == 2, "it has two pages"

        chat = default_chat(OLD)
        snapshot = await ann.subscribe(chat)
        turns = snapshot["state"]["turns"]
        assert [each["message"]["text"] for each in turns] == ["First", "With calls"]
        assert [texts(each) for each in turns] == ["REPLAYED ", "REPLAYED "]
        assert [each["status"] for each in calls(turns[1])] == ["completed"]
        assert state(host, OLD)["lifecycle"] == "ready"

        done = await turn(ann, host, "t3", "hello", chat)
        assert texts(done) == "Hello\u2028you\u0085."
        assert len(state(host, chat)["turns"]) == 3, "nothing is there twice"
        assert log(tmp_path).count("session/new") == 0

        await ann.request("disposeSession", channel=OLD)
        await until(lambda: (tmp_path / "deleted").exists())
        assert (tmp_path / "deleted").read_text() == "old-1"


async def test_a_conversation_of_a_chat_is_no_row_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(past, "AGAIN_AFTER", 0.0)
    agent = rogue(tmp_path, "lists", "loads", name="puppet")
    medium = FileMedium(tmp_path / "journal.db")
    async with session(agent, tmp_path, journal=medium) as (host, ann):
        await turn(ann, host, "t1", "hello")
        await look(ann, row_uri("puppet", "old-1"))
        assert row_uri("puppet", "rogue-1") not in await listed(ann)
        await until(
            lambda: (host.tables.catalogue or {})[S].meta == {"ahpd.conversations": ["rogue-1"]}
        )
        await host.stop()
        await host.start()
        bob = await root(host, "bob")
        await look(bob, row_uri("puppet", "old-1"))
        assert S in host.tables.dormant
        assert row_uri("puppet", "rogue-1") not in await listed(bob)


async def test_one_that_was_opened_is_kept_like_any_other(tmp_path: Path) -> None:
    (tmp_path / "said").write_text("First\n")
    agent = rogue(tmp_path, "lists", "loads", "at-once")
    async with running_host(agent, journal=FileMedium(tmp_path / "journal.db")) as host:
        ann = await root(host)
        await look(ann)
        before = (await ann.subscribe(default_chat(OLD)))["state"]["turns"]
        await host.stop()
        await host.start()
        bob = await root(host, "bob")
        assert (await listed(bob))[OLD]["title"] == "Old"
        assert (await bob.subscribe(default_chat(OLD)))["state"]["turns"] == before
        assert len(before) == 1
        assert log(tmp_path).count("session/load") == 1, "it is the host's own now"
        done = await turn(bob, host, "t2", "hello", default_chat(OLD))
        assert texts(done) == "Hello\u2028you\u0085."
        assert OLD not in host.tables.past


async def test_what_does_not_answer_takes_nothing_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(past, "AGAIN_AFTER", 0.0)
    async with running_host(PuppetAgent(), rogue(tmp_path, "lists", "loads")) as host:
        ann = await root(host)
        await ann.request("createSession", channel=S)
        await look(ann)
        (tmp_path / "list-fails").touch()
        before = log(tmp_path).count("session/list")
        assert {S, OLD} <= (await listed(ann)).keys()
        await until(lambda: log(tmp_path).count("session/list") > before)
        assert {S, OLD} <= (await listed(ann)).keys()
        (tmp_path / "list-fails").unlink()
        (tmp_path / "deleted").touch()
        with trio.fail_after(PATIENCE):
            while OLD in await listed(ann):
                await trio.sleep(0.01)
        removed = await ann.expect("root/sessionRemoved", PATIENCE)
        assert removed["session"] == OLD


async def test_an_agent_that_hangs_delays_no_list(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(past, "LIST_WITHIN", 3)
    agents = (PuppetAgent(), rogue(tmp_path, "lists", "loads", "list-hangs"))
    async with running_host(*agents) as host:
        ann = await root(host)
        await ann.request("createSession", channel=S)
        assert (await listed(ann)).keys() == {S}
        await until(lambda: "session/list" in log(tmp_path))
        assert (await listed(ann)).keys() == {S}


async def test_a_conversation_that_cannot_be_opened_is_refused_and_stays(tmp_path: Path) -> None:
    agent = rogue(tmp_path, "lists", "loads", "load-fails")
    async with running_host(agent) as host:
        ann = await root(host)
        await look(ann)
        for channel in (OLD, default_chat(OLD)):
            with pytest.raises(Refused, match="Resource not found"):
                await ann.subscribe(channel)
        assert OLD in await listed(ann)


async def test_who_keeps_nothing_is_asked_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(past, "AGAIN_AFTER", 0.0)
    agent = rogue(tmp_path, name="puppet")
    async with session(agent, tmp_path) as (host, ann):
        await turn(ann, host, "t1", "hello")
        for _ in range(3):
            await listed(ann)
            await trio.testing.wait_all_tasks_blocked(0.01)
        assert log(tmp_path).count("initialize") == 1
        assert "session/list" not in log(tmp_path)
        assert await agent.conversations() is None


async def test_what_was_begun_here_is_not_from_elsewhere(tmp_path: Path) -> None:
    """An agent may keep conversations in which nothing was said yet."""
    agent = rogue(tmp_path, "lists", "loads")
    names = [each.name for each in await agent.conversations() or ()]
    assert names == ["old-1", "rogue-1"]
    async with at_work(agent, tmp_path):
        assert [each.name for each in await agent.conversations() or ()] == ["old-1"]


async def test_a_disposed_chat_is_deleted_by_an_agent_that_can(tmp_path: Path) -> None:
    agent = rogue(tmp_path, "lists", "loads", name="puppet")
    async with session(agent, tmp_path) as (host, ann):
        await turn(ann, host, "t1", "hello", C)
        await ann.request("disposeSession", channel=S)
        await until(lambda: (tmp_path / "deleted").exists())
        assert (tmp_path / "deleted").read_text() == "rogue-1"
    with pytest.raises(AgentFailed):
        await rogue(tmp_path, "dies").conversations()
