"""``ahpd restart``: the daemon again, or one actor in it."""

from __future__ import annotations

import click

from ahpd.cli import exits


@click.command("restart", short_help="Restart the daemon, or one actor in it.")
@click.argument("path", metavar="[PATH]", required=False)
@click.option("--state-dir", metavar="DIR", help="The state folder of the daemon.")
@click.option(
    "--within",
    type=click.FloatRange(min=0.1),
    default=30.0,
    metavar="SECONDS",
    help="How long its end, and then its start, may take.  [30]",
)
def command(*, path: str | None, state_dir: str | None, within: float) -> int:
    """Restart the actor at PATH in the running daemon, or without PATH the daemon itself.

    The daemon comes back in the background with the options it had, in the folder it was started
    in. An actor that was set aside is named by its channel, by status, and in the log.
    """
    from ahpd.cli import failing  # noqa: PLC0415
    from ahpd.daemon.state import folder_at  # noqa: PLC0415

    folder = folder_at(state_dir)
    if path is None:
        from ahpd.cli.start import start  # noqa: PLC0415
        from ahpd.cli.stop import stop  # noqa: PLC0415
        from ahpd.daemon import detached  # noqa: PLC0415

        before = detached.past(folder)
        stop(folder, within)
        with failing.explained() as outcome:
            return start(folder, list(before.arguments), before.folder, within)
        return outcome.code
    from ahpd.cli.asking import NoAnswer, ask  # noqa: PLC0415
    from ahpd.daemon.control import RESTART_ACTOR  # noqa: PLC0415

    endpoint = folder.read_endpoint()
    if endpoint is None:
        raise NoAnswer("no daemon is running")
    ask(endpoint.unix, (RESTART_ACTOR, {"path": path}), within=within)
    click.echo(f"ahpd: {path} is up again", err=True)
    return exits.OK
