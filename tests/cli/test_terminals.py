"""``ahpd terminals`` and ``ahpd terminal`` against a real daemon, on real terminals."""

from __future__ import annotations

import json
import os
import re
import select
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyte
import pytest
import trio

from ahpd.cli import exits
from tests.cli.daemons import (
    WITHIN,
    Daemon,
    ended,
    environment,
    line_to,
    spawn,
    start_daemon,
    stop_daemon,
)

pytestmark = pytest.mark.real_time


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    process, found = start_daemon(tmp_path_factory.mktemp("t"))
    yield found
    stop_daemon(process)


def listed(daemon: Daemon) -> list[Any]:
    out = subprocess.run(
        daemon.command("terminals", "--json"), check=True, capture_output=True, timeout=WITHIN
    ).stdout
    found: list[Any] = json.loads(out)["terminals"]
    return found


def opened(daemon: Daemon, *more: str) -> Any:
    """Somebody in a new terminal, in which a plain shell runs."""
    child = spawn(daemon.command("terminal", "--new", *more))
    child.sendline("exec env -i PS1='here> ' TERM=xterm sh")
    child.expect("\rhere> ")
    return child


def test_there_are_none(daemon: Daemon, capsys: pytest.CaptureFixture[str]) -> None:
    assert daemon.run("terminals") == exits.OK
    assert capsys.readouterr().out == "There are no terminals.\n"


def test_one_is_used_left_listed_and_used_again_by_two(
    daemon: Daemon, capsys: pytest.CaptureFixture[str]
) -> None:
    ann = opened(daemon)
    ann.sendline("stty size; echo do''ne")
    ann.expect("30 100\r\n")
    ann.expect("done\r\n")
    uri = listed(daemon)[-1]["resource"]
    ann.send("\x1d")
    ann.expect("left; the terminal goes on")
    assert ended(ann) == exits.OK
    assert daemon.run("terminals") == exits.OK
    table = capsys.readouterr().out
    assert re.search(r"running +ahpd-terminal-\w+ +ahp-terminal:/", table)
    ann, bob = (spawn(daemon.command("terminal", uri)) for _ in range(2))
    for child in (ann, bob):
        child.expect("30 100\r\n")  # of the snapshot
        child.expect("done\r\n")
    ann.send("echo from ''ann\r")
    for child in (ann, bob):
        child.expect("from ann\r\n")
    bob.send("exit 3\r")
    for child in (ann, bob):
        child.expect("the terminal ended with exit code 3")
        assert ended(child) == exits.OK
    assert daemon.run("terminals") == exits.OK
    assert "exit code 3" in capsys.readouterr().out


def test_our_own_terminal_is_as_it_was_after_a_full_screen(daemon: Daemon) -> None:
    command = " ".join(f"'{each}'" for each in daemon.command("terminal", "--new"))
    child = spawn(
        ["/bin/sh", "-c", f'a=$(stty -a); {command}; [ "$a" = "$(stty -a)" ] && echo SAME']
    )
    child.send("printf '\\033[?1049h\\033[?25lfu''ll'\r")
    child.expect("full")
    child.send("\x1d")
    child.expect_exact("\x1b[?1049l\x1b7\x1b[r\x1b8\x1b[?25h")
    child.expect("SAME")
    assert ended(child) == 0


def test_it_follows_our_size_unless_told_otherwise(daemon: Daemon) -> None:
    child = opened(daemon)
    child.setwinsize(11, 44)
    child.sendline("until stty size | grep '^11 44'; do sleep 0.1; done; echo de''tached")
    child.expect("11 44\r\n")
    child.send("\x1d")
    assert ended(child) == exits.OK
    child = opened(daemon, "--keep-size")
    child.sendline("stty size")
    child.expect("24 80\r\n")
    child.send("\x1d")
    assert ended(child) == exits.OK


def test_another_key_leaves_and_signals_leave_the_terminal_sane(daemon: Daemon) -> None:
    child = opened(daemon, "--detach-key", "ctrl-t")
    child.send("\x1d\x14")
    child.expect("left")
    assert ended(child) == exits.OK
    child = opened(daemon)
    child.kill(15)
    child.expect_exact("\x1b[?1049l")
    assert ended(child) == 128 + 15


def test_what_cannot_be_used_is_told(daemon: Daemon, capsys: pytest.CaptureFixture[str]) -> None:
    assert daemon.run("terminal") == exits.USAGE
    assert daemon.run("terminal", "--new", "ahp-terminal:/x") == exits.USAGE
    assert daemon.run("terminal", "ahp-terminal:/x", "--detach-key", "x") == exits.USAGE
    capsys.readouterr()
    child = spawn(daemon.command("terminal", "ahp-terminal:/nowhere"))
    child.expect("there is no channel ahp-terminal:/nowhere")
    assert ended(child) == exits.REFUSED
    found = subprocess.run(
        daemon.command("terminal", "ahp-terminal:/x"),
        stdin=subprocess.DEVNULL, capture_output=True, text=True, env=environment(),
        timeout=WITHIN, check=False,
    )  # fmt: skip
    assert found.returncode == exits.USAGE
    assert "input and output have to be one" in found.stderr


def test_without_a_daemon_it_says_so(tmp_path: Path) -> None:
    child = spawn(
        [sys.executable, "-m", "ahpd", "terminal", "ahp-terminal:/x", "--state-dir", str(tmp_path)]
    )
    child.expect("no daemon is running")
    assert ended(child) == exits.NO_DAEMON


async def test_a_lost_connection_is_made_anew_and_the_screen_drawn_anew(
    daemon: Daemon, tmp_path: Path
) -> None:
    path = tmp_path / "l.sock"
    async with line_to(daemon, path) as line:
        url = f"unix:{path}"
        child = spawn([sys.executable, "-m", "ahpd", "terminal", "--new", "--url", url])

        async def expect(*wanted: str) -> None:
            for each in wanted:
                await trio.to_thread.run_sync(child.expect, each)

        child.sendline("exec env -i PS1='here> ' TERM=xterm sh")
        await expect("\rhere> ")
        child.sendline("echo be''fore; (sleep 1; echo mean''while) & sleep 0.2; echo now")
        await expect("before\r\n", "now\r\n")
        for number in range(3):
            line.cut()
            await expect("the connection is lost; trying again, ctrl-] leaves")
            child.send("lost")
            child.setwinsize(20 + number, 70)
            await trio.sleep(0.3)
            line.mend()
            await expect(r"\x1b\[H\x1b\[2J", "before\r\n", "meanwhile\r\n" if number else "")
            child.sendline(f"stty size; echo again{number}''!")
            await expect(f"{20 + number} 70\r\n", f"again{number}!\r\n")
        line.cut()
        await expect("the connection is lost")
        child.send("\x1d")
        await expect("left; the terminal goes on")
        assert await trio.to_thread.run_sync(ended, child) == exits.OK


def test_a_daemon_that_is_started_again_shows_what_is_left_and_one_that_is_not_is_given_up(
    tmp_path: Path,
) -> None:
    process, daemon = start_daemon(tmp_path)
    child = opened(daemon)
    child.sendline("echo ke''pt")
    child.expect("kept\r\n")
    process.kill()
    process.wait()
    child.expect("the connection is lost")
    process, daemon = start_daemon(tmp_path)
    child.expect(r"\x1b\[H\x1b\[2J")
    child.expect("kept\r\n")
    child.expect("the terminal has ended")
    assert ended(child) == exits.OK
    command = " ".join(
        f"'{each}'" for each in daemon.command("terminal", "--new", "--reconnect", "0.5")
    )
    child = spawn(
        ["/bin/sh", "-c", f'a=$(stty -a); {command}; echo code=$?; [ "$a" = "$(stty -a)" ]']
    )
    child.send("printf '\\033[?1049h\\033[?25lfu''ll'\r")
    child.expect("full")
    process.kill()
    process.wait()
    child.expect("the connection is lost; the terminal goes on")
    child.expect(f"code={exits.NO_DAEMON}\r\n")
    assert ended(child) == 0


def test_leaving_keeps_what_is_on_the_screen_and_says_so_below(daemon: Daemon) -> None:
    child = opened(daemon)
    child.sendline("echo fir''st; echo la''st")
    child.expect("last\r\nhere> ")
    shown = child.before + child.after
    child.send("\x1d")
    child.expect("the terminal goes on")
    screen = pyte.Screen(100, 30)
    pyte.Stream(screen).feed(f"{shown}{child.before}{child.after}")
    lines = [each.rstrip() for each in screen.display if each.strip()]
    assert lines[-4:] == ["first", "last", "here>", "left; the terminal goes on"]
    assert ended(child) == exits.OK


def test_who_comes_late_answers_no_question_of_old(daemon: Daemon) -> None:
    ann = opened(daemon)
    ann.sendline("printf '\\033[c\\033[6nas''ked\\n'")
    ann.expect_exact("\x1b[c\x1b[6nasked")  # who is there is asked
    ann.expect("here> ")
    bob = spawn(daemon.command("terminal", listed(daemon)[-1]["resource"]))
    bob.expect("asked\r\nhere> ")
    assert "\x1b[c" not in bob.before
    assert "\x1b[6n" not in bob.before
    for child in (ann, bob):
        child.send("\x1d")
        assert ended(child) == exits.OK


def test_who_cannot_show_a_flood_is_shown_its_end(daemon: Daemon, tmp_path: Path) -> None:
    ann, over = opened(daemon), tmp_path / "over"
    ann.sendline(f"yes 'much to read' | head -c 30000000; echo DO''NE; : > {over}")
    until = time.monotonic() + WITHIN
    while not over.exists():  # and nothing is read from it
        assert time.monotonic() < until
        time.sleep(0.05)
    shown, tail = 0, b""
    while b"DONE\r\n" not in tail:
        assert select.select([ann.child_fd], [], [], WITHIN)[0]
        data = os.read(ann.child_fd, 1 << 20)
        shown += len(data)
        tail = (tail + data)[-1000:]
    assert shown < 10_000_000
    ann.send("\x1d")
    assert ended(ann) == exits.OK
