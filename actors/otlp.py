"""`Otlp`: what there is of telemetry, and the channels on which it is sent (RULES 20).

The channels carry no state: a subscriber gets what is produced from then on, nothing is replayed,
and each level of logs is a stream of its own. Nothing is looked at while nobody listens.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from msgspec import Struct, field

from ahpd.protocol.model import Object
from ahpd.protocol.uris import URI
from ahpd.telemetry.port import SEVERITIES, Encoder, Exporter, LogSource, Signal

#: The channels; the first is a template, as clients expand it (R-20.4).
LOGS: URI = "ahp-otlp://logs/{level}"
TRACES: URI = "ahp-otlp://traces"
METRICS: URI = "ahp-otlp://metrics"
_LOGS_HEAD = LOGS.partition("{")[0]

CAPABILITIES: Object = {"logs": LOGS, "traces": TRACES, "metrics": METRICS}


class Topic(Struct, frozen=True):
    """What a telemetry channel is about; `severity` is the least important one of logs."""

    signal: Signal
    severity: int = 0


def topic_of(uri: URI) -> Topic | None:
    """What a URI asks for, which stands for itself: levels in any case; None: no such channel."""
    if uri == TRACES:
        return Topic("traces")
    if uri == METRICS:
        return Topic("metrics")
    if uri.startswith(_LOGS_HEAD):
        severity = SEVERITIES.get(uri.removeprefix(_LOGS_HEAD).lower())
        return Topic("logs", severity) if severity is not None else None
    return None


def _nobody_works() -> None:
    """Nobody to wake yet: the actor looks when it starts."""


class Otlp(Struct, eq=False):
    """One host's. It outlives the actor that does the work.

    `load` gives what encodes, which takes a while: it is imported then. `export_severity` is that
    of the logs that go to the `exporter`. Times are seconds.
    """

    load: Callable[[], Awaitable[Encoder]]
    logs: LogSource
    exporter: Exporter | None = None
    export_severity: int = SEVERITIES["info"]
    #: Between two batches of logs and spans, and of metrics.
    every: float = 1.0
    metrics_every: float = 10.0
    #: The channels that somebody has subscribed to; the actor forgets those that nobody hears.
    heard: dict[URI, Topic] = field(default_factory=dict)
    #: Somebody has subscribed to metrics since the last ones were sent.
    wants_metrics: bool = False
    #: Somebody has subscribed.
    wake: Callable[[], None] = _nobody_works

    def hear(self, uri: URI) -> None:
        """A connection has begun to hear this channel."""
        topic = topic_of(uri)
        if topic is not None:
            self.heard[uri] = topic
            self.wants_metrics = self.wants_metrics or topic.signal == "metrics"
            self.wake()
