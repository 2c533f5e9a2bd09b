"""The options of ``ahpd serve``, which ``ahpd start`` takes too and hands on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

from ahpd.daemon.launching import Flags

F = TypeVar("F", bound=Callable[..., Any])


def _once(_: click.Context, option: click.Parameter, values: tuple[str, ...]) -> str | None:
    """The value of an option that says where something is: two of them mean a mistake."""
    if len(set(values)) > 1:
        raise click.UsageError(f"{option.opts[0]} is given twice: {values[0]} and {values[-1]}")
    return values[-1] if values else None


_OPTIONS = (
    click.option("--host", metavar="NAME", help="Address to listen on.  [127.0.0.1]"),
    click.option("--port", type=int, metavar="N", help="TCP port; 0: any free one.  [9187]"),
    click.option("--config", metavar="FILE", help="Configuration to use instead of the usual one."),
    click.option(
        "--state-dir",
        metavar="DIR",
        multiple=True,
        callback=_once,
        help="Folder for what the daemon keeps.",
    ),
    click.option(
        "--agent",
        "agents",
        multiple=True,
        metavar="NAME=KIND:WHAT",
        help="An agent, as scripted:FILE or acp:COMMAND; repeatable.  [demo, a built-in script]",
    ),
    click.option(
        "--path",
        "paths",
        multiple=True,
        metavar="DIR",
        help="A folder whose files clients may ask for; repeatable.  [the current one]",
    ),
    click.option(
        "--connection-token",
        "token",
        metavar="T",
        help="Token that clients need; others can read it off the list of processes.",
    ),
    click.option(
        "--connection-token-file",
        "token_file",
        metavar="FILE",
        help="File that holds it; made when missing.  [token in the state folder]",
    ),
    click.option(
        "--without-connection-token",
        "without_token",
        is_flag=True,
        help="Let in everybody on this machine; only for loopback.",
    ),
    click.option(
        "--endpoint-file",
        metavar="FILE",
        help="Write url and pid there, as JSON, once clients are taken.",
    ),
    click.option("--wire", metavar="FILE", help="Write every frame there, without secrets."),
    click.option("--wire-format", metavar="FORMAT", help="frames or ahplog.  [frames]"),
    click.option("--log-level", metavar="LEVEL", help="debug, info, warning or error.  [info]"),
    click.option("--quiet", is_flag=True, help="Do not print the URL."),
)


def serve_options(command: F) -> F:
    """Give a command the options; it gets them as keywords that fit `Flags`."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def flags_from(values: dict[str, Any], arguments: tuple[str, ...]) -> Flags:
    """The options as they came."""
    return Flags(**values, arguments=arguments)


class Remembering(click.Command):
    """A command whose callback finds its arguments, as they came, in ``ctx.meta``."""

    KEY = "ahpd.arguments"

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """As click does it."""
        ctx.meta[self.KEY] = tuple(args)
        return super().parse_args(ctx, args)
