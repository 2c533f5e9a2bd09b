"""``ahpd log follow``: what a host logs, on a terminal and for programs."""

from __future__ import annotations

import json
import re
import signal
import subprocess
from pathlib import Path

import pytest

from ahpd.cli import exits
from ahpd.cli.group import run
from tests.cli.daemons import WITHIN, Daemon, daemon, ended, environment, spawn

__all__ = ["daemon"]

pytestmark = pytest.mark.real_time


def test_on_a_terminal_until_ctrl_c(daemon: Daemon) -> None:
    child = spawn(daemon.command("log", "follow", "--level", "debug", "sessions"), columns=300)
    child.expect("following the log")
    assert daemon.run("ask", "fail") == exits.FAILED
    child.expect(r"DEBUG session/\S+: turn \S+ begins  \[channel=\S+ number=\d+ client=ahpd-ask-")
    child.expect(r"INFO  session/\S+: turn \S+ failed: AgentError: no luck")
    assert "joined" not in child.before
    child.sendintr()
    assert ended(child) == exits.INTERRUPTED


def test_for_programs(daemon: Daemon) -> None:
    command = daemon.command("log", "follow", "--json")
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdout=pipe, stderr=pipe, env=environment()) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert b"following the log" in process.stderr.readline()
        assert daemon.run("ask", "fail") == exits.FAILED
        record = json.loads(process.stdout.readline())
        process.send_signal(signal.SIGTERM)
        assert process.wait(WITHIN) == 128 + signal.SIGTERM
    assert (record["level"], record["subsystem"]) == ("info", "sessions")
    assert re.fullmatch(r"turn \S+ failed: AgentError: no luck", record["text"])
    assert record["attributes"]["ahp.session.id"].startswith("test:/")


def test_without_a_daemon(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["log", "follow", "--state-dir", str(tmp_path)]) == exits.NO_DAEMON
    assert "no daemon is running" in capsys.readouterr().err
    assert run(["log", "follow", "--level", "loud"]) == exits.USAGE
