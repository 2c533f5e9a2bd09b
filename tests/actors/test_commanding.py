"""Messages that are commands: run on a terminal, folded into the turn, and no model is asked."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import trio

from actors.host import Settings
from ahpd.protocol.uris import ROOT
from ahpd.terminals.port import Fault, SpawnFailed
from tests.actors.support import C, S, at_work, cancelled, ending, pending, room, settled, started
from tests.actors.terminals import Bench, claimed, of_session
from tests.harness import (
    FileMedium,
    Medium,
    PuppetAgent,
    PuppetTerminals,
    running_host,
)


@asynccontextmanager
async def bench(journal: Medium | None = None) -> AsyncIterator[Bench]:
    """A host on which Ann has a session, and no terminal."""
    terminals = PuppetTerminals()
    settings = Settings(served=("file:///w",))
    async with running_host(terminals=terminals, settings=settings, journal=journal) as host:
        ann, bob = await room(host), await room(host, "bob")
        yield Bench(host, ann, bob, terminals)


def calls(it: Bench) -> list[Any]:
    chat = it.state(C)
    turn = chat.get("activeTurn") or chat["turns"][-1]
    return [part["toolCall"] for part in turn["responseParts"] if part["kind"] == "toolCall"]


async def running(it: Bench, command: str = "!make", turn: str = "t1") -> str:
    """A command runs; the URI of its terminal."""
    await it.ann.dispatch(C, started(turn, command))
    await settled()
    (call,) = calls(it)
    return str(call["content"][0]["resource"])


async def test_the_prefix_is_advertised_where_there_are_terminals() -> None:
    async with bench() as it:
        result = await (await it.host.peer("eve")).hello()
        assert result["terminalCommandPrefix"] == "!"


async def test_a_command_is_run_in_the_folder_and_folded_into_the_turn() -> None:
    async with bench() as it:
        uri = await running(it, "!make  all ")
        spawn = it.process.spawn
        assert (spawn.command, spawn.cwd) == ("make  all", "/w")
        busy = of_session(S, C, turnId="t1", toolCallId="command")
        assert it.state(uri)["claim"] == busy
        assert [each["claim"] for each in it.listed()] == [busy]
        (call,) = calls(it)
        assert call["status"] == "running"
        assert call["toolInput"] == "make  all"
        it.process.say("\x1b[1mone\x1b[0m\r\n", "two\r\n")
        it.process.end(2)
        assert (await ending(it.ann, "t1"))["type"] == "chat/turnComplete"
        (call,) = calls(it)
        assert (call["status"], call["success"]) == ("completed", False)
        terminal, text = call["content"]
        assert terminal == {
            "type": "terminal", "resource": uri, "title": "make  all", "isPty": True,
            "result": {"exitCode": 2, "preview": "one\ntwo\n"},
        }  # fmt: skip
        assert text == {"type": "text", "text": "one\ntwo\n"}
        assert (await it.bob.subscribe(uri))["state"]["lifecycle"] == {
            "status": "exited", "exitCode": 2,
        }  # fmt: skip
        assert it.state(uri)["claim"] == of_session(S, C), "R-12.5"
        assert all(not puppet.prompts for puppet in _agent(it).of.values())


def _agent(it: Bench) -> PuppetAgent:
    (agent,) = it.host.agents
    assert isinstance(agent, PuppetAgent)
    return agent


async def test_long_output_is_folded_with_its_end() -> None:
    async with bench() as it:
        await running(it)
        it.process.say("x" * 50_000 + "end")
        it.process.end(0)
        await ending(it.ann, "t1")
        (call,) = calls(it)
        assert call["success"] is True
        result = call["content"][0]["result"]
        assert result["truncated"] is True
        assert result["preview"].endswith("xend")
        assert len(result["preview"]) == 16 << 10


async def test_the_next_message_is_the_agents_again() -> None:
    async with bench() as it:
        await running(it)
        await it.ann.dispatch(C, pending("m1", text="and now?"))
        await it.ann.dispatch(C, pending("m2", text="!ls"))
        it.process.end(0)
        await settled()
        puppet = _agent(it).of[C]
        assert puppet.prompted is not None
        assert puppet.prompted.message.text == "and now?"
        assert len(it.terminals.started) == 1


async def test_a_command_is_never_given_to_an_agent_that_takes_steering() -> None:
    async with bench() as it:
        await it.ann.dispatch(C, started("t1", "work"))
        puppet = await at_work(_agent(it), "t1")
        await it.ann.dispatch(C, pending("m1", "steering", "!ls"))
        await settled()
        assert not puppet.steered
        assert it.process.spawn.command == "ls"


async def test_a_cancel_interrupts_it_and_then_ends_it() -> None:
    async with bench() as it:
        uri = await running(it)
        await it.ann.dispatch(C, cancelled("t1"))
        await settled()
        assert it.process.typed == b"\x03"
        assert not it.process.closed
        await trio.sleep(3)
        assert it.process.closed
        assert it.state(uri)["lifecycle"]["status"] == "exited"
        await running(it, "!again", "t2")
        it.process.end(0)
        await ending(it.ann, "t2")


async def test_what_ends_by_the_interrupt_keeps_its_code() -> None:
    async with bench() as it:
        uri = await running(it)
        await it.ann.dispatch(C, cancelled("t1"))
        await settled()
        it.process.end(130)
        await trio.sleep(3)
        assert it.state(uri)["lifecycle"]["exitCode"] == 130


async def test_one_that_fills_the_screen_does_not_hold_the_turn() -> None:
    async with bench() as it:
        uri = await running(it, "!vim")
        it.process.say("\x1b[?10", "49hfull")
        assert (await ending(it.ann, "t1"))["type"] == "chat/turnComplete"
        (call,) = calls(it)
        assert "goes on" in call["pastTenseMessage"]
        assert it.state(uri)["lifecycle"] == {"status": "running"}
        assert it.state(uri)["claim"] == of_session(S, C)
        assert not it.process.closed


async def test_a_client_that_narrows_the_claim_lets_the_turn_go_on() -> None:
    async with bench() as it:
        uri = await running(it, "!serve")
        await it.bob.subscribe(uri)
        await it.bob.dispatch(uri, claimed(of_session(S, C)))
        assert (await ending(it.ann, "t1"))["type"] == "chat/turnComplete"
        assert not it.process.closed


async def test_one_that_is_disposed_of_ends_the_turn() -> None:
    async with bench() as it:
        uri = await running(it)
        await it.bob.request("disposeTerminal", channel=uri)
        assert (await ending(it.ann, "t1"))["type"] == "chat/turnComplete"


async def test_one_that_cannot_be_started_fails_the_turn() -> None:
    async with bench() as it:
        it.terminals.fails = SpawnFailed("there is no folder /w", Fault.NOT_FOUND)
        await it.ann.dispatch(C, started("t1", "!ls"))
        assert (await ending(it.ann, "t1"))["type"] == "chat/error"
        assert it.listed() in (None, [])


async def test_nothing_to_run_fails_the_turn() -> None:
    async with bench() as it:
        await it.ann.dispatch(C, started("t1", "! "))
        assert (await ending(it.ann, "t1"))["type"] == "chat/error"
        assert it.terminals.started == []


async def test_without_terminals_it_is_an_ordinary_message() -> None:
    agent = PuppetAgent()
    async with running_host(agent) as host:
        ann = await room(host)
        await ann.dispatch(C, started("t1", "!ls"))
        assert (await at_work(agent, "t1")).prompted is not None


async def test_the_session_takes_the_terminals_of_its_commands_with_it() -> None:
    async with bench() as it:
        await running(it)
        await it.ann.request("disposeSession", channel=S)
        await settled()
        assert it.process.closed
        assert it.host.ledger.state_of(ROOT, "root").terminals == ()


async def test_a_restart_ends_the_turn_and_does_not_run_it_again(tmp_path: Path) -> None:
    async with bench(FileMedium(tmp_path / "j.db")) as it:
        uri = await running(it)
        it.process.say("half")
        await settled()
        await it.host.restart()
        ann = await room(it.host, "ann", subscribe=(C,))
        await settled()
        chat = it.state(C)
        assert chat.get("activeTurn") is None
        assert chat["turns"][-1]["state"] == "error"
        assert (await ann.subscribe(uri))["state"]["content"][0]["value"] == "half"
        await ann.dispatch(C, {"type": "chat/turnResume", "turnId": "t1"})
        await settled()
        assert len(it.terminals.started) == 1
