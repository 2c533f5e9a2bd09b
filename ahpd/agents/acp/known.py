"""The agents that are known to speak ACP, and which of them are installed here."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path

from msgspec import Struct


class Known(Struct, frozen=True):
    """An agent that anybody can install.

    `command` is how it is started, `package` where it comes from (``npm:NAME``, ``pypi:NAME``),
    `notes` what one should know of it. `signs_in_late`: that it wants a sign-in shows with its
    first prompt only.
    """

    name: str
    title: str
    command: Sequence[str]
    package: str | None
    notes: str
    signs_in_late: bool = False

    @property
    def install(self) -> str | None:
        """The command that installs it; None when there is no single one."""
        kind, _, name = (self.package or "").partition(":")
        ways = {"npm": "npm install -g {}", "pypi": "pipx install '{}'"}
        return ways[kind].format(name) if kind in ways else None


def known_agents() -> Sequence[Known]:
    """All of them, those that most people use first. Reads a file of this package."""
    text = Path(__file__).with_name("known.json").read_bytes()
    return tuple(Known(**each) for each in json.loads(text))


def installed_agents(path: str | None = None) -> Iterator[Known]:
    """Those whose program is in `path`, which is ``PATH`` unless told. Looks at files only."""
    return (each for each in known_agents() if shutil.which(each.command[0], path=path))


def package_version(program: Path) -> str | None:
    """The version that the ``package.json`` of a program's package has, if there is one."""
    for folder in program.resolve().parents[:4]:
        try:
            version = json.loads((folder / "package.json").read_bytes()).get("version")
        except (OSError, ValueError, AttributeError):
            continue
        return version if isinstance(version, str) else None
    return None
