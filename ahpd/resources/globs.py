"""Globs as editors write them, held against paths relative to what is watched (R-14.6).

``*`` and ``?`` stay within a name, ``**`` goes over any number of names, also none, ``{a,b}`` is
either, ``[a-z]`` and ``[!a-z]`` are one character. What matches a folder matches all in it; so a
pattern without any of these is a path.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

from ahpd.resources.automaton import Automaton, Nodes, anything, in_a_name

#: Longest pattern (characters), and how many characters they may have together.
LONGEST, IN_ALL = 1000, 100_000


class Globs:
    """Several patterns; a path fits when one of them does."""

    def __init__(self, patterns: Iterable[str], root: str) -> None:
        """`root` is the path of what is watched: patterns may be absolute. Raises `ValueError`."""
        nodes, room = Nodes(), IN_ALL
        for pattern in patterns:
            room -= len(pattern)
            if room < 0:
                raise ValueError(f"globs of more than {IN_ALL} characters together")
            nodes.end(_add(nodes, _relative(pattern, root)), 0)
        self._automaton = Automaton(nodes)

    def fit(self, path: str) -> bool:
        """Whether this path, from the root on and without a slash before it, fits."""
        state, go = self._automaton.start, self._automaton.next
        for char in path:
            if char == "/" and state.ended is not None:
                return True
            state = state.known.get(char) or go(state, char)
        return state.ended is not None


def _relative(pattern: str, root: str) -> str:
    if len(pattern) > LONGEST:
        raise ValueError(f"a glob of more than {LONGEST} characters")
    if pattern.startswith(root.rstrip("/") + "/"):
        pattern = pattern[len(root.rstrip("/")) + 1 :]
    return pattern.removeprefix("./").strip("/")


def _add(nodes: Nodes, pattern: str) -> int:
    """Add one pattern; the node where it ends."""
    pattern = pattern.removesuffix("/**")
    at, place = nodes.start, 0
    #: The open braces: where each begins, and where its alternatives up to now end.
    braces: list[tuple[int, list[int]]] = []
    while place < len(pattern):
        char = pattern[place]
        place += 1
        if char == "*":
            stars = len(pattern) - len(pattern[place:].lstrip("*")) - place + 1
            place += stars - 1
            begins = place - stars == 0 or pattern[place - stars - 1] in "/{,"
            if stars >= 2 and begins and pattern[place : place + 1] == "/":
                at = nodes.folders(at)
                place += 1
            else:
                at = nodes.many(at, anything if stars >= 2 else in_a_name)
        elif char == "?":
            at = nodes.one(at, in_a_name)
        elif char == "[" and (end := pattern.find("]", place + 1)) > 0:
            at = nodes.one(at, _one_of(pattern[place:end]))
            place = end + 1
        elif char == "{":
            braces.append((at, []))
            at = nodes.node(at)
        elif char == "," and braces:
            begin, ends = braces[-1]
            ends.append(at)
            at = nodes.node(begin)
        elif char == "}" and braces:
            _, ends = braces.pop()
            at = nodes.node(at, *ends)
        else:
            at = nodes.one(at, char)
    if braces:
        raise ValueError(f"a glob with an open brace: {pattern!r}")
    return at


def _one_of(inner: str) -> Callable[[str], bool]:
    negated = inner[:1] in ("!", "^")
    inner = inner.replace("\\", "\\\\").replace("[", "\\[")
    try:
        match = re.compile(f"(?!/)[{'^' if negated else ''}{inner[negated:]}]", re.DOTALL).match
    except re.error as error:
        raise ValueError(f"not a glob: {error}") from None
    return lambda char: match(char) is not None
