"""Commands in the shell of a session: it is kept, used while it is free, and else left alone."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import trio

from actors.beside import ran_beside
from actors.commanding import SHELL_WITHIN, TYPED_WITHIN
from actors.host import Settings
from ahpd.agents import events as ev
from ahpd.agents.port import Ran, Released
from ahpd.terminals.port import CommandBegan, CommandEnded, Detected, Prompted
from tests.actors.support import (
    C2,
    C,
    S,
    at_work,
    cancelled,
    ending,
    refused,
    room,
    settled,
    started,
    types,
)
from tests.actors.terminals import Bench, T, claimed, of_session, typed
from tests.harness import FileMedium, Medium, PuppetAgent, PuppetTerminals, running_host

PROMPT = (Prompted(), "\x1b[?2004h$ ")


@asynccontextmanager
async def bench(journal: Medium | None = None) -> AsyncIterator[Bench]:
    """A host whose shells tell of their commands; Ann and Bob are in a session."""
    terminals = PuppetTerminals(told=True)
    settings = Settings(served=("file:///w",))
    async with running_host(terminals=terminals, settings=settings, journal=journal) as host:
        ann, bob = await room(host), await room(host, "bob")
        yield Bench(host, ann, bob, terminals)


def calls(it: Bench, chat: str = C) -> list[Any]:
    state = it.state(chat)
    turn = state.get("activeTurn") or state["turns"][-1]
    return [part["toolCall"] for part in turn["responseParts"] if part["kind"] == "toolCall"]


async def comes_up(it: Bench) -> None:
    await settled()
    it.process.say(Detected(), *PROMPT)
    await trio.sleep(1)


async def given(it: Bench, command: str, turn: str, chat: str = C) -> str:
    """Ann gives a command; the URI of the terminal when it was typed."""
    if it.terminals.started:
        it.process.typed = b""
    before = len(it.terminals.started)
    await it.ann.dispatch(chat, started(turn, command))
    await settled()
    if len(it.terminals.started) > before:
        await comes_up(it)
    await settled()
    return str(calls(it, chat)[0]["content"][0]["resource"])


async def runs(it: Bench, line: str, output: str, code: int | None = 0) -> None:
    it.process.say(f"{line}\r\n\x1b[?2004l", CommandBegan(line), output)
    await settled()
    it.process.say(CommandEnded(code), *PROMPT)
    await settled()


def keys(command: str) -> bytes:
    return f"\x15\x1b[200~{command}\x1b[201~\r".encode()


async def test_one_shell_runs_them_all_and_each_is_folded_by_itself() -> None:
    async with bench() as it:
        uri = await given(it, "!cd /usr", "t1")
        assert it.process.spawn.command is None
        assert it.process.spawn.cwd == "/w"
        assert it.process.typed == keys("cd /usr")
        assert it.state(uri)["claim"] == of_session(S, C, turnId="t1", toolCallId="command")
        await runs(it, "cd /usr", "")
        assert (await ending(it.ann, "t1"))["type"] == "chat/turnComplete"
        assert it.state(uri)["claim"] == of_session(S, C), "R-12.5"
        assert await given(it, "!make", "t2") == uri
        assert it.process.typed == keys("make")
        await runs(it, "make", "\x1b[1mone\x1b[0m\r\ntwo\r\n", 2)
        await ending(it.ann, "t2")
        (call,) = calls(it)
        assert call["success"] is False
        assert call["pastTenseMessage"] == "Ran make: exit code 2"
        assert call["content"][0]["result"] == {"exitCode": 2, "preview": "one\ntwo\n"}
        assert len(it.terminals.started) == 1
        assert it.state(uri)["lifecycle"] == {"status": "running"}


async def test_lines_of_several_commands_are_one_command() -> None:
    async with bench() as it:
        await given(it, "!a\nb", "t1")
        assert it.process.typed == keys("a\nb")
        it.process.say(CommandBegan("a"), "A\r\n", CommandBegan("b"), "B\r\n")
        await settled()
        assert it.state(C).get("activeTurn") is not None, "the shell is not at its prompt"
        it.process.say(CommandEnded(4), *PROMPT)
        await ending(it.ann, "t1")
        assert calls(it)[0]["content"][0]["result"] == {"exitCode": 4, "preview": "A\nB\n"}


@pytest.mark.parametrize("how", ["runs something", "somebody typed", "screen", "ended"])
async def test_a_shell_that_is_not_free_is_left_alone(how: str) -> None:
    async with bench() as it:
        uri = await given(it, "!vim", "t1")
        first = it.process
        if how == "screen":
            first.say(CommandBegan("vim"), "\x1b[?1049h")
        else:
            await runs(it, "vim", "")
        await ending(it.ann, "t1")
        match how:
            case "runs something":
                first.say(CommandBegan("sleep"))
            case "somebody typed":
                await it.bob.subscribe(uri)
                await it.bob.dispatch(uri, typed("ls"))
            case "ended":
                first.end(0)
        await settled()
        before = first.typed
        assert await given(it, "!ls", "t2") != uri
        assert first.typed in (before, b"")
        await runs(it, "ls", "f\r\n")
        await ending(it.ann, "t2")
        assert calls(it)[0]["content"][0]["result"]["preview"] == "f\n"
        assert it.state(uri)["claim"] == of_session(S, C)


async def test_it_is_free_again_when_its_program_is_over() -> None:
    async with bench() as it:
        uri = await given(it, "!vim", "t1")
        it.process.say(CommandBegan("vim"), "\x1b[?1049h")
        await ending(it.ann, "t1")
        assert "fills the screen, and goes on" in calls(it)[0]["pastTenseMessage"]
        it.process.say("\x1b[?1049l", CommandEnded(0), *PROMPT)
        await settled()
        assert await given(it, "!ls", "t2") == uri


async def test_one_that_waits_for_somebody_to_type_does_not_hold_the_turn() -> None:
    async with bench() as it:
        uri = await given(it, "!read x", "t1")
        it.process.say(CommandBegan("read x"))
        await trio.sleep(5)
        assert it.state(C).get("activeTurn") is not None
        it.process.reads = True
        await trio.sleep(TYPED_WITHIN - 2)
        it.process.say("Password: ")
        await trio.sleep(TYPED_WITHIN - 2)
        assert it.state(C).get("activeTurn") is not None, "it said something"
        await trio.sleep(5)
        assert it.state(C).get("activeTurn") is None
        assert "waits for somebody to type" in calls(it)[0]["pastTenseMessage"]
        assert it.state(uri)["claim"] == of_session(S, C)
        assert not it.process.closed


async def test_a_cancel_frees_the_shell_or_ends_it() -> None:
    async with bench() as it:
        uri = await given(it, "!make", "t1")
        it.process.say(CommandBegan("make"))
        await settled()
        await it.ann.dispatch(C, cancelled("t1"))
        await settled()
        assert it.process.typed.endswith(b"\x03")
        it.process.say(CommandEnded(130), *PROMPT)
        await settled()
        assert await given(it, "!again", "t2") == uri
        it.process.say(CommandBegan("again"))
        await settled()
        await it.ann.dispatch(C, cancelled("t2"))
        await trio.sleep(5)
        assert it.process.closed
        assert await given(it, "!more", "t3") != uri


async def test_what_the_shell_does_not_run_is_told() -> None:
    async with bench() as it:
        uri = await given(it, "!echo )", "t1")
        it.process.say("echo )\r\nsyntax error\r\n", *PROMPT)
        await ending(it.ann, "t1")
        (call,) = calls(it)
        assert call["success"] is False
        assert "was not run" in call["pastTenseMessage"]
        assert "syntax error" in call["content"][1]["text"]
        assert await given(it, "!ls", "t2") == uri


async def test_a_line_that_is_not_whole_is_taken_back() -> None:
    async with bench() as it:
        uri = await given(it, '!echo "', "t1")
        it.process.say("> ")
        while not it.process.typed.endswith(b"\x03"):
            await trio.sleep(0.1)
        it.process.say(*PROMPT)
        await ending(it.ann, "t1")
        assert "waits for the rest" in calls(it)[0]["pastTenseMessage"]
        assert await given(it, "!ls", "t2") == uri


async def test_what_ends_the_shell_has_its_code() -> None:
    async with bench() as it:
        await given(it, "!exit 3", "t1")
        it.process.say(CommandBegan("exit 3"))
        it.process.end(3)
        await ending(it.ann, "t1")
        assert calls(it)[0]["content"][0]["result"] == {"exitCode": 3, "preview": ""}


async def test_without_marks_or_for_what_cannot_be_typed_it_gets_a_terminal_of_its_own() -> None:
    async with bench() as it:
        await it.ann.dispatch(C, started("t1", "!ls"))
        await trio.sleep(SHELL_WITHIN + 2)
        silent, own = it.terminals.started
        assert silent.closed
        assert own.spawn.command == "ls"
        own.end(0)
        await ending(it.ann, "t1")
        await it.ann.dispatch(C, started("t2", "!printf \x1b[201~"))
        await settled()
        assert it.process.spawn.command == "printf \x1b[201~"
        it.process.end(0)
        await ending(it.ann, "t2")
        await it.ann.dispatch(C, started("t3", "!pwd"))
        await settled()  # at once: that the shell tells nothing is known
        assert it.process.spawn.command == "pwd"
        it.process.end(0)
        await ending(it.ann, "t3")


async def test_a_shell_without_pasting_gets_a_plain_line() -> None:
    async with bench() as it:
        await it.ann.dispatch(C, started("t1", "!ls"))
        await settled()
        it.process.say(Detected(), Prompted(), "$ ")
        await trio.sleep(1)
        assert it.process.typed == b"\x15ls\r"


async def test_a_cancel_while_the_shell_comes_up_ends_it() -> None:
    async with bench() as it:
        await it.ann.dispatch(C, started("t1", "!ls"))
        await settled()
        await it.ann.dispatch(C, cancelled("t1"))
        await trio.sleep(5)
        assert it.process.closed
        assert b"ls" not in it.process.typed


@pytest.mark.parametrize("after", [0.0, 0.5, 1.0])
async def test_a_session_that_goes_while_its_shell_is_started_takes_it_along(after: float) -> None:
    async with bench() as it:
        it.terminals.takes = 1.0
        await it.ann.dispatch(C, started("t1", "!ls"))
        await trio.sleep(after)
        await it.ann.request("disposeSession", channel=S)
        await trio.sleep(15)
        assert all(each.closed for each in it.terminals.started)
        assert not it.listed()
        assert not [each for each in it.host.ledger.channels.values() if each.kind == "terminal"]
        assert not it.host.system.supervisor("terminals").which_children()


async def test_a_terminal_for_a_session_that_goes_meanwhile_is_refused() -> None:
    async with bench() as it:
        it.terminals.takes = 1.0
        call = await it.bob.call("createTerminal", channel=T, claim=of_session(S, C))
        await trio.sleep(0.5)
        await it.ann.request("disposeSession", channel=S)
        with refused(-32008, "is gone"):
            await it.bob.answer_to(call)
        await settled()
        assert [each.closed for each in it.terminals.started] == [True]
        assert it.host.ledger.find(T) is None


async def test_chats_of_a_session_share_it_and_commands_at_once_do_not() -> None:
    async with bench() as it:
        await it.ann.request("createChat", channel=S, chat=C2)
        await settled()
        await it.ann.subscribe(C2)
        uri = await given(it, "!one", "t1")
        first = it.process
        first.say(CommandBegan("one"))
        await settled()
        other = await given(it, "!two", "u1", C2)
        assert other != uri
        await runs(it, "two", "")
        await ending(it.ann, "u1")
        assert await given(it, "!three", "u2", C2) == other
        assert it.state(other)["claim"] == of_session(S, C2, turnId="u2", toolCallId="command")


async def test_a_restart_begins_with_a_new_shell(tmp_path: Path) -> None:
    async with bench(FileMedium(tmp_path / "j.db")) as it:
        uri = await given(it, "!one", "t1")
        await runs(it, "one", "")
        await ending(it.ann, "t1")
        await it.host.restart()
        it.ann = await it.host.peer("ann")
        await it.ann.hello()
        await it.ann.subscribe(C)
        assert await given(it, "!two", "t2") != uri


# ---- what the agent is told ---------------------------------------------------------------------


def agent_of(it: Bench) -> PuppetAgent:
    (agent,) = it.host.agents
    assert isinstance(agent, PuppetAgent)
    return agent


async def test_the_agent_is_told_with_its_next_prompt_and_once() -> None:
    async with bench() as it:
        await given(it, "!make", "t1")
        await runs(it, "make", "one\r\n", 2)
        await ending(it.ann, "t1")
        await given(it, "!vim", "t2")
        it.process.say(CommandBegan("vim"), "\x1b[?1049h")
        await ending(it.ann, "t2")
        await it.ann.dispatch(C, started("t3", "and now?"))
        puppet = await at_work(agent_of(it), "t3")
        assert puppet.prompted is not None
        made, vim = puppet.prompted.ran
        assert made == Ran("make", "Ran make: exit code 2", "one\n")
        assert vim.command == "vim"
        assert "goes on in its terminal" in vim.outcome
        puppet.end(ev.Done())
        await ending(it.ann, "t3")
        await it.ann.dispatch(C, started("t4", "and then?"))
        puppet = await at_work(agent_of(it), "t4")
        assert puppet.prompted is not None
        assert list(puppet.prompted.ran) == []
        assert ran_beside(it.host.ledger.find(C).state) == []  # type: ignore[union-attr]


async def test_an_agent_is_told_that_a_client_lets_a_terminal_of_its_call_be() -> None:
    async with bench() as it:
        await it.ann.dispatch(C, started("t1", "work"))
        puppet = await at_work(agent_of(it), "t1")
        busy = of_session(S, C, turnId="t1", toolCallId="c1")
        await it.ann.request("createTerminal", channel="ahp-terminal:/x", claim=busy)
        await it.bob.subscribe("ahp-terminal:/x")
        await it.bob.dispatch("ahp-terminal:/x", claimed(of_session(S, C)))
        await settled()
        assert puppet.answers == [Released("c1")]
        assert "terminal/claimed" in types(it.bob, "ahp-terminal:/x")
