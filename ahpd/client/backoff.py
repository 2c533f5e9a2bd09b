"""How long to wait between attempts to connect. Pure; the randomness comes from a seed."""

from __future__ import annotations

import random
from collections.abc import Iterator

import attrs


@attrs.frozen
class Backoff:
    """Waits that grow by `factor` from `first` to `most` seconds.

    Each is shortened by a random part of up to `jitter` (0 to 1), so that clients which lost the
    same host do not come back in step.
    """

    first: float = 0.5
    factor: float = 2.0
    most: float = 30.0
    jitter: float = 0.5

    def delays(self, source: random.Random) -> Iterator[float]:
        """The waits before the first attempt, the second and so on, in seconds, without end."""
        wait = self.first
        while True:
            yield wait * (1 - self.jitter * source.random())
            wait = min(wait * self.factor, self.most)
