"""Accepting with and without the descriptors that it takes."""

from __future__ import annotations

import errno
import logging
from collections import deque

import pytest
import trio
import trio.testing

from ahpd.transports.accepting import LONGEST_PAUSE, serve_listeners


class Door(trio.abc.Listener[trio.SocketStream]):
    """A listener that does what it is told: fail, or have a connection; then nothing more."""

    def __init__(self, *happens: int | None) -> None:
        self._happens = deque(happens)
        self.tries: list[float] = []

    async def accept(self) -> trio.SocketStream:
        await trio.lowlevel.checkpoint()
        self.tries.append(trio.current_time())
        if not self._happens:
            await trio.sleep_forever()
        number = self._happens.popleft()
        if number is not None:
            raise OSError(number, "no")
        near, far = trio.socket.socketpair()
        far.close()
        return trio.SocketStream(near)

    async def aclose(self) -> None:
        await trio.lowlevel.checkpoint()


async def taken(door: Door) -> int:
    """How many connections are taken off it."""
    count = 0

    async def handler(stream: trio.SocketStream) -> None:
        nonlocal count
        count += 1
        await trio.lowlevel.checkpoint()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(serve_listeners, handler, [door], "here")
        await trio.sleep(1000)
        nursery.cancel_scope.cancel()
    return count


@pytest.mark.parametrize("number", [errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.ENOBUFS])
async def test_a_shortage_is_said_once_and_once_that_it_is_over(
    number: int, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    door = Door(*[number] * 50, None, None, number, None)
    assert await taken(door) == 3
    said = [record.getMessage() for record in caplog.records]
    assert len(said) == 4
    assert all("no connection can be taken now" in text for text in said[::2])
    assert said[1::2] == ["here: connections are taken again"] * 2
    assert all(record.exc_info is None for record in caplog.records)
    pauses = [b - a for a, b in zip(door.tries, door.tries[1:], strict=False)]
    assert max(pauses) == pytest.approx(LONGEST_PAUSE)
    assert sum(pauses[:50]) > 45 * LONGEST_PAUSE


async def test_a_listener_that_is_broken_is_told_to_its_owner() -> None:
    with pytest.RaisesGroup(OSError, flatten_subgroups=True):
        await taken(Door(None, errno.EBADF))
