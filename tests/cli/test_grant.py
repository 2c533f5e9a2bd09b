"""``ahpd grant`` against a real daemon."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ahpd.cli import exits
from ahpd.cli.group import run
from tests.cli.daemons import Daemon, daemon

pytestmark = pytest.mark.real_time

__all__ = ["daemon"]


def test_a_place_is_granted_listed_and_taken_back(
    daemon: Daemon,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a b").mkdir()
    uri = f"{tmp_path.as_uri()}/a%20b"
    assert daemon.run("grant") == exits.OK
    assert capsys.readouterr().out == "Nothing is granted.\n"
    assert daemon.run("grant", "a b") == exits.OK
    assert capsys.readouterr().out == f"{uri} may be read\n"
    assert daemon.run("grant", "--write", "--json", uri) == exits.OK
    assert json.loads(capsys.readouterr().out) == {"uri": uri}
    assert daemon.run("grant", "--json") == exits.OK
    assert json.loads(capsys.readouterr().out) == {
        "grants": "ask", "given": [{"uri": uri, "read": True, "write": True}], "asked": [],
    }  # fmt: skip
    assert daemon.run("grant") == exits.OK
    assert capsys.readouterr().out == f"Granted:\nread write  {uri}\n"
    assert daemon.run("grant", "--withdraw", "a b") == exits.OK
    assert capsys.readouterr().out == f"{uri} is served no more\n"
    assert daemon.run("grant", "--withdraw", "a b") == exits.REFUSED
    assert "was not granted" in capsys.readouterr().err


def test_what_makes_no_sense_is_refused(
    daemon: Daemon, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert daemon.run("grant", "--write") == exits.USAGE
    assert daemon.run("grant", "--write", "--withdraw", "x") == exits.USAGE
    for place in ("", "http://example.org/x"):
        assert daemon.run("grant", place) == exits.USAGE
        assert f"{place!r} is no path" in capsys.readouterr().err
    assert daemon.run("grant", "file://elsewhere/x") == exits.REFUSED
    assert "elsewhere" in capsys.readouterr().err
    assert run(["grant", "--state-dir", str(tmp_path / "none")]) == exits.NO_DAEMON
