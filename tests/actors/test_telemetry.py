"""Telemetry on a whole host: what is announced, subscribed to, sent, and not sent (RULES 20)."""

from __future__ import annotations

from typing import Any

import attrs
import pytest
import trio

from actors import telemetry
from actors.otlp import CAPABILITIES, topic_of
from actors.spans import Spans
from ahpd.agents.events import (
    Done,
    Failed,
    TextChunk,
    ToolAsks,
    ToolFinished,
    ToolReady,
    ToolStarted,
    UsageReport,
)
from ahpd.protocol.uris import ROOT
from ahpd.telemetry.port import Signal
from supervisors import sys
from tests.actors.support import C, S, at_work, ending, room, settled, started
from tests.harness import (
    PuppetAgent,
    PuppetLogs,
    RawPeer,
    Refused,
    RunningHost,
    puppet_telemetry,
    running_host,
)
from tests.harness.telemetry import BEGAN

LOGS = "ahp-otlp://logs/"
TRACES, METRICS = "ahp-otlp://traces", "ahp-otlp://metrics"


def payloads(peer: RawPeer, method: str, channel: str | None = None) -> list[Any]:
    """What came on a telemetry channel, in order."""
    return [
        each["params"]["payload"]
        for each in peer.inbox
        if each.get("method") == method and channel in (None, each["params"]["channel"])
    ]


def spans_of(peer: RawPeer) -> list[Any]:
    return [
        span
        for payload in payloads(peer, "otlp/exportTraces")
        for resource in payload["resourceSpans"]
        for scope in resource["scopeSpans"]
        for span in scope["spans"]
    ]


def texts(peer: RawPeer, channel: str) -> list[str]:
    return [
        record["body"]["stringValue"]
        for payload in payloads(peer, "otlp/exportLogs", channel)
        for resource in payload["resourceLogs"]
        for scope in resource["scopeLogs"]
        for record in scope["logRecords"]
    ]


def metrics_in(payload: Any) -> dict[str, Any]:
    """Each metric's points, and what kind it is, by name."""
    (resource,) = payload["resourceMetrics"]
    (scope,) = resource["scopeMetrics"]
    found = {}
    for metric in scope["metrics"]:
        kind = "sum" if "sum" in metric else "gauge"
        found[metric["name"]] = (kind, metric[kind])
    return found


def value(metrics: dict[str, Any], name: str) -> float:
    """Of a metric without attributes, or of all its points together."""
    points = metrics[name][1].get("dataPoints", ())
    return sum(float(each.get("asInt", each.get("asDouble", 0))) for each in points)


def attributes(thing: Any) -> dict[str, Any]:
    return {each["key"]: next(iter(each["value"].values())) for each in thing["attributes"]}


@attrs.define
class Sink:
    """A collector, as the host sees it."""

    got: list[tuple[Signal, bytes]] = attrs.field(factory=list)

    def put(self, signal: Signal, body: bytes) -> None:
        self.got.append((signal, body))


async def a_turn_with_tools(host: RunningHost, ann: RawPeer, agent: PuppetAgent) -> None:
    await ann.dispatch(C, started("t1", "my secret prompt"))
    puppet = await at_work(agent, "t1")
    await trio.sleep(1)
    puppet.say(TextChunk("a secret answer"))
    puppet.say(ToolStarted("c1", "grep", "Search"))
    puppet.say(ToolReady("c1", "Search for a secret", "secret pattern"))
    await trio.sleep(2)
    puppet.say(ToolFinished("c1", True, "Searched"))
    puppet.say(ToolStarted("c2", "rm", "Remove"))
    puppet.say(ToolReady("c2", "Remove", "x"))
    puppet.say(ToolFinished("c2", False, "Failed", error="secret error"))
    puppet.say(UsageReport(input_tokens=7, output_tokens=9, model="large"))
    puppet.end(Done())
    await ending(ann, "t1")
    await trio.sleep(2)


async def test_r_20_1_what_there_is_is_announced() -> None:
    async with running_host(telemetry=puppet_telemetry(PuppetLogs())) as host:
        ann = await host.peer("ann")
        assert (await ann.hello())["telemetry"] == CAPABILITIES
        assert CAPABILITIES == {"logs": LOGS + "{level}", "traces": TRACES, "metrics": METRICS}
    async with running_host() as host:
        ann = await host.peer("ann")
        assert "telemetry" not in await ann.hello()
        with pytest.raises(Refused):
            await ann.request("subscribe", channel=TRACES)


async def test_a_turn_is_a_server_span_and_its_calls_are_client_spans_in_it() -> None:
    agent = PuppetAgent()
    async with running_host(agent, telemetry=puppet_telemetry(PuppetLogs())) as host:
        ann = await room(host)
        assert await ann.request("subscribe", channel=TRACES) == {}
        await a_turn_with_tools(host, ann, agent)
        grep, rm, turn = spans_of(ann)
    assert [each["kind"] for each in (grep, rm, turn)] == [3, 3, 2]
    assert (turn["name"], grep["name"], rm["name"]) == ("turn", "tool grep", "tool rm")
    assert len({each["traceId"] for each in (grep, rm, turn)}) == 1
    assert len(bytes.fromhex(turn["traceId"])) == 16
    assert len(bytes.fromhex(turn["spanId"])) == 8
    assert "parentSpanId" not in turn
    assert grep["parentSpanId"] == rm["parentSpanId"] == turn["spanId"]
    assert int(turn["endTimeUnixNano"]) - int(turn["startTimeUnixNano"]) == pytest.approx(
        3e9, rel=0.01
    )
    assert int(grep["endTimeUnixNano"]) - int(grep["startTimeUnixNano"]) == pytest.approx(
        2e9, rel=0.01
    )
    assert [each["status"]["code"] for each in (turn, grep, rm)] == [1, 1, 2]
    told = attributes(turn)
    assert told == {
        "ahp.session.id": S,
        "ahp.chat.id": C,
        "ahp.turn.id": "t1",
        "ahp.client.id": "ann",
        "ahp.turn.outcome": "complete",
        "gen_ai.usage.input_tokens": "7",
        "gen_ai.usage.output_tokens": "9",
        "gen_ai.request.model": "large",
    }
    assert attributes(grep)["ahp.tool_call.id"] == "c1"
    assert attributes(grep)["gen_ai.tool.name"] == "grep"
    assert "secret" not in str([grep, rm, turn])


async def test_turns_that_end_badly_and_one_nobody_heard_the_beginning_of() -> None:
    agent = PuppetAgent()
    async with running_host(agent, telemetry=puppet_telemetry(PuppetLogs())) as host:
        ann = await room(host)
        await ann.dispatch(C, started("t1"))
        puppet = await at_work(agent, "t1")
        await trio.sleep(5)
        await ann.request("subscribe", channel=TRACES)
        puppet.say(ToolStarted("c1", "grep", "Search"))
        puppet.say(ToolAsks("c1", "May I?"))
        await settled()
        await ann.dispatch(
            C,
            {
                "type": "chat/toolCallConfirmed",
                "turnId": "t1",
                "toolCallId": "c1",
                "approved": False,
                "reason": "denied",
            },
        )
        await settled()
        puppet.say(ToolStarted("c2", "wait", "Wait"))
        puppet.end(Failed("overloaded with secrets", "Overloaded"))
        await ending(ann, "t1")
        await ann.dispatch(C, started("t2"))
        await at_work(agent, "t2")
        await ann.dispatch(C, {"type": "chat/turnCancelled", "turnId": "t2", "duration": 1})
        await trio.sleep(2)
        denied, waited, failed, cancelled = spans_of(ann)
    assert denied["status"] == {"code": 2, "message": "denied"}
    assert waited["status"] == {"code": 2, "message": "the turn ended"}
    assert failed["status"] == {"code": 2, "message": "Overloaded"}
    assert int(failed["endTimeUnixNano"]) - int(failed["startTimeUnixNano"]) >= 5e9
    assert cancelled["status"] == {"code": 2, "message": "cancelled"}
    assert attributes(cancelled)["ahp.turn.outcome"] == "cancelled"
    assert "secrets" not in str(failed)


async def test_r_20_4_levels_in_any_case_are_streams_of_their_own() -> None:
    logs = PuppetLogs()
    async with running_host(telemetry=puppet_telemetry(logs)) as host:
        ann = await room(host)
        for level in ("info", "INFO", "Error"):
            assert await ann.request("subscribe", channel=LOGS + level) == {}
        await settled()
        assert logs.severity == 9
        for band in ("debug", "info", "warn", "error", "fatal"):
            logs.say(band, band)
        await trio.sleep(2)
        assert texts(ann, LOGS + "info") == ["info", "warn", "error", "fatal"]
        assert texts(ann, LOGS + "INFO") == ["info", "warn", "error", "fatal"]
        assert texts(ann, LOGS + "Error") == ["error", "fatal"]
        (payload,) = payloads(ann, "otlp/exportLogs", LOGS + "Error")
        (resource,) = payload["resourceLogs"]
        assert attributes(resource["resource"])["service.name"] == "ahpd"
        (scope,) = resource["scopeLogs"]
        assert scope["scope"]["name"] == "ahpd.agents.acp"
        record = scope["logRecords"][0]
        assert (record["severityNumber"], record["severityText"]) == (17, "error")
        assert record["timeUnixNano"] == str(BEGAN)
        for channel in (LOGS + "loud", LOGS, "ahp-otlp://logs", "ahp-otlp://all"):
            with pytest.raises(Refused) as refused:
                await ann.request("subscribe", channel=channel)
            assert refused.value.code == -32008


async def test_metrics_come_at_once_and_then_again_and_again() -> None:
    agent = PuppetAgent()
    async with running_host(agent, telemetry=puppet_telemetry(PuppetLogs())) as host:
        ann = await room(host)
        first = host.tables.ledger.seq
        await ann.request("subscribe", channel=METRICS)
        await settled()
        (payload,) = payloads(ann, "otlp/exportMetrics")
        metrics = metrics_in(payload)
        assert value(metrics, "ahpd.envelopes") == first
        assert value(metrics, "ahpd.connections") == value(metrics, "ahpd.sessions") == 1
        assert metrics["ahpd.turns"][1].get("dataPoints", []) == []
        bob = await room(host, "bob", subscribe=())
        await bob.request("subscribe", channel=METRICS)
        await trio.sleep(2)
        assert len(payloads(bob, "otlp/exportMetrics")) == 1
        await a_turn_with_tools(host, ann, agent)
        sys.kill(host.system.ref("grace"))
        await trio.sleep(20)
        later = metrics_in(payloads(ann, "otlp/exportMetrics")[-1])
        kind, envelopes = later["ahpd.envelopes"]
        assert kind == "sum"
        assert (envelopes["aggregationTemporality"], envelopes["isMonotonic"]) == (2, True)
        assert envelopes["dataPoints"][0]["startTimeUnixNano"] == str(BEGAN)
        assert value(later, "ahpd.envelopes") == host.tables.ledger.seq
        (point,) = later["ahpd.turns"][1]["dataPoints"]
        assert (attributes(point), point["asInt"]) == ({"ahp.turn.outcome": "complete"}, "1")
        assert value(later, "ahpd.actor.restarts") == 1
        assert value(later, "ahpd.connections") == 2
        assert value(later, "ahpd.replay.envelopes") == len(host.tables.window)
        assert value(later, "ahpd.actors") > 10
        assert value(later, "process.memory.usage") > 1 << 20
        assert len(payloads(ann, "otlp/exportMetrics")) == 4  # 0, 1 (for Bob), 10 and 20 s


async def test_who_comes_back_goes_on_and_nothing_is_replayed() -> None:
    logs = PuppetLogs()
    async with running_host(telemetry=puppet_telemetry(logs)) as host:
        ann = await host.peer("ann")
        await ann.hello(subscribe=[ROOT, LOGS + "warn"])
        logs.say("warn", "before")
        await trio.sleep(2)
        assert texts(ann, LOGS + "warn") == ["before"]
        ann.cut()
        await trio.sleep(2)
        assert logs.severity is None
        logs.say("warn", "meanwhile")
        again = await host.peer("ann")
        answer = await again.request(
            "reconnect",
            clientId="ann",
            lastSeenServerSeq=host.tables.ledger.seq,
            subscriptions=[ROOT, LOGS + "warn", "ahp-otlp://none"],
        )
        assert answer == {"type": "replay", "actions": [], "missing": ["ahp-otlp://none"]}
        logs.say("warn", "after")
        await trio.sleep(2)
        assert texts(again, LOGS + "warn") == ["after"]


async def test_nothing_is_looked_at_while_nobody_listens() -> None:
    logs = PuppetLogs()
    otlp = puppet_telemetry(logs)
    async with running_host(telemetry=otlp) as host:
        ann = await room(host)
        await trio.sleep(60)
        assert (host.tables.on_out, logs.severity) == (None, None)
        await ann.request("subscribe", channel=TRACES)
        await ann.request("subscribe", channel=LOGS + "debug")
        await settled()
        assert host.tables.on_out is not None
        assert logs.severity == 5
        await ann.notify("unsubscribe", channel=LOGS + "debug")
        await trio.sleep(2)
        assert logs.severity is None
        await ann.notify("unsubscribe", channel=TRACES)
        await trio.sleep(2)
        assert host.tables.on_out is None
        seen = sys.inspect(host.system.ref("telemetry/otlp"))
        assert seen.helpers == ()


async def test_who_is_behind_gets_none_and_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(telemetry, "BEHIND", 2000)
    logs = PuppetLogs()
    async with running_host(telemetry=puppet_telemetry(logs)) as host:
        ann = await room(host)
        slow = await host.peer("slow", capacity=1000)
        await slow.hello(subscribe=[LOGS + "info"])
        await ann.request("subscribe", channel=LOGS + "info")
        slow.stall()
        for number in range(30):
            logs.say("info", f"{number} " + "x" * 300)
            await trio.sleep(2)
        slow.resume()
        await settled()
        assert len(texts(ann, LOGS + "info")) == 30
        assert 0 < len(texts(slow, LOGS + "info")) < 10
        assert slow.closed is None


async def test_too_many_records_are_left_out_and_counted(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(telemetry, "MOST", 700)
    logs = PuppetLogs()
    async with running_host(telemetry=puppet_telemetry(logs)) as host:
        ann = await room(host)
        await ann.request("subscribe", channel=LOGS + "info")
        await settled()
        for number in range(1000):
            logs.say("info", str(number))
        await trio.sleep(2)
        assert texts(ann, LOGS + "info") == [str(number) for number in range(700)]
        assert len(payloads(ann, "otlp/exportLogs")) == 2
    assert "300 log records came too fast to be sent" in caplog.text


async def test_its_actor_goes_on_after_it_was_killed() -> None:
    logs = PuppetLogs()
    async with running_host(telemetry=puppet_telemetry(logs)) as host:
        ann = await room(host)
        await ann.request("subscribe", channel=LOGS + "info")
        await settled()
        sys.kill(host.system.ref("telemetry/otlp"))
        await trio.sleep(5)
        logs.say("info", "still there")
        await trio.sleep(2)
        assert texts(ann, LOGS + "info") == ["still there"]


async def test_a_fault_in_it_ends_spans_and_nothing_else(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(*_: object) -> None:
        raise KeyError("a fault of ours")

    agent = PuppetAgent()
    async with running_host(agent, telemetry=puppet_telemetry(PuppetLogs())) as host:
        ann = await room(host)
        await ann.request("subscribe", channel=TRACES)
        await settled()
        monkeypatch.setattr(Spans, "hear", broken)
        await a_turn_with_tools(host, ann, agent)
        assert host.tables.on_out is None
    assert "there are no more spans" in caplog.text


async def test_a_collector_gets_the_same_without_any_subscriber() -> None:
    from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
    from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
        ExportTraceServiceRequest,
    )

    agent, logs, sink = PuppetAgent(), PuppetLogs(), Sink()
    async with running_host(agent, telemetry=puppet_telemetry(logs, sink)) as host:
        ann = await room(host)
        logs.say("debug", "not this")
        logs.say("warn", "this")
        await a_turn_with_tools(host, ann, agent)
        await trio.sleep(10)
    signals = [signal for signal, _ in sink.got]
    assert signals.count("metrics") == 2
    (records,) = [body for signal, body in sink.got if signal == "logs"]
    request = ExportLogsServiceRequest.FromString(records)
    (record,) = request.resource_logs[0].scope_logs[0].log_records
    assert record.body.string_value == "this"
    spans = [
        span.name
        for signal, body in sink.got
        if signal == "traces"
        for span in ExportTraceServiceRequest.FromString(body)
        .resource_spans[0]
        .scope_spans[0]
        .spans
    ]
    assert spans == ["tool grep", "tool rm", "turn"]


@pytest.mark.parametrize("uri", ["ahp-otlp://Traces", "ahp-otlp://logs/{level}", "ahp-root://", ""])
def test_what_is_no_telemetry_channel(uri: str) -> None:
    assert topic_of(uri) is None
