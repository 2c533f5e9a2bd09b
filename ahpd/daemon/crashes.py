"""Crash reports: a file for each actor that crashed, in the state folder, for people.

A report says which actor it was and which incarnation, the traceback, the local names of its frames
(shortened), the message that it had in hand, those that waited, its last ones (if it had crashed
before, or somebody has them kept), the actor's own state, and of its channel the number, an outline
of the state with its checksum, and the last envelopes. Secrets are taken out. Files are named after
the time and the actor; the oldest go when there are too many.
"""

from __future__ import annotations

import logging
import re
from collections import deque
from contextlib import suppress
from pathlib import Path

import trio
from msgspec import Struct

from actors.host import Host
from ahpd.transports.redaction import Redactor
from supervisors import ActorGone, Crash, Report, System, sys

_log = logging.getLogger("ahpd.tree")

#: Reports in so many seconds; more crashes are logged only. Each costs everybody some milliseconds.
MOST, WITHIN = 30, 60.0
#: Messages that are remembered of an actor that crashed, and of how many of those.
KEPT, WATCHED = 20, 20
#: Crashes that are remembered for `ahpd status`.
REMEMBERED = 20


class Crashed(Struct, frozen=True):
    """An actor crashed; `at` is ISO 8601, `file` the report, None when none was written."""

    path: str
    at: str
    text: str
    file: str | None


class CrashReports:
    """Writes them; see the module. One for each host.

    `keep` is how many files there may be in the `folder`; without either none is written. `attach`
    must be called once the tree runs.
    """

    def __init__(self, host: Host, folder: Path | None, *, keep: int, redact: Redactor) -> None:
        #: The latest ones.
        self.latest: deque[Crashed] = deque(maxlen=REMEMBERED)
        self._host = host
        self._folder = folder if keep else None
        self._keep = keep
        self._redact = redact
        self._system: System | None = None
        self._written: deque[float] = deque(maxlen=MOST)
        self._seen: Crash | None = None
        #: Actors whose messages are remembered, the oldest first.
        self._watched: dict[str, None] = {}
        self._fails = False

    def attach(self, system: System) -> None:
        """The tree runs."""
        self._system = system

    def __call__(self, report: Report) -> Crashed | None:
        """Write the report on a crash, if this tells of one. Sync, and blocks a little.

        When it cannot be written that is logged, once.
        """
        crash = report.exit.crash if report.exit is not None else None
        if crash is None or crash is self._seen:
            return None
        self._seen = crash
        at = self._host.clock.now()
        file = self._write(report, crash, at)
        text = self._redact(" ".join(crash.text.split())[:1000])
        crashed = Crashed(report.path or "root", at, text, str(file) if file is not None else None)
        self.latest.append(crashed)
        self._watch(report.path)
        return crashed

    def _watch(self, path: str) -> None:
        """Remember its messages from now on: who crashed once may again, and then they are told."""
        if self._system is None or path in self._watched:
            return
        self._watched[path] = None
        with suppress(ActorGone):  # it is not started again
            sys.keep(self._system.ref(path), KEPT)
        if len(self._watched) > WATCHED:
            oldest = next(iter(self._watched))
            del self._watched[oldest]
            with suppress(ActorGone):
                sys.keep(self._system.ref(oldest), 0)

    def report_of(self, path: str) -> str | None:
        """The file about the latest crash of an actor that is remembered, if there is one."""
        return next((each.file for each in reversed(self.latest) if each.path == path), None)

    def _write(self, report: Report, crash: Crash, at: str) -> Path | None:
        if self._folder is None or not self._may():
            return None
        name = re.sub(r"[^A-Za-z0-9.]+", "-", report.path or "root")[:100]
        file = self._folder / f"{at.replace(':', '')}-{name}-{report.incarnation}.txt"
        from ahpd.daemon.crash_text import Incident, text_of  # noqa: PLC0415 - seldom wanted

        text = text_of(Incident(report, crash, at, self._host, self._system), self._redact)
        try:
            self._folder.mkdir(mode=0o700, exist_ok=True)
            file.touch(mode=0o600)
            file.write_text(text, encoding="utf-8", errors="backslashreplace")
            for old in sorted(self._folder.glob("*.txt"))[: -self._keep]:
                old.unlink(missing_ok=True)
        except OSError as error:
            if not self._fails:
                self._fails = True
                _log.error("no crash report can be written: %s: %s", self._folder, error.strerror)
            return None
        self._fails = False
        return file

    def _may(self) -> bool:
        now = trio.current_time()
        if len(self._written) == MOST and now - self._written[0] < WITHIN:
            return False
        self._written.append(now)
        return True
