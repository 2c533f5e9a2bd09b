"""What an agent that speaks ACP can say through a host: chunks a second, and how late they come.

Run it as ``python contrib/bench/acp.py``. The agent is a process that writes a chunk with each
write, as agents do; the host is a daemon of its own with its journal on, and one other process
reads for all subscribers, by WebSocket. Beside it, in turns with it, the same agent is read by a
loop that does nothing but take its pipe's lines apart with orjson. One subscriber's stream is
looked at closely: its numbers grow, and its text is the host's. Exits 1 when an aim is missed.
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import orjson

from ahpd.bench.daemon import Daemon, Peer, daemon, digest
from ahpd.bench.processes import BenchFailed, cpu_seconds
from ahpd.bench.readers import MARK, Readers
from ahpd.bench.report import Aim, Row, Surroundings, lines, verdict

#: Bytes of text in a chunk.
SIZE = 40
#: Chunks a second, where it is measured how late they come, and the subscribers then.
PACE, LISTENING = 200, 2
#: Stands before the time in a chunk that holds one.
_BEFORE_TIME = "@"
_SESSION = "bench-1"


# ---- the agent -----------------------------------------------------------------------------------


def update(text: str) -> bytes:
    """A chunk as it is written."""
    content = {"type": "text", "text": text}
    body = {"sessionUpdate": "agent_message_chunk", "content": content}
    params = {"sessionId": _SESSION, "update": body}
    message = {"jsonrpc": "2.0", "method": "session/update", "params": params}
    return json.dumps(message, separators=(",", ":")).encode() + b"\n"


def stream(count: int) -> None:
    """So many chunks as fast as they are taken."""
    chunk = update(MARK.decode().ljust(SIZE, "x"))
    for _ in range(count):
        sent = os.write(1, chunk)
        while sent < len(chunk):
            sent += os.write(1, chunk[sent:])


def tick(count: int) -> None:
    """So many, each with the time, `PACE` a second."""
    due = time.monotonic()
    for _ in range(count):
        due += 1 / PACE
        time.sleep(max(0.0, due - time.monotonic()))
        now = time.time_ns() // 1000
        os.write(1, update(f"{_BEFORE_TIME}{now:016d} ".ljust(SIZE, "x")))


def be_an_agent() -> None:
    """Speak ACP. A prompt is ``stream N`` or ``tick N``."""
    for line in sys.stdin:
        request = json.loads(line)
        method = request.get("method")
        result: Any = {"protocolVersion": 1, "agentCapabilities": {}}
        if method == "session/new":
            result = {"sessionId": _SESSION}
        elif method == "session/prompt":
            what, count = request["params"]["prompt"][0]["text"].split()
            {"stream": stream, "tick": tick}[what](int(count))
            result = {"stopReason": "end_turn"}
        if "id" in request:
            answer = {"jsonrpc": "2.0", "id": request["id"], "result": result}
            os.write(1, json.dumps(answer).encode() + b"\n")


def command() -> list[str]:
    """The command line of the agent."""
    return [sys.executable, os.path.abspath(__file__), "--agent"]


# ---- the measurements ----------------------------------------------------------------------------


def read_bare(count: int) -> float:
    """Chunks a second that a loop gets which only reads the agent's pipe."""
    prompt = [{"type": "text", "text": f"stream {count}"}]
    request = {"id": 1, "method": "session/prompt", "params": {"prompt": prompt}}
    with subprocess.Popen(command(), stdin=subprocess.PIPE, stdout=subprocess.PIPE) as agent:
        assert agent.stdin is not None
        assert agent.stdout is not None
        descriptor = agent.stdout.fileno()
        agent.stdin.write(b'{"id":0,"method":"initialize"}\n')
        agent.stdin.flush()
        os.read(descriptor, 1 << 16)  # it has started
        agent.stdin.write(json.dumps(request).encode() + b"\n")
        begun = time.monotonic()
        agent.stdin.close()
        came, rest = 0, b""
        while data := os.read(descriptor, 1 << 16):
            *whole, rest = (rest + data).split(b"\n")
            for line in whole:
                message = orjson.loads(line)
                came += message.get("method") == "session/update"
        took = time.monotonic() - begun
    if came != count:
        raise BenchFailed(f"{came} chunks of {count}")
    return count / took


def read_through(host: Daemon, peer: Peer, count: int, subscribers: int) -> tuple[float, float]:
    """The same through a host, to so many; and for a second of the host's processor."""
    [chat] = peer.sessions(host, 1)
    greetings = [host.greeting(chat) for _ in range(subscribers)]
    with Readers(host.port, host.path, greetings=greetings, count=count) as readers:
        readers.ready()
        used = cpu_seconds(host.pid)
        begun = peer.start_turn(chat, f"stream {count}")
        outcome = readers.outcome()
        used = cpu_seconds(host.pid) - used
        held = peer.last_text(chat)
    if outcome.sample is None or outcome.sample.digest != digest(held):
        raise BenchFailed("a subscriber's text is not the host's")
    return count / (outcome.finished - begun), count / max(used, 0.01)


def lateness(host: Daemon, peer: Peer, count: int) -> Sequence[int]:
    """Microseconds from the agent's write to a subscriber, sorted."""
    [chat] = peer.sessions(host, 1)
    greetings = [host.greeting(chat) for _ in range(LISTENING)]
    with Readers(
        host.port,
        host.path,
        greetings=greetings,
        count=count,
        times=True,
        before_time=_BEFORE_TIME,
        skip=PACE // 4,
        envelopes=False,
    ) as readers:
        readers.ready()
        peer.start_turn(chat, f"tick {count}")
        found = sorted(readers.outcome().latencies)
        peer.turn_is_over(chat)
    if found[0] < 0:
        raise BenchFailed("the clock was set while this ran")
    return found


def bare_lateness(count: int) -> Sequence[int]:
    """The same to a loop that only reads the agent's pipe."""
    with subprocess.Popen(command(), stdin=subprocess.PIPE, stdout=subprocess.PIPE) as agent:
        assert agent.stdin is not None
        assert agent.stdout is not None
        prompt = [{"type": "text", "text": f"tick {count}"}]
        request = {"id": 1, "method": "session/prompt", "params": {"prompt": prompt}}
        agent.stdin.write(json.dumps(request).encode() + b"\n")
        agent.stdin.close()
        found = []
        for line in agent.stdout:
            now = time.time_ns() // 1000
            message = orjson.loads(line)
            if message.get("method") == "session/update":
                text = message["params"]["update"]["content"]["text"]
                found.append(now - int(text[1:17]))
    return sorted(found)


@contextmanager
def _host() -> Iterator[tuple[Daemon, Peer]]:
    with daemon([], acp=shlex.join(command())) as host:
        yield host, host.connect()


def chunks(subscribers: int, aim: float | None, count: int, runs: int) -> list[Row]:
    """Chunks a second to so many subscribers."""
    ours, of_a_core, bare = [], [], []
    with _host() as (host, peer):
        read_through(host, peer, count // 10, subscribers)
        for _ in range(runs):
            wall, cpu = read_through(host, peer, count, subscribers)
            ours.append(wall)
            of_a_core.append(cpu)
            bare.append(read_bare(count))
    to = "1 subscriber" if subscribers == 1 else f"{subscribers} subscribers, each"
    aims = () if aim is None else (Aim(aim, times=True),)
    return [
        Row(f"chunks to {to}", "/s", ours, "a bare orjson reader of the pipe", bare, aims),
        Row("the same in a second of the host's processor", "/s", of_a_core, "the same", bare),
    ]


def late(seconds: float, runs: int) -> list[Row]:
    """How late chunks come that do not come in masses."""
    halves: list[float] = []
    worst: list[float] = []
    bare: list[float] = []
    bare_worst: list[float] = []
    count = int(PACE * seconds)
    with _host() as (host, peer):
        for _ in range(runs):
            for found, half, most in (
                (lateness(host, peer, count), halves, worst),
                (bare_lateness(count), bare, bare_worst),
            ):
                half.append(statistics.median(found) / 1000)
                most.append(found[len(found) * 99 // 100] / 1000)
    what = f"{PACE} chunks a second to {LISTENING}"
    beside = "to a bare reader of the pipe"
    return [
        Row(f"{what}, late, p50", "ms", halves, beside, bare, (Aim(1, at_most=True),)),
        Row(f"{what}, late, p99", "ms", worst, beside, bare_worst, (Aim(3, at_most=True),)),
    ]


def main() -> int:
    """Measure, and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--chunks", type=int, default=100_000)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--quick", action="store_true", help="only show that it works")
    parser.add_argument("--agent", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.agent:
        be_an_agent()
        return 0
    count, runs, seconds = (5000, 1, 1.0) if given.quick else (given.chunks, given.runs, 10.0)
    measures: dict[str, Callable[[], list[Row]]] = {
        "one": lambda: chunks(1, 0.25, count, runs),
        "eight": lambda: chunks(8, 0.2, count, runs),
        "many": lambda: chunks(32, None, count, runs),
        "late": lambda: late(seconds, runs),
    }
    print(f"acp: {Surroundings.now()}")
    rows = {}
    for name, measure in measures.items():
        rows[name] = measure()
        for row in rows[name]:
            print("\n".join(lines(row)), flush=True)
    print(verdict(rows))
    return 0 if all(row.met for each in rows.values() for row in each) else 1


if __name__ == "__main__":
    sys.exit(main())
