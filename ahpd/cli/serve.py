"""``ahpd serve``: the host in the foreground; bare ``ahpd`` is the same."""

from __future__ import annotations

from typing import Any

import click

from ahpd.cli.loading import loading
from ahpd.cli.serve_options import Remembering, flags_from, serve_options

#: What is of no use where there is no listener.
_OF_LISTENERS = ("host", "port", "token", "token_file", "without_token", "endpoint_file")


class _Serve(Remembering):
    """The command that is meant when none is named, and so gets what was meant for another."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """As click does it."""
        given = list(args)
        try:
            return super().parse_args(ctx, args)
        except click.UsageError as error:
            group = ctx.parent.command if ctx.parent is not None else None
            names = group.list_commands(ctx) if isinstance(group, click.Group) else []
            named = next((word for word in given if word in names), None)
            if named is None or not ("extra argument" in error.message or "twice" in error.message):
                raise
            raise click.UsageError(
                f"options come after the command: ahpd {named} [OPTIONS]", ctx
            ) from None


@click.command("serve", cls=_Serve)
@serve_options
@click.option("--stdio", is_flag=True, help="Serve whoever started it over stdin and stdout.")
@click.pass_context
def command(ctx: click.Context, /, *, stdio: bool, **values: Any) -> int:
    """Serve clients until told to stop.

    They connect by WebSocket, with the token that is part of the URL, or through the Unix socket in
    the state folder. With --stdio there is one, which needs neither.
    """
    with loading():
        from ahpd.cli import failing  # noqa: PLC0415
        from ahpd.daemon.launching import make_launch  # noqa: PLC0415
        from ahpd.daemon.serving import serve  # noqa: PLC0415

    flags = flags_from(values, ctx.meta[Remembering.KEY])
    if stdio:
        useless = [p for p in ctx.command.params if p.name in _OF_LISTENERS and values[p.name]]
        if useless or values["port"] is not None:
            name = useless[0].opts[0] if useless else "--port"
            raise click.UsageError(f"{name} is not for --stdio, which listens nowhere")
        from ahpd.cli import stdio as over_stdio  # noqa: PLC0415

        return over_stdio.serve(flags)
    with failing.explained() as outcome:
        outcome.reason = serve(make_launch(flags, failing.say))
    return outcome.code
