"""Agents of a host that was killed. Most end with their input, but some go on for ever.

What a host starts bears a mark in its environment that says whose it is, and so do the children of
that. Only where there is ``/proc`` are they found.
"""

from __future__ import annotations

import logging
import os
import signal
import time
from collections.abc import Iterator
from contextlib import suppress

from ahpd.agents.acp.agent import MARK

_log = logging.getLogger("ahpd.agents.acp")

#: Seconds that they have from SIGTERM to SIGKILL.
TERM_WITHIN = 1.0
_LOOK_EVERY = 0.02


def end_leftovers(mark: str) -> int:
    """End the process groups that hosts with this mark left, and say how many there were.

    To be called while no host with this mark has agents. Blocks, `TERM_WITHIN` at most.
    """
    groups = set(_groups(mark))
    until = time.monotonic() + TERM_WITHIN
    _signal(groups, signal.SIGTERM)
    left = groups
    while left and time.monotonic() < until:
        time.sleep(_LOOK_EVERY)
        left = groups & set(_groups(mark))
    _signal(left, signal.SIGKILL)
    if groups:
        _log.info("agents of a host that was killed were ended: %d", len(groups))
    return len(groups)


def _signal(groups: set[int], number: signal.Signals) -> None:
    for group in groups:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(group, number)


def _groups(mark: str) -> Iterator[int]:
    """The process groups with somebody in them who bears the mark, but for this one's own."""
    wanted = f"{MARK}={mark}".encode(errors="surrogateescape")
    try:
        names = os.listdir("/proc")
    except OSError:
        return
    for name in names:
        if not name.isdigit():
            continue
        try:
            with open(f"/proc/{name}/environ", "rb") as file:
                is_one = wanted in file.read().split(b"\0")
            if is_one and (group := os.getpgid(int(name))) != os.getpgrp():
                yield group
        except OSError:  # it has ended meanwhile, or is somebody else's
            continue
