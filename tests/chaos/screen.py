"""A screen of the walk: one client id, whichever program uses it and whether or not it is on."""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import Any

import trio

from actors.ledger import Channel
from ahpd.client import Client, ConnectionLost, Observer, Operation, OptimisticStore, RequestTimeout
from ahpd.protocol.chat import ChatState
from ahpd.protocol.codec import DecodeError
from ahpd.protocol.errors import ProtocolError
from ahpd.protocol.jsontext import loads
from ahpd.protocol.session import SessionState
from ahpd.protocol.uris import ROOT, URI
from tests.harness import RunningHost, Wire

#: What a request or an attempt to connect may come to, in a world where anything may break.
FAILED = (ConnectionLost, RequestTimeout, ProtocolError, DecodeError)


class Screen:
    """One of the clients. Its program can be started again, which forgets all but its numbers."""

    def __init__(self, name: str, host: RunningHost, *, version: str = "1.0.0") -> None:
        self.name = name
        self.version = version
        self.wire: Wire = host.wire(name)
        self.wire.arrived = self._on_arrived
        #: The channels that its connection asked to hear, as they were then; None: there was none.
        self.heard: dict[URI, Channel | None] = {}
        #: What it heard under the name that each dispatch was for, when the host took that in.
        self.reached: dict[int, Channel | None] = {}
        self.client: Client | None = None
        self.dispatched: list[Operation] = []
        #: How often each operation ended, by its number; once is right.
        self.settled: Counter[int] = Counter()
        #: What became of each request: method and outcome.
        self.requests: Counter[tuple[str, str]] = Counter()
        self.open_requests = 0
        self.subscriptions: tuple[URI, ...] = (ROOT,)
        self._host = host
        self._quit = trio.Event()
        self._over = False
        self._connecting = False
        self._next_seq = 1

    # ---- its life ---------------------------------------------------------------------------

    async def live(self) -> None:
        """Run its program, again and again, until the walk is over."""
        while not self._over:
            self._quit = trio.Event()
            try:
                await self._run()
            except FAILED:
                await trio.sleep(0.5)

    async def _run(self) -> None:
        observer = Observer(settled=self._on_settled)
        async with self._host.client(
            self.name,
            subscriptions=self.subscriptions,
            versions=(self.version,),
            observer=observer,
            first_client_seq=self._next_seq,
        ) as client:
            self.client = client
            try:
                await self._quit.wait()
            finally:
                self._next_seq = client.next_client_seq
                self.client = None

    def restart(self) -> None:
        """The program ends and is started again under the same client id."""
        if self.client is not None:
            self.subscriptions = tuple(self.client.channels) or (ROOT,)
            self._quit.set()

    def finish(self) -> None:
        """The walk is over."""
        self._over = True
        self._quit.set()

    def _on_settled(self, operation: Operation) -> None:
        self.settled[operation.client_seq] += 1
        if operation.replaced_by is not None:
            self.dispatched.append(operation.replaced_by)

    def _on_arrived(self, text: bytes) -> None:
        frame: Any = loads(text)
        find, params = self._host.ledger.find, frame.get("params")
        match frame.get("method"):
            case "dispatchAction":
                self.reached[params["clientSeq"]] = self.heard.get(params["channel"])
            case "initialize":
                self.heard = {uri: find(uri) for uri in params["initialSubscriptions"]}
            case "reconnect":
                self.heard = {uri: find(uri) for uri in params["subscriptions"]}
            case "subscribe":
                self.heard[params["channel"]] = find(params["channel"])
            case "unsubscribe":
                self.heard.pop(params["channel"], None)
            case _:
                pass

    # ---- what it does -----------------------------------------------------------------------

    def dispatch(self, uri: URI, action: Any) -> None:
        """Propose an action; nothing happens while the program is not there."""
        if self.client is not None:
            self.dispatched.append(self.client.dispatch(uri, action))

    async def request(self, method: str, params: dict[str, Any]) -> None:
        """Ask for something, and note how that ended."""
        client = self.client
        if client is None:
            return
        self.open_requests += 1
        try:
            await client.request(method, params)
            self.requests[method, "done"] += 1
        except FAILED as error:
            self.requests[method, type(error).__name__] += 1
        finally:
            self.open_requests -= 1

    async def subscribe(self, uri: URI, **options: Any) -> None:
        """Subscribe, if that works."""
        client = self.client
        if client is None:
            return
        self.open_requests += 1
        try:
            await client.subscribe(uri, **options)
            self.requests["subscribe", "done"] += 1
        except FAILED as error:
            self.requests["subscribe", type(error).__name__] += 1
        finally:
            self.open_requests -= 1

    async def reconnect(self) -> None:
        """Make a new connection, unless that is being done already."""
        client = self.client
        if client is None or self._connecting:
            return
        self._connecting = True
        try:
            await client.reconnect_now()
        except FAILED:
            pass
        finally:
            self._connecting = False

    # ---- what it shows ----------------------------------------------------------------------

    @property
    def is_up(self) -> bool:
        """Whether it is connected and through the handshake."""
        return self.client is not None and self.client.status == "connected"

    def stores(self, kind: str) -> dict[URI, OptimisticStore[Any]]:
        """The stores of the channels of one kind that it has a state of."""
        if self.client is None:
            return {}
        return {
            uri: channel.store
            for uri, channel in self.client.channels.items()
            if channel.store is not None and channel.store.kind == kind
        }

    def a_chat(self, dice: Random) -> tuple[URI, ChatState] | None:
        """One of the chats that it shows, as it shows it."""
        return self._one_of("chat", dice)

    def a_session(self, dice: Random) -> tuple[URI, SessionState] | None:
        """One of the sessions that it shows, as it shows it."""
        return self._one_of("session", dice)

    def _one_of(self, kind: str, dice: Random) -> tuple[URI, Any] | None:
        stores = self.stores(kind)
        if not stores:
            return None
        uri = dice.choice(list(stores))
        return uri, stores[uri].optimistic
