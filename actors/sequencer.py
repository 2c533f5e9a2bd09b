"""The sequencer: makes the head of the ledger's queue durable, and lets it out in order.

It owns no state that a crash could lose. The queue is the ledger's, an item leaves it only after it
was let out, and letting out is one sync step; so a sequencer that is killed at any checkpoint goes
on, when it is started again, exactly where it was. A group that may or may not have been written is
written again: the journal skips what it has.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

import attrs

from actors.ledger import Entry, Ledger
from actors.replay import ReplayWindow
from actors.subscriptions import Subscriptions
from ahpd.journal.port import Journal
from supervisors import Actor, ActorGone, MailboxFull

#: Most items of one group: bounds how long the others wait for a slow journal.
GROUP = 1024


@attrs.frozen
class Work:
    """The queue is not empty."""


class Sequencer(Actor[Work]):
    """See the module's docstring. `let_out` is told each number that became visible."""

    kind = "sequencer"

    def __init__(
        self,
        ledger: Ledger,
        journal: Journal,
        window: ReplayWindow,
        subscriptions: Subscriptions,
        let_out: Callable[[int], None] | None = None,
    ) -> None:
        self._ledger = ledger
        self._journal = journal
        self._window = window
        self._subscriptions = subscriptions
        self._let_out = let_out

    async def on_start(self) -> None:
        """Go on where the last incarnation stopped."""
        ref = self.ref

        def wake() -> None:
            # Down: `on_start` of the next incarnation looks. Full: it has been told already.
            with suppress(ActorGone, MailboxFull):
                ref.cast(Work())

        self._ledger.on_work = wake
        if self._ledger.queue:
            wake()

    async def handle(self, message: Work) -> None:
        """Let out everything that is queued, a group at a time."""
        queue = self._ledger.queue
        while queue:
            count = min(len(queue), GROUP)
            entries = [item for item, _ in zip(queue, range(count)) if isinstance(item, Entry)]  # noqa: B905
            if entries:
                await self._journal.write(entries)
            for _ in range(count):
                self._release(queue[0])
                queue.popleft()

    def _release(self, item: Entry | Callable[[], None]) -> None:
        if not isinstance(item, Entry):
            item()
            return
        self._window.add(item)
        hearers = self._subscriptions.of(item.channel.uri)
        if item.audience is not None:
            for listener, subscription in hearers.items():
                if listener is item.asker:
                    listener.hear(item, subscription)
        else:
            for listener, subscription in hearers.items():
                listener.hear(item, subscription)
        if self._let_out is not None:
            self._let_out(item.seq)
