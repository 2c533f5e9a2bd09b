"""What playing a step means, and the table of all kinds of steps.

Pure: a player is a generator that says what to do next, a `Move`, and
`ahpd.agents.playing` does it. A new kind of step is a class in `ahpd.agents.steps`, a player here
and a row of `STEPS`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from itertools import islice, repeat
from typing import Any, Generic, TypeAlias, TypeVar

from msgspec import Struct, structs

from ahpd.agents.events import (
    ActivityChanged,
    BackgroundGone,
    BackgroundSet,
    ClientToolCalled,
    Command,
    CommandsChanged,
    Context,
    Cost,
    CustomizationsChanged,
    Done,
    Event,
    Failed,
    MetaChanged,
    Outcome,
    QuestionsAsked,
    RiskJudged,
    SystemNotice,
    TextChunk,
    ThoughtChunk,
    TitleProposed,
    ToolAsks,
    ToolFinished,
    ToolInputChunk,
    ToolNeedsAuth,
    ToolOutput,
    ToolReady,
    ToolStarted,
    UsageReport,
    WorkerEnded,
    WorkerSays,
    WorkerStarted,
)
from ahpd.agents.port import Answers, Authorized, ClientResult, Permission, Verdict
from ahpd.agents.steps import (
    Activity,
    AskStep,
    BackgroundStep,
    ClientToolStep,
    Commands,
    Crash,
    Customizations,
    Echo,
    Fail,
    Hang,
    Notice,
    Now,
    SessionMeta,
    Sleep,
    Step,
    Text,
    Thought,
    Title,
    Tool,
    ToolStep,
    Usage,
    WorkerStep,
)
from ahpd.protocol.chat import BackgroundShellWork
from ahpd.protocol.common import FileEdit
from ahpd.protocol.inputs import ChatInputRequest
from ahpd.protocol.jsontext import dumps
from ahpd.protocol.tools import (
    ToolCallRiskAssessmentCompleteState,
    ToolCallRiskAssessmentLoadingState,
    ToolResultContent,
    ToolResultFileEditContent,
    ToolResultTextContent,
)

#: Most events in one call of the sink: enough to stream fast, few enough to slow down soon.
BATCH = 64
#: Characters of a tool's input in one `ToolInputChunk`.
INPUT_PIECE = 64


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class ScriptedCrash(RuntimeError):
    """A script said that the backend breaks down here."""


class Emit(Struct, frozen=True):
    """Send these events in one call of the sink."""

    events: Sequence[Event]


class Pause(Struct, frozen=True):
    """Wait until `ms` have passed since the step began, its last `Wait` or the last `Mark`.

    `talks`: a steering message may be said meanwhile.
    """

    ms: float
    talks: bool = True


class Wait(Struct, frozen=True):
    """Send the events and wait for a `kind` of answer about `about`; the generator gets it."""

    events: Sequence[Event]
    kind: type[Any]
    about: str


class Mark(Struct, frozen=True):
    """Time is counted from here: a step within the step begins."""


class AskTime(Struct, frozen=True):
    """The generator gets the wall time, a `datetime`."""


class Later(Struct, frozen=True):
    """Send the events `ms` from now, whatever becomes of the turn."""

    ms: float
    events: Sequence[Event]


class End(Struct, frozen=True):
    """The turn is over."""

    outcome: Outcome


Move: TypeAlias = Emit | Pause | Wait | Mark | AskTime | Later | End
Play: TypeAlias = Generator[Move, Any, None]


class Scene(Struct, frozen=True):
    """Where a step is played. `place` is its number in the entry, from 1.

    `tag` is empty but for a turn that is resumed by a backend which did not play it before.
    """

    turn_id: str
    prompt: str
    place: int
    tag: str = ""
    #: When the step began, in ISO 8601, for what carries a time.
    now: str = "1970-01-01T00:00:00.000Z"

    @property
    def call_id(self) -> str:
        """The id of this step's tool call, unique in the chat."""
        return "-".join(filter(None, (self.turn_id, "call", str(self.place), self.tag)))


_CALL_ID = re.compile(r".*-call-(\d+)(?:-([0-9a-f]{8}))?", re.DOTALL)


def place_of(call_id: str) -> tuple[int, str] | None:
    """The number of the step and the tag of a `Scene.call_id`; None for any other id."""
    found = _CALL_ID.fullmatch(call_id)
    return None if found is None else (int(found[1]), found[2] or "")


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


def _play_now(step: Now, _: Scene) -> Play:
    for tick in range(step.times):
        yield Pause(tick * step.every_ms, talks=False)
        time: datetime = yield AskTime()
        yield Emit((TextChunk(f"{(time - _EPOCH) // timedelta(microseconds=1)} "),))


def _play_thought(step: Thought, _: Scene) -> Play:
    yield from _batches(repeat(ThoughtChunk(step.thought), step.times))


def _play_tool(step: ToolStep, scene: Scene) -> Play:
    tool, call_id = step.tool, scene.call_id
    title, text = tool.title or tool.name, tool.input_text
    yield Emit((ToolStarted(call_id, tool.name, title, server=tool.server),))
    if tool.input not in (None, "", {}, []):
        assert text is not None
        pieces = (text[at : at + INPUT_PIECE] for at in range(0, len(text), INPUT_PIECE))
        yield from _batches(ToolInputChunk(call_id, piece) for piece in pieces)
    edited = None
    if tool.confirm:
        asks = ToolAsks(
            call_id,
            message=title,
            input=text,
            title=f"Allow {tool.name}?",
            editable=text is not None,
            options=tool.options,
            edits=tool.edits,
        )
        permission = yield Wait((asks, *_risk(tool, call_id)), Permission, call_id)
        if not permission.approved:
            return
        edited = permission.input if permission.input != text else None
    else:
        yield Emit((ToolReady(call_id, message=title, input=text),))
    if tool.auth_required is not None:
        assert tool.server is not None
        needs = ToolNeedsAuth(call_id, tool.server, tool.auth_required)
        authorized = yield Wait((needs,), Authorized, call_id)
        if authorized.token is None:
            return
    if tool.takes_ms:
        yield Pause(tool.takes_ms / 2)
        if tool.output:
            yield Emit((ToolOutput(call_id, _content(_half(tool.output))),))
        yield Pause(tool.takes_ms)
    finished = _finished(tool, title, call_id, edited)
    if not tool.result_confirm:
        yield Emit((finished,))
        return
    verdict = yield Wait((structs.replace(finished, asks_approval=True),), Verdict, call_id)
    if not verdict.approved:
        yield Emit((TextChunk(f"(the result of {tool.name} was not used)"),))


def _risk(tool: Tool, call_id: str) -> Iterator[RiskJudged]:
    """Judging takes a moment, so first it is said that somebody is at it."""
    if isinstance(tool.risk, ToolCallRiskAssessmentCompleteState):
        loading = ToolCallRiskAssessmentLoadingState(kind=tool.risk.kind)
        yield RiskJudged(call_id, loading)
    if tool.risk is not None:
        yield RiskJudged(call_id, tool.risk)


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
        content=(*_content(tool.output, note), *(() if tool.fail else _edited(tool.edits))),
        error=(tool.output or f"{tool.name} failed") if tool.fail else None,
    )


def _content(*texts: str | None) -> Sequence[ToolResultContent]:
    return tuple(ToolResultTextContent(text=text) for text in texts if text)


def _edited(edits: Sequence[FileEdit]) -> Iterator[ToolResultFileEditContent]:
    for edit in edits:
        yield ToolResultFileEditContent(before=edit.before, after=edit.after, diff=edit.diff)


def _play_usage(step: Usage, _: Scene) -> Play:
    usage = step.usage
    report = UsageReport(
        input_tokens=usage.input_tokens,
        output_tokens=usage.output_tokens,
        cache_read_tokens=usage.cache_read_tokens,
        model=usage.model,
        extra=usage.meta,
        cost=None if step.cost is None else Cost(step.cost.amount, step.cost.currency),
        context=None if step.context is None else Context(step.context.used, step.context.size),
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


def _play_client_tool(step: ClientToolStep, scene: Scene) -> Play:
    tool = step.client_tool
    text = tool.input if isinstance(tool.input, str) else dumps(tool.input).decode()
    called = ClientToolCalled(
        scene.call_id, tool.name, tool.name, None if tool.input is None else text
    )
    result: ClientResult = yield Wait((called,), ClientResult, scene.call_id)
    message = result.result.past_tense_message
    said = message if isinstance(message, str) else message.markdown
    yield Emit((TextChunk(f"({tool.name}: {said})"),))


def _play_ask(step: AskStep, scene: Scene) -> Play:
    request = ChatInputRequest(
        id=scene.call_id, message=step.ask.message, url=step.ask.url, questions=step.ask.questions
    )
    answers: Answers = yield Wait((QuestionsAsked(request),), Answers, request.id)
    said = {key: answer.wire() for key, answer in sorted(answers.answers.items())}
    yield Emit((TextChunk(f"({answers.response}: {dumps(said).decode()})"),))


def _play_background(step: BackgroundStep, scene: Scene) -> Play:
    work = step.background
    work_id = f"shell:{scene.call_id}"
    shell = BackgroundShellWork(
        id=work_id,
        label=work.label or work.command,
        command=work.command,
        started_at=scene.now,
    )
    yield Emit((BackgroundSet(shell),))
    if work.for_ms:
        yield Later(work.for_ms, (BackgroundGone(work_id),))


def _play_worker(step: WorkerStep, scene: Scene) -> Play:
    """The worker's own steps, each of its events wrapped; what it waits for waits in its chat."""
    worker, title = scene.call_id, step.worker.title
    yield Emit(
        (
            ToolStarted(worker, "worker", title, kind="subagent"),
            ToolReady(worker, message=title),
            WorkerStarted(worker, worker, title),
        )
    )
    for number, inner in enumerate(step.worker.steps, 1):
        part = structs.replace(scene, turn_id=worker, prompt=title, place=number)
        yield Mark()
        outcome = yield from _as_worker(worker, play(inner, part))
        if outcome is not None:
            failed = ToolFinished(worker, success=False, message=f"{title}: failed", error="failed")
            yield Emit((WorkerEnded(worker, outcome), failed))
            return
    done = ToolFinished(worker, success=True, message=f"{title}: done")
    yield Emit((WorkerEnded(worker, Done()), done))


def _as_worker(worker: str, moves: Play) -> Generator[Move, Any, Outcome | None]:
    """The same moves with the events said by a worker; how the worker ends, if they end it."""
    answer = None
    while True:
        try:
            move = moves.send(answer)
        except StopIteration:
            return None
        match move:
            case End(outcome):
                return outcome
            case Emit(events) | Wait(events) | Later(_, events):
                answer = yield structs.replace(move, events=(WorkerSays(worker, events),))
            case _:
                answer = yield move


def _play_commands(step: Commands, _: Scene) -> Play:
    commands = tuple(
        Command(each.name, each.description, each.argument_hint, each.is_skill)
        for each in step.commands
    )
    yield Emit((CommandsChanged(commands),))


def _play_customizations(step: Customizations, _: Scene) -> Play:
    yield Emit((CustomizationsChanged(step.customizations),))


def _play_notice(step: Notice, _: Scene) -> Play:
    yield Emit((SystemNotice(step.notice),))


def _play_meta(step: SessionMeta, _: Scene) -> Play:
    yield Emit((MetaChanged(step.session_meta),))


S = TypeVar("S", bound=Step)


class Row(Struct, Generic[S], frozen=True):
    """One kind of step: its class in the file, and how it is played."""

    cls: type[S]
    play: Callable[[S, Scene], Play]


#: Every kind of step by its key in the file, which is the first field of its class.
STEPS: Mapping[str, Row[Any]] = {
    "text": Row(Text, _play_text),
    "now": Row(Now, _play_now),
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
    "clientTool": Row(ClientToolStep, _play_client_tool),
    "ask": Row(AskStep, _play_ask),
    "background": Row(BackgroundStep, _play_background),
    "worker": Row(WorkerStep, _play_worker),
    "commands": Row(Commands, _play_commands),
    "customizations": Row(Customizations, _play_customizations),
    "notice": Row(Notice, _play_notice),
    "sessionMeta": Row(SessionMeta, _play_meta),
}
_PLAYERS: Mapping[type[Step], Callable[[Any, Scene], Play]] = {
    row.cls: row.play for row in STEPS.values()
}


def play(step: Step, scene: Scene) -> Play:
    """What playing a step means, move by move. Raises `ScriptedCrash` where the script says so."""
    return _PLAYERS[type(step)](step, scene)
