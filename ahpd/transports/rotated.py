"""`RotatedFile`: a file that is written to at its end, and moved aside when it is long.

`daemon.log` becomes `daemon.log.1`, that becomes `daemon.log.2`, and so on; how many are kept is
bounded, so a file never takes more than ``(keep + 1) * max_bytes`` and one write. All of mode 0600.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path


class RotatedFile:
    """See the module. Used by one thread at a time.

    `descriptors` are numbers that lead to the file too, such as 2: they are made to lead to the new
    one when it is moved aside. With `fresh` what is there is emptied first, and older ones go.
    Raises OSError when it cannot be opened. A file that cannot be moved aside just grows.
    """

    def __init__(
        self,
        path: Path,
        *,
        max_bytes: int,
        keep: int,
        descriptors: Sequence[int] = (),
        fresh: bool = False,
    ) -> None:
        self.path = path
        self._max = max_bytes
        self._keep = keep
        self._descriptors = descriptors
        self._fd = _open(path, fresh=fresh)
        if fresh:
            for number in range(1, keep + 1):
                self._aside(number).unlink(missing_ok=True)
        self._size = os.fstat(self._fd).st_size

    def write(self, data: bytes) -> None:
        """Write it all, in a new file if there is no room in this one. Blocks; raises OSError."""
        if self._size and self._size + len(data) > self._max:
            self._move_aside()
        # One write as a rule, so that what other descriptors write does not get in between.
        rest = memoryview(data)
        while rest:
            count = os.write(self._fd, rest)
            self._size += count
            rest = rest[count:]

    def close(self) -> None:
        """Close it; the descriptors stay."""
        os.close(self._fd)

    def _aside(self, number: int) -> Path:
        return self.path.with_name(f"{self.path.name}.{number}")

    def _move_aside(self) -> None:
        # What else was written to it counts, and somebody may have moved it or made it shorter.
        self._size = os.fstat(self._fd).st_size
        if self._size == 0:
            return
        with suppress(OSError):  # a file that grows is better than none
            if self._keep:
                for number in range(self._keep - 1, 0, -1):
                    with suppress(FileNotFoundError):
                        self._aside(number).replace(self._aside(number + 1))
                self.path.replace(self._aside(1))
            else:
                self.path.unlink()
            new = _open(self.path, fresh=False)
            os.close(self._fd)
            self._fd, self._size = new, 0
            for each in self._descriptors:
                os.dup2(new, each)


def _open(path: Path, *, fresh: bool) -> int:
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
    fd = os.open(path, flags | (os.O_TRUNC if fresh else 0), 0o600)
    os.fchmod(fd, 0o600)
    return fd
