"""``ahpd conform``: run a folder of protocol cases."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ahpd.cli import exits
from ahpd.cli.group import Unusable

if TYPE_CHECKING:
    from ahpd.conformance import Failure, Report


@click.command("conform")
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of text.")
def command(folder: Path, *, as_json: bool) -> int:
    """Run every protocol case under DIR.

    DIR holds reducers/*.json, round-trips/*.json or version-negotiation.json. Exits 1 when a case
    fails, 2 when there are none.
    """
    from ahpd.conformance import NoCases, run  # noqa: PLC0415 - the protocol's types are many

    try:
        report = run(folder)
    except NoCases as error:
        raise Unusable(str(error)) from None
    click.echo(json.dumps(_as_json(report)) if as_json else _as_text(report))
    return exits.OK if report.ok else exits.FAULTS


def _as_text(report: Report) -> str:
    failures = [
        line
        for section in report.sections
        for failure in section.failures
        for line in _lines(failure)
    ]
    counts = [f"{section.name}: {section.passed} of {section.total}" for section in report.sections]
    return "\n".join([*failures, *counts])


def _lines(failure: Failure) -> list[str]:
    title = f"{failure.file}: {failure.case}" if failure.case else failure.file
    return [
        f"{click.style('FAIL', fg='red')} {title}: {failure.problem}",
        *(f"     {difference}" for difference in failure.differences),
    ]


def _as_json(report: Report) -> dict[str, object]:
    return {
        "ok": report.ok,
        "sections": [
            {
                "name": section.name,
                "passed": section.passed,
                "total": section.total,
                "failures": [
                    {
                        "file": failure.file,
                        "case": failure.case,
                        "problem": failure.problem,
                        "differences": list(failure.differences),
                    }
                    for failure in section.failures
                ],
            }
            for section in report.sections
        ],
    }
