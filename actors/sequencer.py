"""The sequencer: makes what the ledger holds durable, and lets its queue out in order.

It owns no state that a crash could lose. The queue is the ledger's, an item leaves it only when it
is let out, and letting one out is one sync step; so a sequencer that is killed at any checkpoint
goes on, when it is started again, exactly where it was. What may or may not have been written is
written again: the journal skips what it has.

While the journal fails nothing is let out, and nothing is lost: it is tried again until it works.
What comes in meanwhile waits, up to a bound at which the edges stop reading (`Ledger.room`). When
the journal is damaged so that it takes nothing any more, the host is stopped: what waits was never
said to anybody, and what was said is in the file.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Mapping
from contextlib import suppress

import trio
from msgspec import Struct

from actors.host import Host
from actors.ledger import Entry
from actors.recording import Taken
from ahpd.journal.port import Journal, JournalDamaged, JournalFailed
from supervisors import Actor, ActorGone, MailboxFull

_log = logging.getLogger("ahpd.journal")

#: Most items that are let out between two looks at the others.
GROUP = 1024
#: Seconds after which what was written is made safe from a loss of power too.
SYNC_AFTER = 1.0
#: Seconds that the journal is left alone at most, while there is something for it; and not at all
#: after so many bytes, which have shared a write already.
REST_AT_MOST, RESTS_BELOW = 0.005, 32 << 10
#: Seconds between two tries of a journal that fails: the first, and the longest.
RETRY_AFTER, RETRY_AT_MOST = 0.1, 5.0


class Work(Struct, frozen=True):
    """There is something to keep."""


class Sequencer(Actor[Work]):
    """See the module's docstring. `let_out` is told each envelope that became visible."""

    kind = "sequencer"

    def __init__(
        self, host: Host, journal: Journal, *, let_out: Callable[[Entry], None] | None = None
    ) -> None:
        self._host = host
        self._ledger = host.ledger
        self._let_out = let_out
        self._journal = journal
        self._sync_is_due = False
        self._write_from = -math.inf
        #: Why the last sync failed.
        self._unsafe: str | None = None

    async def on_start(self) -> None:
        """Go on where the last incarnation stopped."""
        ref = self.ref

        def wake() -> None:
            # Down: `on_start` of the next incarnation looks. Full: it has been told already.
            with suppress(ActorGone, MailboxFull):
                ref.cast(Work())

        self._ledger.on_work = wake
        self._ledger.failing = None
        if self._ledger.queue or self._host.recorder.has_news:
            wake()

    async def handle(self, message: Work) -> None:
        """Keep everything there is, and let it out."""
        ledger, recorder = self._ledger, self._host.recorder
        queue = ledger.queue
        while queue or recorder.has_news:
            if recorder.has_news or any(isinstance(item, Entry) for item in queue):
                if self._write_from > trio.current_time():
                    await trio.sleep_until(self._write_from)
                began = trio.current_time()
                count = len(queue)
                taken = recorder.take(queue)
                sizes = await self._write(taken)
                ended = trio.current_time()
                self._write_from = ended + self._rest(taken, ended - began)
                if sizes is None:
                    return
                recorder.kept(taken, sizes)
                self._sync_soon()
            else:
                count = len(queue)
            for place in range(count):
                item = queue[0]
                self._release(item)
                queue.popleft()
                if isinstance(item, Entry):
                    ledger.room.free(len(item))
                if place % GROUP == GROUP - 1:
                    self._flush()
                    await trio.lowlevel.checkpoint()
            self._flush()
            if queue or recorder.has_news:
                await trio.lowlevel.checkpoint()  # a small write is none

    def _rest(self, taken: Taken, took: float) -> float:
        """Seconds that the journal is left alone now, so that what comes shares the next write."""
        if sum(len(each.params) for each in taken.batch.envelopes) >= RESTS_BELOW:
            return 0.0
        return min(self._host.settings.pace * took, REST_AT_MOST)

    async def _write(self, taken: Taken) -> Mapping[int, int] | None:
        """Write, as often as it takes; None when no number of times is enough."""
        ledger, wait = self._ledger, RETRY_AFTER
        while True:
            try:
                sizes = await self._journal.write(taken.batch)
            except JournalDamaged as error:
                self._give_up(error)
                return None
            except JournalFailed as error:
                if ledger.failing != str(error):
                    _log.error("nothing can be kept, so nothing is said: %s", error)
                ledger.failing = str(error)
                await trio.sleep(wait)
                wait = min(2 * wait, RETRY_AT_MOST)
                continue
            if ledger.failing is not None:
                _log.warning("the journal works again")
                ledger.failing = None
            return sizes

    def _give_up(self, error: JournalDamaged) -> None:
        ledger = self._ledger
        if not ledger.is_ruined:
            _log.error("nothing can be kept any more, so the host is stopped: %s", error)
            ledger.failing, ledger.is_ruined = str(error), True
            self.system.stop(f"the journal: {error}")

    def _sync_soon(self) -> None:
        if not self._sync_is_due:
            self._sync_is_due = True
            self.spawn(self._sync, name="sync")

    async def _sync(self) -> None:
        """Helper: have the medium hold what was written until then."""
        await trio.sleep(SYNC_AFTER)
        self._sync_is_due = False
        try:
            await self._journal.sync()
        except JournalDamaged as error:
            self._give_up(error)
        except JournalFailed as error:
            if self._unsafe != str(error):
                self._unsafe = str(error)
                _log.warning("what was written last is not safe from a loss of power: %s", error)
            self._sync_soon()
        else:
            self._unsafe = None

    def _release(self, item: Entry | Callable[[], None]) -> None:
        if not isinstance(item, Entry):
            item()
            return
        self._host.window.add(item)
        hearers = self._host.subscriptions.of(item.channel.uri)
        heard = self._host.heard
        for listener, subscription in hearers.items():
            if item.audience is None or listener is item.asker:
                listener.hear(item, subscription)
                heard[listener] = None
        if self._let_out is not None:
            self._let_out(item)
        if self._host.on_out is not None:
            self._host.on_out(item)

    def _flush(self) -> None:
        """Let those who heard something write it, each once for all of it."""
        heard = self._host.heard
        for listener in heard:
            listener.flush()
        heard.clear()
