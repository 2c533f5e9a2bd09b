"""People who come, pause, step, break, kill, run code and vanish, at random, while chats work."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import suppress
from random import Random
from typing import Any

import pytest
import trio

from ahpd.agents.script import parse_script
from ahpd.agents.scripted import ScriptedAgent
from ahpd.inspection.service import Inspector
from ahpd.protocol.uris import URI, default_chat
from ahpd.transports.memory import memory_pair
from supervisors import sys
from tests.actors.support import channel_of, settled, started
from tests.harness import RawPeer, RunningHost, differences, running_host
from tests.inspection.support import Looker, NotDone, inspector_of

SCRIPT = {
    "turns": [
        {
            "steps": [
                {"text": "word ", "times": 20, "everyMs": 50},
                {"tool": {"name": "dig", "title": "Dig", "output": "A hole", "takesMs": 200}},
                {"activity": "Thinking"},
                {"text": "more ", "times": 5, "everyMs": 100},
            ]
        }
    ]
}
CHATS = 3
STEPS = 120
TYPES = ("chat/delta", "chat/toolCallReady", "chat/turnComplete", "chat/activityChanged")


def session(number: int) -> URI:
    return f"demo:/{number:08x}-0000-4000-8000-000000000000"


class Walk:
    """One walk from a seed."""

    def __init__(self, host: RunningHost, peer: RawPeer, seed: int, nursery: trio.Nursery) -> None:
        self.host = host
        self.peer = peer
        self.random = Random(seed)
        self.inspector: Inspector = inspector_of(host)
        self.chats = [default_chat(session(number)) for number in range(CHATS)]
        self.turns = 0
        self._nursery = nursery
        self._lookers: list[Looker] = []

    async def step(self) -> None:
        """Something happens."""
        moves: list[Callable[[], Awaitable[object]]] = [
            *[self._prompt] * 3,
            *[self._wait] * 3,
            self._come,
        ]
        if self._lookers:
            moves += [self._command] * 6 + [self._leave]
        await self.random.choice(moves)()

    async def _wait(self) -> None:
        await trio.sleep(self.random.choice((0.01, 0.1, 1.0)))

    async def _prompt(self) -> None:
        self.turns += 1
        await self.peer.dispatch(self.random.choice(self.chats), started(f"t{self.turns}"))

    async def _come(self) -> None:
        far, near = memory_pair()
        looker = Looker(far)
        self._nursery.start_soon(self.inspector.serve, near)
        self._nursery.start_soon(looker.read)
        target = self.random.choice(
            [*self.chats * 3, *(session(number) for number in range(CHATS)), "catalogue", "root"]
        )
        await looker.ask("attach", path=target)
        self._lookers.append(looker)

    async def _leave(self) -> None:
        looker = self._lookers.pop(self.random.randrange(len(self._lookers)))
        await looker.close()

    async def _command(self) -> None:
        random, looker = self.random, self.random.choice(self._lookers)
        commands: list[tuple[str, dict[str, Any]]] = [
            *[("pause", {}), ("continue", {}), ("pdb", {})] * 3,
            *[("break", {"on": random.choice(TYPES)})] * 4,
            *[("step", {"count": random.randint(1, 5)})] * 2,
            ("status", {}), ("mailbox", {}), ("where", {}), ("log", {}), ("unbreak", {}),
            ("state", {"path": "activity"}), ("kill", {}), ("restart", {}),
            ("trace", {"on": True}), ("watch", {"path": "$..content"}),
            ("py", {"code": "await trio.sleep(0.1)"}),
        ]  # fmt: skip
        method, params = random.choice(commands)
        # What would wait for others, or for ever, is left to itself: it may end with its console.
        if method in ("step", "py", "pdb", "restart"):
            await looker.send(method, **params)
            if method == "pdb" and random.random() < 0.5:
                await trio.sleep(0.2)
                with suppress(NotDone):
                    await looker.ask("input", text=random.choice(("c", "n", "q", "p 1")))
            return
        with suppress(NotDone):
            await looker.ask(method, **params)

    async def end(self) -> None:
        """Everybody goes."""
        while self._lookers:
            await self._leave()


def busy(host: RunningHost, chats: list[URI]) -> bool:
    return any(channel_of(host, chat).state.active_turn is not None for chat in chats)


@pytest.mark.parametrize("seed", range(4))
async def test_nothing_is_left_behind_and_nothing_is_lost(seed: int) -> None:
    agent = ScriptedAgent("demo", parse_script(SCRIPT), Random(seed))
    async with running_host(agent, seed=seed) as host, trio.open_nursery() as nursery:
        peer = await host.peer("ann")
        await peer.hello()
        for number in range(CHATS):
            await peer.request("createSession", channel=session(number))
            await peer.subscribe(default_chat(session(number)))
        walk = Walk(host, peer, seed, nursery)
        for _ in range(STEPS):
            await walk.step()
        await walk.end()
        with trio.fail_after(300):
            while busy(host, walk.chats):
                await trio.sleep(0.5)
        await trio.sleep(30)  # what failed is up again
        await settled()
        for path in sys.paths(host.system):
            cell = host.system.registry.get(path)
            assert cell is not None
            assert cell.probe is None, path
        for chat in walk.chats:
            assert "Paused" not in (channel_of(host, chat).state.activity or "")
        everything = [*walk.chats, *(session(number) for number in range(CHATS))]
        async with host.client("laptop", subscriptions=everything) as laptop:
            assert differences(laptop, host) == []
        ended: dict[str, int] = {}
        for message in peer.inbox:
            action: Any = message.get("params", {}).get("action", {})
            if action.get("type") in ("chat/turnComplete", "chat/error", "chat/turnCancelled"):
                ended[action["turnId"]] = ended.get(action["turnId"], 0) + 1
        assert set(ended.values()) <= {1}
        nursery.cancel_scope.cancel()
