"""``ahpd trace``: what one actor does, as it does it."""

from __future__ import annotations

import json

import click

from ahpd.cli import exits


@click.command("trace", short_help="Print a line for everything that an actor does.")
@click.argument("path", metavar="PATH")
@click.option("--state-dir", metavar="DIR", help="The state folder of the daemon.")
@click.option("--count", type=click.IntRange(min=1), metavar="N", help="End after N lines.")
@click.option("--json", "as_json", is_flag=True, help="Print a JSON object for each line.")
def command(*, path: str, state_dir: str | None, count: int | None, as_json: bool) -> int:
    """Print a line for everything that the actor at PATH does, until Ctrl-C.

    That is each message when it is taken and when it was handled, how long that took and what was
    said meanwhile; its ends and starts. PATH is as for attach. The actor is never held up; lines
    that nobody reads are left out and counted.
    """
    from ahpd.cli.inside import answers  # noqa: PLC0415
    from ahpd.cli.looking import Look, NobodyThere, result_of  # noqa: PLC0415
    from ahpd.daemon.state import folder_at  # noqa: PLC0415
    from ahpd.inspection.names import ATTACH, LOST, TRACE  # noqa: PLC0415

    with Look(folder_at(state_dir)) as look:
        look.ask(ATTACH, {"path": path})
        look.send("trace", {"on": True})
        printed = 0
        for message in look.messages():
            method = message.get("method")
            if method is None:
                result_of(message)
            elif method in (TRACE, LOST):
                params = message["params"]
                shown = [json.dumps({"kind": method, **params}, ensure_ascii=False)]
                for text in shown if as_json else answers.noticed(method, params):
                    click.echo(text)
                printed += 1
                if printed == count:
                    return exits.OK
    raise NobodyThere("the daemon hung up")
