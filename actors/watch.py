"""A watch on files of this machine: says on its channel what changed (RULES 14).

What is known of the files, and what has changed since it was last said, is kept beside the actor
(`Host.own_watches`): one that fails and starts again goes on where it was, and nothing is left out.
One that fails too often ends its watch (`actors.watches`).
"""

from __future__ import annotations

from typing import NoReturn

from actors.host import Host
from ahpd.protocol.resources import ResourceChanges, ResourceWatchChangedAction
from ahpd.protocol.uris import URI
from supervisors import Actor, Beyond, ChildSpec, Shutdown, SupervisorSpec

#: Most changes in one action.
MOST = 5000


class Watch(Actor[NoReturn]):
    """See the module's docstring."""

    kind = "watch"

    def __init__(self, host: Host, channel: URI) -> None:
        self._host = host
        self._channel = channel

    async def on_start(self) -> None:
        """Begin to tell."""
        self.spawn(self._tell, name="teller")

    async def handle(self, message: NoReturn) -> None:
        """It is sent nothing."""

    async def _tell(self) -> None:
        """Helper: what changed, in batches."""
        host = self._host
        while (own := host.own_watches.get(self._channel)) is not None:
            await host.ledger.room.wait()
            await own.watched.changed()
            channel = host.ledger.find(self._channel)
            # In one step, so that nothing is taken that is not said as well.
            changes = own.watched.take(MOST)
            if changes and channel is not None:  # an empty batch is never said
                action = ResourceWatchChangedAction(changes=ResourceChanges(items=tuple(changes)))
                host.ledger.append(channel, action, channel.state)


class Eyes(Actor[NoReturn]):
    """Hands out what the kernel says to all watches. What it missed while down is looked for."""

    kind = "watching"

    def __init__(self, host: Host) -> None:
        self._host = host

    async def on_start(self) -> None:
        """Begin, if there are any files here."""
        if self._host.resources is not None:
            self.spawn(self._host.resources.keep_watch, name="eyes")

    async def handle(self, message: NoReturn) -> None:
        """It is sent nothing."""


def path_of(number: str) -> str:
    """The path of the actor of a watch."""
    return f"watch/{number}"


def watch_spec(host: Host, number: str, channel: URI) -> ChildSpec:
    """How a watch is supervised: alone."""
    return ChildSpec(number, Watch, (host, channel), shutdown=Shutdown(grace=0.5))


def watches_spec() -> ChildSpec:
    """The supervisor of the watches, none of which there is yet."""
    return ChildSpec("watch", SupervisorSpec(dynamic=True, beyond=Beyond.PARK))
