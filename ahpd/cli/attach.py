"""``ahpd attach``: a console inside one actor of the running daemon."""

from __future__ import annotations

import os
from pathlib import Path

import click

#: Lines that were typed at consoles are kept in this file of the state folder.
HISTORY = "attach-history"


@click.command("attach", short_help="Look at one actor of the daemon and steer it.")
@click.argument("path", metavar="PATH")
@click.option("--state-dir", metavar="DIR", help="The state folder of the daemon.")
def command(*, path: str, state_dir: str | None) -> int:
    """Look at one actor of the daemon and steer it, while all others go on.

    PATH is that of a session, a chat, a terminal, a watch, a connection or any other actor, as ahpd
    ps shows it, the URI of its channel, or as much as tells it apart. Leaving, in whatever way,
    resumes what was paused here. Commands are read from the standard input when that is no
    terminal.
    """
    from ahpd.cli import tty  # noqa: PLC0415
    from ahpd.cli.inside.console import Console  # noqa: PLC0415 - prompt_toolkit takes its time
    from ahpd.cli.inside.typing import Pipe, Terminal  # noqa: PLC0415
    from ahpd.cli.looking import Look  # noqa: PLC0415
    from ahpd.daemon.state import folder_at  # noqa: PLC0415

    folder = folder_at(state_dir)
    with Look(folder) as look:
        typist = Terminal(_history(folder.path)) if tty.is_there() else Pipe()
        return Console(look, typist).run(path)


def _history(folder: Path) -> Path | None:
    """The file, private; None when it cannot be written."""
    path = folder / HISTORY
    try:
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600))
    except OSError:
        return None
    return path
