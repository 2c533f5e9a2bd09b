"""An observer that misses nothing: every envelope of the host, when it is let out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

from actors.ledger import Entry
from actors.replay import ReplayWindow
from ahpd.protocol.actions import action_type
from ahpd.protocol.uris import URI
from tests.harness.journal import SlowJournal
from tests.harness.tap import Taps

#: What ends a turn.
ENDINGS = frozenset({"chat/turnComplete", "chat/turnCancelled", "chat/error"})


class Stream(ReplayWindow):
    """A replay window that also remembers, for the test, all that went through it."""

    def __init__(self, limit: int, journal: SlowJournal, taps: Taps) -> None:
        super().__init__(0, limit=limit)
        self.entries: list[Entry] = []
        self._journal = journal
        self._taps = taps

    def add(self, entry: Entry) -> None:
        """See `ReplayWindow.add`."""
        last = self.entries[-1].seq if self.entries else 0
        if entry.seq != last + 1:
            self._taps.fault(f"stream: {entry.seq} let out after {last}")
        if entry.seq > self._journal.seq:
            self._taps.fault(f"stream: {entry.seq} let out, {self._journal.seq} durable")
        self.entries.append(entry)
        super().add(entry)

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
