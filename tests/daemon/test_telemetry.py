"""Telemetry of real processes, and of the log as it is."""

from __future__ import annotations

import logging
import sys
from pathlib import Path
from typing import Any

import pytest
import trio

from actors.labels import Labels
from actors.spans import trace_of
from ahpd.daemon import logs
from ahpd.daemon.config import LogConfig
from ahpd.daemon.telemetry import LogRecords
from ahpd.telemetry.port import Record
from ahpd.transports.redaction import Redactor
from tests.actors.support import C, S, room, settled, started
from tests.daemon.support import daemon, peer
from tests.daemon.test_logs import as_before
from tests.harness import running_host
from tests.telemetry.loopback import loopback
from tests.wire import Wiretap

__all__ = ["as_before"]


def is_traces(message: Any) -> bool:
    return bool(message.get("method") == "otlp/exportTraces")


def spans_in(bodies: list[bytes]) -> list[str]:
    from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
        ExportTraceServiceRequest,
    )

    return [
        span.name
        for body in bodies
        for resource in ExportTraceServiceRequest.FromString(body).resource_spans
        for scope in resource.scope_spans
        for span in scope.spans
    ]


@pytest.mark.real_time
async def test_a_daemon_and_its_collector_and_a_subscriber(tmp_path: Path, wire: Wiretap) -> None:
    with loopback() as there:
        (tmp_path / "config.toml").write_text(
            f'[telemetry]\nendpoint = "{there.url}"\nheaders = {{ X-Key = "s3cr3t-header" }}\n'
            'level = "debug"\n[log]\nlevel = "debug"\n'
        )
        with daemon(tmp_path, "--config", str(tmp_path / "config.toml")) as host:
            async with peer(host.url, wire.connection()) as client:
                hello = await client.hello()
                for uri in (hello["telemetry"]["traces"], "ahp-otlp://logs/debug"):
                    assert await client.request("subscribe", channel=uri) == {}
                await client.begin("please fail")
                await client.until_action("chat/error")
                told: Any = next((each for each in client.heard if is_traces(each)), {})
                while not is_traces(told):
                    told = await client.next()
                span = told["params"]["payload"]["resourceSpans"][0]["scopeSpans"][0]["spans"][-1]
                assert span["name"] == "turn"
            assert host.end() == 0
            assert b"s3cr3t" not in host.said
        bodies = {
            path: [body for each, _, body in there.got if each == path]
            for path in ("/v1/logs", "/v1/traces", "/v1/metrics")
        }
        assert all(bodies.values()), {path: len(found) for path, found in bodies.items()}
        assert "turn" in spans_in(bodies["/v1/traces"])
        assert there.got[0][1]["X-Key"] == "s3cr3t-header"


async def test_log_records_say_whose_they_are_and_hold_no_secret() -> None:
    log = logs.set_up(LogConfig(level="error"), Redactor(["s3cr3t-value"]))
    async with running_host() as host:
        logs.attach(log, host.system, Labels(host.tables))
        ann = await room(host)
        await ann.dispatch(C, started("t1"))
        await settled()
        source, got = LogRecords(log, host.tables), list[Record]()
        source.listen(9, got.append)
        facts = {"actor": "x", "channel": C, "turn": "t1", "number": 7}
        logging.getLogger("ahpd.agents.acp").info("a s3cr3t-value \ud800", extra=facts)
        logging.getLogger("ahpd.agents.acp").debug("not this")
        logging.getLogger("ahpd.telemetry").warning("nor this")
        logging.getLogger("ahpd.journal").warning("x" * 20_000)
        try:
            raise KeyError("s3cr3t-value")
        except KeyError:
            logging.getLogger("ahpd.tree").exception("bad")
        source.listen(None, got.append)
        logging.getLogger("ahpd.tree").error("nor this")
    first, long, second = got
    assert long.text == "x" * 16_384 + "…"
    assert (first.severity, first.band, first.scope) == (9, "info", "agents.acp")
    assert first.text == "a *** ?"
    assert first.attributes == {
        "ahpd.actor": "x",
        "ahp.session.id": S,
        "ahp.channel": C,
        "ahp.server_seq": 7,
        "ahp.turn.id": "t1",
    }
    assert first.trace_id == trace_of(C, "t1")
    assert second.severity == 17
    assert str(second.attributes["exception.stacktrace"]).endswith("KeyError: '***'")


@pytest.mark.real_time
async def test_nothing_of_opentelemetry_is_imported_before_somebody_listens() -> None:
    code = (
        "import sys; import ahpd.daemon.over_stdio, ahpd.daemon.serving, ahpd.daemon.launching;"
        "print([m for m in sys.modules if m.startswith(('opentelemetry', 'google.protobuf'))])"
    )
    done = await trio.run_process([sys.executable, "-c", code], capture_stdout=True)
    assert done.stdout == b"[]\n"
