"""Telemetry of a host under test: log records as the test says them, and the real encoder."""

from __future__ import annotations

from collections.abc import Callable

import trio

from actors.otlp import Otlp
from ahpd.telemetry.port import SEVERITIES, Encoder, Exporter, Record

#: When the process began, in Unix nanoseconds.
BEGAN = 1_790_000_000_000_000_000


class PuppetLogs:
    """See `LogSource`."""

    def __init__(self) -> None:
        #: What is wanted now.
        self.severity: int | None = None
        self._hear: Callable[[Record], None] = lambda _: None

    def listen(self, severity: int | None, hear: Callable[[Record], None]) -> None:
        """See `LogSource.listen`."""
        self.severity, self._hear = severity, hear

    def say(self, band: str, text: str) -> None:
        """Something is logged."""
        severity = SEVERITIES[band]
        if self.severity is not None and severity >= self.severity:
            attributes = {"ahp.session.id": "s"}
            self._hear(Record(BEGAN, severity, band, "agents.acp", text, attributes))


def puppet_telemetry(logs: PuppetLogs, exporter: Exporter | None = None) -> Otlp:
    """Telemetry without threads."""

    async def load() -> Encoder:
        from ahpd.telemetry.otlp import OtlpEncoder

        await trio.lowlevel.checkpoint()
        return OtlpEncoder(version="1", began=BEGAN, instance="i")

    return Otlp(load, logs, exporter)
