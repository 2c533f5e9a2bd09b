"""``ahpd ask`` against a real daemon: what it prints, what it asks, how it ends."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from pathlib import Path

import pytest
import trio

from ahpd.cli import exits
from ahpd.cli.approval import decision, first
from ahpd.cli.group import run
from ahpd.cli.reach import Target, reached
from ahpd.protocol.uris import default_chat
from tests.cli.daemons import (
    RUDE_SHOWN,
    WITHIN,
    Daemon,
    daemon,
    ended,
    environment,
    line_to,
    spawn,
)

pytestmark = pytest.mark.real_time

__all__ = ["daemon"]

NOBODY = "no daemon is running; start one with: ahpd start"


def test_the_answer_alone_is_on_standard_output(
    daemon: Daemon, capsys: pytest.CaptureFixture[str]
) -> None:
    assert daemon.run("ask", "hello") == exits.OK
    told = capsys.readouterr()
    assert told.out == "You said: hello\n"
    assert "Hm." in told.err
    assert "session test:/" in told.err
    assert "done in" in told.err


def test_of_a_command_what_it_printed_is_the_answer(
    daemon: Daemon, capsys: pytest.CaptureFixture[str]
) -> None:
    assert daemon.run("ask", "!printf 'one\\ntwo\\n'; (exit 3)") == exits.OK
    told = capsys.readouterr()
    assert told.out == "one\ntwo\n"
    assert "exit code 3" in told.err
    assert daemon.run("ask", "--json", "!echo three") == exits.OK
    assert json.loads(capsys.readouterr().out)["text"] == "three\n"


def test_a_session_goes_on(daemon: Daemon, capsys: pytest.CaptureFixture[str]) -> None:
    assert daemon.run("ask", "--json", "one") == exits.OK
    first = json.loads(capsys.readouterr().out)
    assert daemon.run("ask", "--json", "two", "--session", first["session"]) == exits.OK
    second = json.loads(capsys.readouterr().out)
    assert second["chat"] == first["chat"]
    assert second["turn"] != first["turn"]
    assert second["text"] == "You said: two"
    assert second["state"] == "complete"


def test_a_session_has_the_scheme_of_its_agent(
    daemon: Daemon, capsys: pytest.CaptureFixture[str]
) -> None:
    for agent in ([], ["--agent", "test"]):
        assert daemon.run("ask", "--json", "one", *agent) == exits.OK
        assert json.loads(capsys.readouterr().out)["session"].startswith("test:/")


@pytest.mark.parametrize("prompt", ["", " \n\t"])
def test_an_empty_prompt_is_a_usage_error_and_starts_nothing(
    daemon: Daemon, capsys: pytest.CaptureFixture[str], prompt: str
) -> None:
    def count() -> int:
        assert daemon.run("sessions", "--json") == exits.OK
        return len(json.loads(capsys.readouterr().out))

    before = count()
    assert daemon.run("ask", prompt) == exits.USAGE
    assert "PROMPT is empty" in capsys.readouterr().err
    assert count() == before


def test_where_both_outputs_meet_each_has_lines_of_its_own(daemon: Daemon, tmp_path: Path) -> None:
    """A pipe and a file, as ``2>&1`` makes them."""
    for prompt in ("dig", "hello"):
        file = tmp_path / prompt
        with file.open("wb") as both:
            command = daemon.command("ask", "--yes", prompt)
            subprocess.run(command, env=environment(), stdout=both, stderr=both, check=True)
        done = subprocess.run(
            command, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=True
        )
        for text in (file.read_text(), done.stdout.decode()):
            found = text.splitlines()
            assert found[-1].startswith("done in ")
            assert found[-2] == ("Thanks." if prompt == "dig" else "You said: hello")
            assert prompt != "dig" or "May I? " in found


def test_json_is_one_object_with_everything(
    daemon: Daemon, capsys: pytest.CaptureFixture[str]
) -> None:
    assert daemon.run("ask", "--json", "--yes", "dig") == exits.OK
    told = capsys.readouterr()
    (text,) = told.out.splitlines()
    found = json.loads(text)
    assert found["text"] == "May I? Thanks."
    assert found["tools"] == [
        {"name": "dig", "title": "Dig a hole", "message": "Dig a hole", "state": "done"}
    ]
    assert found["error"] is None
    assert found["duration"] >= 0
    assert told.err.strip() == "approved (--yes): Yes, once"


def test_without_a_terminal_the_answer_is_no_and_is_said(
    daemon: Daemon, capsys: pytest.CaptureFixture[str]
) -> None:
    assert daemon.run("ask", "dig") == exits.OK
    told = capsys.readouterr()
    assert "denied (there is no terminal to ask on; see --yes): No, never" in told.err
    assert "* Dig a hole: denied" in told.err
    assert told.out == "May I? \nThanks.\n"


def test_yes_approves(daemon: Daemon, capsys: pytest.CaptureFixture[str]) -> None:
    assert daemon.run("ask", "--yes", "dig") == exits.OK
    told = capsys.readouterr().err
    assert "approved (--yes): Yes, once" in told
    assert "* Dig a hole: done" in told


def test_what_could_steer_the_terminal_is_escaped_everywhere(
    daemon: Daemon, capsys: pytest.CaptureFixture[str]
) -> None:
    assert daemon.run("ask", "rude") == exits.OK
    assert daemon.run("ask", "poke", "--yes") == exits.OK
    told = capsys.readouterr()
    assert told.out == f"{RUDE_SHOWN}\nPoked.\n"
    assert told.err.count(RUDE_SHOWN) >= 3  # the thought, the question, the tool
    for text in (told.out, told.err):
        assert not [c for c in text if ord(c) < 32 and c != "\n"]


def test_links_and_paths_are_left_alone(daemon: Daemon, capsys: pytest.CaptureFixture[str]) -> None:
    assert daemon.run("ask", "link") == exits.OK
    assert capsys.readouterr().out == "see [/etc/hosts] https://a.example/b?c=[d]&e\n"


def test_an_agent_that_fails(daemon: Daemon, capsys: pytest.CaptureFixture[str]) -> None:
    assert daemon.run("ask", "fail") == exits.FAILED
    told = capsys.readouterr()
    assert told.out == "Alas. \n"
    assert "failed: no luck" in told.err
    assert daemon.run("ask", "fail", "--json") == exits.FAILED
    found = json.loads(capsys.readouterr().out)
    assert found["state"] == "error"
    assert found["error"]["message"] == "no luck"


def test_a_prompt_for_a_chat_that_is_busy_is_refused(
    daemon: Daemon, capsys: pytest.CaptureFixture[str]
) -> None:
    assert daemon.run("ask", "--json", "hello") == exits.OK
    session = json.loads(capsys.readouterr().out)["session"]
    busy = subprocess.Popen(
        daemon.command("ask", "hang", "--session", session),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment(),
        text=True,
    )
    assert busy.stdout is not None
    assert busy.stdout.read(len("I stay.")) == "I stay."
    try:
        assert daemon.run("ask", "me too", "--session", session) == exits.REFUSED
        assert "a turn is running" in capsys.readouterr().err
        assert daemon.run("ask", "me too", "--session", session, "--json") == exits.REFUSED
        assert json.loads(capsys.readouterr().out)["state"] == "refused"
        busy.send_signal(signal.SIGINT)
        _, told = busy.communicate(timeout=WITHIN)
        assert busy.returncode == exits.CANCELLED
        assert "cancelling" in told
    finally:
        busy.kill()
        busy.communicate()


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["--session", "ahp-session:/nowhere"], exits.USAGE, "there is no session"),
        (["--session", "\x1b[2J"], exits.USAGE, r"no session \x1b[2J"),
        (["--session", "ahp-root://"], exits.USAGE, "is no session"),
        (["--agent", "nobody"], exits.REFUSED, "there is no agent nobody"),
        (["--agent", "mute"], exits.FAILED, "the agent ended with exit code 0"),
        (["--agent", "a", "--session", "b"], exits.USAGE, "--agent is for a new session"),
        (["--url", "http://127.0.0.1/"], exits.USAGE, "it has to begin with ws://"),
    ],
)
def test_what_cannot_be_used_is_said_in_a_sentence(
    daemon: Daemon,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    code: int,
    said: str,
) -> None:
    assert daemon.run("ask", "hello", *arguments) == code
    told = capsys.readouterr()
    assert said in told.err
    assert "Traceback" not in told.err


def test_no_daemon(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for command in (["ask", "hello"], ["sessions"], ["tail", "ahp-session:/x"]):
        assert run([*command, "--state-dir", str(tmp_path)]) == exits.NO_DAEMON
        told = capsys.readouterr()
        assert told.out == ""
        assert NOBODY in told.err
        assert len(told.err.splitlines()) == 1


def test_by_url_and_with_a_wrong_token(daemon: Daemon, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["ask", "hello", "--url", daemon.url]) == exits.OK
    assert capsys.readouterr().out == "You said: hello\n"
    wrong = daemon.url.partition("=")[0] + "=wrong"
    assert run(["ask", "hello", "--url", wrong]) == exits.NO_DAEMON
    told = capsys.readouterr().err
    assert "401" in told
    assert "wrong" not in told.replace("wrong token", "")


# ---- on a terminal ------------------------------------------------------------------------------


def test_the_options_of_the_host_are_offered(daemon: Daemon) -> None:
    child = spawn(daemon.command("ask", "dig"))
    child.expect_exact("Allow dig?")
    child.expect_exact("1  Yes, once")
    child.expect_exact("2  No, never")
    child.expect_exact("Choose 1 to 2 [2]: ")
    child.sendline("7")
    child.expect_exact("That is not one of 1 to 2.")
    child.expect_exact("Choose 1 to 2 [2]: ")
    child.sendline("1")
    child.expect_exact("* Dig a hole: done")
    child.expect_exact("Thanks.")
    assert ended(child) == exits.OK


def test_a_question_that_another_screen_answers_is_over(daemon: Daemon) -> None:
    child = spawn(daemon.command("ask", "dig"))
    child.expect(r"session (test:/\S+)")
    session = child.match.group(1)
    child.expect_exact("Choose 1 to 2 [2]: ")
    trio.run(approve, daemon, session)
    child.expect_exact("answered on another screen")
    child.expect_exact("* Dig a hole: done")
    assert ended(child) == exits.OK


async def approve(daemon: Daemon, session: str) -> None:
    """Another screen: approves the first call that waits in a session's chat."""
    chat = default_chat(session)
    async with (
        trio.open_nursery() as nursery,
        reached(Target(daemon.state), nursery, "other") as client,
    ):
        await client.subscribe(chat)
        turn = await client.until(chat, lambda state: state.active_turn)
        calls = [part.tool_call for part in turn.response_parts if hasattr(part, "tool_call")]
        choice = first(calls[0], approves=True)
        outcome = await client.dispatch(chat, decision(turn.id, calls[0], choice)).wait()
        assert outcome.kind == "accepted"


async def test_an_answer_that_a_lost_connection_swallowed_is_asked_for_again(
    daemon: Daemon, tmp_path: Path
) -> None:
    path = tmp_path / "l.sock"
    with trio.fail_after(WITHIN):
        async with line_to(daemon, path) as line:
            child = spawn([*daemon.command("ask", "dig"), "--url", f"unix:{path}"])

            async def see(text: str) -> None:
                await trio.to_thread.run_sync(child.expect_exact, text)

            await see("Choose 1 to 2 [2]: ")
            line.cut()
            await see("the connection is lost")
            child.sendline("1")
            line.mend()
            await see("Choose 1 to 2 [2]: ")
            child.sendline("1")
            await see("* Dig a hole: done")
            await see("Thanks.")
            assert await trio.to_thread.run_sync(ended, child) == exits.OK
            assert line.connections == 2


@pytest.mark.parametrize("answer", ["\r", "\x04", "2\r"])
def test_an_empty_line_and_the_end_of_the_input_are_no(daemon: Daemon, answer: str) -> None:
    child = spawn(daemon.command("ask", "dig"))
    child.expect_exact("Choose 1 to 2 [2]: ")
    child.send(answer)
    child.expect_exact("* Dig a hole: denied")
    child.expect_exact("Thanks.")
    assert ended(child) == exits.OK


def test_without_options_it_is_yes_or_no_and_nothing_steers_the_terminal(daemon: Daemon) -> None:
    child = spawn(daemon.command("ask", "poke"))
    child.expect_exact("Choose 1 to 2 [2]: ")
    shown = child.before
    assert RUDE_SHOWN in shown.replace("\r\n", "")
    assert "\x1b[31m" not in shown
    assert "\x07" not in shown
    child.sendline("1")
    child.expect_exact("Poked.")
    assert ended(child) == exits.OK


def test_the_first_interrupt_cancels_the_turn(daemon: Daemon) -> None:
    child = spawn(daemon.command("ask", "hang"))
    child.expect_exact("I stay.")
    child.sendintr()
    child.expect_exact("cancelling")
    child.expect_exact("cancelled in")
    assert ended(child) == exits.CANCELLED


def test_an_interrupt_at_the_question_cancels_the_turn(daemon: Daemon) -> None:
    child = spawn(daemon.command("ask", "dig"))
    child.expect_exact("Choose 1 to 2 [2]: ")
    child.sendintr()
    child.expect_exact("cancelled in")
    assert ended(child) == exits.CANCELLED


def test_a_second_interrupt_leaves(daemon: Daemon) -> None:
    child = spawn(daemon.command("ask", "hang"))
    child.expect_exact("I stay.")
    # A host that does not answer any more: the turn cannot be cancelled.
    os.kill(daemon.pid, signal.SIGSTOP)
    try:
        child.sendintr()
        child.expect_exact("cancelling")
        child.sendintr()
        assert ended(child) == exits.INTERRUPTED
    finally:
        os.kill(daemon.pid, signal.SIGCONT)
