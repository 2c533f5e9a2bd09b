"""How a log record becomes a line: for people, or as a JSON object. Secrets are taken out of both.

| key | holds |
|---|---|
| `time` | ISO 8601 in UTC |
| `level`, `subsystem` | as they are set with ``[log]`` |
| `actor` | the path of the actor that speaks, with ``#`` and its name for a task of it |
| `channel`, `number` | the channel that it answers for, and the last number of that |
| `client`, `turn` | whose message it has in hand, and the turn that runs there |
| `text`, `traceback` | what happened |

Who speaks is found out when the line is made (`Speaker`), so what is not logged costs nothing.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import TypeAlias

import trio

from ahpd.transports.redaction import Redactor
from supervisors import System
from supervisors.whereabouts import Whereabouts, whereabouts

Facts: TypeAlias = Mapping[str, str | int]

#: Keys of the facts, in the order in which they are written.
KEYS = ("channel", "number", "client", "turn")
#: All loggers' names begin with this; what follows is the subsystem's.
PREFIX = "ahpd."

LEVEL_NAMES = {logging.DEBUG: "debug", logging.INFO: "info", logging.WARNING: "warning"}


class Speaker:
    """Finds out who logs. `system` and `labels` are there once a host runs; see `logs.attach`."""

    def __init__(self) -> None:
        self.system: System | None = None
        self.labels: Callable[[Whereabouts], Facts] = lambda _: {}

    def of(self, record: logging.LogRecord) -> tuple[str, Facts]:
        """The actor and the facts of a record, which must be one of the task that runs now.

        What the record brings itself (`extra`) wins. They stay with it, for who handles it later.
        """
        known: tuple[str, Facts] | None = getattr(record, "ahpd_speaker", None)
        if known is not None:
            return known
        where = whereabouts(self.system)
        # In a thread that a task waits for the tables may change under the one who looks.
        is_loops_own = trio.lowlevel.in_trio_task()
        facts = dict(self.labels(where)) if where is not None and is_loops_own else {}
        actor = getattr(record, "actor", "")
        if actor:
            facts = {}  # it speaks of another one
        elif where is not None:
            actor = f"{where.path}#{where.helper}" if where.helper else where.path
        else:
            actor = _running_task()
        facts |= {key: value for key in KEYS if (value := getattr(record, key, None)) is not None}
        record.ahpd_speaker = found = (actor, facts)
        return found


def _running_task() -> str:
    """The name of the task that logs, where it was given one.

    Otherwise trio calls it after the function, with its module, which says less than the logger's
    name.
    """
    if not trio.lowlevel.in_trio_task():
        return ""
    name = trio.lowlevel.current_task().name
    return name if "/" in name or "." not in name else ""


def subsystem(logger: str) -> str:
    """What a logger's name says of where it is."""
    return logger.removeprefix(PREFIX)


def traceback_of(record: logging.LogRecord) -> str:
    """The traceback that a record has, formatted; empty when it has none."""
    given: str = getattr(record, "traceback", "")
    if not given and record.exc_info:
        given = logging.Formatter().formatException(record.exc_info)
    return given.rstrip()


class TextLine(logging.Formatter):
    """``2031-01-01T00:00:00.000Z WARNING session/x/chat/0: text  [turn=t1 …]``."""

    def __init__(self, redact: Redactor, speaker: Speaker) -> None:
        super().__init__()
        self._redact = redact
        self._speaker = speaker

    def format(self, record: logging.LogRecord) -> str:
        """The line, and a traceback below it."""
        actor, facts = self._speaker.of(record)
        text = f"{_time(record)} {record.levelname} {actor or record.name}: {record.getMessage()}"
        told = " ".join(f"{key}={facts[key]}" for key in KEYS if key in facts)
        if told:
            text += f"  [{told}]"
        if traceback := traceback_of(record):
            text += "\n" + traceback
        return self._redact(text)


class JsonLine(logging.Formatter):
    """See the module."""

    def __init__(self, redact: Redactor, speaker: Speaker) -> None:
        super().__init__()
        self._redact = redact
        self._speaker = speaker

    def format(self, record: logging.LogRecord) -> str:
        """One JSON object."""
        from ahpd.protocol.jsontext import dumps  # noqa: PLC0415 - at the first line

        actor, facts = self._speaker.of(record)
        line: dict[str, str | int] = {
            "time": _time(record),
            "level": LEVEL_NAMES.get(record.levelno, "error"),
            "subsystem": subsystem(record.name),
        }
        if actor:
            line["actor"] = actor
        line |= {key: facts[key] for key in KEYS if key in facts}
        line["text"] = record.getMessage()
        if traceback := traceback_of(record):
            line["traceback"] = traceback
        return dumps({key: self._fit(value) for key, value in line.items()}).decode()

    def _fit(self, value: str | int) -> str | int:
        """Without secrets, and without halves of characters, which JSON text cannot hold."""
        if isinstance(value, int):
            return value
        return self._redact(value).encode("utf-8", "replace").decode()


def _time(record: logging.LogRecord) -> str:
    from actors.clock import iso  # noqa: PLC0415 - at the first line, not at the start

    return iso(record.created * 1000)
