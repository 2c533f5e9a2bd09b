"""Terminals that are gone and that a tool result names can still be read (R-4.33)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import trio

from actors.host import Settings
from actors.retained import KEPT
from ahpd.agents import events as ev
from ahpd.protocol.tools import TerminalCommandResult, ToolResultTerminalContent
from tests.actors.support import C, S, actions, at_work, refused, settled, started, types
from tests.actors.terminals import T2, Bench, T, bench, claim, of_session, typed
from tests.harness import FileMedium, PuppetAgent

OWNED = of_session(S, C)


async def named(it: Bench, uri: str = T, turn: str = "t1", preview: str | None = None) -> None:
    """A tool call of the agent's names a terminal in its result."""
    (agent,) = it.host.agents
    assert isinstance(agent, PuppetAgent)
    await it.ann.dispatch(C, started(turn, "work"))
    puppet = await at_work(agent, turn)
    result = None if preview is None else TerminalCommandResult(exit_code=3, preview=preview)
    content = ToolResultTerminalContent(resource=uri, title="make", is_pty=True, result=result)
    puppet.say(ev.ToolStarted("c1", "shell", "Run"), ev.ToolReady("c1", "Run", None))
    puppet.say(ev.ToolFinished("c1", True, "Ran", (content,)))
    puppet.end(ev.Done())
    await settled()


async def read(it: Bench, uri: str = T) -> Any:
    return (await it.bob.subscribe(uri))["state"]


async def test_it_is_in_no_list_and_reads_as_ended() -> None:
    async with bench() as it:
        await it.shows("out\r\n")
        await named(it)
        before = len(types(it.ann, T))
        await it.ann.request("disposeTerminal", channel=T)
        assert it.process.closed
        assert it.listed() == []
        await it.ann.request("createTerminal", channel=T2, claim=claim())
        assert "terminal/exited" not in types(it.ann, T)[before:], "nobody hears it any more"
        state = await read(it)
        assert state["lifecycle"] == {"status": "exited"}
        assert state["content"] == [{"type": "unclassified", "value": "out\r\n"}]
        assert state["claim"] == OWNED
        assert "ended" in str(await it.why(typed("x"), who=it.bob))
        with refused(-32008):
            await it.ann.request("disposeTerminal", channel=T)


async def test_one_that_no_result_names_is_gone() -> None:
    async with bench() as it:
        await named(it, "ahp-terminal:/another")
        await it.ann.request("disposeTerminal", channel=T)
        with refused(-32008):
            await it.bob.subscribe(T)


@pytest.mark.parametrize("how", ["kill", "stop"])
async def test_it_outlives_the_host_also_when_nobody_has_loaded_the_session(
    how: str, tmp_path: Path
) -> None:
    async with bench(journal=FileMedium(tmp_path / "j.db")) as it:
        await it.shows("out")
        await named(it)
        await it.ann.request("disposeTerminal", channel=T)
        bob = it.bob
        for _ in range(2):
            if how == "kill":
                await it.host.restart()
            else:
                await it.host.stop()
                await it.host.start()
            bob = await it.host.peer("bob")
            await bob.hello()
            assert S in it.host.tables.dormant
            state = (await bob.subscribe(T))["state"]
            assert state["lifecycle"] == {"status": "exited"}
            assert state["content"][0]["value"] == "out"
            assert it.listed() in ([], None)
        await bob.subscribe(S)
        await bob.request("disposeSession", channel=S)
        await settled()
        with refused(-32008):
            await bob.subscribe(T)


async def test_one_left_by_a_host_is_kept_too_when_it_is_disposed_of_later(tmp_path: Path) -> None:
    async with bench(journal=FileMedium(tmp_path / "j.db")) as it:
        await it.ann.dispatch(T, {"type": "terminal/claimed", "claim": OWNED})
        await it.shows("out")
        await named(it)
        await it.host.restart()
        bob = await it.host.peer("bob")
        await bob.hello()
        assert S in it.host.tables.dormant
        await bob.request("disposeTerminal", channel=T)
        assert (await bob.subscribe(T))["state"]["content"][0]["value"] == "out"


async def test_the_name_can_be_used_anew() -> None:
    async with bench() as it:
        await it.shows("old")
        await named(it)
        await it.ann.request("disposeTerminal", channel=T)
        await it.bob.subscribe(T)
        await it.ann.request("createTerminal", channel=T, claim=claim())
        assert (await read(it))["content"] == []
        assert len(it.listed()) == 1


async def test_what_makes_room_is_kept_and_little_of_its_output() -> None:
    async with bench(Settings(terminals=1)) as it:
        await it.shows("x" * (3 * KEPT) + "end")
        await named(it)
        it.process.end(7)
        await settled()
        await it.ann.request("createTerminal", channel=T2, claim=claim())
        state = await read(it)
        assert state["lifecycle"] == {"status": "exited", "exitCode": 7}
        assert state["content"][0]["value"].endswith("xend")
        assert len(state["content"][0]["value"]) <= KEPT + KEPT // 4


async def test_beyond_the_bound_the_oldest_is_what_its_tool_result_says() -> None:
    async with bench(Settings(terminals=1)) as it:
        await it.shows("all of it")
        await named(it, preview="one\ntwo\n")
        await named(it, T2, "t2")
        await it.ann.request("disposeTerminal", channel=T)
        await it.ann.request("createTerminal", channel=T2, claim=claim())
        await it.ann.request("disposeTerminal", channel=T2)
        assert it.host.ledger.find(T) is None
        async with trio.open_nursery() as nursery:
            for peer in (it.ann, it.bob):
                nursery.start_soon(peer.subscribe, T)
        state = await read(it)
        assert state == {
            "title": "make", "isPty": True, "claim": OWNED,
            "content": [{"type": "unclassified", "value": "one\r\ntwo\r\n"}],
            "lifecycle": {"status": "exited", "exitCode": 3},
        }  # fmt: skip
        assert it.listed() == []
        assert it.host.ledger.find(T2) is None, "there is room for one"
        assert (await read(it, T2))["lifecycle"] == {"status": "exited"}


async def test_a_session_that_ends_takes_them_with_it() -> None:
    async with bench() as it:
        await named(it)
        await it.ann.request("disposeTerminal", channel=T)
        await it.ann.request("disposeSession", channel=S)
        await settled()
        assert it.host.ledger.find(T) is None
        assert not [a for a in actions(it.ann, T) if a["type"] == "terminal/data"]
