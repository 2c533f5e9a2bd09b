"""What a host is started with, once flags and file have been read."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import attrs

from ahpd.daemon.config import Config


@attrs.frozen
class TokenChoice:
    """What is asked of who connects by TCP: one of the three, or the state folder's own token."""

    token: str | None = attrs.field(default=None, repr=False)
    file: Path | None = None
    none: bool = False


@attrs.frozen
class Launch:
    """All that a start of the host says: the configuration with the flags over it, and the rest."""

    config: Config = attrs.field(factory=Config)
    #: Folders that are served.
    paths: Sequence[Path] = ()
    state_dir: Path | None = None
    token: TokenChoice = attrs.field(factory=TokenChoice)
    endpoint_file: Path | None = None
    #: Where every frame is written.
    wire: Path | None = None
    quiet: bool = False
    #: The arguments that it was started with, for ``ahpd restart``.
    arguments: Sequence[str] = ()
