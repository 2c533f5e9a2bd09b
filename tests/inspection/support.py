"""Somebody who looks into the host of a test, over a connection of the real kind."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import trio

from ahpd.inspection.service import Inspector
from ahpd.protocol.frame import frame
from ahpd.protocol.jsontext import loads
from ahpd.transports.memory import memory_pair
from ahpd.transports.port import Transport, TransportClosed
from tests.harness import RunningHost


class NotDone(Exception):
    """The host's error."""

    def __init__(self, error: dict[str, Any]) -> None:
        super().__init__(error["message"])
        self.code: int = error["code"]


class Looker:
    """One connection. Notifications are collected in `told`."""

    def __init__(self, transport: Transport) -> None:
        self.told: list[tuple[str, Any]] = []
        self.answers: dict[int, Any] = {}
        self._transport = transport
        self._ids = 0
        self._news = trio.Event()

    async def read(self) -> None:
        while True:
            try:
                message = loads(await self._transport.receive())
            except TransportClosed:
                return
            if "method" in message:
                self.told.append((message["method"], message["params"]))
            else:
                self.answers[message["id"]] = message
            self._news.set()

    async def send(self, method: str, **params: Any) -> int:
        self._ids += 1
        message = {"jsonrpc": "2.0", "id": self._ids, "method": method, "params": params}
        await self._transport.send([frame(message)])
        return self._ids

    async def notify(self, method: str, **params: Any) -> None:
        await self._transport.send([frame({"jsonrpc": "2.0", "method": method, "params": params})])

    async def ask(self, method: str, **params: Any) -> Any:
        return await self.answer(await self.send(method, **params))

    async def answer(self, id: int) -> Any:
        """The result of a request; raises `NotDone`."""
        await self.until(lambda: id in self.answers)
        message = self.answers.pop(id)
        if "error" in message:
            raise NotDone(message["error"])
        return message["result"]

    async def until(self, condition: Callable[[], Any]) -> Any:
        """Read until something is so."""
        with trio.fail_after(60):
            while not (found := condition()):
                self._news = trio.Event()
                await self._news.wait()
        return found

    async def heard(self, method: str, **wanted: Any) -> Any:
        """The first notification of this kind with these params, taken out."""

        def found() -> Any:
            for place, (name, params) in enumerate(self.told):
                if name == method and all(params.get(k) == v for k, v in wanted.items()):
                    del self.told[place]
                    return (params,)
            return None

        [params] = await self.until(found)
        return params

    async def close(self) -> None:
        await self._transport.close()


@asynccontextmanager
async def looking(inspector: Inspector) -> AsyncIterator[Looker]:
    """A connection to an inspector, for the length of the block."""
    far, near = memory_pair()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(inspector.serve, near)
        looker = Looker(far)
        nursery.start_soon(looker.read)
        yield looker
        await looker.close()


def inspector_of(host: RunningHost) -> Inspector:
    return Inspector(host.system, host.tables)
