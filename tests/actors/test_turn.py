"""From what an agent says to actions: pure, looking at the running turn as it is."""

from __future__ import annotations

import pytest

from actors.turn import actions_for, ending
from ahpd.agents import events as ev
from ahpd.protocol.actions import action_type
from ahpd.protocol.chat import ActiveTurn, MarkdownResponsePart, ResponseParts
from ahpd.protocol.messages import Message, MessageOrigin

TURN = ActiveTurn(
    id="t1",
    started_at="2026-09-21T14:13:20.000Z",
    message=Message(text="x", origin=MessageOrigin(kind="user")),
    response_parts=ResponseParts([MarkdownResponsePart(id="t1/0", content="a")]),
)

SAYS: list[tuple[ev.Event, list[str]]] = [
    (ev.TextChunk("b"), ["chat/delta"]),
    (ev.ThoughtChunk("b"), ["chat/responsePart"]),
    (ev.ToolStarted("c", "n", "N"), ["chat/toolCallStart"]),
    (ev.ToolInputChunk("unknown", "{"), []),
    (ev.ToolReady("c", "m"), ["chat/toolCallReady"]),
    (ev.ToolAsks("c", "m"), ["chat/toolCallReady"]),
    (ev.ToolFinished("unknown", success=True, message="m"), []),
    (ev.UsageReport(1), ["chat/usage"]),
    (ev.TitleProposed("x"), []),
    (ev.ActivityChanged(None), ["chat/activityChanged"]),
]


@pytest.mark.parametrize(("event", "types"), SAYS)
def test_what_an_event_means_to_a_running_turn(event: ev.Event, types: list[str]) -> None:
    assert [action_type(action) for action in actions_for(TURN, event)] == types


def test_quirk_38_what_is_not_asked_says_so_and_what_is_asked_does_not() -> None:
    [ready] = actions_for(TURN, ev.ToolReady("c", "m", "{}"))
    assert ready.wire().items() >= {"confirmed": "not-needed", "toolInput": "{}"}.items()
    [asks] = actions_for(TURN, ev.ToolAsks("c", "m", editable=True))
    assert "confirmed" not in asks.wire()
    assert asks.wire()["editable"] is True


@pytest.mark.parametrize(
    ("outcome", "type", "resumable"),
    [
        (ev.Done(), "chat/turnComplete", None),
        (ev.Stopped(), "chat/turnCancelled", None),
        (ev.Failed("no"), "chat/error", None),
        (ev.Failed("no", resumable=True), "chat/error", True),
    ],
)
def test_quirk_35_every_ending_has_its_turn_and_a_duration(
    outcome: ev.Outcome, type: str, resumable: bool | None
) -> None:
    said = ending("t1", 12.5, outcome).wire()
    assert (said["type"], said["turnId"], said["duration"]) == (type, "t1", 12.5)
    assert said.get("part", {}).get("resumable") is resumable
