"""`Text` and `Seq` against plain strings and lists: every version stays what it was."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, invariant, rule

from ahpd.protocol.persistent import Seq, Text, append_text

LETTERS = st.text("abé😀", max_size=3)
#: Items are (key, value); few keys, so that many are equal.
ITEMS = st.tuples(st.integers(0, 3), st.integers(0, 9))


class Keyed(Seq[tuple[int, int]]):
    """Items found by their first half."""

    @staticmethod
    def key(item: Any) -> int:
        """The first half."""
        return item[0]  # type: ignore[no-any-return]


class Versions(RuleBasedStateMachine):
    """Makes new versions from any older one, and compares all of them with plain values."""

    texts = Bundle("texts")
    seqs = Bundle("seqs")

    def __init__(self) -> None:
        super().__init__()
        self.made: list[tuple[Any, Any]] = []

    def _made(self, new: Any, plain: Any) -> tuple[Any, Any]:
        self.made.append((new, plain))
        return new, plain

    @rule(target=texts, value=LETTERS)
    def text(self, value: str) -> Any:
        return self._made(Text(value), value)

    @rule(target=texts, version=texts, more=LETTERS)
    def append_text(self, version: tuple[Text, str], more: str) -> Any:
        text, plain = version
        return self._made(append_text(text, more), plain + more)

    @rule(version=texts)
    def read_text(self, version: tuple[Text, str]) -> None:
        text, plain = version
        assert str(text) == plain

    @rule(target=seqs, items=st.lists(ITEMS, max_size=4))
    def seq(self, items: list[tuple[int, int]]) -> Any:
        return self._made(Keyed(items), items)

    @rule(target=seqs, version=seqs, item=ITEMS)
    def append(self, version: tuple[Keyed, list[Any]], item: tuple[int, int]) -> Any:
        seq, plain = version
        return self._made(seq.append(item), [*plain, item])

    @rule(target=seqs, version=seqs, items=st.lists(ITEMS, max_size=3))
    def extend(self, version: tuple[Keyed, list[Any]], items: list[tuple[int, int]]) -> Any:
        seq, plain = version
        return self._made(seq.extend(items), plain + items)

    @rule(target=seqs, version=seqs, item=ITEMS, data=st.data())
    def set(self, version: tuple[Keyed, list[Any]], item: tuple[int, int], data: Any) -> Any:
        seq, plain = version
        if not plain:
            return self._made(seq, plain)
        place = data.draw(st.integers(0, len(plain) - 1))
        return self._made(seq.set(place, item), [*plain[:place], item, *plain[place + 1 :]])

    @rule(version=seqs, key=st.integers(0, 3))
    def index_of(self, version: tuple[Keyed, list[Any]], key: int) -> None:
        seq, plain = version
        assert seq.index_of(key) == next((n for n, item in enumerate(plain) if item[0] == key), -1)

    @invariant()
    def nothing_else_changed(self) -> None:
        for new, plain in self.made:
            assert new == plain
            assert len(new) == len(plain)


TestVersions = Versions.TestCase


def test_slices_and_places() -> None:
    seq = Keyed([(1, 1), (2, 2), (3, 3)])
    assert (seq[0], seq[-1], seq[1:]) == ((1, 1), (3, 3), ((2, 2), (3, 3)))
    for place in (3, -4):
        with pytest.raises(IndexError):
            seq[place]
    with pytest.raises(IndexError):
        seq.set(3, (4, 4))


@pytest.mark.parametrize("size", [1, 7])
def test_a_long_text_from_many_chunks(size: int) -> None:
    """Chunks are joined now and then; neither the text nor its older versions show it."""
    text, plain, kept = Text(), "", []
    for number in range(5000):
        more = str(number)[:size]
        text, plain = text.append(more), plain + more
        if number % 700 == 0:
            kept.append((text, plain))
    assert (str(text), len(text)) == (plain, len(plain))
    for version, value in kept:
        assert version == value
        assert str(version.append("!")) == value + "!"
