"""What telemetry is made of, and who carries it: plain values and small protocols.

Nothing of OpenTelemetry is imported here; `ahpd.telemetry.otlp` is, when somebody listens. Times
are nanoseconds since 1970, as there. Tokens, tool input and file content are in none of it
(R-20.10).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Literal, Protocol, TypeAlias

from msgspec import Struct

from ahpd.protocol.model import Object

Signal: TypeAlias = Literal["logs", "traces", "metrics"]
Attributes: TypeAlias = Mapping[str, str | int | float | bool]

#: The bands of severity by name, and the lowest number of each (R-20.4).
SEVERITIES: Mapping[str, int] = {
    "trace": 1,
    "debug": 5,
    "info": 9,
    "warn": 13,
    "error": 17,
    "fatal": 21,
}


class Record(Struct, frozen=True):
    """A log record of the subsystem `scope`; `severity` is one of `SEVERITIES`."""

    at: int
    severity: int
    band: str
    scope: str
    text: str
    attributes: Attributes
    trace_id: bytes = b""


class Span(Struct, frozen=True):
    """Something that took a while. `failed` says why, of one that did not end well."""

    trace_id: bytes
    span_id: bytes
    parent: bytes
    name: str
    kind: Literal["server", "client"]
    began: int
    ended: int
    attributes: Attributes
    failed: str | None = None


class Metric(Struct, frozen=True):
    """A figure, or one for each set of attributes. A `sum` only grows, from the process's start."""

    name: str
    unit: str
    kind: Literal["sum", "gauge"]
    description: str
    points: Sequence[tuple[Attributes, float]]


class Batch(Protocol):
    """An export request, as both ways of sending it need it."""

    def as_json(self) -> Object:
        """OTLP/JSON."""
        ...

    def as_bytes(self) -> bytes:
        """In protobuf's own encoding."""
        ...


class Encoder(Protocol):
    """Makes export requests. Sync; takes some microseconds for each thing."""

    def logs(self, records: Sequence[Record]) -> Batch:
        """Of log records."""
        ...

    def traces(self, spans: Sequence[Span]) -> Batch:
        """Of spans."""
        ...

    def metrics(self, metrics: Sequence[Metric], at: int) -> Batch:
        """Of figures of one moment."""
        ...


class LogSource(Protocol):
    """Where log records come from."""

    def listen(self, severity: int | None, hear: Callable[[Record], None]) -> None:
        """From now on give `hear` the records from this severity on; None: none any more. Sync.

        `hear` may be called in any thread.
        """
        ...


class Exporter(Protocol):
    """Sends export requests to a collector."""

    def put(self, signal: Signal, body: bytes) -> None:
        """Send it as soon as possible, or leave it out when too much waits. Never waits."""
        ...
