"""Globs as editors write them, held against paths relative to what is watched (R-14.6).

``*`` and ``?`` stay within a name, ``**`` goes over any number of names, also none, ``{a,b}`` is
either, ``[a-z]`` and ``[!a-z]`` are one character. What matches a folder matches all in it; so a
pattern without any of these is a path.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

#: Longest pattern (characters), and most of them.
LONGEST = 1000


class Globs:
    """Several patterns; a path fits when one of them does."""

    def __init__(self, patterns: Iterable[str], root: str) -> None:
        """`root` is the path of what is watched: patterns may be absolute. Raises `ValueError`."""
        parts = [_regex(_relative(pattern, root)) for pattern in patterns]
        try:
            self._match = re.compile(f"(?:{'|'.join(parts)})(?:/.*)?", re.DOTALL).fullmatch
        except re.error as error:
            raise ValueError(f"not a glob: {error}") from None

    def fit(self, path: str) -> bool:
        """Whether this path, from the root on and without a slash before it, fits."""
        return self._match(path) is not None


def _relative(pattern: str, root: str) -> str:
    if len(pattern) > LONGEST:
        raise ValueError(f"a glob of more than {LONGEST} characters")
    if pattern.startswith(root.rstrip("/") + "/"):
        pattern = pattern[len(root.rstrip("/")) + 1 :]
    return pattern.removeprefix("./").strip("/")


def _regex(pattern: str) -> str:
    pattern = pattern.removesuffix("/**")
    out: list[str] = []
    place = depth = 0
    while place < len(pattern):
        char = pattern[place]
        place += 1
        if char == "*":
            stars = len(pattern) - len(pattern[place:].lstrip("*")) - place + 1
            place += stars - 1
            begins = place - stars == 0 or pattern[place - stars - 1] in "/{,"
            if stars >= 2 and begins and pattern[place : place + 1] == "/":
                out.append("(?:[^/]+/)*")
                place += 1
            else:
                out.append(".*" if stars >= 2 else "[^/]*")
        elif char == "?":
            out.append("[^/]")
        elif char == "[" and (end := pattern.find("]", place + 1)) > 0:
            inner = pattern[place:end].replace("\\", "\\\\").replace("[", "\\[")
            negated = inner[:1] in ("!", "^")
            out.append(f"(?!/)[{'^' if negated else ''}{inner[negated:]}]")
            place = end + 1
        elif char == "{":
            depth += 1
            out.append("(?:")
        elif char == "}" and depth:
            depth -= 1
            out.append(")")
        elif char == "," and depth:
            out.append("|")
        else:
            out.append(re.escape(char))
    if depth:
        raise ValueError(f"a glob with an open brace: {pattern!r}")
    return "".join(out)
