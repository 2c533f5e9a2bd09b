"""``ahpd sessions``: which sessions the daemon has."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import click

from ahpd.cli import exits, words
from ahpd.cli.reach import Target, reached, reaching
from ahpd.cli.running import Running, run
from ahpd.cli.shown import cut, line, padded, width

if TYPE_CHECKING:
    from ahpd.client import Client
    from ahpd.protocol.session import ListSessionsResult, SessionSummary

#: Seconds that a daemon which is still reading its sessions is waited for, and between two looks.
READY_WITHIN = 10.0
_LOOK = 0.2

_HEAD = ("TITLE", "AGENT", "STATUS", "CHANGED", "CHATS", "URI")
_GAP = "  "
#: Cells that a title keeps when there is too little room.
_LEAST_TITLE = 16


@click.command("sessions")
@reaching
@click.option("--limit", type=click.IntRange(min=1), metavar="N", help="The N newest only.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of text.")
def command(target: Target, *, limit: int | None, as_json: bool) -> int:
    """List the sessions, the one that changed last first."""

    async def main(running: Running) -> int:
        async with reached(target, running.nursery, "sessions") as client:
            found = await _listed(client, limit)
        if as_json:
            click.echo(json.dumps(found.wire()))
            return exits.OK
        if not found.items:
            click.echo("There are no sessions.")
        for text in _table(found.items, datetime.now(UTC), _room()):
            click.echo(text)
        if found.next_cursor is not None:
            click.echo(click.style("There are more; raise --limit.", dim=True), err=True)
        return exits.OK

    return run(main)


async def _listed(client: Client, limit: int | None) -> ListSessionsResult:
    """The sessions; waits for a daemon that has only just begun to read them."""
    import trio  # noqa: PLC0415 - not for --help

    from ahpd.protocol import ErrorCode, ProtocolError  # noqa: PLC0415

    with trio.move_on_after(READY_WITHIN):
        while True:
            try:
                return await client.list_sessions(limit=limit)
            except ProtocolError as error:
                if error.code != ErrorCode.INTERNAL_ERROR:
                    raise
            await trio.sleep(_LOOK)
    return await client.list_sessions(limit=limit)


def _room() -> int | None:
    """The width of the terminal; None where there is none, so that nothing is cut."""
    if not sys.stdout.isatty():
        return None
    from rich.console import Console  # noqa: PLC0415 - not for --json

    return Console().width


def _table(sessions: Sequence[SessionSummary], now: datetime, room: int | None) -> Iterator[str]:
    """The lines of the table. Where a URI does not fit beside the rest it gets its own line."""
    if not sessions:
        return
    rows = [_row(session, now) for session in sessions]
    widths = [max(map(width, column)) for column in zip(_HEAD, *rows, strict=True)]
    fixed = sum(widths[1:]) + len(_GAP) * (len(widths) - 1)
    beside = room is None or fixed + min(widths[0], _LEAST_TITLE) <= room
    if not beside:
        fixed -= widths[-1] + len(_GAP)
    if room is not None:
        widths[0] = max(min(widths[0], room - fixed), 1)
    shown = len(_HEAD) if beside else len(_HEAD) - 1
    yield click.style(_line(_HEAD[:shown], widths), bold=True)
    for row in rows:
        yield _line(row[:shown], widths)
        if not beside:
            yield click.style(_GAP + row[-1], dim=True)


def _row(session: SessionSummary, now: datetime) -> tuple[str, ...]:
    return (
        line(session.title) or "(no title)",
        line(session.provider),
        words.status(session.status),
        words.ago(session.modified_at, now),
        "-" if session.chats is None else str(len(session.chats)),
        line(session.resource),
    )


def _line(cells: Iterable[str], widths: Iterable[int]) -> str:
    *head, last = ((cell, cells_wide) for cell, cells_wide in zip(cells, widths, strict=False))
    return _GAP.join([*(padded(*each) for each in head), cut(*last)])
