"""``ahpd journal``: a look into the file in which a daemon keeps everything."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ahpd.cli import exits
from ahpd.cli.group import Unusable
from ahpd.cli.shown import line

if TYPE_CHECKING:
    from ahpd.daemon.state import StateFolder
    from ahpd.daemon.verifying import Stats


class _Unreadable(click.ClickException):
    """The file is damaged, or no journal of this version's."""

    exit_code = exits.JOURNAL_UNUSABLE


@contextmanager
def readable() -> Iterator[None]:
    """What is wrong with the file is said, and has an exit code."""
    from ahpd.daemon.verifying import JournalDamaged, JournalFailed  # noqa: PLC0415 - not for --help

    try:
        yield
    except JournalDamaged as error:
        raise _Unreadable(str(error)) from error
    except JournalFailed as error:
        raise Unusable(str(error)) from error


def folder_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """The option that says which daemon's journal is meant; its argument is `folder`."""

    def folder(_: click.Context, __: click.Parameter, name: str | None) -> StateFolder:
        from ahpd.daemon.state import folder_at  # noqa: PLC0415 - not for --help

        return folder_at(name)

    option = click.option(
        "--state-dir", "folder", metavar="DIR", callback=folder, help="The daemon's state folder."
    )
    return option(command)


@click.group("journal", short_help="Look into the file in which a daemon keeps everything.")
def command() -> None:
    """Look into the file in which a daemon keeps everything, while it runs too."""


@command.command("stats")
@folder_option
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of text.")
def stats(*, folder: StateFolder, as_json: bool) -> int:
    """Say how large the file is, and what for."""
    from ahpd.daemon import verifying  # noqa: PLC0415

    with readable():
        found = verifying.stats(folder.journal)
    click.echo(json.dumps(_as_json(found)) if as_json else _as_text(folder.journal, found))
    return exits.OK


def _as_json(found: Stats) -> dict[str, object]:
    return {
        "fileBytes": found.file,
        "walBytes": found.wal,
        "pageBytes": found.page,
        "pages": found.pages,
        "freePages": found.free_pages,
        "rows": dict(found.rows),
        "liveBytes": found.live,
        "envelopeBytes": found.envelopes,
        "factor": found.factor,
        "serverSeq": found.seq,
    }


def _as_text(path: Path, found: Stats) -> str:
    free = found.free_pages * found.page
    rows = [
        ("file", f"{path}, {found.file} bytes, {free} of them free"),
        ("wal", f"{found.wal} bytes that are not in the file itself yet"),
        ("live", f"{found.live} bytes of states, and what belongs to them"),
        ("envelopes", f"{found.envelopes} bytes for replay, or newer than a snapshot"),
        ("factor", "-" if found.factor is None else f"{found.factor} (file and wal to live)"),
        ("number", str(found.seq)),
        *((f"  {table}", f"{count} rows") for table, count in found.rows.items()),
    ]
    return "\n".join(f"{name:<12}{value}" for name, value in rows)


@command.command("compact")
@folder_option
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of text.")
def compact(*, folder: StateFolder, as_json: bool) -> int:
    """Write the file anew without what is free in it.

    No daemon may run meanwhile; one that runs gives back by itself what it does not need, a part
    at a time. Exits 7 when one does.
    """
    from ahpd.daemon import verifying  # noqa: PLC0415
    from ahpd.daemon.errors import AlreadyRunning, StateError  # noqa: PLC0415

    if not folder.journal.exists():
        raise Unusable(f"there is no journal {folder.journal}")
    try:
        with readable(), folder.held():
            before, after = verifying.compact(folder.journal)
    except AlreadyRunning as error:
        stop = f"ahpd stop --state-dir {folder.path}"
        click.echo(f"ahpd: {error}; stop it first: {stop}", err=True)
        return exits.ALREADY_RUNNING
    except StateError as error:
        raise Unusable(str(error)) from error
    if as_json:
        click.echo(json.dumps({"before": before, "after": after}))
    else:
        click.echo(f"{folder.journal}: {before} bytes before, {after} bytes now")
    return exits.OK


@command.command("export")
@click.argument("session", metavar="SESSION")
@folder_option
@click.option("--json", "as_json", is_flag=True, help="It is JSON in any case.")
def export(session: str, *, folder: StateFolder, as_json: bool) -> int:
    """Print a session as it is kept, a JSON object a line.

    First its channels with their snapshots, {"type": "channel", "channel", "state", ...}, then the
    envelopes that are kept, {"type": "envelope", "params"}. Exits 1 when a part is damaged, which
    is told in its place, 2 when there is no such session.
    """
    from ahpd.daemon import verifying  # noqa: PLC0415

    del as_json
    code: int | None = None
    with readable(), verifying.looking(folder.journal) as connection:
        for each in verifying.export(connection, session):
            code = exits.FAULTS if each["type"] == "damaged" else code or exits.OK
            click.echo(json.dumps(each))
    if code is None:
        raise Unusable(line(f"there is no session {session} in {folder.journal}"))
    return code


@command.command("verify", short_help="Check its pages, its indexes, and each row.")
@folder_option
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of text.")
def verify(*, folder: StateFolder, as_json: bool) -> int:
    """Check the file: its pages, its indexes, and the checksum of each row.

    What it means is checked by `ahpd verify`. Exits 1 on a fault.
    """
    from ahpd.daemon import verifying  # noqa: PLC0415
    from ahpd.daemon.verifying import JournalDamaged  # noqa: PLC0415

    faults: list[str] = []
    with readable():
        try:
            faults += verifying.check(folder.journal)
        except JournalDamaged as error:
            faults.append(str(error))
    if as_json:
        click.echo(json.dumps({"ok": not faults, "faults": faults}))
    else:
        for fault in faults:
            click.echo(line(fault))
        click.echo(f"{folder.journal}: {len(faults) or 'no'} faults")
    return exits.FAULTS if faults else exits.OK
