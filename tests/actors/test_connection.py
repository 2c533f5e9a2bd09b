"""One connection: what a client that does not read costs, and what becomes of it when it dies."""

from __future__ import annotations

from typing import Any

import pytest
import trio

from actors.host import Settings
from ahpd.agents.events import Done, TextChunk
from ahpd.protocol.uris import ROOT
from supervisors import sys
from tests.actors.support import (
    C2,
    S2,
    C,
    S,
    answer,
    at_work,
    ending,
    message,
    refused,
    room,
    settled,
    started,
    turn,
)
from tests.harness import PuppetAgent, RunningHost, SlowJournal, differences, running_host
from tests.harness.replicas import state_of

MIB = 1 << 20


async def test_r_1_40_who_does_not_read_is_closed_and_the_others_keep_their_pace() -> None:
    """What waits for it is bounded; it comes back by replay. The limit is settable at once."""
    agent = PuppetAgent()
    async with running_host(agent) as host:
        ann, bob = await room(host), await host.peer("bob", capacity=64 << 10)
        await bob.hello(subscribe=(ROOT, S, C))
        limit = {"type": "root/configChanged", "config": {"clientQueueBytes": MIB}}
        await answer(ann, await ann.dispatch(ROOT, limit))
        await bob.expect_action("root/configChanged")
        seen = host.ledger.seq
        bob.stall()
        await ann.dispatch(C, started("t1"))
        puppet = await at_work(agent, "t1")
        connections = host.system.supervisor("connections")
        most, sent = 0, 0
        while len(connections.which_children()) == 2:
            puppet.say(TextChunk("x" * 10_000))
            sent += 1
            await settled()
            assert len(ann.inbox) >= sent  # the other one has it all
            most = max(
                most, *(_waiting(host, child.path) for child in connections.which_children())
            )
            assert sent < 1000
        assert MIB - 20_000 < most < MIB + 20_000
        bob.resume()
        assert (await bob.ended()).code == 1013
        puppet.end(Done())
        await ending(ann, "t1")
        again = await host.peer("bob", capacity=64 << 20)
        result = await again.request(
            "reconnect", clientId="bob", lastSeenServerSeq=seen, subscriptions=[C]
        )
        assert result["type"] == "replay"
        text = "".join(
            each["action"].get("content") or each["action"]["part"]["content"]
            for each in result["actions"]
            if each["action"]["type"] in ("chat/delta", "chat/responsePart")
        )
        assert len(text) == sent * 10_000


def _waiting(host: RunningHost, path: str) -> int:
    cell = host.system.registry.get(path)
    if cell is None or cell.life is None or cell.life.actor is None:
        return 0
    size: int = cell.life.actor.outbox.size  # type: ignore[attr-defined]
    return size


async def test_one_frame_larger_than_the_limit_still_gets_through() -> None:
    async with running_host(settings=Settings(client_queue_bytes=1000)) as host:
        ann = await room(host)
        draft = {"text": "x" * 100_000, "origin": {"kind": "user"}}
        await answer(ann, await ann.dispatch(C, {"type": "chat/draftChanged", "draft": draft}))


async def test_a_killed_connection_leaves_nothing_behind_and_its_client_comes_back() -> None:
    agent = PuppetAgent()
    async with running_host(agent) as host:
        bob = await room(host, "bob")
        async with host.client("ann", subscriptions=(ROOT, S, C)) as ann:
            for number in range(10):
                await bob.dispatch(C, started(f"t{number}"))
                puppet = await at_work(agent, f"t{number}")
                paths = [
                    child.path for child in host.system.supervisor("connections").which_children()
                ]
                sys.kill(host.system.ref(max(paths, key=lambda path: int(path.split("/")[1]))))
                puppet.say(TextChunk("x"))
                await trio.sleep(0.1)
                assert len(host.tables.subscriptions.of(C)) == 1
                record = host.tables.clients.find("ann")
                assert record is not None
                assert record.connections == []
                puppet.end(Done())
                await ann.reconnect_now()
                await ending(bob, f"t{number}")
                await trio.sleep(0.1)
                assert differences(ann, host) == []


@pytest.mark.parametrize("path", ["chat/0", "session"])
async def test_a_parked_channel_answers_reads_and_refuses_dispatches_with_the_reason(
    path: str,
) -> None:
    """At once, so that what the client says to others does not wait; by hand it comes back."""
    agent = PuppetAgent()
    async with running_host(agent) as host:
        ann = await room(host)
        await ann.request("createSession", channel=S2)
        await turn(ann, agent, "t0", Done())
        channel = C if path == "chat/0" else S
        whole = host.ledger.channels[channel].path
        while host.parked() == []:
            sys.kill(host.system.ref(whole))
            await trio.sleep(0.5)
        assert host.parked() == [whole]
        wish: Any = {"type": "session/isArchivedChanged", "isArchived": True}
        if path == "chat/0":
            wish = {"type": "chat/draftChanged", "draft": message("kept")}

        def granted(state: Any) -> bool:
            return "draft" in state if path == "chat/0" else bool(state["status"] & 64)

        begun = trio.current_time()
        for _ in range(20):
            seq = await ann.dispatch(channel, wish)
            assert "set aside" in (await answer(ann, seq))["rejectionReason"]
        assert not granted((await ann.subscribe(channel))["state"])
        assert len((await ann.request("listSessions"))["items"]) == 2
        assert trio.current_time() - begun < 0.1
        if path == "session":
            with refused(-32603, "set aside"):
                await ann.request("createChat", channel=S, chat=C2)
        supervisor = host.system.supervisor(host.ledger.channels[S].path.rpartition("/")[0])
        await supervisor.restart_child("chat-0" if path == "chat/0" else "session")
        assert "rejectionReason" not in await answer(ann, await ann.dispatch(channel, wish))
        assert (await turn(ann, agent, "t1", Done()))["type"] == "chat/turnComplete"
        await settled()
        assert (await ann.request("listSessions"))["items"][0]["status"] & 31 == 1
        assert granted(state_of(host, channel))


async def test_a_host_that_stops_tells_its_connections() -> None:
    async with running_host() as host:
        ann = await room(host)
        host.system.stop()
        assert (await ann.ended()).code == 1001


async def test_b02_a_ping_overtakes_a_thousand_dispatches() -> None:
    """It says that the host is there, so it must not wait for what the client itself has sent."""
    async with running_host() as host:
        ann = await room(host)
        (path,) = host.system.registry.children("connections")
        sys.suspend(host.system.ref(path))
        for number in range(1200):
            await ann.dispatch(S, {"type": "session/titleChanged", "title": f"Title {number}"})
        await ann.request("ping", channel=ROOT)
        sys.resume(host.system.ref(path))
        await ann.answered(await ann.dispatch(S, {"type": "session/titleChanged", "title": "last"}))


async def test_b01_what_one_client_sends_fills_nobodys_mailbox() -> None:
    """It is let out at once when the journal works again, and acted on, and the host lives."""
    journal = SlowJournal()
    async with running_host(journal=journal) as host:
        ann = await room(host)
        journal.longest = 20.0
        for number in range(1500):
            await ann.dispatch(S, {"type": "session/titleChanged", "title": f"Title {number}"})
        await settled()
        journal.longest = 0.0
        last = {"type": "session/titleChanged", "title": "last"}
        assert "rejectionReason" not in (await ann.answered(await ann.dispatch(S, last)))["params"]
        assert not [path for path, _ in host.exits() if path == "sequencer"]
