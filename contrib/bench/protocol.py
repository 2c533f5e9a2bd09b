"""What the protocol layer costs, as ratios measured in one run; see the README.

    python contrib/bench/protocol.py [--json] [--rounds N]

Each row is the median over some rounds; what is compared is measured in turns, so that a busy
machine slows both sides alike.
"""

from __future__ import annotations

import argparse
import gc
import importlib.util
import json
import re
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import attrs
import orjson

import ahpd.protocol
from ahpd.protocol import StateAction, decoder
from ahpd.protocol.chat import ChatState
from ahpd.protocol.connection import ActionEnvelope
from ahpd.protocol.jsontext import dumps, loads
from ahpd.protocol.terminal import TerminalState
from ahpd.reducers import apply

#: A word of an answer, as agents stream them.
WORD = "streamed "

_ENVELOPE = decoder(ActionEnvelope)


@attrs.frozen
class Row:
    """One figure, and what it should be at most."""

    name: str
    figure: float
    aim: float
    unit: str = "x"

    @property
    def met(self) -> bool:
        """Whether the aim is met."""
        return self.figure <= self.aim


def frame_of(channel: str, action: dict[str, Any], number: int) -> bytes:
    """The text of an envelope."""
    params = {"channel": channel, "serverSeq": number, "action": action}
    return dumps({"jsonrpc": "2.0", "method": "action", "params": params})


DELTA = frame_of(
    "ahp-chat:/bench",
    {"type": "chat/delta", "turnId": "turn-last", "partId": "part", "content": WORD},
    4711,
)
DATA = frame_of("ahp-terminal:/bench", {"type": "terminal/data", "data": WORD}, 4711)


def turn(number: int) -> dict[str, Any]:
    """A finished turn."""
    return {
        "id": f"turn-{number}",
        "message": {"text": f"question {number}", "origin": {"kind": "user"}},
        "responseParts": [{"kind": "markdown", "id": "part", "content": f"answer {number}"}],
        "state": "complete",
        "startedAt": "2026-01-01T00:00:00.000Z",
        "duration": 1200,
    }


def call(number: int) -> dict[str, Any]:
    """A tool call that runs."""
    state = {
        "toolCallId": f"call-{number}",
        "toolName": "bench",
        "displayName": "Bench",
        "status": "running",
        "invocationMessage": "Measuring",
        "confirmed": "setting",
    }
    return {"kind": "toolCall", "toolCall": state}


def chat(turns: int = 0, calls: int = 0) -> ChatState:
    """A chat that has so many finished turns and open calls, and streams an answer."""
    return decoder(ChatState)(
        {
            "resource": "ahp-chat:/bench",
            "title": "Bench",
            "status": 8,
            "modifiedAt": "2026-01-01T00:00:00.000Z",
            "turns": [turn(number) for number in range(turns)],
            "activeTurn": {
                "id": "turn-last",
                "startedAt": "2026-01-01T00:00:00.000Z",
                "message": {"text": "the last question", "origin": {"kind": "user"}},
                "responseParts": [
                    *(call(number) for number in range(calls)),
                    {"kind": "markdown", "id": "part", "content": ""},
                ],
            },
        }
    )


def terminal() -> TerminalState:
    """A terminal that runs."""
    return decoder(TerminalState)(
        {
            "title": "bench",
            "claim": {"kind": "client", "clientId": "c"},
            "lifecycle": {"status": "running"},
            "content": [],
        }
    )


def seconds(work: Callable[[], object], times: int) -> float:
    """Seconds for one run of `work`, over `times` runs."""
    start = time.perf_counter()
    for _ in range(times):
        work()
    return (time.perf_counter() - start) / times


def ratio(one: Callable[[], float], other: Callable[[], float], rounds: int) -> float:
    """The median of `one` over that of `other`, measured in turns."""
    ones, others = [], []
    for _ in range(rounds):
        ones.append(one())
        others.append(other())
    return statistics.median(ones) / statistics.median(others)


def whole_path(rounds: int) -> Row:
    """Decode, reduce and encode a delta, against orjson's reading and writing of its frame."""
    state = chat()

    def ours() -> None:
        nonlocal state
        frame = loads(DELTA)
        envelope = _ENVELOPE(frame["params"])
        state = apply("chat", state, envelope.action)
        dumps({"jsonrpc": "2.0", "method": "action", "params": envelope.wire()})

    figure = ratio(
        lambda: seconds(ours, 2000),
        lambda: seconds(lambda: orjson.dumps(orjson.loads(DELTA)), 2000),
        rounds,
    )
    return Row("chat/delta: decode + reduce + encode over orjson loads + dumps", figure, 12)


def growth(kind: Any, make: Callable[[], Any], frame: bytes, name: str, rounds: int) -> Row:
    """The thousand steps from the 100,000th on over the 50th to 150th of ten fresh states."""
    action = _ENVELOPE(loads(frame)["params"]).action

    def stepped(state: Any, times: int) -> Any:
        for _ in range(times):
            state = apply(kind, state, action)
        return state

    long = stepped(make(), 100_000)

    def late() -> float:
        nonlocal long
        start = time.perf_counter()
        long = stepped(long, 1000)
        return time.perf_counter() - start

    def early() -> float:
        spent = 0.0
        for _ in range(10):
            state = stepped(make(), 50)
            start = time.perf_counter()
            stepped(state, 100)
            spent += time.perf_counter() - start
        return spent

    return Row(f"{name}: the 100,000th over the 100th", ratio(late, early, 3 * rounds), 1.5)


def many_turns(rounds: int) -> Row:
    """A delta in a chat with 10,000 turns over one with 10."""
    action = _ENVELOPE(loads(DELTA)["params"]).action

    def measured(state: ChatState) -> Callable[[], float]:
        def step() -> None:
            nonlocal state
            state = apply("chat", state, action)

        return lambda: seconds(step, 2000)

    figure = ratio(measured(chat(10_000)), measured(chat(10)), rounds)
    return Row("chat/delta: in 10,000 turns over in 10", figure, 1.3)


def many_calls(rounds: int) -> Row:
    """A tool call's way through a turn with 10,000 of them over one with 100."""

    def measured(number: int) -> Callable[[], float]:
        state = chat(calls=number)
        steps = [_calls_steps(at) for at in range(0, number, number // 100)]

        def step() -> None:
            nonlocal state
            for actions in steps:
                for action in actions:
                    state = apply("chat", state, action)

        return lambda: seconds(step, 1)

    figure = ratio(measured(10_000), measured(100), rounds)
    return Row("a tool call asked, approved, at work: among 10,000 over 100", figure, 10)


def _calls_steps(number: int) -> list[Any]:
    """Actions that bring a running call back to where it was."""
    names = {"turnId": "turn-last", "toolCallId": f"call-{number}"}
    return [
        decoder(StateAction)({"type": f"chat/{kind}", **names, **more})
        for kind, more in (
            ("toolCallReady", {"invocationMessage": "may I?"}),
            ("toolCallConfirmed", {"approved": True, "confirmed": "user-action"}),
            ("toolCallContentChanged", {"content": [{"type": "text", "text": "so far"}]}),
        )
    ]


def import_times(statement: str) -> dict[str, float]:
    """Milliseconds that each module takes by itself, of those that `statement` imports."""
    result = subprocess.run(
        [sys.executable, "-X", "importtime", "-c", statement],
        capture_output=True,
        text=True,
        check=True,
    )
    rows = re.findall(r"import time:\s+(\d+) \|\s+\d+ \| +(\S+)", result.stderr)
    return {name: int(micros) / 1000 for micros, name in rows}


def imports(rounds: int) -> tuple[Row, dict[str, float]]:
    """Milliseconds that importing `ahpd.protocol` takes, and how they divide."""
    owners = {"ahpd": "ahpd.protocol itself", "attr": "attrs", "attrs": "attrs"}
    parts: dict[str, list[float]] = {}
    for _ in range(rounds):
        bare, ours = import_times("pass"), import_times("import ahpd.protocol")
        spent = dict.fromkeys([*owners.values(), "the standard library"], 0.0)
        for name in ours.keys() - bare.keys():
            spent[owners.get(name.split(".")[0], "the standard library")] += ours[name]
        both = import_times("import ahpd.protocol, orjson")
        spent["orjson, on top"] = sum(both[name] for name in both.keys() - ours.keys())
        for part, milliseconds in spent.items():
            parts.setdefault(part, []).append(milliseconds)
    medians = {part: statistics.median(values) for part, values in parts.items()}
    row = Row("import ahpd.protocol, its own", medians["ahpd.protocol itself"], 150, " ms")
    return row, medians


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--rounds", type=int, default=9, help="measurements of each row")
    options = parser.parse_args()
    gc.disable()  # its pauses fall on whichever side is running
    rounds = options.rounds
    import_row, parts = imports(rounds)
    rows = [
        whole_path(rounds),
        growth("chat", chat, DELTA, "chat/delta", rounds),
        growth("terminal", terminal, DATA, "terminal/data", rounds),
        many_turns(rounds),
        many_calls(rounds),
        import_row,
    ]
    if options.json:
        report = {"rows": [attrs.asdict(row) | {"met": row.met} for row in rows], "import": parts}
        print(json.dumps(report))
        return
    print(f"{'':62} {'figure':>10} {'aim':>8}")
    for row in rows:
        told = "" if row.met else "   missed"
        print(f"{row.name:62} {row.figure:9.2f}{row.unit} {row.aim:7g}{row.unit}{told}")
    cached = Path(importlib.util.cache_from_source(ahpd.protocol.__file__)).exists()
    told = "cached" if cached else "not cached: every import compiles"
    print(f"\nwhat an import of ahpd.protocol takes, in milliseconds (bytecode {told}):")
    for name, milliseconds in parts.items():
        print(f"  {name:24} {milliseconds:6.1f}")


if __name__ == "__main__":
    main()
