"""`running_host`: a host, its tree running, and whoever is connected to it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

import attrs
import trio

from actors.caretaker import Caretaker
from actors.connection import serve_connection
from actors.host import Host, Settings
from actors.ledger import Ledger
from actors.tree import make_host, tree
from ahpd.agents.port import Agent
from ahpd.client import Client, open_client
from ahpd.protocol.uris import ROOT, URI
from ahpd.transports.port import Transport
from supervisors import Exit, ExitKind, Note, Report, System, running
from supervisors.faults import InjectedFault, Injection, Plan
from supervisors.testing import check_tree
from tests.harness.agent import PuppetAgent
from tests.harness.journal import SlowJournal
from tests.harness.peer import RawPeer
from tests.harness.stream import Stream
from tests.harness.tap import Taps
from tests.harness.wire import Wire

#: Unix seconds at which every test begins.
BEGINNING = 1_790_000_000.0


class RunningHost:
    """The host of a test. Made by `running_host`."""

    def __init__(
        self,
        host: Host,
        stream: Stream,
        *,
        journal: SlowJournal,
        taps: Taps,
        nursery: trio.Nursery,
        injection: Injection | None,
    ) -> None:
        self.tables = host
        self.stream = stream
        self.journal = journal
        self.taps = taps
        self.injection = injection
        #: Each client's and peer's wire, by name.
        self.wires: dict[str, Wire] = {}
        self.peers: list[RawPeer] = []
        self.reports: list[Report] = []
        self.system: System
        self._nursery = nursery

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
    journal: SlowJournal | None = None,
    provoked: Sequence[str] = (),
    crashes: Collection[str] = (),
) -> AsyncIterator[RunningHost]:
    """A host for the length of the block; without `agents` it has one `PuppetAgent`.

    `replay` is how many envelopes are kept for those who come back. `provoked` are patterns of
    frame faults that the test commits on purpose, `crashes` the beginnings of paths of actors that
    it means to crash; see the package for what is checked when the block ends.
    """
    taps = Taps(provoked)
    journal = journal or SlowJournal(seed)
    host = make_host(
        agents or (PuppetAgent(),),
        wall=lambda: BEGINNING,
        steady=trio.current_time,
        seed=seed,
        settings=attrs.evolve(settings or Settings(), pace=0.0),
        replay=replay,
    )
    stream = host.window = Stream(replay, journal, taps)
    injection = Injection(faults) if isinstance(faults, Plan) else faults
    async with trio.open_nursery() as nursery:
        made = RunningHost(
            host, stream, journal=journal, taps=taps, nursery=nursery, injection=injection
        )
        caretaker = Caretaker(host)

        def report(report: Report) -> None:
            made.reports.append(report)
            caretaker(report)

        async with running(
            tree(host, journal), seed=seed, report=report, faults=injection
        ) as system:
            made.system = system
            caretaker.attach(system)
            await system.wait_for("connections")
            yield made
            for wire in made.wires.values():
                wire.release()
            for peer in made.peers:
                await peer.close()
            await trio.testing.wait_all_tasks_blocked()
            if not system.stopping:
                check_tree(system)
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
