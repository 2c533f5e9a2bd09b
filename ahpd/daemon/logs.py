"""Logging: what happens in the host, in lines that say which actor speaks and hold no secret.

There is one log for the process, as there is one `logging`. Each subsystem has a logger
``ahpd.NAME`` and may have a level of its own, which can be changed while it runs. Whoever else
wants records (telemetry) gets them from the level that it asks for on, without a line more in the
log.
"""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

from ahpd.daemon.config import LEVELS, SUBSYSTEMS, LogConfig
from ahpd.daemon.errors import ConfigError
from ahpd.daemon.log_lines import LEVEL_NAMES, PREFIX, Facts, JsonLine, Speaker, TextLine
from ahpd.transports.redaction import Redactor
from ahpd.transports.rotated import RotatedFile
from supervisors import Note, Report, System
from supervisors.whereabouts import Whereabouts

_log = logging.getLogger(PREFIX + "tree")

_NUMBERS: Mapping[str, int] = {name: getattr(logging, name.upper()) for name in LEVELS}
#: The name by which the level of all that have none of their own is set.
ALL = "all"
#: What takes a subsystem's own level away again.
INHERIT = "inherit"

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


class Log:
    """The log of this process. Made by `set_up`."""

    def __init__(self, config: LogConfig, redact: Redactor, home: Path | None) -> None:
        self.redact = redact
        self.speaker = Speaker()
        self._level = _NUMBERS[config.level]
        self._levels = {name: _NUMBERS[level] for name, level in config.levels.items()}
        #: Other handlers, with the level from which on each wants records.
        self._more: dict[logging.Handler, int] = {}
        self._out = _handler(config, home)
        kind = JsonLine if config.format == "json" else TextLine
        self._out.setFormatter(kind(redact, self.speaker))
        self._out.addFilter(self._is_wanted)
        root = logging.getLogger()
        root.handlers[:] = [self._out]
        logging.raiseExceptions = False  # a closed standard error is no reason to fail
        self._apply()

    # ---- levels ------------------------------------------------------------------------------

    @property
    def levels(self) -> Mapping[str, str]:
        """The level of each subsystem; under `ALL` that of those that have none of their own."""
        numbers = {ALL: self._level} | {each: self._level_of(PREFIX + each) for each in SUBSYSTEMS}
        return {name: LEVEL_NAMES.get(number, "error") for name, number in numbers.items()}

    def set_level(self, name: str, level: str) -> None:
        """From now on, until the process ends; `INHERIT` takes a subsystem's own level away.

        Sync. Raises ValueError with a sentence about what was expected.
        """
        if name != ALL and name not in SUBSYSTEMS:
            known = ", ".join((ALL, *SUBSYSTEMS))
            raise ValueError(f"there is no subsystem {name}; there are {known}")
        if level == INHERIT and name != ALL:
            self._levels.pop(name, None)
        elif level not in _NUMBERS:
            raise ValueError(f"there is no level {level}; there are {', '.join(LEVELS)}")
        elif name == ALL:
            self._level = _NUMBERS[level]
        else:
            self._levels[name] = _NUMBERS[level]
        self._apply()

    def listen(self, handler: logging.Handler, level: int) -> None:
        """Give `handler` the records from this level on too, or from now on. Sync."""
        self._more[handler] = level
        handler.setLevel(level)
        logging.getLogger().addHandler(handler)
        self._apply()

    def unlisten(self, handler: logging.Handler) -> None:
        """No more records for it. Sync; harmless when it got none."""
        self._more.pop(handler, None)
        logging.getLogger().removeHandler(handler)
        self._apply()

    def _apply(self) -> None:
        """Have loggers make the records that anybody wants, and no others."""
        others = min(self._more.values(), default=logging.CRITICAL + 1)
        logging.getLogger().setLevel(min(self._level, others))
        for name in SUBSYSTEMS:
            logger = PREFIX + name
            logging.getLogger(logger).setLevel(min(self._level_of(logger), others))

    def _level_of(self, logger: str) -> int:
        name = logger.removeprefix(PREFIX)
        while name:
            if name in self._levels:
                return self._levels[name]
            name = name.rpartition(".")[0]
        return self._level

    def _is_wanted(self, record: logging.LogRecord) -> bool:
        # Others may want more than the log itself.
        return record.levelno >= self._level_of(record.name)

    def close(self) -> None:
        """Let go of the file, if there is one."""
        self._out.close()


class _FileLines(logging.Handler):
    """Lines in a `RotatedFile`."""

    def __init__(self, file: RotatedFile) -> None:
        super().__init__()
        self._file = file

    def emit(self, record: logging.LogRecord) -> None:
        """As `logging` has it: never raises."""
        try:
            self._file.write(self.format(record).encode("utf-8", "backslashreplace") + b"\n")
        except Exception:  # noqa: BLE001 - a full disk is no reason to fail
            self.handleError(record)

    def close(self) -> None:
        """As `logging` has it."""
        super().close()
        self._file.close()


def _handler(config: LogConfig, home: Path | None) -> logging.Handler:
    """Where lines go: `log.file`; the daemon's own file, when that is standard error; else that."""
    try:
        if config.file is not None:
            file = RotatedFile(Path(config.file), max_bytes=config.max_bytes, keep=config.keep)
            return _FileLines(file)
        if home is not None and (fds := _leading_to(home)):
            return _FileLines(
                RotatedFile(home, max_bytes=config.max_bytes, keep=config.keep, descriptors=fds)
            )
    except OSError as error:
        raise ConfigError(f"the log {error.filename}: {error.strerror}") from None
    return logging.StreamHandler(sys.stderr)


def _leading_to(path: Path) -> list[int]:
    """Which of standard output and error lead to that file; none when the second does not."""
    try:
        about = path.stat()
        found = [fd for fd in (1, 2) if os.path.samestat(os.fstat(fd), about)]
    except OSError:
        return []
    return found if 2 in found else []


def set_up(config: LogConfig, redact: Redactor | None = None, *, home: Path | None = None) -> Log:
    """Log from now on, to standard error or as `config` has it.

    `home` is the file of a daemon in the background: when standard error leads to it, it is kept
    within its bounds. Raises `ConfigError` when the log file cannot be opened.
    """
    return Log(config, redact or Redactor(), home)


def attach(log: Log, system: System, labels: Callable[[Whereabouts], Facts]) -> None:
    """A host runs: lines say from now on what is known of the actor that speaks."""
    log.speaker.system, log.speaker.labels = system, labels


def log_report(report: Report, more: str = "") -> None:
    """Log what the tree reports about an actor, and what there is to say of it besides. Sync."""
    weight = _WEIGHTS.get(report.note, logging.DEBUG)
    if not _log.isEnabledFor(weight):
        return
    text = f"{report.note.value}: {report.text}"
    if report.next:
        text += f"; {report.next}"
    if more:
        text += f"; {more}"
    crash = report.exit.crash if report.exit is not None else None
    extra = {"actor": report.path or "root"}
    if crash is not None:
        extra["traceback"] = crash.traceback  # which never fails, whatever was raised
    _log.log(weight, "%s", text, extra=extra)
