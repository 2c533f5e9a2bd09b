"""``ahpd log``: what a running daemon writes into its log."""

from __future__ import annotations

import json

import click

from ahpd.cli import exits
from ahpd.cli.reach import Target, reaching
from ahpd.cli.running import run


@click.group("log")
def command() -> None:
    """Follow the log of a running daemon, and change its levels."""


@command.command("level", short_help="Set the level of a subsystem, and print them all.")
@click.argument("subsystem", required=False)
@click.argument("level", required=False)
@click.option("--state-dir", metavar="DIR", help="The state folder of the daemon.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of text.")
def level_command(
    *, subsystem: str | None, level: str | None, state_dir: str | None, as_json: bool
) -> int:
    """Set the LEVEL of a SUBSYSTEM until the daemon ends, and print them all.

    LEVEL is debug, info, warning or error; "inherit" takes a subsystem's own level away. SUBSYSTEM
    "all" is for all that have none of their own. Without arguments nothing is changed. Exits 4 when
    there is no such subsystem or level.
    """
    from ahpd.cli.asking import NoAnswer, ask  # noqa: PLC0415
    from ahpd.daemon.config import SUBSYSTEMS  # noqa: PLC0415
    from ahpd.daemon.control import LOG_LEVELS  # noqa: PLC0415
    from ahpd.daemon.state import folder_at  # noqa: PLC0415

    if subsystem is not None and level is None:
        raise click.UsageError("a SUBSYSTEM needs a LEVEL")
    endpoint = folder_at(state_dir).read_endpoint()
    if endpoint is None:
        raise NoAnswer("no daemon is running")
    change = {} if subsystem is None else {"subsystem": subsystem, "level": level}
    [answer] = ask(endpoint.unix, (LOG_LEVELS, change))
    if as_json:
        click.echo(json.dumps(answer["levels"]))
    else:
        for name, value in answer["levels"].items():
            click.echo(f"{name:<14}{value:<10}{SUBSYSTEMS.get(name, '')}".rstrip())
    return exits.OK


@command.command("follow")
@click.argument("subsystems", metavar="[SUBSYSTEM]...", nargs=-1)
@reaching
@click.option(
    "--level",
    type=click.Choice(("debug", "info", "warn", "error")),
    default="info",
    help="The least important level.  [info]",
)
@click.option("--json", "as_json", is_flag=True, help="Print a JSON object for each record.")
def follow_command(
    subsystems: tuple[str, ...], target: Target, *, level: str, as_json: bool
) -> int:
    """Print what a host logs from now on.

    Of these SUBSYSTEMs, or of all, until Ctrl-C; whatever the levels of its own log are, and from
    another machine too. Exits 3 when the connection is gone.
    """
    from ahpd.cli.log_following import Follower  # noqa: PLC0415 - the client is slow to import

    follower = Follower(level, frozenset(subsystems), as_json)
    return run(lambda running: follower.main(target, running))
