"""`Pace`: how fast a terminal's output is taken from it.

A program can write faster than anything else here can read. So a terminal is read no further while
what was read last is not yet durable and out, and while those who hear it have much to read still:
the program waits then, as it does for any slow terminal. Memory stays bounded by what is under way,
and others wait for no more than that either.

Somebody who reads nothing at all holds it up once, for a while, and is not waited for any more: it
is cut off when too much waits for it (R-1.40).
"""

from __future__ import annotations

from functools import partial

import trio

from actors.host import Host
from actors.ledger import Channel
from actors.subscriptions import Listener

#: Bytes that were read and are not out yet, above which nothing more is read.
UNDER_WAY = 128 << 10
#: Bytes that wait for somebody who hears it, above which it is waited for.
BEHIND = 1 << 20
#: Seconds that it is waited for while it reads nothing, and between two looks.
PATIENCE, LOOK_EVERY = 1.0, 0.005


class Pace:
    """See the module. Of one terminal, for its reader."""

    def __init__(self, host: Host, channel: Channel) -> None:
        self._host = host
        self._channel = channel
        self._under_way = 0
        self._moved = trio.Event()
        self._stalled: set[Listener] = set()

    def brought(self, size: int) -> None:
        """So many bytes were read, and are on their way to be said."""
        self._under_way += size

    def said(self, size: int) -> None:
        """They are in the queue of what goes out."""
        self._host.ledger.post(partial(self._out, size))

    def _out(self, size: int) -> None:
        self._under_way -= size
        if self._under_way <= UNDER_WAY:
            self._moved.set()
            self._moved = trio.Event()

    async def wait(self) -> None:
        """Until more may be read. No checkpoint when it may at once."""
        await self._host.ledger.room.wait()
        while self._under_way > UNDER_WAY:
            await self._moved.wait()
        behind = self._behind()
        if behind:
            await self._wait_for(behind)

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
