"""What ``ahpd ps`` costs on a host with many sessions: ``python contrib/bench/inspection.py``.

Starts a host as a process of its own with 1,000 sessions, of which some stream, and prints how long
``ahpd ps --json`` takes, process start included, and how fast the streams are with and without it
running again and again. Windows with and without alternate, so that a busy machine slows both.
Prints each figure with its aim, and ends with 1 when an aim is missed.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any

import trio
from msgspec import Struct

from ahpd.protocol.frame import frame
from ahpd.protocol.jsontext import loads
from ahpd.protocol.uris import ROOT, URI, default_chat
from ahpd.transports.connect import connect
from ahpd.transports.port import Transport

#: Seconds of one window, and windows of each kind.
WINDOW, WINDOWS = 2.0, 5
#: Looks at the idle host.
LOOKS = 9
#: What a streaming chat says: so many pieces a second.
EVERY_MS = 10
SCRIPT = {"turns": [{"steps": [{"text": "word ", "times": 1_000_000, "everyMs": EVERY_MS}]}]}


class Client:
    """One connection, which counts what it hears."""

    def __init__(self, transport: Transport) -> None:
        self.heard = 0
        self._transport = transport
        self._ids = 0
        self._answers: dict[int, Any] = {}
        self._news = trio.Event()

    async def read(self) -> None:
        """Until the connection is over."""
        while True:
            text = await self._transport.receive()
            if b'"chat/delta"' in (text if isinstance(text, bytes) else text.encode()):
                self.heard += 1
                continue
            message = loads(text)
            if isinstance(message, dict) and "id" in message:
                self._answers[message["id"]] = message
                self._news.set()

    async def send(self, method: str, params: Any, id: int | None = None) -> None:
        """A message."""
        message = {"jsonrpc": "2.0", "method": method, "params": params}
        await self._transport.send([frame(message if id is None else {**message, "id": id})])

    async def ask(self, method: str, **params: Any) -> Any:
        """The result of a request."""
        self._ids += 1
        id = self._ids
        await self.send(method, {"channel": ROOT, **params}, id)
        while id not in self._answers:
            self._news = trio.Event()
            await self._news.wait()
        return self._answers.pop(id)["result"]


def session(number: int) -> URI:
    """The URI of one."""
    return f"bench:/{number:08x}-0000-4000-8000-000000000000"


def ps(state: Path) -> tuple[float, Any]:
    """Seconds that one ``ahpd ps --json`` takes, and what it says."""
    began = time.perf_counter()
    command = [sys.executable, "-m", "ahpd", "ps", "--json", "--state-dir", str(state)]
    done = subprocess.run(command, check=True, capture_output=True)
    return time.perf_counter() - began, json.loads(done.stdout)


class Figures(Struct):
    """Seconds of one look on the idle host and beside the streams, and deltas a second."""

    rows: int
    #: Seconds of the processor that one look takes of the command and of the host.
    own: float
    host: float
    idle: float
    busy: float
    without: float
    beside: float


def spent(pid: int | None) -> float:
    """Seconds of the processor that a process, or all that ended here (None), has used."""
    if pid is None:
        usage = resource.getrusage(resource.RUSAGE_CHILDREN)
        return usage.ru_utime + usage.ru_stime
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


async def measure(state: Path, pid: int, sessions: int, streams: int) -> Figures:
    """All there is to measure on the host of a state folder."""
    async with trio.open_nursery() as nursery:
        client = Client(await connect(nursery, f"unix:{state / 'ahpd.sock'}"))
        nursery.start_soon(client.read)
        await client.ask("initialize", protocolVersions=["1.0.0"], clientId="bench")
        for number in range(sessions):
            await client.ask("createSession", channel=session(number))
        own, host = spent(None), spent(pid)
        idle = [(await trio.to_thread.run_sync(ps, state))[0] for _ in range(LOOKS)]
        own, host = (spent(None) - own) / LOOKS, (spent(pid) - host) / LOOKS
        for number in range(streams):
            chat = default_chat(session(number))
            await client.ask("subscribe", channel=chat)
            action = {
                "type": "chat/turnStarted",
                "turnId": f"t{number}",
                "startedAt": "2031-01-01T00:00:00.000Z",
                "message": {"text": "go", "origin": {"kind": "user"}},
            }
            await client.send(
                "dispatchAction", {"channel": chat, "clientSeq": number + 1, "action": action}
            )
        await trio.sleep(2)
        took: list[float] = []
        rows = 0
        rates: dict[bool, list[float]] = {False: [], True: []}
        for window in range(2 * WINDOWS):
            looks = window % 2 == 1
            before, began = client.heard, time.perf_counter()
            while time.perf_counter() - began < WINDOW:
                if not looks:
                    await trio.sleep(WINDOW - (time.perf_counter() - began))
                    continue
                seconds, found = await trio.to_thread.run_sync(ps, state)
                took.append(seconds)
                rows = len(found["actors"])
                await trio.sleep(0.2)
            rates[looks].append((client.heard - before) / (time.perf_counter() - began))
        nursery.cancel_scope.cancel()
    rate, beside = median(rates[False]), median(rates[True])
    return Figures(rows, own, host, median(idle), median(took), rate, beside)


def main() -> int:
    """Measure, print, and say whether all aims were met."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sessions", type=int, default=1000)
    parser.add_argument("--streams", type=int, default=20)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="ahpd-bench-") as name:
        folder = Path(name)
        script, endpoint, state = folder / "s.json", folder / "endpoint.json", folder / "state"
        script.write_text(json.dumps(SCRIPT))
        host = subprocess.Popen(
            [
                *(sys.executable, "-m", "ahpd", "serve", "--quiet", "--port", "0"),
                *("--state-dir", str(state), "--endpoint-file", str(endpoint)),
                *("--agent", f"bench=scripted:{script}"),
            ],
            stderr=subprocess.DEVNULL,
        )
        try:
            while not endpoint.exists():
                time.sleep(0.05)
            figures = trio.run(measure, state, host.pid, options.sessions, options.streams)
        finally:
            host.terminate()
            host.wait(60)
    ratio = figures.beside / figures.without if figures.without else 0.0
    what = f"ahpd ps --json, {options.sessions:,} sessions, {figures.rows:,} rows"
    met = [
        line(what, f"{figures.idle * 1000:.0f} ms", "< 300 ms", figures.idle < 0.3),
        line(
            f"deltas/s of {options.streams} chats, beside it / without",
            f"{figures.beside:,.0f} / {figures.without:,.0f} = {ratio:.2f}",
            ">= 0.95",
            ratio >= 0.95,
        ),
    ]
    processor = f"{figures.own * 1000:.0f} ms, of the host {figures.host * 1000:.0f} ms"
    print(f"{'one look, of the processor':<52} {processor}")
    print(f"{'ahpd ps --json beside the streams':<52} {figures.busy * 1000:.0f} ms")
    return 0 if all(met) else 1


def line(what: str, value: str, aim: str, met: bool) -> bool:
    """Print one figure; whether its aim was met."""
    print(f"{what:<52} {value:<24} aim {aim:<10} {'met' if met else 'MISSED'}", flush=True)
    return met


if __name__ == "__main__":
    sys.exit(main())
