"""What every transport must do, as functions that take a way to open a connected pair.

`Open` gives (near, far): near is under test, far is a real peer of it that speaks the port too.
`every_check` makes a test of each; each opens a connection of its own.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from typing import TypeAlias

import attrs
import pytest
import trio
import trio.testing

from ahpd.protocol.frame import Frame
from ahpd.protocol.jsontext import dumps
from ahpd.transports.port import Transport, TransportClosed

#: Seconds after which a check that hangs fails. No check measures time.
PATIENCE = 60


@attrs.frozen
class Pair:
    """A connected pair. `cut` breaks it rudely from far's side, where the carrier can do that."""

    near: Transport
    far: Transport
    cut: Callable[[], Awaitable[None]] | None = None


Open: TypeAlias = Callable[[], AbstractAsyncContextManager[Pair]]


def text_of(message: bytes | str) -> bytes:
    """The UTF-8 of a received message, whichever form the transport gives it in."""
    return message.encode() if isinstance(message, str) else message


def frames(count: int, start: int = 0) -> list[Frame]:
    return [Frame(dumps({"n": number})) for number in range(start, start + count)]


async def take(transport: Transport, count: int) -> list[bytes]:
    return [text_of(await transport.receive()) for _ in range(count)]


async def send_for_ever(transport: Transport, frames: list[Frame]) -> None:
    while True:
        await transport.send(frames)


async def check_order_both_ways(open_pair: Open) -> None:
    sent = frames(500)
    async with open_pair() as pair, trio.open_nursery() as nursery:
        for sender, receiver in ((pair.near, pair.far), (pair.far, pair.near)):

            async def send(sender: Transport = sender) -> None:
                for index in range(0, len(sent), 7):
                    await sender.send(sent[index : index + 7])

            nursery.start_soon(send)
            assert await take(receiver, len(sent)) == [frame.text for frame in sent]


async def check_many_in_one_send(open_pair: Open) -> None:
    sent = frames(5_000)
    async with open_pair() as pair, trio.open_nursery() as nursery:
        nursery.start_soon(pair.near.send, sent)
        assert await take(pair.far, len(sent)) == [frame.text for frame in sent]
        await pair.near.send([])


async def check_large(open_pair: Open) -> None:
    """Large ones among small ones, both ways (HAZARDS B20, B23)."""
    for size in (125, 126, 65_535, 65_536, 300_000, 5 * 1024 * 1024):
        sent = [Frame(b'"a"'), Frame(dumps("x" * (size - 2))), Frame(b'"z"')]
        assert len(sent[1]) == size
        async with open_pair() as pair, trio.open_nursery() as nursery:
            nursery.start_soon(pair.near.send, sent)
            assert await take(pair.far, 3) == [frame.text for frame in sent]
            nursery.start_soon(pair.far.send, sent)
            assert await take(pair.near, 3) == [frame.text for frame in sent]


async def check_text_is_untouched(open_pair: Open) -> None:
    """Characters that some readers split on or change, raw inside JSON strings (B37)."""
    texts = [
        "a\u2028b\u2029c\u0085d\u000be",
        "\ufeffbom",
        "\x7f\x1f \\",
        "日本語 🎉 \U0010ffff",
        "",
    ]
    sent = [Frame(dumps({"text": text})) for text in texts]
    async with open_pair() as pair:
        await pair.near.send(sent)
        assert await take(pair.far, len(sent)) == [frame.text for frame in sent]
        await pair.far.send(sent)
        assert await take(pair.near, len(sent)) == [frame.text for frame in sent]


async def check_ill_formed_text_is_handed_on(open_pair: Open) -> None:
    """Whoever decodes answers it (B67, B68); to a transport all text is the same."""
    texts = (
        b"NaN",
        b"1e999",
        b"[" * 100_000,
        b"9" * 100_000,
        b"[]",
        b'"x"',
        b"{",
        b'{"a":1,"a":2}',
    )
    async with open_pair() as pair, trio.open_nursery() as nursery:
        nursery.start_soon(pair.far.send, [Frame(text) for text in texts])
        assert await take(pair.near, len(texts)) == list(texts)


async def check_cancelled_receive_loses_nothing(open_pair: Open) -> None:
    sent = frames(300)
    async with open_pair() as pair, trio.open_nursery() as nursery:

        async def send() -> None:
            for frame in sent:
                await pair.far.send([frame])
                await trio.lowlevel.checkpoint()

        nursery.start_soon(send)
        got: list[bytes] = []
        attempt = 0
        while len(got) < len(sent):
            attempt += 1
            with trio.CancelScope() as scope:
                if attempt % 2:  # cancelled at the first checkpoint that waits
                    scope.cancel()
                elif attempt % 3 == 0:
                    scope.deadline = trio.current_time() + 0.0005
                got.append(text_of(await pair.near.receive()))
        assert got == [frame.text for frame in sent]


async def check_what_was_sent_before_a_close_arrives(open_pair: Open) -> None:
    sent = frames(50)
    async with open_pair() as pair:
        await pair.far.send(sent)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(pair.far.close)
            assert await take(pair.near, len(sent)) == [frame.text for frame in sent]
            for _ in range(2):
                with pytest.raises(TransportClosed) as caught:
                    await pair.near.receive()
                assert caught.value.clean
                assert caught.value.reason


async def check_close_wakes_everybody(open_pair: Open) -> None:
    async with open_pair() as pair:
        ended: list[str] = []

        async def wait(transport: Transport, name: str) -> None:
            with pytest.raises(TransportClosed):
                await transport.receive()
            ended.append(name)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(wait, pair.near, "near")
            nursery.start_soon(wait, pair.far, "far")
            await trio.testing.wait_all_tasks_blocked(0.01)
            await pair.near.close(1001, "going away")
        assert sorted(ended) == ["far", "near"]


async def check_closed_is_closed(open_pair: Open) -> None:
    async with open_pair() as pair:
        await pair.near.close()
        await pair.near.close(1011, "again")
        with pytest.raises(TransportClosed):
            await pair.near.send(frames(1))
        with pytest.raises(TransportClosed):
            await pair.near.receive()


async def check_sending_to_a_peer_that_left(open_pair: Open) -> None:
    """Every path ends in `TransportClosed`, never in another exception."""
    big = Frame(dumps("x" * 1_000_000))
    async with open_pair() as pair:
        await pair.far.close()
        with pytest.raises(TransportClosed):
            await send_for_ever(pair.near, [big])


async def check_a_rude_end_while_sending(open_pair: Open) -> None:
    """The peer vanishes in the middle of 10 MiB (B01 f)."""
    big = [Frame(dumps("x" * 1_000_000))] * 10
    async with open_pair() as pair:
        if pair.cut is None:
            return

        async def send() -> None:
            with pytest.raises(TransportClosed):
                await send_for_ever(pair.near, big)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(send)
            await trio.testing.wait_all_tasks_blocked(0.01)
            await pair.cut()
            with pytest.raises(TransportClosed) as caught:
                await pair.near.receive()
            assert not caught.value.clean or caught.value.code == 1000
        await pair.near.close()


async def check_close_while_a_send_is_stuck(open_pair: Open) -> None:
    """A peer that does not read can be let go of, within a bound."""
    big = [Frame(dumps("x" * 1_000_000))] * 40
    async with open_pair() as pair:
        stuck = trio.Event()

        async def send() -> None:
            with pytest.raises(TransportClosed):
                await send_for_ever(pair.near, big)
            stuck.set()

        async with trio.open_nursery() as nursery:
            nursery.start_soon(send)
            await trio.testing.wait_all_tasks_blocked(0.01)
            await pair.near.close(1013, "you do not read")
            await stuck.wait()


Check: TypeAlias = Callable[[Open], Awaitable[None]]

CHECKS: tuple[Check, ...] = (
    check_order_both_ways,
    check_many_in_one_send,
    check_large,
    check_text_is_untouched,
    check_ill_formed_text_is_handed_on,
    check_cancelled_receive_loses_nothing,
    check_what_was_sent_before_a_close_arrives,
    check_close_wakes_everybody,
    check_closed_is_closed,
    check_sending_to_a_peer_that_left,
    check_a_rude_end_while_sending,
    check_close_while_a_send_is_stuck,
)

every_check = pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__[6:])


async def run(check: Check, open_pair: Open) -> None:
    with trio.fail_after(PATIENCE):
        await check(open_pair)
