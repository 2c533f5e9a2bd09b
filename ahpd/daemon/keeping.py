"""The journal of a host that has a state folder: opened before anything else, closed last."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from ahpd.daemon.config import Config
from ahpd.daemon.errors import CannotServe, JournalUnusable
from ahpd.daemon.state import StateFolder
from ahpd.journal.port import JournalDamaged, JournalFailed, Kept
from ahpd.journal.sqlite import Durability, SqliteJournal, boot_id


@contextmanager
def journal_in(folder: StateFolder, config: Config) -> Iterator[tuple[SqliteJournal, Kept]]:
    """The journal in a folder that is held, and what the host starts from. Blocks.

    Raises `JournalUnusable`, and `CannotServe` when it may be usable later.
    """
    journal = SqliteJournal(folder.journal, durability=Durability(config.journal.durability))
    try:
        kept = journal.begin(limit=config.limits.replay_envelopes, boot=boot_id())
    except JournalDamaged as error:
        raise JournalUnusable(f"the journal: {error}") from error
    except JournalFailed as error:
        raise CannotServe(f"the journal: {error}") from error
    try:
        yield journal, kept
    finally:
        journal.close()
