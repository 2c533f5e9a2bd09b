"""``ahpd terminals``: which terminals the daemon has."""

from __future__ import annotations

import json
from typing import Any

import click

from ahpd.cli import exits
from ahpd.cli.reach import Target, reached, reaching
from ahpd.cli.running import Running, run
from ahpd.cli.shown import line, width

_HEAD = ("TITLE", "STATUS", "OWNER", "URI")
_GAP = "  "


@click.command("terminals")
@reaching
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of text.")
def command(target: Target, *, as_json: bool) -> int:
    """List the terminals, in the order in which they were made."""

    async def main(running: Running) -> int:
        from ahpd.protocol.uris import ROOT  # noqa: PLC0415 - not for --help

        async with reached(target, running.nursery, "terminals") as client:
            found = client.store(ROOT).confirmed.terminals or ()
        if as_json:
            click.echo(json.dumps({"terminals": [each.wire() for each in found]}))
            return exits.OK
        if not found:
            click.echo("There are no terminals.")
            return exits.OK
        rows = [_HEAD, *(_row(each.wire()) for each in found)]
        widths = [max(map(width, column)) for column in zip(*rows, strict=True)]
        for row in rows:
            cells = (
                cell + " " * (room - width(cell)) for cell, room in zip(row, widths, strict=True)
            )
            click.echo(click.style(_GAP.join(cells).rstrip(), bold=row is _HEAD))
        return exits.OK

    return run(main)


def _row(terminal: Any) -> tuple[str, ...]:
    return (
        line(terminal["title"]) or "(no title)",
        status(terminal["lifecycle"]),
        line(owner(terminal["claim"])),
        line(terminal["resource"]),
    )


def status(lifecycle: Any) -> str:
    """Whether it runs, and how it ended."""
    if lifecycle["status"] != "exited":
        return line(lifecycle["status"])
    code = lifecycle.get("exitCode")
    return "ended" if code is None else f"exit code {code:g}"


def owner(claim: Any) -> str:
    """Whose it is."""
    match claim:
        case {"kind": "client", "clientId": name}:
            return str(name)
        case {"kind": "session", "session": session}:
            return str(session)
        case _:
            return "?"
