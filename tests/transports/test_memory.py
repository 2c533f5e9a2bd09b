from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
import trio
import trio.testing

from ahpd.protocol.frame import Frame
from ahpd.transports.memory import memory_pair
from ahpd.transports.port import TransportClosed
from tests.transports import contract
from tests.transports.contract import Pair, frames, take


@asynccontextmanager
async def pair() -> AsyncIterator[Pair]:
    near, far = memory_pair(capacity=2_000_000)

    async def cut() -> None:
        far.cut()

    yield Pair(near, far, cut)
    await near.close()
    await far.close()


@contract.every_check
async def test_contract(check: contract.Check) -> None:
    await contract.run(check, pair)


async def test_held_messages_wait_and_pass_one_by_one_in_order() -> None:
    near, far = memory_pair()
    near.inbound.hold()
    sent = frames(4)
    await far.send(sent)
    got: list[bytes] = []

    async def receive() -> None:
        while True:
            got.append(await near.receive())

    async with trio.open_nursery() as nursery:
        nursery.start_soon(receive)
        await trio.testing.wait_all_tasks_blocked()
        assert (got, len(near.inbound)) == ([], 4)
        near.inbound.deliver(3)
        await trio.testing.wait_all_tasks_blocked()
        assert got == [frame.text for frame in sent[:3]]
        near.inbound.release()
        await trio.testing.wait_all_tasks_blocked()
        assert len(got) == 4
        nursery.cancel_scope.cancel()


async def test_delivery_may_be_allowed_ahead_of_the_messages() -> None:
    near, far = memory_pair()
    near.inbound.hold()
    near.inbound.deliver(1)
    await far.send(frames(2))
    assert await take(near, 1) == [b'{"n":0}']
    with trio.move_on_after(1) as scope:
        await near.receive()
    assert scope.cancelled_caught


async def test_the_end_waits_behind_held_messages() -> None:
    near, far = memory_pair()
    near.inbound.hold()
    await far.send(frames(1))
    await far.close(1001, "bye")
    with trio.move_on_after(1) as scope:
        await near.receive()
    assert scope.cancelled_caught
    near.inbound.release()
    assert await take(near, 1) == [b'{"n":0}']
    with pytest.raises(TransportClosed, match="bye") as caught:
        await near.receive()
    assert (caught.value.code, caught.value.clean) == (1001, True)


async def test_a_cut_loses_what_was_not_received_both_ways() -> None:
    near, far = memory_pair()
    near.inbound.hold()
    await far.send(frames(3))
    await near.send(frames(3))
    near.cut()
    for end in (near, far):
        with pytest.raises(TransportClosed) as caught:
            await end.receive()
        assert (caught.value.code, caught.value.clean) == (1006, False)
        with pytest.raises(TransportClosed):
            await end.send(frames(1))


async def test_dropped_messages_are_given_to_the_test() -> None:
    near, far = memory_pair()
    await far.send(frames(2))
    assert near.inbound.drop() == [b'{"n":0}', b'{"n":1}']
    assert near.inbound.waiting_bytes == 0
    await far.send(frames(1, start=9))
    assert await take(near, 1) == [b'{"n":9}']


async def test_a_full_lane_makes_the_sender_wait() -> None:
    near, far = memory_pair(capacity=10)
    with trio.move_on_after(1) as scope:
        await far.send([Frame(b"12345678"), Frame(b"12345678"), Frame(b"never")])
    assert scope.cancelled_caught
    assert near.inbound.waiting_bytes == 16
    assert await take(near, 2) == [b"12345678"] * 2
    await far.send([Frame(b"again")])
    assert await take(near, 1) == [b"again"]
