"""Sends logs, spans and metrics to those who subscribed to them, and to a collector (RULES 20).

While somebody listens one helper makes a batch each second. A subscriber that is behind gets none:
telemetry is what may be lost. This actor is supervised apart: no fault of its ends the host.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import suppress
from functools import partial
from typing import TypeVar

import trio
from msgspec import Struct

from actors.figures import figures
from actors.host import Host
from actors.ledger import Entry
from actors.otlp import Otlp, Topic
from actors.spans import Spans
from ahpd.protocol.frame import frame
from ahpd.protocol.jsonrpc import notification
from ahpd.protocol.uris import URI
from ahpd.telemetry.port import Batch, Encoder, Record
from supervisors import Actor, ActorGone, Beyond, ChildSpec, MailboxFull, SupervisorSpec

_log = logging.getLogger("ahpd.telemetry")

T = TypeVar("T")

#: Records, and spans, of one export request.
BATCH = 500
#: Records that wait for the next batch; more are lost.
MOST = 10_000
#: Bytes that may wait for a subscriber that still gets telemetry.
BEHIND = 1 << 20

_METHODS = {
    "logs": "otlp/exportLogs",
    "traces": "otlp/exportTraces",
    "metrics": "otlp/exportMetrics",
}


class Listen(Struct, frozen=True):
    """Somebody has subscribed: look."""


class _Backlog:
    """Records between two batches. Any thread may put one in."""

    def __init__(self) -> None:
        self._records: deque[Record] = deque()
        self.lost = 0

    def put(self, record: Record) -> None:
        """Keep it for the next batch, if there is room."""
        if len(self._records) < MOST:
            self._records.append(record)
        else:
            self.lost += 1

    def take(self) -> list[Record]:
        """Everything so far."""
        return [self._records.popleft() for _ in range(len(self._records))]


class Telemetry(Actor[Listen]):
    """See the module's docstring."""

    kind = "telemetry"

    def __init__(self, host: Host, otlp: Otlp, seq_at_start: int) -> None:
        self._host = host
        self._otlp = otlp
        self._seq_at_start = seq_at_start
        self._backlog = _Backlog()
        self._spans: Spans | None = None
        self._is_at_work = False
        #: From which severity on records are asked for; None: there are none.
        self._severity: int | None = None
        #: When metrics are due next, on trio's clock.
        self._metrics_due = 0.0

    async def on_start(self) -> None:
        """Go on for those who are still subscribed."""
        ref = self.ref

        def wake() -> None:
            # Down: `on_start` of the next incarnation looks. Full: it has been told already.
            with suppress(ActorGone, MailboxFull):
                ref.cast(Listen())

        self._otlp.wake = wake
        self._look()

    async def on_stop(self, reason: str) -> None:
        """Send what there is, and look at nothing any more."""
        if self._spans is not None and self._otlp.exporter is not None:
            await self._send(await self._otlp.load())
        self._rest()

    async def on_crash(self, error: BaseException | None) -> None:
        """Look at nothing any more."""
        self._rest()

    async def handle(self, message: Listen) -> None:
        """Somebody has subscribed."""
        if self._host.on_out is None:  # it failed before, or was not at work
            self._spans = None
        self._look()

    # ---- whether anything is looked at ---------------------------------------------------------

    def _look(self) -> None:
        """Listen to what is wanted now, and have it sent."""
        otlp, heard = self._otlp, self._host.subscriptions.of
        for uri in [uri for uri in otlp.heard if not heard(uri)]:
            del otlp.heard[uri]
        levels = [topic.severity for topic in otlp.heard.values() if topic.signal == "logs"]
        if otlp.exporter is not None:
            levels.append(otlp.export_severity)
        if not otlp.heard and otlp.exporter is None:
            self._rest()
            return
        self._ask_for_records(min(levels, default=None))
        if self._spans is None:
            self._spans = Spans(self._now)
            self._host.on_out = partial(self._let_out, self._spans)
        if not self._is_at_work:
            self._is_at_work = True
            self.spawn(self._work, name="batches")

    def _rest(self) -> None:
        self._ask_for_records(None)
        self._host.on_out = None
        self._spans = None

    def _ask_for_records(self, severity: int | None) -> None:
        if severity != self._severity:
            self._severity = severity
            self._otlp.logs.listen(severity, self._backlog.put)

    def _let_out(self, spans: Spans, entry: Entry) -> None:
        try:
            spans.hear(entry)
        except Exception:  # noqa: BLE001 - the sequencer must not fail because of it
            _log.exception("there are no more spans until somebody subscribes again")
            self._host.on_out = None

    def _now(self) -> int:
        return round(self._host.clock.ms() * 1e6)

    # ---- batches -------------------------------------------------------------------------------

    async def _work(self) -> None:
        """Helper: as long as anybody listens."""
        encoder = await self._otlp.load()
        while self._otlp.heard or self._otlp.exporter is not None:
            await self._send(encoder)
            await trio.sleep(self._otlp.every)
            self._look()  # who has gone meanwhile
        self._is_at_work = False

    async def _send(self, encoder: Encoder) -> None:
        self._send_logs(encoder)
        self._send_spans(encoder)
        is_due = trio.current_time() >= self._metrics_due
        if is_due or self._otlp.wants_metrics:
            await self._send_metrics(encoder, export=is_due)

    def _send_logs(self, encoder: Encoder) -> None:
        records = self._backlog.take()
        if self._backlog.lost:
            lost, self._backlog.lost = self._backlog.lost, 0
            _log.warning("%d log records came too fast to be sent", lost)
        if not records:
            return
        for uri, topic in self._topics("logs"):
            wanted = [each for each in records if each.severity >= topic.severity]
            for some in _portions(wanted):
                self._tell(uri, topic, encoder.logs(some))
        severe = [each for each in records if each.severity >= self._otlp.export_severity]
        for some in _portions(severe):
            self._export("logs", encoder.logs(some))

    def _send_spans(self, encoder: Encoder) -> None:
        spans = self._spans
        if spans is None:
            return
        ended = [spans.ended.popleft() for _ in range(len(spans.ended))]
        for some in _portions(ended):
            batch = encoder.traces(some)
            for uri, topic in self._topics("traces"):
                self._tell(uri, topic, batch)
            self._export("traces", batch)

    async def _send_metrics(self, encoder: Encoder, *, export: bool) -> None:
        self._otlp.wants_metrics = False
        if export:
            self._metrics_due = trio.current_time() + self._otlp.metrics_every
        if not self._topics("metrics") and self._otlp.exporter is None:
            return
        found = await figures(self.system, self._host, self._seq_at_start)
        batch = encoder.metrics(found, self._now())
        for uri, topic in self._topics("metrics"):
            self._tell(uri, topic, batch)
        if export:
            self._export("metrics", batch)

    def _topics(self, signal: str) -> list[tuple[URI, Topic]]:
        return [(uri, topic) for uri, topic in self._otlp.heard.items() if topic.signal == signal]

    def _tell(self, uri: URI, topic: Topic, batch: Batch) -> None:
        """To all who hear that channel and are not behind."""
        listeners = [each for each in self._host.subscriptions.of(uri) if each.backlog < BEHIND]
        if not listeners:
            return
        params = {"channel": uri, "payload": batch.as_json()}
        told = frame(notification(_METHODS[topic.signal], params))
        for listener in listeners:
            listener.tell(told)

    def _export(self, signal: str, batch: Batch) -> None:
        exporter = self._otlp.exporter
        if exporter is not None:
            exporter.put(signal, batch.as_bytes())  # type: ignore[arg-type]


def _portions(things: Sequence[T]) -> Iterator[Sequence[T]]:
    return (things[start : start + BATCH] for start in range(0, len(things), BATCH))


def telemetry_spec(host: Host) -> ChildSpec:
    """Its supervisor, which sets it aside when it fails too often; empty without telemetry."""
    otlp = host.telemetry
    made = () if otlp is None else (ChildSpec("otlp", Telemetry, (host, otlp, host.ledger.seq)),)
    return ChildSpec("telemetry", SupervisorSpec(made, beyond=Beyond.PARK))
