"""`Link`: the connection of a client, and the way back when it is lost.

One attempt goes in this order: open a connection and hold its notifications; ``reconnect``, or
``initialize`` when the host does not know the client; apply the answer, then what was held; take
out the operations without an echo; authenticate and join again (`on_resumed`); subscribe to what
got no state; judge the operations taken out; send what is new.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping
from typing import Any, Literal, TypeAlias

import attrs
import trio

from ahpd.client.commands import DEFAULT, Default, plain
from ahpd.client.operation import Operation
from ahpd.client.replica import Channel, Hooks, Replica
from ahpd.client.rpc import ConnectionLost, Handler, Peer, RequestTimeout
from ahpd.protocol.codec import DecodeError, decoder
from ahpd.protocol.connection import (
    ActionEnvelope,
    DispatchActionParams,
    InitializeParams,
    InitializeResult,
    ReconnectParams,
    ReconnectReplayResult,
    ReconnectResult,
    ReconnectSnapshotResult,
    SubscribeParams,
    SubscribeResult,
)
from ahpd.protocol.errors import ErrorCode, ProtocolError
from ahpd.protocol.methods import METHODS
from ahpd.protocol.model import JSON, Object, Unknown, Wire
from ahpd.protocol.uris import canonical
from ahpd.transports.port import Transport, TransportClosed

#: Makes a new connection. Raises `TransportClosed` or `OSError` when that fails for now; any
#: other exception is not met by trying again and ends the client.
Connect: TypeAlias = Callable[[], Awaitable[Transport]]

#: ``connecting``: a connection is being made, or the handshake is under way. ``resuming``: the
#: state is the host's again, and operations without an echo are about to be settled.
#: ``connected``. ``offline``: no connection. ``closed``: for good.
Status: TypeAlias = Literal["connecting", "resuming", "connected", "offline", "closed"]

#: What a failed attempt to connect raises, when another one may succeed.
FAILED = (ConnectionLost, RequestTimeout, ProtocolError, DecodeError)

#: Errors to ``initialize`` that the next attempt would get too.
FINAL = frozenset({ErrorCode.UNSUPPORTED_PROTOCOL_VERSION})


def _nothing(*_: Any) -> None:
    pass


@attrs.define(kw_only=True)
class Observer(Hooks):
    """Whom a client tells; none of these may wait or raise.

    * `changed(channel, store, envelope)`: a store changed, by an envelope or (None) otherwise.
    * `settled(operation)`: an operation ended, however it did.
    * `dropped(channel, reason)`: the host does not have this channel any more.
    * `notice(method, params)`: a notification that changes no state, typed where it is known.
      None of them is replayed: fetch the session list again when the status is ``connected``.
    * `status(status, error)`: the connection; `error` is why it is ``offline``.
    """

    notice: Callable[[str, Wire | Object], None] = _nothing
    status: Callable[[Status, Exception | None], None] = _nothing


@attrs.frozen(kw_only=True)
class LinkOptions:
    """How a link connects; deadlines in seconds."""

    connect: Connect
    hello: InitializeParams
    handlers: Mapping[str, Handler]
    on_resumed: Callable[[], Awaitable[None]] | None
    connect_within: float
    request_within: float


class Link:
    """At most one connection at a time, and what the handshake on it does to the replica."""

    def __init__(
        self, options: LinkOptions, replica: Replica, observer: Observer, nursery: trio.Nursery
    ) -> None:
        self.status: Status = "offline"
        #: Why it is offline.
        self.error: Exception | None = None
        #: What the host said in the last handshake by ``initialize``.
        self.host: InitializeResult | None = None
        self._options = options
        self._replica = replica
        self._observer = observer
        self._nursery = nursery
        #: The connection, from the moment there is one.
        self._peer: Peer | None = None
        #: Notifications that came before the handshake was applied; None after it.
        self._held: list[tuple[str, Object]] | None = None
        self._attempting = trio.Lock()
        #: Swapped for a new one at every change of the status or of a store.
        self._news = trio.Event()

    # --- waiting for news

    def publish(self) -> None:
        """Something changed: wake whoever waits for `changed`."""
        if self._news.statistics().tasks_waiting:
            self._news.set()
            self._news = trio.Event()

    async def changed(self) -> None:
        """Wait for the next change; raises `ConnectionLost` when there will be none."""
        self._check_open()
        await self._news.wait()

    async def wait_status(self, *wanted: Status) -> Status:
        """Wait until the status is one of these; raises `ConnectionLost` when it never will."""
        while self.status not in wanted:
            await self.changed()
        return self.status

    def _set_status(self, status: Status, error: Exception | None = None) -> None:
        self.status, self.error = status, error
        self._observer.status(status, error)
        self.publish()

    # --- using the connection

    @property
    def is_up(self) -> bool:
        """Whether operations go out at once."""
        return self.status == "connected" and self._peer is not None and self._peer.lost is None

    def ready(self) -> Peer:
        """The connection, once the handshake is through; raises `ConnectionLost`."""
        if self._peer is None or self._peer.lost is not None or self._held is not None:
            raise ConnectionLost("not connected")
        return self._peer

    async def request(
        self,
        peer: Peer,
        method: str,
        params: Wire | Object,
        on_result: Callable[[JSON], Any],
        within: float | Default | None = DEFAULT,
    ) -> Any:
        """See `Peer.request`, with the deadline of the options as the default."""
        seconds = self._options.request_within if isinstance(within, Default) else within
        return await peer.request(method, plain(params), within=seconds, on_result=on_result)

    async def subscribe(self, peer: Peer, channel: Channel) -> None:
        """Subscribe to a channel whose envelopes are held, and apply the answer."""

        def apply(result: JSON) -> None:
            subscribed = decoder(SubscribeResult)(result)
            if self._replica.channels.get(channel.uri) is channel:  # not unsubscribed meanwhile
                self._replica.subscribed(channel, subscribed)

        params = SubscribeParams(channel=channel.uri, view=channel.view, delivery=channel.delivery)
        await self.request(peer, "subscribe", params, apply)

    def send(self, operation: Operation) -> None:
        """Send an operation, or lose it with the connection: the next reconnect judges it."""
        peer = self._peer
        if peer is not None and peer.lost is None:
            params = DispatchActionParams(
                channel=operation.channel, client_seq=operation.client_seq, action=operation.action
            )
            peer.notify("dispatchAction", params.wire())

    async def drain(self) -> None:
        """Wait until everything that was sent was written, or the connection is gone."""
        if self._peer is not None and self.is_up:
            await self._peer.drain()

    # --- making and losing it

    async def connect(self) -> None:
        """Make a new connection, ending the present one if there is one.

        Raises one of `FAILED`. When somebody else did it meanwhile, nothing is done.
        """
        before = self._peer
        async with self._attempting:
            if self._peer is before or self.status != "connected":
                await self.disconnect()
                await self._attempt()

    async def disconnect(self) -> None:
        """End the connection and wait until it is over. Does nothing without one."""
        peer = self._peer
        if peer is not None:
            peer.close("disconnected by this client")
            await peer.ended.wait()
            self._on_lost(peer)

    def close(self) -> None:
        """End the connection for good."""
        if self._peer is not None:
            self._peer.close("the client was closed")
        self._set_status("closed")

    async def keep_connected(self, delays: Callable[[], Iterator[float]]) -> None:
        """Come back whenever the connection is lost, until closed; `delays` are in seconds."""
        while await self.wait_status("offline", "closed") == "offline":
            for delay in delays():
                with trio.move_on_after(delay):
                    await self.wait_status("connected", "closed")
                if self.status in ("connected", "closed") or await self._try_again():
                    break
            if self.status == "offline":  # refused for good; somebody may still do it by hand
                await self.wait_status("connected", "closed")

    async def _try_again(self) -> bool:
        """Whether to stop trying: it worked, or the answer will always be no."""
        async with self._attempting:
            if self.status == "offline":
                try:
                    await self._attempt()
                except ProtocolError as error:
                    return error.code in FINAL
                except (ConnectionLost, RequestTimeout, DecodeError):
                    return False
        return True

    async def _attempt(self) -> None:
        """Connect and shake hands; raises one of `FAILED`, and is then offline again."""
        self._check_open()
        self._set_status("connecting")
        peer: Peer | None = None
        failure: Exception = ConnectionLost("cancelled", code=1000, clean=True)
        try:
            transport = await self._open()
            if self.status == "closed":  # meanwhile
                await transport.close()
            self._check_open()
            peer = Peer(transport, self._on_notification, self._options.handlers)
            self._peer, self._held = peer, []
            self._nursery.start_soon(self._run, peer)
            await self._handshake(peer)
            await self._resume(peer)
        except FAILED as error:
            failure = error
            raise
        finally:
            if self.status != "connected":
                if peer is not None:
                    peer.close(f"no handshake: {failure}")
                    self._on_lost(peer, failure)
                elif self.status != "closed":
                    self._set_status("offline", failure)

    def _check_open(self) -> None:
        if self.status == "closed":
            raise ConnectionLost("the client was closed", code=1000, clean=True)

    async def _open(self) -> Transport:
        within = self._options.connect_within
        transport: Transport | None = None
        with trio.move_on_after(within):
            try:
                transport = await self._options.connect()
            except (TransportClosed, OSError) as error:
                raise ConnectionLost(f"cannot connect: {error}") from error
        if transport is None:
            raise ConnectionLost(f"cannot connect within {within:g} s")
        return transport

    async def _run(self, peer: Peer) -> None:
        try:
            await peer.run()
        finally:
            self._on_lost(peer)

    def _on_lost(self, peer: Peer, error: Exception | None = None) -> None:
        if self._peer is not peer:
            return
        self._peer = self._held = None
        self._replica.release_all()
        if self.status != "closed":
            self._set_status("offline", error or peer.lost)

    # --- the handshake

    async def _handshake(self, peer: Peer) -> None:
        subscriptions = self._options.hello.initial_subscriptions or ()
        if self._replica.last_seen is not None:
            try:
                await self._reconnect(peer, self._replica.last_seen)
            except (ProtocolError, DecodeError):
                # Any error to it means: start over under the same id.
                subscriptions = tuple(self._replica.channels)
            else:
                return
        await self._initialize(peer, subscriptions)

    async def _reconnect(self, peer: Peer, last_seen: int) -> None:
        def apply(result: JSON) -> None:
            match decoder(ReconnectResult)(result):
                case ReconnectReplayResult() as replay:
                    self._replica.replayed(replay)
                case ReconnectSnapshotResult() as snapshots:
                    self._replica.restored(snapshots)
                case Unknown(tag=tag):
                    raise ProtocolError(
                        ErrorCode.INTERNAL_ERROR, f"reconnect was answered by an unknown {tag!r}"
                    )
            self._handshake_applied()

        params = ReconnectParams(
            client_id=self._replica.client_id,
            last_seen_server_seq=last_seen,
            subscriptions=self._replica.to_resume(),
        )
        await self.request(peer, "reconnect", params, apply)

    async def _initialize(self, peer: Peer, subscriptions: tuple[str, ...]) -> None:
        def apply(result: JSON) -> None:
            self.host = decoder(InitializeResult)(result)
            self._replica.initialized(self.host, subscriptions)
            self._handshake_applied()

        hello = self._options.hello.evolve(initial_subscriptions=subscriptions or None)
        await self.request(peer, "initialize", hello, apply)

    def _handshake_applied(self) -> None:
        """In one step with the answer: what was held, then the operations without an echo."""
        held, self._held = self._held, None
        for method, params in held or ():
            self._on_notification(method, params)
        self._replica.take_unacknowledged()
        self._set_status("resuming")

    async def _resume(self, peer: Peer) -> None:
        """Join again, get the states that are missing, settle what was open, send what is new."""
        if self._options.on_resumed is not None:
            await self._options.on_resumed()
        for channel in self._replica.to_subscribe():
            await self._subscribe_again(peer, channel)
        if peer.lost is not None:
            raise peer.lost
        self._replica.judge(self.send)
        for operation in self._replica.take_unsent():
            self.send(operation)
        self._set_status("connected")

    async def _subscribe_again(self, peer: Peer, channel: Channel) -> None:
        self._replica.subscribing(channel.uri, channel.view, channel.delivery)
        try:
            await self.subscribe(peer, channel)
        except ProtocolError as error:
            if self._replica.channels.get(channel.uri) is channel:
                self._replica.subscribe_failed(channel, error.message)

    # --- what comes in

    def _on_notification(self, method: str, params: Object) -> None:
        if self._held is not None:
            self._held.append((method, params))
            return
        try:
            if method == "action":
                self._replica.receive(decoder(ActionEnvelope)(params))
                return
            known = METHODS.get(method)
            notice = params if known is None else decoder(known.params)(params)
        except DecodeError as error:
            self._on_malformed(method, params, error)
        else:
            self._observer.notice(method, notice)

    def _on_malformed(self, method: str, params: Object, error: DecodeError) -> None:
        """An envelope that cannot be read leaves a hole in its channel: take a new snapshot."""
        channel = self._replica.channels.get(canonical(str(params.get("channel"))))
        if method == "action" and channel is not None and channel.is_live:
            self._replica.spoil(channel)
            self._nursery.start_soon(self._refresh, channel, error)

    async def _refresh(self, channel: Channel, error: DecodeError) -> None:
        peer = self._peer
        if peer is None or self._replica.channels.get(channel.uri) is not channel:
            return
        try:
            await self._subscribe_again(peer, channel)
        except (ConnectionLost, RequestTimeout, DecodeError):
            peer.close(f"no state of {channel.uri} after {error}")
