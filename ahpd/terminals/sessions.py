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
