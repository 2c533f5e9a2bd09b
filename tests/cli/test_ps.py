"""``ahpd ps`` against a real daemon, and what it makes of a tree."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from ahpd.cli import exits
from ahpd.cli.group import run
from ahpd.cli.tree_shown import Rates, lines
from tests.cli.daemons import WITHIN, Daemon, daemon, ended, environment, spawn

__all__ = ["daemon"]

pytestmark = pytest.mark.real_time


def test_it_is_one_json_object(daemon: Daemon) -> None:
    done = subprocess.run(
        daemon.command("ps", "--json"), check=True, capture_output=True, timeout=WITHIN
    )
    found = json.loads(done.stdout)
    paths = [each["path"] for each in found["actors"]]
    assert {"sequencer", "root", "connections", "listeners/look"} <= set(paths)
    assert all(each["phase"] == "running" for each in found["actors"])
    assert found["memoryBytes"] > 1 << 20


def test_only_the_owner_gets_at_the_socket(daemon: Daemon) -> None:
    about = (daemon.state / "look.sock").stat()
    assert about.st_mode & 0o777 == 0o600
    assert about.st_uid == os.getuid()
    assert daemon.state.stat().st_mode & 0o777 == 0o700


def test_it_is_a_tree_for_people(daemon: Daemon, capsys: pytest.CaptureFixture[str]) -> None:
    assert daemon.run("ps") == exits.OK
    out = capsys.readouterr().out.splitlines()
    assert "actors" in out[0]
    head = next(place for place, text in enumerate(out) if text.startswith("ACTOR "))
    assert out[head].split() == ["ACTOR", "DOES", "WAITING", "HANDLED", "RESTARTS", "MEMORY",
                                 "LAST", "CRASH"]  # fmt: skip
    below = out[head + 1 :]
    place = next(place for place, text in enumerate(below) if text.startswith("listeners "))
    assert [text.split()[0] for text in below[place + 1 : place + 4]] == [
        "look", "unix", "websocket",
    ]  # fmt: skip
    assert daemon.run("ps", "listeners") == exits.OK
    assert capsys.readouterr().out.count("\n") == 6


def test_a_name_that_fits_nothing_or_too_much(
    daemon: Daemon, capsys: pytest.CaptureFixture[str]
) -> None:
    assert daemon.run("ps", "nobody") == exits.USAGE
    assert "there is no actor nobody" in capsys.readouterr().err
    assert daemon.run("ps", "watch") == exits.OK
    assert daemon.run("ps", "listen") == exits.OK
    assert daemon.run("ps", "terminal") == exits.USAGE
    assert "terminal may be any of: terminal-keeper, terminals" in capsys.readouterr().err


def test_without_a_daemon_it_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["ps", "--state-dir", str(tmp_path)]) == exits.NO_DAEMON
    assert "no daemon is running" in capsys.readouterr().err
    (tmp_path / "look.sock").touch()
    assert run(["ps", "--state-dir", str(tmp_path), "--json"]) == exits.NO_DAEMON
    assert "start one with: ahpd start" in capsys.readouterr().err


def test_it_is_drawn_again_and_again_until_ctrl_c(daemon: Daemon) -> None:
    child = spawn(daemon.command("ps", "--watch", "--every", "0.1"))
    for _ in range(3):
        child.expect("actors, .* messages wait")
        child.expect("sequencer")
    child.sendintr()
    assert ended(child) == exits.INTERRUPTED


def test_a_reader_that_goes_away_is_no_fault(daemon: Daemon) -> None:
    command = " ".join(daemon.command("ps", "--json", "--watch", "--every", "0.1"))
    done = subprocess.run(
        ["bash", "-c", f"{command} | head -c 20; exit ${{PIPESTATUS[0]}}"],
        capture_output=True, timeout=WITHIN, env=environment(), check=False,
    )  # fmt: skip
    assert done.returncode == exits.PIPE_CLOSED
    assert done.stderr == b""


# ---- what is shown of a tree --------------------------------------------------------------------


def actor(path: str, supervisor: str = "", **more: Any) -> dict[str, Any]:
    box = {"count": 0, "urgent": 0, "bytes": 0, "oldestSeconds": 0.0}
    return {
        "path": path, "kind": "chat", "supervisor": supervisor, "phase": "running", "doing": "idle",
        "handled": 1, "restarts": 0, "upSeconds": 1.0, "mailbox": box, "memoryBytes": {},
        "lastCrash": None, "troubles": [], **more,
    }  # fmt: skip


def tree(*actors: Any, troubles: Any = ()) -> Any:
    above = actor("all", kind="supervisor", mailbox=None, doing="running, many children")
    return {
        "actors": [above, *actors], "troubles": list(troubles), "serverSeq": 7,
        "loop": {"longestRoundSeconds": 0.002}, "memoryBytes": 1 << 20,
    }  # fmt: skip


def shown(found: Any, columns: int | None = None, **options: Any) -> list[str]:
    return [each.text for each in lines(found, columns, **{"show_all": False, **options})]


def test_idle_children_of_one_supervisor_are_one_line() -> None:
    many = [actor(f"all/{number}", "all") for number in range(100)]
    many[41] = actor("all/41", "all", doing="in a turn for 3.0 s: Reading")
    many[62] = actor("all/62", "all", troubles=["failed"])
    out = shown(tree(*many))
    assert [each.split("  ")[0:2][0] for each in out[2:3]] == ["all"]
    assert out[3].split()[:2] == ["41", "in"]
    assert out[4].split()[:2] == ["62", "!"]
    assert out[5].split() == ["…", "98", "more", "idle"]
    assert len(shown(tree(*many), show_all=True)) == 103


def test_what_is_busy_below_an_idle_one_is_shown() -> None:
    many = [actor(f"all/{n}", "all", kind="supervisor", mailbox=None) for n in range(50)]
    busy = actor("all/3/chat", "all/3", doing="AgentSays TextChunk, sent 2 ms ago")
    out = shown(tree(*many, busy))
    assert [each.split()[0] for each in out[3:]] == ["3", "chat", "…"]


def test_troubles_come_first_and_nothing_is_wider_than_the_terminal() -> None:
    crash = {"text": "crashed: ValueError: " + "no " * 60, "agoSeconds": 3.0}
    box = {"count": 3, "urgent": 1, "bytes": 2048, "oldestSeconds": 4.5}
    found = tree(
        actor("all/1", "all", doing="a" * 300, lastCrash=crash, mailbox=box, troubles=["x"]),
        troubles=[{"path": "all/1", "why": "failed\x1b[31m"}, {"path": "", "why": "busy"}],
    )
    out = shown(found, 100)
    assert out[1] == r"! all/1: failed\x1b[31m"
    assert out[2] == "! the host: busy"
    assert all(len(text) <= 100 for text in out[3:])
    assert "LAST CRASH" not in shown(tree(actor("all/1", "all")), 100)[1]
    long = shown(tree(actor("all/0123456789-0123456789", "all")), 100)
    assert long[3].split()[:2] == ["0123456789-01…", "idle"]
    [row] = [text for text in shown(found) if text.startswith("  1 !")]
    assert "3+1, 2 KiB, 4.5 s" in row
    assert "3.0 s ago: crashed: ValueError" in row


def test_messages_a_second_are_counted_between_two_looks() -> None:
    rates = Rates()
    rates.note(tree(actor("all/1", "all", handled=10)))
    assert rates.of("all/1") is None
    rates.note(tree(actor("all/1", "all", handled=30), actor("all/2", "all", handled=5)))
    assert (rates.of("all/1") or 0) > 0
    assert rates.of("all/2") is None
    rates.note(tree(actor("all/1", "all", handled=1)))  # it was started again
    assert rates.of("all/1") is None
