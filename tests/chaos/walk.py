"""A walk: three screens, their agents and a host, taken through a scenario and to its end."""

from __future__ import annotations

import hashlib
import logging
import tempfile
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import ExitStack
from fnmatch import fnmatchcase
from pathlib import Path
from random import Random
from typing import Any

import trio

from ahpd.protocol.root import MultipleWorkingDirectoriesCapability
from ahpd.protocol.uris import ROOT, URI
from supervisors import NoSuchChild, StartFailed, SupervisorsError, sys
from supervisors.faults import Injection
from supervisors.testing import leak_check, run_seeded
from tests.chaos.moves import MOVES, first_channels
from tests.chaos.puppeteer import Puppeteer
from tests.chaos.scenario import Kill, Restart, Scenario
from tests.chaos.screen import Screen
from tests.chaos.verdict import Verdict, judge, unanswered
from tests.chaos.wishes import DIRECTORIES
from tests.harness import FileMedium, Medium, PuppetAgent, RunningHost, SlowJournal, running_host
from tests.harness.configured import ConfiguredAgent

#: Seconds between two steps; most often none, and now and then long enough for a grace to end.
_PAUSES = (0.0, 0.0, 0.0, 0.001, 0.01, 0.1, 0.5)
_LONG_PAUSE, _LONG = 0.005, 45.0

#: Rounds of the end: more than any queue of messages or of restarts needs.
_ROUNDS = 60


#: A folder in memory, where there is one: the file is for hosts that are killed, not for power.
_FAST = "/dev/shm" if Path("/dev/shm").is_dir() else None


class Walk:
    """One walk under way; the moves are made on it."""

    def __init__(self, plan: Scenario, host: RunningHost, agent: PuppetAgent) -> None:
        self.plan = plan
        self.host = host
        self.puppeteer = Puppeteer(agent)
        self.screens = [Screen("desk", host), Screen("phone", host)]
        self.screens.append(Screen("tablet", host, version="0.9.0" if plan.old else "1.0.0"))
        self.nursery: trio.Nursery
        #: The sessions that were ever asked for, in their order.
        self.made: dict[URI, None] = {}
        #: What was wrong before everybody reconnected for the last time.
        self.unanswered: list[str] = []
        self.judged = False
        self._names: Counter[str] = Counter()

    # ---- for the moves ----------------------------------------------------------------------

    def name(self, kind: str) -> str:
        """A name that nothing else of this walk has."""
        self._names[kind] += 1
        return f"{kind}-{self._names[kind]}"

    def old_name(self, kind: str, dice: Random) -> str | None:
        """A name that was given before."""
        count = self._names[kind]
        return f"{kind}-{dice.randint(1, count)}" if count else None

    def later(self, fn: Callable[..., Awaitable[object]], *args: Any) -> None:
        """Do it while the walk goes on."""
        self.nursery.start_soon(fn, *args)

    def sessions(self) -> list[URI]:
        """The sessions there are, loaded or not."""
        return list(self.host.tables.catalogue or ())

    def chats(self) -> list[URI]:
        """The chats there are."""
        return [uri for uri, each in self.host.ledger.channels.items() if each.kind == "chat"]

    def channels(self) -> list[URI]:
        """Everything that can be subscribed."""
        return list(self.host.ledger.channels)

    # ---- the walk ---------------------------------------------------------------------------

    async def run(self) -> Verdict:
        """Begin, walk, and come to an end at which everything can be compared."""
        async with trio.open_nursery() as nursery:
            self.nursery = nursery
            sessions = await self._begin()
            for screen in self.screens:
                screen.subscriptions = (ROOT, *(c for s in sessions for c in first_channels(s)))
                nursery.start_soon(screen.live)
            moves, weights = list(MOVES), list(MOVES.values())
            kills: dict[int, list[Kill]] = {}
            for kill in self.plan.kills:
                kills.setdefault(kill.step, []).append(kill)
            restarts: dict[int, list[Restart]] = {}
            for restart in self.plan.restarts:
                restarts.setdefault(restart.step, []).append(restart)
            for step in range(self.plan.steps):
                # Each step has dice of its own, so that leaving a fault out changes little else.
                dice = Random(f"{self.plan.seed} {step}")
                for kill in kills.get(step, ()):
                    self._kill(kill.pattern, kill.choice)
                for restart in restarts.get(step, ()):
                    await self._restart(restart)
                move = dice.choices(moves, weights)[0]
                move(self, dice.choice(self.screens), dice)
                self._go_on(dice)
                await self._pause(dice)
            await self._end()
            verdict = judge(self)
            self.judged = True
            for screen in self.screens:
                screen.finish()
        return verdict

    async def _begin(self) -> list[URI]:
        sessions = []
        for number in range(self.plan.sessions):
            uri = f"puppet:/{number}"
            while self.host.ledger.find(uri) is None:
                peer = await self.host.peer("setup")
                try:
                    await peer.hello()
                    await peer.request(
                        "createSession", channel=uri, workingDirectories=list(DIRECTORIES[:2])
                    )
                except Exception:  # noqa: BLE001 a fault may strike already here
                    await trio.sleep(0.2)
                await peer.close()
            sessions.append(uri)
            self.made[uri] = None
        return sessions

    def _go_on(self, dice: Random) -> None:
        """What goes on beside the move: agents work, and who is away tries to come back."""
        if dice.random() < 0.4:
            self.puppeteer.act(dice)
        for screen in self.screens:
            if dice.random() < 0.1 and not screen.is_up:
                self.later(screen.reconnect)

    async def _pause(self, dice: Random) -> None:
        if dice.random() < _LONG_PAUSE:
            await trio.sleep(_LONG)
        pause = dice.choice(_PAUSES)
        if pause:
            await trio.sleep(pause)
        else:
            for _ in range(dice.randrange(4)):
                await trio.lowlevel.checkpoint()

    def _kill(self, pattern: str, choice: int) -> None:
        registry = self.host.system.registry
        paths = [path for path in registry.under("") if fnmatchcase(path, pattern)]
        if paths:
            sys.kill(self.host.system.ref(paths[choice % len(paths)]), "by the walk")

    async def _restart(self, restart: Restart) -> None:
        await self.host.kill(lost=restart.lost)
        self.puppeteer.lose_all()
        await trio.sleep(restart.after)
        await self.host.start()

    # ---- its end ----------------------------------------------------------------------------

    async def _end(self) -> None:
        """Everything is delivered, everybody is back, all turns are over, nothing waits."""
        for screen in self.screens:
            screen.wire.release()
        self.later(self._finish_turns)
        for _ in range(_ROUNDS):
            await self._restart_parked()
            for screen in self.screens:
                if not screen.is_up:
                    self.later(screen.reconnect)
            await trio.sleep(2)
            if self._is_quiet():
                break
        await trio.sleep(60)
        self.unanswered += [text for screen in self.screens for text in unanswered(self, screen)]
        await self._stay_away(self.screens[self.plan.seed % 3])
        for screen in self.screens:
            await screen.reconnect()
            for _ in range(_ROUNDS):
                if screen.is_up:
                    break
                await trio.sleep(1)
                await screen.reconnect()
        await trio.sleep(5)

    async def _finish_turns(self) -> None:
        """Agents end what they work on, whenever that begins: a chat may be long in coming back."""
        while not self.judged:
            self.puppeteer.finish()
            await trio.sleep(1)

    async def _stay_away(self, screen: Screen) -> None:
        """One stays away until its time is up, and has lost its place in the sessions then."""
        if screen.client is not None:
            await screen.client.disconnect()
        await trio.sleep(self.host.tables.settings.grace + 10)
        for uri in self.sessions():
            session = self.host.ledger.state_of(uri, "session")
            clients = () if session is None else session.active_clients
            if any(client.client_id == screen.name for client in clients):
                self.unanswered.append(f"{screen.name} still takes part in {uri}")

    async def _restart_parked(self) -> None:
        for path in self.host.parked():
            if not self.plan.may_park:
                raise AssertionError(f"{path} is parked")
            cell = self.host.system.registry.get(path)
            if cell is not None:
                try:
                    await self.host.system.supervisor(cell.parent).restart_child(cell.spec.id)
                except (NoSuchChild, StartFailed, SupervisorsError):
                    await trio.sleep(0.1)

    def _is_quiet(self) -> bool:
        if self.puppeteer.working() or not all(screen.is_up for screen in self.screens):
            return False
        if any(screen.open_requests for screen in self.screens):
            return False
        registry = self.host.system.registry
        cells = [cell for path in registry.under("") if (cell := registry.get(path)) is not None]
        if any(cell.life is None for cell in cells):
            return False
        return all(
            each.state.active_turn is None and not each.state.queued_messages
            for each in self.host.ledger.channels.values()
            if each.kind == "chat"
        )


def walk(plan: Scenario, injection: Injection | None = None) -> Verdict:
    """Walk it, in a run of its own; raises AssertionError for whatever is wrong at the end."""
    logging.disable(logging.CRITICAL)  # agents crash here all the time
    try:
        return run_seeded(_walk, plan, injection or Injection(plan.faults), seed=plan.seed)
    finally:
        logging.disable(logging.NOTSET)


async def _walk(plan: Scenario, injection: Injection) -> Verdict:
    with ExitStack() as stack:
        medium: Medium = SlowJournal(plan.seed, plan.journal)
        if plan.restarts:
            folder = stack.enter_context(tempfile.TemporaryDirectory(dir=_FAST))
            medium = FileMedium(Path(folder) / "journal.db", plan.seed, plan.journal)
        return await _walk_on(plan, injection, medium)


async def _walk_on(plan: Scenario, injection: Injection, medium: Medium) -> Verdict:
    agent = ConfiguredAgent(
        tunable=plan.seed % 2 == 0,
        takes_steering=plan.takes_steering,
        directories=MultipleWorkingDirectoriesCapability(
            immutable_primary=plan.seed % 3 == 0, primary_replacement=plan.seed % 5 == 0
        ),
    )
    agent.opens_in = plan.opens_in
    async with (
        leak_check(),
        running_host(
            agent, seed=plan.seed, replay=plan.replay, faults=injection, journal=medium
        ) as host,
    ):
        verdict = await Walk(plan, host, agent).run()
    verdict.trace = _trace(host)
    return verdict


def _trace(host: RunningHost) -> str:
    """A digest of everything that was let out and everything that was sent, in order."""
    digest = hashlib.sha256()
    for entry in host.stream.entries:
        digest.update(entry.params)
    for tap in host.taps.all:
        digest.update(repr((tap.name, tap.frames)).encode())
    return digest.hexdigest()
