"""``ahpd bench``: how fast a host is on this machine."""

from __future__ import annotations

import json
import sys
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ahpd.cli import exits

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ahpd.bench.measures import Measure
    from ahpd.bench.report import Row, Surroundings

#: As in `ahpd.bench.measures`, which is not loaded for ``--help``; a test holds them together.
NAMES = (
    "fanout",
    "single",
    "stalled",
    "many",
    "echo",
    "reconnect",
    "memory",
    "start",
    "curve",
    "soak",
)


class _Failed(click.ClickException):
    """Something could not be measured."""

    exit_code = exits.FAULTS


@click.command("bench", short_help="Measure how fast a host is on this machine.")
@click.argument("names", metavar="[NAME]...", nargs=-1, type=click.Choice(NAMES))
@click.option("--all", "everything", is_flag=True, help="Measure all of them but soak.")
@click.option(
    "--json", "file", type=click.Path(path_type=Path), metavar="FILE", help="Write every run there."
)
@click.option("--quick", is_flag=True, help="A tenth of it: to see that it works.")
@click.option(
    "--minutes",
    type=click.FloatRange(min=0.1, max=24 * 60),
    default=10.0,
    metavar="M",
    help="How long soak goes on.  [10]",
)
def command(
    names: Sequence[str], *, everything: bool, file: Path | None, quick: bool, minutes: float
) -> int:
    """Measure how fast a host is on this machine, beside the plainest program that does the same.

    NAME is one of fanout, single, stalled, many, echo, reconnect, memory, start, curve and soak.
    Starts hosts of its own, with their files in a temporary folder, and clients in processes of
    their own. Exits 1 when a figure misses what is aimed at.
    """
    wanted = [name for name in NAMES if name in names or (everything and name != "soak")]
    if not wanted:
        raise click.UsageError(f"Name what to measure, or --all. There are {', '.join(NAMES)}.")
    return _measure(wanted, file, quick=quick, minutes=minutes)


@contextmanager
def _explained() -> Iterator[None]:
    """What goes wrong in the block is one sentence."""
    from ahpd.bench.processes import BenchFailed  # noqa: PLC0415

    try:
        yield
    except (BenchFailed, ConnectionError, TimeoutError) as error:
        raise _Failed(str(error)) from error


def _measure(wanted: Sequence[str], file: Path | None, *, quick: bool, minutes: float) -> int:
    from ahpd.bench import measures, report  # noqa: PLC0415

    began = report.Surroundings.now()
    click.echo(f"{began}\n")
    rows: dict[str, Sequence[Row]] = {}
    rates: dict[int, float] = {}
    for name in wanted:
        if name == measures.CURVE:
            click.echo("curve: envelopes a second, all subscribers together")
            with _explained():
                rates = dict(measures.curve(quick=quick))
            click.echo("\n".join(report.plot(rates)))
            continue
        if name == measures.SOAK:
            click.echo("soak: mixed load" + ("" if quick else f" for {minutes:g} minutes"))
            measure: Measure = partial(measures.soaked, minutes=minutes)
        else:
            click.echo(f"{name}: {measures.MEASURES[name].what}")
            measure = measures.MEASURES[name].measure
        with _explained():
            rows[name] = measure(quick=quick)
        for row in rows[name]:
            click.echo("\n".join(report.lines(row)))
        sys.stdout.flush()  # the next one takes a while
    if rows:
        click.echo(f"\n{report.verdict(rows)}")
    if file is not None:
        _write(file, began, rows, rates)
    return exits.OK if all(row.met for each in rows.values() for row in each) else exits.FAULTS


def _write(
    file: Path, began: Surroundings, rows: dict[str, Sequence[Row]], rates: dict[int, float]
) -> None:
    from ahpd.bench.report import Surroundings  # noqa: PLC0415

    value = {
        "began": began.wire(),
        "ended": Surroundings.now().wire(),
        "rows": [row.wire(name) for name, each in rows.items() for row in each],
        "curve": {str(subscribers): rate for subscribers, rate in rates.items()},
    }
    try:
        file.write_text(json.dumps(value, indent=1) + "\n")
    except OSError as error:
        raise _Failed(f"cannot write {file}: {error.strerror}") from None
