"""Figures, what is aimed at, and how both are shown. Pure, but for `Surroundings.now`."""

from __future__ import annotations

import os
import platform
import statistics
import subprocess
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import attrs

from ahpd import __version__


@attrs.frozen
class Aim:
    """A bound of the figure, or (`times`) of how many times the baseline's it is."""

    limit: float
    at_most: bool = False
    times: bool = False

    def met_by(self, row: Row) -> bool:
        """Whether the row keeps to it."""
        value = row.times if self.times else row.median
        return value <= self.limit if self.at_most else value >= self.limit

    def shown(self, unit: str) -> str:
        """In words."""
        bound = "at most" if self.at_most else "at least"
        return f"{bound} {number(self.limit)} {'times' if self.times else unit}"


@attrs.frozen
class Row:
    """One figure: what every run gave, and what the baseline gave in turns with it."""

    what: str
    unit: str
    runs: Sequence[float]
    baseline: str
    baseline_runs: Sequence[float]
    aims: Sequence[Aim] = ()

    @property
    def median(self) -> float:
        """The figure."""
        return statistics.median(self.runs)

    @property
    def times(self) -> float:
        """How many times the baseline: of runs that were made in turns, pair by pair."""
        if len(self.runs) == len(self.baseline_runs):
            pairs = zip(self.runs, self.baseline_runs, strict=True)
            return statistics.median(ours / theirs for ours, theirs in pairs)
        return self.median / statistics.median(self.baseline_runs)

    @property
    def met(self) -> bool:
        """All of its aims are."""
        return all(aim.met_by(self) for aim in self.aims)

    def wire(self, measure: str) -> dict[str, object]:
        """As JSON."""
        return {
            "measure": measure,
            "what": self.what,
            "unit": self.unit,
            "median": self.median,
            "runs": list(self.runs),
            "baseline": self.baseline,
            "baselineMedian": statistics.median(self.baseline_runs),
            "baselineRuns": list(self.baseline_runs),
            "times": self.times,
            "aims": [{"aim": aim.shown(self.unit), "met": aim.met_by(self)} for aim in self.aims],
        }


def number(value: float) -> str:
    """With as many digits as mean something."""
    if abs(value) >= 1000:
        return f"{value:,.0f}"
    if value == int(value):
        return f"{value:.0f}"
    return f"{value:.1f}" if abs(value) >= 20 else f"{value:.2f}"


def lines(row: Row) -> Iterator[str]:
    """A row for people."""
    yield _figure(row.what, row.runs, row.unit)
    beside = _figure(f"  {row.baseline}", row.baseline_runs, row.unit)
    yield f"{beside}   {number(row.times)} times"
    for aim in row.aims:
        yield f"    {aim.shown(row.unit):<44} {'met' if aim.met_by(row) else 'MISSED'}"


def _figure(what: str, runs: Sequence[float], unit: str) -> str:
    spread = f"({number(min(runs))} to {number(max(runs))})" if len(runs) > 1 else ""
    return f"  {what:<46} {number(statistics.median(runs)):>11} {unit:<5} {spread}".rstrip()


def verdict(rows: Mapping[str, Iterable[Row]]) -> str:
    """How many of the aims were met, and which were not."""
    judged = [
        (f"{measure}: {row.what} {aim.shown(row.unit)}", aim.met_by(row))
        for measure, listed in rows.items()
        for row in listed
        for aim in row.aims
    ]
    missed = [name for name, met in judged if not met]
    told = f"{len(judged) - len(missed)} of {len(judged)} aims met"
    return "\n".join([told, *(f"  MISSED  {name}" for name in missed)])


def plot(rates: Mapping[int, float], *, width: int = 50) -> Iterator[str]:
    """Envelopes a second over the number of subscribers, as bars of text."""
    most = max(rates.values())
    for subscribers, rate in rates.items():
        bar = "█" * max(1, round(width * rate / most))
        yield f"  {subscribers:>5}  {bar:<{width}} {number(rate):>9}"


@attrs.frozen
class Surroundings:
    """When and where something was measured."""

    date: str
    processor: str
    cores: int
    python: str
    commit: str
    #: Programs that wanted a processor, on average of the last minute.
    load: float

    @classmethod
    def now(cls) -> Surroundings:
        """Here and now."""
        return cls(
            datetime.now(UTC).isoformat(timespec="seconds"),
            _processor(),
            len(os.sched_getaffinity(0)),
            platform.python_version(),
            _commit(),
            round(os.getloadavg()[0], 2),
        )

    def __str__(self) -> str:
        """In one line."""
        return (
            f"{self.date}, {self.processor}, {self.cores} cores, Python {self.python}, "
            f"{self.commit}, load {self.load:g}"
        )

    def wire(self) -> dict[str, Any]:
        """As JSON."""
        return attrs.asdict(self)


def _processor() -> str:
    with suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.machine()


def _commit() -> str:
    """The commit of a clone, else the version."""
    folder = Path(__file__).parent
    with suppress(OSError, subprocess.CalledProcessError):
        if (folder.parents[1] / ".git").exists():
            words = ["git", "-C", str(folder), "describe", "--always", "--dirty"]
            done = subprocess.run(words, capture_output=True, text=True, check=True)
            return f"commit {done.stdout.strip()}"
    return f"version {__version__}"
