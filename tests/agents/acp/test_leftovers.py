"""What is ended of a host that was killed, and what is left alone."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import pytest

from ahpd.agents.acp.agent import MARK
from ahpd.agents.acp.leftovers import end_leftovers

pytestmark = pytest.mark.real_time

STUBBORN = 'trap "" TERM; echo; sleep 1000; sleep 1000'
FORKS = "sleep 1000 & echo; exec sleep 1000"


@contextmanager
def started(mark: str, script: str) -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen(
        ["sh", "-c", script],
        env={**os.environ, MARK: mark},
        stdout=subprocess.PIPE,
        start_new_session=True,
    )
    assert process.stdout is not None
    try:
        assert process.stdout.readline() == b"\n"
        yield process
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        process.stdout.close()


def test_groups_that_bear_the_mark_are_ended() -> None:
    mark = f"/mine/{os.getpid()}"
    with (
        started(mark, FORKS) as forks,
        started(mark, STUBBORN) as stubborn,
        started(f"{mark}/other", FORKS) as other,
    ):
        assert end_leftovers(mark) == 2
        assert forks.wait() == -signal.SIGTERM
        assert stubborn.wait() == -signal.SIGKILL
        assert other.poll() is None
        until = time.monotonic() + 20  # what was ended last may take a moment to be gone
        while end_leftovers(mark):
            assert time.monotonic() < until


def test_who_bears_the_mark_itself_is_left_alone() -> None:
    """A host that was started by an agent of the host that was killed."""
    code = "import sys; from ahpd.agents.acp.leftovers import end_leftovers as end;"
    done = subprocess.run(
        [sys.executable, "-c", f"{code} print(end('/nested'))"],
        env={**os.environ, MARK: "/nested"},
        start_new_session=True,
        capture_output=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, b"0\n")
