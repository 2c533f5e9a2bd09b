"""What the sequencer needs of a journal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol


class Record(Protocol):
    """An envelope as the journal sees it."""

    @property
    def seq(self) -> int:
        """Its number."""
        ...

    @property
    def params(self) -> bytes:
        """Its JSON text."""
        ...


class Journal(Protocol):
    """Durable envelopes. One writer."""

    async def write(self, records: Sequence[Record]) -> None:
        """Keep these, in order, as one group; when it returns no `kill -9` can take them back.

        Records that it has already are skipped, so that a group may be written again when nobody
        knows whether it was. Cancelled means: perhaps written. Raises `OSError` when the medium
        fails; then none of them was promised.
        """
        ...
