"""Actions of a turn: what agents say in it, and what people do about it."""

from __future__ import annotations

from ahpd.agents import events as ev
from ahpd.agents.port import AgentFailed, Answers, Authorized, ClientResult, Permission, Verdict
from ahpd.protocol.inputs import ChatInputRequest
from ahpd.protocol.tools import ToolResultTextContent
from tests.actors.served.sessions import ASKS
from tests.actors.served.show import RESOURCE, Outcome, S, Scenes, Show, settled, told
from tests.actors.support import approved, at_work, cancelled, started
from tests.actors.talk import completed as answered
from tests.actors.talk import draft, result_confirmed, resumed, text, truncated
from tests.actors.test_client_tools import called, completed, joined, progress
from tests.actors.test_questions import NAME
from tests.actors.test_tool_calls import NEEDS, RUNS

QUESTION = ev.QuestionsAsked(ChatInputRequest(id="q", message="First", questions=(NAME,)))
SEEN = (ToolResultTextContent(text="seen"),)


# ---- what agents say ----------------------------------------------------------------------------


async def a_whole_turn(it: Show) -> None:
    await it.work()
    await it.says(
        ev.ThoughtChunk("Hm"), ev.ThoughtChunk("m"), ev.TextChunk("Hel"), ev.TextChunk("lo"),
        ev.ToolStarted("c", "look", "Look"), ev.ToolInputChunk("c", "{}"),
        ev.ToolReady("c", "Looking", "{}"), ev.ToolOutput("c", SEEN),
        ev.ToolFinished("c", True, "Looked", SEEN), ev.UsageReport(3, 4),
        ev.ActivityChanged("Reading"),
    )  # fmt: skip
    thought, said, call = it.parts()
    assert (thought["content"], said["content"]) == ("Hmm", "Hello")
    assert (call["toolCall"]["status"], call["toolCall"]["success"]) == ("completed", True)
    assert it.state()["activeTurn"]["usage"] == {"inputTokens": 3, "outputTokens": 4}
    it.puppet.end(ev.Done())
    await settled()
    assert it.state()["turns"][-1]["state"] == "complete"


async def a_failed_turn(it: Show) -> None:
    await it.work()
    it.puppet.end(ev.Failed("overloaded"))
    await settled()
    assert it.state()["turns"][-1]["state"] == "error"


async def a_token_is_needed(it: Show) -> None:
    await it.work()
    await it.says(*RUNS)
    await it.can(ev.ToolNeedsAuth("c", "files", NEEDS))
    if it.is_able:
        assert it.call()["status"] == "auth-required"
        await it.ann.request("authenticate", resource=RESOURCE, token="t0ken")
        await settled()
        assert Authorized("c", "t0ken") in it.puppet.answers
    assert it.call()["status"] == "running"


async def questions(it: Show) -> None:
    await it.work()
    await it.can(QUESTION)


# ---- what people do ------------------------------------------------------------------------------


async def starts(it: Show) -> Outcome:
    reason = await it.why(started("t1"))
    if reason is None:
        assert it.state()["activeTurn"]["id"] == "t1"
        await at_work(it.agent, "t1")
    return reason


async def cancels(it: Show) -> Outcome:
    await it.work()
    reason = await it.why(cancelled("t1"))
    assert reason is not None or it.state()["turns"][-1]["state"] == "cancelled"
    return reason


async def goes_on(it: Show) -> Outcome:
    await it.work()
    it.puppet.crash(AgentFailed("the process ended", resumable=True))
    await settled()
    reason = await it.why(resumed("t1"))
    if reason is None:
        again = await at_work(it.agent, "t1")
        assert again.prompts[-1].resume is True
        assert it.state()["activeTurn"]["id"] == "t1"
    return reason


async def goes_back(it: Show) -> Outcome:
    await it.done("t1")
    await it.done("t2")
    reason = await it.why(truncated("t1"))
    assert reason is not None or [each["id"] for each in it.state()["turns"]] == ["t1"]
    return reason


async def allows(it: Show) -> Outcome:
    await it.work()
    await it.says(*ASKS)
    reason = await it.why(approved("t1", "c"), who=it.bob)
    if reason is None:
        assert it.call()["status"] == "running"
        assert it.puppet.permissions == [Permission("c", approved=True)]
    return reason


async def approves(it: Show) -> Outcome:
    await it.work()
    await it.says(*RUNS, ev.ToolFinished("c", True, "Looked", SEEN, asks_approval=it.is_able))
    reason = await it.why(result_confirmed("t1", "c", approved=True))
    if reason is None:
        assert it.call()["status"] == "completed"
        assert it.puppet.answers == [Verdict("c", approved=True)]
    return reason


async def _bobs_tool(it: Show) -> None:
    assert await it.why(joined("bob", "open"), S, it.bob) is None
    await it.work()
    await it.says(called("bob__open"))


async def runs(it: Show) -> Outcome:
    await _bobs_tool(it)
    reason = await it.why(completed("t1", "c1"), who=it.bob)
    if reason is None:
        assert it.call()["status"] == "completed"
        (result,) = it.puppet.answers
        assert isinstance(result, ClientResult)
        assert result.result.success
    return reason


async def reports(it: Show) -> Outcome:
    await _bobs_tool(it)
    reason = await it.why(progress("t1", "c1", "half"), who=it.bob)
    assert reason is not None or it.call()["content"] == [{"type": "text", "text": "half"}]
    return reason


async def drafts_an_answer(it: Show) -> Outcome:
    await questions(it)
    reason = await it.why(draft("q", "name", text("Ahp")))
    if reason is None:
        assert it.parts()[0]["request"]["answers"]["name"]["value"] == text("Ahp")
    return reason


async def answers(it: Show) -> Outcome:
    await questions(it)
    reason = await it.why(answered("q", name=text("Ahp")), who=it.bob)
    if reason is None:
        (given,) = it.puppet.answers
        assert isinstance(given, Answers)
        assert given.response == it.parts()[0]["response"] == "accept"
    return reason


SCENES: Scenes = {
    **told(
        a_whole_turn,
        "chat/activityChanged",
        "chat/delta",
        "chat/reasoning",
        "chat/responsePart",
        "chat/toolCallDelta",
        "chat/toolCallReady",
        "chat/toolCallStart",
        "chat/turnComplete",
        "chat/usage",
    ),
    **told(a_failed_turn, "chat/error"),
    **told(a_token_is_needed, "chat/toolCallAuthRequired", "chat/toolCallAuthResolved"),
    **told(questions, "chat/inputRequested"),
    "chat/turnStarted": starts,
    "chat/turnCancelled": cancels,
    "chat/turnResume": goes_on,
    "chat/truncated": goes_back,
    "chat/toolCallConfirmed": allows,
    "chat/toolCallResultConfirmed": approves,
    "chat/toolCallComplete": runs,
    "chat/toolCallContentChanged": reports,
    "chat/inputAnswerChanged": drafts_an_answer,
    "chat/inputCompleted": answers,
}
