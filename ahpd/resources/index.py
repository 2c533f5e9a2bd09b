"""The names of all files of a folder, and the search in them.

Names are looked through as one text, which takes milliseconds where there are 200,000 of them.
"""

from __future__ import annotations

import os
import re
import time
from array import array
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence

from ahpd.resources.ignoring import NEVER, Nested, is_ignored, rules_above, rules_in
from ahpd.resources.jail import Astray, open_real
from ahpd.resources.uris import to_name

#: Files of one folder that are known.
MOST = 1_000_000
#: Folders in each other that are looked into.
DEEPEST = 128
#: Places of a search that are looked at more closely.
_CLOSER = 2000
#: Seconds that names may be compared with, letter for letter.
_PATIENCE = 0.1
#: Longest text that names are compared with in that way (characters).
_LETTERS = 32


def files_in(folder: bytes, found: list[bytes], pause: Callable[[], None]) -> None:
    """Append the path of each file from `folder`, a real path, on. Blocks; follows no link.

    What cannot be looked into is passed over, and so is what is ignored, by the folders above too
    (`rules_above`). `pause` is called for each folder, and may raise.
    """
    try:
        fd = open_real(folder)
    except (Astray, OSError):
        return
    try:
        path, rules = rules_above(folder)
        _walk(fd, path, rules, found, len(path), pause, 1)
    finally:
        os.close(fd)


def _walk(  # noqa: PLR0917 - it calls itself once for each folder
    fd: int,
    path: bytes,
    rules: Nested,
    found: list[bytes],
    skip: int,
    pause: Callable[[], None],
    depth: int,
) -> None:
    pause()
    try:
        with os.scandir(fd) as scanned:
            entries = [(os.fsencode(it.name), it.is_dir(follow_symlinks=False)) for it in scanned]
    except OSError:
        return
    own = rules_in(fd, [name for name, is_folder in entries if not is_folder])
    if own is not None:
        rules = (*rules, (len(to_name(path)), own))
    folders = []
    for name, is_folder in entries:
        if is_folder and name in NEVER:
            continue
        if rules and is_ignored(rules, to_name(path + name) + ("/" if is_folder else "")):
            continue
        if is_folder:
            folders.append(name)
        else:
            found.append(path[skip:] + name)
    if depth >= DEEPEST:
        return
    flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
    for name in sorted(folders):
        if len(found) >= MOST:
            return
        try:
            inner = os.open(name, flags, dir_fd=fd)
        except OSError:
            continue
        try:
            _walk(inner, path + name + b"/", rules, found, skip, pause, depth + 1)
        finally:
            os.close(inner)


class Index:
    """Paths, to be searched; it never changes."""

    def __init__(self, paths: Sequence[bytes]) -> None:
        self.paths = sorted(paths, key=lambda path: (path.count(b"/"), path))
        lines = [to_name(path).replace("\n", "\r").lower() for path in self.paths]
        #: The lower-case paths, each with a slash before it and a line end behind and before that.
        self._text = "\n" + "".join(f"/{line}\n" for line in lines)
        self._starts = array("Q")
        place = 1
        for line in lines:
            self._starts.append(place)
            place += len(line) + 2

    def search(self, typed: str, most: int) -> list[bytes]:
        """The paths that fit, the best first: by the beginning of the name, then any part of it,
        then any part of the path, then its letters in their order.
        """
        wanted = typed.lower().strip("/")
        if not wanted:
            return self.paths[:most]
        lines: dict[int, None] = {}
        for text in (f"/{wanted}", wanted):
            lines.update(dict.fromkeys(self._with(text)))
        ranked = sorted(lines, key=lambda line: self._rank(line, wanted))[:most]
        if len(ranked) < most and len(wanted) <= _LETTERS:
            ranked += self._like(wanted, most - len(ranked), lines)
        return [self.paths[line] for line in ranked]

    def _with(self, text: str) -> Iterator[int]:
        """The lines that have this in them, up to a number."""
        place = self._text.find(text)
        for _ in range(_CLOSER):
            if place < 0:
                return
            line = bisect_right(self._starts, place) - 1
            yield line
            place = self._text.find(text, self._end(line))

    def _like(self, wanted: str, most: int, without: dict[int, None]) -> list[int]:
        """Lines that have these letters in this order, as far as there is time."""
        # Each letter is looked for from the last one on and nowhere else, once for each line: what
        # goes back to try another way takes for ever where a letter is often in a name.
        steps = (f"[^{re.escape(char)}\n]*+{re.escape(char)}" for char in wanted)
        letters = re.compile("\n" + "".join(steps))
        until, place = time.monotonic() + _PATIENCE, 0
        found: list[int] = []
        while len(found) < most and time.monotonic() < until:
            match = letters.search(self._text, place, place + (64 << 10))
            if match is None:
                place += 64 << 10
                if place >= len(self._text):
                    break
                place = self._starts[bisect_right(self._starts, place) - 1] - 1
                continue
            line = bisect_right(self._starts, match.start() + 1) - 1
            if line not in without:
                found.append(line)
            place = self._end(line) - 1
        return found

    def _end(self, line: int) -> int:
        return self._starts[line + 1] if line + 1 < len(self._starts) else len(self._text)

    def _rank(self, line: int, wanted: str) -> tuple[int, int, int]:
        path = self._text[self._starts[line] + 1 : self._end(line) - 1]
        name = path.rpartition("/")[2]
        if wanted in (name, path):
            kind = 0
        elif name.startswith(wanted):
            kind = 1
        elif path.startswith(wanted):
            kind = 2
        elif wanted in name:
            kind = 3
        else:
            kind = 4
        return kind, len(path), line
