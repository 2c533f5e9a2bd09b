"""`running_host`: a host, its tree running, and whoever is connected to it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial
from typing import Any

import trio
from msgspec import structs

from actors.caretaker import Caretaker
from actors.connection import serve_connection
from actors.host import Host, Settings
from actors.ledger import Entry, Ledger
from actors.otlp import Otlp
from actors.tree import make_host, tree
from ahpd.agents.port import Agent
from ahpd.client import Client, open_client
from ahpd.protocol.uris import ROOT, URI
from ahpd.resources.port import Resources
from ahpd.terminals.port import Terminals
from ahpd.transports.port import Transport, TransportClosed
from supervisors import Exit, ExitKind, Note, Report, System, run_tree
from supervisors.faults import InjectedFault, Injection, Plan
from supervisors.testing import check_tree
from tests.harness.agent import PuppetAgent
from tests.harness.journal import Medium, SlowJournal
from tests.harness.peer import RawPeer
from tests.harness.stream import Stream
from tests.harness.tap import Taps
from tests.harness.wire import Wire

#: Unix seconds at which every test begins.
BEGINNING = 1_790_000_000.0


class RunningHost:
    """The host of a test. Made by `running_host`.

    It can be killed and started again, with other `agents` if need be; `tables` and `system` are
    those of the process that runs, or ran last.
    """

    def __init__(
        self,
        agents: Sequence[Agent],
        journal: Medium,
        *,
        seed: int,
        replay: int,
        settings: Settings | None,
        taps: Taps,
        nursery: trio.Nursery,
        injection: Injection | None,
        resources: Resources | None,
        terminals: Terminals | None,
        telemetry: Otlp | None,
    ) -> None:
        self.telemetry = telemetry
        self.resources = resources
        self.agents = agents
        self.journal = journal
        self.replay = replay
        self.settings = settings
        self.taps = taps
        self.stream = Stream(taps)
        self.injection = injection
        self.terminals = terminals
        #: Each client's and peer's wire, by name.
        self.wires: dict[str, Wire] = {}
        self.peers: list[RawPeer] = []
        self.reports: list[Report] = []
        #: How many processes there have been.
        self.lives = 0
        self.is_up = False
        self.tables: Host
        self.system: System
        self._seed = seed
        self._nursery = nursery
        self._born = trio.current_time()
        self._killed = False
        self._over = trio.Event()

    # ---- its life ---------------------------------------------------------------------------

    async def start(self) -> None:
        """Start a process on what the last one left."""
        assert not self.is_up
        self.lives += 1
        self._killed = False
        own, kept = self.journal.begin(self.replay)
        self.stream.goes_on(kept.seq)
        self.tables = host = make_host(
            self.agents,
            wall=lambda: BEGINNING + trio.current_time() - self._born,
            steady=trio.current_time,
            seed=self._seed + 1000 * (self.lives - 1),  # no two make the same ids
            settings=structs.replace(self.settings or Settings(), pace=0.0),
            replay=self.replay,
            kept=kept,
            resources=self.resources,
            terminals=self.terminals,
        )
        host.telemetry = self.telemetry
        caretaker = Caretaker(host)

        def report(report: Report) -> None:
            self.reports.append(report)
            caretaker(report)

        spec = tree(host, own, let_out=self._let_out)
        run = partial(run_tree, spec, seed=self._seed, report=report, faults=self.injection)
        self._over = trio.Event()
        self.system = await self._nursery.start(self._run, run)
        caretaker.attach(self.system)
        await self.system.wait_for("connections")
        self.is_up = True

    async def _run(self, run: Any, task_status: trio.TaskStatus[System]) -> None:
        try:
            await run(task_status=task_status)
        finally:
            self._over.set()

    def _let_out(self, entry: Entry) -> None:
        if not self._killed:  # else it is the last step of a task that is cancelled already
            self.stream.add(entry, self.journal.seq)

    async def stop(self) -> None:
        """Stop it in order."""
        self.is_up = False
        self.system.stop("the test is over")
        await self._over.wait()
        self.journal.end()

    async def kill(self, *, lost: bool = True) -> None:
        """End the process as `kill -9` does: nobody says goodbye, and what is not kept is lost.

        With `lost` what it sent and nobody has read yet is lost too, as when the machine went.
        """
        self.is_up = False
        self._killed = True
        self.journal.end()
        self.stream.killed(
            item
            for item in self.tables.ledger.queue
            if isinstance(item, Entry) and self.journal.holds(item.seq)
        )
        for wire in self.wires.values():
            wire.die(lost=lost)
        self.system.drop("killed")
        await self._over.wait()

    async def restart(self, *, lost: bool = True) -> None:
        """Kill it, and start it again."""
        await self.kill(lost=lost)
        await self.start()

    @property
    def ledger(self) -> Ledger:
        """The channels as the host has them."""
        return self.tables.ledger

    # ---- who connects -----------------------------------------------------------------------

    def wire(self, name: str, *, capacity: int | None = None) -> Wire:
        """The wire of that name, made when it is first asked for."""
        if name not in self.wires:
            self.wires[name] = Wire(name, self.taps, self._serve, capacity=capacity)
        return self.wires[name]

    def _serve(self, transport: Transport) -> None:
        if not self.is_up:
            raise TransportClosed("connection refused")
        self._nursery.start_soon(serve_connection, self.system, self.tables, transport)

    async def peer(self, name: str, *, capacity: int | None = None) -> RawPeer:
        """A scripted peer that has said nothing yet. Again with the same name: a new connection."""
        wire = self.wire(name, capacity=capacity)
        peer = RawPeer(name, wire, await wire.connect())
        self.peers.append(peer)
        self._nursery.start_soon(peer.read)
        return peer

    def client(
        self, name: str, *, subscriptions: Sequence[URI] = (ROOT,), **options: Any
    ) -> AbstractAsyncContextManager[Client]:
        """An `ahpd.client` on the wire of that name; by default it comes back when told only."""
        options.setdefault("backoff", None)
        return open_client(
            self.wire(name).connect, client_id=name, subscriptions=subscriptions, **options
        )

    # ---- what happened ----------------------------------------------------------------------

    def exits(self) -> list[tuple[str, Exit]]:
        """Every end of an actor that nobody asked for, as (path, exit)."""
        return [
            (report.path, report.exit)
            for report in self.reports
            if report.exit is not None and report.exit.abnormal
        ]

    def crashes(self) -> list[str]:
        """Ends of actors that no plan and no test wanted, in words."""
        return [
            f"{path}: {exit}\n{exit.crash.traceback if exit.crash else ''}"
            for path, exit in self.exits()
            if exit.kind is not ExitKind.KILLED and not _is_injected(exit)
        ]

    def parked(self) -> list[str]:
        """Paths of actors that failed too often, now."""
        return [
            child.path
            for path in self.system.registry.under("")
            if (cell := self.system.registry.get(path)) is not None and cell.driver is not None
            for child in self.system.supervisor(path).which_children()
            if child.phase == "parked"
        ]


def _is_injected(exit: Exit) -> bool:
    if exit.kind is ExitKind.LOST:
        return True
    error = exit.crash.error if exit.crash is not None else None
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return isinstance(error, InjectedFault)


@asynccontextmanager
async def running_host(
    *agents: Agent,
    seed: int = 0,
    replay: int = 1000,
    settings: Settings | None = None,
    faults: Plan | Injection | None = None,
    journal: Medium | None = None,
    resources: Resources | None = None,
    provoked: Sequence[str] = (),
    crashes: Collection[str] = (),
    terminals: Terminals | None = None,
    telemetry: Otlp | None = None,
) -> AsyncIterator[RunningHost]:
    """A host for the length of the block; without `agents` it has one `PuppetAgent`.

    `resources` has its files, `terminals` starts those; with real ones a test runs in real time,
    and with none there are none. With `telemetry` clients may subscribe to that.
    `replay` is how many envelopes are kept for those who come back. `provoked` are patterns of
    frame faults that the test commits on purpose, `crashes` the beginnings of paths of actors that
    it means to crash; see the package for what is checked when the block ends.
    """
    taps = Taps(provoked)
    async with trio.open_nursery() as nursery:
        made = RunningHost(
            agents or (PuppetAgent(),),
            journal or SlowJournal(seed),
            seed=seed,
            replay=replay,
            settings=settings,
            taps=taps,
            nursery=nursery,
            injection=Injection(faults) if isinstance(faults, Plan) else faults,
            resources=resources,
            terminals=terminals,
            telemetry=telemetry,
        )
        await made.start()
        try:
            yield made
            for wire in made.wires.values():
                wire.release()
            for peer in made.peers:
                await peer.close()
            await trio.testing.wait_all_tasks_blocked()
            if made.is_up and not made.system.stopping:
                check_tree(made.system)
        finally:
            if made.is_up:
                made.system.stop("the test is over")
        if made.is_up:
            await made.stop()
        nursery.cancel_scope.cancel(reason="the test is over")
    wanted = tuple(crashes)
    found = [crash for crash in made.crashes() if not wanted or not crash.startswith(wanted)]
    assert not found, "\n".join(found)
    assert not taps.faults, "\n".join(taps.faults)
    stuck = [f"{r.note.value}: {r.path}: {r.text}" for r in made.reports if r.note in _NEVER]
    assert not stuck, "\n".join(stuck)


#: What no test of this host may see. A swallowed cancel is not here: an actor that is killed in the
#: very step in which it ends by itself looks like one.
_NEVER = frozenset({Note.STUCK, Note.HOOK_FAILED, Note.GAVE_UP})

__all__ = ["BEGINNING", "RunningHost", "running_host"]
