"""What a terminal costs: its output through a host beside a bare pty's, keys, and memory.

Run it as ``python contrib/bench/terminals.py``. The host is a daemon of its own with its journal
on, each subscriber is a process that reads raw lines off its Unix socket, and the bare pty is read
in the same run, in turns with the host. Prints medians and, where there is an aim, whether it was
reached; exits 1 when one was not.
"""

from __future__ import annotations

import argparse
import json
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

MIB = 1 << 20
#: Seconds that anything may take before the benchmark gives up.
WITHIN = 120.0
#: Says so many bytes, in lines of 80, and ends.
_SAYS = (
    "yes 0123456789012345678901234567890123456789012345678901234567890123456789012345678 | head -c"
)


class Client:
    """A client on the daemon's Unix socket; blocking."""

    def __init__(self, path: str, name: str) -> None:
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.settimeout(WITHIN)
        self._socket.connect(path)
        self._lines = self._socket.makefile("rb", buffering=MIB)
        self._ids = 0
        self._seq = 0
        self.name = name
        self.call("initialize", "ahp-root://", protocolVersions=["1.0.0"], clientId=name)

    def _send(self, message: dict[str, Any]) -> None:
        self._socket.sendall(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")

    def call(self, method: str, channel: str, **params: Any) -> Any:
        """The result of a request; what comes meanwhile is dropped."""
        self._ids += 1
        params["channel"] = channel
        self._send({"id": self._ids, "method": method, "params": params})
        while True:
            message = json.loads(self.line())
            if message.get("id") == self._ids:
                return message["result"]

    def line(self) -> bytes:
        """The next message as it came."""
        found = self._lines.readline()
        if not found:
            raise EOFError(f"{self.name}: the host hung up")
        return found

    def create(self, uri: str) -> None:
        """Make a terminal."""
        self.call("createTerminal", uri, claim={"kind": "client", "clientId": self.name})

    def type(self, uri: str, keys: str) -> None:
        """Type into it."""
        self._seq += 1
        action = {"type": "terminal/input", "data": keys}
        params = {"channel": uri, "clientSeq": self._seq, "action": action}
        self._send({"method": "dispatchAction", "params": params})


def read_until_exited(path: str, uri: str, name: str) -> None:
    """A subscriber: says that it hears, then how long it took from the first output to the end."""
    client = Client(path, name)
    client.call("subscribe", uri)
    print("hears", flush=True)
    began = size = 0.0
    while True:
        line = client.line()
        if b'"terminal/data"' in line:
            began = began or time.perf_counter()
            size += len(line)
        elif b'"terminal/exited"' in line:
            break
    print(json.dumps({"seconds": time.perf_counter() - began, "bytes": size}), flush=True)


@contextmanager
def subscribers(path: str, uri: str, count: int) -> Iterator[list[subprocess.Popen[str]]]:
    """So many, which hear it when the block begins."""
    started = [
        subprocess.Popen(
            [sys.executable, __file__, "--reader", path, uri, f"reader-{time.time_ns()}"],
            stdout=subprocess.PIPE,
            text=True,
        )
        for _ in range(count)
    ]
    try:
        for each in started:
            assert each.stdout is not None
            assert each.stdout.readline() == "hears\n"
        yield started
    finally:
        for each in started:
            each.kill()
            each.wait()


@contextmanager
def daemon() -> Iterator[tuple[str, int]]:
    """A daemon; its socket and its pid."""
    with tempfile.TemporaryDirectory(prefix="ahpd-bench-") as name:
        folder = Path(name)
        (folder / "none.toml").touch()
        endpoint = folder / "endpoint.json"
        process = subprocess.Popen(
            [
                *(sys.executable, "-m", "ahpd", "serve", "--port", "0", "--quiet"),
                *("--endpoint-file", str(endpoint), "--state-dir", str(folder / "state")),
                *("--config", str(folder / "none.toml"), "--log-level", "error"),
            ],
            env={**os.environ, "SHELL": "/bin/bash", "HOME": name},
        )
        try:
            until = time.monotonic() + WITHIN
            while not endpoint.exists():
                if time.monotonic() > until or process.poll() is not None:
                    raise RuntimeError("the daemon did not start")
                time.sleep(0.02)
            yield str(folder / "state" / "ahpd.sock"), process.pid
        finally:
            process.terminate()
            process.wait()


# ---- what is measured ---------------------------------------------------------------------------


def bare(size: int) -> float:
    """MB/s of the same output, read off a pty and dropped."""
    master, slave = os.openpty()
    command = ["/bin/bash", "-c", f"{_SAYS} {size}"]
    began = time.perf_counter()
    process = subprocess.Popen(command, stdin=slave, stdout=slave, stderr=slave)
    os.close(slave)
    got = 0
    try:
        while data := os.read(master, 64 << 10):
            got += len(data)
    except OSError:  # the other side is closed: that was all
        pass
    took = time.perf_counter() - began
    process.wait()
    os.close(master)
    return got / took / 1e6


def through(path: str, size: int, count: int) -> float:
    """MB/s through the host to so many subscribers; of the slowest."""
    uri = f"ahp-terminal:/{time.time_ns()}"
    client = Client(path, f"typist-{time.time_ns()}")
    client.create(uri)
    with subscribers(path, uri, count) as readers:
        client.type(uri, f"{_SAYS} {size}; exit\r")
        found = []
        for each in readers:
            assert each.stdout is not None
            found.append(json.loads(each.stdout.readline()))
    client.call("disposeTerminal", uri)
    assert all(each["bytes"] >= size for each in found), found
    return size / float(max(each["seconds"] for each in found)) / 1e6


def echo(path: str, samples: int, *, flooded: bool) -> list[float]:
    """Milliseconds from a key to what a raw terminal shows of it, perhaps beside a flood."""
    uri, flood = (f"ahp-terminal:/{time.time_ns()}" for _ in range(2))
    client = Client(path, f"typist-{time.time_ns()}")
    client.create(uri)
    client.call("subscribe", uri)
    client.type(uri, "stty raw -echo; echo rea''dy; exec cat\r")
    while b"ready" not in client.line():
        pass
    other = Client(path, f"flooder-{time.time_ns()}")
    other.create(flood)
    with subscribers(path, flood, 1 if flooded else 0):
        if flooded:
            other.type(flood, "yes\r")
            time.sleep(1.0)
        took = []
        for number in range(samples):
            mark = f"<{number}>"
            began = time.perf_counter()
            client.type(uri, mark)
            while True:
                line = client.line()
                if b'"terminal/data"' in line and mark.encode() in line:
                    break
            took.append((time.perf_counter() - began) * 1000)
            time.sleep(0.005)
        for each in (flood, uri):
            other.call("disposeTerminal", each)
    return took


def memory(path: str, pid: int, count: int) -> float:
    """KiB that the daemon needs for each idle terminal with a shell."""
    client = Client(path, f"keeper-{time.time_ns()}")
    uris = [f"ahp-terminal:/{time.time_ns()}-{number}" for number in range(count)]
    client.create("ahp-terminal:/first")
    time.sleep(1.0)
    before = _resident(pid)
    for uri in uris:
        client.create(uri)
    time.sleep(2.0)
    grown = _resident(pid) - before
    for uri in (*uris, "ahp-terminal:/first"):
        client.call("disposeTerminal", uri)
    return grown / count


def parts(commands: int, size: int) -> float:
    """What the last of so many commands' output costs to what the first did (hazard B59)."""
    from actors import scrollback  # noqa: PLC0415 - no other row needs the host's own parts
    from ahpd.protocol import terminal as act  # noqa: PLC0415
    from ahpd.reducers.terminal import reduce  # noqa: PLC0415
    from ahpd.terminals.decoding import Decoding  # noqa: PLC0415
    from ahpd.terminals.marks import Marks  # noqa: PLC0415
    from ahpd.terminals.port import CommandBegan, CommandEnded, Output  # noqa: PLC0415

    state = act.TerminalState(
        title="t",
        content=act.TerminalContent(),
        lifecycle=act.TerminalRunningLifecycleState(),
        claim=act.TerminalClientClaim(client_id="a"),
    )
    decoding, marks, held, began = Decoding(), Marks(), 0, 0.0
    line = b"0123456789" * 8 + b"\r\n"
    output = line * (size // len(line))
    took = []
    for number in range(commands):
        if number % (commands // 10) == 0:
            began = time.perf_counter()
        stream = b"\x1b]633;E;make\x07\x1b]633;C\x07" + output + b"\x1b]633;D;0\x07"
        for place in range(0, len(stream), 4096):
            for piece in marks.feed(decoding.feed(stream[place : place + 4096])):
                match piece:
                    case Output(text=text):
                        state = reduce(state, act.TerminalDataAction(data=text))
                        held += len(text)
                    case CommandBegan(line=command):
                        began_it = act.TerminalCommandExecutedAction(
                            command_id=str(number), command_line=command, timestamp=0
                        )
                        state = reduce(state, began_it)
                        held += scrollback.PART + len(command)
                    case CommandEnded(exit_code=code):
                        ended_it = act.TerminalCommandFinishedAction(
                            command_id=str(number), exit_code=code
                        )
                        state = reduce(state, ended_it)
                    case _:
                        pass
                if scrollback.is_over(held, MIB):
                    state = scrollback.trimmed(state, MIB)
                    held = scrollback.size(state)
        if number % (commands // 10) == commands // 10 - 1:
            took.append(time.perf_counter() - began)
    return statistics.median(took[-3:]) / statistics.median(took[1:4])


def _resident(pid: int) -> float:
    """KiB."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return float(line.split()[1])
    raise RuntimeError("there is no VmRSS")


def _row(what: str, value: str, aim: str = "", *, reached: bool = True) -> bool:
    print(f"{what:<58} {value:>12}  {aim}{'' if reached or not aim else ': missed'}")
    return reached


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--megabytes", type=int, default=40)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--samples", type=int, default=500)
    parser.add_argument("--terminals", type=int, default=100)
    parser.add_argument("--commands", type=int, default=10_000)
    parser.add_argument("--reader", nargs=3, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.reader:
        read_until_exited(*given.reader)
        return 0
    size = given.megabytes * 1_000_000
    found: dict[str, list[float]] = {"bare": [], "one": [], "eight": []}
    with daemon() as (path, pid):
        through(path, MIB, 1)  # whatever is made on first use is made now
        for _ in range(given.rounds):
            found["bare"].append(bare(size))
            found["one"].append(through(path, size, 1))
            found["eight"].append(through(path, size, 8))
        still = sorted(echo(path, given.samples, flooded=False))
        flooded = sorted(echo(path, given.samples, flooded=True))
        kib = memory(path, pid, given.terminals)
    one, eight, alone = (statistics.median(found[key]) for key in ("one", "eight", "bare"))
    print(f"load at the end: {os.getloadavg()[0]:.1f}")
    _row("a bare pty, read and dropped", f"{alone:.1f} MB/s")
    ok = _row(
        "through the host to 1 subscriber", f"{one:.1f} MB/s",
        f"{one / alone:.2f} of the bare one; aim 0.5", reached=one >= 0.5 * alone,
    )  # fmt: skip
    _row("to 8 subscribers, each", f"{eight:.1f} MB/s", f"{eight / alone:.2f} of the bare one")
    _row("key to echo, p50", f"{still[len(still) // 2]:.2f} ms")
    _row("key to echo, p99", f"{_p99(still):.2f} ms")
    _row("key to echo beside a flood, p50", f"{flooded[len(flooded) // 2]:.2f} ms")
    ok &= _row(
        "key to echo beside a flood, p99", f"{_p99(flooded):.2f} ms",
        "aim under 20 ms", reached=_p99(flooded) < 20,
    )  # fmt: skip
    ratio = parts(given.commands, 20_000)
    ok &= _row(
        f"the last of {given.commands} commands of 20 KB, to the first", f"{ratio:.2f}",
        "aim under 1.5", reached=ratio < 1.5,
    )  # fmt: skip
    _row(f"memory for each of {given.terminals} idle terminals", f"{kib:.0f} KiB")
    return 0 if ok else 1


def _p99(ordered: list[float]) -> float:
    return ordered[min(len(ordered) - 1, int(len(ordered) * 0.99))]


if __name__ == "__main__":
    sys.exit(main())
