"""From an agent's `session/update`s to events: one table, by kind.

Some kinds belong to a turn and mean nothing outside one; the others may come at any time. A kind
that is not in the table is noted in the log once and passed over.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeAlias

from ahpd.agents.acp.calls import Calls
from ahpd.agents.acp.contents import ShowTerminal, block_text, texts
from ahpd.agents.acp.tolerant import dict_of, dicts_of, number_of, text_of
from ahpd.agents.events import (
    ActivityChanged,
    Command,
    CommandsChanged,
    Context,
    Cost,
    Event,
    MetaChanged,
    SystemNotice,
    TextChunk,
    ThoughtChunk,
    TitleProposed,
    ToolOutput,
    UsageReport,
)

_log = logging.getLogger("ahpd.agents.acp")

Update: TypeAlias = dict[str, Any]

#: Plans, and summaries that are not whole yet, that are kept; characters of a summary.
MOST_PLANS = 100
SUMMARY = 64 * 1024


class Updates:
    """Reads the updates of one conversation. `calls` are those of the turn that runs.

    `show` shows terminals, and `prefix` sets the rows of its calls apart from those of others.
    """

    def __init__(self, cwd: str, show: ShowTerminal = lambda _: None, prefix: str = "") -> None:
        self.calls = Calls(cwd, show, prefix)
        self._plans: dict[str, Any] = {}
        self._summaries: dict[str, str] = {}
        self._message: str | None = None
        self._usage = UsageReport()
        self._commands: Sequence[Command] = ()
        self._meta: dict[str, Any] = {}
        self._unheard_of: set[str] = set()

    def begin(self) -> None:
        """A turn begins."""
        self.calls.begin()
        self._message = None
        self._usage = UsageReport()

    def in_turn(self, update: Update) -> Sequence[Event]:
        """What an update means while a turn runs."""
        kind = update.get("sessionUpdate")
        handle = _IN_TURNS.get(kind) if isinstance(kind, str) else None
        return self.beside(update) if handle is None else tuple(handle(self, update))

    def beside(self, update: Update) -> Sequence[Event]:
        """What an update means whether or not a turn runs."""
        kind = text_of(update, "sessionUpdate") or ""
        handle = _BESIDE.get(kind)
        if handle is not None:
            return tuple(handle(self, update))
        if kind not in _IN_TURNS and kind not in self._unheard_of and len(self._unheard_of) < 100:
            self._unheard_of.add(kind)
            _log.info("an update of a kind that is not known: %.100r", kind)
        return ()

    def used(self, usage: Any) -> Sequence[Event]:
        """The `usage` in the answer to a prompt."""
        counts = dict_of(usage)
        if not counts:
            return ()
        self._usage = UsageReport(
            number_of(counts, "inputTokens"),
            number_of(counts, "outputTokens"),
            number_of(counts, "cachedReadTokens"),
            cost=self._usage.cost,
            context=self._usage.context,
        )
        return (self._usage,)

    # ---- in turns ----------------------------------------------------------------------------

    def _text(self, update: Update) -> Iterable[Event]:
        text = block_text(update.get("content"))
        if not text:
            return ()
        message = text_of(update, "messageId")
        if message is not None:
            if self._message is not None and message != self._message:
                text = "\n\n" + text  # another message: it must not run into the last one
            self._message = message
        return (TextChunk(text),)

    def _thought(self, update: Update) -> Iterable[Event]:
        text = block_text(update.get("content"))
        return (ThoughtChunk(text),) if text else ()

    def _call(self, update: Update) -> Iterable[Event]:
        self._message = None
        return self.calls.update(update, creates=True)

    def _call_update(self, update: Update) -> Iterable[Event]:
        return self.calls.update(update, creates=False)

    def _plan(self, update: Update) -> Iterable[Event]:
        """The whole plan, which the protocol has no field for; the step at work is the activity."""
        yield from self._planned(dicts_of(update, "entries"))

    def _planned(self, entries: Sequence[dict[str, Any]]) -> Iterable[Event]:
        now = next((each for each in entries if text_of(each, "status") == "in_progress"), None)
        yield ActivityChanged(None if now is None else text_of(now, "content"))
        yield from self._say_meta("ahpd.plan", entries or None)

    def _plan_update(self, update: Update) -> Iterable[Event]:
        """One plan of several: its steps, a text, or the file that it is in."""
        plan = dict_of(update, "plan")
        plan_id = text_of(plan, "planId") or "plan"
        if text_of(plan, "type") == "items":
            yield from self._planned(dicts_of(plan, "entries"))
        if plan_id in self._plans or len(self._plans) < MOST_PLANS:
            self._plans = {**self._plans, plan_id: plan}
            yield from self._say_meta("ahpd.plans", self._plans)

    def _plan_removed(self, update: Update) -> Iterable[Event]:
        self._plans = {
            key: each for key, each in self._plans.items() if key != text_of(update, "planId")
        }
        yield from self._say_meta("ahpd.plans", self._plans or None)

    def _usage_update(self, update: Update) -> Iterable[Event]:
        used, size = number_of(update, "used"), number_of(update, "size")
        amount, currency = number_of(update, "cost", "amount"), text_of(update, "cost", "currency")
        before = self._usage
        self._usage = UsageReport(
            before.input_tokens,
            before.output_tokens,
            before.cache_read_tokens,
            cost=before.cost if amount is None or currency is None else Cost(amount, currency),
            context=before.context if used is None or size is None else Context(used, size),
        )
        if self._usage != before:
            yield self._usage

    def _notice(self, update: Update) -> Iterable[Event]:
        said = [text_of(update, "title"), text_of(update, "description")]
        text = ": ".join(each for each in said if each)
        if text:
            yield SystemNotice(text)

    def _compaction_chunk(self, update: Update) -> Iterable[Event]:
        """The summary, piece by piece; it is said when it is whole."""
        key = text_of(update, "compactionId") or ""
        text = self._summaries.pop(key, "") + (block_text(update.get("content")) or "")
        if len(self._summaries) < MOST_PLANS:
            self._summaries[key] = text[:SUMMARY]
        return ()

    def _compaction(self, update: Update) -> Iterable[Event]:
        error = text_of(update, "error", "message") or text_of(update, "error")
        status = text_of(update, "status")
        summary = texts(dicts_of(update, "summary"))
        if status != "in_progress":
            gathered = self._summaries.pop(text_of(update, "compactionId") or "", "")
            summary = summary or gathered
        match status:
            case "in_progress":
                yield ActivityChanged("Making the conversation shorter")
            case "completed":
                yield SystemNotice(
                    "The conversation was made shorter" + f": {summary}" * bool(summary)
                )
            case "failed":
                yield SystemNotice(
                    f"The conversation could not be made shorter: {error or 'why is not known'}"
                )
            case _:
                pass

    # ---- at any time -------------------------------------------------------------------------

    def _title(self, update: Update) -> Iterable[Event]:
        title = text_of(update, "title")
        if title:
            yield TitleProposed(title)

    def _available_commands(self, update: Update) -> Iterable[Event]:
        """They are sent again and again, mostly the same ones."""
        commands = tuple(
            Command(
                name.removeprefix("/"),
                text_of(each, "description") or "",
                text_of(each, "input", "hint"),
            )
            for each in dicts_of(update, "availableCommands")
            if (name := text_of(each, "name"))
        )
        if commands != self._commands:
            self._commands = commands
            yield CommandsChanged(commands)

    def _mode(self, update: Update) -> Iterable[Event]:
        return self._say_meta("ahpd.mode", text_of(update, "currentModeId"))

    def _say_meta(self, key: str, value: Any) -> Iterable[Event]:
        if self._meta.get(key) == value:
            return
        self._meta = {**self._meta, key: value}
        if value is None:
            del self._meta[key]
        yield MetaChanged(self._meta or None)


def _nothing(_: Updates, __: Update) -> Iterable[Event]:
    """Known, and of no use here."""
    return ()


_Handle: TypeAlias = Callable[[Updates, Update], Iterable[Event]]

_IN_TURNS: Mapping[str, _Handle] = {
    "user_message_chunk": _nothing,  # an echo, or a replay of what is known
    "agent_message_chunk": Updates._text,
    "agent_thought_chunk": Updates._thought,
    "tool_call": Updates._call,
    "tool_call_update": Updates._call_update,
    "plan": Updates._plan,
    "usage_update": Updates._usage_update,
    "notice": Updates._notice,
    "compaction_update": Updates._compaction,
    "compaction_summary_chunk": Updates._compaction_chunk,
}

_BESIDE: Mapping[str, _Handle] = {
    "available_commands_update": Updates._available_commands,
    "current_mode_update": Updates._mode,
    "session_info_update": Updates._title,
    "config_option_update": _nothing,
    "plan_update": Updates._plan_update,
    "plan_removed": Updates._plan_removed,
}


def merged(events: Iterable[Event]) -> Sequence[Event]:
    """The same with neighbours made one: pieces of one text, and outputs of one call."""
    found: list[Event] = []
    pieces: list[str] = []
    kind: type[TextChunk | ThoughtChunk] = TextChunk

    def flush() -> None:
        if pieces:
            found.append(kind("".join(pieces)))
            pieces.clear()

    for event in events:
        if isinstance(event, TextChunk | ThoughtChunk):
            if type(event) is not kind:
                flush()
                kind = type(event)
            pieces.append(event.text)
            continue
        flush()
        last = found[-1] if found else None
        if (
            isinstance(event, ToolOutput)
            and isinstance(last, ToolOutput)
            and event.call_id == last.call_id
        ):
            found[-1] = event
        else:
            found.append(event)
    flush()
    return found
