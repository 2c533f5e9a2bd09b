"""Rules for answers to an agent's questions (RULES 11); the other rules of chats in `test_chat`."""

from __future__ import annotations

from typing import Any

import pytest

from actors.ledger import Channel
from actors.rules.chat import RULES, Case, judge
from ahpd.protocol.actions import ACTIONS, StateAction
from ahpd.protocol.chat import ChatState
from ahpd.protocol.codec import decode
from ahpd.protocol.session_actions import SessionConfigChangedAction, SessionTitleChangedAction
from tests.actors.support import C, readable

QUESTIONS = [
    {"id": "text", "kind": "text", "message": "?", "required": True},
    {"id": "number", "kind": "number", "message": "?"},
    {"id": "integer", "kind": "integer", "message": "?"},
    {"id": "boolean", "kind": "boolean", "message": "?"},
    {"id": "one", "kind": "single-select", "message": "?", "options": [{"id": "a", "label": "A"}]},
    {"id": "many", "kind": "multi-select", "message": "?", "options": [{"id": "a", "label": "A"}]},
]

CHAT: ChatState = decode(
    ChatState,
    {
        "resource": C,
        "title": "",
        "status": 24,
        "modifiedAt": "2026-09-21T14:13:20.000Z",
        "turns": [],
        "activeTurn": {
            "id": "t1",
            "startedAt": "2026-09-21T14:13:20.000Z",
            "message": {"text": "x", "origin": {"kind": "user"}},
            "responseParts": [
                {"kind": "inputRequest", "request": {"id": "r1", "questions": QUESTIONS}},
                {"kind": "inputRequest", "request": {"id": "old"}, "response": "accept"},
            ],
        },
    },
)
CASE = Case(Channel(C, "chat", CHAT, "x", None, 0, b""), CHAT, None, "ann", lambda _: None)


def why(action: dict[str, Any]) -> str | None:
    reason = judge(CASE, decode(StateAction, action))
    assert reason is None or readable(reason), reason
    return reason


def answered(kind: str, value: Any, state: str = "submitted") -> dict[str, Any]:
    return {"state": state, "value": {"kind": kind, "value": value}}


TEXT = answered("text", "a")
VALUES = {
    "text": TEXT,
    "number": answered("number", 2),
    "boolean": answered("boolean", True),
    "selected": answered("selected", "a"),
    "selected-many": answered("selected-many", ["a"]),
}
FITS = {
    "text": "text",
    "number": "number",
    "integer": "number",
    "boolean": "boolean",
    "one": "selected",
    "many": "selected-many",
}


@pytest.mark.parametrize("question", FITS)
@pytest.mark.parametrize("kind", VALUES)
def test_r_11_6_an_answer_is_of_the_questions_kind(question: str, kind: str) -> None:
    action = {
        "type": "chat/inputAnswerChanged",
        "requestId": "r1",
        "questionId": question,
        "answer": VALUES[kind],
    }
    reason = why(action)
    assert (reason is None) == (FITS[question] == kind)
    completed = {
        "type": "chat/inputCompleted",
        "requestId": "r1",
        "response": "decline",
        "answers": {question: VALUES[kind]},
    }
    assert (why(completed) is None) == (FITS[question] == kind)


DONE: list[tuple[dict[str, Any], str | None]] = [
    ({"response": "accept"}, "has to be answered"),
    ({"response": "accept", "answers": {"text": answered("text", "a", "draft")}}, "not answered"),
    ({"response": "accept", "answers": {"text": {"state": "skipped"}}}, "skipped"),
    ({"response": "accept", "answers": {"text": TEXT}}, None),
    ({"response": "accept", "answers": {"text": TEXT, "zzz": TEXT}}, "no question"),
    ({"response": "decline"}, None),
    ({"response": "cancel"}, None),
    ({"response": "accept", "requestId": "old"}, "is open"),
    ({"response": "cancel", "requestId": "zzz"}, "is open"),
]


@pytest.mark.parametrize(("action", "word"), DONE)
def test_r_11_9_a_request_is_accepted_with_what_is_required(
    action: dict[str, Any], word: str | None
) -> None:
    reason = why({"type": "chat/inputCompleted", "requestId": "r1", **action})
    assert (reason is None) == (word is None), reason
    assert word is None or word in str(reason)


def test_an_answer_may_be_taken_back() -> None:
    action = {"type": "chat/inputAnswerChanged", "requestId": "r1", "questionId": "text"}
    assert why(action) is None
    assert "no question" in str(why({**action, "questionId": "zzz"}))


def test_there_is_a_rule_for_every_action_that_clients_may_send_to_a_chat() -> None:
    wanted = {
        cls
        for info in ACTIONS.values()
        if info.channel == "chat" and info.client_may_dispatch
        for cls in info.classes
    }
    assert set(RULES) == wanted | {SessionTitleChangedAction, SessionConfigChangedAction}
