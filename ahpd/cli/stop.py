"""``ahpd stop``: end the daemon in order."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from ahpd.cli import exits

if TYPE_CHECKING:
    from ahpd.daemon.state import StateFolder


@click.command("stop")
@click.option("--state-dir", metavar="DIR", help="The state folder of the daemon.")
@click.option(
    "--within",
    type=click.FloatRange(min=0.1),
    default=30.0,
    metavar="SECONDS",
    help="How long it may take before it is killed.  [30]",
)
def command(*, state_dir: str | None, within: float) -> int:
    """Stop the daemon, and wait until it is gone.

    That none runs is said, and is no error. One that has to be killed exits 9.
    """
    from ahpd.daemon.state import folder_at  # noqa: PLC0415

    return stop(folder_at(state_dir), within)


def stop(folder: StateFolder, within: float) -> int:
    """Stop it and say how that went; the exit code."""
    from ahpd.daemon import detached  # noqa: PLC0415

    match detached.stop(folder, within=within):
        case None:
            click.echo("ahpd: not running", err=True)
        case True:
            click.echo("ahpd: stopped", err=True)
        case False:
            click.echo(f"ahpd: did not stop within {within:g} s, so it was killed", err=True)
            return exits.KILLED
    return exits.OK
