"""Which shell is started, and how: with what makes it tell of its commands, where that is known.

The scripts that do so are read by the shell after the person's own files, none of which is touched
(`contrib/shell`; in an installed package they lie beside this module).
"""

from __future__ import annotations

import os
import pwd
from collections.abc import Mapping, Sequence
from pathlib import Path
from secrets import token_hex

from msgspec import Struct, field

#: What the shell's programs are told of the terminal.
_TERMINAL = {"TERM": "xterm-256color", "COLORTERM": "truecolor"}
#: Of the terminal that this process may have, and of nobody else's.
_OURS = ("COLUMNS", "LINES", "TERMCAP", "TERM_PROGRAM", "TERM_PROGRAM_VERSION", "STY", "TMUX")


class Line(Struct, frozen=True):
    """A command line, and what it needs in its environment.

    `nonce`: its marks carry it; None: it makes none that count.
    """

    program: str
    arguments: Sequence[str]
    environment: Mapping[str, str] = field(default_factory=dict)
    nonce: str | None = None


def line_for(environment: dict[str, str], command: str | None) -> Line:
    """The person's shell, to be talked to, or to run one command. Takes away what is not for it."""
    for name in _OURS:
        environment.pop(name, None)
    shell = shell_in(environment)
    if command is not None:
        return Line(shell, [shell, "-c", command], _TERMINAL)
    return _integrated(shell, environment) or Line(shell, [shell], _TERMINAL)


def shell_in(environment: Mapping[str, str]) -> str:
    """The person's shell: of the environment, else of the system's list of people."""
    named = environment.get("SHELL")
    if named:
        return named
    try:
        return pwd.getpwuid(os.getuid()).pw_shell or "/bin/sh"
    except KeyError:
        return "/bin/sh"


def scripts() -> Path | None:
    """The folder of the integration scripts; None when they were left out."""
    here = Path(__file__)
    for folder in (here.with_name("shell"), here.parents[2] / "contrib" / "shell"):
        if folder.is_dir():
            return folder
    return None


def _integrated(shell: str, environment: Mapping[str, str]) -> Line | None:
    folder, name = scripts(), os.path.basename(shell)
    if folder is None:
        return None
    nonce = token_hex(16)
    more = {**_TERMINAL, "AHPD_SHELL_NONCE": nonce}
    match name:
        case "bash":
            return Line(shell, [shell, "--init-file", str(folder / "ahpd.bash"), "-i"], more, nonce)
        case "zsh":
            # It looks for the person's files there, and is sent on to where they are.
            own = environment.get("ZDOTDIR") or environment.get("HOME") or os.path.expanduser("~")
            more |= {"ZDOTDIR": str(folder / "zsh"), "AHPD_ZDOTDIR": own}
            return Line(shell, [shell, "-i"], more, nonce)
        case "fish":
            source = f"source '{folder / 'ahpd.fish'}'"
            return Line(shell, [shell, "-i", "--init-command", source], more, nonce)
        case _:
            return None
