"""Logging: lines on standard error that say which actor speaks, and never hold a token."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable

import trio

from supervisors import Exit, Note, Report

_log = logging.getLogger("ahpd.tree")

_LEVELS = {
    "debug": logging.DEBUG,
    "info": logging.INFO,
    "warning": logging.WARNING,
    "error": logging.ERROR,
}

#: What is said about each kind of report. What is not here is for debugging.
_WEIGHTS = {
    Note.EXITED: logging.ERROR,
    Note.RESTARTING: logging.WARNING,
    Note.PARKED: logging.ERROR,
    Note.STUCK: logging.ERROR,
    Note.SWALLOWED_CANCEL: logging.WARNING,
    Note.LATE_START: logging.WARNING,
    Note.GAVE_UP: logging.ERROR,
    Note.SLOW_STEP: logging.WARNING,
    Note.FAULT: logging.WARNING,
    Note.HOOK_FAILED: logging.ERROR,
}


class _Line(logging.Formatter):
    """``2031-01-01T00:00:00.000Z WARNING session/x/chat/0 text``."""

    def __init__(self, redact: Callable[[str], str]) -> None:
        super().__init__()
        self._redact = redact

    def format(self, record: logging.LogRecord) -> str:
        from actors.clock import iso  # noqa: PLC0415 - at the first line, not at the start

        where = getattr(record, "actor", "") or _running_task() or record.name
        text = record.getMessage()
        if record.exc_info:
            text += "\n" + self.formatException(record.exc_info)
        return self._redact(f"{iso(record.created * 1000)} {record.levelname} {where}: {text}")


def _running_task() -> str:
    """The name of the task that logs, which for actors and their helpers starts with their path.

    Nothing for one that was given no name: trio calls it after the function, with its module, which
    says less than the logger's name.
    """
    try:
        name = trio.lowlevel.current_task().name
    except RuntimeError:  # not in trio
        return ""
    return name if "/" in name or "." not in name else ""


def set_up(level: str, redact: Callable[[str], str] = lambda text: text) -> None:
    """Log to standard error from now on. `redact` takes secrets out of every line."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_Line(redact))
    logging.basicConfig(level=_LEVELS[level], handlers=[handler], force=True)
    logging.raiseExceptions = False  # a closed standard error is no reason to fail


def log_report(report: Report) -> None:
    """Log what the tree reports about an actor. Sync."""
    weight = _WEIGHTS.get(report.note, logging.DEBUG)
    if not _log.isEnabledFor(weight):
        return
    text = f"{report.note.value}: {report.text}"
    if report.next:
        text += f"; {report.next}"
    if report.exit is not None:
        text += _traceback(report.exit)
    _log.log(weight, "%s", text, extra={"actor": report.path or "root"})


def _traceback(exit: Exit) -> str:
    crash = exit.crash
    return f"\n{crash.traceback.rstrip()}" if crash is not None and crash.traceback else ""
