"""What a host costs while nobody does anything: memory, and the time until it is there."""

from __future__ import annotations

import resource
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import attrs

from ahpd.bench.daemon import command, daemon, end
from ahpd.bench.naive import Naive
from ahpd.bench.processes import BenchFailed, Program, cpu_seconds, environment, resident, rest
from ahpd.bench.report import Aim, Row
from ahpd.bench.sockets import STUCK, WebSocket


def memory(*, quick: bool) -> list[Row]:
    """KiB of memory for one more session with one chat, and for one more connection."""
    sessions, connections, runs = (50, 20, 1) if quick else (500, 100, 3)
    ours = [_of_host(sessions, connections) for _ in range(runs)]
    tasks = [_of_tasks(sessions) for _ in range(runs)]
    bare = [_of_bare_connections(connections) for _ in range(runs)]
    return [
        Row(
            "an idle session with one chat",
            "KiB",
            [session for session, _ in ours],
            "a bare trio task with a nursery",
            tasks,
            (Aim(60, at_most=True),),
        ),
        Row(
            "an idle connection",
            "KiB",
            [connection for _, connection in ours],
            "a bare trio-websocket connection",
            bare,
            (Aim(120, at_most=True),),
        ),
    ]


#: Made before it is measured: what the first ones bring along is not theirs.
_FIRST = 20


def _of_host(sessions: int, connections: int) -> tuple[float, float]:
    with daemon([]) as host:

        def connect(count: int) -> None:
            for _ in range(count):
                host.connect()

        peer = host.connect()
        peer.sessions(host, _FIRST)
        connect(_FIRST)
        by_session = _growth(host.pid, lambda: peer.sessions(host, sessions)) / sessions
        return by_session, _growth(host.pid, lambda: connect(connections)) / connections


def _of_tasks(count: int) -> float:
    with Program("ahpd.bench.naive", role="tasks", count=count) as tasks:
        tasks.hear()
        return _growth(tasks.pid, tasks.go) / count


def _of_bare_connections(count: int) -> float:
    with Naive("hold") as plain, ExitStack() as opened:

        def connect(connections: int) -> None:
            for _ in range(connections):
                opened.enter_context(WebSocket(plain.port))

        connect(_FIRST)
        return _growth(plain.pid, lambda: connect(count)) / count


def _growth(pid: int, more: Callable[[], object]) -> float:
    """KiB by which a process grows, from rest to rest."""
    rest(pid)
    before = resident(pid)
    more()
    rest(pid)
    return (resident(pid) - before) / 1024


def start(*, quick: bool) -> list[Row]:
    """Milliseconds from exec to the first connection that is taken."""
    runs = 2 if quick else 11
    _first_accept()  # the first finds nothing compiled, perhaps
    ours, bare, with_trio = [], [], []
    for _ in range(runs):
        ours.append(_first_accept())
        bare.append(_plain("pass"))
        with_trio.append(_plain("import trio, trio_websocket"))
    aims = (Aim(350, at_most=True),)
    beside = "the bare interpreter"
    return [
        Row(
            "import and start to first accept",
            "ms",
            [each.wall for each in ours],
            beside,
            [each.wall for each in bare],
            aims,
        ),
        Row(
            "the same in processor time",
            "ms",
            [each.cpu for each in ours],
            "trio and trio-websocket imported",
            [each.cpu for each in with_trio],
        ),
    ]


@attrs.frozen
class _Took:
    """Milliseconds, of the clock and of the processor."""

    wall: float
    cpu: float


def _first_accept() -> _Took:
    with tempfile.TemporaryDirectory(prefix="ahpd-bench-") as name:
        folder = Path(name)
        (folder / "script.json").write_text('{"turns": []}')
        (folder / "config.toml").touch()
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            port = taken.getsockname()[1]
        words = [*command(folder, port), "--without-connection-token"]
        begun = time.perf_counter()
        process = subprocess.Popen(
            words,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env=environment(),
        )
        try:
            while True:
                try:
                    WebSocket(port).close()
                except ConnectionRefusedError:
                    if time.perf_counter() > begun + STUCK or process.poll() is not None:
                        raise BenchFailed("the host does not start") from None
                    time.sleep(0.001)
                else:
                    wall = time.perf_counter() - begun
                    return _Took(1000 * wall, 1000 * cpu_seconds(process.pid))
        finally:
            end(process)


def _plain(code: str) -> _Took:
    begun, before = time.perf_counter(), _children()
    subprocess.run([sys.executable, "-c", code], check=True, env=environment())
    return _Took(1000 * (time.perf_counter() - begun), 1000 * (_children() - before))


def _children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
