"""What tests of terminals share: a room with one, and plain actions."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import attrs

from actors.host import Settings
from ahpd.protocol.uris import ROOT, URI
from tests.actors.support import room, settled
from tests.harness import (
    Medium,
    PuppetTerminal,
    PuppetTerminals,
    RawPeer,
    RunningHost,
    running_host,
)

T: URI = "ahp-terminal:/t1"
T2: URI = "ahp-terminal:/t2"


def claim(client: str = "ann") -> dict[str, Any]:
    return {"kind": "client", "clientId": client}


def of_session(session: URI, chat: URI, **more: Any) -> dict[str, Any]:
    return {"kind": "session", "session": session, "chat": chat, **more}


def typed(data: str) -> dict[str, Any]:
    return {"type": "terminal/input", "data": data}


def resized(cols: Any, rows: Any = 24) -> dict[str, Any]:
    return {"type": "terminal/resized", "cols": cols, "rows": rows}


def claimed(by: dict[str, Any]) -> dict[str, Any]:
    return {"type": "terminal/claimed", "claim": by}


def titled(title: str) -> dict[str, Any]:
    return {"type": "terminal/titleChanged", "title": title}


CLEARED = {"type": "terminal/cleared"}


@attrs.define
class Bench:
    """A host with one terminal, Ann who made it, and Bob; both hear it and the root."""

    host: RunningHost
    ann: RawPeer
    bob: RawPeer
    terminals: PuppetTerminals

    @property
    def process(self) -> PuppetTerminal:
        return self.terminals.last

    def state(self, uri: URI = T) -> Any:
        channel = self.host.ledger.find(uri)
        return None if channel is None else channel.state.wire()

    def text(self, uri: URI = T) -> str:
        """All that the host keeps of the output."""
        parts = self.state(uri)["content"]
        return "".join(part.get("value") or part.get("output") or "" for part in parts)

    def listed(self) -> Any:
        """The terminals as the root has them."""
        found = self.host.ledger.find(ROOT)
        assert found is not None
        return found.state.wire().get("terminals")

    async def why(self, action: Any, channel: URI = T, who: RawPeer | None = None) -> str | None:
        """Why an action is refused; None when it is not."""
        sender = who or self.ann
        seq = await sender.dispatch(channel, action)
        origin = {"clientId": sender.name, "clientSeq": seq}
        found = await sender.wait(lambda it: it.get("params", {}).get("origin") == origin)
        await settled()
        reason: str | None = found["params"].get("rejectionReason")
        return reason

    async def shows(self, *pieces: Any) -> None:
        self.process.say(*pieces)
        await settled()


@asynccontextmanager
async def bench(
    settings: Settings | None = None,
    journal: Medium | None = None,
    provoked: tuple[str, ...] = (),
    capacity: int | None = None,
) -> AsyncIterator[Bench]:
    terminals = PuppetTerminals()
    async with running_host(
        settings=settings, terminals=terminals, journal=journal, provoked=provoked
    ) as host:
        host.wire("bob", capacity=capacity)
        ann, bob = await room(host), await room(host, "bob")
        await ann.request("createTerminal", channel=T, claim=claim())
        for peer in (ann, bob):
            await peer.subscribe(T)
        await settled()
        yield Bench(host, ann, bob, terminals)
