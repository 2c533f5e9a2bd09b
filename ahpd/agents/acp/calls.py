"""The tool calls of a turn: whatever order an agent tells of them in, one row each.

A call is known from the first of `tool_call`, `tool_call_update` and `session/request_permission`
that names it. Its parts are patched as they come; what of it means an event is said once.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from msgspec import Struct, field

from ahpd.agents.acp.contents import (
    ShowTerminal,
    edits,
    fallback_output,
    first_text,
    results,
)
from ahpd.agents.acp.tolerant import dicts_of, text_of
from ahpd.agents.events import (
    Event,
    ToolAsks,
    ToolFinished,
    ToolOutput,
    ToolReady,
    ToolStarted,
)
from ahpd.protocol.jsontext import ParseError, dumps
from ahpd.protocol.model import JSON
from ahpd.protocol.tools import (
    ConfirmationOption,
    ToolResultContent,
    ToolResultFileEditContent,
)

#: What clients draw a row by, for the kinds that they know.
_KINDS = {"execute": "terminal", "read": "read", "search": "search"}
#: What a call becomes that nobody has heard the end of.
_NO_END = "the agent did not say how it ended"
#: Ids of calls of earlier turns that are remembered, so that what comes late makes no new rows.
_REMEMBERED = 10_000


class Call(Struct, eq=False):
    """A call as far as it is known. `row` is its id for the host; `phase` what the host knows.

    `announced`: by an update, and not by a request for permission alone. `previews`: its content is
    what was shown with such a request, and not what it gave.
    """

    row: str
    phase: str = "new"  # started, asking, running, denied, finished
    announced: bool = False
    previews: bool = False
    told: dict[str, Any] = field(default_factory=dict)
    shown: tuple[ToolResultContent, ...] = ()

    @property
    def is_over(self) -> bool:
        """Nothing of it is said any more."""
        return self.phase in ("denied", "finished")

    @property
    def title(self) -> str:
        """What people call it now."""
        return text_of(self.told, "title") or self.name

    @property
    def name(self) -> str:
        """The tool's own name, or what comes next to it."""
        return text_of(self.told, "name") or text_of(self.told, "kind") or "tool"

    @property
    def input(self) -> str | None:
        """What it is called with, as text; None while that is not known."""
        raw: JSON = self.told.get("rawInput")
        if raw is None or raw in ({}, "", []):
            return None
        if isinstance(raw, str):
            return raw
        try:
            return dumps(raw).decode()
        except ParseError:
            return None

    @property
    def content(self) -> Sequence[Any]:
        """Its `content` as it was told."""
        return dicts_of(self.told, "content")


class Calls:
    """See the module. `cwd` is where relative paths in diffs begin, `show` shows terminals.

    `prefix` sets the rows of one session's calls apart from those of another.
    """

    def __init__(self, cwd: str, show: ShowTerminal = lambda _: None, prefix: str = "") -> None:
        self._cwd = cwd
        self._show = show
        self._prefix = prefix
        self._calls: dict[str, Call] = {}
        self._rows: set[str] = set()
        self._past: dict[str, None] = {}

    def begin(self) -> None:
        """A turn begins; the calls of the last one are over, whatever still comes."""
        self._past.update(dict.fromkeys(self._calls))
        for name in list(self._past)[:-_REMEMBERED]:
            del self._past[name]
        self._calls = {}
        self._rows = set()

    # ---- what the agent says -----------------------------------------------------------------

    def update(self, update: dict[str, Any], *, creates: bool) -> Iterator[Event]:
        """A `tool_call` (it `creates`) or a `tool_call_update`."""
        name = text_of(update, "toolCallId")
        if name is None:
            return
        call = self._calls.get(name)
        if call is None:
            if name in self._past and not creates:
                return  # late, of a turn that has ended
            call = (self._asked_as_another(update) if creates else None) or self._made(name)
            self._calls[name] = call
        if call.is_over:
            return
        call.announced = True
        if update.get("content") is not None:
            call.previews = False
        _patch(call, update)
        yield from self._started(call)
        yield from self._went_on(call)

    def asks(
        self, told: dict[str, Any], options: Sequence[ConfirmationOption]
    ) -> tuple[str, Sequence[Event]]:
        """The agent wants permission for a call: the row it is asked in, and what to say."""
        name = text_of(told, "toolCallId") or "permission"
        call = self._calls.get(name)
        if call is None or call.phase in ("denied", "finished", "asking"):
            call = self._calls[name] = self._made(name)
        call.previews = call.previews or told.get("content") is not None
        _patch(call, {**told, "status": None})
        events = [*self._started(call)]
        call.phase = "asking"
        events.append(
            ToolAsks(
                call.row,
                call.title,
                call.input,
                options=tuple(options),
                edits=edits(call.content, self._cwd),
            )
        )
        return call.row, events

    def answered(self, row: str, *, approved: bool) -> None:
        """Somebody decided, or the question was taken back."""
        for call in self._calls.values():
            if call.row == row and call.phase == "asking":
                call.phase = "running" if approved else "denied"

    def withdrawn(self, row: str) -> Sequence[Event]:
        """The agent takes back what it asked: the call is over without anybody's decision."""
        for call in self._calls.values():
            if call.row == row and call.phase == "asking":
                call.phase = "finished"
                return (
                    ToolReady(row, call.title, call.input),
                    ToolFinished(row, False, call.title, error="the agent took the question back"),
                )
        return ()

    def close(self) -> Iterator[Event]:
        """The turn has ended: what still runs has no end of its own.

        A call that never began to run is left to the host, which ends it as skipped.
        """
        for call in self._calls.values():
            if call.phase == "running":
                call.phase = "finished"
                yield ToolFinished(call.row, False, call.title, call.shown, error=_NO_END)

    # ---- rows --------------------------------------------------------------------------------

    def _made(self, name: str) -> Call:
        row, number = f"{self._prefix}{name}", 1
        while row in self._rows:
            number += 1
            row = f"{self._prefix}{name}#{number}"
        self._rows.add(row)
        return Call(row)

    def _asked_as_another(self, update: dict[str, Any]) -> Call | None:
        """The call that permission was asked for under another id, before it had one."""
        for name, call in self._calls.items():
            same = name == "pending" or (
                call.told.get("title") == update.get("title")
                and call.told.get("rawInput") == update.get("rawInput")
            )
            if not call.announced and same and call.phase in ("asking", "running", "denied"):
                del self._calls[name]
                return call
        return None

    def _started(self, call: Call) -> Iterator[Event]:
        if call.phase == "new":
            call.phase = "started"
            kind = _KINDS.get(text_of(call.told, "kind") or "")
            yield ToolStarted(call.row, call.name, call.title, kind)

    def _went_on(self, call: Call) -> Iterator[Event]:
        status = text_of(call.told, "status")
        is_over = status in ("completed", "failed")
        if call.phase == "asking":
            if not is_over:
                return
            yield ToolReady(call.row, call.title, call.input)  # it did not wait for the answer
            call.phase = "running"
        elif call.phase == "started" and (is_over or status == "in_progress"):
            yield ToolReady(call.row, call.title, call.input)
            call.phase = "running"
        if call.phase != "running":
            return
        shown = tuple(results(call.content, self._cwd, self._show))
        if is_over:
            call.phase = "finished"
            failed = status == "failed"
            error = (first_text(call.content) or "it failed") if failed else None
            content = shown or tuple(fallback_output(call.told))
            if call.previews and (given := tuple(fallback_output(call.told))):
                content = tuple(_changes(shown)) + given
            call.shown = ()
            yield ToolFinished(call.row, not failed, call.title, content, error=error)
        elif shown != call.shown and not call.previews:
            call.shown = shown
            yield ToolOutput(call.row, shown)


def _changes(content: Sequence[ToolResultContent]) -> Iterator[ToolResultContent]:
    """The edits among what was shown."""
    return (each for each in content if isinstance(each, ToolResultFileEditContent))


def _patch(call: Call, update: dict[str, Any]) -> None:
    """Null and absent mean unchanged; collections are replaced."""
    kept = ("title", "name", "kind", "status", "content", "rawInput", "rawOutput")
    call.told.update({key: update[key] for key in kept if update.get(key) is not None})


__all__ = ["Call", "Calls"]
