"""The scripted agent asks, delegates and works beside its turns: every step of that kind."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

import pytest
import trio
import trio.testing

from ahpd.agents import events as ev
from ahpd.agents.playing import ScriptedBackend
from ahpd.agents.plays import ScriptedCrash
from ahpd.agents.port import Answer, Answers, Authorized, ClientResult, Permission, Verdict
from ahpd.agents.script import parse_script
from ahpd.agents.scripted import ScriptedAgent
from ahpd.protocol.chat import BackgroundShellWork
from ahpd.protocol.common import ProtectedResourceMetadata
from ahpd.protocol.customizations import (
    McpServerReadyState,
    McpServerStoppedState,
    PluginCustomization,
    SessionEnablement,
)
from ahpd.protocol.inputs import (
    ChatInputAnswered,
    ChatInputRequest,
    ChatInputTextAnswerValue,
    ChatInputTextQuestion,
)
from ahpd.protocol.model import JSON
from ahpd.protocol.tools import (
    McpAuthRequirement,
    ToolCallResult,
    ToolCallRiskAssessmentCompleteState,
    ToolCallRiskAssessmentLoadingState,
)
from tests.agents.support import REQUEST, Running, Screen, backend, message, prompt

CALL = "t1-call-1"
NOON = datetime(2026, 9, 21, 12, tzinfo=UTC)


async def played(step: JSON, *answers: Answer) -> Sequence[ev.Event]:
    """What one step says when these are given as answers, whatever it says first."""
    turn = Running(backend(step))
    async with trio.open_nursery() as nursery:
        nursery.start_soon(turn.run, prompt())
        for answer in answers:
            await trio.testing.wait_all_tasks_blocked()
            assert turn.outcome is None, "it waits"
            turn.backend.answer(answer)
    assert turn.outcome == ev.Done()
    return turn.screen.events


async def test_a_notice_commands_and_customizations_are_told() -> None:
    assert await played({"notice": "a"}) == [ev.SystemNotice("a")]
    assert await played({"sessionMeta": {"a": [1]}}) == [ev.MetaChanged({"a": [1]})]
    commands = {
        "commands": [{"name": "fix", "argumentHint": "<f>"}, {"name": "b", "isSkill": True}]
    }
    assert await played(commands) == [
        ev.CommandsChanged((ev.Command("fix", argument_hint="<f>"), ev.Command("b", is_skill=True)))
    ]
    plugin: JSON = {"type": "plugin", "id": "p", "uri": "file:///p", "name": "P"}
    assert await played({"customizations": [plugin]}) == [
        ev.CustomizationsChanged((PluginCustomization(id="p", uri="file:///p", name="P"),))
    ]


async def test_usage_may_have_a_cost_and_a_context() -> None:
    step: JSON = {
        "usage": {"inputTokens": 1},
        "cost": {"amount": 0.5, "currency": "EUR"},
        "context": {"used": 1, "size": 2},
    }
    assert await played(step) == [
        ev.UsageReport(1, cost=ev.Cost(0.5, "EUR"), context=ev.Context(1, 2))
    ]


async def test_questions_wait_for_their_answers_which_are_said_back() -> None:
    step: JSON = {
        "ask": {
            "message": "Well?",
            "url": "https://x.example",
            "questions": [{"id": "q", "kind": "text", "message": "Which?"}],
        }
    }
    request = ChatInputRequest(
        id=CALL,
        message="Well?",
        url="https://x.example",
        questions=(ChatInputTextQuestion(id="q", message="Which?"),),
    )
    given = ChatInputAnswered(state="submitted", value=ChatInputTextAnswerValue(value="this"))
    events = await played(step, Answers("other", "accept"), Answers(CALL, "accept", {"q": given}))
    assert events[0] == ev.QuestionsAsked(request)
    assert isinstance(events[1], ev.TextChunk)
    assert "accept" in events[1].text
    assert '"value":"this"' in events[1].text
    events = await played(step, Answers(CALL, "decline"))
    assert events[1:] == [ev.TextChunk("(decline: {})")]


async def test_a_clients_tool_waits_for_its_result() -> None:
    result = ClientResult(CALL, ToolCallResult(success=True, past_tense_message="Opened it"))
    step: JSON = {"clientTool": {"name": "open", "input": {"a": 1}}}
    assert await played(step, result) == [
        ev.ClientToolCalled(CALL, "open", "open", '{"a":1}'),
        ev.TextChunk("(open: Opened it)"),
    ]
    assert (await played({"clientTool": {"name": "open"}}, result))[0] == (
        ev.ClientToolCalled(CALL, "open", "open")
    )


@pytest.mark.parametrize("yes", [True, False])
async def test_a_result_waits_for_approval(yes: bool) -> None:
    step: JSON = {"tool": {"name": "look", "output": "x", "resultConfirm": True}}
    events = await played(step, Verdict(CALL, approved=yes))
    finished = events[2]
    assert isinstance(finished, ev.ToolFinished)
    assert finished.asks_approval
    said = [] if yes else [ev.TextChunk("(the result of look was not used)")]
    assert events[3:] == said


@pytest.mark.parametrize("token", ["t", None])
async def test_a_tool_waits_for_a_token_and_does_not_run_without(token: str | None) -> None:
    auth: JSON = {"reason": "required", "resource": {"resource": "https://x.example/mcp"}}
    step: JSON = {"tool": {"name": "look", "server": "files", "authRequired": auth}}
    events = await played(step, Authorized(CALL, token))
    needs = McpAuthRequirement(
        reason="required", resource=ProtectedResourceMetadata(resource="https://x.example/mcp")
    )
    assert events[:3] == [
        ev.ToolStarted(CALL, "look", "look", server="files"),
        ev.ToolReady(CALL, "look"),
        ev.ToolNeedsAuth(CALL, "files", needs),
    ]
    assert len(events[3:]) == (0 if token is None else 1)


async def test_a_risk_is_judged_while_the_call_asks() -> None:
    risk: JSON = {"status": "complete", "kind": "judge", "reason": "r", "safety": 0.5}
    step: JSON = {"tool": {"name": "look", "confirm": True, "risk": risk}}
    events = await played(step, Permission(CALL, approved=True))
    assert events[2:4] == [
        ev.RiskJudged(CALL, ToolCallRiskAssessmentLoadingState(kind="judge")),
        ev.RiskJudged(
            CALL, ToolCallRiskAssessmentCompleteState(kind="judge", reason="r", safety=0.5)
        ),
    ]
    step = {"tool": {"name": "a", "confirm": True, "risk": {"status": "loading", "kind": "judge"}}}
    events = await played(step, Permission(CALL, approved=True))
    assert len([each for each in events if isinstance(each, ev.RiskJudged)]) == 1


# ---- workers ------------------------------------------------------------------------------------


def worker(*steps: JSON) -> JSON:
    return {"worker": {"title": "Look", "steps": list(steps)}}


async def test_a_worker_says_what_its_steps_say_and_its_call_ends_with_it() -> None:
    inner = f"{CALL}-call-2"
    step = worker({"echo": True}, {"tool": {"name": "look", "confirm": True}})
    events = await played(step, Permission(inner, approved=True))
    assert events == [
        ev.ToolStarted(CALL, "worker", "Look", kind="subagent"),
        ev.ToolReady(CALL, message="Look"),
        ev.WorkerStarted(CALL, CALL, "Look"),
        ev.WorkerSays(CALL, (ev.TextChunk("Look"),)),
        ev.WorkerSays(CALL, (ev.ToolStarted(inner, "look", "look"),)),
        ev.WorkerSays(CALL, (ev.ToolAsks(inner, "look", title="Allow look?"),)),
        ev.WorkerSays(CALL, (ev.ToolFinished(inner, success=True, message="look: done"),)),
        ev.WorkerEnded(CALL, ev.Done()),
        ev.ToolFinished(CALL, success=True, message="Look: done"),
    ]


async def test_a_worker_that_fails_ends_its_call_badly_and_the_script_goes_on() -> None:
    player, screen = backend(worker({"fail": "lost"}, {"text": "never"}), {"text": "on"}), Screen()
    assert await player.prompt(prompt(), screen) == ev.Done()
    assert screen.events[-3:] == [
        ev.WorkerEnded(CALL, ev.Failed("lost")),
        ev.ToolFinished(CALL, success=False, message="Look: failed", error="failed"),
        ev.TextChunk("on"),
    ]
    with pytest.raises(ScriptedCrash):
        await backend(worker({"crash": "x"})).prompt(prompt(), Screen())


async def test_workers_have_workers_with_ids_of_their_own_and_take_their_time() -> None:
    deep = worker({"sleepMs": 1000}, worker({"text": "a", "times": 2, "everyMs": 500}))
    player, screen = backend(deep), Screen()
    await player.prompt(prompt(), screen)
    assert trio.current_time() == pytest.approx(1.5)
    inner = f"{CALL}-call-2"
    said = [
        event
        for each in screen.events
        if isinstance(each, ev.WorkerSays) and each.worker == CALL
        for event in each.events
    ]
    a = ev.WorkerSays(inner, (ev.TextChunk("a"),))
    assert said[2:5] == [ev.WorkerStarted(inner, inner, "Look"), a, a]


# ---- beside turns -------------------------------------------------------------------------------


async def test_background_work_ends_when_its_time_has_come_whatever_becomes_of_the_turn() -> None:
    steps: JSON = [
        {"background": {"command": "make", "forMs": 60_000}},
        {"background": {"command": "watch", "label": "Watch"}},
    ]
    agent = ScriptedAgent("x", parse_script({"turns": [{"steps": steps}]}), now=lambda: NOON)
    player, screen, beside = await agent.open(REQUEST), Screen(), Screen()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(player.aside, beside)
        await player.prompt(prompt(), screen)
        first, second = (f"shell:t1-call-{n}" for n in (1, 2))
        at = "2026-09-21T12:00:00.000Z"
        assert screen.events == [
            ev.BackgroundSet(
                BackgroundShellWork(id=first, label="make", command="make", started_at=at)
            ),
            ev.BackgroundSet(
                BackgroundShellWork(id=second, label="Watch", command="watch", started_at=at)
            ),
        ]
        await trio.sleep(3600)
        nursery.cancel_scope.cancel()
    assert beside.events == [ev.BackgroundGone(first)]
    assert beside.times == [60]


async def test_what_was_put_off_before_anybody_listened_is_not_lost() -> None:
    player, beside = backend({"background": {"command": "make", "forMs": 10}}), Screen()
    await player.prompt(prompt(), Screen())
    await trio.sleep(5)
    with trio.move_on_after(1):
        await player.aside(beside)
    assert beside.events == [ev.BackgroundGone("shell:t1-call-1")]


async def test_servers_start_and_stop_and_one_that_is_turned_off_stops() -> None:
    player, beside = ScriptedBackend(parse_script({"turns": []})), Screen()
    player.control("s", "start")
    player.control("s", "background")
    player.control("s", "stop")
    player.switch("s", (SessionEnablement(enabled=True),))
    player.switch("s", ())
    player.switch("s", (SessionEnablement(enabled=False),))
    with trio.move_on_after(1):
        await player.aside(beside)
    ready, stopped = McpServerReadyState(), McpServerStoppedState()
    assert beside.events == [ev.ServerChanged("s", state) for state in (ready, stopped, stopped)]


async def test_a_turn_that_was_taken_away_is_not_gone_on_with() -> None:
    player, screen = (
        backend({"text": "a"}, {"fail": "x", "resumable": True}, {"text": "b"}),
        Screen(),
    )
    await player.prompt(prompt(), screen)
    await player.rewind("t1")
    await player.prompt(prompt(resume=True), screen)
    assert screen.text == "ab"
    await player.prompt(prompt(turn_id="t2"), screen)
    await player.rewind(None)
    await player.prompt(prompt(turn_id="t2", resume=True), screen)
    assert screen.text == "aba" + "b"


async def test_steering_is_said_while_a_question_waits() -> None:
    turn = Running(backend({"ask": {"message": "Well?"}}))
    async with trio.open_nursery() as nursery:
        nursery.start_soon(turn.run, prompt())
        await trio.testing.wait_all_tasks_blocked()
        assert turn.backend.steer(message("left"))
        await trio.testing.wait_all_tasks_blocked()
        assert "steered: left" in turn.screen.text
        turn.backend.cancel()
    assert turn.outcome == ev.Stopped()
