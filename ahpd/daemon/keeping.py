"""The journal of a host that has a state folder: opened before anything else, closed last."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from ahpd.daemon.config import Config
from ahpd.daemon.errors import StateError
from ahpd.daemon.state import StateFolder
from ahpd.journal.port import JournalFailed, Kept
from ahpd.journal.sqlite import Durability, SqliteJournal, boot_id


@contextmanager
def journal_in(folder: StateFolder, config: Config) -> Iterator[tuple[SqliteJournal, Kept]]:
    """The journal in a folder that is held, and what the host starts from. Blocks.

    Raises `StateError` when the file cannot be used.
    """
    journal = SqliteJournal(folder.journal, durability=Durability(config.journal.durability))
    try:
        kept = journal.begin(limit=config.limits.replay_envelopes, boot=boot_id())
    except JournalFailed as error:
        raise StateError(f"the journal: {error}") from error
    try:
        yield journal, kept
    finally:
        journal.close()
