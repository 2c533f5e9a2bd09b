"""States as they were at a number, out of the journal of a host that runs."""

from __future__ import annotations

import sqlite3
from functools import partial
from pathlib import Path

import trio

from ahpd.daemon.verifying import JournalFailed, looking, reduced
from ahpd.journal.inspecting import channel
from ahpd.protocol.model import JSON
from ahpd.protocol.uris import URI


class Past:
    """See the module. Reads the file in a thread, one look at a time."""

    def __init__(self, journal: Path) -> None:
        self._journal = journal
        self._threads = trio.CapacityLimiter(1)

    async def state_at(self, uri: URI, number: int) -> JSON:
        """The state of a channel with all that happened up to a number.

        Raises `LookupError` with a sentence when the journal does not have it, or not any more.
        Cancelled: the thread finishes, and nobody hears of it.
        """
        look = partial(_state_at, self._journal, uri, number)
        return await trio.to_thread.run_sync(look, limiter=self._threads, abandon_on_cancel=True)


def _state_at(journal: Path, uri: URI, number: int) -> JSON:
    try:
        found = reduced(journal, uri, number)
        if found is None:
            raise LookupError(f"the journal has no channel {uri}")
        if found.state is None:
            raise LookupError(_too_old(journal, uri, number))
    except (JournalFailed, OSError, sqlite3.Error, ValueError) as error:
        raise LookupError(f"the journal: {error}") from None
    return found.state


def _too_old(journal: Path, uri: URI, number: int) -> str:
    with looking(journal) as connection:
        kept = channel(connection, uri)
    since = f"from number {kept.seq} on" if kept is not None else "not"
    return f"the journal has this channel {since}, and {number} is before that"
