"""The replay window: the newest envelopes, kept for clients that come back (RULES 6)."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterator
from itertools import islice

from actors.ledger import Entry
from ahpd.protocol.uris import URI


class ReplayWindow:
    """The last envelopes that were let out, bounded by count and by bytes.

    Invariant: `evicted_up_to` is the highest number that is no longer here, so that a client which
    has seen at least that number has missed nothing that is gone. The newest envelope is kept
    whatever it weighs (R-6.13).
    """

    def __init__(self, seq: int, *, limit: int = 1000, limit_bytes: int = 32 << 20) -> None:
        self.limit = limit
        self.limit_bytes = limit_bytes
        self.evicted_up_to = seq
        #: Bytes that are here, and of those that were.
        self.size = self.evicted_size = 0
        self._entries: deque[Entry] = deque()

    def add(self, entry: Entry) -> None:
        """Keep `entry`, and let go of the oldest beyond the bounds."""
        entries = self._entries
        entries.append(entry)
        self.size += len(entry)
        while len(entries) > self.limit or (self.size > self.limit_bytes and len(entries) > 1):
            oldest = entries.popleft()
            self.size -= len(oldest)
            self.evicted_size += len(oldest)
            self.evicted_up_to = oldest.seq

    def reaches(self, seen: float, current: int) -> bool:
        """Whether a client that has seen up to `seen` can be answered from here (R-6.14)."""
        return self.evicted_up_to <= seen <= current

    def since(self, seen: float, channels: Collection[URI], client_id: str) -> Iterator[Entry]:
        """What that client missed on those channels, in order, its private answers included."""
        for entry in self._entries:
            if (
                entry.seq > seen
                and entry.channel.uri in channels
                and (entry.audience is None or entry.audience == client_id)
            ):
                yield entry

    def newest_first(self) -> Iterator[Entry]:
        """What is kept, the newest first."""
        return reversed(self._entries)

    def last_of(self, channel: URI, count: int) -> list[Entry]:
        """The newest envelopes of a channel that are here, at most so many, the oldest first."""
        of_channel = (entry for entry in reversed(self._entries) if entry.channel.uri == channel)
        return list(islice(of_channel, count))[::-1]

    def __len__(self) -> int:
        """How many envelopes are kept."""
        return len(self._entries)
