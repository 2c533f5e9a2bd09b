"""How soon ``ahpd --stdio`` answers `initialize` after exec, beside the interpreter's own start.

Run it as ``python contrib/bench/startup.py``. Each round starts, in turn, the bare interpreter,
the interpreter with trio, and the host, which is asked before it is up, as an editor does. Compiled
modules are kept in a folder of their own that the first, uncounted round fills, as an installation
has them; everything else is as it is. Prints medians in milliseconds, and exits 1 when the host's
is over ``--limit``.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping

_INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "channel": "ahp-root://",
        "protocolVersions": ["1.0.0"],
        "clientId": "startup",
        "initialSubscriptions": ["ahp-root://"],
    },
}


def plain(code: str, environment: Mapping[str, str]) -> float:
    """Seconds that the interpreter takes to start, run `code` and say so."""
    start = time.perf_counter()
    subprocess.run([sys.executable, "-c", code], env=environment, check=True)
    return time.perf_counter() - start


def answered(environment: Mapping[str, str]) -> float:
    """Seconds from exec to the answer."""
    start = time.perf_counter()
    with subprocess.Popen(
        [sys.executable, "-m", "ahpd", "--stdio"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=environment,
    ) as host:
        assert host.stdin is not None
        assert host.stdout is not None
        host.stdin.write(json.dumps(_INITIALIZE).encode() + b"\n")
        host.stdin.flush()
        answer = json.loads(host.stdout.readline())
        took = time.perf_counter() - start
        host.stdin.close()
    if "result" not in answer or host.returncode != 0:
        raise SystemExit(f"not answered as it should be ({host.returncode}): {answer}")
    return took


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=15, help="rounds that count")
    parser.add_argument("--limit", type=float, default=400.0, help="milliseconds")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as compiled:
        environment = dict(os.environ, PYTHONPYCACHEPREFIX=compiled)
        environment.pop("PYTHONDONTWRITEBYTECODE", None)
        measured: dict[str, Callable[[], float]] = {
            "bare interpreter": lambda: plain("pass", environment),
            "with trio": lambda: plain("import trio", environment),
            "ahpd --stdio, to the answer": lambda: answered(environment),
        }
        times: dict[str, list[float]] = {name: [] for name in measured}
        for round_number in range(given.rounds + 1):
            for name, measure in measured.items():
                took = measure() * 1000
                if round_number:
                    times[name].append(took)
    medians = {name: statistics.median(values) for name, values in times.items()}
    for name, values in times.items():
        print(f"{name:<28}{medians[name]:7.0f} ms   ({min(values):.0f} to {max(values):.0f})")
    ours = medians["ahpd --stdio, to the answer"]
    print(f"{'times the bare interpreter':<28}{ours / medians['bare interpreter']:7.1f}")
    return 0 if ours <= given.limit else 1


if __name__ == "__main__":
    sys.exit(main())
