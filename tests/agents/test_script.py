"""The format of scripts: what is read, which entry answers, and the one error of a bad file."""

from __future__ import annotations

import tracemalloc
from pathlib import Path

import attrs
import pytest

from ahpd.agents.plays import STEPS
from ahpd.agents.script import ECHO, MAX_BYTES, Script, ScriptError, load_script, parse_script
from ahpd.agents.steps import (
    Activity,
    Ask,
    AskStep,
    Background,
    BackgroundStep,
    ClientTool,
    ClientToolStep,
    Commands,
    Crash,
    Customizations,
    Echo,
    Fail,
    Hang,
    Misfit,
    Notice,
    Now,
    ScriptedCommand,
    ScriptedContext,
    ScriptedCost,
    SessionMeta,
    Sleep,
    Text,
    Thought,
    Title,
    Tool,
    ToolStep,
    Usage,
    Worker,
    WorkerStep,
)
from ahpd.protocol.common import ProtectedResourceMetadata, UsageInfo
from ahpd.protocol.customizations import PluginCustomization
from ahpd.protocol.inputs import ChatInputTextQuestion
from ahpd.protocol.model import JSON, wire_name
from ahpd.protocol.tools import (
    ConfirmationOption,
    McpAuthRequirement,
    ToolCallRiskAssessmentCompleteState,
)

EXAMPLES = sorted((Path(__file__).parents[2] / "fixtures" / "scripts").glob("*.json"))

OPTION: JSON = {"id": "a", "label": "Yes", "kind": "approve"}
AUTH: JSON = {"reason": "required", "resource": {"resource": "https://files.example/mcp"}}
QUESTION: JSON = {"id": "q", "kind": "text", "message": "Which?"}
PLUGIN: JSON = {"type": "plugin", "id": "p", "uri": "file:///p", "name": "P"}


def steps(*values: JSON) -> JSON:
    return {"turns": [{"steps": list(values)}]}


def tool(**values: JSON) -> JSON:
    return steps({"tool": {"name": "look", **values}})


@pytest.mark.parametrize(
    ("value", "step"),
    [
        ({"text": "a"}, Text("a")),
        ({"text": "a", "times": 3, "everyMs": 2.5}, Text("a", times=3, every_ms=2.5)),
        ({"now": True, "everyMs": 2.5}, Now(every_ms=2.5)),
        ({"thought": "a", "times": 10_000_000}, Thought("a", times=10_000_000)),
        ({"tool": {"name": "look"}}, ToolStep(Tool("look"))),
        (
            {
                "tool": {
                    "name": "look",
                    "title": "Look",
                    "input": {"a": [1]},
                    "confirm": True,
                    "options": [OPTION],
                    "output": "seen",
                    "fail": True,
                    "takesMs": 10,
                }
            },
            ToolStep(
                Tool(
                    "look",
                    title="Look",
                    input={"a": [1]},
                    confirm=True,
                    options=(ConfirmationOption(id="a", label="Yes", kind="approve"),),
                    output="seen",
                    fail=True,
                    takes_ms=10,
                )
            ),
        ),
        (
            {
                "tool": {
                    "name": "look",
                    "confirm": True,
                    "resultConfirm": True,
                    "server": "files",
                    "authRequired": AUTH,
                    "risk": {"status": "complete", "kind": "judge", "reason": "r", "safety": 0.5},
                }
            },
            ToolStep(
                Tool(
                    "look",
                    confirm=True,
                    result_confirm=True,
                    server="files",
                    auth_required=McpAuthRequirement(
                        reason="required",
                        resource=ProtectedResourceMetadata(resource="https://files.example/mcp"),
                    ),
                    risk=ToolCallRiskAssessmentCompleteState(kind="judge", reason="r", safety=0.5),
                )
            ),
        ),
        ({"usage": {"inputTokens": 3}}, Usage(UsageInfo(input_tokens=3))),
        (
            {
                "usage": {},
                "cost": {"amount": 0.5, "currency": "EUR"},
                "context": {"used": 1, "size": 2},
            },
            Usage(UsageInfo(), ScriptedCost(0.5, "EUR"), ScriptedContext(1, 2)),
        ),
        (
            {"clientTool": {"name": "open", "input": {"a": 1}}},
            ClientToolStep(ClientTool("open", {"a": 1})),
        ),
        (
            {"ask": {"message": "Well?", "url": "https://x.example", "questions": [QUESTION]}},
            AskStep(
                Ask(
                    "Well?", (ChatInputTextQuestion(id="q", message="Which?"),), "https://x.example"
                )
            ),
        ),
        (
            {"background": {"command": "make", "label": "Build", "forMs": 5}},
            BackgroundStep(Background("make", "Build", 5)),
        ),
        (
            {"worker": {"title": "Look", "steps": [{"worker": {"title": "b", "steps": []}}]}},
            WorkerStep(Worker("Look", (WorkerStep(Worker("b", ())),))),
        ),
        (
            {
                "commands": [
                    {"name": "fix", "description": "d", "argumentHint": "a", "isSkill": True}
                ]
            },
            Commands((ScriptedCommand("fix", "d", "a", True),)),
        ),
        (
            {"customizations": [PLUGIN]},
            Customizations((PluginCustomization(id="p", uri="file:///p", name="P"),)),
        ),
        ({"notice": "a"}, Notice("a")),
        ({"sessionMeta": {"a": 1}}, SessionMeta({"a": 1})),
        ({"sessionMeta": None}, SessionMeta(None)),
        ({"title": "a"}, Title("a")),
        ({"activity": "a"}, Activity("a")),
        ({"activity": None}, Activity(None)),
        ({"sleepMs": 10}, Sleep(10)),
        ({"echo": True}, Echo()),
        ({"fail": "a"}, Fail("a")),
        ({"fail": "a", "resumable": True}, Fail("a", resumable=True)),
        ({"crash": "a"}, Crash("a")),
        ({"hang": True}, Hang()),
    ],
)
def test_each_step_is_read_as_it_is_written(value: JSON, step: object) -> None:
    assert parse_script(steps(value)).turns[0].steps == (step,)


def test_the_key_of_a_step_is_the_first_field_of_its_class() -> None:
    for key, row in STEPS.items():
        assert wire_name(attrs.fields(row.cls)[0].name) == key


@pytest.mark.parametrize(
    ("prompt", "entry"),
    [("please HELP me", 0), ("help", 1), ("anything", 2), ("", 2), ("x" * 20_000 + "HELP", 2)],
)
def test_the_first_entry_found_in_the_prompt_answers(prompt: str, entry: int) -> None:
    script = parse_script(
        {
            "turns": [
                {"when": "HELP", "steps": []},
                {"when": "^help$", "steps": []},
                {"steps": []},
                {"when": "anything", "steps": []},
            ]
        }
    )
    assert script.entry_for(prompt) is script.turns[entry]


def test_a_prompt_that_nothing_fits_is_echoed() -> None:
    script = parse_script({"turns": [{"when": "x", "steps": []}]})
    assert script.entry_for("y") is ECHO
    assert Script(turns=()).entry_for("y") is ECHO


NAMES = (
    "text, now, thought, tool, usage, title, activity, sleepMs, echo, fail, crash, hang, "
    "clientTool, ask, background, worker, commands, customizations, notice, sessionMeta"
)
TOOL_KEYS = (
    "name, title, input, confirm, options, output, fail, takesMs, resultConfirm, server, "
    "authRequired, risk, edits"
)
TIMES = "a whole number from 1 to 10000000"
MS = "milliseconds from 0 to 86400000"
REGEX = "a regular expression of at most 1000 characters"

BAD: list[tuple[JSON, str]] = [
    (
        steps({"sessionMeta": 1}),
        "turns/0/steps/0/sessionMeta: expected an object or null, found 1",
    ),
    ([], "expected an object, found an array"),
    (None, "expected an object, found null"),
    ({}, "turns: expected an array of at most 1000 entries, found nothing"),
    ({"turn": []}, "turn: expected a key, one of turns, found 'turn' (did you mean \"turns\"?)"),
    ({"turns": "abc"}, "turns: expected an array of at most 1000 entries, found 'abc'"),
    (
        {"turns": [{"steps": []}] * 1001},
        "turns: expected an array of at most 1000 entries, found an array",
    ),
    ({"turns": [{"steps": []}, 3]}, "turns/1: expected an object, found 3"),
    (
        {"turns": [{"whne": "a", "steps": []}]},
        "turns/0/whne: expected a key, one of steps, when, found 'whne' (did you mean \"when\"?)",
    ),
    ({"turns": [{}]}, "turns/0/steps: expected an array of at most 100000 steps, found nothing"),
    (
        {"turns": [{"when": "(", "steps": []}]},
        (
            f"turns/0/when: expected {REGEX}, found '(' "
            "(missing ), unterminated subpattern at position 0)"
        ),
    ),
    ({"turns": [{"when": 4, "steps": []}]}, f"turns/0/when: expected {REGEX}, found 4"),
    (
        {"turns": [{"when": "a{99999999999999999999}", "steps": []}]},
        (
            f"turns/0/when: expected {REGEX}, found 'a{{99999999999999999999}}' "
            "(the repetition number is too large)"
        ),
    ),
    (steps(4), "turns/0/steps/0: expected a step, which is an object, found 4"),
    (steps({}), "turns/0/steps/0: expected a step, which is an object, found an empty one"),
    (
        steps({"hang": True}, {"txet": "a"}),
        f"turns/0/steps/1: expected a step, one of {NAMES}, found 'txet' (did you mean \"text\"?)",
    ),
    (
        steps({"zzz": "a"}),
        f"turns/0/steps/0: expected a step, one of {NAMES}, found 'zzz'",
    ),
    (
        steps({"text": "a", "tool": {}}),
        'turns/0/steps/0: expected one step in an object, found "text" and "tool"',
    ),
    (steps({"text": 3}), "turns/0/steps/0/text: expected a string, found 3"),
    (
        steps({"text": "a", "everyms": 3}),
        (
            "turns/0/steps/0/everyms: expected a key, one of text, times, everyMs, "
            "found 'everyms' (did you mean \"everyMs\"?)"
        ),
    ),
    (steps({"text": "a", "times": 0}), f"turns/0/steps/0/times: expected {TIMES}, found 0"),
    (
        steps({"thought": "a", "times": 10_000_001}),
        f"turns/0/steps/0/times: expected {TIMES}, found 10000001",
    ),
    (steps({"text": "a", "times": True}), f"turns/0/steps/0/times: expected {TIMES}, found true"),
    (steps({"text": "a", "times": 1.5}), f"turns/0/steps/0/times: expected {TIMES}, found 1.5"),
    (steps({"text": "a", "everyMs": -1}), f"turns/0/steps/0/everyMs: expected {MS}, found -1"),
    (
        steps({"text": "a", "everyMs": True}),
        f"turns/0/steps/0/everyMs: expected {MS}, found true",
    ),
    (steps({"sleepMs": 1e12}), f"turns/0/steps/0/sleepMs: expected {MS}, found 1000000000000.0"),
    (steps({"sleepMs": "1"}), f"turns/0/steps/0/sleepMs: expected {MS}, found '1'"),
    (steps({"tool": "look"}), "turns/0/steps/0/tool: expected an object, found 'look'"),
    (steps({"tool": {}}), "turns/0/steps/0/tool/name: expected a string, found nothing"),
    (
        {"turns": [{"steps": [{"hang": True}, {"hang": True}, {"tool": {"confrim": True}}]}]},
        (
            f"turns/0/steps/2/tool/confrim: expected a key, one of {TOOL_KEYS}, "
            "found 'confrim' (did you mean \"confirm\"?)"
        ),
    ),
    (tool(confirm="yes"), "turns/0/steps/0/tool/confirm: expected true or false, found 'yes'"),
    (
        tool(options=[OPTION]),
        "turns/0/steps/0/tool/confirm: expected true, since there are options, found false",
    ),
    (
        tool(confirm=True, options={}),
        "turns/0/steps/0/tool/options: expected an array of at most 100 options, found an object",
    ),
    (
        tool(confirm=True, options=[{**OPTION, "kind": "approved"}]),
        'turns/0/steps/0/tool/options/0/kind: expected "approve" or "deny", found \'approved\'',
    ),
    (
        tool(confirm=True, options=[{"id": "a", "kind": "deny"}]),
        "turns/0/steps/0/tool/options/0/label: expected string, found nothing",
    ),
    (
        tool(confirm=True, options=[OPTION, {**OPTION, "lable": "b"}]),
        (
            "turns/0/steps/0/tool/options/1/lable: expected a key, one of id, label, kind, group, "
            "found 'lable' (did you mean \"label\"?)"
        ),
    ),
    (
        tool(confirm=True, options=[OPTION, OPTION]),
        'turns/0/steps/0/tool/options/1/id: expected an id of its own, found "a" again',
    ),
    (
        tool(risk={"status": "loading", "kind": "judge"}),
        "turns/0/steps/0/tool/confirm: expected true, since there is a risk to judge, found false",
    ),
    (
        tool(authRequired=AUTH),
        (
            "turns/0/steps/0/tool/server: "
            "expected a string, since a server wants a token, found nothing"
        ),
    ),
    (
        tool(server="x", authRequired={"reason": "why"}),
        (
            'turns/0/steps/0/tool/authRequired/reason: expected "required" or "expired" or '
            "\"insufficientScope\", found 'why'"
        ),
    ),
    (
        steps({"ask": {"message": "m", "questions": [QUESTION, QUESTION]}}),
        'turns/0/steps/0/ask/questions/1/id: expected an id of its own, found "q" again',
    ),
    (
        steps({"ask": {"message": "m", "questions": [{**QUESTION, "kind": "txet"}]}}),
        (
            "turns/0/steps/0/ask/questions/0/kind: expected object with kind of "
            '"text", "number", "integer", "boolean", "single-select", "multi-select", '
            "found 'txet'"
        ),
    ),
    (
        steps({"ask": {"questions": []}}),
        "turns/0/steps/0/ask/message: expected a string, found nothing",
    ),
    (
        steps({"worker": {"title": "w", "steps": [{"text": "a"}, {"txet": "a"}]}}),
        (
            f"turns/0/steps/0/worker/steps/1: expected a step, one of {NAMES}, "
            "found 'txet' (did you mean \"text\"?)"
        ),
    ),
    (
        steps({"worker": {"title": "w"}}),
        "turns/0/steps/0/worker/steps: expected an array of at most 10000 steps, found nothing",
    ),
    (
        steps({"commands": [{"name": "a"}, {"name": "a"}]}),
        'turns/0/steps/0/commands/1/name: expected a name of its own, found "a" again',
    ),
    (
        steps({"customizations": [{"type": "plugin", "id": "p"}]}),
        "turns/0/steps/0/customizations/0/uri: expected string, found nothing",
    ),
    (
        steps({"background": {"command": "make", "forMs": -1}}),
        f"turns/0/steps/0/background/forMs: expected {MS}, found -1",
    ),
    (
        steps({"usage": {}, "cost": {"amount": 1}}),
        "turns/0/steps/0/cost/currency: expected a string, found nothing",
    ),
    (tool(takesMs=-1), f"turns/0/steps/0/tool/takesMs: expected {MS}, found -1"),
    (
        steps({"usage": {"inputTokens": "3"}}),
        "turns/0/steps/0/usage/inputTokens: expected number, found '3'",
    ),
    (steps({"title": None}), "turns/0/steps/0/title: expected a string, found null"),
    (steps({"activity": 1}), "turns/0/steps/0/activity: expected a string, found 1"),
    (steps({"echo": 1}), "turns/0/steps/0/echo: expected true, found 1"),
    (steps({"hang": False}), "turns/0/steps/0/hang: expected true, found false"),
    (
        steps({"fail": "a", "resumable": 1}),
        "turns/0/steps/0/resumable: expected true or false, found 1",
    ),
]


@pytest.mark.parametrize(("value", "says"), BAD, ids=[says.split(",")[0] for _, says in BAD])
def test_a_bad_script_is_one_error_with_file_place_and_reason(value: JSON, says: str) -> None:
    with pytest.raises(ScriptError) as caught:
        parse_script(value, "bad.json")
    assert str(caught.value) == f"bad.json: {says}"
    place = "" if caught.value.where == "." else f"{caught.value.where}: "
    assert str(caught.value) == (
        f"{caught.value.file}: {place}expected {caught.value.expected}, found {caught.value.found}"
    )


def test_contradictions_are_found_without_a_file_too() -> None:
    option = ConfirmationOption(id="a", label="Yes", kind="approve")
    with pytest.raises(Misfit):
        Tool("look", options=(option,))


def test_a_script_with_very_many_faults_costs_little_and_names_the_first() -> None:
    value = {"turns": [{"steps": [{"wrong": 1}] * 100_000}] * 10}
    tracemalloc.start()
    try:
        with pytest.raises(ScriptError, match="turns/0/steps/0"):
            parse_script(value)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 4_000_000


def test_a_script_can_hold_ten_million_chunks_without_their_memory() -> None:
    tracemalloc.start()
    try:
        parse_script({"turns": [{"steps": [{"text": "a" * 100, "times": 10_000_000}]}]})
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 1_000_000


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_the_examples_are_scripts(path: Path) -> None:
    assert load_script(path).turns


def test_a_file_that_is_not_there_or_not_a_file_says_so(tmp_path: Path) -> None:
    missing = tmp_path / "none.json"
    with pytest.raises(ScriptError) as caught:
        load_script(str(missing))
    assert str(caught.value) == (
        f"{missing}: expected a file that can be read, found No such file or directory"
    )
    with pytest.raises(ScriptError, match="found Is a directory"):
        load_script(tmp_path)


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"", "expected JSON, found something else (not JSON: "),
        (b'{"turns": [', "expected JSON, found something else (not JSON: "),
        (b"\xff\xfe", "expected JSON, found something else (not JSON: "),
        (b'{"turns": ' + b"[" * 300 + b"]" * 300 + b"}", "(nested deeper than "),
        (b" " * (MAX_BYTES + 1), f"expected a file of at most {MAX_BYTES} bytes"),
    ],
    ids=["empty", "cut off", "not text", "deep", "large"],
)
def test_a_file_that_is_not_json_says_so(tmp_path: Path, data: bytes, says: str) -> None:
    path = tmp_path / "bad.json"
    path.write_bytes(data)
    with pytest.raises(ScriptError) as caught:
        load_script(path)
    assert says in str(caught.value)
    assert str(caught.value).startswith(f"{path}: expected ")
