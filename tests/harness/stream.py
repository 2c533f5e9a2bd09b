"""An observer that misses nothing: every envelope of the host, when it is let out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

from actors.ledger import Entry
from ahpd.protocol.actions import action_type
from ahpd.protocol.uris import URI
from tests.harness.tap import Taps

#: What ends a turn.
ENDINGS = frozenset({"chat/turnComplete", "chat/turnCancelled", "chat/error"})


class Stream:
    """All envelopes of a host, in order, over all its processes."""

    def __init__(self, taps: Taps) -> None:
        self.entries: list[Entry] = []
        self._taps = taps
        #: The number that the present process went on from.
        self._last = 0

    def add(self, entry: Entry, durable: int) -> None:
        """One was let out; numbers up to `durable` would survive a `kill -9`."""
        if entry.seq != self._last + 1:
            self._taps.fault(f"stream: {entry.seq} let out after {self._last}")
        if entry.seq > durable:
            self._taps.fault(f"stream: {entry.seq} let out, {durable} durable")
        self._last = entry.seq
        self.entries.append(entry)

    def killed(self, kept: Iterable[Entry]) -> None:
        """The process has ended: `kept` are durable, and nobody has seen them yet."""
        self.entries += kept

    def goes_on(self, seq: int) -> None:
        """A new process has begun, at this number."""
        highest = self.entries[-1].seq if self.entries else 0
        if seq < highest:
            self._taps.fault(f"stream: a host goes on at {seq}, {highest} was let out before")
        self._last = seq

    def said(self, uri: URI | None = None) -> Iterator[Entry]:
        """What all subscribers heard, in order, of one channel or of all."""
        for entry in self.entries:
            if entry.audience is None and uri in (None, entry.channel.uri):
                yield entry

    def turns(self) -> tuple[Counter[str], Counter[str]]:
        """How often each turn was started (or resumed), and how often it ended."""
        started: Counter[str] = Counter()
        ended: Counter[str] = Counter()
        for entry in self.said():
            if entry.channel.kind != "chat" or entry.action is None:
                continue
            action: Any = entry.action
            name = action_type(action)
            if name in ("chat/turnStarted", "chat/turnResume"):
                started[action.turn_id] += 1
            elif name in ENDINGS:
                ended[action.turn_id] += 1
        return started, ended
