"""The commands by name, each loaded when it is asked for, and how they all end."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Mapping, Sequence
from typing import Any

import click

from ahpd import __version__
from ahpd.cli import exits


class Unusable(click.ClickException):
    """What the command line names cannot be used."""

    exit_code = exits.USAGE


class LazyGroup(click.Group):
    """A click group whose commands are modules that hold a `command`."""

    def __init__(self, *args: Any, modules: Mapping[str, str], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._modules = modules

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Every name, in the order of the table."""
        return [*self._modules, *super().list_commands(ctx)]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of that name; loads its module."""
        module = self._modules.get(cmd_name)
        if module is None:
            return super().get_command(ctx, cmd_name)
        command: click.Command = importlib.import_module(module).command
        return command

    def invoke(self, ctx: click.Context) -> Any:
        """As click does it, but a reader that went away is no fault of what was checked."""
        try:
            result = super().invoke(ctx)
            sys.stdout.flush()
        except BrokenPipeError:
            # What is still buffered would fail again when the interpreter flushes at its end.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            return exits.PIPE_CLOSED
        return result


@click.group(
    cls=LazyGroup,
    modules={
        "serve": "ahpd.cli.serve",
        "start": "ahpd.cli.start",
        "stop": "ahpd.cli.stop",
        "status": "ahpd.cli.status",
        "restart": "ahpd.cli.restart",
        "demo": "ahpd.cli.demo",
        "sessions": "ahpd.cli.sessions",
        "ask": "ahpd.cli.ask",
        "tail": "ahpd.cli.tail",
        "conform": "ahpd.cli.conform",
        "wire": "ahpd.cli.wire",
    },
    # What https://no-color.org asks for; it holds for every command.
    context_settings={
        "help_option_names": ["-h", "--help"],
        "color": False if os.environ.get("NO_COLOR") else None,
    },
)
@click.version_option(__version__, prog_name="ahpd")
def ahpd() -> None:
    """A host for coding-agent sessions that speaks the Agent Host Protocol."""


def run(arguments: Sequence[str]) -> int:
    """Run one command line and return its exit code; nothing leaves a traceback but our bugs."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):  # a terminal that cannot show a letter still gets text
            stream.reconfigure(errors="backslashreplace")
    try:
        result = ahpd.main(args=list(arguments), prog_name="ahpd", standalone_mode=False)
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except click.Abort:
        return exits.INTERRUPTED
    return result if isinstance(result, int) else exits.OK
