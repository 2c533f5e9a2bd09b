"""The commands by name, each loaded when it is asked for, and how they all end."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
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
            return super().invoke(ctx)
        except BrokenPipeError:
            _drop_output()
            return exits.PIPE_CLOSED


def _output_lost(*, trying: str = "") -> int | None:
    """The exit code when standard output takes no more, which is said; None when it does."""
    try:
        sys.stdout.write(trying)
        sys.stdout.flush()
    except BrokenPipeError:
        code = exits.PIPE_CLOSED
    except OSError as error:
        from ahpd.cli.failing import say  # noqa: PLC0415 - brings the host's errors along

        say(f"the output could not be written: {error.strerror}")
        code = exits.OUTPUT_LOST
    else:
        return None
    _drop_output()
    return code


def _drop_output() -> None:
    """What is still buffered would fail again when the interpreter flushes at its end."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _without_holes() -> None:
    """Streams that were closed before the start take what they get, and nobody reads it.

    Their numbers are taken too: a file opened later must not be what somebody prints to.
    """
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115


@click.group(
    cls=LazyGroup,
    modules={
        "serve": "ahpd.cli.serve",
        "start": "ahpd.cli.start",
        "stop": "ahpd.cli.stop",
        "status": "ahpd.cli.status",
        "restart": "ahpd.cli.restart",
        "ps": "ahpd.cli.ps",
        "attach": "ahpd.cli.attach",
        "inspect": "ahpd.cli.inspect",
        "trace": "ahpd.cli.trace",
        "log": "ahpd.cli.log",
        "doctor": "ahpd.cli.doctor",
        "agents": "ahpd.cli.agents",
        "demo": "ahpd.cli.demo",
        "sessions": "ahpd.cli.sessions",
        "ask": "ahpd.cli.ask",
        "tail": "ahpd.cli.tail",
        "terminals": "ahpd.cli.terminals",
        "terminal": "ahpd.cli.terminal",
        "grant": "ahpd.cli.grant",
        "journal": "ahpd.cli.journal",
        "verify": "ahpd.cli.verify",
        "conform": "ahpd.cli.conform",
        "wire": "ahpd.cli.wire",
        "bench": "ahpd.cli.bench",
    },
    # What https://no-color.org asks for; it holds for every command.
    context_settings={
        "help_option_names": ["-h", "--help"],
        "color": False if os.environ.get("NO_COLOR") else None,
    },
)
@click.version_option(__version__, prog_name="ahpd")
def ahpd() -> None:
    """A host for coding-agent sessions that speaks the Agent Host Protocol.

    Without a COMMAND it serves until Ctrl-C, as `ahpd serve` does.
    """


def run(arguments: Sequence[str]) -> int:
    """Run one command line and return its exit code; nothing leaves a traceback but our bugs."""
    _without_holes()
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):  # a terminal that cannot show a letter still gets text
            stream.reconfigure(errors="backslashreplace")
    try:
        result = ahpd.main(args=list(arguments), prog_name="ahpd", standalone_mode=False)
    except click.ClickException as error:
        with suppress(OSError):  # nobody can be told
            error.show()
        return error.exit_code
    except click.Abort:
        return exits.INTERRUPTED
    except (OSError, BaseExceptionGroup):  # a group when it comes from a task
        lost = _output_lost(trying="\n")
        if lost is None:  # it was about something else
            raise
        return lost
    lost = _output_lost()
    if lost is not None:
        return lost
    return result if isinstance(result, int) else exits.OK
