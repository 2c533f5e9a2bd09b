"""`Observer`: what looks at a host while it runs, and writes down what it sees."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator, Mapping
from pathlib import Path

from actors.host import Host
from actors.labels import Labels
from ahpd.daemon import logs
from ahpd.daemon.config import Config
from ahpd.daemon.crashes import CrashReports
from ahpd.transports.redaction import Redactor, secrets_in
from supervisors import Report, System

_log = logging.getLogger("ahpd.daemon")


class Observer:
    """See the module. Crash reports go into the folder `reports`, if there is one.

    `attach` must be called once the tree runs.
    """

    def __init__(
        self, log: logs.Log, host: Host, config: Config, *, reports: Path | None = None
    ) -> None:
        self.log = log
        self.host = host
        keep = config.log.crash_reports
        self.crashes = CrashReports(host, reports, keep=keep, redact=log.redact)
        host.on_secret = log.redact.add
        host.crash_report = self.crashes.report_of

    def attach(self, system: System) -> None:
        """The tree runs."""
        logs.attach(self.log, system, Labels(self.host))
        self.crashes.attach(system)

    def __call__(self, report: Report) -> None:
        """Something happened to an actor. Sync; never fails."""
        file = None
        try:
            crashed = self.crashes(report)
            file = crashed.file if crashed is not None else None
        except Exception:  # noqa: BLE001 - it is the actor that is to be told of, not this
            _log.exception("the report on a crash failed")
        logs.log_report(report, "" if file is None else f"all of it is in {file}")


def open_log(config: Config, *, token: str | None = None, home: Path | None = None) -> logs.Log:
    """The log of a host, in which the connection token and the secrets of agents never are.

    `home` as in `logs.set_up`. Raises `ConfigError`.
    """
    redact = Redactor(secrets_in(os.environ, ours=False))
    redact.add(token or "", *_secrets_of(config))
    return logs.set_up(config.log, redact, home=home)


def _secrets_of(config: Config) -> Iterator[str]:
    """What somebody wrote down in the file that may be one.

    Of ``Bearer TOKEN`` and the like that is the token alone too.
    """
    tables: list[object] = [agent.env for agent in config.agents.values()]
    tables += (each.get(key) for each in config.mcp_servers.values() for key in ("env", "headers"))
    tables.append(config.telemetry.headers)
    for table in tables:
        if isinstance(table, Mapping):
            texts = {name: text for name, text in table.items() if isinstance(text, str)}
            for secret in secrets_in(texts, ours=True):
                yield from (secret, secret.rpartition(" ")[2])
