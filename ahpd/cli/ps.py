"""``ahpd ps``: the supervision tree of the running daemon, live."""

from __future__ import annotations

import sys
import time

import click

from ahpd.cli import exits


@click.command("ps", short_help="Show every actor of the daemon.")
@click.argument("path", metavar="[PATH]", required=False)
@click.option("--state-dir", metavar="DIR", help="The state folder of the daemon.")
@click.option("--all", "show_all", is_flag=True, help="Show what is idle too, however much it is.")
@click.option("--watch", is_flag=True, help="Draw it again and again, until Ctrl-C.")
@click.option(
    "--every",
    type=click.FloatRange(min=0.1),
    default=1.0,
    metavar="SECONDS",
    help="With --watch: how often.  [1]",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object instead of text.")
def command(
    *,
    path: str | None,
    state_dir: str | None,
    show_all: bool,
    watch: bool,
    every: float,
    as_json: bool,
) -> int:
    """Show every actor of the daemon, or those at or below PATH: what it does, its mailbox, the
    messages it handled, its restarts, its memory where that is known, and its last crash.

    What is out of the ordinary, and so may be why something is slow, comes first. Exits 3 when no
    daemon runs.
    """
    from ahpd.cli.looking import Look  # noqa: PLC0415
    from ahpd.daemon.state import folder_at  # noqa: PLC0415
    from ahpd.inspection.names import PS  # noqa: PLC0415

    params = {} if path is None else {"under": path}
    with Look(folder_at(state_dir)) as look:
        if watch and not as_json:
            from ahpd.cli.tree_shown import watched  # noqa: PLC0415

            return watched(lambda: look.ask(PS, params), every, show_all=show_all)
        while as_json:
            sys.stdout.write(look.ask_text(PS, params).decode() + "\n")
            sys.stdout.flush()
            if not watch:
                return exits.OK
            time.sleep(every)
        from ahpd.cli.tree_shown import printed  # noqa: PLC0415

        printed(look.ask(PS, params), show_all=show_all)
    return exits.OK
