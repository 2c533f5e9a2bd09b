"""What tests of restarts share: a host on a file, and a peer that comes back to it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import attrs

from actors.host import Settings
from ahpd.agents.events import Done
from ahpd.protocol.uris import ROOT, URI
from tests.actors.support import C2, C, S, room, settled, turn
from tests.harness import FileMedium, PuppetAgent, RawPeer, RunningHost, running_host


@attrs.define
class Kept:
    """A host on a file, its agent, and Ann, who is in the session `S`."""

    host: RunningHost
    agent: PuppetAgent
    ann: RawPeer

    async def restart(self, **agent: Any) -> None:
        """Kill it when all is said, and start another one, with another agent."""
        await settled()
        await self.restart_now(**agent)

    async def restart_now(self, **agent: Any) -> None:
        """Kill it where it stands, and start another one."""
        await self.host.kill()
        self.agent = PuppetAgent(**agent)
        self.host.agents = (self.agent,)
        await self.host.start()
        await settled()

    async def back(
        self, *channels: URI, seen: int | None = None, name: str = "ann"
    ) -> tuple[RawPeer, Any]:
        """A new connection of a client, and the answer to its reconnect."""
        peer = await self.host.peer(name)
        answer = await peer.request(
            "reconnect",
            clientId=name,
            lastSeenServerSeq=self.host.ledger.seq if seen is None else seen,
            subscriptions=list(channels),
        )
        if name == "ann":
            self.ann = peer
        return peer, answer

    async def again(self, *channels: URI, name: str = "ann") -> RawPeer:
        """A new connection of a client that begins anew."""
        peer = await self.host.peer(name)
        await peer.hello(subscribe=channels)
        if name == "ann":
            self.ann = peer
        return peer

    def state(self, uri: URI = C) -> Any:
        """The host's state of a channel, as JSON."""
        found = self.host.ledger.find(uri)
        assert found is not None, uri
        return found.state.wire()

    def state_or_none(self, uri: URI) -> Any:
        """The same; None when it is not loaded."""
        return self.state(uri) if self.host.ledger.find(uri) is not None else None

    def loaded(self) -> list[URI]:
        """The sessions that are loaded."""
        return [uri for uri, each in self.host.ledger.channels.items() if each.kind == "session"]

    async def why(self, action: Any, channel: URI = C) -> str | None:
        """Why Ann's action is refused; None when it is not."""
        return reason(await self.ann.answered(await self.ann.dispatch(channel, action)))

    async def second_chat(self, *turns: str) -> None:
        """A second chat, with these turns."""
        await self.ann.request("createChat", channel=S, chat=C2)
        await self.ann.subscribe(C2)
        for each in turns:
            await turn(self.ann, self.agent, each, Done(), C2)


def reason(message: Any) -> str | None:
    """Why the dispatch was refused that this answers."""
    found: str | None = message["params"].get("rejectionReason")
    return found


def replayed(answer: Any) -> list[str]:
    """The types of the actions in a replay."""
    assert answer["type"] == "replay", answer
    return [each["action"]["type"] for each in answer["actions"]]


def snapshots(answer: Any) -> dict[URI, Any]:
    """The states in the other form."""
    assert answer["type"] == "snapshot", answer
    return {each["resource"]: each["state"] for each in answer["snapshots"]}


@asynccontextmanager
async def kept(
    folder: Path,
    *,
    replay: int = 1000,
    subscribe: Sequence[URI] = (ROOT, S, C),
    settings: Settings | None = None,
    **agent: Any,
) -> AsyncIterator[Kept]:
    """A host on a file in that folder, and Ann."""
    puppets = PuppetAgent(**agent)
    medium = FileMedium(folder / "journal.db")
    async with running_host(puppets, journal=medium, replay=replay, settings=settings) as host:
        ann = await room(host, subscribe=subscribe)
        await settled()
        yield Kept(host, puppets, ann)


__all__ = ["Kept", "kept", "reason", "replayed", "snapshots"]
