"""The host for one peer, over two descriptors: what ``ahpd --stdio`` runs.

It must answer soon after its start, so it imports nothing that only a daemon needs.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import trio
from msgspec import Struct

from actors.connection import serve_connection
from ahpd.daemon.control import PrivateTransport
from ahpd.daemon.errors import HostFailed, PeerBroke
from ahpd.daemon.hosting import build_host
from ahpd.daemon.inherited import catch_what_is_ignored
from ahpd.daemon.launch import Launch
from ahpd.daemon.observing import Observer, open_log
from ahpd.daemon.running import (
    Boot,
    Wrap,
    captured,
    listener_spec,
    listeners_spec,
    new_seed,
    run_host,
    served_paths,
)
from ahpd.daemon.telemetry import telemetry_of
from ahpd.journal.memory import MemoryJournal
from ahpd.journal.port import Journal, Kept
from ahpd.transports.linestream import TOO_BIG
from ahpd.transports.port import Transport
from ahpd.transports.stdio import fd_transport
from supervisors import Actor

_log = logging.getLogger("ahpd.daemon")


class Outcome(Struct, eq=False):
    """How the only connection of a host over stdio ended."""

    #: The peer ended it; otherwise something here did.
    ended_by_peer: bool = False
    #: Why what the peer sent could not be gone on from.
    broken: str | None = None


class StdioListener(Actor[None]):
    """Serves whoever started this process, over its standard input and output, and no longer."""

    kind = "listener"

    def __init__(
        self, observer: Observer, transport: Transport, wrap: Wrap, outcome: Outcome
    ) -> None:
        self._observer = observer
        self._transport = transport
        self._wrap = wrap
        self._outcome = outcome

    async def on_start(self) -> None:
        """Begin."""
        self.spawn(self._serve, name="serve")

    async def _serve(self) -> None:
        """Helper: until the connection is over, which ends the host."""
        host = self._observer.host
        private = PrivateTransport(self._wrap(self._transport), self.system, host, self._observer)
        await serve_connection(self.system, host, private)
        end = private.end
        self._outcome.ended_by_peer = end is not None
        if end is not None and end.code == TOO_BIG:
            self._outcome.broken = end.reason
        elif end is not None and not end.clean:
            _log.error("%s: %s", private.peer, end.reason)
        self.system.stop("the connection is over")


def serve_stdio(launch: Launch, read_fd: int, write_fd: int) -> str:
    """Serve one peer over two descriptors until it ends its stream; gives the reason.

    What it asked for in order is answered first. Raises as `serve`, `HostFailed` when its
    connection ended because of an error here, and `PeerBroke` when it ended because of what came.
    """
    catch_what_is_ignored()
    log = open_log(launch.config)
    with ExitStack() as stack:
        journal, kept = stack.enter_context(_journal(launch))
        host = build_host(launch.config, seed=new_seed(), paths=served_paths(launch), kept=kept)
        wrap = stack.enter_context(captured(launch, log.redact))
        observer = Observer(log, host, launch.config, reports=_reports(launch))
        stack.enter_context(telemetry_of(host, log, launch.config.telemetry))
        return trio.run(_run_stdio, launch, observer, journal, wrap, (read_fd, write_fd))


@contextmanager
def _journal(launch: Launch) -> Iterator[tuple[Journal, Kept]]:
    """In the state folder when there is one, which is then held; else in memory."""
    if launch.state_dir is None:
        yield MemoryJournal(), Kept()
        return
    from ahpd.daemon.keeping import journal_in  # noqa: PLC0415 - seldom wanted
    from ahpd.daemon.state import StateFolder  # noqa: PLC0415

    folder = StateFolder(launch.state_dir)
    with folder.held(), journal_in(folder, launch.config) as both:
        yield both


def _reports(launch: Launch) -> Path | None:
    """Where crash reports go: nowhere without a state folder."""
    if launch.state_dir is None:
        return None
    from ahpd.daemon.state import StateFolder  # noqa: PLC0415 - seldom wanted

    return StateFolder(launch.state_dir).crashes


async def _run_stdio(
    launch: Launch, observer: Observer, journal: Journal, wrap: Wrap, fds: tuple[int, int]
) -> str:
    outcome = Outcome()
    transport = fd_transport(*fds, limit=launch.config.limits.message_bytes)
    listeners = [listener_spec("stdio", StdioListener, observer, transport, wrap, outcome)]
    if launch.state_dir is not None:
        from ahpd.daemon.look import LookListener  # noqa: PLC0415 - seldom wanted
        from ahpd.daemon.state import StateFolder  # noqa: PLC0415

        folder = StateFolder(launch.state_dir)
        look = listener_spec("look", LookListener, observer.host, folder.look, folder.journal)
        listeners.insert(0, look)
    reason = await run_host(launch, observer, journal, Boot(), listeners_spec(*listeners))
    if not outcome.ended_by_peer and not reason.startswith("SIG"):
        raise HostFailed("the connection failed inside the host")
    if outcome.broken is not None:
        raise PeerBroke(f"{transport.peer}: {outcome.broken}")
    return reason
