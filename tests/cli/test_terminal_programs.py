"""Shells and full screens in a daemon's terminal, used by people on real terminals of their own.

Each is started, typed into, resized and killed; who comes late sees the screen that the others see.
"""

from __future__ import annotations

import io
import os
import re
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import attrs
import pyte
import pytest

from ahpd.cli import exits
from tests.cli.daemons import WITHIN, Daemon, ended, spawn, start_daemon, stop_daemon
from tests.terminals.hosts import Screen
from tests.terminals.support import lives

pytestmark = pytest.mark.real_time


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    process, found = start_daemon(tmp_path_factory.mktemp("t"))
    yield found
    stop_daemon(process)


@attrs.define
class Person:
    """Somebody at a terminal, and what is on its screen."""

    child: Any
    size: tuple[int, int]
    _log: io.StringIO = attrs.field(factory=io.StringIO)
    _fed: int = 0
    _stream: Any = None
    _screen: Any = None

    def __attrs_post_init__(self) -> None:
        self.child.logfile_read = self._log
        self._screen = Screen(*self.size)
        self._stream = pyte.Stream(self._screen)

    def screen(self) -> list[str]:
        text = self._log.getvalue()
        self._stream.feed(text[self._fed :])
        self._fed = len(text)
        return [line.rstrip() for line in self._screen.display]

    def look(self) -> list[str]:
        """Read what there is, and give the screen."""
        try:
            while True:
                self.child.read_nonblocking(1 << 16, timeout=0.05)
        except pexpect_timeout():
            return self.screen()

    def sees(self, wanted: str) -> None:
        """Wait until this is on the screen."""
        until = time.monotonic() + WITHIN
        while not any(wanted in line for line in self.look()):
            assert time.monotonic() < until, (wanted, self.screen())

    def resize(self, columns: int, lines: int) -> None:
        self.look()
        self.child.setwinsize(lines, columns)
        self._screen.resize(lines, columns)
        self.size = columns, lines


def pexpect_timeout() -> type[Exception]:
    import pexpect

    timeout: type[Exception] = pexpect.TIMEOUT
    return timeout


SIZE = "stty size | tr ' ' x\r"


@attrs.frozen
class Program:
    """How to start one, what to type, and what is then to be seen; once more when it was resized.

    `command` is what the shell becomes; {} stands for a file of 200 lines.
    """

    command: str
    typed: str
    shows: str
    typed_again: str
    shows_again: str


PROGRAMS = {
    "bash": Program("bash --norc -i", "echo he''llo\r", "hello", f"clear; {SIZE}", "15x70"),
    "zsh": Program("zsh -f -i", "echo he''llo\r", "hello", f"clear; {SIZE}", "15x70"),
    "fish": Program("fish -N -i", "echo he''llo\r", "hello", f"clear; {SIZE}", "15x70"),
    "vim": Program("vim -u NONE -N {}", "ohello\x1b", "hello", ":set number\r", "  2 hello"),
    "less": Program("less {}", "/line 50\r", "line 50", "/line 90\r", "line 90"),
    "htop": Program("htop -d 100", "", "PID", "", "PID"),
}


def needs(name: str) -> Any:
    missing = shutil.which(name) is None
    return pytest.param(name, marks=pytest.mark.skipif(missing, reason=f"there is no {name} here"))


@pytest.mark.parametrize("name", [needs(each) for each in PROGRAMS])
def test_a_program_is_started_typed_into_resized_seen_by_who_comes_late_and_killed(
    name: str, daemon: Daemon, tmp_path: Path
) -> None:
    program = PROGRAMS[name]
    file = tmp_path / "f"
    file.write_text("".join(f"line {number}\n" for number in range(200)))
    ann = Person(spawn(daemon.command("terminal", "--new"), columns=80, lines=24), (80, 24))
    start = program.command.format(file)
    ann.child.send(f"exec env HOME={tmp_path} TERM=xterm sh -c 'echo pid=$$; exec {start}'\r")
    ann.child.expect(r"pid=(\d+)\r\n")
    pid = int(ann.child.match[1])
    ann.child.send(program.typed)
    ann.sees(program.shows)
    ann.resize(70, 15)
    ann.child.send(program.typed_again)
    ann.sees(program.shows_again)
    uri = re.search(r"ahp-terminal:/[-0-9a-f]+", listed(daemon))
    assert uri is not None
    late = Person(spawn(daemon.command("terminal", uri[0]), columns=70, lines=15), (70, 15))
    late.sees(program.shows_again)
    until = time.monotonic() + WITHIN
    while late.look() != ann.look():
        assert time.monotonic() < until, (late.screen(), ann.screen())
    os.kill(pid, signal.SIGKILL)
    for person in (ann, late):
        person.child.expect("the terminal ended by a signal")
        assert ended(person.child) == exits.OK
    assert not lives(pid)


def listed(daemon: Daemon) -> str:
    """The terminals that run."""
    command = daemon.command("terminals")
    out = subprocess.run(command, check=True, capture_output=True, text=True, timeout=WITHIN).stdout
    return "\n".join(line for line in out.splitlines() if "running" in line)
