"""One channel as a client keeps it: what the host confirmed, and what it has yet to answer.

Pure: no I/O, no trio, no clock. The reducer is bound by the class of the state when a snapshot
comes, never guessed from a URI.

Invariant: `confirmed` holds exactly the accepted envelopes up to `seen`, in the host's order.
Invariant: `pending` is in the order of dispatch, so that `client_seq` grows.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Callable, Mapping
from typing import Any, Generic, TypeAlias, TypeVar

import attrs

from ahpd.client.outcome import Outcome
from ahpd.protocol.actions import StateAction, action_type
from ahpd.protocol.connection import ActionEnvelope, Snapshot
from ahpd.protocol.model import WireType
from ahpd.protocol.uris import ChannelKind
from ahpd.reducers import STATES, apply

S = TypeVar("S")

#: A reducer bound to a kind of channel.
Reducer: TypeAlias = Callable[[S, StateAction], S]

_KINDS: Mapping[WireType, ChannelKind] = {state: kind for kind, state in STATES.items()}

#: Actions whose reducer changes nothing although the host does act on them (R-5.22): that their
#: echo changes nothing does not mean that they did not count.
SIDE_EFFECT_ONLY = frozenset(
    {
        "terminal/input",
        "automation/createRequested",
        "automation/updateRequested",
        "automationRun/cancelRequested",
    }
)


def kind_of(state: object) -> ChannelKind | None:
    """The kind of channel whose state this is; None for a state that nobody here knows."""
    return _KINDS.get(type(state))  # type: ignore[call-overload, no-any-return]


def reducer_for(kind: ChannelKind | None) -> Reducer[Any]:
    """The reducer of a kind of channel; a channel of no known kind stays as it is (R-5.31)."""
    if kind is None:
        return lambda state, _: state
    return lambda state, action: apply(kind, state, action)


@attrs.define
class Pending:
    """An operation that has no answer yet.

    `basis` is the confirmed state when it was dispatched, moved on by own echoes of the same type:
    what the user saw from others when they decided. `sent` says whether it was given to a
    connection; `unsure` that a snapshot replaced the state since, so that a missing echo proves
    nothing.
    """

    client_seq: int
    action: StateAction
    basis: Any
    sent: bool
    unsure: bool = False


@attrs.frozen
class Receipt:
    """What an envelope did to a store.

    `fresh`: it was not seen before. `changed`: the confirmed state is another object now.
    `settled` is the operation of this client that it answers, and `answer` how; `answer` is also
    there for an envelope of this client that answers nothing pending. `in_order` is False when
    an older operation is still without an answer (no rule demands the order, R-5.20).
    """

    fresh: bool
    changed: bool
    settled: Pending | None = None
    answer: Outcome | None = None
    in_order: bool = True


class OptimisticStore(Generic[S]):
    """Confirmed state, pending operations, and the state that a screen shows.

    `out_of_order` counts echoes that did not answer the oldest pending operation.
    """

    def __init__(self, client_id: str, snapshot: Snapshot) -> None:
        self.client_id = client_id
        self.out_of_order = 0
        self._pending: list[Pending] = []
        self._bind(snapshot)

    def _bind(self, snapshot: Snapshot) -> None:
        confirmed: Any = snapshot.state
        self.kind = kind_of(confirmed)
        self._reduce: Reducer[S] = reducer_for(self.kind)
        self._confirmed: S = confirmed
        self._baseline = snapshot.from_seq
        self._seen = snapshot.from_seq
        self._view: S | None = None

    @property
    def confirmed(self) -> S:
        """The state as the host has confirmed it."""
        return self._confirmed

    @property
    def seen(self) -> int:
        """The number up to which this channel is known; envelopes at or below it are dropped."""
        return self._seen

    @property
    def pending(self) -> tuple[Pending, ...]:
        """Operations without an answer, oldest first."""
        return tuple(self._pending)

    @property
    def optimistic(self) -> S:
        """The confirmed state with the pending operations applied: what a screen shows.

        Computed when it is read after a change, then kept.
        """
        if self._view is None:
            view = self._confirmed
            for each in self._pending:
                view = self._reduce(view, each.action)
            self._view = view
        return self._view

    def reduce(self, state: S, action: StateAction) -> S:
        """`state` after `action`, by this channel's reducer."""
        return self._reduce(state, action)

    def propose(self, client_seq: int, action: StateAction, *, sent: bool = True) -> Pending:
        """Show an operation before the host has answered it; `client_seq` must be the highest."""
        assert not self._pending or self._pending[-1].client_seq < client_seq, client_seq
        pending = Pending(client_seq, action, self._confirmed, sent)
        self._pending.append(pending)
        if self._view is not None:
            self._view = self._reduce(self._view, action)
        return pending

    def put_back(self, pending: Pending) -> None:
        """Show an operation again that was taken out and is sent once more, at its old place."""
        assert all(each.client_seq != pending.client_seq for each in self._pending), pending
        pending.sent = True
        insort(self._pending, pending, key=lambda each: each.client_seq)
        self._view = None

    def optimistic_before(self, client_seq: int) -> S:
        """The confirmed state with only those pending operations that were dispatched earlier."""
        view = self._confirmed
        for each in self._pending:
            if each.client_seq < client_seq:
                view = self._reduce(view, each.action)
        return view

    def receive(self, envelope: ActionEnvelope) -> Receipt:
        """Take in an envelope of this channel.

        A number that was seen is not applied again (R-4.19), a refused action never (R-5.16),
        whoever sent it. An answer to a pending operation settles it in either case: some hosts
        answer a refused or needless dispatch without a new number (R-5.18, R-5.25).
        """
        fresh = envelope.server_seq > self._seen
        before = self._confirmed
        if fresh:
            self._seen = envelope.server_seq
            if envelope.rejection_reason is None:
                self._confirmed = self._reduce(before, envelope.action)
        changed = self._confirmed is not before
        settled, in_order = self._take_answered(envelope)
        if changed or settled is not None:
            self._view = None
        if changed and settled is not None:
            self._rebase(settled)
        return Receipt(fresh, changed, settled, self._answer(envelope, fresh, changed), in_order)

    def _take_answered(self, envelope: ActionEnvelope) -> tuple[Pending | None, bool]:
        """Match by number within this client id, wherever in the queue.

        The type must fit too: another program that uses the same client id may use the same
        numbers.
        """
        origin = envelope.origin
        if origin is None or origin.client_id != self.client_id:
            return None, True
        for place, each in enumerate(self._pending):
            if each.client_seq == origin.client_seq:
                if action_type(each.action) != action_type(envelope.action):
                    return None, True
                del self._pending[place]
                self.out_of_order += place > 0
                return each, place == 0
        return None, True

    def _rebase(self, settled: Pending) -> None:
        """What this client itself changed is no news to its later operations of that type."""
        name = action_type(settled.action)
        for each in self._pending:
            if action_type(each.action) == name:
                each.basis = self._confirmed

    def _answer(self, envelope: ActionEnvelope, fresh: bool, changed: bool) -> Outcome | None:
        origin, number = envelope.origin, envelope.server_seq
        if origin is None or origin.client_id != self.client_id:
            return None
        if envelope.rejection_reason is not None:
            return Outcome("refused", envelope.rejection_reason, number)
        if changed or action_type(envelope.action) in SIDE_EFFECT_ONLY:
            return Outcome("accepted", None, number)
        # Not fresh and at or below the baseline: the snapshot has it, whatever it did.
        in_snapshot = not fresh and number <= self._baseline
        return Outcome("accepted" if in_snapshot else "unchanged", None, number)

    def reset_to(self, snapshot: Snapshot) -> None:
        """Start again from a snapshot; its number replaces the old one and may be lower.

        Pending operations stay, and are now `unsure`: their echoes may be behind the snapshot.
        """
        self._bind(snapshot)
        for each in self._pending:
            each.unsure = True

    def take_unacknowledged(self) -> tuple[Pending, ...]:
        """Take out every operation without an answer; the view is then the confirmed state."""
        taken = tuple(self._pending)
        self._pending.clear()
        self._view = None
        return taken
