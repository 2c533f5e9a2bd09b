"""`Text` and `Seq` behave as `str` and `list`, and nobody sees another's growth."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ahpd.protocol.persistent import _CHUNKS, Seq, Text, append_text
from tests.protocol.strategies import examples

#: Which of the versions so far is changed, and with what.
STEPS = st.lists(st.tuples(st.integers(0, 50), st.text(max_size=3)), max_size=30)


@given(start=st.text(), steps=STEPS)
@examples(20)
def test_every_version_of_a_text_stays_what_it_was(
    start: str, steps: list[tuple[int, str]]
) -> None:
    versions, plain = [Text(start)], [start]
    for which, more in steps:
        which %= len(versions)
        versions.append(versions[which].append(more))
        plain.append(plain[which] + more)
    assert [str(version) for version in versions] == plain
    assert [len(version) for version in versions] == [len(text) for text in plain]


@pytest.mark.parametrize("piece", ["a", "ab" * 40])
def test_a_text_of_many_pieces_is_their_join(piece: str) -> None:
    text, middle = Text(), Text()
    for number in range(5 * _CHUNKS):
        text = text.append(piece)
        if number == 2 * _CHUNKS:
            middle = text
    assert str(text) == piece * 5 * _CHUNKS
    assert str(middle) == piece * (2 * _CHUNKS + 1)
    assert len(text._chunks) <= _CHUNKS + 1


def test_an_older_text_that_is_appended_to_leaves_the_newer_alone() -> None:
    old = Text()
    for _ in range(3 * _CHUNKS):
        old = old.append("x")
    new, other = old.append("new"), old.append("other")
    assert str(new).endswith("xnew")
    assert str(other).endswith("xother")
    assert set(str(old)) == {"x"}


def test_a_text_equals_texts_and_strings_with_its_characters() -> None:
    made = Text("a").append("b")
    assert made == "ab"
    assert made == Text("ab")
    assert made != "ba"
    assert made != 7
    assert repr(made) == "'ab'"
    assert str(append_text("a", "b")) == str(append_text(Text("a"), "b")) == "ab"
    with pytest.raises(TypeError):
        hash(made)


class Keyed(Seq[Any]):
    """Items that are pairs, found by their first (0 is none), counted when their second is odd."""

    @staticmethod
    def key(item: Any) -> Hashable:
        """The first of the pair."""
        return item[0] or None

    @staticmethod
    def counts(item: Any) -> bool:
        """Whether the second is odd."""
        return bool(item[1] % 2)


ITEM = st.tuples(st.integers(0, 9), st.integers(0, 99))
CHANGES = st.lists(
    st.tuples(
        st.integers(0, 50),
        st.sampled_from(("append", "set", "alike", "set_all", "extend")),
        st.integers(0, 50),
        ITEM,
    ),
    max_size=30,
)


def check(seq: Keyed, plain: list[Any]) -> None:
    assert seq == plain
    assert list(seq) == plain
    assert len(seq) == len(plain)
    assert bool(seq) == bool(plain)
    for key in range(1, 10):
        places = [place for place, item in enumerate(plain) if item[0] == key]
        assert seq.index_of(key) == (places or [-1])[0]
        assert seq.places_of(key) == places
    assert seq.tally() == sum(item[1] % 2 for item in plain)
    for place in range(-len(plain), len(plain)):
        assert seq[place] == plain[place]


@given(start=st.lists(ITEM, max_size=5), changes=CHANGES, search=st.booleans())
@examples(30)
def test_every_version_of_a_list_stays_what_it_was(
    start: list[Any], changes: list[tuple[int, str, int, Any]], search: bool
) -> None:
    versions, plain = [Keyed(start)], [list(start)]
    for which, what, place, item in changes:
        which %= len(versions)
        seq, items = versions[which], plain[which]
        if search:  # so that the index exists before the change
            assert seq.places_of(place % 10 or 1) == [
                at for at, each in enumerate(items) if each[0] == (place % 10 or 1)
            ]
            assert seq.tally() == sum(each[1] % 2 for each in items)
        if what in ("set", "alike") and items:
            place %= len(items)
            if what == "alike":  # the same key, as a reducer does it
                item = (items[place][0], item[1])
            versions.append(seq.set(place, item))
            plain.append([*items[:place], item, *items[place + 1 :]])
        elif what == "set_all" and items:
            moved = {at: (items[at][0], item[1]) for at in range(place % len(items), len(items))}
            versions.append(seq.set_all(moved))
            plain.append([moved.get(at, each) for at, each in enumerate(items)])
        elif what == "extend":
            versions.append(seq.extend([item, item]))
            plain.append([*items, item, item])
        else:
            versions.append(seq.append(item))
            plain.append([*items, item])
    for seq, items in zip(versions, plain, strict=True):
        check(seq, items)


@pytest.mark.parametrize("place", [-1, 2, 100])
def test_a_place_that_is_not_there_cannot_be_set(place: int) -> None:
    with pytest.raises(IndexError):
        Seq([1, 2]).set(place, 3)
    with pytest.raises(IndexError):
        Seq[int]().set(0, 3)
    with pytest.raises(IndexError):
        Seq([1, 2]).set_all({0: 3, place: 3})


@pytest.mark.parametrize("place", [2, -3, 100])
def test_a_place_that_is_not_there_cannot_be_read(place: int) -> None:
    with pytest.raises(IndexError):
        Seq([1, 2])[place]
    with pytest.raises(IndexError):
        Seq[int]()[place]


def test_a_list_is_a_sequence_and_equals_others() -> None:
    seq = Seq([1, 2, 3])
    assert seq[1:] == (2, 3)
    assert 2 in seq
    assert seq == (1, 2, 3) == Seq([1, 2, 3])
    assert seq != [1, 2]
    assert seq != "123"
    assert repr(seq) == "[1, 2, 3]"
    assert list(reversed(seq)) == [3, 2, 1]
    with pytest.raises(TypeError):
        hash(seq)


def test_a_list_without_keys_cannot_be_searched() -> None:
    with pytest.raises(AssertionError, match="no key"):
        Seq([1, 2]).index_of(1)
    with pytest.raises(AssertionError, match="not counted"):
        Seq([1]).tally()
    assert Seq[int]().tally() == 0
    assert Seq[int]().places_of(1) == []


def test_a_text_is_cut_at_its_beginning_at_any_place() -> None:
    whole = "".join(f"{number}," for number in range(40))
    text = Text()
    for start in range(0, len(whole), 7):
        text = text.append(whole[start : start + 7])
    for place in range(len(whole) + 2):
        rest = text.without_first(place)
        assert text.first(place) == whole[:place]
        assert str(rest) == whole[place:]
        assert len(rest) == len(whole[place:])
        assert str(rest.append("more")) == whole[place:] + "more"
    assert str(text) == whole
