"""`Observer`: what looks at a host while it runs, and writes down what it sees."""

from __future__ import annotations

import os
from pathlib import Path

from actors.host import Host
from actors.labels import Labels
from ahpd.daemon import logs
from ahpd.daemon.config import Config
from ahpd.transports.redaction import Redactor, secrets_in
from supervisors import Report, System


class Observer:
    """See the module. `attach` must be called once the tree runs."""

    def __init__(self, log: logs.Log, host: Host) -> None:
        self.log = log
        self.host = host
        host.on_secret = log.redact.add

    def attach(self, system: System) -> None:
        """The tree runs."""
        logs.attach(self.log, system, Labels(self.host))

    def __call__(self, report: Report) -> None:
        """Something happened to an actor. Sync."""
        logs.log_report(report)


def open_log(config: Config, *, token: str | None = None, home: Path | None = None) -> logs.Log:
    """The log of a host, in which the connection token and the secrets of agents never are.

    `home` as in `logs.set_up`. Raises `ConfigError`.
    """
    redact = Redactor(secrets_in(os.environ, ours=False))
    redact.add(token or "")
    for agent in config.agents.values():
        redact.add(*secrets_in(agent.env, ours=True))
    return logs.set_up(config.log, redact, home=home)
