"""Text and lists that grow at the end without copying: `Text` and `Seq`.

A reducer returns a new state and leaves the old one as it was. For a delta appended to an answer
of ten megabytes, or a turn appended to a chat of ten thousand, copying what was there would make
every step cost as much as all before it. Here old and new share one buffer instead: each version
is the buffer and a length, and only the newest version, whose length *is* the buffer's, appends in
place. Appending to an older version copies first, so no holder ever sees another's growth.

Both are values: never changed once made, equal to plain `str`, `list` and `tuple` values with the
same content. Neither is thread-safe; states belong to one trio thread.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, Generic, Self, TypeAlias, TypeVar, overload

T_co = TypeVar("T_co", covariant=True)

#: Chunks that a `Text` collects before it joins them into one: bounds the memory that many tiny
#: strings need, at a cost that is constant for each append when spread over all of them.
_CHUNKS = 1024


class Text:
    """A string kept as chunks until somebody reads it; ``str(text)`` reads it.

    Invariant: `_chunks[:_count]` joined is this text, and never changes; later entries of the
    shared list belong to longer versions.
    """

    __slots__ = ("_chunks", "_count", "_joined", "length")

    def __init__(self, value: str = "") -> None:
        self._chunks = [value]
        self._count = 1
        self._joined: str | None = value
        #: Length in characters (code points).
        self.length = len(value)

    def append(self, more: str) -> Text:
        """This text followed by `more`; costs the same however long the text is."""
        chunks, count = self._chunks, self._count
        if count != len(chunks):
            chunks = chunks[:count]
        if count >= _CHUNKS:
            chunks, count = _compacted(chunks)
        chunks.append(more)
        new: Text = object.__new__(Text)
        new._chunks = chunks
        new._count = count + 1
        new._joined = None
        new.length = self.length + len(more)
        return new

    def __str__(self) -> str:
        """The whole text; joined once for each version that is read."""
        if self._joined is None:
            self._joined = "".join(self._chunks[: self._count])
        return self._joined

    def first(self, count: int) -> str:
        """Its first `count` characters, or all; costs as much as these."""
        found: list[str] = []
        for chunk in islice(self._chunks, self._count):
            if count <= 0:
                break
            found.append(chunk[:count])
            count -= len(chunk)
        return "".join(found)

    def without_first(self, count: int) -> Text:
        """What comes after the first `count` characters; copies no more than one chunk."""
        place = 0
        while place < self._count and count >= len(self._chunks[place]):
            count -= len(self._chunks[place])
            place += 1
        chunks = self._chunks[place : self._count] or [""]
        chunks[0] = chunks[0][count:]
        new: Text = object.__new__(Text)
        new._chunks = chunks
        new._count = len(chunks)
        new._joined = None
        new.length = sum(map(len, chunks))
        return new

    def __len__(self) -> int:
        """Length in characters."""
        return self.length

    def __eq__(self, other: object) -> bool:
        """Equal to any `str` or `Text` with the same characters."""
        if isinstance(other, Text):
            return self is other or (self.length == other.length and str(self) == str(other))
        return str(self) == other if isinstance(other, str) else NotImplemented

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        """As the string's, so that states print readably."""
        return repr(str(self))


def _compacted(chunks: list[str]) -> tuple[list[str], int]:
    """The same text in few chunks, each at least twice as long as the one behind it.

    Doubling keeps the total copying over a text's life at its length times a logarithm.
    """
    out: list[str] = []
    newest = -(_CHUNKS - _CHUNKS // 8)
    pending = chunks[newest:]
    length = sum(map(len, pending))
    pending.reverse()  # so that older chunks go to its end; each group is joined once, when whole
    for chunk in reversed(chunks[:newest]):
        if len(chunk) >= 2 * length:
            out.append("".join(reversed(pending)))
            pending, length = [chunk], len(chunk)
        else:
            pending.append(chunk)
            length += len(chunk)
    out.append("".join(reversed(pending)))
    out.reverse()
    return out, len(out)


#: The type of fields that deltas append to. Decoding gives `str`; the first append makes a `Text`.
AnyText: TypeAlias = str | Text


def append_text(text: AnyText, more: str) -> Text:
    """`text` followed by `more`."""
    return (text if isinstance(text, Text) else Text(text)).append(more)


class _Index:
    """What is known of the items of one `head` list.

    `places` has the first place of each key, `again` the other places of those that occur more
    than once (but None, which is no key), `tally` the number of items that count, once asked for.
    """

    __slots__ = ("again", "head", "places", "tally")

    def __init__(self, head: list[Any], key: Callable[[Any], Hashable]) -> None:
        self.head = head
        self.places: dict[Hashable, int] = {}
        self.again: dict[Hashable, list[int]] = {}
        self.tally: int | None = None
        for place, item in enumerate(head):
            self.enter(key(item), place)

    def enter(self, key: Hashable, place: int) -> None:
        """The item at the new last place has this key."""
        if self.places.setdefault(key, place) != place and key is not None:
            self.again.setdefault(key, []).append(place)


class Seq(Sequence[T_co], Generic[T_co]):
    """An immutable list with cheap append, cheap change of the last item, and search by key.

    The last item stands outside the shared buffer, because it is the one that a stream changes.
    Subclasses that define `key` can be searched with `index_of` and `places_of` in constant time,
    and those that also define `counts` know how many of their items do.

    Invariant: the items are `_head[:_count]` and then `_last` (nothing when `_count` is -1).
    Invariant: `_index`, where its `head` is `_head`, is right about all of `_head`. It is shared
    with longer versions: a place counts only inside this version.
    """

    __slots__ = ("_count", "_head", "_index", "_last")

    def __init__(self, items: Iterable[T_co] = ()) -> None:
        head = list(items)
        self._count = len(head) - 1
        self._last: Any = head.pop() if head else None
        self._head: list[Any] = head
        self._index: _Index | None = None

    @classmethod
    def _make(cls, head: list[Any], count: int, last: Any, index: _Index | None) -> Self:
        new: Self = object.__new__(cls)
        new._head = head
        new._count = count
        new._last = last
        new._index = index
        return new

    def append(self, item: Any) -> Self:
        """These items and then `item`."""
        count = self._count
        if count < 0:
            return self._make([], 0, item, None)
        head, index = self._head, self._index
        if count != len(head):
            head, index = head[:count], None
        head.append(self._last)
        if index is not None and index.head is head:
            index.enter(self.key(self._last), count)
            if index.tally is not None:
                index.tally += self.counts(self._last)
        return self._make(head, count + 1, item, index)

    def extend(self, items: Iterable[Any]) -> Self:
        """These items and then `items`."""
        new = self
        for item in items:
            new = new.append(item)
        return new

    def set(self, place: int, item: Any) -> Self:
        """These items with the one at `place` (not negative) changed.

        Free for the last place; elsewhere it copies the list of references.
        """
        if not 0 <= place <= self._count:
            raise IndexError(place)
        if place == self._count:
            return self._make(self._head, place, item, self._index)
        return self.set_all({place: item})

    def set_all(self, items: Mapping[int, Any]) -> Self:
        """These items with those at some places (each as for `set`) changed.

        Copies the list of references once, however many they are.
        """
        count, head = self._count, self._head[: self._count]
        last, index = self._last, self._index
        if index is not None and (index.head is not self._head or len(index.head) != count):
            index = None
        tally = 0
        for place, item in items.items():
            if not 0 <= place <= count:
                raise IndexError(place)
            if place == count:
                last = item
                continue
            if index is not None:
                if self.key(head[place]) != self.key(item):
                    index = None
                elif index.tally is not None:
                    tally += self.counts(item) - self.counts(head[place])
            head[place] = item
        if index is not None:
            index.head = head  # the newest version keeps it; older ones build theirs anew
            if index.tally is not None:
                index.tally += tally
        return self._make(head, count, last, index)

    def index_of(self, key: Hashable) -> int:
        """The first place of the item with this key, or -1."""
        count = self._count
        if count < 0:
            return -1
        place = self._indexed().places.get(key, count)
        if place < count:
            return place
        return count if self.key(self._last) == key else -1

    def places_of(self, key: Hashable) -> list[int]:
        """Every place of an item with this key (but None), in order."""
        first = self.index_of(key)
        if first < 0:
            return []
        places = [first]
        if first < self._count:
            more = self._indexed().again.get(key, ())
            places += [place for place in more if place < self._count]
            if self.key(self._last) == key:
                places.append(self._count)
        return places

    def tally(self) -> int:
        """How many items `counts` is true of; asked again of a newer version, it costs nothing."""
        count = self._count
        if count < 0:
            return 0
        index = self._indexed()
        tally = index.tally
        if tally is None or count != len(self._head):
            tally = sum(map(self.counts, islice(self._head, count)))
            if count == len(self._head):
                index.tally = tally
        return tally + self.counts(self._last)

    def _indexed(self) -> _Index:
        index = self._index
        if index is None or index.head is not self._head:
            index = self._index = _Index(self._head, self.key)
        return index

    def in_common(self, other: Seq[Any]) -> int:
        """How many of the first items are the same objects in both."""
        count = 0
        if self._head is other._head:
            count = max(0, min(self._count, other._count))
        for place in range(count, min(len(self), len(other))):
            if self._raw(place) is not other._raw(place):
                break
            count += 1
        return count

    def _raw(self, place: int) -> Any:
        return self._last if place == self._count else self._head[place]

    @staticmethod
    def key(item: Any) -> Hashable:
        """What `index_of` finds an item by; subclasses say what that is."""
        raise AssertionError(f"these items have no key to be searched by: {item!r:.80}")

    @staticmethod
    def counts(item: Any) -> bool:
        """What `tally` counts; subclasses say what that is. Made from the item alone."""
        raise AssertionError(f"these items are not counted: {item!r:.80}")

    def __len__(self) -> int:
        """The number of items."""
        return self._count + 1

    @overload
    def __getitem__(self, place: int) -> T_co: ...
    @overload
    def __getitem__(self, place: slice) -> Sequence[T_co]: ...
    def __getitem__(self, place: int | slice) -> T_co | Sequence[T_co]:
        """One item, or a tuple of some."""
        if isinstance(place, slice):
            return tuple(self)[place]
        if place < 0:
            place += self._count + 1
        if place == self._count >= 0:
            return self._last  # type: ignore[no-any-return]
        if not 0 <= place < self._count:
            raise IndexError(place)
        return self._head[place]  # type: ignore[no-any-return]

    def __iter__(self) -> Iterator[T_co]:
        """The items in order."""
        if self._count >= 0:
            yield from islice(self._head, self._count)
            yield self._last

    def __eq__(self, other: object) -> bool:
        """Equal to any sequence (but a string) with equal items."""
        if self is other:
            return True
        if not isinstance(other, (Seq, list, tuple)):
            return NotImplemented
        return len(self) == len(other) and all(
            mine == theirs for mine, theirs in zip(self, other, strict=True)
        )

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        """The items, as a list shows them."""
        return repr(list(self))
