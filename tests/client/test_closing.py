"""A client that is closed while it is doing something."""

from __future__ import annotations

from contextlib import suppress

import pytest
import trio

from ahpd.client import Client, ConnectionLost, open_client
from ahpd.protocol.uris import ROOT
from tests.client.support import (
    CHAT,
    ROOT_STATE,
    Diary,
    ScriptedHost,
    envelope,
    snapshot,
    started,
)
from tests.wire import Wiretap


async def test_an_attempt_under_way_ends_with_the_client(wire: Wiretap) -> None:
    host = ScriptedHost(wire)
    ended: list[str] = []

    async def come_back() -> None:
        try:
            await client.reconnect_now()
        except ConnectionLost as lost:
            ended.append(lost.reason)

    async def slowly() -> object:
        await trio.sleep(5)
        return await connect()

    connect = host.connect
    async with trio.open_nursery() as nursery:

        async def welcome() -> None:
            await (await host.accept()).welcome(snapshot(ROOT_STATE, 1, ROOT), number=1)

        nursery.start_soon(welcome)
        async with open_client(lambda: host.connect(), client_id="phone", backoff=None) as client:
            host.connect = slowly  # type: ignore[method-assign, assignment]
            nursery.start_soon(come_back)
            await trio.sleep(1)
    assert ended == ["the client was closed"]
    with pytest.raises(ConnectionLost, match="closed"):
        await client.reconnect_now()


async def test_what_was_held_back_for_a_snapshot_does_not_end_an_operation_twice(
    wire: Wiretap,
) -> None:
    host, diary = ScriptedHost(wire), Diary()
    async with trio.open_nursery() as nursery:

        async def play() -> None:
            side = await host.accept()
            await side.welcome(snapshot(number=10), number=10)
            await side.expect_dispatch()
            await side.expect("subscribe")
            await side.tell(envelope(11, started("t1"), by=("phone", 1)))

        nursery.start_soon(play)
        async with open_client(
            host.connect,
            client_id="phone",
            subscriptions=(CHAT,),
            observer=diary.observer(),
            backoff=None,
        ) as client:
            operation = client.dispatch(CHAT, started("t1"))
            nursery.start_soon(subscribe_in_vain, client)
            await trio.sleep(1)
        assert operation.outcome is not None
        assert operation.outcome.kind == "unanswered"


async def subscribe_in_vain(client: Client) -> None:
    with suppress(ConnectionLost):
        await client.subscribe(CHAT)
