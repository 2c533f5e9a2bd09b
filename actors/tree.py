"""The supervision tree of a host: who is started in which order, and what a crash takes along.

| path | what | when it fails |
|---|---|---|
| `sequencer` | lets envelopes out | started again where it was; too often: the host stops |
| `root` | the root channel | started again |
| `grace` | clocks of clients that are away | started again |
| `watching` | hands out what the kernel says of files | started again, nothing is missed |
| `watch` | dynamic: `watch/<n>` for each watch on files of this machine | each alone |
| `watches` | begins and ends watches, relays what clients see change in theirs | started again |
| `terminals` | dynamic: `terminal/<id>` for each terminal | its process ends, the record stays |
| `terminal-keeper` | gives actors to kept terminals | started again |
| `sessions` | dynamic: `session/<id>` for each session | |
| `session/<id>` | `…/session`, `…/annotations`, `…/chat/<n>` | each alone; too often: parked |
| `catalogue` | which sessions there are | started again, looks at all of them |
| `drafts` | ends sessions that were never used | started again, waits anew |
| `telemetry` | `telemetry/otlp`, for those who subscribed to telemetry | too often: parked |
| `connections` | dynamic: `connections/<n>` | its socket closes, the client comes back |

The order is that of use: what comes later needs what is before, and stops before it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from random import Random

from actors import mailboxes
from actors.catalogue import Catalogue
from actors.clients import Clients
from actors.clock import Clock
from actors.dormant import Dormant
from actors.drafts import Drafts
from actors.grace import Grace
from actors.host import Host, Settings
from actors.ledger import Entry, Ledger
from actors.recording import Recorder
from actors.replay import ReplayWindow
from actors.restoring import restore_tables, restore_terminals, summary_of
from actors.root import Root, begin_root
from actors.sequencer import Sequencer
from actors.subscriptions import Subscriptions
from actors.telemetry import telemetry_spec
from actors.terminals import TerminalKeeper
from actors.watch import Eyes, watches_spec
from actors.watches import Watches
from ahpd.agents.port import Agent
from ahpd.journal.port import Journal, Kept
from ahpd.resources.port import Resources
from ahpd.terminals.port import Terminals
from supervisors import Backoff, Beyond, ChildSpec, Intensity, SupervisorSpec


def make_host(
    agents: Sequence[Agent],
    *,
    wall: Callable[[], float],
    steady: Callable[[], float],
    seed: int,
    settings: Settings | None = None,
    replay: int = 1000,
    replay_bytes: int = 32 << 20,
    kept: Kept | None = None,
    resources: Resources | None = None,
    terminals: Terminals | None = None,
) -> Host:
    """The tables of a host, which goes on from what was `kept`; `seed` makes the ids it hands out.

    `resources` has the files of this machine; without, none are served. `replay` and `replay_bytes`
    bound what is kept for clients that come back.
    """
    kept = kept or Kept()
    ledger, clients = Ledger(kept.seq, kept.next_key), Clients()
    window = ReplayWindow(kept.evicted, limit=replay, limit_bytes=replay_bytes)
    random = Random(seed)
    host = Host(
        ledger=ledger,
        window=window,
        subscriptions=Subscriptions(),
        clients=clients,
        clock=Clock(wall, steady),
        new_id=lambda: f"{random.getrandbits(128):032x}",
        agents={agent.info.provider: agent for agent in agents},
        recorder=Recorder(ledger, clients, window),
        settings=settings or Settings(),
        resources=resources,
        catalogue={
            each.uri: summary
            for each in kept.sessions
            if (summary := summary_of(each.summary)) is not None
        },
        dormant=Dormant(kept.sessions),
        terminals=terminals,
    )
    # How lists show a session is found out again, from the session, where it cannot be read.
    unlisted = [each.uri for each in kept.sessions if each.uri not in (host.catalogue or ())]
    host.dormant.busy += [uri for uri in unlisted if uri not in host.dormant.busy]
    clients.on_change = ledger.stir
    restore_tables(kept, ledger, clients, window)
    begin_root(host, kept.root)
    for channel in restore_terminals(kept, host.recorder):
        ledger.admit(channel)
    return host


def tree(
    host: Host,
    journal: Journal,
    *more: ChildSpec,
    let_out: Callable[[Entry], None] | None = None,
) -> SupervisorSpec:
    """The tree of a host; `more` are children that come last, such as its listeners.

    `let_out` is told each envelope that became visible. Sync; never fails.
    """
    return SupervisorSpec(
        (
            ChildSpec("sequencer", partial(Sequencer, let_out=let_out), (host, journal)),
            ChildSpec("root", Root, (host,), mailbox=mailboxes.CHANNEL),
            ChildSpec("grace", Grace, (host,)),
            ChildSpec("watching", Eyes, (host,)),
            watches_spec(),
            ChildSpec("watches", Watches, (host,), mailbox=mailboxes.CHANNEL),
            ChildSpec("terminals", SupervisorSpec(dynamic=True, beyond=Beyond.PARK)),
            ChildSpec("terminal-keeper", TerminalKeeper, (host,)),
            ChildSpec("sessions", SupervisorSpec(dynamic=True)),
            ChildSpec("catalogue", Catalogue, (host, journal), mailbox=mailboxes.CHANNEL),
            ChildSpec("drafts", Drafts, (host,)),
            telemetry_spec(host),
            ChildSpec("connections", SupervisorSpec(dynamic=True)),
            *more,
        ),
        intensity=Intensity(restarts=10, period=60.0),
        backoff=Backoff(first=0.05, cap=2.0),
    )
