"""A host with real terminals, in the test's own process and on the real clock."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import attrs
import pyte
import trio

from actors.host import Settings
from ahpd.protocol.uris import ROOT, URI
from ahpd.terminals.pty import PtyTerminals
from tests.harness import Medium, RawPeer, RunningHost, running_host
from tests.terminals.support import ENVIRONMENT, WITHIN

T: URI = "ahp-terminal:/real"


class Screen(pyte.Screen):
    """An emulator's screen that passes over keyboard modes, which pyte takes for colours."""

    def select_graphic_rendition(self, *attributes: int, private: bool = False) -> None:
        if not private:
            super().select_graphic_rendition(*attributes)


@attrs.define
class Viewer:
    """A peer that hears a terminal: what it has shown, as text and on a screen."""

    peer: RawPeer
    snapshot: Any
    size: tuple[int, int]
    uri: URI = T
    _read: int = 0
    _texts: list[str] = attrs.field(factory=list)

    @property
    def actions(self) -> list[Any]:
        return [
            m["params"]["action"]
            for m in self.peer.inbox
            if m.get("method") == "action" and m["params"]["channel"] == self.uri
        ]

    @property
    def text(self) -> str:
        """All that was shown: of the snapshot, and since."""
        parts = self.snapshot["state"]["content"]
        before = "".join(part.get("value") or part.get("output") or "" for part in parts)
        return before + "".join(a["data"] for a in self.actions if a["type"] == "terminal/data")

    def screen(self) -> list[str]:
        """What a terminal emulator makes of it."""
        screen = Screen(*self.size)
        pyte.Stream(screen).feed(self.text)
        return [line.rstrip() for line in screen.display]

    async def type(self, keys: str) -> None:
        await self.peer.dispatch(self.uri, {"type": "terminal/input", "data": keys})

    async def until(self, wanted: Any) -> None:
        """Wait until this is in the text, or holds of this viewer."""
        holds = wanted if callable(wanted) else lambda it: wanted in it.text
        with trio.move_on_after(WITHIN):
            while not holds(self):
                await trio.sleep(0.01)
            return
        raise AssertionError(f"{wanted!r}: {self.text[-3000:]!r}")

    async def exited(self) -> Any:
        await self.until(lambda it: any(a["type"] == "terminal/exited" for a in it.actions))
        ends = [n for n, a in enumerate(self.actions) if a["type"] == "terminal/exited"]
        assert len(ends) == 1
        said = [a["type"] for a in self.actions[ends[0] :]]
        assert "terminal/data" not in said
        return self.actions[ends[0]]


@attrs.define
class RealHost:
    host: RunningHost

    async def peer(self, name: str) -> RawPeer:
        peer = await self.host.peer(name)
        await peer.hello(subscribe=(ROOT,))
        return peer

    async def view(self, name: str, *, uri: URI = T, size: tuple[int, int] = (80, 24)) -> Viewer:
        """Another peer that hears the terminal."""
        peer = await self.peer(name)
        return Viewer(peer, await peer.subscribe(uri), size, uri)

    async def opened(
        self, name: str = "ann", *, uri: URI = T, size: tuple[int, int] = (80, 24), **more: Any
    ) -> Viewer:
        """A peer that makes a terminal and hears it."""
        peer = await self.peer(name)
        claim = {"kind": "client", "clientId": name}
        cols, rows = size
        await peer.request("createTerminal", channel=uri, claim=claim, cols=cols, rows=rows, **more)
        return Viewer(peer, await peer.subscribe(uri), size, uri)


@asynccontextmanager
async def real_host(
    *,
    settings: Settings | None = None,
    environment: Mapping[str, str] | None = None,
    journal: Medium | None = None,
) -> AsyncIterator[RealHost]:
    """Its shells have nobody's own files, and are in the root folder."""
    terminals = PtyTerminals({**ENVIRONMENT, **(environment or {})})
    settings = settings or Settings(served=("file:///",))
    async with running_host(settings=settings, terminals=terminals, journal=journal) as host:
        yield RealHost(host)
