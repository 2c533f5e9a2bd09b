"""What a host is started with, once flags and file have been read."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from msgspec import Struct, field

from ahpd.daemon.config import Config
from ahpd.protocol.discreet import Discreet


class TokenChoice(Discreet, frozen=True):
    """What is asked of who connects by TCP: one of the three, or the state folder's own token."""

    hidden = frozenset({"token"})

    token: str | None = None
    file: Path | None = None
    none: bool = False


class Launch(Struct, frozen=True):
    """All that a start of the host says: the configuration with the flags over it, and the rest."""

    config: Config = field(default_factory=Config)
    #: Folders that are served.
    paths: Sequence[Path] = ()
    state_dir: Path | None = None
    token: TokenChoice = field(default_factory=TokenChoice)
    endpoint_file: Path | None = None
    #: Where every frame is written.
    wire: Path | None = None
    quiet: bool = False
    #: The arguments that it was started with, for ``ahpd restart``.
    arguments: Sequence[str] = ()
