"""The supervision tree of a host: who is started in which order, and what a crash takes along.

| path | what | when it fails |
|---|---|---|
| `sequencer` | lets envelopes out | started again where it was; too often: the host stops |
| `root` | the root channel | started again |
| `grace` | clocks of clients that are away | started again |
| `watches` | relays what clients see change in their files | started again |
| `sessions` | dynamic: `session/<id>` for each session | |
| `session/<id>` | `…/session` and `…/chat/<n>` | each alone; too often: it is set aside (parked) |
| `catalogue` | which sessions there are | started again, looks at all of them |
| `connections` | dynamic: `connections/<n>` | its socket closes, the client comes back |

The order is that of use: what comes later needs what is before, and stops before it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random

from actors import mailboxes
from actors.catalogue import Catalogue
from actors.clients import Clients
from actors.clock import Clock
from actors.grace import Grace
from actors.host import Host, Settings
from actors.ledger import Ledger
from actors.replay import ReplayWindow
from actors.root import Root, root_state
from actors.sequencer import Sequencer
from actors.subscriptions import Subscriptions
from actors.watches import Watches
from ahpd.agents.port import Agent
from ahpd.journal.port import Journal
from ahpd.protocol.uris import ROOT
from supervisors import Backoff, ChildSpec, Intensity, SupervisorSpec


def make_host(
    agents: Sequence[Agent],
    *,
    wall: Callable[[], float],
    steady: Callable[[], float],
    seed: int,
    settings: Settings | None = None,
    replay: int = 1000,
) -> Host:
    """The tables of a new host; `seed` makes the ids it hands out."""
    ledger = Ledger()
    random = Random(seed)
    host = Host(
        ledger=ledger,
        window=ReplayWindow(ledger.seq, limit=replay),
        subscriptions=Subscriptions(),
        clients=Clients(),
        clock=Clock(wall, steady),
        new_id=lambda: f"{random.getrandbits(128):032x}",
        agents={agent.info.provider: agent for agent in agents},
        settings=settings or Settings(),
    )
    ledger.open(ROOT, "root", root_state(host), "root")
    return host


def tree(host: Host, journal: Journal, *more: ChildSpec) -> SupervisorSpec:
    """The tree of a host; `more` are children that come last, such as its listeners."""
    sequencer = (host.ledger, journal, host.window, host.subscriptions)
    return SupervisorSpec(
        (
            ChildSpec("sequencer", Sequencer, sequencer),
            ChildSpec("root", Root, (host,), mailbox=mailboxes.CHANNEL),
            ChildSpec("grace", Grace, (host,)),
            ChildSpec("watches", Watches, (host,), mailbox=mailboxes.CHANNEL),
            ChildSpec("sessions", SupervisorSpec(dynamic=True)),
            ChildSpec("catalogue", Catalogue, (host,), mailbox=mailboxes.CHANNEL),
            ChildSpec("connections", SupervisorSpec(dynamic=True)),
            *more,
        ),
        intensity=Intensity(restarts=10, period=60.0),
        backoff=Backoff(first=0.05, cap=2.0),
    )
