"""One actor is killed at some message, again and again: who stands beside it notices nothing.

A desk and a laptop follow three chats: the victim's, one beside it in the same session, and one in
another session. Agents talk in all three while people use the first. Then one actor is killed at a
message that the seed chooses, and everything goes on.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from random import Random

import attrs
import pytest
import trio

from ahpd.agents import events as ev
from ahpd.client import Client, ConnectionLost, RequestTimeout
from ahpd.protocol.codec import DecodeError
from ahpd.protocol.errors import ProtocolError
from ahpd.protocol.uris import ROOT, URI, default_chat
from supervisors import sys
from supervisors.faults import Fault, FaultKind, Injection, Plan
from supervisors.testing import leak_check, run_seeded
from tests.chaos.wishes import (
    cancel_turn,
    confirm,
    queue_message,
    start_message,
    type_draft,
    waiting_calls,
)
from tests.harness import PuppetAgent, RunningHost, differences, running_host

SESSION, OTHER = URI("puppet:/victim"), URI("puppet:/other")
VICTIM, BESIDE, ELSEWHERE = default_chat(SESSION), URI("ahp-chat:/beside"), default_chat(OTHER)
CHANNELS = (ROOT, SESSION, OTHER, VICTIM, BESIDE, ELSEWHERE)

#: The desk connects first, so its connection has the first number.
PATHS = {
    "chat": "session/victim/chat/0",
    "session": "session/victim/session",
    "connection": "connections/1",
}
KINDS = (FaultKind.KILL, FaultKind.RAISE, FaultKind.CANCEL)
FAILED = (ConnectionLost, RequestTimeout, ProtocolError, DecodeError)


@attrs.frozen
class Kill:
    """What is killed, and when."""

    actor: str
    seed: int
    fault: Fault | None

    def __str__(self) -> str:
        return f"kill of {self.actor}, seed {self.seed}: {self.fault}"


class Scene:
    """The three chats, their agents, and the two who follow them."""

    def __init__(self, host: RunningHost, agent: PuppetAgent, desk: Client, laptop: Client) -> None:
        self.host = host
        self.agent = agent
        self.desk = desk
        self.laptop = laptop
        self._names = itertools.count(1)

    async def set_up(self) -> None:
        """Two sessions, three chats, a turn in each."""
        for session in (SESSION, OTHER):
            await self._ask(self.laptop, "createSession", channel=session)
        await self._ask(self.laptop, "createChat", channel=SESSION, chat=BESIDE)
        for channel in CHANNELS[1:]:
            await self._subscribe(self.laptop, channel)
            await self._subscribe(self.desk, channel)
        for chat, turn in ((BESIDE, "beside"), (ELSEWHERE, "elsewhere")):
            self.laptop.dispatch(chat, start_message(turn))
        await trio.sleep(1)

    async def _ask(self, client: Client, method: str, **params: str) -> None:
        """A request that is made again when a fault struck it."""
        while True:
            await self._back(client)
            try:
                await client.request(method, params)
            except ProtocolError as error:
                if error.code in (-32003, -32010):  # it was done the first time
                    return
            except FAILED:
                pass
            else:
                return
            await trio.sleep(0.5)

    async def _subscribe(self, client: Client, channel: URI) -> None:
        while channel not in client.channels:
            await self._back(client)
            try:
                await client.subscribe(channel)
            except FAILED:
                await trio.sleep(0.5)

    async def _back(self, client: Client) -> None:
        while client.status != "connected":
            try:
                await client.reconnect_now()
            except FAILED:
                await trio.sleep(0.5)

    def talk(self) -> None:
        """Every agent that has a turn says a word."""
        for puppet in self.agent.made:
            puppet.say(ev.TextChunk("word "))

    async def use(self, dice: Random) -> None:
        """The desk uses the victim's chat for a while."""
        for step in range(24):
            await self._back(self.desk)
            self.talk()
            chat = self.desk.store(VICTIM).optimistic
            if chat.active_turn is None:
                self.desk.dispatch(VICTIM, start_message(f"turn-{next(self._names)}"))
            elif waiting_calls(chat):
                self.desk.dispatch(VICTIM, confirm(chat, approved=dice.random() < 0.5))
            elif step % 5 == 2:
                self._call_a_tool()
            elif step % 7 == 3:
                self.desk.dispatch(VICTIM, queue_message(f"message-{next(self._names)}"))
            elif step % 9 == 8:
                self.desk.dispatch(VICTIM, cancel_turn(chat))
            else:
                self.desk.dispatch(VICTIM, type_draft(f"draft {step}"))
            await trio.sleep(dice.choice([0.01, 0.05, 0.3]))

    def _call_a_tool(self) -> None:
        puppet = self.agent.of.get(VICTIM)
        if puppet is not None:
            call = f"call-{next(self._names)}"
            puppet.say(ev.ToolStarted(call, "shell", "Run"), ev.ToolAsks(call, "Run it?"))

    async def finish(self) -> None:
        """The turns of the victim's chat end, then those beside it."""
        for _ in range(10):
            puppet = self.agent.of.get(VICTIM)
            if puppet is not None:
                puppet.end(ev.Done())
            await trio.sleep(1)
        await self._back(self.desk)
        await trio.sleep(1)

    def check_beside(self) -> None:
        """The two other chats went on talking through it all, and their turns still run."""
        started, ended = self.host.stream.turns()
        for turn in ("beside", "elsewhere"):
            assert (started[turn], ended[turn]) == (1, 0), f"{turn}: {started}, {ended}"
        for chat in (BESIDE, ELSEWHERE):
            channel = self.host.ledger.find(chat)
            assert channel is not None
            assert channel.state.active_turn is not None

    def check_turns(self) -> None:
        """Each turn of the victim's chat ended once."""
        started, ended = self.host.stream.turns()
        mine = {turn: n for turn, n in started.items() if turn not in ("beside", "elsewhere")}
        assert mine
        assert all(n == 1 for n in mine.values()), started
        assert {turn: ended[turn] for turn in mine} == mine, f"{started}, {ended}"

    def check_laptop(self) -> None:
        """The laptop heard every envelope of the three chats, in order and once."""
        tap = self.host.taps.all[1]
        heard = [each["serverSeq"] for each in tap.notifications("action")]
        first = dict.fromkeys((BESIDE, ELSEWHERE), 0)
        for way, frame in tap.frames:
            snapshot = (frame.get("result") or {}).get("snapshot") if way == "h2c" else None
            if snapshot is not None and snapshot["resource"] in first:
                first[snapshot["resource"]] = snapshot["fromSeq"]
        for chat, seq in first.items():
            said = [entry.seq for entry in self.host.stream.said(chat) if entry.seq > seq]
            missing = sorted(set(said) - set(heard))
            assert not missing, f"{chat}: the laptop did not hear {missing}"


async def _run(kill: Kill, injection: Injection) -> int:
    agent = PuppetAgent()
    path, handled = PATHS[kill.actor], 0
    async with (
        leak_check(),
        running_host(agent, seed=kill.seed, faults=injection) as host,
        host.client("desk") as desk,
        host.client("laptop") as laptop,
    ):
        scene = Scene(host, agent, desk, laptop)
        await scene.set_up()
        await scene.use(Random(kill.seed))
        await scene.finish()
        scene.check_beside()
        scene.check_turns()
        scene.check_laptop()
        assert {where for where, _ in host.exits()} <= {path}, host.exits()
        assert not desk.open_operations, desk.open_operations
        assert differences(desk, host) == []
        assert differences(laptop, host) == []
        assert laptop.host is not None
        assert host.wires["laptop"].connections == 1
        if (ref := host.system.ref(path)).alive:
            handled = sys.inspect(ref).handled
    return handled


def run(kill: Kill) -> Injection:
    """One kill, in a run of its own."""
    faults = () if kill.fault is None else (kill.fault,)
    injection = Injection(Plan(faults, seed=kill.seed))
    run_seeded(_run, kill, injection, seed=kill.seed)
    return injection


def messages_of(actor: str) -> int:
    """How many messages this actor gets when nothing happens to it."""
    return run_seeded(_run, Kill(actor, 0, None), Injection(Plan()), seed=0)


@pytest.mark.parametrize("actor", sorted(PATHS))
def test_a_kill_at_a_random_message(actor: str, kill_seeds: Sequence[int]) -> None:
    among = messages_of(actor)
    assert among > 20
    struck = 0
    for seed in kill_seeds:
        dice = Random(f"{actor} {seed}")
        # Not the first: a client whose very first handshake fails says so and gives up.
        nth = dice.randint(2, among)
        fault = Fault(dice.choice(KINDS), PATHS[actor], nth, after=dice.random() < 0.3)
        kill = Kill(actor, seed, fault)
        try:
            injection = run(kill)
        except Exception as error:
            raise AssertionError(str(kill)) from error
        struck += len(injection.fired)
    # A run whose seed makes people quicker may be over before the message comes.
    assert struck > 0.8 * len(kill_seeds)
