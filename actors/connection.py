"""A connection: one client's transport, and everything that is said on it.

Three tasks. The *reader* takes messages off the transport, answers `ping` at once, and puts the
rest into this actor's mailbox, waiting while that is full: so a client that sends too fast is no
longer read. The actor itself handles them in the order they came. What may take long goes on beside
it, so that a slow request delays neither a ping nor a keystroke (hazard B02). The *writer* empties
the outbox into the transport, all that waits in one go.

It is temporary: when it ends, for whatever reason, the socket closes and the client comes back.
"""

from __future__ import annotations

import functools
import logging
from collections.abc import Callable
from contextlib import suppress
from typing import Any, TypeAlias

import trio
from msgspec import Struct

from actors import mailboxes
from actors.clients import ClientRecord
from actors.credentials import Credentials, concealed, revealed
from actors.grace import ClientGone
from actors.host import Host
from actors.ledger import Entry, Origin
from actors.messages import Dispatch, WakeSession
from actors.outbox import Outbox
from actors.refusal import as_protocol_error
from actors.requests import METHODS, Mode, Served
from actors.reverse import Reverse
from actors.subscribing import Deferred, leave_channel
from actors.subscriptions import Subscription
from actors.watches import WatcherGone
from ahpd.protocol.actions import StateAction
from ahpd.protocol.codec import DecodeError, decoder
from ahpd.protocol.errors import ErrorCode, ProtocolError
from ahpd.protocol.faults import shown
from ahpd.protocol.frame import Frame, frame
from ahpd.protocol.jsonrpc import (
    BadFrame,
    Failure,
    Id,
    Notification,
    Request,
    Success,
    failure,
    parse,
    success,
)
from ahpd.protocol.methods import METHODS as PROTOCOL
from ahpd.protocol.methods import Method
from ahpd.protocol.model import JSON, Object, Wire
from ahpd.protocol.uris import URI, canonical
from ahpd.transports.port import Immediate, Transport, TransportClosed
from supervisors import (
    Actor,
    ActorGone,
    ActorParked,
    Bug,
    CallFailed,
    ChildSpec,
    FailureKind,
    MailboxFull,
    Restart,
    SendRefused,
    Shutdown,
    SupervisorsError,
    System,
)

_log = logging.getLogger("ahpd.connections")


@functools.cache
def _action_decoder() -> Callable[[JSON], StateAction]:
    """Made when the first dispatch comes: it is the slowest to make, and an editor waits."""
    return decoder(StateAction)


#: Seconds that an offer which did not fit is left for a second one (R-2.5, quirk 2).
SECOND_OFFER = 5.0
#: Seconds that an actor which is just being started again is waited for.
RESTART_WITHIN = 5.0

#: Seconds that what a peer said before it went may still take to be handled,
WIND_DOWN_WITHIN = 5.0
#: and that the last answers may take to be written.
FLUSH_WITHIN = 1.0

#: Seconds that a journal which fails may take to work again before requests are refused.
FAILING_WITHIN = 2.0

#: Tries to have a session loaded over which the catalogue fails; it may be the session's fault.
WAKES = 3

#: Why a dispatch is refused whose actor cannot answer.
_PARKED = "this channel failed too often and is set aside until somebody restarts it"
_LOST = "this part of the host failed before it got to this, and did not do it; try again"


class Hangup(Struct, frozen=True):
    """The connection is over, or has to be: `code` and `reason` for the peer."""

    code: int
    reason: str


Incoming: TypeAlias = Request | Notification | Hangup


class Connection(Actor[Incoming]):
    """One connection; see the module's docstring. It is a `Listener`."""

    kind = "connection"

    def __init__(self, host: Host, transport: Transport) -> None:
        self.host = host
        self._transport = transport
        self._send_now = transport.send_nowait if isinstance(transport, Immediate) else None
        self.client_id: str | None = None
        self.is_old = False
        self.record: ClientRecord | None = None
        self.locale: str | None = None
        self.outbox = Outbox(lambda: host.settings.client_queue_bytes, self._overflowed)
        self.reverse = Reverse(self.post)
        self.settings: dict[str, JSON] = {}
        self.credentials = Credentials()
        self._beside = trio.CapacityLimiter(host.settings.open_requests)
        self._hangup = Hangup(1001, "the host stops")
        self._left = False
        #: Whom to tell when nothing can be written any more.
        self._on_silence: Callable[[], None] = _nothing
        #: Around the message in hand; cancelled when the peer is gone and nobody waits for it.
        self._doing = trio.CancelScope()

    # ---- its life ----------------------------------------------------------------------------

    async def on_start(self) -> None:
        """Start reading and writing."""
        self.spawn(self._read, name="reader", kind="reader")
        self.spawn(self._write, name="writer")

    async def on_stop(self, reason: str) -> None:
        """Say goodbye."""
        await self._flush()
        self._leave()
        await self._transport.close(self._hangup.code, self._hangup.reason)

    async def _flush(self) -> None:
        """Write the answers that are under way, as far as the peer still reads."""
        written = trio.Event()
        self._on_silence = written.set
        if not self.outbox.closed:
            self.host.ledger.post(lambda: self.outbox.after(written.set))
            with trio.move_on_after(FLUSH_WITHIN):
                await written.wait()

    async def on_crash(self, error: BaseException | None) -> None:
        """Let the socket go; the client comes back."""
        self._leave()
        await self._transport.close(1011, "this connection failed inside the host")

    def _leave(self) -> None:
        """Nothing of the host refers to this connection any more. Sync, and harmless twice."""
        if self._left:
            return
        self._left = True
        _log.debug("client %s left: %s", self.client_id, self._hangup.reason)
        host = self.host
        self.outbox.close()
        self.reverse.close()
        host.subscriptions.remove_listener(self)
        record = self.record
        if record is not None and host.clients.leave(record, self, host.ledger.seq):
            with suppress(ActorGone, MailboxFull):
                self.find("grace").cast(ClientGone(record.client_id))
            with suppress(ActorGone, MailboxFull):
                self.find("watches").cast(WatcherGone(record.client_id))

    async def handle(self, message: Incoming) -> None:
        """One message of the peer's, or the end."""
        with trio.CancelScope() as self._doing:
            await self._handle(message)
        if isinstance(message, Hangup):
            self._hangup = message
            self.stop(message.reason)

    async def _handle(self, message: Incoming) -> None:
        if self.host.dormant and not isinstance(message, Hangup):
            failure = await self._wake(message.params)
            if failure is not None and isinstance(message, Request):
                self._fail(message.id, as_protocol_error(failure))
                return
        match message:
            case Notification(method="dispatchAction"):
                await self._dispatch(message.params)
            case Request():
                await self._request(message)
            case Notification():
                self._notification(message)
            case Hangup():
                pass

    async def _wake(self, params: Object) -> CallFailed | None:
        """Have everything loaded that a message names.

        Why something that is there cannot be loaded now; what cannot be read at all is not there.
        """
        failure: CallFailed | None = None
        for session in self.host.dormant.named_in(params):
            error = await self._wake_one(session)
            if session in self.host.dormant:  # or a client would take it for gone (hazard B29)
                failure = error
        return failure

    async def _wake_one(self, session: URI) -> CallFailed | None:
        """Have one loaded. A catalogue that fails may know better the next time."""
        catalogue, within = self.find("catalogue"), self.host.settings.request_within
        failure: CallFailed | None = None
        for _ in range(WAKES):
            with trio.move_on_after(RESTART_WITHIN):
                await self.system.wait_for("catalogue")
            try:
                await catalogue.call(WakeSession(session), within=within)
            except CallFailed as error:
                failure = error
                if error.failure.kind not in (FailureKind.CRASHED, FailureKind.GONE):
                    break
            else:
                return None
        return failure

    def hang_up(self, code: int, reason: str) -> None:
        """End this connection, before anything else, also when it waits for somebody now."""
        self._doing.cancel(reason=reason)
        with suppress(ActorGone, MailboxFull):
            self.ref.cast(Hangup(code, reason), urgent=True)

    def _overflowed(self, reason: str) -> None:
        _log.warning("%s: does not read: %s", self._transport.peer, reason)
        self.hang_up(1013, reason)

    # ---- the transport -----------------------------------------------------------------------

    async def _read(self) -> None:
        """Helper: from the transport into the mailbox."""
        me, transport, outbox = self.ref, self._transport, self.outbox
        while True:
            try:
                text = await transport.receive()
            except TransportClosed as closed:
                await self._wind_down(closed)
                return
            try:
                message = parse(text)
            except BadFrame as fault:
                if fault.answerable:
                    outbox.put(frame(failure(fault.id, fault)))
                continue
            if isinstance(message, Request) and message.method == "ping":
                outbox.put_urgent(frame(success(message.id, None)))  # at any time
            elif isinstance(message, (Success, Failure)):
                self.reverse.answered(message)  # here, or a request that waits for it never ends
            else:
                if isinstance(message, Request) and message.method == "authenticate":
                    message = concealed(message)
                await self.host.ledger.room.wait()
                await me.send(message, cost=len(text))

    async def _write(self) -> None:
        """Helper: from the outbox into the transport."""
        outbox, transport = self.outbox, self._transport
        while True:
            batch = await outbox.take()
            if outbox.closed:
                return
            try:
                if batch.frames or batch.has_rest:
                    await transport.send(batch.frames)
            except TransportClosed as closed:
                outbox.close()
                self._on_silence()
                # The reader comes to the end too, when it has read what came before.
                await trio.sleep(WIND_DOWN_WITHIN)
                self.hang_up(closed.code, closed.reason)
                return
            outbox.done(batch)

    async def _wind_down(self, closed: TransportClosed) -> None:
        """The peer is gone. What it said before it went still counts, unless that takes long."""
        with trio.move_on_after(WIND_DOWN_WITHIN):
            await self.ref.send(Hangup(closed.code, closed.reason))
            await trio.sleep_forever()
        self.hang_up(closed.code, closed.reason)

    # ---- a listener --------------------------------------------------------------------------

    @property
    def backlog(self) -> int:
        """Bytes that wait to be written to it."""
        return self.outbox.size

    def hear(self, entry: Entry, subscription: Subscription) -> None:
        """An envelope of a channel it is subscribed to."""
        text = subscription.frame_of(entry)
        if entry.page is not None and self.record is not None:
            self.host.clients.touch(self.record)  # it may hold older turns now
        if text is not None:
            self.outbox.put_entry(entry, text, subscription.hold)

    def flush(self) -> None:
        """That was all for now."""
        self.outbox.flush(self._send_now)

    def tell(self, frame: Frame) -> None:
        """A notification."""
        self.outbox.put(frame)

    # ---- dispatches --------------------------------------------------------------------------

    async def _dispatch(self, params: Object) -> None:
        """Pass a dispatch on to the actor of its channel; what cannot be answered is dropped.

        That is a dispatch before the handshake, without a usable `clientSeq`, for no channel, or to
        one that does not exist (R-1.32, R-5.15).
        """
        uri, client_seq, raw = params.get("channel"), params.get("clientSeq"), params.get("action")
        if not isinstance(client_seq, (int, float)) or isinstance(client_seq, bool):
            return
        if self.client_id is None or not isinstance(uri, str):
            return
        if not isinstance(raw, dict) or not isinstance(raw.get("type"), str):
            return
        channel = self.host.ledger.find(canonical(uri))
        if channel is None:
            return
        origin = Origin(self.client_id, client_seq)
        try:
            dispatch = Dispatch(channel, origin, self, raw, _action_decoder()(raw))
        except DecodeError as error:
            dispatch = Dispatch(channel, origin, self, raw, None, str(error.fault))
        try:
            await self._pass_on(dispatch)
        except ActorParked:
            self._refuse(dispatch, _PARKED)  # at once: what the client sends next must not wait
        except ActorGone:
            await self._dispatch_later(dispatch)

    async def _pass_on(self, dispatch: Dispatch) -> None:
        def lost(_: object) -> None:
            # Refused, not given again: it may be what the actor failed over.
            if not dispatch.answered:
                self._refuse(dispatch, _LOST)

        await self.find(dispatch.channel.path).send(dispatch, cost=512, on_lost=lost)

    async def _dispatch_later(self, dispatch: Dispatch) -> None:
        """Its actor is not there yet: wait a little, then refuse, so that there is an answer."""
        channel = dispatch.channel
        with trio.move_on_after(RESTART_WITHIN), suppress(ActorGone):
            await self.system.registry.wait_for(channel.path)
            await self._pass_on(dispatch)
            return
        self._refuse(dispatch, _PARKED)

    def _refuse(self, dispatch: Dispatch, reason: str) -> None:
        """Answer in the place of an actor that cannot (invariant 5)."""
        dispatch.answered = True
        self.host.ledger.answer(
            dispatch.channel, dispatch.raw, origin=dispatch.origin, asker=self, reason=reason
        )

    # ---- requests ----------------------------------------------------------------------------

    def _notification(self, message: Notification) -> None:
        """Only `unsubscribe`; others are ignored without a word (R-1.33)."""
        if message.method == "unsubscribe" and self.client_id is not None:
            uri = message.params.get("channel")
            if isinstance(uri, str):
                self.unsubscribe(canonical(uri))

    async def _request(self, message: Request) -> None:
        if (why := await self._failing()) is not None:
            # Past the queue, where answers wait for the journal; nothing of it was begun.
            error = ProtocolError(ErrorCode.INTERNAL_ERROR, f"{message.method}: {why}")
            self.outbox.put(frame(failure(message.id, error)))
            return
        try:
            served, params = self._admit(message)
            if served.mode is Mode.BESIDE:
                turn = object()
                await self._beside.acquire_on_behalf_of(turn)
                self.spawn(self._answer_beside, turn, served, message, params, name=message.method)
                return
            await self._answer(served, message, params)
        except ProtocolError as error:
            self._fail(message.id, error)

    async def _failing(self) -> str | None:
        """Why nothing can be kept, and so nothing be begun, when that lasts (hazard B38)."""
        ledger = self.host.ledger
        if ledger.failing is None:
            return None
        works = trio.Event()
        ledger.post(works.set)
        with trio.move_on_after(FAILING_WITHIN):
            await works.wait()
        if ledger.failing is None:
            return None
        return f"the host can keep nothing now, so it begins nothing: {ledger.failing}"

    async def _answer(self, served: Served, message: Request, params: Any) -> None:
        """Exactly one answer, whatever the handler does (R-1.9)."""
        try:
            result = await served.handler(self, params)
        except CallFailed as error:
            self._fail(message.id, as_protocol_error(error))
        except ProtocolError as error:
            self._fail(message.id, error)
        except Bug:
            raise
        except Exception:  # noqa: BLE001 a fault of ours: the peer hears of it (B68) and stays
            _log.exception("%s: %s failed", self.path, message.method)
            self._fail(message.id, _broken(message.method))
        else:
            self._succeed(message, result)

    async def _answer_beside(
        self, turn: object, served: Served, message: Request, params: Any
    ) -> None:
        """Helper: a request that may take its time."""
        try:
            await self._answer(served, message, params)
        finally:
            self._beside.release_on_behalf_of(turn)

    def _admit(self, message: Request) -> tuple[Served, Any]:
        """The method and its decoded params; raises `ProtocolError` for what is not served."""
        served = METHODS.get(message.method)
        if served is None:
            raise ProtocolError(
                ErrorCode.METHOD_NOT_FOUND, f"the method {message.method} is not served here"
            )
        is_handshake = message.method in ("initialize", "reconnect")
        if self.client_id is None and not is_handshake:
            raise ProtocolError(
                ErrorCode.INVALID_REQUEST, f"{message.method} before initialize or reconnect"
            )
        if self.client_id is not None and is_handshake:
            raise ProtocolError(
                ErrorCode.INVALID_REQUEST, f"{message.method} on a connection that is open already"
            )
        method = PROTOCOL[message.method]
        params = _with_channel(method, revealed(message.params))
        try:
            return served, decoder(method.params)(params)
        except DecodeError as error:
            raise ProtocolError(ErrorCode.INVALID_PARAMS, f"{method.name}: {error.fault}") from None

    def _succeed(self, message: Request, result: Any) -> None:
        """Answer after everything that was said before (R-9.1, R-9.72)."""
        if isinstance(result, Deferred):
            self._post_deferred(message, result)
            return
        value = result.wire() if isinstance(result, Wire) else result
        self.post(frame(success(message.id, value)))

    def _fail(self, id: Id, error: ProtocolError) -> None:
        _log.debug("request %r is refused, %d: %s", id, error.code, error.message)
        self.post(frame(failure(id, error)))
        if error.code == ErrorCode.UNSUPPORTED_PROTOCOL_VERSION:
            self.spawn(self._await_second_offer, name="second offer")

    async def _await_second_offer(self) -> None:
        """Helper: close a connection that found no common version, unless it finds one now."""
        await trio.sleep(SECOND_OFFER)
        if self.client_id is None:
            self.hang_up(1002, "no common protocol version")

    def post(self, answer: Frame) -> None:
        """Send `answer` at this place in the host's order."""
        self.host.ledger.post(lambda: self.outbox.put(answer))

    def _post_deferred(self, message: Request, answer: Deferred) -> None:
        """Have the answer made at this place in the host's order, and its effects right after."""

        def release() -> None:
            try:
                made = answer.make(message.id)
            except Exception:  # noqa: BLE001 tried again it would stop the sequencer for good
                _log.exception("%s: the answer to %s failed", self.path, message.method)
                self.outbox.put(frame(failure(message.id, _broken(message.method))))
                return
            self.outbox.put(made)
            answer.after()

        self.host.ledger.post(release)

    def unsubscribe(self, uri: URI) -> None:
        """R-4.36; for a session the client leaves, when none of its windows still hears it.

        In its place in the order, or it would overtake the `subscribe` it means to undo.
        """
        self.host.ledger.post(lambda: leave_channel(self, uri))


def _broken(method: str) -> ProtocolError:
    return ProtocolError(ErrorCode.INTERNAL_ERROR, f"{method} failed inside the host")


def _nothing() -> None:
    """Nobody waits."""


def _with_channel(method: Method, params: Object) -> JSON:
    """The params with the fixed channel of the method: missing is tolerated, wrong is not (R-1.18).

    `initialize` and `ping` are how a client finds out whether it can talk at all: any will do.
    """
    fixed = method.fixed_channel
    if fixed is None:
        return params
    given = params.get("channel", fixed)
    if method.name not in ("initialize", "ping"):
        spelled = canonical(given) if isinstance(given, str) else given
        if spelled != fixed:
            raise ProtocolError(
                ErrorCode.INVALID_PARAMS, f'{method.name} is for "{fixed}", not {shown(given)}'
            )
    return {**params, "channel": fixed}


def connection_spec(number: int, host: Host, transport: Transport) -> ChildSpec:
    """How a connection is supervised: not at all, its client comes back."""
    return ChildSpec(
        str(number),
        Connection,
        (host, transport),
        restart=Restart.TEMPORARY,
        mailbox=mailboxes.CONNECTION,
        shutdown=Shutdown(grace=2.0),
    )


async def serve_connection(system: System, host: Host, transport: Transport) -> None:
    """Serve one transport until its connection is over: what a listener does with each.

    Cancelled: the connection is told to end, and not waited for.
    """
    spec = connection_spec(system.number(), host, transport)
    over = trio.Event()
    connections = system.supervisor("connections")
    try:
        ref = await connections.start_child(spec)
    except SupervisorsError:  # the host is stopping
        await transport.close(1001, "the host stops")
        return
    system.monitor(ref.path, lambda _: over.set())
    try:
        await over.wait()
    finally:
        if not over.is_set():
            with suppress(SendRefused):
                ref.cast(Hangup(1001, "the host stops"), urgent=True)
