"""Letting the command line look inside: the listener on `look.sock`."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import trio

from actors.host import Host
from ahpd.daemon.running import Started
from ahpd.transports import unix
from ahpd.transports.port import Transport
from supervisors import Actor, System

if TYPE_CHECKING:
    from ahpd.inspection.service import Inspector

_log = logging.getLogger("ahpd.daemon")


class LookListener(Actor[None]):
    """Lets the command line look inside, on a socket of its own, which no other part can hold up.

    The host serves its clients without it too: when the socket cannot be made, that is logged.
    """

    kind = "listener"

    def __init__(self, host: Host, path: Path, journal: Path) -> None:
        self._host = host
        self._path = path
        self._journal = journal

    async def on_start(self) -> None:
        """Listen."""
        started = Started()
        self.spawn(self._listen, started, name="listen")
        await started.event.wait()

    async def _listen(self, started: Started) -> None:
        """Helper: until the actor ends."""
        made: list[Inspector] = []

        async def serve(transport: Transport) -> None:
            if not made:  # seldom needed, and so much to import that others would wait
                make = await trio.to_thread.run_sync(_inspectors)
                made.append(make(self.system, self._host, self._journal))
            await made[0].serve(transport)

        try:
            await unix.serve_unix(serve, self._path, task_status=started)
        except (unix.SocketPathError, OSError) as error:
            _log.error("nobody can look inside: cannot listen on %s: %s", self._path, error)
            started.started()


def _inspectors() -> Callable[[System, Host, Path], Inspector]:
    """Load what makes them."""
    from ahpd.daemon.past import Past  # noqa: PLC0415
    from ahpd.inspection.service import Inspector  # noqa: PLC0415

    return lambda system, host, journal: Inspector(system, host, Past(journal).state_at)
