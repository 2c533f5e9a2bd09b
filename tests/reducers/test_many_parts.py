"""What an action on one tool call costs does not hang on how many there are."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from ahpd.protocol import StateAction, decode
from ahpd.protocol.chat import ChatState, ResponseParts
from ahpd.reducers import apply, status


class Looked:
    """Counts how often parts are looked at."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.times = 0
        for name in ("key", "counts"):
            patch.setattr(ResponseParts, name, staticmethod(self._counted(name)))

    def _counted(self, name: str) -> Callable[[object], Any]:
        original: Callable[[object], Any] = getattr(ResponseParts, name)

        def looked(part: object) -> Any:
            self.times += 1
            return original(part)

        return looked


def _calls(number: int) -> dict[str, Any]:
    running = {"toolName": "x", "displayName": "x", "status": "running", "confirmed": "setting"}
    parts = [
        {
            "kind": "toolCall",
            "toolCall": {"toolCallId": f"c{each}", "invocationMessage": "m", **running},
        }
        for each in range(number)
    ]
    return {
        "resource": "ahp-chat:/orchard/pears",
        "title": "Pears",
        "status": 8,
        "modifiedAt": "2031-03-01T00:00:00.000Z",
        "turns": [],
        "activeTurn": {
            "id": "t7",
            "startedAt": "2031-03-04T05:00:00.000Z",
            "message": {"text": "hello", "origin": {"kind": "user"}},
            "responseParts": parts,
        },
    }


def test_an_action_on_a_call_looks_at_that_call_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    chat = decode(ChatState, _calls(2000))
    looked = Looked(monkeypatch)
    for number in range(0, 2000, 100):
        done = {"toolCallId": f"c{number}", "turnId": "t7"}
        result = {"success": True, "pastTenseMessage": "ok"}
        for action in (
            {"type": "chat/toolCallReady", **done, "invocationMessage": "may I?"},
            {"type": "chat/toolCallConfirmed", **done, "approved": True, "confirmed": "setting"},
            {"type": "chat/toolCallComplete", **done, "result": result},
        ):
            chat = apply("chat", chat, decode(StateAction, action))
            if not number:  # whose first actions find out what there is
                looked.times = 0
    assert looked.times < 20 * 3 * 10
    assert chat.status & status.ACTIVITY == status.IN_PROGRESS


def test_a_turn_with_many_open_calls_ends_in_one_go() -> None:
    chat = decode(ChatState, _calls(500))
    copies = 0
    parts = chat.active_turn.response_parts if chat.active_turn is not None else None
    ends = {"type": "chat/turnCancelled", "turnId": "t7", "duration": 1}
    with pytest.MonkeyPatch.context() as patch:
        make = ResponseParts._make

        def counted(*values: Any) -> Any:
            nonlocal copies
            copies += 1
            return make(*values)

        patch.setattr(ResponseParts, "_make", staticmethod(counted))
        ended = apply("chat", chat, decode(StateAction, ends))
    assert copies == 1
    assert _states(ended.turns[-1].response_parts) == {"cancelled"}
    assert parts is not None
    assert _states(parts) == {"running"}  # as it was


def _states(parts: ResponseParts) -> set[str]:
    return {part.wire()["toolCall"]["status"] for part in parts}
