"""What agents ask people besides permission, and what their sub-agents do."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ahpd.agents import events as ev
from ahpd.agents.events import Done
from ahpd.agents.port import Answers, Permission
from ahpd.protocol.inputs import (
    ChatInputAnswered,
    ChatInputNumberAnswerValue,
    ChatInputSelectedAnswerValue,
    ChatInputSelectedManyAnswerValue,
    ChatInputSkipped,
    ChatInputTextAnswerValue,
)
from tests.actors.support import C, S, started
from tests.agents.acp.support import PATIENCE, AtWork, at_work, rogue
from tests.agents.acp.test_on_a_host import calls, session, state, texts, turn, until

pytestmark = pytest.mark.real_time


def answering(at: AtWork, response: Any, **answers: Any) -> Any:
    def then(event: ev.Event) -> None:
        if isinstance(event, ev.QuestionsAsked):
            at.backend.answer(Answers(event.request.id, response, answers))

    return then


def given(value: Any) -> ChatInputAnswered:
    return ChatInputAnswered(state="submitted", value=value)


async def test_a_form_is_questions_and_its_answers_are_of_the_right_kinds(tmp_path: Path) -> None:
    async with at_work(rogue(tmp_path), tmp_path) as at:
        then = answering(
            at,
            "accept",
            name=given(ChatInputTextAnswerValue(value="Ann")),
            n=given(ChatInputNumberAnswerValue(value=3.0)),
            sure=given(ChatInputTextAnswerValue(value="not a boolean")),
            size=given(ChatInputSelectedAnswerValue(value="s")),
            tags=given(ChatInputSelectedManyAnswerValue(value=("a",))),
            odd=ChatInputSkipped(),
            unasked=given(ChatInputTextAnswerValue(value="x")),
        )
        outcome, screen = await at.turn("form", then)
        assert outcome == Done()
        content = {"name": "Ann", "n": 3, "size": "s", "tags": ["a"]}
        assert json.loads(screen.text) == {"action": "accept", "content": content}
        (asked,) = screen.only(ev.QuestionsAsked)
        assert isinstance(asked, ev.QuestionsAsked)
        assert asked.request.message == "Who?"
        wire = [each.wire() for each in asked.request.questions or ()]
        assert [(each["id"], each["kind"]) for each in wire] == [
            ("name", "text"),
            ("n", "integer"),
            ("sure", "boolean"),
            ("size", "single-select"),
            ("tags", "multi-select"),
            ("odd", "text"),
        ]
        assert wire[0] == {
            "id": "name",
            "kind": "text",
            "title": "Name",
            "message": "Name",
            "required": True,
            "min": 1,
        }
        assert wire[3]["options"] == [
            {"id": "s", "label": "s"},
            {"id": "m", "label": "m", "recommended": True},
        ]


@pytest.mark.parametrize("response", ["decline", "cancel"])
async def test_no_is_an_answer_too(response: str, tmp_path: Path) -> None:
    async with at_work(rogue(tmp_path), tmp_path) as at:
        _, screen = await at.turn("form", answering(at, response))
        assert json.loads(screen.text) == {"action": response}


async def test_questions_that_end_without_anybody(tmp_path: Path) -> None:
    async with at_work(rogue(tmp_path), tmp_path) as at:
        _, screen = await at.turn("url form-back mode-x")
        said = [json.loads(each) for each in screen.text.replace("}{", "}\n{").splitlines()]
        assert [each["action"] for each in said] == ["accept", "cancel", "cancel"]
        assert screen.only(ev.QuestionsOver) == [
            ev.QuestionsOver("question-1", "accept"),
            ev.QuestionsOver("question-2", "cancel"),
        ]
        (first, _) = screen.only(ev.QuestionsAsked)
        assert isinstance(first, ev.QuestionsAsked)
        assert first.request.url == "https://example.org/x"


async def test_questions_on_a_host(tmp_path: Path) -> None:
    async with session(rogue(tmp_path, name="puppet"), tmp_path) as (host, ann):
        await ann.dispatch(C, started("t1", "url form"))
        request = (await ann.expect_action("chat/inputRequested", PATIENCE))["action"]["request"]
        assert request["url"] == "https://example.org/x"
        over = (await ann.expect_action("chat/inputCompleted", PATIENCE))["action"]
        assert (over["requestId"], over["response"]) == (request["id"], "accept")
        await ann.expect_action("chat/inputRequested", PATIENCE)
        answers = {"name": {"state": "submitted", "value": {"kind": "text", "value": "Ann"}}}
        await ann.dispatch(
            C,
            {
                "type": "chat/inputCompleted",
                "requestId": "question-2",
                "response": "accept",
                "answers": answers,
            },
        )
        await until(lambda: state(host).get("activeTurn") is None)
        assert texts(state(host)["turns"][-1]).endswith('"content": {"name": "Ann"}}')
        assert "inputNeeded" not in state(host, S)


async def test_a_sub_agent_is_a_worker_with_questions_of_its_own(tmp_path: Path) -> None:
    async with at_work(rogue(tmp_path), tmp_path) as at:

        def then(event: ev.Event) -> None:
            for each in event.events if isinstance(event, ev.WorkerSays) else ():
                if isinstance(each, ev.ToolAsks):
                    at.backend.answer(Permission(each.call_id, approved=True))

        outcome, screen = await at.turn("sub hello", then)
        assert outcome == Done()
        assert screen.text == "Hello\u2028you\u0085."
        child, first, second = "rogue-1-sub", "subagent rogue-1-sub", "subagent rogue-1-sub #2"
        started_ = [each for each in screen.events if isinstance(each, ev.WorkerStarted)]
        assert started_ == [
            ev.WorkerStarted(child, first, "Look", "around"),
            ev.WorkerStarted(child, second, "Look", "around"),
        ]
        assert screen.only(ev.WorkerEnded) == [
            ev.WorkerEnded(child, Done()),
            ev.WorkerEnded(child, ev.Failed("lost")),
        ]
        said = [each for it in screen.events if isinstance(it, ev.WorkerSays) for each in it.events]
        assert "".join(each.text for each in said if isinstance(each, ev.TextChunk)) == (
            "Looked. Chose yes."
        )
        assert {each.call_id for each in said if isinstance(each, ev.ToolFinished)} == {
            "rogue-1-sub/c1"
        }
        finished = [each for each in screen.events if isinstance(each, ev.ToolFinished)]
        assert [(each.call_id, each.success) for each in finished] == [
            (first, True),
            (second, False),
        ]


async def test_sub_agents_on_a_host(tmp_path: Path) -> None:
    async with session(rogue(tmp_path, name="puppet"), tmp_path) as (host, ann):
        done = await turn(ann, host, "t1", "sub-on")
        (call,) = calls(done)
        assert (call["status"], call["success"]) == ("completed", True)
        (work,) = state(host)["backgroundWork"]
        assert (work["id"], work["label"]) == ("subagent:rogue-1-sub", "Look")
        chat = work["chat"]
        assert call["content"][0] == {"type": "subagent", "resource": chat, "title": "Look"}
        await until(lambda: "backgroundWork" not in state(host))
        await until(lambda: state(host, chat).get("activeTurn") is None)
        assert texts(state(host, chat)["turns"][-1]) == "Begun. Done."
        done = await turn(ann, host, "t2", "child")
        (call,) = calls(done)
        assert call["displayName"] == "Look"


async def test_one_that_was_never_told_of_is_shown_and_ends_with_its_turn(tmp_path: Path) -> None:
    async with session(rogue(tmp_path, name="puppet"), tmp_path) as (host, ann):
        (call,) = calls(await turn(ann, host, "t1", "child"))
        assert call["displayName"] == "Sub-agent"
        chat = call["content"][0]["resource"]
        assert texts(state(host, chat)["activeTurn"]) == "Unheard of."


async def test_plans_and_notices(tmp_path: Path) -> None:
    async with at_work(rogue(tmp_path), tmp_path) as at:
        _, screen = await at.turn("plans compacts later")
        metas = [each.meta for each in screen.events if isinstance(each, ev.MetaChanged)]
        assert metas[-1] == {
            "ahpd.plan": [{"content": "Look", "status": "in_progress"}],
            "ahpd.plans": {"2": {"type": "markdown", "planId": "2", "content": "# Plan"}},
        }
        notices = [each.content for each in screen.events if isinstance(each, ev.SystemNotice)]
        assert notices == [
            "The conversation was made shorter: Shorter.",
            "The conversation could not be made shorter: no",
            "Careful: hot",
        ]
        await until(lambda: at.backend._between == "later")
        await until(lambda: bool(at.backend._notices))
        _, screen = await at.turn("hello")
        notices = [each.content for each in screen.events if isinstance(each, ev.SystemNotice)]
        assert notices == ["Late", "Said between turns: later"]
