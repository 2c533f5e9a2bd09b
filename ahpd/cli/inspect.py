"""``ahpd inspect``: everything there is to see of one actor, once."""

from __future__ import annotations

import click

from ahpd.cli import exits


@click.command("inspect", short_help="Print everything there is to see of an actor.")
@click.argument("path", metavar="PATH")
@click.option("--state-dir", metavar="DIR", help="The state folder of the daemon.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of text.")
def command(*, path: str, state_dir: str | None, as_json: bool) -> int:
    """Print everything there is to see of the actor at PATH: its mailbox, where its tasks wait, its
    last crash, its state. PATH is as for attach.
    """
    from ahpd.cli.looking import Look  # noqa: PLC0415
    from ahpd.daemon.state import folder_at  # noqa: PLC0415
    from ahpd.inspection.names import INSPECT  # noqa: PLC0415

    with Look(folder_at(state_dir)) as look:
        if as_json:
            click.echo(look.ask_text(INSPECT, {"path": path}))
            return exits.OK
        from ahpd.cli.inside import answers  # noqa: PLC0415

        for text in answers.inspected(look.ask(INSPECT, {"path": path})):
            click.echo(text)
    return exits.OK
