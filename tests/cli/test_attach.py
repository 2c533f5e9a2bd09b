"""``ahpd attach``, ``inspect`` and ``trace`` against a real daemon, on real terminals and pipes."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ahpd.cli import exits
from ahpd.cli.group import run
from ahpd.cli.inside.commands import COMMANDS, Wrong, find, helped
from ahpd.cli.inside.console import is_whole, short
from ahpd.cli.inside.typing import candidates_in
from ahpd.cli.looking import Look
from ahpd.daemon.state import StateFolder
from tests.cli.daemons import WITHIN, Daemon, ended, environment, spawn, start_daemon, stop_daemon

pytestmark = pytest.mark.real_time


class Chat:
    """A chat of a real daemon with a turn in which the agent stays."""

    def __init__(self, daemon: Daemon, path: str) -> None:
        self.daemon = daemon
        self.path = path
        self.children: list[Any] = []

    def seen(self) -> Any:
        """What there is to see of it."""
        with Look(StateFolder(self.daemon.state)) as look:
            return look.ask("inspect", {"path": self.path})

    def piped(self, *lines: str) -> subprocess.CompletedProcess[str]:
        """Commands that come through a pipe."""
        return subprocess.run(
            self.daemon.command("attach", self.path),
            input="\n".join(lines) + "\n",
            capture_output=True,
            text=True,
            timeout=WITHIN,
            env=environment(),
            check=False,
        )

    def attached(self) -> Any:
        """Somebody at a terminal, who sees the prompt."""
        child = spawn(self.daemon.command("attach", self.path))
        self.children.append(child)
        child.expect_exact("help shows what can be typed")
        child.expect_exact(f"{short(self.path)}>")
        return child

    def until(self, phase: str) -> None:
        """Wait until it is in this phase."""
        deadline = time.monotonic() + WITHIN
        while self.seen()["phase"] != phase:
            assert time.monotonic() < deadline


@pytest.fixture(scope="module")
def chat(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chat]:
    folder = tmp_path_factory.mktemp("a")
    process, daemon = start_daemon(folder)
    asking = subprocess.Popen(
        daemon.command("ask", "hang", "--yes"),
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL,
    )  # fmt: skip
    assert asking.stderr is not None
    assert asking.stdout is not None
    found = re.search(rb"test:/(\S+)", asking.stderr.readline())
    assert found is not None
    assert asking.stdout.read(7) == b"I stay."
    yield Chat(daemon, f"session/{found[1].decode()}/chat/0")
    stop_daemon(process)
    asking.kill()
    asking.communicate()


@pytest.fixture(autouse=True)
def nobody_stays(chat: Chat) -> Iterator[None]:
    """What fails in one test holds nothing in the next."""
    yield
    while chat.children:
        chat.children.pop().close(force=True)


def test_a_console_on_a_terminal(chat: Chat) -> None:
    child = chat.attached()
    child.sendline("state activeTurn.message.text")
    child.expect_exact('"hang"')
    child.send("state activeT")
    child.expect_exact("activeT")
    child.send("\t")
    child.expect_exact("urn")  # completed; only what is new is drawn
    child.sendintr()  # what is typed is cleared, and the console stays
    for typed, told in (
        ("bogus", "there is no command bogus; help shows all"),
        ("s", "s may be any of: status, state, step"),
        ("state $[", "is no JSONPath"),
        ("break on chat/turnComplet", "did you mean chat/turnComplete"),
        ("step", "it is not paused"),
        ("trace maybe", "trace on, or trace off"),
        ("pause", "paused; 0 messages wait"),
        ("state activity", "Paused by somebody who looks inside"),
        ("inject SilenceDue(99)", "put in: SilenceDue"),
        ("mailbox", "1 wait"),
        ("step", "SilenceDue"),
        ("where", "work (run.py:"),
    ):
        child.sendline(typed)
        child.expect_exact(told)
    child.expect_exact("(paused)>")
    child.sendline("py")
    child.expect_exact(">>>")
    child.sendline("for word in ('ab', 'cd'):")
    child.sendline("  print(word * 2)")
    child.sendline("")
    child.expect_exact("cdcd")
    child.sendline("actor.nonsense")
    child.expect_exact("AttributeError: 'Chat' object has no attribute 'nonsense'")
    child.expect_exact(">>>")
    child.sendeof()
    child.expect_exact("(paused)>")
    child.sendline("inject SilenceDue(7)")
    child.expect_exact("put in")
    child.sendline("pdb")
    child.expect_exact("(Pdb)")
    child.sendline("p message.run * 6")
    child.expect_exact("42")
    child.expect_exact("(Pdb)")
    child.sendintr()  # leaves pdb, not the console
    child.expect_exact("pdb is over: SilenceDue was handled")
    child.sendline("continue")
    child.expect_exact("goes on: resumed by console")
    child.sendline("quit")
    assert ended(child) == exits.OK
    history = chat.daemon.state / "attach-history"
    assert history.stat().st_mode & 0o777 == 0o600
    assert "inject SilenceDue(7)" in history.read_text()
    assert "word * 2" not in history.read_text()


def test_ctrl_c_leaves_and_what_was_paused_goes_on(chat: Chat) -> None:
    child = chat.attached()
    child.sendline("pause")
    child.expect_exact("(paused)>")
    assert chat.seen()["phase"] == "suspended"
    child.sendintr()
    child.expect_exact("goes on")
    assert ended(child) == exits.INTERRUPTED
    chat.until("running")
    assert "activity" not in chat.seen()["state"]


def test_ctrl_c_stops_what_goes_on_and_the_console_stays(chat: Chat) -> None:
    child = chat.attached()
    child.sendline("py print('un' + 'til'); await trio.sleep_forever()")
    child.expect_exact("until")
    child.sendintr()
    child.expect_exact("py: stopped")
    child.sendline("pdb")
    child.expect_exact("waiting for its next message")
    child.sendintr()
    child.expect_exact("pdb: stopped")
    child.sendline("status")
    child.expect_exact("attached: you")
    child.expect_exact("chat/0>")  # between two prompts the terminal is somebody else's
    child.sendeof()
    assert ended(child) == exits.OK


def test_a_lost_terminal_and_a_killed_console_resume_it_too(chat: Chat) -> None:
    for signal_number in (signal.SIGHUP, signal.SIGKILL):
        child = chat.attached()
        child.sendline("pause")
        child.expect_exact("(paused)>")
        if signal_number == signal.SIGHUP:
            child.close()  # its terminal is gone
        else:
            child.kill(signal_number)
            ended(child)
        chat.until("running")


def test_a_lost_terminal_leaves_the_debugger(chat: Chat) -> None:
    child = chat.attached()
    child.sendline("pause")
    child.sendline("inject SilenceDue(99)")
    child.expect_exact("put in")
    child.sendline("pdb")
    child.expect_exact("(Pdb)")
    child.close()
    chat.until("running")
    assert chat.seen()["inHand"] is None


def test_commands_come_through_a_pipe(chat: Chat) -> None:
    done = chat.piped(
        "nonsense", "state activeTurn.message.text", "pause", "status", "", "help step"
    )
    assert done.returncode == exits.OK
    assert '"hang"' in done.stdout
    assert "suspended" in done.stdout
    assert "step [N]" in done.stdout
    assert done.stderr == "there is no command nonsense; help shows all\n"
    chat.until("running")


def test_the_state_at_a_number_comes_from_the_journal(chat: Chat) -> None:
    said = chat.piped("pause", "state activity").stdout
    found = re.search(r'"(Paused by .+)"\nat number (\d+)', said)
    assert found is not None
    number = int(found[2])
    chat.until("running")  # which was said after that number
    done = chat.piped(
        f"state @{number} activity",
        f"state @{number - 1} activity",
        f"state @{number + 1000}",
        "state @0",
        "state @",
    )
    assert f'"{found[1]}"\nat number {number}\n' in done.stdout
    told = done.stderr.splitlines()
    assert told[0] == "$.activity: there is nothing there"
    assert re.fullmatch(r"the host is at number \d+", told[1])
    assert re.fullmatch(
        r"the journal has this channel from number \d+ on, and 0 is before that", told[2]
    )
    assert told[3].startswith("state @NUMBER")


def test_inspect_is_for_people_too(chat: Chat, capsys: pytest.CaptureFixture[str]) -> None:
    assert chat.daemon.run("inspect", chat.path) == exits.OK
    out = capsys.readouterr().out
    assert out.startswith(f"{chat.path}: chat, running, up for ")
    assert "mailbox: nothing waits" in out
    assert '"text": "hang"' in out


def test_inspect_is_one_json_object(chat: Chat, capsys: pytest.CaptureFixture[str]) -> None:
    assert chat.daemon.run("inspect", chat.path, "--json") == exits.OK
    seen = json.loads(capsys.readouterr().out)
    assert seen["path"] == chat.path
    assert seen["state"]["activeTurn"]["message"]["text"] == "hang"
    assert seen["tasks"][0]["frames"]


def test_trace_is_a_line_for_each_thing_it_does(chat: Chat) -> None:
    process = subprocess.Popen(
        chat.daemon.command("trace", chat.path, "--json", "--count", "2"), stdout=subprocess.PIPE
    )
    assert process.stdout is not None
    while process.poll() is None:
        chat.piped("inject SilenceDue(99)")
    first, second = [json.loads(line) for line in process.stdout]
    process.stdout.close()
    assert process.returncode == exits.OK
    assert (first["kind"], second["kind"]) == ("message", "handled")
    assert first["message"] == "SilenceDue"
    assert second["value"] == {"$": "SilenceDue", "run": 99}


def test_nobody_there_and_nothing_there(chat: Chat, tmp_path: Path) -> None:
    for command in ("attach", "inspect", "trace"):
        assert run([command, "chat/0", "--state-dir", str(tmp_path)]) == exits.NO_DAEMON
        assert chat.daemon.run(command, "no/such") == exits.USAGE


def test_the_daemon_hangs_up(tmp_path: Path) -> None:
    process, daemon = start_daemon(tmp_path)
    try:
        child = spawn(daemon.command("attach", "root"))
        child.expect_exact("root>")
        process.send_signal(signal.SIGTERM)
        child.expect_exact("the daemon hung up")
        assert ended(child) == exits.NO_DAEMON
    finally:
        stop_daemon(process)


# ---- what is typed ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("typed", "params"),
    [
        ("state", {}), ("state $.a", {"path": "$.a"}), ("state @12", {"at": 12}),
        ("state @12 a.b", {"at": 12, "path": "a.b"}), ("step", {}), ("step 3", {"count": 3}),
        ("break", {}), ("break on chat/delta", {"on": "chat/delta"}),
        ("break chat/delta if a == 'if b'", {"on": "chat/delta", "if": "a == 'if b'"}),
        ("trace off", {"on": False}), ("unbreak 2", {"number": 2}), ("log 5", {"count": 5}),
        ("watch a", {"path": "a"}), ("kill", {}), ("kill it is stuck", {"reason": "it is stuck"}),
    ],
)  # fmt: skip
def test_what_is_asked_for_a_line(typed: str, params: Any) -> None:
    name, _, rest = typed.partition(" ")
    command = find(name)
    assert command is not None
    assert command.asks(rest) == params


@pytest.mark.parametrize(
    "typed",
    ["pause now", "state @x", "step x", "trace", "break on", "break if x", "watch", "inject"],
)
def test_a_line_that_makes_no_sense_says_what_would(typed: str) -> None:
    name, _, rest = typed.partition(" ")
    with pytest.raises(Wrong):
        COMMANDS[name].asks(rest)


def test_a_beginning_that_no_other_has_will_do() -> None:
    assert find("cont") is COMMANDS["continue"]
    assert find("zap") is None
    with pytest.raises(Wrong, match="pause, py, pdb"):
        find("p")
    assert len(helped(None)) >= len(COMMANDS)
    assert helped("step")[0] == "step [N]"
    with pytest.raises(Wrong, match="no command zap"):
        helped("zap")


def test_what_may_stand_at_the_end_of_a_line() -> None:
    def keys(path: str) -> list[str]:
        return {"$": ["title", "turns"], "$.turns[0]": ["id"]}.get(path, [])

    def at(text: str) -> tuple[str, Any]:
        return candidates_in(text, ["chat/delta", "chat/error"], keys)

    assert at("sta") == ("sta", list(COMMANDS))
    assert at("break ") == ("", ["on"])
    assert at("break on chat/") == ("chat/", ["chat/delta", "chat/error"])
    assert at("trace o") == ("o", ["on", "off"])
    assert at("state ti") == ("ti", ["title", "turns"])
    assert at("watch $.turns[0].i") == ("i", ["id"])
    assert at("state @1") == ("@1", [])
    assert at("inject x") == ("x", [])
    assert at("help s")[1] == list(COMMANDS)


def test_a_block_of_python_is_whole_when_it_is() -> None:
    assert is_whole("await x")
    assert not is_whole("for x in y:")
    assert not is_whole("for x in y:\n  pass")
    assert is_whole("for x in y:\n  pass\n")
    with pytest.raises(SyntaxError):
        is_whole("for for")
