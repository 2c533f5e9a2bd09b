"""Everything a client knows: its channels, its numbers, its operations. Pure of I/O and time.

`Replica` is told what was sent and what came; `ahpd.client.client` does the sending.

Invariant: every operation that `dispatch` made is settled exactly once.
Invariant: an operation without an answer is in the store of its channel, or in `_doubts`.
Invariant: `client_seq` grows and is never used twice, whatever becomes of the connection.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeAlias

import attrs

from ahpd.client.operation import Operation
from ahpd.client.outcome import Outcome
from ahpd.client.resend import (
    Case,
    Drop,
    Evidence,
    Replace,
    Resend,
    Took,
    Verdict,
    rule_for,
    target_of,
)
from ahpd.client.store import OptimisticStore, Pending
from ahpd.protocol.actions import StateAction, action_type
from ahpd.protocol.connection import (
    ActionEnvelope,
    InitializeResult,
    ReconnectReplayResult,
    ReconnectSnapshotResult,
    Snapshot,
    SubscribeResult,
    SubscribeView,
    SubscriptionDeliveryOptions,
)
from ahpd.protocol.uris import URI, canonical

#: Called with the channel, its store, and the envelope that changed it; None when the change came
#: from here or from a snapshot. Must neither wait nor raise.
OnChange: TypeAlias = Callable[[URI, OptimisticStore[Any], ActionEnvelope | None], None]


@attrs.define
class Channel:
    """A subscription.

    `store` is None for a channel without state and before the first snapshot. `known`: the host
    has said yes to it once. `stale`: the store is not to be trusted until a new snapshot comes.
    `held` collects envelopes while an answer that may bring a snapshot is waited for; None
    otherwise.
    """

    uri: URI
    view: SubscribeView | None = None
    delivery: SubscriptionDeliveryOptions | None = None
    store: OptimisticStore[Any] | None = None
    known: bool = False
    stale: bool = False
    held: list[ActionEnvelope] | None = None

    @property
    def is_live(self) -> bool:
        """Whether its state is that of the host the client talks to."""
        return self.store is not None and not self.stale


def _nothing(*_: Any) -> None:
    pass


@attrs.define(kw_only=True)
class Hooks:
    """Whom a replica tells. `dropped` gets a channel that is gone, and why."""

    changed: OnChange = _nothing
    settled: Callable[[Operation], None] = _nothing
    dropped: Callable[[URI, str], None] = _nothing


class Replica:
    """The channels and operations of one logical client (R-4.7)."""

    def __init__(self, client_id: str, hooks: Hooks, *, first_client_seq: int = 1) -> None:
        self.client_id = client_id
        #: The number for `reconnect`: that of the last envelope handled, or what came in its
        #: place with a snapshot. It can go down (R-6.23).
        self.last_seen: int | None = None
        self.next_client_seq = first_client_seq
        self.channels: dict[URI, Channel] = {}
        self._hooks = hooks
        self._operations: dict[int, Operation] = {}
        #: Operations taken out of their stores at a reconnect and not judged yet, by number.
        self._doubts: dict[int, Pending] = {}

    # --- operations

    def dispatch(self, channel: URI, action: StateAction, *, sent: bool) -> Operation:
        """Make an operation and show it.

        Where there is no store to show it in it is unanswered at once: the host answers those
        who are subscribed (R-3.4).
        """
        uri = canonical(channel)
        operation = Operation(uri, self.next_client_seq, action)
        self.next_client_seq += 1
        self._operations[operation.client_seq] = operation
        known = self.channels.get(uri)
        if known is None or known.store is None:
            self._settle(operation.client_seq, Outcome("unanswered", "not subscribed there"))
        else:
            known.store.propose(operation.client_seq, action, sent=sent)
            self._hooks.changed(uri, known.store, None)
        return operation

    @property
    def open_operations(self) -> tuple[Operation, ...]:
        """Those that have not ended, oldest first."""
        return tuple(self._operations.values())

    def take_unsent(self) -> list[Operation]:
        """The operations in stores that were not sent yet, oldest first; they count as sent."""
        unsent = [
            pending
            for channel in self.channels.values()
            if channel.store is not None
            for pending in channel.store.pending
            if not pending.sent
        ]
        for pending in unsent:
            pending.sent = True
        return [
            self._operations[pending.client_seq]
            for pending in sorted(unsent, key=lambda each: each.client_seq)
        ]

    def _settle(self, client_seq: int, outcome: Outcome) -> None:
        operation = self._operations.pop(client_seq)
        operation.settle(outcome)
        self._hooks.settled(operation)

    def _give_up(self, pendings: Iterable[Pending], reason: str) -> None:
        for pending in pendings:
            self._settle(pending.client_seq, Outcome("unanswered", reason))

    def close(self) -> None:
        """Give up what is still open; what was held back is not looked at any more."""
        self._doubts.clear()
        for channel in self.channels.values():
            channel.held = None
            if channel.store is not None:
                channel.store.take_unacknowledged()
        for client_seq in list(self._operations):
            self._settle(client_seq, Outcome("unanswered", "the client was closed"))

    # --- envelopes

    def receive(self, envelope: ActionEnvelope) -> None:
        """Take in an envelope, from a notification or a replay."""
        channel = self.channels.get(canonical(envelope.channel))
        if channel is not None and channel.held is not None:
            channel.held.append(envelope)
            return
        # Numbers on a connection only grow; what does not is a duplicate, or a host's answer
        # without a new number.
        if self.last_seen is None or envelope.server_seq > self.last_seen:
            self.last_seen = envelope.server_seq
        if channel is not None and channel.is_live:
            self._apply(channel, envelope)

    def _apply(self, channel: Channel, envelope: ActionEnvelope) -> None:
        store = channel.store
        assert store is not None
        receipt = store.receive(envelope)
        settled = receipt.settled
        if settled is None and receipt.answer is not None:
            settled = self._take_doubt(envelope)
        if settled is not None:
            assert receipt.answer is not None
            self._settle(settled.client_seq, receipt.answer)
        if receipt.fresh or settled is not None:
            self._hooks.changed(channel.uri, store, envelope)

    def _take_doubt(self, envelope: ActionEnvelope) -> Pending | None:
        """An echo that came late, for an operation that was taken out already."""
        assert envelope.origin is not None
        pending = self._doubts.get(envelope.origin.client_seq)  # type: ignore[call-overload]
        if pending is None or action_type(pending.action) != action_type(envelope.action):
            return None
        return self._doubts.pop(pending.client_seq)

    # --- subscriptions

    def subscribing(
        self,
        uri: URI,
        view: SubscribeView | None,
        delivery: SubscriptionDeliveryOptions | None,
    ) -> Channel:
        """A subscribe goes out: hold the channel's envelopes until its answer is applied."""
        uri = canonical(uri)
        channel = self.channels.setdefault(uri, Channel(uri))
        channel.view, channel.delivery = view, delivery
        if channel.held is None:
            channel.held = []
        return channel

    def subscribed(self, channel: Channel, result: SubscribeResult) -> None:
        """The answer: take the snapshot, then what was held.

        `last_seen` stays: it tells up to where *all* channels are known, and asking for a little
        more than needed is harmless, as the store drops what it has.
        """
        channel.known = True
        if result.snapshot is not None:
            self._reset(channel, result.snapshot)
        elif channel.store is None:
            channel.stale = False
        self._release(channel)

    def subscribe_failed(self, channel: Channel, reason: str | None) -> None:
        """No answer. With a `reason` the host said no: the channel is gone.

        Without one the old state, if there was any, goes on; a channel that never had one is
        forgotten.
        """
        if reason is not None:
            self.drop(channel.uri, reason, tell=channel.known)
        elif not channel.known:
            self.channels.pop(channel.uri, None)
        self._release(channel)

    def release_all(self) -> None:
        """The connection is gone, and with it every open subscribe."""
        for channel in list(self.channels.values()):
            if not channel.known:
                del self.channels[channel.uri]
            self._release(channel)

    def spoil(self, channel: Channel) -> None:
        """An envelope of this channel was lost: its state is wrong until a snapshot comes."""
        channel.stale = True
        if channel.held is None:
            channel.held = []

    def _release(self, channel: Channel) -> None:
        held, channel.held = channel.held, None
        for envelope in held or ():
            self.receive(envelope)

    def _reset(self, channel: Channel, snapshot: Snapshot) -> None:
        channel.stale = False
        if channel.store is None:
            channel.store = OptimisticStore(self.client_id, snapshot)
        else:
            channel.store.reset_to(snapshot)
        self._hooks.changed(channel.uri, channel.store, None)

    def drop(self, uri: URI, reason: str, *, tell: bool = True) -> None:
        """Forget a channel; its operations are unanswered. `tell` the hook unless asked for."""
        channel = self.channels.pop(canonical(uri), None)
        if channel is None:
            return
        doubts = [each for each in self._doubts if self._operations[each].channel == channel.uri]
        self._give_up([self._doubts.pop(each) for each in doubts], reason)
        if channel.store is not None:
            self._give_up(channel.store.take_unacknowledged(), reason)
        if tell:
            self._hooks.dropped(channel.uri, reason)

    # --- coming back

    def initialized(self, result: InitializeResult, asked: Iterable[URI]) -> None:
        """A new start with the host: snapshots replace, and so does its number.

        A channel that got no snapshot may have none, or may not be ready: it is asked for again.
        """
        for uri in asked:
            self.channels.setdefault(canonical(uri), Channel(canonical(uri)))
        for channel in self.channels.values():
            channel.known = channel.stale = True
        for snapshot in result.snapshots:
            self._reset_known(snapshot)
        for channel in self.to_subscribe():
            channel.held = []
        self.last_seen = _complete_up_to(result.snapshots, result.server_seq)

    def replayed(self, result: ReconnectReplayResult) -> None:
        """Everything missed, in order; then the channels that are gone (R-6.2, R-6.4)."""
        for envelope in result.actions:
            self.receive(envelope)
        for uri in result.missing:
            self.drop(uri, "the host does not have it any more")

    def restored(self, result: ReconnectSnapshotResult) -> None:
        """Snapshots of what can be resumed; a state without a new one is gone (R-6.5)."""
        given = {canonical(snapshot.resource) for snapshot in result.snapshots}
        gone = [each.uri for each in self.channels.values() if each.is_live]
        for snapshot in result.snapshots:
            self._reset_known(snapshot)
        for uri in gone:
            if uri not in given:
                self.drop(uri, "the host has no state for it any more")
        self.last_seen = _complete_up_to(result.snapshots, self.last_seen or 0)

    def _reset_known(self, snapshot: Snapshot) -> None:
        channel = self.channels.get(canonical(snapshot.resource))
        if channel is not None:
            self._reset(channel, snapshot)

    def to_resume(self) -> tuple[URI, ...]:
        """What to list in `reconnect`: live channels, and those without state (R-6.1, R-6.8)."""
        return tuple(each.uri for each in self.channels.values() if each.known and not each.stale)

    def to_subscribe(self) -> list[Channel]:
        """Channels that a handshake left without state: not ready, or never with any (R-6.8)."""
        return [each for each in self.channels.values() if each.known and not each.is_live]

    def take_unacknowledged(self) -> None:
        """Take every operation without an echo out of its store, before anything new is sent."""
        for channel in self.channels.values():
            if channel.store is None or not channel.store.pending:
                continue
            for pending in channel.store.take_unacknowledged():
                pending.unsure |= channel.stale
                self._doubts[pending.client_seq] = pending
            self._hooks.changed(channel.uri, channel.store, None)

    def judge(self, send: Callable[[Operation], None]) -> None:
        """Settle what was taken out, oldest first: `send` again, or report it as unanswered."""
        while self._doubts:
            client_seq = min(self._doubts)
            pending = self._doubts[client_seq]
            operation = self._operations[client_seq]
            channel = self.channels[operation.channel]
            assert channel.store is not None
            verdict = self._verdict(pending, channel.store)
            del self._doubts[client_seq]
            match verdict:
                case Resend():
                    channel.store.put_back(pending)
                    send(operation)
                    self._hooks.changed(channel.uri, channel.store, None)
                case Took():
                    self._settle(client_seq, Outcome("accepted", "the state shows it"))
                case Replace(action=action, reason=reason):
                    operation.replaced_by = self.dispatch(channel.uri, action, sent=True)
                    self._settle(client_seq, Outcome("unanswered", reason))
                    send(operation.replaced_by)
                case Drop(reason=reason):
                    self._settle(client_seq, Outcome("unanswered", reason))

    def _verdict(self, pending: Pending, store: OptimisticStore[Any]) -> Verdict:
        target = target_of(pending.action)
        channel = self._operations[pending.client_seq].channel
        superseded = target is not None and any(
            seq > pending.client_seq
            and self._operations[seq].channel == channel
            and target_of(other.action) == target
            for seq, other in self._doubts.items()
        )
        case = Case(
            action=pending.action,
            evidence=_evidence(pending),
            client_id=self.client_id,
            confirmed=store.confirmed,
            view=store.optimistic_before(pending.client_seq),
            basis=pending.basis,
            superseded=superseded,
            reduce=store.reduce,
        )
        return rule_for(pending.action).judge(case)


def _evidence(pending: Pending) -> Evidence:
    if not pending.sent:
        return "unsent"
    return "unknown" if pending.unsure else "absent"


def _complete_up_to(snapshots: Iterable[Snapshot], number: int) -> int:
    """Up to which number all channels are known after a set of snapshots.

    A host may take the snapshots of different channels at different moments. The lowest number
    is then the one that leaves nothing out: after a higher one, an envelope of the channel that
    was taken first could still be under way, and be lost with the connection.
    """
    return min((snapshot.from_seq for snapshot in snapshots), default=number)
