"""How faults are found and told; that they agree with the decoders is tested with the codec."""

from __future__ import annotations

from typing import Any

import pytest

from ahpd.protocol.actions import StateAction
from ahpd.protocol.automation import AutomationDefinition
from ahpd.protocol.chat_actions import ChatToolCallConfirmedAction
from ahpd.protocol.common import ConfigPropertySchema, Implementation, StringOrMarkdown
from ahpd.protocol.connection import ChannelState
from ahpd.protocol.faults import Fault, faults, shown
from ahpd.protocol.shapes import shape_of
from ahpd.protocol.tools import ToolCallState, ToolInput


def told(hint: Any, value: Any, *, strict: bool = False) -> list[str]:
    return [str(fault) for fault in faults(shape_of(hint), value, strict=strict)]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "null"), (True, "true"), (7, "7"), (1.5, "1.5"), ("a\n", r"'a\n'"),
        ({}, "an object"), ([], "an array"), ((), "an array"), (b"", "a bytes"),
        ("\ud800", r"'\ud800'"),
        pytest.param(10**5000, "a whole number of 16610 bits", id="huge"),
        pytest.param(-(10**5000), "a whole number of 16610 bits", id="huge below zero"),
        (float("nan"), "nan"),
    ],
)  # fmt: skip
def test_any_value_can_be_shown(value: Any, text: str) -> None:
    assert shown(value) == text


def test_a_long_value_is_cut() -> None:
    assert len(shown("x" * 500)) == 80
    assert shown("x" * 500).endswith("…")


def test_the_value_itself_is_a_dot() -> None:
    assert str(Fault((), "string", "7")) == ".: expected string, got 7"


def test_every_fault_is_told_outermost_first() -> None:
    value = {"type": "array", "title": 1, "items": {"title": "t"}, "enum": [1, {}], "minItems": -1}
    assert told(ConfigPropertySchema, value) == [
        "title: expected string, got 1",
        "enum/1: expected string or number or boolean or null, got an object",
        (
            'items/type: expected "string" or "number" or "boolean" or "array" or "object", '
            "got nothing"
        ),
        "minItems: expected integer of at least 0, got -1",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("hint", "value", "fault"),
    [
        (Implementation, {"name": "n", "x": 1}, "x: expected no such key in Implementation, got 1"),
        (Implementation, {"name": "n", "title": None}, "title: expected string, got null"),
        (ConfigPropertySchema, {"type": "new", "title": "t"}, "type: expected"),
        (StateAction, {"type": "new"}, "type: expected a type of StateAction, got 'new'"),
        (ChannelState, {"new": 1}, ".: expected SessionState or ChatState"),
    ],
)
def test_strict_finds_what_tolerant_lets_pass(hint: Any, value: Any, fault: str) -> None:
    assert told(hint, value) == []
    (line,) = told(hint, value, strict=True)
    assert line.startswith(fault)


@pytest.mark.parametrize(
    ("hint", "value", "fault"),
    [
        (StateAction, {}, "type: expected a type of StateAction, got nothing"),
        (StateAction, {"type": 1}, "type: expected a type of StateAction, got 1"),
        (StateAction, 1, ".: expected StateAction, got 1"),
        (ToolCallState, {"status": 1}, 'status: expected object with status of "streaming", "p'),
        (
            ChatToolCallConfirmedAction,
            {"approved": 1},
            "approved: expected object with approved of",
        ),
        (StringOrMarkdown, 1, ".: expected string or Markdown, got 1"),
        (StringOrMarkdown, {"markdown": 1}, "markdown: expected string, got 1"),
        (ToolInput, {}, "uri: expected string, got nothing"),
        (ChannelState, [], ".: expected SessionState or"),
    ],
)
def test_what_even_a_newer_peer_may_not_send(hint: Any, value: Any, fault: str) -> None:
    assert told(hint, value)[0].startswith(fault)


def test_one_condition_of_each_kind() -> None:
    once = {"kind": "afterRuns", "runs": 1}
    definition = {"disableConditions": [once, once]}
    assert "disableConditions: expected at most one afterRuns, got 2" in told(
        AutomationDefinition, definition, strict=True
    )
