"""The store against a model: any interleaving of proposals, echoes, refusals and snapshots."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from ahpd.client.outcome import Outcome
from ahpd.client.store import OptimisticStore
from ahpd.protocol.connection import ActionEnvelope
from ahpd.protocol.session_actions import SessionTitleChangedAction
from tests.client.support import SESSION, SESSION_STATE, envelope, snapshot


class StoreMachine(RuleBasedStateMachine):
    """The model is a host's list of envelopes, and the titles that are on their way to it.

    Titles are cheap to follow: the last accepted one is the state, the last pending one the view.
    """

    @initialize()
    def begin(self) -> None:
        self.store = OptimisticStore[Any]("phone", snapshot(SESSION_STATE, 0, SESSION))
        self.number = 0
        self.title = "A session"
        self.client_seq = 0
        self.to_host: list[tuple[int, str]] = []
        self.to_client: list[ActionEnvelope] = []
        self.last: ActionEnvelope | None = None
        #: What the client should show: confirmed title, and its own pending ones.
        self.seen_title = "A session"
        self.pending: dict[int, str] = {}
        self.answers: dict[int, Outcome] = {}

    @rule(title=st.sampled_from("abc"))
    def propose(self, title: str) -> None:
        self.client_seq += 1
        self.store.propose(self.client_seq, SessionTitleChangedAction(title=title))
        self.to_host.append((self.client_seq, title))
        self.pending[self.client_seq] = title

    @precondition(lambda self: self.to_host)
    @rule(data=st.data(), refuse=st.booleans())
    def host_answers(self, data: st.DataObject, refuse: bool) -> None:
        place = data.draw(st.integers(0, len(self.to_host) - 1))  # in any order
        client_seq, title = self.to_host.pop(place)
        self._publish(title, ("phone", client_seq), "no" if refuse else None)

    @rule(title=st.sampled_from("xyz"), refuse=st.booleans())
    def others_act(self, title: str, refuse: bool) -> None:
        self._publish(title, ("desktop", 1), "no" if refuse else None)

    def _publish(self, title: str, by: tuple[str, int], refused: str | None) -> None:
        self.number += 1
        if refused is None:
            self.title = title
        self.to_client.append(
            envelope(
                self.number,
                SessionTitleChangedAction(title=title),
                channel=SESSION,
                by=by,
                refused=refused,
            )
        )

    @precondition(lambda self: self.to_client)
    @rule()
    def deliver(self) -> None:
        self._deliver(self.to_client.pop(0))

    def _deliver(self, what: ActionEnvelope) -> None:
        self.last = what
        receipt = self.store.receive(what)
        if what.rejection_reason is None and receipt.fresh:
            self.seen_title = what.action.title  # type: ignore[union-attr]
        assert what.origin is not None
        if what.origin.client_id == "phone":
            client_seq = int(what.origin.client_seq)
            del self.pending[client_seq]
            assert receipt.settled is not None
            assert receipt.settled.client_seq == client_seq
            assert receipt.answer is not None
            assert client_seq not in self.answers
            self.answers[client_seq] = receipt.answer
            assert (receipt.answer.kind == "refused") == (what.rejection_reason is not None)

    @precondition(lambda self: self.last)
    @rule()
    def deliver_again(self) -> None:
        assert self.last is not None
        receipt = self.store.receive(self.last)
        assert not receipt.fresh
        assert receipt.settled is None

    @rule()
    def take_a_snapshot(self) -> None:
        """As after a reconnect: what was under way is in the snapshot, and its echoes follow."""
        state = {**SESSION_STATE, "title": self.title}
        self.store.reset_to(snapshot(state, self.number, SESSION))
        self.seen_title = self.title
        late, self.to_client = self.to_client, []
        for each in late:
            self._deliver(each)

    @invariant()
    def shows_what_it_should(self) -> None:
        if not hasattr(self, "store"):
            return
        assert self.store.confirmed.title == self.seen_title
        assert [each.client_seq for each in self.store.pending] == list(self.pending)
        shown = list(self.pending.values())[-1:] or [self.seen_title]
        assert self.store.optimistic.title == shown[0]


TestStore = StoreMachine.TestCase
