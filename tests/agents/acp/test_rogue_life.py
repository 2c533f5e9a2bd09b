"""How an agent that misbehaves lives and dies: nothing of it is left, and people hear why."""

from __future__ import annotations

import gc
import re
import signal
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import trio
from msgspec import structs

from ahpd.agents import events as ev
from ahpd.agents.acp import backend, handshake, process, rpc
from ahpd.agents.acp.agent import AcpAgent
from ahpd.agents.acp.process import AgentGone
from ahpd.agents.events import Done, Stopped
from ahpd.agents.port import AgentFailed, OpenRequest
from ahpd.protocol.uris import URI
from tests.agents.acp.support import PATIENCE, at_work, lives, open_fds, request, rogue
from tests.agents.support import Screen, prompt

pytestmark = pytest.mark.real_time


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """What does not end by itself is made to sooner."""
    monkeypatch.setattr(process, "EOF_WITHIN", 0.5)
    monkeypatch.setattr(process, "TERM_WITHIN", 0.3)


async def until(holds: Callable[[], bool]) -> None:
    with trio.fail_after(PATIENCE):
        while not holds():
            await trio.sleep(0.01)


async def refused(agent: AcpAgent, folder: Path, conversation: str | None = None) -> str:
    """What people are told when the agent cannot be opened."""
    with trio.fail_after(PATIENCE), pytest.raises(AgentFailed) as failed:
        await agent.open(request(folder, conversation))
    return failed.value.message


# --- the start -----------------------------------------------------------------------------------


async def test_a_crash_in_initialize_is_told_with_the_last_words(tmp_path: Path) -> None:
    told = await refused(rogue(tmp_path, "dies"), tmp_path)
    assert told.startswith("the agent ended with exit code 1; it said last:\n")
    assert told.endswith("no key\nno key")
    assert len(told) < 2200, "120,000 bytes were written"


async def test_words_on_the_wrong_stream_are_told_too(tmp_path: Path) -> None:
    told = await refused(rogue(tmp_path, "chatty"), tmp_path)
    assert told == (
        "the agent ended with exit code 0; it said last:\nthis program is no longer maintained"
    )


async def test_silence_at_the_start_has_a_bound(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(handshake, "INITIALIZE_WITHIN", 0.5)
    told = await refused(rogue(tmp_path, "silent", "deaf-to-term"), tmp_path)
    assert told == "the agent did not answer initialize in 0.5 s"


async def test_another_version_is_refused(tmp_path: Path) -> None:
    told = await refused(rogue(tmp_path, "new-version"), tmp_path)
    assert told == "the agent speaks version 2 of ACP, and only 1 is known"


async def test_who_has_to_sign_in_hears_how(tmp_path: Path) -> None:
    assert await refused(rogue(tmp_path, "needs-auth"), tmp_path) == (
        "the agent wants you to sign in first (Authentication required)."
        " Its ways to sign in: Browser (opens a page)."
    )


async def test_programs_and_folders_that_are_not_there_are_named(tmp_path: Path) -> None:
    missing = AcpAgent("x", (str(tmp_path / "none"),))
    assert re.search("none cannot be started: No such file", await refused(missing, tmp_path))
    assert await refused(rogue(tmp_path), tmp_path / "gone") == (
        f"the working directory {tmp_path / 'gone'} is not there"
    )
    elsewhere = OpenRequest(URI("a:/s"), URI("a:/c"), (URI("https://example.org/x"),))
    with pytest.raises(AgentFailed, match="no folder of this machine"):
        await rogue(tmp_path).open(elsewhere)


async def test_a_start_that_is_cancelled_leaves_nothing(tmp_path: Path) -> None:
    gc.collect()
    before = open_fds()
    with trio.move_on_after(0.3):
        await rogue(tmp_path, "silent").open(request(tmp_path))
    gc.collect()
    assert len(open_fds()) == len(before)


async def test_commands_that_come_before_the_session_are_kept(tmp_path: Path) -> None:
    async with at_work(rogue(tmp_path, "early"), tmp_path) as agent:
        await until(lambda: bool(agent.beside.events))
        assert agent.beside.events == [ev.CommandsChanged((ev.Command("early"),))]


def test_what_an_agent_runs_with_is_not_shown(tmp_path: Path) -> None:
    assert "secret" not in repr(AcpAgent("x", ("y",), {"KEY": "secret"}))


# --- the end -------------------------------------------------------------------------------------


async def test_a_crash_in_a_turn_is_told_after_the_last_words(tmp_path: Path) -> None:
    async with at_work(rogue(tmp_path), tmp_path) as agent:
        screen = Screen()
        with trio.fail_after(PATIENCE), pytest.raises(AgentGone) as gone:
            await agent.backend.prompt(prompt("hello open die"), screen)
        assert screen.text == "Hello\u2028you\u0085."
        assert gone.value.message == (
            "the agent ended with exit code 3; it said last:\n\ufffd[31mout of luck"
        )
        await until(lambda: agent.gone is not None)
        with pytest.raises(AgentGone, match="exit code 3"):
            await agent.turn("hello")


@pytest.mark.parametrize(
    ("words", "text", "told"),
    [
        ("close", "", "the agent closed its output"),
        ("orphan", "last words", "the agent ended with exit code 1"),
        ("no-newline", "end", "the agent ended with exit code 0"),
        ("hello too-huge", "Hello\u2028you\u0085.", "a line is longer than 262144 bytes"),
    ],
)
async def test_the_other_ways_to_go(words: str, text: str, told: str, tmp_path: Path) -> None:
    async with at_work(rogue(tmp_path, limit=256 << 10), tmp_path) as agent:
        screen = Screen()
        with trio.fail_after(PATIENCE), pytest.raises(AgentGone, match=told):
            await agent.backend.prompt(prompt(words), screen)
        assert screen.text == text


async def test_an_agent_that_goes_between_turns_is_missed_beside_them(tmp_path: Path) -> None:
    async with at_work(rogue(tmp_path), tmp_path) as agent:
        agent.backend._process.signal(signal.SIGKILL)
        await until(lambda: agent.gone is not None)
        assert agent.gone is not None
        assert agent.gone.message == "the agent was ended by signal 9"


@pytest.mark.parametrize(
    "start",
    [
        (),
        ("deaf-to-eof",),
        ("deaf-to-eof", "deaf-to-term"),
        ("parent",),
        ("parent", "deaf-to-eof", "deaf-to-term"),
    ],
)
async def test_a_close_ends_the_whole_group(start: tuple[str, ...], tmp_path: Path) -> None:
    gc.collect()
    before = len(open_fds())
    async with at_work(rogue(tmp_path, *start), tmp_path) as agent:
        assert (await agent.turn("hello"))[0] == Done()
        assert lives(agent.backend)
    gc.collect()
    assert len(open_fds()) == before, "pipes are left open"


async def test_a_close_in_the_middle_of_a_turn(tmp_path: Path) -> None:
    """A sink that fails, as of a chat that is gone, ends the turn as it ends the chat."""

    class Gone(Exception):
        pass

    def then(_: ev.Event) -> None:
        raise Gone

    async with at_work(rogue(tmp_path), tmp_path) as agent:
        with pytest.raises(Gone):
            await agent.turn("hello hang", then)


# --- conversations -------------------------------------------------------------------------------


async def test_a_loaded_conversation_is_not_said_again(tmp_path: Path) -> None:
    async with at_work(rogue(tmp_path, "loads"), tmp_path) as agent:
        await agent.turn("hello")
    for _ in range(2):
        async with at_work(rogue(tmp_path, "loads"), tmp_path, "rogue-1") as agent:
            assert agent.sent("session/load")[-1]["params"] == {
                "sessionId": "rogue-1",
                "cwd": str(tmp_path),
                "mcpServers": [],
            }
            outcome, screen = await agent.turn("hello")
            assert outcome == Done()
            assert screen.events == [
                ev.TextChunk("Hello\u2028you\u0085."),
                ev.UsageReport(3, 4),
            ]


async def test_advertised_is_not_implemented(tmp_path: Path) -> None:
    async with at_work(rogue(tmp_path, "resumes", "loads"), tmp_path, "rogue-1") as agent:
        assert [each["method"] for each in agent.sent()][1:] == ["session/resume", "session/load"]
        assert (await agent.turn("hello"))[0] == Done()


async def test_an_agent_that_remembers_nothing_says_so(tmp_path: Path) -> None:
    async with at_work(rogue(tmp_path), tmp_path, "rogue-0") as agent:
        _, screen = await agent.turn("hello")
        named, notice, *_ = screen.events
        assert named == ev.ConversationNamed("rogue-1")
        assert isinstance(notice, ev.SystemNotice)
        assert "does not know what was said before" in str(notice.content)


async def test_a_conversation_that_cannot_be_loaded_is_an_error_once(tmp_path: Path) -> None:
    """The second time it begins anew, and says so; what it is called then is the host's to keep."""
    agent = rogue(tmp_path, "loads", "load-fails")
    told = await refused(agent, tmp_path, "rogue-0")
    assert told == "the agent cannot go on with the conversation: Resource not found"
    async with at_work(agent, tmp_path, "rogue-0") as at:
        _, screen = await at.turn("hello")
        named, notice, text, *_ = screen.events
        assert named == ev.ConversationNamed("rogue-1")
        assert isinstance(notice, ev.SystemNotice)
        assert str(notice.content).endswith(
            "It said: the agent cannot go on with the conversation: Resource not found"
        )
        assert text == ev.TextChunk("Hello\u2028you\u0085.")
    assert await refused(agent, tmp_path, "rogue-0") == told, "it is tried again later"


async def test_a_conversation_that_ends_the_agent_does_not_hold_the_chat_for_ever(
    tmp_path: Path,
) -> None:
    agent = rogue(tmp_path, "loads", "load-kills")
    for _ in range(2):
        assert await refused(agent, tmp_path, "rogue-0") == "the agent ended with exit code 9"
    async with at_work(agent, tmp_path, "rogue-0") as at:
        assert at.sent("session/load")[2:] == [], "it is not asked a third time"
        _, screen = await at.turn("hello")
        named, notice, text, *_ = screen.events
        assert named == ev.ConversationNamed("rogue-1")
        assert isinstance(notice, ev.SystemNotice)
        assert "ended twice" in str(notice.content)
        assert text == ev.TextChunk("Hello\u2028you\u0085.")


@pytest.mark.parametrize(
    ("start", "way", "settles"),
    [
        (("really-resumes",), "session/resume", False),
        (("really-resumes", "repeats"), "session/resume", True),
        (("loads", "at-once"), "session/load", True),
    ],
)
async def test_what_is_said_again_is_waited_for_where_something_is(
    start: tuple[str, ...], way: str, settles: bool, tmp_path: Path
) -> None:
    agent = rogue(tmp_path, *start)
    (tmp_path / "said").write_text("before\n")
    async with at_work(agent, tmp_path, "rogue-1") as at:
        assert len(at.sent(way)) == 1
        assert at.backend._replays is settles
        assert (await at.turn("hello"))[1].text == "Hello\u2028you\u0085."
    assert agent.learned.repeats_at_once is settles


async def test_one_that_repeats_late_is_waited_for_each_time(tmp_path: Path) -> None:
    agent = rogue(tmp_path, "loads")
    for _ in range(2):
        (tmp_path / "said").write_text("before\n")
        async with at_work(agent, tmp_path, "rogue-1") as at:
            assert (await at.turn("hello"))[1].text == "Hello\u2028you\u0085."
        assert agent.learned.repeats_at_once is False


async def test_secrets_are_not_in_what_people_are_shown(tmp_path: Path) -> None:
    agent = rogue(tmp_path)
    environment = {**agent.environment, "ROGUE_API_KEY": "luck", "PLAIN": "out"}
    agent = structs.replace(agent, environment=environment)
    async with at_work(agent, tmp_path) as at:
        with trio.fail_after(PATIENCE), pytest.raises(AgentGone, match=r"out of \*\*\*$"):
            await at.backend.prompt(prompt("die"), Screen())


async def test_one_that_asks_and_does_not_read_the_answers_is_given_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rpc, "ANSWERS_BYTES", 10_000)
    monkeypatch.setattr(rpc, "ANSWERS_WITHIN", 0.2)
    async with at_work(rogue(tmp_path), tmp_path) as at:
        with trio.fail_after(PATIENCE), pytest.raises(AgentGone, match="does not read the answers"):
            await at.backend.prompt(prompt("hello floods"), Screen())


async def test_a_cancel_while_a_conversation_settles(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(backend, "QUIET", 3600)
    monkeypatch.setattr(backend, "SETTLED_WITHIN", 3600)
    async with at_work(rogue(tmp_path, "loads"), tmp_path, "rogue-1") as agent:
        outcomes = []

        async def run() -> None:
            outcomes.append(await agent.backend.prompt(prompt(), Screen()))

        with trio.fail_after(PATIENCE):
            async with trio.open_nursery() as nursery:
                nursery.start_soon(run)
                await trio.testing.wait_all_tasks_blocked(0.01)
                agent.backend.cancel()
        assert outcomes == [Stopped()]
        assert agent.sent("session/prompt") == []


@pytest.mark.parametrize("before", [420, 498, 499, 500, 501])
async def test_a_secret_that_is_cut_through_is_not_shown_in_part(
    before: int, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("DEBUG", "ahpd.agents.acp")
    says = f"import os, sys; sys.stderr.write('.' * {before} + os.environ['A'] * 400 + '\\n')"
    command = (sys.executable, "-S", "-c", says)
    secret = "<" + "luck" * 20 + ">"
    agent = await process.start_process(command, {"A": secret}, str(tmp_path), secrets=[secret])
    try:
        with trio.fail_after(PATIENCE):
            await agent.drain()
        assert len(agent.tail()) < 2000, "its beginning, where it was cut, is shown"
        assert set(agent.tail()) == {"*"}
        assert "luck" not in caplog.text
        assert "<" not in caplog.text
        assert "." * min(before, 500) in caplog.text
        assert agent.beginning(secret.encode() + b"a", len(secret)) == "***"
        assert agent.beginning(b"a" + secret.encode(), len(secret)) == "a"
    finally:
        await agent.end()
