"""What an agent says before it is known which conversation is the chat's: kept, within a bound."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

from ahpd.agents.acp.tolerant import dict_of
from ahpd.protocol.jsontext import ParseError, dumps

_log = logging.getLogger("ahpd.agents.acp")

#: The kinds of updates that repeat what was said before.
REPLAYED = (
    "user_message_chunk", "agent_message_chunk", "agent_thought_chunk", "tool_call",
    "tool_call_update",
)  # fmt: skip
#: Bytes kept of those, and as many of all other kinds: a long history that is repeated must not
#: cost what comes behind it. Each update counts for `_LEAST` at least.
BYTES = 8 << 20
_LEAST = 1024


class Early:
    """See the module."""

    def __init__(self) -> None:
        self._kept: list[dict[str, Any]] = []
        self._left = {True: BYTES, False: BYTES}
        self._is_told = False

    def keep(self, params: dict[str, Any]) -> None:
        """The `params` of an update; passed over, with a line in the log, when it is too much."""
        repeats = dict_of(params, "update").get("sessionUpdate") in REPLAYED
        try:
            weight = max(len(dumps(params)), _LEAST)
        except ParseError:  # it was read, and cannot be weighed
            weight = BYTES
        if weight <= self._left[repeats]:
            self._left[repeats] -= weight
            self._kept.append(params)
        elif not self._is_told:
            self._is_told = True
            _log.warning("more than %d bytes came before the conversation had begun", BYTES)

    def take(self) -> Sequence[dict[str, Any]]:
        """All that was kept, in its order."""
        kept, self._kept = self._kept, []
        self._left = {True: BYTES, False: BYTES}
        return kept

    def __bool__(self) -> bool:
        return bool(self._kept)
