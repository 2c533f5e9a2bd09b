"""Clients that go away: how long they keep their place in sessions, and when it ends at once."""

from __future__ import annotations

from typing import Any

import pytest
import trio

from ahpd.protocol.uris import ROOT
from supervisors import sys
from tests.actors.support import C, S, refused, room
from tests.harness import RawPeer, RunningHost, running_host
from tests.harness.replicas import state_of


async def take_part(peer: RawPeer) -> None:
    client = {"clientId": "ann", "tools": []}
    await peer.dispatch(S, {"type": "session/activeClientSet", "activeClient": client})
    await peer.expect_action("session/activeClientSet")


def taking_part(host: RunningHost) -> list[str]:
    return [client["clientId"] for client in state_of(host, S)["activeClients"]]


async def test_r_10_36_a_client_leaves_30_s_after_its_last_connection_did() -> None:
    async with running_host() as host:
        one = await room(host)
        await take_part(one)
        transport = one._transport
        two = await room(host, "ann", subscribe=(S,))
        bob = await room(host, "bob")
        await transport.close()
        await trio.sleep(300)
        assert taking_part(host) == ["ann"]
        await two.close()
        await trio.sleep(29)
        assert taking_part(host) == ["ann"]
        removed = await bob.expect_action("session/activeClientRemoved", within=2)
        assert removed["action"]["clientId"] == "ann"
        assert "origin" not in removed


async def test_a_client_that_comes_back_in_time_stays_and_each_absence_has_its_own_clock() -> None:
    async with running_host() as host:
        peer = await room(host)
        await take_part(peer)
        for _ in range(4):
            peer.cut()
            await trio.sleep(20)
            peer = await host.peer("ann")
            await peer.request(
                "reconnect",
                clientId="ann",
                lastSeenServerSeq=host.ledger.seq,
                subscriptions=[ROOT, S],
            )
            await trio.sleep(15)
            assert taking_part(host) == ["ann"]
        peer.cut()
        await trio.sleep(31)
        assert taking_part(host) == []


@pytest.mark.parametrize("kills", [(10.0,), (10.0, 10.0), (9.0, 9.0, 9.0)])
async def test_a_clock_that_was_killed_goes_on_where_it_stood(kills: tuple[float, ...]) -> None:
    async with running_host() as host:
        peer = await room(host)
        await take_part(peer)
        peer.cut()
        for after in kills:
            await trio.sleep(after)
            sys.kill(host.system.ref("grace"))
        await trio.sleep(29 - sum(kills))
        assert taking_part(host) == ["ann"]
        await trio.sleep(4)
        assert taking_part(host) == []


@pytest.mark.parametrize("how", ["reconnect without it", "unsubscribe"])
async def test_r_6_19_a_client_that_lets_go_of_a_session_leaves_it_at_once(how: str) -> None:
    async with running_host() as host:
        peer = await room(host)
        await take_part(peer)
        bob = await room(host, "bob")
        if how == "unsubscribe":
            await peer.notify("unsubscribe", channel=S)
        else:
            peer.cut()
            peer = await host.peer("ann")
            await peer.request(
                "reconnect",
                clientId="ann",
                lastSeenServerSeq=host.ledger.seq,
                subscriptions=[ROOT, C],
            )
        begun = trio.current_time()
        await bob.expect_action("session/activeClientRemoved")
        assert trio.current_time() - begun < 1
        assert taking_part(host) == []


async def test_a_client_that_no_replay_could_serve_any_more_is_forgotten() -> None:
    async with running_host(replay=5) as host:
        ann, bob = await room(host), await room(host, "bob")
        ann.cut()
        for number in range(20):
            await bob.dispatch(C, {"type": "chat/isReadChanged", "isRead": number % 2 == 0})
        await trio.sleep(60)
        again = await host.peer("ann")
        params: dict[str, Any] = {"lastSeenServerSeq": 1, "subscriptions": [C]}
        with refused(-32008, "ann"):
            await again.request("reconnect", clientId="ann", **params)
        assert host.tables.clients.find("bob") is not None
