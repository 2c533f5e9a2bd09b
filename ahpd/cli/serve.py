"""``ahpd serve``: the host in the foreground; bare ``ahpd`` is the same."""

from __future__ import annotations

from typing import Any

import click

from ahpd.cli.serve_options import Remembering, flags_from, serve_options


@click.command("serve", cls=Remembering)
@serve_options
@click.option("--stdio", is_flag=True, help="Serve whoever started it over stdin and stdout.")
@click.pass_context
def command(ctx: click.Context, /, *, stdio: bool, **values: Any) -> int:
    """Serve clients until told to stop.

    They connect by WebSocket, with the token that is part of the URL, or through the Unix socket in
    the state folder. With --stdio there is one, which needs neither.
    """
    from ahpd.cli import failing  # noqa: PLC0415
    from ahpd.daemon.launching import make_launch  # noqa: PLC0415
    from ahpd.daemon.serving import serve  # noqa: PLC0415

    flags = flags_from(values, ctx.meta[Remembering.KEY])
    if stdio:
        from ahpd.cli import stdio as over_stdio  # noqa: PLC0415

        return over_stdio.serve(flags)
    with failing.explained() as outcome:
        outcome.reason = serve(make_launch(flags, failing.say))
    return outcome.code
