"""The steps of a script as they stand in its file. What playing them means: `ahpd.agents.plays`.

The first field of a step's class is the key that names the step; field names become camelCase.

| step | plays |
|---|---|
| ``{"text": s, "times": n, "everyMs": m}`` | `s` n times: one every m ms, or as fast as it goes |
| ``{"now": true, "times": n, "everyMs": m}`` | the time n times, see `Now`; else as `text` |
| ``{"thought": s, "times": n}`` | `s` n times as a thought, as fast as it goes |
| ``{"tool": {…}}`` | a tool call from start to end, see `Tool` |
| ``{"usage": {…}, "cost": {…}, "context": {…}}`` | what was used so far, see `Usage` |
| ``{"title": s}`` | a name for the conversation |
| ``{"activity": s}`` | what the agent is doing; null for nothing |
| ``{"sleepMs": n}`` | nothing for n ms |
| ``{"echo": true}`` | the prompt, said back |
| ``{"fail": s, "resumable": b}`` | the turn ends in error |
| ``{"crash": s}`` | the backend raises |
| ``{"hang": true}`` | nothing, until the turn is cancelled |
| ``{"clientTool": {"name", "input"}}`` | a call of a tool that a client offers |
| ``{"ask": {…}}`` | questions to people, see `Ask`; the answers are said back |
| ``{"background": {…}}`` | work beside the turns, see `Background` |
| ``{"worker": {"title", "steps"}}`` | a tool call whose work a worker does in its own chat |
| ``{"commands": […]}`` | the slash commands there are now |
| ``{"customizations": […]}`` | what the agent is customized with now |
| ``{"notice": s}`` | something the harness says |
| ``{"sessionMeta": {…}}`` | what the agent has to say in the session's `_meta`; null for nothing |
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Annotated, Any, TypeAlias

import attrs

from ahpd.protocol.common import FileEdit, UsageInfo
from ahpd.protocol.customizations import Customization
from ahpd.protocol.inputs import ChatInputQuestion
from ahpd.protocol.jsontext import dumps
from ahpd.protocol.model import JSON, Unknown
from ahpd.protocol.tools import ConfirmationOption, McpAuthRequirement, ToolCallRiskAssessment

#: Most repetitions of one text.
MAX_TIMES = 10_000_000
#: Longest time of one step, in milliseconds: a day.
MAX_MS = 86_400_000
#: Most options of one confirmation, and most questions asked at a time.
MAX_OPTIONS = 100
MAX_EDITS = 1000
#: Most steps of one worker.
MAX_WORKER_STEPS = 10_000
#: Most slash commands, and most customizations.
MAX_LISTED = 1_000


class Misfit(ValueError):
    """A value in a script is not what its place asks for; `path` leads to it from where it rose."""

    def __init__(self, expected: str, found: str, path: tuple[str | int, ...] = ()) -> None:
        super().__init__(expected, found, path)
        self.expected = expected
        self.found = found
        self.path = path


@attrs.frozen
class Rule:
    """Annotation: what a value must be besides its type. `fits` gets the plain JSON value."""

    expected: str
    fits: Callable[[Any], bool]


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


Times: TypeAlias = Annotated[
    int,
    Rule(f"a whole number from 1 to {MAX_TIMES}", lambda v: type(v) is int and 1 <= v <= MAX_TIMES),
]
Milliseconds: TypeAlias = Annotated[
    float,
    Rule(f"milliseconds from 0 to {MAX_MS}", lambda v: _is_number(v) and 0 <= v <= MAX_MS),
]
Yes: TypeAlias = Annotated[bool, Rule("true", lambda v: v is True)]


def array_of(what: str, most: int) -> Rule:
    """An array with at most so many items."""
    return Rule(
        f"an array of at most {most} {what}",
        lambda value: isinstance(value, list) and len(value) <= most,
    )


Options: TypeAlias = Annotated[tuple[ConfirmationOption, ...], array_of("options", MAX_OPTIONS)]
Edits: TypeAlias = Annotated[tuple[FileEdit, ...], array_of("edits", MAX_EDITS)]


def check_apart(place: str, key: str, values: Iterable[str]) -> None:
    """Raises `Misfit` when two items of the array at `place` have the same `key`."""
    seen: set[str] = set()
    for number, value in enumerate(values):
        if value in seen:
            raise Misfit(f"{_A[key]} of its own", f'"{value}" again', (place, number, key))
        seen.add(value)


_A = {"id": "an id", "name": "a name"}


# --- the steps as they stand in the file; the first field of each is its key ---------------------


@attrs.frozen
class Step:
    """Base of the steps."""


@attrs.frozen
class Text(Step):
    """`text` is said `times` times, the n-th (from 0) at n times `every_ms` after the start."""

    text: str
    times: Times = 1
    every_ms: Milliseconds = 0


@attrs.frozen
class Now(Step):
    """The wall time is said, each time anew: microseconds since 1970 and a space.

    So whoever hears it can tell how long it was on its way.
    """

    now: Yes = True
    times: Times = 1
    every_ms: Milliseconds = 0


@attrs.frozen
class Thought(Step):
    """`thought` is thought `times` times."""

    thought: str
    times: Times = 1


@attrs.frozen
class Tool:
    """A call of a tool.

    `input` is any JSON value; a string stands for itself, anything else for its JSON text.
    With `confirm` the call waits for a permission and offers `options`; denied, it does not run
    and the script goes on. It then takes `takes_ms`, and half of its output is seen half-way.
    `fail`: it ends badly, and `output` is why. With `result_confirm` somebody has to approve the
    result. `server` is the id of the MCP server that the tool belongs to; with `auth_required` the
    call pauses until there is a token for that. `risk` is judged while the call asks. `edits` are
    what it does to files, shown while the call asks and told when it succeeds.
    """

    name: str
    title: str | None = None
    input: JSON = None
    confirm: bool = False
    options: Options = ()
    output: str | None = None
    fail: bool = False
    takes_ms: Milliseconds = 0
    result_confirm: bool = False
    server: str | None = None
    auth_required: McpAuthRequirement | None = None
    risk: ToolCallRiskAssessment | None = None
    edits: Edits = ()

    def __attrs_post_init__(self) -> None:
        """Raises `Misfit` when the fields contradict each other."""
        if self.options and not self.confirm:
            raise Misfit("true, since there are options", "false", ("confirm",))
        if self.risk is not None and not self.confirm:
            raise Misfit("true, since there is a risk to judge", "false", ("confirm",))
        if self.auth_required is not None and self.server is None:
            raise Misfit("a string, since a server wants a token", "nothing", ("server",))
        check_apart("options", "id", (option.id for option in self.options))

    @property
    def input_text(self) -> str | None:
        """The input as the protocol carries it; None when there is none."""
        if self.input is None or isinstance(self.input, str):
            return self.input
        return dumps(self.input).decode()


@attrs.frozen
class ToolStep(Step):
    """A tool is called."""

    tool: Tool


@attrs.frozen
class ScriptedCost:
    """What the turn cost so far, in a currency by its code."""

    amount: float
    currency: str


@attrs.frozen
class ScriptedContext:
    """Tokens in the model's context, and how many fit."""

    used: float
    size: float


@attrs.frozen
class Usage(Step):
    """Tokens used so far, as the protocol spells them; what they cost; how full the context is."""

    usage: UsageInfo
    cost: ScriptedCost | None = None
    context: ScriptedContext | None = None


@attrs.frozen
class Title(Step):
    """The conversation gets a name."""

    title: str


@attrs.frozen
class Activity(Step):
    """What the agent is doing, or None."""

    activity: str | None


@attrs.frozen
class Sleep(Step):
    """Time passes."""

    sleep_ms: Milliseconds


@attrs.frozen
class Echo(Step):
    """The prompt is said back."""

    echo: Yes = True


@attrs.frozen
class Fail(Step):
    """The turn ends in error."""

    fail: str
    resumable: bool = False


@attrs.frozen
class Crash(Step):
    """The backend breaks down."""

    crash: str


@attrs.frozen
class Hang(Step):
    """Only a cancel ends this."""

    hang: Yes = True


@attrs.frozen
class ClientTool:
    """A call of a client's tool: `name` as the client calls it, `input` as for `Tool`."""

    name: str
    input: JSON = None


@attrs.frozen
class ClientToolStep(Step):
    """A tool is called that a client has to run."""

    client_tool: ClientTool


@attrs.frozen
class Ask:
    """What is asked: `questions` as the protocol spells them, or a `url` to open, or both."""

    message: str
    questions: Annotated[tuple[ChatInputQuestion, ...], array_of("questions", MAX_OPTIONS)] = ()
    url: str | None = None

    def __attrs_post_init__(self) -> None:
        """Raises `Misfit` when two questions have one id."""
        known = (each for each in self.questions if not isinstance(each, Unknown))
        check_apart("questions", "id", (question.id for question in known))


@attrs.frozen
class AskStep(Step):
    """People are asked."""

    ask: Ask


@attrs.frozen
class Background:
    """A shell command that goes on for `for_ms`, also beyond its turn; 0: until the chat ends."""

    command: str
    label: str | None = None
    for_ms: Milliseconds = 0


@attrs.frozen
class BackgroundStep(Step):
    """Work begins that no turn waits for."""

    background: Background


@attrs.frozen
class Worker:
    """A worker called `title`, which plays `steps` in a chat of its own while its call runs."""

    title: str
    steps: Annotated[tuple[Step, ...], array_of("steps", MAX_WORKER_STEPS)]


@attrs.frozen
class WorkerStep(Step):
    """A tool call gives its work to a worker."""

    worker: Worker


@attrs.frozen
class ScriptedCommand:
    """One slash command."""

    name: str
    description: str = ""
    argument_hint: str | None = None
    is_skill: bool = False


@attrs.frozen
class Commands(Step):
    """The slash commands there are now."""

    commands: Annotated[tuple[ScriptedCommand, ...], array_of("commands", MAX_LISTED)]

    def __attrs_post_init__(self) -> None:
        """Raises `Misfit` when two commands have one name."""
        check_apart("commands", "name", (command.name for command in self.commands))


@attrs.frozen
class Customizations(Step):
    """What the agent is customized with now, as the protocol spells it."""

    customizations: Annotated[tuple[Customization, ...], array_of("customizations", MAX_LISTED)]


@attrs.frozen
class Notice(Step):
    """Something the harness says."""

    notice: str


@attrs.frozen
class SessionMeta(Step):
    """What the agent has to say in the session's `_meta`, all of it, or None."""

    session_meta: Annotated[
        JSON, Rule("an object or null", lambda v: v is None or isinstance(v, dict))
    ]
