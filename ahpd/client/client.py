"""`Client`: what a program does with a host; `open_client` makes one that comes back by itself."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any, TypeVar

import trio

from ahpd.client.backoff import Backoff
from ahpd.client.commands import DEFAULT, Commands, Default, plain, result_of
from ahpd.client.link import Connect, Link, LinkOptions, Observer, Status
from ahpd.client.operation import Operation
from ahpd.client.replica import Channel, Hooks, OnChange, Replica
from ahpd.client.rpc import ConnectionLost, Handler
from ahpd.client.store import OptimisticStore
from ahpd.protocol.actions import StateAction
from ahpd.protocol.common import Implementation
from ahpd.protocol.connection import (
    ActionEnvelope,
    ClientCapabilities,
    DispatchActionParams,
    InitializeParams,
    InitializeResult,
    SubscribeView,
    SubscriptionDeliveryOptions,
    UnsubscribeParams,
)
from ahpd.protocol.errors import ProtocolError
from ahpd.protocol.jsontext import dumps
from ahpd.protocol.model import Object, Wire
from ahpd.protocol.uris import ROOT, URI, canonical

T = TypeVar("T")

#: Seconds that what was dispatched last may take to be written when the client closes.
DRAIN_WITHIN = 2.0


class ChannelGone(Exception):
    """A channel was dropped, or never was there. Whoever uses it gives up or subscribes again."""


class Client(Commands):
    """One logical client of a host.

    For one trio thread. A client id belongs to one client at a time: two that share it would
    take each other's echoes for their own.
    """

    def __init__(
        self,
        options: LinkOptions,
        observer: Observer,
        nursery: trio.Nursery,
        *,
        first_client_seq: int,
    ) -> None:
        self._observer = observer
        self._observers: dict[URI, list[OnChange]] = {}
        hooks = Hooks(changed=self._on_changed, settled=observer.settled, dropped=self._on_dropped)
        self._replica = Replica(options.hello.client_id, hooks, first_client_seq=first_client_seq)
        self._link = Link(options, self._replica, observer, nursery)

    # --- what there is

    @property
    def client_id(self) -> str:
        """The id under which the host knows this client."""
        return self._replica.client_id

    @property
    def status(self) -> Status:
        """The state of the connection."""
        return self._link.status

    @property
    def error(self) -> Exception | None:
        """Why the client is offline; None when it is not."""
        return self._link.error

    @property
    def host(self) -> InitializeResult | None:
        """What the host said in the last handshake by ``initialize``."""
        return self._link.host

    @property
    def channels(self) -> Mapping[URI, Channel]:
        """The subscriptions, by URI."""
        return self._replica.channels

    @property
    def last_seen(self) -> int | None:
        """The number of the last envelope handled, or what took its place with a snapshot."""
        return self._replica.last_seen

    @property
    def next_client_seq(self) -> int:
        """The number of the next dispatch: keep it with the client id, to go on from there."""
        return self._replica.next_client_seq

    @property
    def open_operations(self) -> tuple[Operation, ...]:
        """The operations that have not ended, oldest first."""
        return self._replica.open_operations

    def store(self, channel: URI) -> OptimisticStore[Any]:
        """The store of a subscribed channel with state; raises `ChannelGone`."""
        known = self._replica.channels.get(canonical(channel))
        if known is None or known.store is None:
            raise ChannelGone(f"no state of {channel}")
        return known.store

    def observe(self, channel: URI, on_change: OnChange) -> Callable[[], None]:
        """Call `on_change(channel, store, envelope)` at each change, also after a reconnect.

        Returns a function that ends it.
        """
        calls = self._observers.setdefault(canonical(channel), [])
        calls.append(on_change)
        return lambda: calls.remove(on_change)

    async def until(self, channel: URI, predicate: Callable[[Any], T | None]) -> T:
        """Wait until `predicate` of a channel's optimistic state is true, and return what it gave.

        Waits through lost connections. Raises `ChannelGone`, and `ConnectionLost` when the client
        is closed.
        """
        await trio.lowlevel.checkpoint()
        while True:
            found = predicate(self.store(channel).optimistic)
            if found:
                return found
            await self._link.changed()

    async def wait_status(self, *wanted: Status) -> Status:
        """Wait until the status is one of these; raises `ConnectionLost` when it never will."""
        await trio.lowlevel.checkpoint()
        return await self._link.wait_status(*wanted)

    # --- what can be done

    async def request(
        self, method: str, params: Wire | Object, *, within: float | Default | None = DEFAULT
    ) -> Any:
        """Send any request and wait for its typed result.

        `within` is in seconds, None for no deadline, and the client's own when left out. Raises
        `ProtocolError`, `RequestTimeout`, `DecodeError` (the result is malformed) and
        `ConnectionLost`: at once while there is no connection, and when it ends meanwhile.
        """
        return await self._link.request(
            self._link.ready(), method, params, lambda result: result_of(method, result), within
        )

    def notify(self, method: str, params: Wire | Object) -> None:
        """Send any notification; raises `ConnectionLost`."""
        self._link.ready().notify(method, plain(params))

    async def subscribe(
        self,
        channel: URI,
        *,
        view: SubscribeView | None = None,
        delivery: SubscriptionDeliveryOptions | None = None,
    ) -> OptimisticStore[Any] | None:
        """Subscribe, and return the store; None for a channel without state.

        On a channel that is subscribed already it brings a fresh snapshot. Raises as `request`
        does. On cancel a new subscription is taken back.
        """
        peer = self._link.ready()
        known = self._replica.subscribing(channel, view, delivery)
        is_new, answered, refused = not known.known, False, None
        try:
            await self._link.subscribe(peer, known)
            answered = True
        except ProtocolError as error:
            refused = error.message
            raise
        finally:
            # After a lost connection the channel is forgotten already.
            if not answered and self._replica.channels.get(known.uri) is known:
                self._replica.subscribe_failed(known, refused)
                if is_new and refused is None:
                    self._tell_unsubscribed(known.uri)
        return known.store

    def unsubscribe(self, channel: URI) -> None:
        """End a subscription (R-4.36); its open operations end as ``unanswered``.

        Without a connection nothing is sent: the next one is not told of the channel at all.
        """
        uri = canonical(channel)
        self._replica.drop(uri, "unsubscribed", tell=False)
        self._tell_unsubscribed(uri)
        self._link.publish()

    def _tell_unsubscribed(self, uri: URI) -> None:
        if self._link.status in ("connected", "resuming"):
            with suppress(ConnectionLost):  # lost a moment ago; the status follows
                self._link.ready().notify("unsubscribe", UnsubscribeParams(channel=uri).wire())

    def dispatch(self, channel: URI, action: StateAction) -> Operation:
        """Propose an action: shown at once, sent at once or after the next reconnect.

        What is dispatched while there is no connection is judged by `ahpd.client.resend` then.
        Raises `ParseError` for what cannot be written as JSON.
        """
        sent = self._link.is_up
        params = DispatchActionParams(
            channel=canonical(channel),
            client_seq=self._replica.next_client_seq,
            action=action,
        ).wire()
        if sent:
            self._link.ready().notify("dispatchAction", params)
        else:
            dumps(params)  # so that it fails here, and not when the connection is back
        return self._replica.dispatch(channel, action, sent=sent)

    async def reconnect_now(self) -> None:
        """Make a new connection at once, ending the present one if there is one.

        Raises what the attempt failed with: `ConnectionLost`, `RequestTimeout`, `ProtocolError`
        or `DecodeError`. On cancel the client is left offline.
        """
        await self._link.connect()

    async def disconnect(self) -> None:
        """End the connection. Unless there is a backoff, the client stays offline."""
        await trio.lowlevel.checkpoint()
        await self._link.disconnect()

    # --- what the replica tells

    def _on_changed(
        self, channel: URI, store: OptimisticStore[Any], envelope: ActionEnvelope | None
    ) -> None:
        self._observer.changed(channel, store, envelope)
        for call in tuple(self._observers.get(channel, ())):
            call(channel, store, envelope)
        self._link.publish()

    def _on_dropped(self, channel: URI, reason: str) -> None:
        self._observer.dropped(channel, reason)
        self._link.publish()

    def _close(self) -> None:
        self._link.close()
        self._replica.close()


@asynccontextmanager
async def open_client(
    connect: Connect,
    *,
    client_id: str,
    subscriptions: Sequence[URI] = (ROOT,),
    versions: Sequence[str] = ("1.0.0",),
    client_info: Implementation | None = None,
    locale: str | None = None,
    capabilities: ClientCapabilities | None = None,
    observer: Observer | None = None,
    handlers: Mapping[str, Handler] | None = None,
    on_resumed: Callable[[Client], Awaitable[None]] | None = None,
    backoff: Backoff | None = Backoff(),  # noqa: B008 - frozen
    seed: int = 0,
    first_client_seq: int = 1,
    connect_within: float = 10.0,
    request_within: float = 30.0,
) -> AsyncIterator[Client]:
    """A client that is connected when the body begins, and closed when it ends.

    `connect` makes each connection. `client_id` and `first_client_seq` are kept by whoever wants
    to come back as the same client after a restart. `subscriptions` go into ``initialize``.
    `handlers` answer requests of the host; others get -32601. `on_resumed` runs after every
    handshake before operations are sent: hand over tokens and join sessions there, with
    `Client.request`; what it raises fails the attempt. `backoff` spaces the attempts to come
    back, with randomness from `seed`; None leaves them to `Client.reconnect_now`. Deadlines are
    in seconds.

    The first connection is tried once: what it fails with is raised (see `reconnect_now`). So is
    what the body raises, as it is. An error in an observer, or one of `connect` that it may not
    raise, ends the client and comes out in a group.
    """
    failure: Exception | None = None
    async with trio.open_nursery() as nursery:

        async def resumed() -> None:
            if on_resumed is not None:
                await on_resumed(client)

        options = LinkOptions(
            connect=connect,
            hello=InitializeParams(
                protocol_versions=tuple(versions),
                client_id=client_id,
                client_info=client_info,
                initial_subscriptions=tuple(map(canonical, subscriptions)),
                locale=locale,
                capabilities=capabilities,
            ),
            handlers=handlers or {},
            on_resumed=resumed,
            connect_within=connect_within,
            request_within=request_within,
        )
        client = Client(options, observer or Observer(), nursery, first_client_seq=first_client_seq)
        try:
            await client._link.connect()
            if backoff is not None:
                source = random.Random(seed)
                nursery.start_soon(client._link.keep_connected, lambda: backoff.delays(source))
            yield client
            with trio.move_on_after(DRAIN_WITHIN):
                await client._link.drain()
        except Exception as error:  # noqa: BLE001 - raised again below, outside the group
            failure = error
        finally:
            client._close()
            nursery.cancel_scope.cancel(reason="the client is closed")
    if failure is not None:
        raise failure
