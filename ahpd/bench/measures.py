"""What can be measured, by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

import attrs

from ahpd.bench import footprint, latency, soak, streaming
from ahpd.bench.report import Row


class Measure(Protocol):
    """Measures, and returns the figures. `quick`: only to see that it works."""

    def __call__(self, *, quick: bool) -> Sequence[Row]:
        """Raises `BenchFailed`, and OSError."""
        ...


@attrs.frozen
class Named:
    """A measure, and what it is about in a few words."""

    what: str
    measure: Measure


MEASURES: Mapping[str, Named] = {
    "fanout": Named("1 chat streams to 32 subscribers", streaming.fanout),
    "single": Named("1 chat streams to 1 subscriber", streaming.single),
    "stalled": Named("the same to 32, of whom one reads nothing", streaming.stalled),
    "many": Named("100 chats with 50 deltas a second each", latency.many),
    "echo": Named("a dispatch on an idle host", latency.echo),
    "reconnect": Named("coming back after a gap", latency.reconnect),
    "memory": Named("idle sessions and connections", footprint.memory),
    "start": Named("a host without sessions", footprint.start),
}

#: What takes as long as it is told to, and is only measured when it is named.
SOAK = "soak"
#: Envelopes a second over the number of subscribers: a picture, and no figure of its own.
CURVE = "curve"

soaked: Callable[..., Sequence[Row]] = soak.soak
curve: Callable[..., Mapping[int, float]] = streaming.curve
