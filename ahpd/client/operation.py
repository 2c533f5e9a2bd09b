"""`Operation`: a dispatched action whose ending can be awaited."""

from __future__ import annotations

import trio

from ahpd.client.outcome import Outcome
from ahpd.protocol.actions import StateAction
from ahpd.protocol.uris import URI


class Operation:
    """One wish of the user, from its dispatch to its one ending.

    `client_seq` stays the same when it is sent again after a lost connection. `replaced_by` is
    the operation that was sent in its place, when a reconnect showed that it no longer fits.
    """

    def __init__(self, channel: URI, client_seq: int, action: StateAction) -> None:
        self.channel = channel
        self.client_seq = client_seq
        self.action = action
        self.replaced_by: Operation | None = None
        self._outcome: Outcome | None = None
        self._settled = trio.Event()

    @property
    def outcome(self) -> Outcome | None:
        """How it ended; None while it has not."""
        return self._outcome

    def settle(self, outcome: Outcome) -> None:
        """End it. Invariant: this happens once."""
        assert self._outcome is None, (self, outcome)
        self._outcome = outcome
        self._settled.set()

    async def wait(self) -> Outcome:
        """Wait until it has ended. On cancel it goes on as before.

        Ends at the latest when the client closes. A host may never answer a dispatch to a channel
        that it does not have (R-5.15), so wait under a deadline of your own.
        """
        await self._settled.wait()
        assert self._outcome is not None
        return self._outcome

    def __repr__(self) -> str:
        """The number, the type and how it ended."""
        ended = self._outcome.kind if self._outcome else "waits"
        name = getattr(self.action, "type", "unknown")
        return f"<Operation {self.client_seq} {name} on {self.channel}: {ended}>"
