"""How an operation ended. Pure."""

from __future__ import annotations

from typing import Literal, TypeAlias

import attrs

OutcomeKind: TypeAlias = Literal["accepted", "refused", "unchanged", "unanswered"]


@attrs.frozen
class Outcome:
    """The one ending of an operation.

    * ``accepted``: the host applied it; it is in the confirmed state, or the state proves it.
    * ``refused``: the host said no. `reason` is its text for people; nothing was applied.
    * ``unchanged``: the host took it and it changed nothing, as what it asks for was already so.
    * ``unanswered``: no echo came and none is waited for any more. Whether the host acted on it is
      not known; `reason` says why this client gave up.

    `server_seq` is the number of the envelope that answered, None when there was none.
    """

    kind: OutcomeKind
    reason: str | None = None
    server_seq: int | None = None
