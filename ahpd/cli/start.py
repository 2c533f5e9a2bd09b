"""``ahpd start``: the host in the background."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from ahpd.cli import exits
from ahpd.cli.serve_options import Remembering, flags_from, serve_options

if TYPE_CHECKING:
    from ahpd.daemon.state import StateFolder


@click.command("start", cls=Remembering, short_help="Start a daemon that goes on when you log out.")
@serve_options
@click.option(
    "--within",
    type=click.FloatRange(min=0.1),
    default=30.0,
    metavar="SECONDS",
    help="How long it may take.  [30]",
)
@click.pass_context
def command(ctx: click.Context, /, *, within: float, **values: Any) -> int:
    """Start a daemon that goes on when you log out, and print its URL.

    It takes the options of serve. What it says goes to daemon.log in the state folder. When one
    runs already, that is said, and its URL printed.
    """
    from ahpd.cli import failing  # noqa: PLC0415
    from ahpd.daemon.launching import make_launch  # noqa: PLC0415
    from ahpd.daemon.state import folder_at  # noqa: PLC0415

    flags = flags_from(values, ctx.meta[Remembering.KEY])
    with failing.explained() as outcome:
        make_launch(flags, failing.say)  # so that what is wrong is said here and not in a log
        folder = folder_at(flags.state_dir)
        return start(folder, _for_serve(flags.arguments), None, within)
    return outcome.code


def _for_serve(arguments: Sequence[str]) -> list[str]:
    """The arguments without what is not for serve, or is said to it in full."""
    kept: list[str] = []
    words = iter(arguments)
    for word in words:
        if word in ("--within", "--state-dir"):
            next(words, None)
        elif not word.startswith(("--within=", "--state-dir=")):
            kept.append(word)
    return kept


def start(folder: StateFolder, arguments: list[str], cwd: str | None, within: float) -> int:
    """Start it and say how that went; the exit code. Raises `StateError`."""
    from ahpd.daemon import detached  # noqa: PLC0415

    try:
        started = detached.start(folder, arguments, cwd=cwd, within=within)
    except detached.StartFailed as error:
        click.echo(f"ahpd: the daemon did not start:\n{error}", err=True)
        return error.code if error.code is not None and error.code > 0 else exits.CANNOT_SERVE
    endpoint = started.endpoint
    how = "runs already" if started.was_running else "started"
    click.echo(f"ahpd: {how}, pid {endpoint.pid}; its log is {folder.log}", err=True)
    click.echo(endpoint.url)
    return exits.OK
