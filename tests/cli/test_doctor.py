"""``ahpd doctor``: with a daemon and without, where all is well and where it is not."""

from __future__ import annotations

import json
import os
import signal
import socket
import sys
from pathlib import Path
from typing import Any

import click
import pytest

from ahpd.cli import doctor, doctor_daemon, exits
from ahpd.cli.group import run
from ahpd.daemon.doctor import machine
from ahpd.daemon.doctor.findings import Teller
from ahpd.journal import inspecting
from ahpd.journal.port import JournalFailed
from ahpd.resources.inotify import NO_WATCHERS, WatchLimit
from tests.cli.daemons import Daemon, daemon, ended, spawn

__all__ = ["daemon"]

pytestmark = pytest.mark.real_time


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder to be examined in, with nothing of the person who runs the tests in it."""
    (tmp_path / "config.toml").write_text("find_agents = false\nport = 0\n")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "none"))
    return tmp_path


def examined(
    place: Path, capsys: pytest.CaptureFixture[str], *more: str, code: int = exits.OK
) -> dict[str, list[Any]]:
    """The findings by check."""
    arguments = ("--config", str(place / "config.toml"), "--state-dir", str(place / "state"))
    capsys.readouterr()
    assert run(["doctor", "--json", *arguments, *more]) == code
    told = json.loads(capsys.readouterr().out)
    assert told["ok"] is (code == exits.OK)
    found: dict[str, list[Any]] = {}
    for each in told["findings"]:
        assert each["level"] in ("ok", "warn", "fail")
        assert each["text"]
        found.setdefault(each["check"], []).append(each)
    return found


def levels(findings: list[Any]) -> list[str]:
    return [each["level"] for each in findings]


def test_without_a_daemon(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = examined(place, capsys, "--no-agents")
    for name in (
        *("python", "git", "shell", "pty", "inotify", "files", "disk"),
        *("configuration", "state folder", "token", "port", "journal", "running"),
    ):
        assert "fail" not in levels(found[name]), name
    assert "none runs" in found["running"][0]["text"]
    assert not (place / "state").exists()


def test_a_running_daemon_is_asked(daemon: Daemon, capsys: pytest.CaptureFixture[str]) -> None:
    """What it was started with is looked at, and not what another one would be started with."""
    where = os.getcwd()
    try:
        assert daemon.run("doctor", "--json", "--no-agents") == exits.OK
    finally:
        os.chdir(where)
    told = {each["check"]: each for each in json.loads(capsys.readouterr().out)["findings"]}
    assert told["running"]["text"].startswith(f"pid {daemon.pid}, version ")
    assert told["websocket"]["text"] == f"answers at {daemon.url.partition('?')[0]}"
    assert told["inside"]["level"] == "ok", told["inside"]
    assert told["test"]["text"].startswith("the script ")
    assert told["crashes"]["level"] == "ok"
    assert ", and has " in told["files"]["text"]


def test_a_daemon_that_hangs(
    daemon: Daemon, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(doctor_daemon, "WITHIN", 0.5)
    where = os.getcwd()
    os.kill(daemon.pid, signal.SIGSTOP)
    try:
        assert daemon.run("doctor", "--no-agents") == exits.FAULTS
    finally:
        os.kill(daemon.pid, signal.SIGCONT)
        os.chdir(where)
    said = capsys.readouterr().out
    assert "the daemon does not answer" in said
    assert f"kill -USR1 {daemon.pid}" in said
    assert said.endswith("\n")
    assert "1 fault, " in said.splitlines()[-1]


def test_what_a_daemon_says_is_wrong_inside() -> None:
    status = {
        "journal": {"failing": "database is locked", "waitingBytes": 5},
        "parked": ["session/x/chat/0"],
        "crashes": [{"path": "grace", "at": "then", "text": "Bad: luck", "file": None}],
    }
    found = list(doctor_daemon._status(status))
    assert [(each.check, each.level.value) for each in found] == [
        ("journal", "fail"),
        ("actors", "fail"),
        ("crashes", "warn"),
    ]
    assert found[1].advice == "ahpd restart session/x/chat/0"


@pytest.mark.skipif(os.getuid() == 0, reason="root may read everything")
def test_a_folder_that_cannot_be_read(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (place / "shut").mkdir(mode=0)
    options = ("--no-agents", "--path", str(place / "shut"))
    found = examined(place, capsys, *options, code=exits.FAULTS)
    assert levels(found["configuration"]) == ["fail"]


def test_what_is_wrong_with_what_is_kept(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    state = place / "state"
    state.mkdir(mode=0o755)
    (state / "token").write_text("abc")
    (state / "token").chmod(0o644)
    (state / "journal.db").write_bytes(b"this is no journal" * 100)
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        port = str(listener.getsockname()[1])
        options = ("--no-agents", "--path", str(place / "gone"), "--port", port)
        found = examined(place, capsys, *options, code=exits.FAULTS)
    assert levels(found["state folder"]) == ["warn", "warn", "warn"]
    assert found["state folder"][0]["advice"] == f"chmod 700 {state}"
    assert "has mode 0644" in found["token"][0]["text"]
    assert levels(found["token"]) == levels(found["port"]) == levels(found["journal"]) == ["fail"]
    assert "Address already in use" in found["port"][0]["text"]
    assert f"{place / 'gone'}: there is no such folder" in found["configuration"][0]["text"]
    (state / "token").chmod(0o600)
    assert levels(examined(place, capsys, "--no-agents", code=exits.FAULTS)["token"]) == ["warn"]


def test_a_wrong_configuration_is_a_finding(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (place / "config.toml").write_text("port = -1")
    found = examined(place, capsys, "--no-agents", code=exits.FAULTS)
    assert "port: expected a whole number" in found["configuration"][0]["text"]
    (place / "config.toml").write_text("prot = 1")
    found = examined(place, capsys, "--no-agents")
    assert "there is no such key" in found["configuration"][0]["text"]


def test_agents_are_asked_at_the_same_time(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    answer = {
        "jsonrpc": "2.0",
        "id": 0,
        "result": {"protocolVersion": 1, "agentInfo": {"name": "good", "version": "7.5"}},
    }
    good = place / "good.py"
    good.write_text(
        "import json, sys\n"
        "asked = json.loads(sys.stdin.readline())\n"
        f"print(json.dumps({answer} | {{'id': asked['id']}}), flush=True)\n"
        "sys.stdin.read()\n"
    )
    script = place / "script.json"
    script.write_text('{"turns": [{"steps": [{"oops": 1}]}]}')
    agents = {
        "good": f"acp:{sys.executable} {good}",
        "mute": "acp:cat /dev/null",
        "sick": "acp:sh -c 'echo so >&2; echo no key is set >&2; exit 3'",
        "gone": f"acp:{place}/nothing-here",
        "silent": "acp:sleep 600",
    }
    options = [f"--agent={name}={what}" for name, what in agents.items()]
    found = examined(place, capsys, *options, "--within", "2", code=exits.FAULTS)
    assert levels(found["good"]) == ["ok"]
    assert "7.5" in found["good"][0]["text"]
    assert "there is no program" in found["gone"][0]["text"]
    assert found["sick"][0]["text"].endswith("code 3; it said last: no key is set")
    for name in ("mute", "silent"):
        assert "it does not answer" in found[name][0]["text"], name
    found = examined(place, capsys, f"--agent=bad=scripted:{script}", code=exits.FAULTS)
    assert str(script) in found["bad"][0]["text"]


def test_where_what_happens_is_told(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        config = (place / "config.toml").read_text()
        config += f'[telemetry]\nendpoint = "{url}"\n[log]\nfile = "none/log"\n'
        (place / "config.toml").write_text(config)
        found = examined(place, capsys, "--no-agents", code=exits.FAULTS)
    assert f"{place / 'none' / 'log'}: there is no such folder" in found["log"][0]["text"]
    assert found["collector"][0]["text"] == f"{url} is there"
    (place / "none").mkdir()
    found = examined(place, capsys, "--no-agents")
    assert levels(found["log"]) == ["ok"]
    assert levels(found["collector"]) == ["warn"]
    assert "Connection refused" in found["collector"][0]["text"]


class _Nothing:
    def __init__(self) -> None:
        raise WatchLimit(NO_WATCHERS)


def test_a_machine_where_little_works(
    place: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(place))
    monkeypatch.setenv("SHELL", str(place / "no-shell"))
    monkeypatch.setattr(machine, "Inotify", _Nothing)
    monkeypatch.setattr(machine, "FEW_FILES", 1 << 60)
    monkeypatch.setattr(machine, "NO_SPACE", 1 << 60)

    def no_terminal() -> tuple[int, int]:
        raise OSError(28, "No space left on device")

    def locked(_: Path) -> Any:
        raise JournalFailed("database is locked")

    monkeypatch.setattr("pty.openpty", no_terminal)
    monkeypatch.setattr(inspecting, "stats", locked)
    (place / "state").mkdir(mode=0o700)
    (place / "state" / "journal.db").touch(mode=0o600)
    found = examined(place, capsys, "--no-agents", code=exits.FAULTS)
    for name in ("shell", "inotify", "pty", "disk", "journal"):
        assert levels(found[name]) == ["fail"], name
    for name in ("command", "git", "files"):
        assert levels(found[name]) == ["warn"], name
        assert found[name][0]["advice"], name


def test_on_a_terminal_it_says_how_far_it_is(place: Path) -> None:
    arguments = ("--config", str(place / "config.toml"), "--state-dir", str(place / "state"))
    child = spawn([sys.executable, "-m", "ahpd", "doctor", "--no-agents", *arguments])
    child.expect(r"\d+ of \d+ looked at")
    child.expect("✓  python")
    child.expect("none runs on")
    assert ended(child) == exits.OK


def test_signs_are_plain_where_the_terminal_is(
    place: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    found = [Teller("g", "c").warn("text\x1b[2J", "advice")]
    monkeypatch.setattr(sys, "stdout", open(os.devnull, "w", encoding="ascii"))  # noqa: SIM115
    lines = list(doctor._as_text(found))
    sys.stdout.close()
    assert [click.unstyle(each) for each in lines] == [
        "g",
        r"  !  c  text\x1b[2J",
        "        -> advice",
        "",
        "0 faults, 1 warning.",
    ]
