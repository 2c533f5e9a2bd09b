"""Which files people do not want to see: ``.gitignore`` and ``.ignore``, as git reads them."""

from __future__ import annotations

import os
import stat
import string
from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

from ahpd.resources.automaton import Automaton, Nodes, in_a_name
from ahpd.resources.jail import Astray, lineage, open_real
from ahpd.resources.uris import to_name

#: The files that say so, the later one over the earlier.
FILES = (b".gitignore", b".ignore")
#: Folders in which nobody looks for anything.
NEVER = frozenset({b".git", b".hg", b".svn", b".jj"})
#: Bytes of such a file that are read.
_MOST = 256 << 10

_PRINTED = frozenset(string.ascii_letters + string.digits + string.punctuation)
_CLASSES: Mapping[str, frozenset[str]] = {
    "alnum": frozenset(string.ascii_letters + string.digits),
    "alpha": frozenset(string.ascii_letters),
    "blank": frozenset(" \t"),
    "cntrl": frozenset(map(chr, [*range(32), 127])),
    "digit": frozenset(string.digits),
    "graph": _PRINTED,
    "lower": frozenset(string.ascii_lowercase),
    "print": _PRINTED | {" "},
    "punct": frozenset(string.punctuation),
    "space": frozenset(string.whitespace),
    "upper": frozenset(string.ascii_uppercase),
    "xdigit": frozenset(string.hexdigits),
}


class Rules:
    """The patterns of one folder. Paths are relative to it; those of folders end in a slash."""

    def __init__(self, lines: Sequence[str]) -> None:
        self._nodes = Nodes()
        #: Patterns without a slash fit at any depth: they have the way there in common.
        self._anywhere = self._nodes.folders(self._nodes.start)
        #: Of each pattern whether it ignores, or makes an exception.
        self._ignores: list[bool] = []
        for line in lines:
            self._add(line)
        self.is_empty = not self._ignores
        self._automaton = Automaton(self._nodes)

    def _add(self, line: str) -> None:
        """One line. What is no pattern fits nothing."""
        pattern = _trimmed(line)
        if not pattern or pattern[0] == "#":
            return
        ignores = pattern[0] != "!"
        pattern = pattern.removeprefix("!")
        is_folder = pattern.endswith("/")
        pattern = pattern.removesuffix("/")
        begin = self._nodes.start if "/" in pattern else self._anywhere
        pattern = pattern.removeprefix("/")
        at = _add(self._nodes, begin, pattern) if pattern else None
        if at is None:
            return
        number = len(self._ignores)
        self._ignores.append(ignores)
        self._nodes.end(self._nodes.one(at, "/"), number)
        if not is_folder:
            self._nodes.end(at, number)

    def verdict(self, path: str) -> bool | None:
        """Whether it is ignored; None: nothing is said of it. In an ignored folder all is."""
        if self.is_empty:
            return None
        state, go = self._automaton.start, self._automaton.next
        last = len(path) - 1
        for place, char in enumerate(path):
            state = state.known.get(char) or go(state, char)
            ended = state.ended if char == "/" and place < last else None
            if ended is not None and self._ignores[ended]:
                return True
        return None if state.ended is None else self._ignores[state.ended]


def _trimmed(line: str) -> str:
    """Without the spaces at its end, but for one behind a backslash."""
    place = end = 0
    while place < len(line):
        if line[place] == "\\":
            place += 1
            end = place + 1
        elif line[place] != " ":
            end = place + 1
        place += 1
    return line[:end]


def _add(nodes: Nodes, at: int, pattern: str) -> int | None:
    """Add a pattern behind a node; the node where it ends. None: it is none."""
    place = 0
    while place < len(pattern):
        char = pattern[place]
        place += 1
        if char == "*":
            begin = place - 1
            while pattern[place : place + 1] == "*":
                place += 1
            is_name = (begin == 0 or pattern[begin - 1] == "/") and pattern[place:][:1] in ("", "/")
            if is_name and place - begin > 1:
                at = nodes.folders(at)
                if place < len(pattern):
                    place += 1
                    continue
            if is_name:  # which has a character at least
                at = nodes.one(at, in_a_name)
            at = nodes.many(at, in_a_name)
        elif char == "?":
            at = nodes.one(at, in_a_name)
        elif char == "[":
            found = _one_of(pattern, place)
            if found is None:
                return None
            test, place = found
            at = nodes.one(at, test)
        elif char == "\\":
            if place == len(pattern):
                return None
            at = nodes.one(at, pattern[place])
            place += 1
        else:
            at = nodes.one(at, char)
    return at


def _one_of(pattern: str, place: int) -> tuple[Callable[[str], bool], int] | None:
    """What is in brackets, and the place behind them; None: they stay open."""
    negated = pattern[place : place + 1] in ("!", "^")
    place += negated
    begin = place
    ranges: list[tuple[str, str]] = []
    named: set[str] = set()
    while place < len(pattern) and (pattern[place] != "]" or place == begin):
        if pattern.startswith("[:", place) and (end := pattern.find(":]", place + 2)) > 0:
            name = pattern[place + 2 : end]
            if name not in _CLASSES:
                return None
            named |= _CLASSES[name]
            place = end + 2
            continue
        low, place = _char(pattern, place)
        ranges.append((low, low))
        if pattern[place : place + 1] == "-" and pattern[place + 1 : place + 2] not in ("", "]"):
            high, place = _char(pattern, place + 1)
            ranges.append((low, high))
    if place >= len(pattern):
        return None

    def test(char: str) -> bool:
        is_in = char in named or any(low <= char <= high for low, high in ranges)
        return char != "/" and is_in != negated

    return test, place + 1


def _char(pattern: str, place: int) -> tuple[str, int]:
    if pattern[place] == "\\" and place + 1 < len(pattern):
        place += 1
    return pattern[place], place + 1


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
    return Rules(lines) if lines else None


def _lines(folder: int, name: bytes) -> list[str]:
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    try:
        fd = os.open(name, flags, dir_fd=folder)
    except OSError:
        return []
    try:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            return []
        text = to_name(os.read(fd, _MOST).removeprefix(b"\xef\xbb\xbf"))
        return [line.removesuffix("\r") for line in text.split("\n")]
    except OSError:
        return []
    finally:
        os.close(fd)
