"""Updates of any shape: what they mean, and that none of them breaks anything."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ahpd.agents import events as ev
from ahpd.agents.acp.contents import INLINE, edits, results
from ahpd.agents.acp.mapping import Updates, merged
from ahpd.agents.acp.permissions import CANCELLED, offered, outcome
from ahpd.agents.acp.settings import settings_of
from ahpd.agents.acp.tolerant import read_json
from ahpd.agents.port import Permission
from ahpd.protocol.jsontext import ParseError, dumps
from ahpd.protocol.tools import ToolResultTextContent

KINDS = [
    "user_message_chunk",
    "agent_message_chunk",
    "agent_thought_chunk",
    "tool_call",
    "tool_call_update",
    "plan",
    "available_commands_update",
    "current_mode_update",
    "config_option_update",
    "session_info_update",
    "usage_update",
    "notice",
    "compaction_update",
    "compaction_summary_chunk",
    "other",
]
WORDS = [
    "type",
    "text",
    "content",
    "diff",
    "path",
    "oldText",
    "newText",
    "resource",
    "uri",
    "blob",
    "data",
    "mimeType",
    "image",
    "title",
    "name",
    "kind",
    "status",
    "completed",
    "failed",
    "in_progress",
    "pending",
    "rawInput",
    "rawOutput",
    "output",
    "entries",
    "used",
    "size",
    "cost",
    "amount",
    "currency",
    "availableCommands",
    "input",
    "hint",
    "toolCallId",
    "c1",
    "description",
    "options",
    "optionId",
    "configOptions",
    "id",
    "currentValue",
    "select",
    "boolean",
    "modes",
    "currentModeId",
    "availableModes",
    "value",
]

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.floats(-1e9, 1e9) | st.sampled_from(WORDS),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(WORDS), inner, max_size=5)
    ),
    max_leaves=12,
)
FIELDS = st.dictionaries(st.sampled_from(WORDS), VALUES, max_size=8)
UPDATES = st.tuples(st.sampled_from(KINDS), FIELDS).map(
    lambda each: {**each[1], "sessionUpdate": each[0]}
)


@given(st.lists(UPDATES, max_size=12))
def test_no_update_breaks_anything(updates: list[dict[str, Any]]) -> None:
    reader = Updates("/w")
    reader.begin()
    said: list[ev.Event] = []
    for each in updates:
        said += reader.in_turn(each)
        settings_of(each)
    said += reader.calls.close()
    for event in merged(said):
        for part in getattr(event, "content", None) or ():
            if not isinstance(part, str):
                dumps(part.wire())


@given(FIELDS, st.booleans())
def test_no_request_for_permission_breaks_anything(params: Any, approved: bool) -> None:
    options = offered(params)
    reader = Updates("/w")
    row, _ = reader.calls.asks(params, options)
    assert reader.calls.withdrawn(row)
    dumps(outcome(params, Permission(row, approved)))


@given(st.binary(max_size=60))
def test_what_is_no_json_is_told_apart(line: bytes) -> None:
    for each in (line, b"{" + line, b"[" + line + b"]"):
        try:
            value = read_json(each)
        except ParseError:
            continue
        dumps(value)


@pytest.mark.parametrize(
    ("line", "value"),
    [
        (b'{"a": NaN, "b": [-Infinity, 1e999, 1]}', {"a": None, "b": [None, None, 1]}),
        (b'["\\ud83d", "\\ud83d\\ude00", "\xff"]', ["\ufffd", "\U0001f600", "\ufffd"]),
        (b'["\xe2\x80\xa8\xc2\x85"]', ["\u2028\u0085"]),
    ],
)
def test_what_is_nearly_json_is_read(line: bytes, value: Any) -> None:
    assert read_json(line) == value


@pytest.mark.parametrize("line", [b"", b"hello", b"{", b"[" * 100_000, b"{]", b"nan", b"-"])
def test_what_is_not_is_refused(line: bytes) -> None:
    with pytest.raises(ParseError):
        read_json(line)


def test_deep_json_is_refused() -> None:
    with pytest.raises(ParseError):
        read_json(b"[" * 500 + b"]" * 500)


def test_neighbours_are_merged_and_nothing_else() -> None:
    text, thought, title = ev.TextChunk, ev.ThoughtChunk, ev.TitleProposed

    def out(call: str, shown: str) -> ev.ToolOutput:
        return ev.ToolOutput(call, (ToolResultTextContent(text=shown),))

    given: list[ev.Event] = [
        text("a"), text("b"), thought("c"), text("d"), title("t"), text("e"), text("f"),
        out("1", "x"), out("1", "xy"), out("2", "z"), out("1", "xyz"),
    ]  # fmt: skip
    assert merged(given) == [
        text("ab"), thought("c"), text("d"), title("t"), text("ef"),
        out("1", "xy"), out("2", "z"), out("1", "xyz"),
    ]  # fmt: skip
    assert merged([]) == []


def test_the_text_of_a_long_file_is_not_carried_along() -> None:
    long = "x" * (INLINE + 1)
    (edit,) = edits([{"type": "diff", "path": "/w/a b", "oldText": "y", "newText": long}], "/w")
    assert edit.before is not None
    assert edit.after is not None
    assert edit.before.content.uri == "data:text/plain;charset=utf-8,y"
    assert edit.after.content.uri == edit.after.uri == "file:///w/a%20b"


def test_contents_of_every_kind() -> None:
    blocks = [
        {"type": "text", "text": "t"},
        {"type": "image", "data": "AA==", "mimeType": "image/png"},
        {"type": "resource_link", "uri": "file:///a", "name": "a"},
        {"type": "resource", "resource": {"uri": "x:", "text": "inner"}},
        {"type": "resource", "resource": {"uri": "x:", "blob": "AA=="}},
        {"type": "hologram"},
    ]
    content: list[Any] = [{"type": "content", "content": each} for each in blocks]
    content += [{"type": "terminal", "terminalId": "t"}, {"type": "other"}]
    assert [each.wire() for each in results(content, "/w")] == [
        {"type": "text", "text": "t"},
        {"type": "embeddedResource", "data": "AA==", "contentType": "image/png"},
        {"type": "resource", "uri": "file:///a"},
        {"type": "text", "text": "inner"},
        {"type": "embeddedResource", "data": "AA==", "contentType": "application/octet-stream"},
    ]


def test_without_an_option_that_fits_nobody_decided() -> None:
    params = {"options": [{"optionId": "go", "name": "Go", "kind": "allow_once"}]}
    assert outcome(params, Permission("c", approved=False)) == CANCELLED
    assert outcome({}, Permission("c", approved=True)) == CANCELLED


def test_what_was_shown_with_a_question_is_no_result() -> None:
    updates = Updates("/w")
    text = {"type": "content", "content": {"type": "text", "text": "May I?"}}
    diff = {"type": "diff", "path": "a", "oldText": None, "newText": "x\n"}
    asked = {"toolCallId": "c", "title": "Do", "content": [text, diff]}
    row, _ = updates.calls.asks(asked, ())
    updates.calls.answered(row, approved=True)

    def said(**told: Any) -> Any:
        update = {"sessionUpdate": "tool_call_update", "toolCallId": "c", **told}
        return updates.in_turn(update)

    assert said(status="in_progress") == ()
    (finished,) = said(status="completed", rawOutput={"formatted_output": "done\n"})
    edit, given = finished.content
    assert (edit.after.uri, given.text) == ("file:///w/a", "done\n")
