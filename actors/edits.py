"""What the turns of a chat did to files, as counts for its row (R-7.42).

Counted from the results of tool calls in turns that are over, each turn once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ahpd.protocol.chat import ToolCallResponsePart, Turn, Turns
from ahpd.protocol.common import ChangesSummary, FileEdit
from ahpd.protocol.tools import ToolCallCompletedState, ToolResultFileEditContent
from ahpd.protocol.uris import URI

#: What the text of a turn holds in which a file was changed.
_EDIT = b'"fileEdit"'


class Edits:
    """The counts of one chat so far."""

    def __init__(self) -> None:
        self._forget()

    def _forget(self) -> None:
        self._counted = 0
        self._last: Turn | None = None
        self._files: set[URI] = set()
        self._added = self._removed = 0.0

    def summary(self, turns: Turns) -> ChangesSummary | None:
        """The counts for these turns; None when they changed no file.

        Looks only at those that are new since it was last asked, unless turns were taken away.
        """
        counted = self._counted
        if counted > len(turns) or (counted and turns[counted - 1] is not self._last):
            self._forget()
        for edit in edits_of(turns.mentioning(_EDIT, self._counted)):
            self._files.update(side.uri for side in (edit.before, edit.after) if side is not None)
            if edit.diff is not None:
                self._added += edit.diff.added or 0
                self._removed += edit.diff.removed or 0
        self._counted = len(turns)
        self._last = turns[-1] if turns else None
        if not self._files:
            return None
        return ChangesSummary(
            additions=self._added, deletions=self._removed, files=len(self._files)
        )


def edits_of(turns: Iterable[Turn]) -> Iterator[FileEdit]:
    """What the tool calls of these turns say they changed."""
    for turn in turns:
        for part in turn.response_parts:
            if isinstance(part, ToolCallResponsePart):
                call = part.tool_call
                if isinstance(call, ToolCallCompletedState):
                    for content in call.content or ():
                        if isinstance(content, ToolResultFileEditContent):
                            yield content


def total(changes: Iterable[ChangesSummary | None]) -> ChangesSummary | None:
    """A session's counts: the sum over its chats; None when no chat changed a file."""
    counts = [each for each in changes if each is not None]
    if not counts:
        return None
    return ChangesSummary(
        additions=sum(each.additions or 0 for each in counts),
        deletions=sum(each.deletions or 0 for each in counts),
        files=sum(each.files or 0 for each in counts),
    )
