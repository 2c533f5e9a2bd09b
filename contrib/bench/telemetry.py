"""What logs and telemetry cost: while nobody looks, and while somebody does.

Run it as ``python contrib/bench/telemetry.py``. An envelope is let out by the sequencer to one
subscriber, as deltas are; a log call is one that no level lets through, and one that is written as
a line without anybody to read it; a record and a span are those of a subscriber. Prints medians in
nanoseconds for each thing, and each as a multiple of letting out an envelope while nobody looks.
"""

from __future__ import annotations

import argparse
import logging
import os
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

from actors.host import Host
from actors.ledger import Entry
from actors.sequencer import Sequencer
from actors.spans import Spans
from actors.subscriptions import Subscription
from actors.tree import make_host
from ahpd.agents.scripted import ScriptedAgent
from ahpd.daemon import logs
from ahpd.daemon.config import LogConfig
from ahpd.daemon.telemetry import LogRecords
from ahpd.journal.memory import MemoryJournal
from ahpd.protocol.chat_actions import ChatDeltaAction
from ahpd.protocol.jsontext import dumps
from ahpd.telemetry.otlp import OtlpEncoder
from ahpd.telemetry.port import Record, Span
from ahpd.transports.redaction import Redactor

#: Things of one round.
COUNT = 5_000


class _Ear:
    """A subscriber that hears, and nothing more."""

    client_id: str | None = "bench"
    is_old = False
    backlog = 0

    def hear(self, entry: Entry, subscription: Subscription) -> None:
        """See `Listener`."""

    def flush(self) -> None:
        """See `Listener`."""

    def tell(self, frame: Any) -> None:
        """See `Listener`."""


def _host() -> tuple[Host, Sequence[Entry]]:
    host = make_host([ScriptedAgent("demo", None)], wall=time.time, steady=time.monotonic, seed=1)
    channel = host.ledger.open("ahp-chat:/bench", "chat", None, "session/bench/chat/0")
    host.subscriptions.add(_Ear(), channel.uri, Subscription())
    action = ChatDeltaAction(turn_id="t", part_id="p", content="x" * 250)
    text = dumps(action.wire())
    return host, [Entry(number, channel, action, text) for number in range(COUNT)]


def _measures(quiet: logging.Logger) -> dict[str, Callable[[], object]]:
    """Name -> what takes as long as `COUNT` of it."""
    host, entries = _host()
    sequencer = Sequencer(host, MemoryJournal())
    spans = Spans(time.time_ns)
    encoder = OtlpEncoder(version="0", began=0, instance="bench")
    got: list[Record] = []
    log = logs.set_up(LogConfig(), Redactor(["s3cr3t-value"]))
    source = LogRecords(log, host)
    span = Span(b"t" * 16, b"s" * 8, b"", "turn", "server", 0, 1, {"ahp.turn.id": "t"})

    def let_out(hear: Callable[[Entry], None] | None) -> None:
        host.on_out = hear
        for entry in entries:
            sequencer._release(entry)
        host.on_out = None

    def said(level: int) -> None:
        for number in range(COUNT):
            quiet.log(level, "turn %d begins", number)

    def heard() -> None:
        got.clear()
        source.listen(5, got.append)
        said(logging.DEBUG)
        source.listen(None, got.append)

    heard()
    return {
        "an envelope let out, nobody looks": lambda: let_out(None),
        "an envelope let out, spans are wanted": lambda: let_out(spans.hear),
        "a log call that no level lets through": lambda: said(logging.DEBUG),
        "a log line": lambda: said(logging.INFO),
        "a record for telemetry": heard,
        "a record as OTLP/JSON": lambda: encoder.logs(got).as_json(),
        "a record as protobuf": lambda: encoder.logs(got).as_bytes(),
        "a span as OTLP/JSON": lambda: encoder.traces([span] * COUNT).as_json(),
    }


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=7, help="rounds that count")
    rounds: int = parser.parse_args().rounds
    stderr, sys.stderr = sys.stderr, open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
    try:
        measures = _measures(logging.getLogger("ahpd.sessions"))
        times: dict[str, list[float]] = {name: [] for name in measures}
        for number in range(rounds + 1):
            for name, measure in measures.items():
                began = time.perf_counter()
                measure()
                if number:  # the first one warms up
                    times[name].append((time.perf_counter() - began) / COUNT * 1e9)
    finally:
        sys.stderr.close()
        sys.stderr = stderr
    medians = {name: statistics.median(values) for name, values in times.items()}
    unit = next(iter(medians.values()))
    for name, median in medians.items():
        print(f"{name:<40}{median:9,.0f} ns   {median / unit:6.2f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
