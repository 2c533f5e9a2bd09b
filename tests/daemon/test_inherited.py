"""A daemon that was started in the background, or by nohup: its terminals know Ctrl-C."""

from __future__ import annotations

import subprocess
import sys

_PROGRAM = """
import subprocess
from ahpd.daemon.inherited import catch_what_is_ignored
catch_what_is_ignored()
subprocess.run(["grep", "SigIgn", "/proc/self/status"])
"""


def test_what_is_started_gets_the_signals_that_we_were_to_ignore() -> None:
    ignoring = 'trap "" HUP INT QUIT TERM TSTP; exec "$@"'
    done = subprocess.run(
        ["sh", "-c", ignoring, "sh", sys.executable, "-c", _PROGRAM],
        capture_output=True,
        check=True,
        timeout=60,
    )
    assert int(done.stdout.split()[1], 16) == 0
