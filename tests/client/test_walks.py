"""Seeded walks: three screens, one host, lost connections, restarts; all end with one state."""

from __future__ import annotations

from contextlib import AsyncExitStack
from random import Random
from typing import Any

import pytest
import trio

from ahpd.client import Client, Observer, Operation, open_client
from ahpd.protocol.chat_actions import ChatPendingMessageSetAction
from tests.client.small_host import SmallHost
from tests.client.support import CHAT, cancelled, complete, delta, message, part, started
from tests.wire import Wiretap

NAMES = ("phone", "desktop", "tablet")
STEPS = 120


class Walk:
    """One walk. Everything that it does is drawn from its seed."""

    def __init__(self, seed: int, wire: Wiretap) -> None:
        self.random = Random(seed)
        self.host = SmallHost(
            wire, log_limit=(3, 8, 1000)[seed % 3], tell_all=self.random.random() < 0.5
        )
        self.clients: dict[str, Client] = {}
        self.made: dict[str, list[Operation]] = {name: [] for name in NAMES}
        self.settled: dict[str, list[Operation]] = {name: [] for name in NAMES}
        self.turns = 0

    async def run(self) -> None:
        async with trio.open_nursery() as nursery:
            with self.host.running_in(nursery):
                async with AsyncExitStack() as stack:
                    for name in NAMES:
                        self.clients[name] = await stack.enter_async_context(
                            open_client(
                                self.host.connect_as(name),
                                client_id=name,
                                subscriptions=[CHAT],
                                observer=Observer(settled=self.settled[name].append),
                                backoff=None,
                            )
                        )
                    for _ in range(STEPS):
                        await self._step()
                    await self._come_together()

    async def _step(self) -> None:
        client = self.clients[self.random.choice(NAMES)]
        lane = self.host.transports[client.client_id].inbound
        match self.random.randrange(12):
            case 0 | 1:
                self.turns += 1
                self._dispatch(client, started(f"t{self.turns}"))
            case 2:
                active = client.store(CHAT).optimistic.active_turn
                self._dispatch(client, cancelled(active.id if active else "t0"))
            case 3:
                self.turns += 1
                queued = ChatPendingMessageSetAction(
                    kind="queued", id=f"m{self.turns}", message=message("later")
                )
                self._dispatch(client, queued)
            case 4 | 5 | 6:
                self._agent()
            case 7:
                lane.hold()
            case 8:
                lane.deliver(self.random.randrange(3)) if lane.held else lane.release()
            case 9:
                self.host.transports[client.client_id].cut()
            case 10:
                await self._reconnect(client)
            case 11 if self.random.random() < 0.3:
                self.host.restart()
        if self.random.random() < 0.7:
            await trio.testing.wait_all_tasks_blocked()

    def _dispatch(self, client: Client, what: Any) -> None:
        self.made[client.client_id].append(client.dispatch(CHAT, what))

    def _agent(self) -> None:
        active = self.host.chat.active_turn
        if active is None:
            return
        if not active.response_parts:
            self.host.emit(part(active.id))
        elif self.random.random() < 0.2:
            self.host.emit(complete(active.id))
        else:
            self.host.emit(delta(active.id, self.random.choice("abc")))

    async def _reconnect(self, client: Client) -> None:
        if client.status == "offline":
            await client.reconnect_now()

    async def _come_together(self) -> None:
        for client in self.clients.values():
            self.host.transports[client.client_id].inbound.release()
        await trio.testing.wait_all_tasks_blocked()
        for client in self.clients.values():
            await self._reconnect(client)
        await trio.testing.wait_all_tasks_blocked()


@pytest.mark.parametrize("seed", range(12))
async def test_every_replica_ends_like_the_host_and_every_dispatch_ends_once(
    wire: Wiretap, seed: int
) -> None:
    walk = Walk(seed, wire)
    await walk.run()
    for name, client in walk.clients.items():
        store = client.store(CHAT)
        assert store.confirmed == walk.host.chat
        assert store.optimistic == walk.host.chat
        made, settled = walk.made[name], walk.settled[name]
        made += [each.replaced_by for each in made if each.replaced_by is not None]
        assert sorted(map(id, settled)) == sorted(map(id, made)), "each ends exactly once"
        for operation in settled:
            _agrees(operation, walk.host.verdicts.get((name, operation.client_seq), []))
    turns = [each.id for each in walk.host.chat.turns]
    assert len(turns) == len(set(turns)), "no turn runs twice"


def _agrees(operation: Operation, verdicts: list[str]) -> None:
    """What the client says of an operation is what the host did with it."""
    assert operation.outcome is not None
    if operation.outcome.kind in ("accepted", "refused"):
        assert operation.outcome.kind in verdicts, (operation, verdicts)
