"""Questions to people: drafts of several, limits, all three outcomes, and nobody left waiting."""

from __future__ import annotations

from typing import Any

import pytest

from ahpd.agents import events as ev
from ahpd.agents.port import Answers
from ahpd.protocol.inputs import (
    ChatInputBooleanQuestion,
    ChatInputMultiSelectQuestion,
    ChatInputNumberQuestion,
    ChatInputOption,
    ChatInputRequest,
    ChatInputSingleSelectQuestion,
    ChatInputTextQuestion,
)
from ahpd.protocol.model import JSON, Unknown
from tests.actors.support import C, S, at_work, cancelled, room, settled, started
from tests.actors.talk import completed, draft, result_confirmed, stage, text, truncated

COLOURS = (ChatInputOption(id="red", label="Red"), ChatInputOption(id="blue", label="Blue"))
NAME = ChatInputTextQuestion(id="name", message="Name?", required=True, min=2, max=5)
QUESTIONS = (
    NAME,
    ChatInputTextQuestion(id="mail", message="Mail?", format="email"),
    ChatInputTextQuestion(id="site", message="Site?", format="uri"),
    ChatInputTextQuestion(id="day", message="Day?", format="date"),
    ChatInputTextQuestion(id="time", message="Time?", format="date-time"),
    ChatInputTextQuestion(id="odd", message="Odd?", format="roman-numeral"),
    ChatInputNumberQuestion(kind="number", id="size", message="Size?", min=1, max=2.5),
    ChatInputNumberQuestion(kind="integer", id="count", message="Count?"),
    ChatInputBooleanQuestion(id="sure", message="Sure?"),
    ChatInputSingleSelectQuestion(id="one", message="One?", options=COLOURS),
    ChatInputSingleSelectQuestion(
        id="any", message="Any?", options=COLOURS, allow_freeform_input=True
    ),
    ChatInputMultiSelectQuestion(id="many", message="Many?", options=COLOURS, min=1, max=1),
    ChatInputMultiSelectQuestion(
        id="free", message="Free?", options=COLOURS, max=3, allow_freeform_input=True
    ),
)
ASK = ev.QuestionsAsked(ChatInputRequest(id="q", message="First", questions=QUESTIONS))


def one(value: str, *free: str) -> JSON:
    return {"kind": "selected", "value": value, **({"freeformValues": list(free)} if free else {})}


def many(*values: str, free: tuple[str, ...] = ()) -> JSON:
    more: dict[str, JSON] = {"freeformValues": list(free)} if free else {}
    return {"kind": "selected-many", "value": list(values), **more}


def number(value: float) -> JSON:
    return {"kind": "number", "value": value}


async def test_questions_wait_in_the_turn_and_in_the_sessions_list() -> None:
    async with stage() as it:
        await it.says(ASK)
        (part,) = it.parts()
        assert part["kind"] == "inputRequest"
        assert "response" not in part
        (entry,) = it.state(S)["inputNeeded"]
        assert (entry["kind"], entry["chat"]) == ("chatInput", C)
        assert entry["request"] == part["request"]
        assert it.state()["status"] & 31 == 24
        await it.says(ASK)
        assert len(it.parts()) == 1, "asked again, not twice"


async def test_drafts_of_two_people_are_one_form_and_a_third_completes_it_from_the_list() -> None:
    async with stage() as it:
        bob = await room(it.host, "bob")
        eve = await room(it.host, "eve", subscribe=(S,))
        await it.says(ASK)
        assert await it.why(draft("q", "name", text("Ahp"), "submitted")) is None
        await bob.dispatch(C, draft("q", "size", number(2)))
        await settled()
        (entry,) = it.state(S)["inputNeeded"]
        assert set(entry["request"]["answers"]) == {"name", "size"}, (
            "enough to go on with (R-11.23)"
        )
        assert it.puppet.answers == []
        await eve.dispatch(entry["chat"], completed("q", sure={"kind": "boolean", "value": True}))
        await settled()
        (answer,) = it.puppet.answers
        assert isinstance(answer, Answers)
        assert (answer.request_id, answer.response) == ("q", "accept")
        given: Any = {key: value.wire() for key, value in answer.answers.items()}
        assert {key: value["state"] for key, value in given.items()} == {
            "name": "submitted", "size": "draft", "sure": "submitted",
        }  # fmt: skip
        (part,) = it.parts()
        assert part["response"] == "accept"
        assert part["request"]["answers"] == given, "kept in the transcript"
        assert "inputNeeded" not in it.state(S)
        assert it.state()["status"] & 31 == 8
        assert "no question q is open" in str(await it.why(completed("q")))


@pytest.mark.parametrize("response", ["decline", "cancel"])
async def test_to_decline_or_cancel_is_an_answer_and_asks_for_nothing(response: str) -> None:
    async with stage() as it:
        await it.says(ASK)
        assert await it.why(completed("q", response)) is None
        assert it.puppet.answers == [Answers("q", response)]  # type: ignore[arg-type]
        await it.says(ev.TextChunk("Then not."))
        assert [part["kind"] for part in it.parts()] == ["inputRequest", "markdown"]


async def test_an_answer_can_be_skipped_and_taken_back() -> None:
    async with stage() as it:
        await it.says(ASK)
        assert await it.why(draft("q", "mail", {"state": "skipped"})) is None
        assert await it.why(draft("q", "size", number(2))) is None
        assert await it.why(draft("q", "size", None)) is None
        assert it.parts()[0]["request"]["answers"] == {"mail": {"state": "skipped"}}
        assert "has to be answered and is not answered" in str(await it.why(completed("q")))
        assert await it.why(draft("q", "name", {"state": "skipped"})) is None
        assert "has to be answered and is skipped" in str(await it.why(completed("q")))
        assert await it.why(draft("q", "name", text("Ahp"))) is None
        assert "has to be answered" in str(await it.why(completed("q"))), "a draft is not submitted"
        assert await it.why(completed("q", name=text("Ahp"))) is None


REFUSED: list[tuple[str, JSON, str]] = [
    ("name", text("A"), "a length of at least 2"),
    ("name", text("A longer one"), "a length of at most 5"),
    ("name", number(3), "answered with a text, not a number"),
    ("mail", text("nobody"), "in the format email"),
    ("mail", text("a b@example.org"), "in the format email"),
    ("site", text("example.org"), "in the format uri"),
    ("site", text("http://[x"), "in the format uri"),
    ("day", text("2026-02-30"), "in the format date"),
    ("day", text("20260201"), "in the format date"),
    ("time", text("2026-02-03"), "in the format date-time"),
    ("size", number(0.5), "a number of at least 1"),
    ("size", number(3), "a number of at most 2.5"),
    ("size", text("3"), "answered with a number, not a text"),
    ("count", number(1.5), "whole numbers only"),
    ("sure", text("yes"), "answered with a boolean, not a text"),
    ("one", one("green"), "has no option green"),
    ("one", one("red", "or so"), "takes no text of its own"),
    ("one", many("red"), "answered with a selected, not a selected-many"),
    ("many", many(), "a number of choices of at least 1"),
    ("many", many("red", "blue"), "a number of choices of at most 1"),
    ("many", many("green"), "has no option green"),
    ("free", many("red", "blue", free=("a", "b")), "a number of choices of at most 3"),
    ("never", text("x"), "has no question never"),
]


@pytest.mark.parametrize(("question", "value", "reason"), REFUSED, ids=lambda v: str(v)[:30])
async def test_an_answer_outside_its_question_is_refused(
    question: str, value: JSON, reason: str
) -> None:
    async with stage() as it:
        await it.says(ASK)
        before = it.parts()
        assert reason in str(await it.why(draft("q", question, value, "submitted")))
        assert reason in str(await it.why(completed("q", **{"name": text("Ahp"), question: value})))
        assert it.parts() == before
        assert it.puppet.answers == []


TAKEN: list[tuple[str, JSON]] = [
    ("mail", text("a@example.org")),
    ("site", text("https://example.org/a")),
    ("day", text("2026-02-28")),
    ("time", text("2026-02-03T10:00:00Z")),
    ("odd", text("MMXXVI")),
    ("size", number(2.5)),
    ("count", number(2)),
    ("one", one("red")),
    ("any", one("green")),
    ("any", one("red", "a dark one")),
    ("many", many("blue")),
    ("free", many("red", free=("green",))),
]


@pytest.mark.parametrize(("question", "value"), TAKEN, ids=lambda v: str(v)[:30])
async def test_an_answer_within_its_question_is_taken(question: str, value: JSON) -> None:
    async with stage() as it:
        await it.says(ASK)
        assert await it.why(completed("q", **{"name": text("Ahp"), question: value})) is None
        (answer,) = it.puppet.answers
        assert isinstance(answer, Answers)
        assert answer.answers[question].wire()["value"] == value


async def test_a_draft_may_be_half_an_answer_until_the_request_is_accepted() -> None:
    async with stage() as it:
        await it.says(ASK)
        assert await it.why(draft("q", "mail", text("a@"))) is None
        assert await it.why(draft("q", "count", number(0.5))) is None
        assert "has no option" in str(await it.why(draft("q", "one", one("green"))))
        assert "format email" in str(await it.why(completed("q", name=text("Ahp"))))


async def test_a_question_of_a_kind_nobody_knows_takes_any_answer() -> None:
    raw = {"kind": "drawing", "id": "new", "message": "Draw it", "required": True}
    question = Unknown(raw=raw)
    async with stage() as it:
        await it.says(ev.QuestionsAsked(ChatInputRequest(id="q", questions=(question,))))
        it.host.taps.faults.clear()
        assert await it.why(draft("q", "new", text("O"))) is None
        assert await it.why(completed("q")) is None
        it.host.taps.faults.clear()


async def test_a_url_to_open_is_completed_without_questions() -> None:
    request = ChatInputRequest(id="q", message="Sign in", url="https://example.org/in")
    async with stage() as it:
        await it.says(ev.QuestionsAsked(request))
        assert it.state(S)["inputNeeded"][0]["request"]["url"] == "https://example.org/in"
        assert await it.why(completed("q")) is None
        assert it.puppet.answers == [Answers("q", "accept")]


async def test_two_requests_wait_side_by_side_and_an_id_may_be_used_again() -> None:
    async with stage() as it:
        await it.says(ASK, ev.QuestionsAsked(ChatInputRequest(id="r", message="Second")))
        assert len(it.state(S)["inputNeeded"]) == 2
        assert await it.why(completed("r")) is None
        assert it.state()["status"] & 31 == 24
        await it.says(ev.QuestionsAsked(ChatInputRequest(id="r", message="Again")))
        assert await it.why(completed("r", "decline")) is None
        assert it.puppet.answers == [Answers("r", "accept"), Answers("r", "decline")]
        assert [part.get("response") for part in it.parts()] == [None, "accept", "decline"]


ENDS = {
    "cancel": cancelled("t1"),
    "rewind": truncated(),
}


@pytest.mark.parametrize("action", ENDS.values(), ids=ENDS)
async def test_a_turn_that_ends_releases_what_waits_and_leaves_the_question_unanswered(
    action: Any,
) -> None:
    async with stage() as it:
        await it.says(ASK)
        assert await it.why(action) is None
        assert it.puppet.answers == [Answers("q", "cancel")]
        assert "inputNeeded" not in it.state(S)
        if action["type"] == "chat/truncated":
            assert it.state()["turns"] == []
        else:
            assert "response" not in it.parts()[0]
        assert "no question q is open" in str(await it.why(completed("q", "cancel")))
        await it.ann.dispatch(C, started("t2"))
        await at_work(it.agent, "t2")


async def test_an_agent_that_ends_its_turn_while_it_asks_is_released_too() -> None:
    async with stage() as it:
        await it.says(ASK)
        it.puppet.end(ev.Done())
        await settled()
        assert it.puppet.answers == [Answers("q", "cancel")]
        assert "inputNeeded" not in it.state(S)


async def test_an_answer_to_one_thing_is_none_to_another() -> None:
    async with stage() as it:
        await it.says(ASK)
        assert "no tool call q" in str(await it.why(result_confirmed("t1", "q", approved=True)))
        assert it.puppet.answers == []
