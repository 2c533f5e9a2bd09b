"""`RawPeer`: a peer whose every word is the test's."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import trio

from ahpd.protocol.frame import Frame, frame
from ahpd.protocol.jsontext import loads
from ahpd.protocol.model import JSON
from ahpd.protocol.uris import ROOT, URI
from ahpd.transports.port import Transport, TransportClosed
from tests.harness.wire import Wire


class Refused(Exception):
    """The host answered a request with an error."""

    def __init__(self, error: dict[str, Any]) -> None:
        super().__init__(f"{error['code']}: {error['message']}")
        self.code: int = error["code"]
        self.message: str = error["message"]
        self.data = error.get("data")


class RawPeer:
    """One connection. What the host sends is read at once into `inbox`, unless it is `stalled`."""

    def __init__(self, name: str, wire: Wire, transport: Transport) -> None:
        self.name = name
        self.wire = wire
        self.inbox: list[Any] = []
        #: Why the connection is over, once it is.
        self.closed: TransportClosed | None = None
        self._tap = wire.tap
        self._transport = transport
        self._news = trio.Event()
        self._stalled: trio.Event | None = None
        self._ids = itertools.count(1)
        self._seqs = itertools.count(1)

    @property
    def frames(self) -> list[tuple[Any, Any]]:
        """Every frame that was sent on this connection, either way, as (way, frame)."""
        assert self._tap is not None
        return self._tap.frames

    # ---- reading ----------------------------------------------------------------------------

    async def read(self) -> None:
        """Read until the connection is over; run by the harness beside the test."""
        while self.closed is None:
            if self._stalled is not None:
                await self._stalled.wait()
            try:
                self.inbox.append(loads(await self._transport.receive()))
            except TransportClosed as closed:
                self.closed = closed
            self._news.set()

    def stall(self) -> None:
        """Read nothing more for now; one message may already be on its way."""
        if self._stalled is None:
            self._stalled = trio.Event()

    def resume(self) -> None:
        """Read again."""
        if self._stalled is not None:
            self._stalled.set()
            self._stalled = None

    async def wait(self, wanted: Callable[[Any], bool], within: float = 30.0) -> Any:
        """The first message in the inbox that is `wanted`, taken out; those before it stay."""
        with trio.move_on_after(within):
            while True:
                for place, message in enumerate(self.inbox):
                    if wanted(message):
                        return self.inbox.pop(place)
                if self.closed is not None:
                    raise AssertionError(f"{self.name}: {self.closed}; not in {self.inbox}")
                self._news = trio.Event()
                await self._news.wait()
        raise AssertionError(f"{self.name}: not in {within:g} s; there is {self.inbox}")

    async def expect(self, method: str, within: float = 30.0, **params: Any) -> Any:
        """The params of the next notification of this method with (at least) these params."""

        def wanted(message: Any) -> bool:
            given = message.get("params", {})
            return bool(message.get("method") == method and params.items() <= given.items())

        return (await self.wait(wanted, within))["params"]

    async def expect_action(self, name: str, within: float = 30.0, **params: Any) -> Any:
        """The next envelope with an action of this type and (at least) these params."""

        def wanted(message: Any) -> bool:
            given = message.get("params", {})
            return bool(
                message.get("method") == "action"
                and given["action"]["type"] == name
                and params.items() <= given.items()
            )

        return (await self.wait(wanted, within))["params"]

    async def ended(self, within: float = 60.0) -> TransportClosed:
        """Wait until the host has closed the connection, and how."""
        with trio.fail_after(within):
            while self.closed is None:
                self._news = trio.Event()
                await self._news.wait()
        return self.closed

    # ---- speaking ---------------------------------------------------------------------------

    async def send(self, message: JSON | bytes) -> None:
        """Send anything; bytes go as they are."""
        await self._transport.send(
            [Frame(message) if isinstance(message, bytes) else frame(message)]
        )

    async def call(self, method: str, **params: Any) -> int:
        """Send a request and do not wait for its answer; its id."""
        id = next(self._ids)
        params.setdefault("channel", ROOT)
        await self.send({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
        return id

    async def answer_to(self, id: int, within: float = 60.0) -> Any:
        """The result of a request; raises `Refused`."""
        message = await self.wait(lambda it: it.get("id") == id and "method" not in it, within)
        if "error" in message:
            raise Refused(message["error"])
        return message["result"]

    async def request(self, method: str, **params: Any) -> Any:
        """Send a request and wait for its result; raises `Refused`."""
        return await self.answer_to(await self.call(method, **params))

    async def notify(self, method: str, **params: Any) -> None:
        """Send a notification."""
        await self.send({"jsonrpc": "2.0", "method": method, "params": params})

    async def hello(
        self,
        client_id: str | None = None,
        *,
        subscribe: Sequence[URI] = (ROOT,),
        versions: Sequence[str] = ("1.0.0",),
    ) -> Any:
        """`initialize`; the result. The client id is the peer's name unless told."""
        return await self.request(
            "initialize",
            protocolVersions=list(versions),
            clientId=client_id or self.name,
            initialSubscriptions=list(subscribe),
        )

    async def subscribe(self, channel: URI, **options: Any) -> Any:
        """`subscribe`; the snapshot."""
        return (await self.request("subscribe", channel=channel, **options))["snapshot"]

    async def dispatch(self, channel: URI, action: JSON, client_seq: int | None = None) -> int:
        """Send a dispatch; its `clientSeq`."""
        seq = next(self._seqs) if client_seq is None else client_seq
        await self.notify("dispatchAction", channel=channel, clientSeq=seq, action=action)
        return seq

    async def answered(self, client_seq: int, within: float = 60.0) -> Any:
        """The envelope that answers a dispatch of this peer."""
        return await self.wait(
            lambda it: (
                it.get("method") == "action"
                and it["params"].get("origin", {}).get("clientSeq") == client_seq
            ),
            within,
        )

    async def close(self) -> None:
        """Hang up."""
        await self._transport.close()

    def cut(self) -> None:
        """The connection breaks; what is under way is lost."""
        self.wire.cut()
