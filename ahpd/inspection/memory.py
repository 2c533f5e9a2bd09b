"""What processes have in memory, as the kernel says."""

from __future__ import annotations

import os
from pathlib import Path

_PAGE = os.sysconf("SC_PAGE_SIZE")


def resident(pid: int | None) -> int | None:
    """Bytes of a process that are in memory, None: of this one; None where nobody says.

    Reads a file that the kernel makes, which takes some ten microseconds.
    """
    try:
        fields = Path(f"/proc/{'self' if pid is None else pid}/statm").read_bytes().split()
        return int(fields[1]) * _PAGE
    except (OSError, IndexError, ValueError):
        return None
