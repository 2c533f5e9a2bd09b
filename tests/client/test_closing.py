"""A client that is closed while it is doing something."""

from __future__ import annotations

import pytest
import trio

from ahpd.client import ConnectionLost, open_client
from ahpd.protocol.uris import ROOT
from tests.client.support import ROOT_STATE, ScriptedHost, snapshot
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
