"""A client on a stage: it shows a root, a session and a chat of a scripted host."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import trio

from ahpd.client import Client, open_client
from ahpd.protocol import ROOT
from ahpd.protocol.model import JSON
from tests.client.support import (
    CHAT,
    CHAT_STATE,
    ROOT_STATE,
    SESSION,
    SESSION_STATE,
    Diary,
    ScriptedHost,
    Side,
    snapshot,
    turn_texts,
)
from tests.wire import Wiretap


def turn(turn_id: str, text: str = "Fix the build") -> JSON:
    return {
        "id": turn_id,
        "startedAt": "x",
        "message": {"text": text, "origin": {"kind": "user"}},
        "responseParts": [],
    }


class Stage:
    """A client that shows a root, a session and a chat, and its host."""

    def __init__(self, client: Client, side: Side, host: ScriptedHost, diary: Diary) -> None:
        self.client = client
        self.side = side
        self.host = host
        self.diary = diary

    async def lose(self) -> None:
        """The connection breaks."""
        self.side.cut()
        await self.client.wait_status("offline")

    @asynccontextmanager
    async def back(self) -> AsyncIterator[Side]:
        """The client reconnects by hand while the test plays the host in the body."""
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self.client.reconnect_now)
            self.side = await self.host.accept()
            yield self.side
        assert self.client.status == "connected"

    def texts(self) -> list[str]:
        return turn_texts(self.client.store(CHAT).optimistic)


@asynccontextmanager
async def staged(wire: Wiretap, **options: Any) -> AsyncIterator[Stage]:
    host = ScriptedHost(wire)
    diary = Diary()
    made: list[Side] = []

    async def welcome() -> None:
        made.append(await host.accept())
        await made[0].welcome(
            snapshot(ROOT_STATE, 10, ROOT),
            snapshot(SESSION_STATE, 10, SESSION),
            snapshot(CHAT_STATE, 10),
            number=10,
        )

    async with trio.open_nursery() as nursery:
        nursery.start_soon(welcome)
        async with open_client(
            host.connect,
            client_id="phone",
            subscriptions=(ROOT, SESSION, CHAT),
            observer=diary.observer(),
            **({"backoff": None} | options),
        ) as client:
            yield Stage(client, made[0], host, diary)


async def settle() -> None:
    await trio.testing.wait_all_tasks_blocked()
