"""Many patterns of names, held against a text in one walk over it, a character at a time.

A regular expression tries one way after another, and with a few ``*`` that can take for ever, in
which nothing else in the process runs. Here all ways are gone at once, so that a text of *n*
characters takes *n* steps whatever the patterns are: nodes that can be reached together are one
state, which is made when it is first come to and kept for the next text.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from typing import TypeAlias

#: What a character has to be: this one, or one of which this is true.
Test: TypeAlias = str | Callable[[str], bool]

#: Nodes in the states that are kept; beyond, they are made anew.
_KEPT = 1_000_000


def anything(_: str) -> bool:
    """Any character."""
    return True


def in_a_name(char: str) -> bool:
    """Any character that a name is made of."""
    return char != "/"


class Nodes:
    """The patterns, as nodes and the ways between them: a character, or none at all."""

    def __init__(self) -> None:
        self._tests: list[Test | None] = []
        self._next: list[int] = []
        self._free: dict[int, list[int]] = {}
        #: Where patterns end, and the number of each.
        self._ends: dict[int, int] = {}
        self.start = self.node()

    def node(self, *before: int) -> int:
        """A new one, that is reached from these by no character."""
        self._tests.append(None)
        self._next.append(-1)
        node = len(self._tests) - 1
        for each in before:
            self.join(each, node)
        return node

    def join(self, node: int, other: int) -> None:
        """Whoever is at this node is at the other as well."""
        self._free.setdefault(node, []).append(other)

    def one(self, node: int, test: Test) -> int:
        """One such character; the node behind it."""
        own, after = self.node(node), self.node()
        self._tests[own], self._next[own] = test, after
        return after

    def many(self, node: int, test: Test) -> int:
        """Any number of them, also none."""
        own = self.node(node)
        self._tests[own], self._next[own] = test, own
        return self.node(own)

    def folders(self, node: int) -> int:
        """Any number of names, also none, each with a slash behind it."""
        own = self.node(node)
        name = self.many(self.one(own, in_a_name), in_a_name)
        self.join(self.one(name, "/"), own)
        return own

    def end(self, node: int, number: int) -> None:
        """Here the pattern of this number ends."""
        self._ends[node] = max(number, self._ends.get(node, -1))

    def closed(self, nodes: Collection[int]) -> frozenset[int]:
        """These, and all that are reached from them by no character."""
        found, todo = set(nodes), list(nodes)
        while todo:
            for other in self._free.get(todo.pop(), ()):
                if other not in found:
                    found.add(other)
                    todo.append(other)
        return frozenset(found)

    def ways(self, nodes: Collection[int]) -> Iterator[tuple[Test, int]]:
        """What leads on from these, and where to."""
        for node in nodes:
            test = self._tests[node]
            if test is not None:
                yield test, self._next[node]

    def ended(self, nodes: Collection[int]) -> int | None:
        """The highest number of a pattern that ends at one of these."""
        return max((self._ends[node] for node in nodes if node in self._ends), default=None)


class State:
    """Where the walk is: at several nodes at a time. `ended`: the highest pattern that fits."""

    def __init__(self, nodes: Nodes, at: frozenset[int]) -> None:
        self.ended = nodes.ended(at)
        self.known: dict[str, State] = {}
        self._exact: dict[str, list[int]] = {}
        self._tests: list[tuple[Callable[[str], bool], int]] = []
        for test, after in nodes.ways(at):
            if isinstance(test, str):
                self._exact.setdefault(test, []).append(after)
            else:
                self._tests.append((test, after))

    def after(self, char: str) -> list[int]:
        """The nodes behind this character."""
        return [
            *self._exact.get(char, ()),
            *(after for test, after in self._tests if test(char)),
        ]


class Automaton:
    """Patterns that are all there: see the module's docstring. Any thread."""

    def __init__(self, nodes: Nodes) -> None:
        self._nodes = nodes
        self._states: dict[frozenset[int], State] = {}
        self._kept = 0
        self.start = self._state([nodes.start])

    def next(self, state: State, char: str) -> State:
        """Where this character leads to."""
        found = state.known.get(char)
        if found is None:
            found = state.known[char] = self._state(state.after(char))
        return found

    def _state(self, nodes: Collection[int]) -> State:
        at = self._nodes.closed(nodes)
        found = self._states.get(at)
        if found is None:
            self._kept += len(at) + 1
            if self._kept > _KEPT and self._states:
                self._states, self._kept = {}, len(at) + 1
                self.start = self._state([self._nodes.start])
            found = self._states[at] = State(self._nodes, at)
        return found
