"""OTLP/JSON: what protobuf's JSON is not, and what comes out again of the other encoding."""

from __future__ import annotations

import os

from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsServiceRequest,
)
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from ahpd.telemetry.otlp import OtlpEncoder
from ahpd.telemetry.port import Metric, Record, Span

ENCODER = OtlpEncoder(version="1.2", began=17, instance="i")
RESOURCE = {
    "attributes": [
        {"key": "service.name", "value": {"stringValue": "ahpd"}},
        {"key": "service.version", "value": {"stringValue": "1.2"}},
        {"key": "service.instance.id", "value": {"stringValue": "i"}},
        {"key": "process.pid", "value": {"intValue": str(os.getpid())}},
    ]
}


def test_a_span() -> None:
    span = Span(b"\x01" * 16, b"\x02" * 8, b"\x03" * 8, "n", "client", 5, 9, {"traceId": True}, "x")
    batch = ENCODER.traces([span])
    assert batch.as_json() == {
        "resourceSpans": [
            {
                "resource": RESOURCE,
                "scopeSpans": [
                    {
                        "scope": {"name": "ahpd", "version": "1.2"},
                        "spans": [
                            {
                                "traceId": "01" * 16,
                                "spanId": "02" * 8,
                                "parentSpanId": "03" * 8,
                                "name": "n",
                                "kind": 3,
                                "startTimeUnixNano": "5",
                                "endTimeUnixNano": "9",
                                "attributes": [{"key": "traceId", "value": {"boolValue": True}}],
                                "status": {"code": 2, "message": "x"},
                            }
                        ],
                    }
                ],
            }
        ]
    }
    (again,) = ExportTraceServiceRequest.FromString(batch.as_bytes()).resource_spans
    assert again.scope_spans[0].spans[0].parent_span_id == b"\x03" * 8


def test_records_are_grouped_by_subsystem() -> None:
    def record(scope: str, trace_id: bytes = b"") -> Record:
        return Record(7, 13, "warn", scope, "text", {"a": 1.5}, trace_id)

    batch = ENCODER.logs([record("tree"), record("agents", b"\xff" * 16), record("tree")])
    (resource,) = batch.as_json()["resourceLogs"]
    scopes = resource["scopeLogs"]
    assert [each["scope"]["name"] for each in scopes] == ["ahpd.tree", "ahpd.agents"]
    assert scopes[1]["logRecords"] == [
        {
            "timeUnixNano": "7",
            "observedTimeUnixNano": "7",
            "severityNumber": 13,
            "severityText": "warn",
            "body": {"stringValue": "text"},
            "attributes": [{"key": "a", "value": {"doubleValue": 1.5}}],
            "traceId": "ff" * 16,
        }
    ]
    (again,) = ExportLogsServiceRequest.FromString(batch.as_bytes()).resource_logs
    assert len(again.scope_logs[0].log_records) == 2


def test_sums_and_gauges() -> None:
    batch = ENCODER.metrics(
        [
            Metric("s", "1", "sum", "A sum", [({"k": "v"}, 3), ({}, 2.5)]),
            Metric("g", "By", "gauge", "A gauge", [({}, 0)]),
        ],
        at=99,
    )
    (resource,) = batch.as_json()["resourceMetrics"]
    assert resource["scopeMetrics"][0]["metrics"] == [
        {
            "name": "s",
            "unit": "1",
            "description": "A sum",
            "sum": {
                "aggregationTemporality": 2,
                "isMonotonic": True,
                "dataPoints": [
                    {
                        "attributes": [{"key": "k", "value": {"stringValue": "v"}}],
                        "startTimeUnixNano": "17",
                        "timeUnixNano": "99",
                        "asInt": "3",
                    },
                    {"startTimeUnixNano": "17", "timeUnixNano": "99", "asDouble": 2.5},
                ],
            },
        },
        {
            "name": "g",
            "unit": "By",
            "description": "A gauge",
            "gauge": {"dataPoints": [{"timeUnixNano": "99", "asInt": "0"}]},
        },
    ]
    (again,) = ExportMetricsServiceRequest.FromString(batch.as_bytes()).resource_metrics
    assert again.scope_metrics[0].metrics[0].sum.is_monotonic
