"""Gives a host its telemetry: log records of this process, the encoder, and a collector if wanted.

Nothing of OpenTelemetry is imported before somebody listens.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import trio

from actors.host import Host
from actors.otlp import Otlp
from actors.spans import trace_of
from ahpd import __version__
from ahpd.daemon.config import TelemetryConfig
from ahpd.daemon.log_lines import subsystem, traceback_of
from ahpd.daemon.logs import Log
from ahpd.telemetry.port import SEVERITIES, Encoder, Record

#: Characters of a record's text, and of each attribute.
LONGEST = 16_384
#: The names of facts in a log line as attributes (R-20.8).
_ATTRIBUTES = {
    "channel": "ahp.channel",
    "number": "ahp.server_seq",
    "client": "ahp.client.id",
    "turn": "ahp.turn.id",
}
_BANDS = {"debug": "debug", "info": "info", "warning": "warn", "error": "error"}


class LogRecords(logging.Handler):
    """Log records for telemetry; see `LogSource`. What telemetry logs of itself is not among them:
    a record of a record would follow for each."""

    def __init__(self, log: Log, host: Host) -> None:
        super().__init__()
        self._log = log
        self._host = host
        self._hear: Callable[[Record], None] = lambda _: None

    def listen(self, severity: int | None, hear: Callable[[Record], None]) -> None:
        """See `LogSource.listen`."""
        self._hear = hear
        if severity is None:
            self._log.unlisten(self)
        else:
            self._log.listen(self, _level_of(severity))

    def emit(self, record: logging.LogRecord) -> None:
        """As `logging` has it: never raises."""
        try:
            if subsystem(record.name) != "telemetry":
                self._hear(self._made(record))
        except Exception:  # noqa: BLE001 - a record that cannot be sent is no reason to fail
            self.handleError(record)

    def _made(self, record: logging.LogRecord) -> Record:
        redact = self._log.redact
        actor, facts = self._log.speaker.of(record)
        attributes: dict[str, str | int] = {"ahpd.actor": actor} if actor else {}
        trace = b""
        channel = self._host.ledger.find(str(facts.get("channel", "")))
        if channel is not None:
            session = channel.uri if channel.kind == "session" else channel.owner
            if session is not None:
                attributes["ahp.session.id"] = session
            if "turn" in facts:
                trace = trace_of(channel.uri, str(facts["turn"]))
        for key, value in facts.items():
            attributes[_ATTRIBUTES[key]] = value
        if traceback := traceback_of(record):
            attributes["exception.stacktrace"] = traceback
        severity, band = _severity_of(record.levelno)
        return Record(
            at=round(record.created * 1e9),
            severity=severity,
            band=band,
            scope=subsystem(record.name),
            text=_fit(redact(record.getMessage())),
            attributes={
                key: _fit(redact(value)) if isinstance(value, str) else value
                for key, value in attributes.items()
            },
            trace_id=trace,
        )


def _fit(text: str) -> str:
    """Cut when it is very long, and without halves of characters, which nothing can carry."""
    shown = text if len(text) <= LONGEST else text[:LONGEST] + "…"
    return shown.encode("utf-8", "replace").decode()


def _severity_of(level: int) -> tuple[int, str]:
    band = "error"
    for name, most in (("debug", logging.DEBUG), ("info", logging.INFO), ("warn", logging.WARNING)):
        if level <= most:
            band = name
            break
    return SEVERITIES[band], band


def _level_of(severity: int) -> int:
    """The level from which on records are of that severity. There is none below debug."""
    bands = ((5, logging.DEBUG), (9, logging.INFO), (13, logging.WARNING), (17, logging.ERROR))
    return next((level for most, level in bands if severity <= most), logging.CRITICAL)


@contextmanager
def telemetry_of(host: Host, log: Log, config: TelemetryConfig) -> Iterator[None]:
    """The host has telemetry, for the length of the block. Its end waits some seconds at most for
    a collector to take the last of it.
    """
    instance, began = host.new_id(), time.time_ns()

    def loaded() -> Encoder:
        from ahpd.telemetry.otlp import OtlpEncoder  # noqa: PLC0415 - see the module

        return OtlpEncoder(version=__version__, began=began, instance=instance)

    async def load() -> Encoder:
        return await trio.to_thread.run_sync(loaded)  # some hundred milliseconds of imports

    otlp = Otlp(load, LogRecords(log, host), metrics_every=config.metrics_seconds)
    otlp.export_severity = SEVERITIES[_BANDS[config.level]]
    host.telemetry = otlp
    if config.endpoint is None:
        yield
        return
    from ahpd.telemetry.collector import Collector  # noqa: PLC0415 - seldom wanted

    log.redact.add(*config.headers.values())
    otlp.exporter = collector = Collector(config.endpoint, config.headers, limit=config.queue_bytes)
    try:
        yield
    finally:
        collector.close()
