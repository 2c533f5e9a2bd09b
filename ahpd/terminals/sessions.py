"""Processes by the session of the kernel that they are in: what a terminal's shell has started.

A shell with job control puts each job into a process group of its own, so only the session holds
them together. Read from ``/proc``; where there is none, nothing is found. Blocks.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Iterable
from contextlib import suppress

from msgspec import Struct


class Member(Struct, frozen=True):
    """A process; `started` (ticks since the boot) tells it from a later one of the same number."""

    pid: int
    started: int


def members(session: int) -> frozenset[Member]:
    """The processes that run in this session now."""
    found = set()
    try:
        names = os.listdir("/proc")
    except OSError:
        return frozenset()
    for name in names:
        if not name.isdigit():
            continue
        fields = _stat(name)
        if fields is not None and fields[3] == str(session) and fields[0] not in ("Z", "X"):
            found.add(Member(int(name), int(fields[19])))
    return frozenset(found)


def _stat(name: str) -> list[str] | None:
    """The fields of ``/proc/N/stat`` from the state on: the name before it may hold anything."""
    try:
        with open(f"/proc/{name}/stat", encoding="utf-8", errors="replace") as file:
            text = file.read()
    except OSError:  # it is gone
        return None
    return text.rpartition(")")[2].split()


#: The numbers of the system call `read`, by the machine, and of those that wait for any of several
#: files: poll, select, epoll_wait, pselect6, ppoll, epoll_pwait, epoll_pwait2.
_READ = {"x86_64": "0", "aarch64": "63", "riscv64": "63"}
_GENERIC = frozenset(("22", "72", "73", "441"))
_WAIT = {
    "x86_64": frozenset(("7", "23", "232", "270", "271", "281", "441")),
    "aarch64": _GENERIC,
    "riscv64": _GENERIC,
}


def is_reading(session: int, *, keys: bool) -> bool:
    """Whether a process that is in front on this session's terminal waits to read from it.

    `keys`: the terminal gives it keys, not lines, as editors of lines have it. Then it does too
    when it waits for anything at all: most of them wait for the terminal and for more at once.
    """
    machine = os.uname().machine
    leader = _stat(str(session))
    if leader is None:
        return False
    terminal, front = leader[4], leader[5]
    for member in members(session):
        fields = _stat(str(member.pid))
        if fields is not None and fields[2] == front and fields[4] == terminal:
            call = _call(member.pid)
            if call is None:
                continue
            if keys and call[0] in _WAIT.get(machine, ()):
                return True
            if call[0] == _READ.get(machine) and _is_tty(*call[1:]):
                return True
    return False


def _call(pid: int) -> tuple[str, int, str] | None:
    """The system call that it waits in, the process, and the call's first argument."""
    try:
        with open(f"/proc/{pid}/syscall", encoding="ascii") as file:
            fields = file.read().split()
    except OSError:
        return None
    return (fields[0], pid, fields[1]) if len(fields) > 1 else None


def _is_tty(pid: int, descriptor: str) -> bool:
    try:
        return os.readlink(f"/proc/{pid}/fd/{int(descriptor, 16)}").startswith(
            ("/dev/pts/", "/dev/tty")
        )
    except (OSError, ValueError):
        return False


def send(pids: Iterable[int], number: signal.Signals) -> None:
    """Send a signal to each, and wake those that are stopped so that they can take it."""
    for pid in pids:
        with suppress(ProcessLookupError, PermissionError):
            os.kill(pid, number)
            if number is not signal.SIGKILL:
                os.kill(pid, signal.SIGCONT)


def send_to_group(group: int, number: signal.Signals) -> None:
    """The same for a process group, where sessions cannot be read."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(group, number)
        os.killpg(group, signal.SIGCONT)
