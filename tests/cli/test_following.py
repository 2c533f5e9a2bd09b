"""What happens in a chat: told once and whole, however its states come."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ahpd.cli.following import (
    Began,
    Ended,
    Failed,
    Follower,
    Happening,
    Noted,
    Questioned,
    Said,
    Thought,
    ToolMoved,
)
from ahpd.protocol.actions import StateAction
from ahpd.protocol.chat import ChatState
from ahpd.protocol.codec import decode
from ahpd.protocol.connection import ActionEnvelope
from ahpd.reducers import apply

CHAT = "ahp-chat:/c"
EMPTY: ChatState = decode(
    ChatState,
    {
        "resource": CHAT,
        "title": "",
        "status": 1,
        "modifiedAt": "2026-01-01T00:00:00.000Z",
        "turns": [],
    },
)


def started(turn: str) -> dict[str, Any]:
    message = {"text": f"do {turn}", "origin": {"kind": "user"}}
    return {
        "type": "chat/turnStarted",
        "turnId": turn,
        "startedAt": "2026-01-01T00:00:00.000Z",
        "message": message,
    }


def part(turn: str, kind: str, id: str, text: str) -> dict[str, Any]:
    value = {"kind": kind, "id": id, "content": text}
    return {"type": "chat/responsePart", "turnId": turn, "part": value}


def more(turn: str, kind: str, id: str, text: str) -> dict[str, Any]:
    return {"type": f"chat/{kind}", "turnId": turn, "partId": id, "content": text}


def tool(turn: str, what: str, **values: Any) -> dict[str, Any]:
    return {"type": f"chat/toolCall{what}", "turnId": turn, "toolCallId": "k", **values}


def turn_of_everything(turn: str) -> list[dict[str, Any]]:
    return [
        started(turn),
        part(turn, "reasoning", f"{turn}r", "I th"),
        more(turn, "reasoning", f"{turn}r", "ink."),
        part(turn, "markdown", f"{turn}m", "He"),
        more(turn, "delta", f"{turn}m", "llo"),
        tool(turn, "Start", toolName="dig", displayName="Dig"),
        tool(turn, "Ready", invocationMessage="Dig?"),
        tool(turn, "Confirmed", approved=True, confirmed="user-action"),
        tool(turn, "Complete", result={"success": True, "pastTenseMessage": "Dug"}),
        part(turn, "markdown", f"{turn}n", "."),
        more(turn, "delta", f"{turn}m", " there"),
        {"type": "chat/turnComplete", "turnId": turn, "duration": 5},
    ]


ERROR = {"kind": "error", "error": {"errorType": "Bad", "message": "no luck"}, "resumable": True}
STORY = [
    *turn_of_everything("a"),
    started("b"),
    part("b", "markdown", "bm", "Oh"),
    {"type": "chat/error", "turnId": "b", "duration": 1, "part": ERROR},
    {"type": "chat/turnResume", "turnId": "b"},
    more("b", "delta", "bm", " well"),
    {"type": "chat/turnComplete", "turnId": "b", "duration": 2},
    *turn_of_everything("c"),
]


def states(story: Sequence[dict[str, Any]]) -> list[tuple[ChatState, ActionEnvelope]]:
    found, state = [], EMPTY
    for number, raw in enumerate(story, 1):
        action = decode(StateAction, raw)
        state = apply("chat", state, action)
        found.append((state, ActionEnvelope(channel=CHAT, action=action, server_seq=number)))
    return found


def told(happenings: Sequence[Happening]) -> list[Any]:
    """What was told, with the pieces of each part of the text put together, parts in order."""
    out: list[Any] = []
    texts: dict[Any, str] = {}
    for each in happenings:
        match each:
            case Said() | Thought():
                key = (type(each).__name__, each.part)
                texts[key] = texts.get(key, "") + each.text
            case Began():
                out.append(("began", each.turn_id, each.resumed))
            case Ended():
                out += [*sorted(texts.items()), ("ended", each.turn.id, each.turn.state)]
                if each.turn.state != "error":
                    texts = {}
            case ToolMoved():
                out.append(("tool", each.words))
            case Failed():
                out.append(("failed", each.text, each.resumable))
            case _:
                out.append(each)
    return out


def test_every_step_is_told_as_it_comes() -> None:
    follower = Follower(EMPTY)
    found = [each for state, envelope in states(STORY) for each in follower.look(state, envelope)]
    assert told(found) == [
        ("began", "a", False),
        ("tool", "being written"),
        ("tool", "waits for approval"),
        ("tool", "running"),
        ("tool", "done"),
        (("Said", 1), "Hello there"),
        (("Said", 3), "."),
        (("Thought", 0), "I think."),
        ("ended", "a", "complete"),
        ("began", "b", False),
        ("failed", "no luck (Bad)", True),
        (("Said", 0), "Oh"),
        ("ended", "b", "error"),
        ("began", "b", True),
        (("Said", 0), "Oh well"),
        ("ended", "b", "complete"),
        ("began", "c", False),
        ("tool", "being written"),
        ("tool", "waits for approval"),
        ("tool", "running"),
        ("tool", "done"),
        (("Said", 1), "Hello there"),
        (("Said", 3), "."),
        (("Thought", 0), "I think."),
        ("ended", "c", "complete"),
    ]


TWO_TURNS = [*turn_of_everything("a"), *turn_of_everything("c")]


def without_tools(found: list[Any]) -> list[Any]:
    """Of a tool only its last state is sure to be seen when steps are missed."""
    return [each for each in found if each[0] != "tool" or each[1] == "done"]


@given(st.sets(st.integers(0, len(TWO_TURNS) - 1)))
def test_whatever_states_are_missed_the_same_is_told(missed: set[int]) -> None:
    all_states = states(TWO_TURNS)
    every, some = Follower(EMPTY), Follower(EMPTY)
    expected = [e for state, envelope in all_states for e in every.look(state, envelope)]
    found: list[Happening] = []
    skipped = False
    for place, (state, envelope) in enumerate(all_states):
        if place in missed and place != len(all_states) - 1:
            skipped = True
            continue
        found += some.look(state, None if skipped else envelope)
        skipped = False
    assert without_tools(told(found)) == without_tools(told(expected))


def test_what_was_there_before_is_not_told() -> None:
    at = states(STORY)
    middle = 4
    follower = Follower(at[middle][0])
    found = [e for state, envelope in at[middle + 1 :] for e in follower.look(state, envelope)]
    assert isinstance(found[0], ToolMoved)
    whole = Follower(at[middle][0], whole_turn=True)
    assert isinstance(next(iter(whole.look(*at[middle]))), Began)


def test_questions_notices_and_what_nobody_knows() -> None:
    request = {"id": "q", "message": "Which?"}
    story = [
        started("a"),
        {"type": "chat/inputRequested", "request": request},
        {"type": "chat/inputCompleted", "requestId": "q", "response": "decline"},
        {
            "type": "chat/responsePart",
            "turnId": "a",
            "part": {"kind": "systemNotification", "content": {"markdown": "Note."}},
        },
        {"type": "chat/responsePart", "turnId": "a", "part": {"kind": "hologram"}},
    ]
    follower = Follower(EMPTY)
    found = [each for state, envelope in states(story) for each in follower.look(state, envelope)]
    assert isinstance(found[1], Questioned)
    assert found[2:] == [
        Noted("the questions were answered: decline"),
        Noted("Note."),
        Noted("something of a kind that is not known here: hologram"),
    ]


def test_what_a_call_does_costs_the_same_however_long_the_turn(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    looked: list[int] = []
    part = Follower._part

    def counted(self: Follower, place: int, *rest: Any) -> Any:
        looked.append(place)
        return part(self, place, *rest)

    monkeypatch.setattr(Follower, "_part", counted)
    story = [started("a")]
    for number in range(50):
        call = {"turnId": "a", "toolCallId": f"c{number}"}
        story += [
            {"type": "chat/toolCallStart", **call, "toolName": "t", "displayName": "T"},
            {
                "type": "chat/toolCallReady",
                **call,
                "invocationMessage": "T",
                "confirmed": "not-needed",
            },
        ]
    follower = Follower(EMPTY)
    found = [each for state, envelope in states(story) for each in follower.look(state, envelope)]
    assert len(found) == 101
    assert len(looked) == 100
