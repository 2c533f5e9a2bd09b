"""``ahpd sessions``: the table at every width, and the list as JSON."""

from __future__ import annotations

import json
import subprocess
from datetime import UTC, datetime
from pathlib import Path

import click
import pytest

from ahpd.cli import exits
from ahpd.cli.sessions import _table
from ahpd.cli.shown import width
from ahpd.protocol.session import SessionChatSummary, SessionSummary
from tests.cli.daemons import (
    RUDE_SHOWN,
    WITHIN,
    Daemon,
    daemon,
    ended,
    environment,
    spawn,
    start_daemon,
    stop_daemon,
)

__all__ = ["daemon"]

NOW = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
URI = "ahp-session:/c86d1f01-096b-42ec-bf99-6d349bb8fd38"


def summary(title: str, *, status: int = 33, uri: str = URI) -> SessionSummary:
    return SessionSummary(
        resource=uri,
        provider="demo",
        title=title,
        status=status,
        created_at="2026-03-01T10:00:00Z",
        modified_at="2026-03-01T11:00:00Z",
        chats=(SessionChatSummary(resource="ahp-chat:/c", title=""),),
    )


SESSIONS = [summary("A short tour"), summary("", status=24), summary("日本語" * 20, status=66)]


def test_one_line_each_where_there_is_no_terminal() -> None:
    lines = list(map(click.unstyle, _table(SESSIONS, NOW, None)))
    assert len(lines) == 4
    assert lines[0].split() == ["TITLE", "AGENT", "STATUS", "CHANGED", "CHATS", "URI"]
    assert lines[1].split("  ")[0] == "A short tour"
    assert all(URI in line for line in lines[1:])
    assert lines[2].startswith("(no title)")
    assert "waits for you, unread" in lines[2]
    assert "failed, unread, archived" in lines[3]


@pytest.mark.parametrize("room", [140, 120, 80, 60])
def test_it_fits_and_no_uri_is_cut(room: int) -> None:
    lines = list(map(click.unstyle, _table(SESSIONS, NOW, room)))
    assert all(width(line) <= room for line in lines)
    assert sum(URI in line for line in lines) == 3
    assert len(lines) == (4 if room >= 120 else 7)


def test_columns_are_aligned_beside_wide_characters() -> None:
    lines = list(map(click.unstyle, _table(SESSIONS, NOW, 140)))
    places = {width(line[: line.index("1 h ago")]) for line in lines[1:]}
    assert len(places) == 1


@pytest.mark.real_time
def test_an_empty_daemon(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    process, fresh = start_daemon(tmp_path)
    try:
        assert fresh.run("sessions") == exits.OK
        assert capsys.readouterr().out == "There are no sessions.\n"
        assert fresh.run("sessions", "--json") == exits.OK
        assert json.loads(capsys.readouterr().out) == {"items": []}
    finally:
        stop_daemon(process)


@pytest.mark.real_time
def test_newest_first_limited_and_safe(daemon: Daemon, capsys: pytest.CaptureFixture[str]) -> None:
    assert daemon.run("ask", "--json", "older") == exits.OK
    older = json.loads(capsys.readouterr().out)["session"]
    assert daemon.run("ask", "--json", "rude") == exits.OK
    rude = json.loads(capsys.readouterr().out)["session"]
    assert daemon.run("sessions", "--limit", "2") == exits.OK
    told = capsys.readouterr()
    assert [line.split()[-1] for line in told.out.splitlines()[1:]] == [rude, older]
    assert RUDE_SHOWN in told.out
    assert daemon.run("sessions", "--json", "--limit", "1") == exits.OK
    (item,) = json.loads(capsys.readouterr().out)["items"]
    assert item["resource"] == rude
    assert daemon.run("sessions", "--limit", "0") == exits.USAGE


@pytest.mark.real_time
def test_on_a_narrow_terminal(daemon: Daemon, capsys: pytest.CaptureFixture[str]) -> None:
    assert daemon.run("ask", "--json", "hello") == exits.OK
    session = json.loads(capsys.readouterr().out)["session"]
    child = spawn(daemon.command("sessions"), columns=70)
    child.expect_exact("TITLE")
    child.expect_exact(f"\n  {session}\r\n")
    assert ended(child) == exits.OK


@pytest.mark.real_time
@pytest.mark.parametrize("command", [["sessions", "--json"], ["ask", "hello"], ["demo"]])
def test_a_reader_that_goes_away_ends_a_command_in_silence(
    daemon: Daemon, command: list[str]
) -> None:
    line = daemon.command(*command) if command != ["demo"] else daemon.command()[:3] + command
    with subprocess.Popen(
        line, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        told = process.stderr.read().decode()
        assert process.wait(WITHIN) == exits.PIPE_CLOSED
    assert "Traceback" not in told
    assert "BrokenPipe" not in told
