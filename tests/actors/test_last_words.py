"""What a peer said just before it went counts, and is answered as far as it still reads."""

from __future__ import annotations

import pytest
import trio

from ahpd.protocol.uris import URI, default_chat
from supervisors import sys
from tests.chaos.wishes import type_draft
from tests.harness import RawPeer, RunningHost, running_host

SESSION = URI("puppet:/5e551000-0000-4000-8000-000000000001")
CHAT = default_chat(SESSION)


async def typist(host: RunningHost) -> RawPeer:
    peer = await host.peer("typist")
    await peer.hello()
    await peer.request("createSession", channel=SESSION)
    await peer.subscribe(CHAT)
    return peer


def drafts(host: RunningHost) -> int:
    return sum(
        getattr(entry.action, "type", "") == "chat/draftChanged" for entry in host.stream.said(CHAT)
    )


@pytest.mark.parametrize("count", [1, 50, 2000])
async def test_a_peer_that_speaks_and_hangs_up_is_heard_to_its_end(count: int) -> None:
    async with running_host() as host:
        peer = await typist(host)
        for number in range(count):
            await peer.dispatch(CHAT, type_draft(f"draft {number}").wire())
        await peer.close()
        await trio.sleep(0.1)
        assert drafts(host) == count
        assert host.system.registry.under("connections") == []


async def test_a_peer_that_only_stops_speaking_gets_the_answers_to_what_it_said() -> None:
    """As with a pipe: its input ends, its output is still read."""
    async with running_host() as host:
        peer = await typist(host)
        peer.wire.hold("down")
        for number in range(200):
            await peer.dispatch(CHAT, type_draft(f"draft {number}").wire(), 1000 + number)
        peer.wire.end_input()
        peer.wire.release()
        for number in range(200):
            await peer.answered(1000 + number)
        assert (await peer.ended()).clean


async def test_a_peer_that_went_is_not_waited_for_without_end() -> None:
    async with running_host() as host:
        peer = await typist(host)
        channel = host.ledger.find(CHAT)
        assert channel is not None
        held = host.system.ref(channel.path)
        sys.suspend(held)
        # More than its chat's mailbox takes: the connection waits for room, behind it the end.
        for number in range(4500):
            await peer.dispatch(CHAT, type_draft(f"draft {number}").wire())
        await peer.close()
        await trio.sleep(4)
        assert host.system.registry.under("connections") != []
        await trio.sleep(4)
        assert host.system.registry.under("connections") == []
        sys.resume(held)
        await trio.sleep(1)
