"""What playing a step means, and the table of all kinds of steps.

Pure: a player is a generator that says what to do next (`Emit`, `Pause`, `Ask`, `End`), and
`ahpd.agents.scripted` does it. A new kind of step is a class in `ahpd.agents.steps`, a player here
and a row of `STEPS`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from itertools import islice, repeat
from typing import Any, Generic, TypeAlias, TypeVar

import attrs

from ahpd.agents.events import (
    ActivityChanged,
    Event,
    Failed,
    Outcome,
    TextChunk,
    ThoughtChunk,
    TitleProposed,
    ToolAsks,
    ToolFinished,
    ToolInputChunk,
    ToolOutput,
    ToolReady,
    ToolStarted,
    UsageReport,
)
from ahpd.agents.port import Permission
from ahpd.agents.steps import (
    Activity,
    Crash,
    Echo,
    Fail,
    Hang,
    Sleep,
    Step,
    Text,
    Thought,
    Title,
    Tool,
    ToolStep,
    Usage,
)
from ahpd.protocol.tools import ToolResultContent, ToolResultTextContent

#: Most events in one call of the sink: enough to stream fast, few enough to slow down soon.
BATCH = 64
#: Characters of a tool's input in one `ToolInputChunk`.
INPUT_PIECE = 64


class ScriptedCrash(RuntimeError):
    """A script said that the backend breaks down here."""


@attrs.frozen
class Emit:
    """Send these events in one call of the sink."""

    events: Sequence[Event]


@attrs.frozen
class Pause:
    """Wait until `ms` have passed since the step began, or since its last `Ask` was answered.

    `talks`: a steering message may be said meanwhile.
    """

    ms: float
    talks: bool = True


@attrs.frozen
class Ask:
    """Send the event and wait for the `Permission`, which the generator gets."""

    event: ToolAsks


@attrs.frozen
class End:
    """The turn is over."""

    outcome: Outcome


Move: TypeAlias = Emit | Pause | Ask | End
Play: TypeAlias = Generator[Move, Permission | None, None]


@attrs.frozen
class Scene:
    """Where a step is played. `place` is its number in the entry, from 1.

    `tag` is empty but for a turn that is resumed by a backend which did not play it before.
    """

    turn_id: str
    prompt: str
    place: int
    tag: str = ""

    @property
    def call_id(self) -> str:
        """The id of this step's tool call, unique in the chat."""
        return "-".join(filter(None, (self.turn_id, "call", str(self.place), self.tag)))


# --- the players ---------------------------------------------------------------------------------


def _batches(events: Iterable[Event]) -> Iterator[Emit]:
    rest = iter(events)
    while batch := tuple(islice(rest, BATCH)):
        yield Emit(batch)


def _play_text(step: Text, _: Scene) -> Play:
    chunk = TextChunk(step.text)
    if not step.every_ms:
        yield from _batches(repeat(chunk, step.times))
        return
    for tick in range(step.times):
        yield Pause(tick * step.every_ms, talks=False)
        yield Emit((chunk,))


def _play_thought(step: Thought, _: Scene) -> Play:
    yield from _batches(repeat(ThoughtChunk(step.thought), step.times))


def _play_tool(step: ToolStep, scene: Scene) -> Play:
    tool, call_id = step.tool, scene.call_id
    title, text = tool.title or tool.name, tool.input_text
    yield Emit((ToolStarted(call_id, tool.name, title),))
    if tool.input not in (None, "", {}, []):
        assert text is not None
        pieces = (text[at : at + INPUT_PIECE] for at in range(0, len(text), INPUT_PIECE))
        yield from _batches(ToolInputChunk(call_id, piece) for piece in pieces)
    edited = None
    if tool.confirm:
        permission = yield Ask(
            ToolAsks(
                call_id,
                message=title,
                input=text,
                title=f"Allow {tool.name}?",
                editable=text is not None,
                options=tool.options,
            )
        )
        assert permission is not None
        if not permission.approved:
            return
        edited = permission.input if permission.input != text else None
    else:
        yield Emit((ToolReady(call_id, message=title, input=text),))
    if tool.takes_ms:
        yield Pause(tool.takes_ms / 2)
        if tool.output:
            yield Emit((ToolOutput(call_id, _content(_half(tool.output))),))
        yield Pause(tool.takes_ms)
    yield Emit((_finished(tool, title, call_id, edited),))


def _half(output: str) -> str:
    """The first half of the lines, or of the characters when there is one line."""
    lines = output.splitlines(keepends=True)
    parts = lines if len(lines) > 1 else output
    return "".join(parts[: math.ceil(len(parts) / 2)])


def _finished(tool: Tool, title: str, call_id: str, edited: str | None) -> ToolFinished:
    note = None if edited is None else f"(ran with the edited input: {edited})"
    return ToolFinished(
        call_id,
        success=not tool.fail,
        message=f"{title}: failed" if tool.fail else f"{title}: done",
        content=_content(tool.output, note),
        error=(tool.output or f"{tool.name} failed") if tool.fail else None,
    )


def _content(*texts: str | None) -> Sequence[ToolResultContent]:
    return tuple(ToolResultTextContent(text=text) for text in texts if text)


def _play_usage(step: Usage, _: Scene) -> Play:
    usage = step.usage
    report = UsageReport(
        input_tokens=usage.input_tokens,
        output_tokens=usage.output_tokens,
        cache_read_tokens=usage.cache_read_tokens,
        model=usage.model,
        extra=usage.meta,
    )
    yield Emit((report,))


def _play_title(step: Title, _: Scene) -> Play:
    yield Emit((TitleProposed(step.title),))


def _play_activity(step: Activity, _: Scene) -> Play:
    yield Emit((ActivityChanged(step.activity),))


def _play_sleep(step: Sleep, _: Scene) -> Play:
    yield Pause(step.sleep_ms)


def _play_echo(_: Echo, scene: Scene) -> Play:
    if scene.prompt:
        yield Emit((TextChunk(scene.prompt),))


def _play_fail(step: Fail, _: Scene) -> Play:
    yield End(Failed(step.fail, resumable=step.resumable))


def _play_crash(step: Crash, _: Scene) -> Play:
    raise ScriptedCrash(step.crash)


def _play_hang(_step: Hang, _: Scene) -> Play:
    yield Pause(math.inf)


S = TypeVar("S", bound=Step)


@attrs.frozen
class Row(Generic[S]):
    """One kind of step: its class in the file, and how it is played."""

    cls: type[S]
    play: Callable[[S, Scene], Play]


#: Every kind of step by its key in the file, which is the first field of its class.
STEPS: Mapping[str, Row[Any]] = {
    "text": Row(Text, _play_text),
    "thought": Row(Thought, _play_thought),
    "tool": Row(ToolStep, _play_tool),
    "usage": Row(Usage, _play_usage),
    "title": Row(Title, _play_title),
    "activity": Row(Activity, _play_activity),
    "sleepMs": Row(Sleep, _play_sleep),
    "echo": Row(Echo, _play_echo),
    "fail": Row(Fail, _play_fail),
    "crash": Row(Crash, _play_crash),
    "hang": Row(Hang, _play_hang),
}
_PLAYERS: Mapping[type[Step], Callable[[Any, Scene], Play]] = {
    row.cls: row.play for row in STEPS.values()
}


def play(step: Step, scene: Scene) -> Play:
    """What playing a step means, move by move. Raises `ScriptedCrash` where the script says so."""
    return _PLAYERS[type(step)](step, scene)
