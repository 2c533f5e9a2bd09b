"""Daemons that run by themselves: starting one in the background, and stopping it.

All of it blocks; nothing here needs trio. Times are seconds.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import attrs

from ahpd.daemon.errors import StateError
from ahpd.daemon.state import Endpoint, StateFolder, read_json

#: How much of a failed daemon's log is shown, in bytes.
TAIL_BYTES = 2000

_POLL = 0.05


class StartFailed(Exception):
    """The daemon did not take clients; `code` is its exit code, None when it never ended."""

    def __init__(self, message: str, code: int | None) -> None:
        super().__init__(message)
        self.code = code


@attrs.frozen
class Started:
    """A daemon that takes clients, and whether it was there before."""

    endpoint: Endpoint
    was_running: bool


@attrs.frozen
class Past:
    """How a daemon was started: its arguments, and the folder it was started in."""

    arguments: Sequence[str]
    folder: str


def start(
    folder: StateFolder, arguments: Sequence[str], *, cwd: str | None = None, within: float
) -> Started:
    """Start a daemon in a session of its own, unless one runs; it takes clients on return.

    What it says goes to the log in the state folder. Raises `StartFailed` and `StateError`. One
    that is not up after `within` seconds is told to stop.
    """
    folder.make()
    deadline = time.monotonic() + within
    if folder.holder() is not None:
        return Started(_wait_for_other(folder, deadline), was_running=True)
    begin = _log_size(folder.log)
    child = _spawn(folder, arguments, cwd)
    while time.monotonic() < deadline:
        endpoint = folder.read_endpoint()
        if endpoint is not None and endpoint.pid == child.pid:
            return Started(endpoint, was_running=False)
        code = child.poll()
        if code is not None:
            if endpoint is not None or folder.holder() is not None:  # another was faster
                return Started(_wait_for_other(folder, deadline), was_running=True)
            raise StartFailed(_tail(folder.log, begin) or f"it ended with code {code}", code)
        time.sleep(_POLL)
    child.terminate()
    raise StartFailed(f"it takes no clients after {within:g} s; see {folder.log}", None)


def _wait_for_other(folder: StateFolder, deadline: float) -> Endpoint:
    while True:
        endpoint = folder.read_endpoint()
        if endpoint is not None:
            return endpoint
        if time.monotonic() >= deadline:
            raise StartFailed(f"another daemon on {folder.path} does not get up", None)
        time.sleep(_POLL)


def _spawn(
    folder: StateFolder, arguments: Sequence[str], cwd: str | None
) -> subprocess.Popen[bytes]:
    # -P: a file in the folder it is started in must not be taken for one of our modules.
    command = [sys.executable, "-P", "-m", "ahpd", "serve", *arguments]
    ours = ["--quiet", "--state-dir", str(folder.path.absolute())]
    if command[-len(ours) :] != ours:  # they are, when it is started again
        command += ours
    try:
        fd = os.open(folder.log, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise StateError(f"the log {folder.log} cannot be written: {error.strerror}") from None
    try:
        return subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=fd,
            stderr=fd,
            cwd=cwd,
            start_new_session=True,
        )
    finally:
        os.close(fd)


def _log_size(log: Path) -> int:
    try:
        return log.stat().st_size
    except FileNotFoundError:
        return 0


def _tail(log: Path, begin: int) -> str:
    """What was logged from `begin` on, its end when it is long."""
    try:
        with log.open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(begin, size - TAIL_BYTES))
            return file.read().decode(errors="replace").strip()
    except OSError:
        return ""


def stop(folder: StateFolder, *, within: float) -> bool | None:
    """Stop the daemon of a folder in order; None when there was none.

    True: it ended by itself. False: it did not within so many seconds, and was killed.
    """
    pid = folder.holder()
    if pid is None:
        return None
    deadline = time.monotonic() + within
    while not pid:  # it has the lock, and has not said yet who it is
        time.sleep(_POLL)
        pid = folder.holder()
        if pid is None:
            return True
        if time.monotonic() > deadline:
            return False
    if _signal_until_gone(folder, pid, signal.SIGTERM, within):
        return True
    _signal_until_gone(folder, pid, signal.SIGKILL, within)
    return False


def _signal_until_gone(folder: StateFolder, pid: int, number: int, within: float) -> bool:
    with suppress(ProcessLookupError):
        os.kill(pid, number)
    deadline = time.monotonic() + within
    while folder.holder() == pid:
        if time.monotonic() > deadline:
            return False
        time.sleep(_POLL)
    return True


def past(folder: StateFolder) -> Past:
    """How the last daemon of a folder was started; without arguments, here, when nobody knows."""
    value = read_json(folder.launch)
    if isinstance(value, dict):
        arguments, where = value.get("arguments"), value.get("folder")
        if isinstance(arguments, list) and isinstance(where, str):
            return Past([str(each) for each in arguments], where)
    return Past((), os.getcwd())
