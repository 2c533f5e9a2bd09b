"""Why a host does not run, by who acts next. Each message is a sentence for people."""

from __future__ import annotations

from pathlib import Path


class ConfigError(Exception):
    """A setting is wrong, in the file or on the command line. Whoever set it acts."""


class StateError(Exception):
    """The state folder cannot be used. Its owner acts."""


class AlreadyRunning(StateError):
    """Another daemon holds the folder; `pid` is its process, None when it does not say."""

    def __init__(self, folder: Path, pid: int | None) -> None:
        who = "another daemon" if pid is None else f"the daemon with pid {pid}"
        super().__init__(f"{who} runs on {folder} already")
        self.pid = pid


class JournalUnusable(StateError):
    """The journal is damaged, another program's or a newer version's. Trying again is no help."""


class CannotServe(Exception):
    """The host could not start to take clients: a port is taken, a file cannot be written."""


class PeerBroke(Exception):
    """The peer sent what its connection cannot go on from. Whoever wrote that acts."""


class HostFailed(Exception):
    """A part of the host that it cannot be without failed too often. We act: it is a bug."""
