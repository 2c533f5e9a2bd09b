"""A client that stops reading while another follows the same stream."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import attrs
import pytest
import trio

from actors.connection import Connection
from actors.host import Settings
from ahpd.agents import events as ev
from ahpd.client import Client
from ahpd.protocol.uris import ROOT, URI, default_chat
from tests.chaos.wishes import start_message
from tests.harness import PuppetAgent, RunningHost, differences, running_host

SESSION = URI("puppet:/busy")
CHAT = default_chat(SESSION)

#: Bytes of one piece of an answer, and seconds between two of them (exact, so that none drifts).
PIECE, EVERY = 8192, 0.125
#: Bytes that may wait for a client, and that its kernel takes besides.
LIMIT, KERNEL = 1 << 20, 64 << 10


@attrs.define
class Pace:
    """How many envelopes came in each second."""

    counts: Counter[int] = attrs.field(factory=Counter)

    def heard(self, *_: object) -> None:
        self.counts[int(trio.current_time())] += 1

    def within(self, first: float, last: float) -> set[int]:
        """The counts of the whole seconds between."""
        return {self.counts[second] for second in range(int(first) + 1, int(last))}


@attrs.define
class Scene:
    """A desk that reads, a phone that may not, and an agent that talks without end."""

    host: RunningHost
    desk: Client
    phone: Client
    pace: Pace
    #: The most bytes that ever waited for the phone.
    most: int = 0

    def waiting(self) -> int | None:
        """Bytes that wait for the phone inside the host; None while it has no connection."""
        for listener in self.host.tables.subscriptions.of(CHAT):
            if isinstance(listener, Connection) and listener.client_id == "phone":
                return listener.outbox.size
        return None


@asynccontextmanager
async def busy_chat(replay: int) -> AsyncIterator[Scene]:
    agent = PuppetAgent()
    settings = Settings(client_queue_bytes=LIMIT)
    async with running_host(agent, replay=replay, settings=settings) as host:
        host.wire("phone", capacity=KERNEL)
        async with (
            host.client("desk") as desk,
            host.client("phone") as phone,
            trio.open_nursery() as nursery,
        ):
            await desk.request("createSession", {"channel": SESSION})
            await desk.subscribe(CHAT)
            await phone.subscribe(CHAT)
            desk.dispatch(CHAT, start_message("long"))
            await trio.sleep(1)
            scene = Scene(host, desk, phone, Pace())
            desk.observe(CHAT, scene.pace.heard)
            nursery.start_soon(_talk, agent, scene)
            yield scene
            nursery.cancel_scope.cancel()
            await _agree(scene)


async def _talk(agent: PuppetAgent, scene: Scene) -> None:
    while True:
        agent.of[CHAT].say(ev.TextChunk("x" * PIECE))
        await trio.sleep(EVERY)
        scene.most = max(scene.most, scene.waiting() or 0)


async def _agree(scene: Scene) -> None:
    with trio.CancelScope(shield=True, deadline=trio.current_time() + 5):
        await trio.sleep(1)
        assert differences(scene.desk, scene.host) == []
        assert differences(scene.phone, scene.host) == []


async def _stall(scene: Scene) -> tuple[float, float]:
    """The phone stops reading until the host closes its connection; from when to when."""
    began = trio.current_time()
    scene.host.wires["phone"].hold("down")
    with trio.fail_after(120):
        while scene.waiting() is not None:
            await trio.sleep(EVERY)
    return began, trio.current_time()


@pytest.mark.parametrize(("replay", "kind"), [(1000, "replay"), (20, "snapshot")])
async def test_the_other_keeps_its_pace_and_the_stalled_one_comes_back(
    replay: int, kind: str
) -> None:
    async with busy_chat(replay) as scene:
        await trio.sleep(10)
        calm = scene.pace.within(2, 10)
        began, closed = await _stall(scene)
        await trio.sleep(10)
        assert scene.pace.within(began, trio.current_time()) == calm == {int(1 / EVERY)}
        # It took as long as so many bytes take to be said, and no more were ever kept.
        assert closed - began > LIMIT / PIECE * EVERY
        assert LIMIT < scene.most < LIMIT + 2 * PIECE
        assert scene.host.exits() == []

        scene.host.wires["phone"].release()
        await scene.phone.wait_status("offline")
        await scene.phone.reconnect_now()
        tap = scene.host.wires["phone"].tap
        assert tap is not None
        answers = [frame["result"] for way, frame in tap.frames if way == "h2c" and "id" in frame]
        assert answers[0]["type"] == kind


async def test_what_may_wait_for_a_client_can_be_set_while_it_waits() -> None:
    async with busy_chat(1000) as scene:
        scene.host.wires["phone"].hold("down")
        await trio.sleep(10)
        assert scene.waiting() is not None
        seq = scene.desk.next_client_seq
        scene.desk.notify(
            "dispatchAction",
            {
                "channel": ROOT,
                "clientSeq": seq,
                "action": {"type": "root/configChanged", "config": {"clientQueueBytes": 2 * LIMIT}},
            },
        )
        began, closed = await _stall(scene)
        assert closed - began > 2 * LIMIT / PIECE * EVERY - 11
        assert scene.most > 2 * LIMIT
        scene.host.wires["phone"].release()
        await scene.phone.wait_status("offline")
        await scene.phone.reconnect_now()
