"""Every action has its reducer, and what the host relies on beside the cases."""

# Not `from __future__ import annotations`: that name is a module here.
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from ahpd.protocol import ACTIONS, DecodeError, StateAction, decode
from ahpd.protocol.chat import ChatState, MarkdownResponsePart
from ahpd.protocol.persistent import Text
from ahpd.reducers import (
    REDUCERS,
    STATES,
    annotations,
    apply,
    automation,
    automation_run,
    canvas,
    changeset,
    chat,
    reduce,
    resource_watch,
    root,
    session,
    status,
    terminal,
)
from ahpd.reducers.change import unchanged

TABLES: dict[str, Any] = {
    "root": root.HANDLERS,
    "session": session.HANDLERS,
    "chat": chat.HANDLERS,
    "terminal": terminal.HANDLERS,
    "changeset": changeset.HANDLERS,
    "annotations": annotations.HANDLERS,
    "resourceWatch": resource_watch.HANDLERS,
    "automation": automation.HANDLERS,
    "automationRun": automation_run.HANDLERS,
    "canvas": canvas.HANDLERS,
}

#: What changes no state on purpose: R-5.22 and R-14.8.
ONLY_EVENTS = {
    "terminal/input",
    "automation/createRequested",
    "automation/updateRequested",
    "automationRun/cancelRequested",
    "resourceWatch/changed",
}

MESSAGE = {"text": "Prune", "origin": {"kind": "user"}}
CHAT: dict[str, Any] = {
    "resource": "ahp-chat:/orchard/pears",
    "title": "Pears",
    "status": 8,
    "modifiedAt": "2031-03-01T00:00:00.000Z",
    "turns": [],
    "activeTurn": {
        "id": "t7",
        "startedAt": "2031-03-04T05:00:00.000Z",
        "message": MESSAGE,
        "responseParts": [{"kind": "markdown", "id": "a", "content": ""}],
    },
}


def test_every_action_has_a_handler_in_its_channel() -> None:
    handled = {
        (channel, cls.wire_defaults["type"], cls)
        for channel, table in TABLES.items()
        for cls in table
    }
    declared = {(info.channel, info.type, cls) for info in ACTIONS.values() for cls in info.classes}
    assert handled == declared
    assert len(ACTIONS) == 106
    assert TABLES.keys() == STATES.keys() == REDUCERS.keys()


def test_what_changes_nothing_is_listed() -> None:
    idle = {
        cls.wire_defaults["type"]
        for table in TABLES.values()
        for cls, handler in table.items()
        if handler is unchanged
    }
    assert idle == ONLY_EVENTS


def test_own_cases_reach_everything() -> None:
    script = Path(__file__).with_name("coverage_from_fixtures.py")
    run = subprocess.run([sys.executable, script], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout + run.stderr


def test_malformed_state() -> None:
    with pytest.raises(DecodeError, match="turns: expected array"):
        reduce("chat", {**CHAT, "turns": 3}, {"type": "chat/truncated"})


def test_malformed_action() -> None:
    with pytest.raises(DecodeError, match="duration"):
        reduce("chat", CHAT, {"type": "chat/turnComplete", "turnId": "t7"})


def test_unknown_kind_of_channel() -> None:
    with pytest.raises(KeyError):
        reduce("garden", CHAT, {"type": "chat/truncated"})  # type: ignore[arg-type]


def _delta(text: str) -> StateAction:
    fields = {"type": "chat/delta", "turnId": "t7", "partId": "a", "content": text}
    action: StateAction = decode(StateAction, fields)
    return action


def _content(state: ChatState) -> Text | str:
    assert state.active_turn is not None
    part = state.active_turn.response_parts[0]
    assert isinstance(part, MarkdownResponsePart)
    return part.content


def test_streams_branch() -> None:
    """Appending to an older state copies; no holder sees another's text."""
    first = decode(ChatState, CHAT)
    one = apply("chat", first, _delta("one"))
    left = apply("chat", one, _delta(" left"))
    right = apply("chat", one, _delta(" right"))
    texts = [str(_content(state)) for state in (first, one, left, right)]
    assert texts == ["", "one", "one left", "one right"]


def test_a_delta_shares_what_it_does_not_touch() -> None:
    old = {"id": "t1", "message": MESSAGE, "responseParts": [], "state": "complete"}
    first = decode(ChatState, {**CHAT, "turns": [old]})
    second = apply("chat", first, _delta("x"))
    third = apply("chat", second, _delta("y"))
    assert third.turns is first.turns
    assert isinstance(_content(third), Text)
    assert third.active_turn is not None
    assert second.active_turn is not None
    assert third.active_turn.message is second.active_turn.message


@pytest.mark.parametrize(
    ("before", "activity", "after"),
    [
        (33, status.INPUT_NEEDED, 56),
        (24, status.IDLE, 1),
        (2 | 64 | 4096, status.IN_PROGRESS, 4168),
    ],
)
def test_set_activity_keeps_flags(before: int, activity: int, after: int) -> None:
    assert status.set_activity(before, activity) == after


def test_activity_is_computed_from_the_turn() -> None:
    running = decode(ChatState, CHAT)
    asks = decode(StateAction, {"type": "chat/inputRequested", "request": {"id": "r"}})
    ends = decode(StateAction, {"type": "chat/turnCancelled", "turnId": "t7", "duration": 1})
    asking = apply("chat", running, asks)
    ended = apply("chat", asking, ends)
    assert [status.activity_of(each) for each in (running, asking, ended)] == [
        status.IN_PROGRESS,
        status.INPUT_NEEDED,
        status.IDLE,
    ]
