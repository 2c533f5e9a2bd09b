"""OTLP batches for subscribers of the telemetry channels (RULES 20)."""

from __future__ import annotations

from ahpd.protocol.model import Object, Wire
from ahpd.protocol.uris import URI


class OtlpExportLogsParams(Wire):
    """An OTLP/JSON export of log records."""

    channel: URI
    payload: Object


class OtlpExportMetricsParams(Wire):
    """An OTLP/JSON export of metrics."""

    channel: URI
    payload: Object


class OtlpExportTracesParams(Wire):
    """An OTLP/JSON export of spans."""

    channel: URI
    payload: Object
