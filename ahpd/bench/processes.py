"""Programs that are started for a measurement, and what they use of the machine."""

from __future__ import annotations

import atexit
import functools
import json
import os
import select
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Self

from ahpd.bench.sockets import STUCK

_TICKS = os.sysconf("SC_CLK_TCK")
#: Seconds without work after which a process is at rest, and the longest that is waited for it.
_REST, _REST_WITHIN = 0.5, 60.0


@functools.cache
def environment() -> Mapping[str, str]:
    """For programs that are started: modules stay compiled, as an installation has them."""
    folder = tempfile.TemporaryDirectory(prefix="ahpd-bench-compiled-")
    atexit.register(folder.cleanup)
    found = dict(os.environ, PYTHONPYCACHEPREFIX=folder.name)
    found.pop("PYTHONDONTWRITEBYTECODE", None)
    return found


class BenchFailed(Exception):
    """Something could not be measured, or what arrived was not what had been sent."""


class Program:
    """One of this package's programs: told what to do in an argument, answers in lines of JSON."""

    def __init__(self, module: str, **job: Any) -> None:
        self._name = module
        self._process = subprocess.Popen(
            [sys.executable, "-m", module, json.dumps(job)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            bufsize=0,
            env=environment(),
        )
        self._heard = b""

    @property
    def pid(self) -> int:
        """The process."""
        return self._process.pid

    def hear(self) -> Any:
        """The next thing it says."""
        assert self._process.stdout is not None
        descriptor = self._process.stdout.fileno()
        while b"\n" not in self._heard:
            if not select.select([descriptor], [], [], STUCK)[0]:
                raise BenchFailed(f"{self._name} says nothing")
            data = os.read(descriptor, 1 << 20)
            if not data:
                raise BenchFailed(f"{self._name} ended with code {self._process.wait()}")
            self._heard += data
        line, _, self._heard = self._heard.partition(b"\n")
        return json.loads(line)

    def running(self) -> None:
        """It still is. Raises `BenchFailed` if not."""
        if (code := self._process.poll()) is not None:
            raise BenchFailed(f"{self._name} ended with code {code}")

    def go(self) -> float:
        """Let it go on; the time."""
        assert self._process.stdin is not None
        now = time.monotonic()
        self._process.stdin.write(b"go\n")
        return now

    def __enter__(self) -> Self:
        """The program runs."""
        return self

    def __exit__(self, *_: object) -> None:
        """It does not any more."""
        self._process.kill()
        self._process.communicate()


def say(value: object) -> None:
    """In a program: say something to whoever started it."""
    sys.stdout.write(json.dumps(value) + "\n")
    sys.stdout.flush()


def cpu_seconds(pid: int) -> float:
    """Seconds of the processor that a process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS


def resident(pid: int) -> int:
    """Bytes of memory that a process holds."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) * 1024
    raise BenchFailed(f"process {pid} is gone")


def rest(pid: int) -> None:
    """Wait until a process has nothing to do any more."""
    used, since = cpu_seconds(pid), time.monotonic()
    until = since + _REST_WITHIN
    while time.monotonic() < until:
        time.sleep(0.05)
        now = cpu_seconds(pid)
        if now > used:
            used, since = now, time.monotonic()
        elif time.monotonic() > since + _REST:
            return
    raise BenchFailed(f"process {pid} does not come to rest")


def wait_for(what: str, holds: Callable[[], bool], within: float = STUCK) -> None:
    """Wait until something is so."""
    until = time.monotonic() + within
    while not holds():
        if time.monotonic() > until:
            raise BenchFailed(f"{what}: not after {within:g} s")
        time.sleep(0.01)
