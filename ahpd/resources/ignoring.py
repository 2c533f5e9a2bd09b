"""Which files people do not want to see: ``.gitignore`` and ``.ignore``, as git reads them."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Sequence
from typing import TypeAlias

from pathspec import GitIgnoreSpec
from pathspec.pattern import RegexPattern

from ahpd.resources.jail import Astray, lineage, open_real
from ahpd.resources.uris import to_name

#: The files that say so, the later one over the earlier.
FILES = (b".gitignore", b".ignore")
#: Folders in which nobody looks for anything.
NEVER = frozenset({b".git", b".hg", b".svn", b".jj"})
#: Bytes of such a file that are read.
_MOST = 1 << 20


class Rules:
    """The patterns of one folder. Paths are relative to it; those of folders end in a slash."""

    def __init__(self, lines: Sequence[str]) -> None:
        patterns = []
        for pattern in GitIgnoreSpec.from_lines(lines).patterns:
            assert isinstance(pattern, RegexPattern)
            if pattern.include is not None and pattern.regex is not None:
                # Group names may stand once only in what is joined below.
                text = re.sub(r"\(\?P<\w+>", "(?:", pattern.regex.pattern)
                patterns.append((text, pattern.include))
        self.is_empty = not patterns
        #: One look says of nearly all paths that no pattern is about them.
        self._any = re.compile("|".join(f"(?:{text})" for text, _ in patterns))
        self._last_first = [(re.compile(text), ignores) for text, ignores in reversed(patterns)]
        self._has_exceptions = not all(ignores for _, ignores in patterns)

    def verdict(self, path: str) -> bool | None:
        """Whether it is ignored; None: nothing is said of it."""
        if self.is_empty or self._any.match(path) is None:
            return None
        if not self._has_exceptions:
            return True
        return next(ignores for regex, ignores in self._last_first if regex.match(path))


#: The patterns of folders in each other, the deepest last, each with how long (characters) the path
#: of its folder is.
Nested: TypeAlias = tuple[tuple[int, Rules], ...]


def is_ignored(rules: Nested, path: str) -> bool:
    """Whether this path is: the deepest folder that says something of it is right."""
    for base, each in reversed(rules):
        verdict = each.verdict(path[base:])
        if verdict is not None:
            return verdict
    return False


def rules_above(folder: bytes) -> tuple[bytes, Nested]:
    """What the folders above this one, a real path, say of what is in it.

    Its path in the repository that it lies in, with a slash behind it, and their patterns. Both are
    empty for one that is in no repository, and for one that is ignored itself: whoever looks for
    files there wants to see them. Blocks.
    """
    found: list[tuple[bytes, Rules]] = []
    for above in lineage(folder):
        try:
            fd = open_real(above)
        except (Astray, OSError):
            break
        try:
            own = rules_in(fd, FILES) if above != folder else None
            is_top = _has(fd, b".git")
        finally:
            os.close(fd)
        if own is not None:
            found.append((above, own))
        if is_top:
            cut = len(above.rstrip(b"/")) + 1
            path = folder[cut:] + b"/" if above != folder else b""
            rules = tuple(
                (len(to_name(each[cut:] + b"/")) if each != above else 0, own)
                for each, own in reversed(found)
            )
            return (b"", ()) if path and is_ignored(rules, to_name(path)) else (path, rules)
    return b"", ()


def _has(folder: int, name: bytes) -> bool:
    try:
        os.stat(name, dir_fd=folder, follow_symlinks=False)
    except OSError:
        return False
    return True


def rules_in(folder: int, names: Sequence[bytes]) -> Rules | None:
    """The patterns in an open folder that has these names; what cannot be read says nothing."""
    lines: list[str] = []
    for name in FILES:
        if name in names:
            lines += _lines(folder, name)
    if not lines:
        return None
    try:
        return Rules(lines)
    except (ValueError, re.error):  # one pattern is none: the others may be read alone
        return Rules([line for line in lines if _is_pattern(line)])


def _lines(folder: int, name: bytes) -> list[str]:
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    try:
        fd = os.open(name, flags, dir_fd=folder)
    except OSError:
        return []
    try:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            return []
        return os.read(fd, _MOST).decode("utf-8", "replace").splitlines()
    except OSError:
        return []
    finally:
        os.close(fd)


def _is_pattern(line: str) -> bool:
    try:
        Rules([line])
    except (ValueError, re.error):
        return False
    return True
