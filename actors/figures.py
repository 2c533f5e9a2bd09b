"""The host's figures as metrics: sums from the process's start, and gauges of this moment."""

from __future__ import annotations

import os
import time
from collections import Counter
from pathlib import Path

import trio

from actors.connection import Connection
from actors.host import Host
from ahpd.telemetry.port import Metric
from supervisors import System, sys

#: Actors that are looked at between two checkpoints.
SLICE = 200
_PAGE = os.sysconf("SC_PAGE_SIZE")


class _Boxes:
    """What all mailboxes hold, by the kind of their actors, and what waits for clients."""

    def __init__(self) -> None:
        self.actors: Counter[str] = Counter()
        self.messages: Counter[str] = Counter()
        self.bytes: Counter[str] = Counter()
        self.oldest: dict[str, float] = {}
        self.unsent = self.most_unsent = 0

    def look(self, system: System, path: str) -> None:
        """Add one actor."""
        seen = sys.glance(system, path)
        if seen is None or seen.mailbox is None:
            return
        kind, box = seen.kind, seen.mailbox
        self.actors[kind] += 1
        self.messages[kind] += box.depth + box.urgent
        self.bytes[kind] += box.size
        self.oldest[kind] = max(self.oldest.get(kind, 0.0), box.oldest_age)
        actor = sys.actor_at(system, path)
        if isinstance(actor, Connection):
            self.unsent += actor.backlog
            self.most_unsent = max(self.most_unsent, actor.backlog)


async def figures(system: System, host: Host, seq_at_start: int) -> list[Metric]:
    """All of them; a checkpoint, or several where there are many actors."""
    await trio.lowlevel.checkpoint()
    boxes = _Boxes()
    for place, path in enumerate(sys.paths(system), 1):
        boxes.look(system, path)
        if not place % SLICE:
            await trio.lowlevel.checkpoint()
    return [*_sums(host, seq_at_start), *_gauges(host), *_of_boxes(boxes), *_of_the_process()]


def _sums(host: Host, seq_at_start: int) -> list[Metric]:
    tally = host.tally
    turns = [({"ahp.turn.outcome": kind}, count) for kind, count in sorted(tally.turns.items())]
    returns = [({"ahpd.answer": kind}, count) for kind, count in sorted(tally.reconnects.items())]
    return [
        _sum("ahpd.envelopes", "{envelope}", "Envelopes numbered", host.ledger.seq - seq_at_start),
        Metric("ahpd.turns", "{turn}", "sum", "Turns that ended", turns),
        Metric("ahpd.reconnects", "{reconnect}", "sum", "Clients that came back", returns),
        _sum("ahpd.replayed.envelopes", "{envelope}", "Envelopes sent again", tally.replayed),
        _sum("ahpd.replayed.bytes", "By", "Bytes of envelopes sent again", tally.replayed_bytes),
        _sum("ahpd.actor.crashes", "{crash}", "Actors that crashed", tally.crashes),
        _sum("ahpd.actor.restarts", "{restart}", "Actors started again", tally.restarts),
        _sum("ahpd.actor.parked", "{actor}", "Actors set aside", tally.parked),
    ]


def _gauges(host: Host) -> list[Metric]:
    ledger, window = host.ledger, host.window
    open_by_kind = Counter(channel.kind for channel in ledger.channels.values())
    channels = [({"ahpd.kind": kind}, count) for kind, count in sorted(open_by_kind.items())]
    failing = int(ledger.failing is not None)
    return [
        _gauge("ahpd.sessions", "{session}", "Sessions there are", len(host.catalogue or ())),
        Metric("ahpd.channels", "{channel}", "gauge", "Channels that are loaded", channels),
        _gauge("ahpd.queue.items", "{item}", "What waits to be let out", len(ledger.queue)),
        _gauge("ahpd.queue.bytes", "By", "Bytes of envelopes not kept yet", ledger.room.taken),
        _gauge("ahpd.replay.envelopes", "{envelope}", "Kept for replay", len(window)),
        _gauge("ahpd.replay.bytes", "By", "Bytes kept for replay", window.size),
        _gauge("ahpd.journal.failing", "1", "1 while nothing can be kept", failing),
    ]


def _of_boxes(boxes: _Boxes) -> list[Metric]:
    def by_kind(values: dict[str, float] | Counter[str]) -> list[tuple[dict[str, str], float]]:
        return [({"ahpd.kind": kind}, value) for kind, value in sorted(values.items())]

    return [
        Metric("ahpd.actors", "{actor}", "gauge", "Actors", by_kind(boxes.actors)),
        Metric("ahpd.mailbox.messages", "{message}", "gauge", "Waiting", by_kind(boxes.messages)),
        Metric("ahpd.mailbox.bytes", "By", "gauge", "Bytes waiting", by_kind(boxes.bytes)),
        Metric("ahpd.mailbox.oldest", "s", "gauge", "Age of the oldest", by_kind(boxes.oldest)),
        _gauge("ahpd.connections", "{connection}", "Connections", boxes.actors["connection"]),
        _gauge("ahpd.unsent.bytes", "By", "Bytes waiting for clients", boxes.unsent),
        _gauge("ahpd.unsent.largest", "By", "Of these, for one client", boxes.most_unsent),
    ]


def _of_the_process() -> list[Metric]:
    found = [_sum("process.cpu.time", "s", "Processor time of the host", time.process_time())]
    try:
        pages = int(Path("/proc/self/statm").read_bytes().split()[1])
    except (OSError, ValueError, IndexError):  # no such thing here
        return found
    return [*found, _gauge("process.memory.usage", "By", "Memory of the host", pages * _PAGE)]


def _sum(name: str, unit: str, description: str, value: float) -> Metric:
    return Metric(name, unit, "sum", description, [({}, value)])


def _gauge(name: str, unit: str, description: str, value: float) -> Metric:
    return Metric(name, unit, "gauge", description, [({}, value)])
