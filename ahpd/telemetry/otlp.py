"""Export requests made of OpenTelemetry's own types, and their OTLP/JSON.

OTLP/JSON is protobuf's JSON with two differences: ids of traces and spans are hexadecimal, and
enumerations are numbers.
"""

from __future__ import annotations

import base64
import os
from collections.abc import Iterable, Sequence
from typing import Any

from google.protobuf.json_format import MessageToDict
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsServiceRequest,
)
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, InstrumentationScope, KeyValue
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord, ResourceLogs, ScopeLogs
from opentelemetry.proto.metrics.v1 import metrics_pb2
from opentelemetry.proto.resource.v1.resource_pb2 import Resource
from opentelemetry.proto.trace.v1 import trace_pb2

from ahpd.protocol.model import Object
from ahpd.telemetry.port import Attributes, Metric, Record, Span

_KINDS = {
    "server": trace_pb2.Span.SPAN_KIND_SERVER,
    "client": trace_pb2.Span.SPAN_KIND_CLIENT,
}
_IDS = ("traceId", "spanId", "parentSpanId")


class OtlpBatch:
    """An export request; see `Batch`."""

    def __init__(self, request: Any) -> None:
        self._request = request

    def as_json(self) -> Object:
        """See `Batch.as_json`."""
        value: Object = MessageToDict(self._request, use_integers_for_enums=True)
        _spell_ids(value)
        return value

    def as_bytes(self) -> bytes:
        """See `Batch.as_bytes`."""
        body: bytes = self._request.SerializeToString()
        return body


class OtlpEncoder:
    """See `Encoder`. `began` is when the process started: sums count from there."""

    def __init__(self, *, version: str, began: int, instance: str) -> None:
        self._began = began
        self._resource = Resource(
            attributes=_attributes(
                {
                    "service.name": "ahpd",
                    "service.version": version,
                    "service.instance.id": instance,
                    "process.pid": os.getpid(),
                }
            )
        )
        self._scope = InstrumentationScope(name="ahpd", version=version)

    def logs(self, records: Sequence[Record]) -> OtlpBatch:
        """See `Encoder.logs`: a scope for each subsystem."""
        scopes: dict[str, ScopeLogs] = {}
        for each in records:
            scope = scopes.get(each.scope)
            if scope is None:
                scope = ScopeLogs(scope=InstrumentationScope(name=f"ahpd.{each.scope}"))
                scopes[each.scope] = scope
            scope.log_records.append(
                LogRecord(
                    time_unix_nano=each.at,
                    observed_time_unix_nano=each.at,
                    severity_number=each.severity,  # type: ignore[arg-type]
                    severity_text=each.band,
                    body=AnyValue(string_value=each.text),
                    attributes=_attributes(each.attributes),
                    trace_id=each.trace_id,
                )
            )
        logs = ResourceLogs(resource=self._resource, scope_logs=scopes.values())
        return OtlpBatch(ExportLogsServiceRequest(resource_logs=[logs]))

    def traces(self, spans: Sequence[Span]) -> OtlpBatch:
        """See `Encoder.traces`."""
        scope = trace_pb2.ScopeSpans(scope=self._scope, spans=map(_span, spans))
        found = trace_pb2.ResourceSpans(resource=self._resource, scope_spans=[scope])
        return OtlpBatch(ExportTraceServiceRequest(resource_spans=[found]))

    def metrics(self, metrics: Sequence[Metric], at: int) -> OtlpBatch:
        """See `Encoder.metrics`."""
        made = [self._metric(each, at) for each in metrics]
        scope = metrics_pb2.ScopeMetrics(scope=self._scope, metrics=made)
        found = metrics_pb2.ResourceMetrics(resource=self._resource, scope_metrics=[scope])
        return OtlpBatch(ExportMetricsServiceRequest(resource_metrics=[found]))

    def _metric(self, metric: Metric, at: int) -> metrics_pb2.Metric:
        made = metrics_pb2.Metric(
            name=metric.name, unit=metric.unit, description=metric.description
        )
        began = self._began if metric.kind == "sum" else 0
        points = [
            metrics_pb2.NumberDataPoint(
                attributes=_attributes(attributes),
                start_time_unix_nano=began,
                time_unix_nano=at,
                **_number(value),
            )
            for attributes, value in metric.points
        ]
        if metric.kind == "sum":
            made.sum.CopyFrom(
                metrics_pb2.Sum(
                    data_points=points,
                    aggregation_temporality=metrics_pb2.AGGREGATION_TEMPORALITY_CUMULATIVE,
                    is_monotonic=True,
                )
            )
        else:
            made.gauge.CopyFrom(metrics_pb2.Gauge(data_points=points))
        return made


def _number(value: float) -> Any:
    return {"as_int": value} if isinstance(value, int) else {"as_double": value}


def _span(span: Span) -> trace_pb2.Span:
    failed = span.failed is not None
    code = trace_pb2.Status.STATUS_CODE_ERROR if failed else trace_pb2.Status.STATUS_CODE_OK
    return trace_pb2.Span(
        trace_id=span.trace_id,
        span_id=span.span_id,
        parent_span_id=span.parent,
        name=span.name,
        kind=_KINDS[span.kind],
        start_time_unix_nano=span.began,
        end_time_unix_nano=span.ended,
        attributes=_attributes(span.attributes),
        status=trace_pb2.Status(code=code, message=span.failed or ""),
    )


def _attributes(attributes: Attributes) -> Iterable[KeyValue]:
    return [KeyValue(key=key, value=_value(value)) for key, value in attributes.items()]


def _value(value: str | int | float | bool) -> AnyValue:
    if isinstance(value, bool):
        return AnyValue(bool_value=value)
    if isinstance(value, int):
        return AnyValue(int_value=value)
    if isinstance(value, float):
        return AnyValue(double_value=value)
    return AnyValue(string_value=value)


def _spell_ids(value: object) -> None:
    """Make the ids hexadecimal, which protobuf's JSON has in base64."""
    if isinstance(value, list):
        for each in value:
            _spell_ids(each)
        return
    if not isinstance(value, dict):
        return
    for key, inner in value.items():
        if key in _IDS and isinstance(inner, str):
            value[key] = base64.b64decode(inner).hex()
        elif key in _WITH_IDS:
            _spell_ids(inner)


#: The keys on the way to what has ids; nothing else is looked into.
_WITH_IDS = frozenset(
    ("resourceLogs", "scopeLogs", "logRecords", "resourceSpans", "scopeSpans", "spans")
)
