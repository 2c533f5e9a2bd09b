"""Whatever an agent sends, in whatever shapes, its turn ends and it is answered."""

from __future__ import annotations

from typing import Any

import trio
from hypothesis import given, settings
from hypothesis import strategies as st

from ahpd.agents import events as ev
from ahpd.agents.acp.mapping import _BESIDE, _IN_TURNS
from ahpd.agents.events import Done
from ahpd.agents.port import Answers, Permission
from tests.agents.acp.memory import answering, frame, talk

_SESSIONS: st.SearchStrategy[Any] = st.sampled_from(["s1", "child", "other", None, 7, {}])
_IDS = st.sampled_from(["a", "b", "pending", 7, None])
_TEXT = st.sampled_from(["", "text", "\ud83d", "x\u2028y"])
_LEAF = st.none() | st.booleans() | st.integers(-2, 3) | st.floats(allow_nan=False) | _TEXT
_ANY = st.recursive(
    _LEAF,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(_TEXT, inner, max_size=2),
    max_leaves=5,
)
_STATUS = st.sampled_from(["pending", "in_progress", "completed", "failed", "new", 7, None])
_BLOCK = st.fixed_dictionaries(
    {"type": st.sampled_from(["text", "image", "resource", "resource_link", "audio", "x", 1])},
    optional={"text": _TEXT, "uri": _TEXT, "data": _TEXT, "resource": _ANY, "name": _ANY},
)
_CONTENT = st.fixed_dictionaries(
    {"type": st.sampled_from(["content", "diff", "terminal", "x", None])},
    optional={
        "content": _BLOCK | _ANY,
        "path": _TEXT,
        "oldText": _TEXT | _ANY,
        "newText": _TEXT | _ANY,
        "terminalId": _ANY,
    },
)
_CALL: dict[str, st.SearchStrategy[Any]] = {
    "title": _TEXT | _ANY,
    "kind": _ANY,
    "status": _STATUS,
    "content": st.lists(_CONTENT | _ANY, max_size=2) | _ANY,
    "rawInput": _ANY,
    "rawOutput": _ANY,
}
_UPDATE = st.fixed_dictionaries(
    {"sessionUpdate": st.sampled_from([*_IN_TURNS, *_BESIDE, "subagent_update", "x", 7])},
    optional={
        **_CALL,
        "toolCallId": _IDS,
        "messageId": _IDS,
        "sessionId": _SESSIONS,
        "content": _BLOCK | st.lists(_CONTENT | _ANY, max_size=2) | _ANY,
        "entries": _ANY,
        "plan": _ANY,
        "planId": _ANY,
        "state": st.fixed_dictionaries(
            {"state": st.sampled_from(["running", "idle", "requires_action", "x"])},
            optional={"error": _ANY, "stopReason": _ANY},
        )
        | _ANY,
        "compactionId": _ANY,
        "summary": _ANY,
        "availableCommands": _ANY,
        "configOptions": _ANY,
        "currentModeId": _ANY,
        "cost": _ANY,
        "used": _ANY,
    },
)
_OPTION = st.fixed_dictionaries(
    {}, optional={"optionId": _ANY, "name": _ANY, "kind": st.sampled_from(["allow_once", "x", 1])}
)
_PROPERTY = st.fixed_dictionaries(
    {"type": st.sampled_from(["string", "array", "boolean", "integer", "x", 1])},
    optional={"enum": _ANY, "oneOf": _ANY, "items": _ANY, "default": _ANY, "minLength": _ANY},
)
_PARAMS = st.fixed_dictionaries(
    {"sessionId": _SESSIONS},
    optional={
        "toolCall": st.fixed_dictionaries({}, optional={**_CALL, "toolCallId": _IDS}) | _ANY,
        "options": st.lists(_OPTION | _ANY, max_size=3) | _ANY,
        "mode": st.sampled_from(["form", "url", "x", None]),
        "url": _TEXT | _ANY,
        "message": _ANY,
        "requestedSchema": st.fixed_dictionaries(
            {}, optional={"properties": st.dictionaries(_TEXT, _PROPERTY | _ANY, max_size=3),
                          "required": _ANY}
        ) | _ANY,
        "requestId": _ANY,
        "elicitationId": _ANY,
        "terminalId": _ANY,
        "path": _ANY,
    },
)  # fmt: skip
_METHOD = st.sampled_from(
    ["session/request_permission", "elicitation/create", "terminal/output", "fs/read_text_file"]
)
_SAID = st.lists(
    st.tuples(st.just("update"), _SESSIONS, _UPDATE)
    | st.tuples(st.just("ask"), _METHOD, _PARAMS)
    | st.tuples(
        st.just("tell"), st.sampled_from(["$/cancel_request", "elicitation/complete"]), _PARAMS
    ),
    max_size=8,
)


def _frame(number: int, said: Any) -> bytes:
    kind, one, other = said
    if kind == "update":
        return frame(method="session/update", params={"sessionId": one, "update": other})
    if kind == "ask":
        return frame(id=f"q{number}", method=one, params=other)
    return frame(method=one, params=other)


@settings(deadline=None)
@given(_SAID)
def test_a_turn_ends_whatever_is_said_in_it(said: Any) -> None:
    frames = [_frame(number, each) for number, each in enumerate(said)]
    asked = {f"q{number}" for number, each in enumerate(said) if each[0] == "ask"}

    async def main() -> None:
        async with talk(answering(*frames)) as it:

            def then(event: ev.Event) -> None:
                if isinstance(event, ev.ToolAsks):
                    it.backend.answer(Permission(event.call_id, approved=True))
                elif isinstance(event, ev.QuestionsAsked):
                    it.backend.answer(Answers(event.request.id, "accept"))

            outcome, _ = await it.turn(then=then)
            assert outcome == Done()
            it.process.say(*frames)  # and between turns
            await trio.testing.wait_all_tasks_blocked()
            assert (await it.turn())[0] == Done()
            answered = [each["id"] for each in it.answers()]
            assert set(answered) == asked
            assert it.gone == []

    trio.run(main, clock=trio.testing.MockClock(autojump_threshold=0))
