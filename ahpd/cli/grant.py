"""``ahpd grant``: files outside the served folders that clients may use all the same."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import click

from ahpd.cli import exits


@click.command("grant", short_help="Let clients use files that are not served otherwise.")
@click.argument("place", metavar="[PATH or URI]", required=False)
@click.option("--write", is_flag=True, help="For writing too, not only for reading.")
@click.option("--withdraw", is_flag=True, help="Take it back instead.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of text.")
@click.option("--state-dir", metavar="DIR", help="The state folder of the daemon.")
def command(
    *, place: str | None, write: bool, withdraw: bool, as_json: bool, state_dir: str | None
) -> int:
    """Let clients use a file or a folder, with all in it, that is not served otherwise.

    Without one: list what was granted, and what clients asked for in vain. A grant holds for all
    clients, until it is taken back or the daemon stops.
    """
    from ahpd.cli.asking import NoAnswer, ask  # noqa: PLC0415 - not for --help
    from ahpd.daemon.control import GRANT, GRANTS  # noqa: PLC0415
    from ahpd.daemon.state import folder_at  # noqa: PLC0415

    if write and withdraw:
        raise click.UsageError("--write and --withdraw exclude each other")
    if place is None and (write or withdraw):
        raise click.UsageError("name a path or a URI")
    endpoint = folder_at(state_dir).read_endpoint()
    if endpoint is None:
        raise NoAnswer("no daemon is running")
    if place is None:
        [found] = ask(endpoint.unix, (GRANTS, {}))
        click.echo(json.dumps(found) if as_json else _as_text(found))
        return exits.OK
    if not place or ("://" in place and not _is_uri(place)):
        raise click.UsageError(f"{place!r} is no path, and no file: URI")
    wish = {"uri": _uri(place), "read": not withdraw, "write": write}
    [given] = ask(endpoint.unix, (GRANT, wish))
    if as_json:
        click.echo(json.dumps(given))
    else:
        done = "is served no more" if withdraw else "is served" if write else "may be read"
        click.echo(f"{given['uri']} {done}")
    return exits.OK


def _is_uri(place: str) -> bool:
    return place.lower().startswith("file:")


def _uri(place: str) -> str:
    return place if _is_uri(place) else Path(os.path.abspath(place)).as_uri()


def _as_text(found: Any) -> str:
    from ahpd.cli.shown import line  # noqa: PLC0415

    rows = [f"{_uses(each):<10}  {line(each['uri'])}" for each in found["given"]]
    rows = ["Granted:", *rows] if rows else ["Nothing is granted."]
    asked = [
        f"{_uses(each):<10}  {line(each['uri'])}  (by {line(each['clientId'])})"
        for each in found["asked"]
    ]
    return "\n".join([*rows, *(["Asked for in vain:", *asked] if asked else [])])


def _uses(each: Any) -> str:
    return " ".join(use for use in ("read", "write") if each[use])
