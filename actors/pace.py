"""`Pace`: how a terminal's output is gathered, and how fast it is taken from it.

A program can write faster than anything else here can read. So of one terminal one message is under
way at a time: while it becomes durable and goes out, what comes is gathered, up to a bound, and is
the next. A key's echo goes at once, then, and a flood in messages that are as long as it takes.
What all terminals have under way is bounded too (`actors.share`).

A terminal is read no further while what it said waits, and while those who hear it have much to
read still: the program waits then, as it does for any slow terminal. Memory stays bounded by what
is gathered and under way, and others wait for no more than that either.

Somebody who reads nothing at all holds it up once, for a while, and is not waited for any more: it
is cut off when too much waits for it (R-1.40).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import trio
from msgspec import Struct

from actors.host import Host
from actors.ledger import Channel
from actors.subscriptions import Listener
from ahpd.terminals.port import Output, Piece

#: Bytes that are gathered, above which nothing more is read. One message may be a read longer.
GATHERED = 256 << 10
#: Bytes that wait for somebody who hears it, above which it is waited for.
BEHIND = 1 << 20
#: Seconds that it is waited for while it reads nothing, and between two looks.
PATIENCE, LOOK_EVERY = 1.0, 0.005
#: Seconds until the next read after one that brought less than so many bytes, while a message is
#: under way: it is the more worth for it.
READ_EVERY, MUCH = 0.001, 32 << 10
#: What a piece costs besides its text.
_PIECE = 64


class Shown(Struct, frozen=True):
    """What the process has said; `size` is roughly its bytes."""

    pieces: Sequence[Piece]
    size: int


class Pace:
    """See the module. Of one terminal; its reader adds, its sender takes."""

    def __init__(self, host: Host, channel: Channel) -> None:
        self._host = host
        self._channel = channel
        self._pieces: list[Piece] = []
        self._size = 0
        self._is_over = self._is_closed = False
        #: Bytes of the message that is under way.
        self._under_way = 0
        self._moved = trio.Event()
        self._stalled: set[Listener] = set()

    # ---- the reader's -------------------------------------------------------------------------

    async def add(self, pieces: Sequence[Piece]) -> None:
        """This was read; waits until more may be."""
        size = sum(map(_weight, pieces))
        self._pieces += pieces
        self._size += size
        self._stir()
        if self._under_way and size < MUCH:
            await trio.sleep(READ_EVERY)
        while self._size > GATHERED:
            await self._moved.wait()

    def end(self) -> None:
        """That was all."""
        self._is_over = True
        self._stir()

    # ---- the sender's -------------------------------------------------------------------------

    async def take(self) -> Shown | None:
        """The next message, when it may go; None: that was all. `said` must follow."""
        while self._under_way or not self._pieces:
            if self._is_over and not self._pieces:
                return None
            await self._moved.wait()
        await self._host.ledger.room.wait()
        behind = self._behind()
        if behind:
            await self._wait_for(behind)
        size = self._size  # what comes while it waits for its turn goes with it, and is bounded
        await self._host.share.take(size)
        if self._is_closed:
            self._host.share.give(size)
            await trio.sleep_forever()
        pieces, self._pieces, self._size = self._pieces, [], 0
        self._under_way = size
        self._stir()
        return Shown(_joined(pieces), size)

    def said(self, size: int) -> None:
        """A message is in the queue of what goes out."""
        self._host.ledger.post(partial(self._out, size))

    def close(self) -> None:
        """Its actor ends: what is under way, and what still comes, goes nowhere."""
        self._is_closed = True
        self._out(self._under_way)

    def _out(self, size: int) -> None:
        if self._under_way:
            self._under_way = 0
            self._host.share.give(size)
            self._stir()

    def _stir(self) -> None:
        self._moved.set()
        self._moved = trio.Event()

    def _behind(self) -> dict[Listener, int]:
        hearers = self._host.subscriptions.of(self._channel.uri)
        behind = {each: each.backlog for each in hearers if each.backlog > BEHIND}
        self._stalled &= behind.keys()
        return {each: size for each, size in behind.items() if each not in self._stalled}

    async def _wait_for(self, behind: dict[Listener, int]) -> None:
        patience = trio.current_time() + PATIENCE
        while behind:
            await trio.sleep(LOOK_EVERY)
            now = self._behind()
            if any(now.get(each, 0) < size for each, size in behind.items()):
                patience = trio.current_time() + PATIENCE
            elif trio.current_time() >= patience:
                self._stalled |= now.keys()
                return
            behind = now


def _weight(piece: Piece) -> int:
    return _PIECE + (len(piece.text) if isinstance(piece, Output) else 0)


def _joined(pieces: Sequence[Piece]) -> Sequence[Piece]:
    """The same with neighbouring texts as one."""
    if len(pieces) == 1:
        return pieces
    found: list[Piece] = []
    texts: list[str] = []
    for piece in pieces:
        if isinstance(piece, Output):
            texts.append(piece.text)
            continue
        if texts:
            found.append(Output("".join(texts)))
            texts = []
        found.append(piece)
    if texts:
        found.append(Output("".join(texts)))
    return found
