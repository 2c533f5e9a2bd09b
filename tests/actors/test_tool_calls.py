"""What an agent says about its tool calls beyond start and end: risk, approval, tokens, usage."""

from __future__ import annotations

import math
from typing import Any

import pytest
import trio

from actors.host import Settings
from actors.messages import Authorize
from ahpd.agents import events as ev
from ahpd.agents.port import Authorized, ClientResult, Permission, Verdict
from ahpd.protocol.common import ProtectedResourceMetadata
from ahpd.protocol.inputs import ChatInputRequest
from ahpd.protocol.tools import (
    McpAuthRequirement,
    ToolCallRiskAssessmentCompleteState,
    ToolCallRiskAssessmentLoadingState,
    ToolResultTextContent,
)
from tests.actors.support import (
    C,
    S,
    actions,
    approved,
    at_work,
    cancelled,
    denied,
    message,
    room,
    settled,
    started,
)
from tests.actors.talk import Stage, given_up, result_confirmed, stage

NEEDS = McpAuthRequirement(
    reason="required", resource=ProtectedResourceMetadata(resource="https://files.example/mcp")
)
RUNS = (ev.ToolStarted("c", "look", "Look"), ev.ToolReady("c", "Looking", "{}"))
ASKS = (ev.ToolStarted("c", "look", "Look"), ev.ToolAsks("c", "Look?", "{}", editable=True))
SEEN = (ToolResultTextContent(text="seen"),)


async def test_a_notice_of_the_harness_is_a_part_that_stands_for_itself() -> None:
    async with stage() as it:
        await it.says(ev.TextChunk("a"), ev.SystemNotice("Compacted 3 turns"), ev.TextChunk("b"))
        assert [part["kind"] for part in it.parts()] == [
            "markdown", "systemNotification", "markdown",
        ]  # fmt: skip
        assert it.parts()[1]["content"] == "Compacted 3 turns"


async def test_usage_has_cost_and_context_in_its_meta() -> None:
    async with stage() as it:
        report = ev.UsageReport(
            1, 2, extra={"x": 1}, cost=ev.Cost(0.5, "EUR"), context=ev.Context(10, math.nan)
        )
        await it.says(report)
        usage = it.state()["activeTurn"]["usage"]
        assert usage["_meta"] == {
            "x": 1,
            "ahpd.cost": {"amount": 0.5, "currency": "EUR"},
            "ahpd.context": {"used": 10, "size": None},
        }
        await it.says(ev.UsageReport(3))
        assert it.state()["activeTurn"]["usage"] == {"inputTokens": 3}


# ---- risk ---------------------------------------------------------------------------------------


async def test_the_risk_of_a_call_is_judged_while_it_asks() -> None:
    async with stage() as it:
        await it.says(*ASKS, ev.RiskJudged("c", ToolCallRiskAssessmentLoadingState(kind="judge")))
        assert it.call()["riskAssessment"] == {"status": "loading", "kind": "judge"}
        judged = ToolCallRiskAssessmentCompleteState(kind="judge", reason="reads only", safety=0.9)
        await it.says(ev.RiskJudged("c", judged))
        call = it.call()
        assert call["riskAssessment"]["safety"] == 0.9
        assert call["status"] == "pending-confirmation"
        assert (call["toolInput"], call["editable"]) == ("{}", True)
        entry = it.state(S)["inputNeeded"][0]
        assert entry["toolCall"]["riskAssessment"]["status"] == "complete"
        assert await it.why(approved("t1", "c")) is None
        before = it.call()
        await it.says(ev.RiskJudged("c", judged))
        assert it.call() == before, "too late: it is decided"
        assert it.puppet.permissions == [Permission("c", approved=True)]


async def test_a_denial_tells_the_agent_why_and_what_to_do_instead() -> None:
    async with stage() as it:
        await it.says(*ASKS)
        action = denied("t1", "c", reasonMessage="not now", userSuggestion=message("Ask Bob"))
        assert await it.why(action) is None
        assert it.puppet.permissions == [Permission("c", approved=False, reason="not now\nAsk Bob")]


# ---- approval of results ------------------------------------------------------------------------


@pytest.mark.parametrize("yes", [True, False])
async def test_a_result_is_used_only_when_somebody_approves_it(yes: bool) -> None:
    async with stage() as it:
        await it.says(*RUNS)
        why = await it.why(result_confirmed("t1", "c", approved=yes))
        assert why == "the result of this tool call is not waiting for approval"
        await it.says(ev.ToolFinished("c", True, "Looked", SEEN, asks_approval=True))
        assert it.call()["status"] == "pending-result-confirmation"
        (entry,) = it.state(S)["inputNeeded"]
        assert entry["kind"] == "toolConfirmation"
        assert it.state(S)["status"] & 31 == 24
        assert it.puppet.answers == []
        assert await it.why(result_confirmed("t1", "c", approved=yes)) is None
        assert it.puppet.answers == [Verdict("c", approved=yes)]
        assert it.call()["status"] == ("completed" if yes else "cancelled")
        assert "inputNeeded" not in it.state(S)
        assert "not waiting" in str(await it.why(result_confirmed("t1", "c", approved=not yes)))
        assert len(it.puppet.answers) == 1


async def test_a_result_of_no_call_at_all_is_refused() -> None:
    async with stage() as it:
        assert "no tool call x" in str(await it.why(result_confirmed("t1", "x", approved=True)))


# ---- tokens -------------------------------------------------------------------------------------


def token(chat: str = C) -> Authorize:
    return Authorize(chat, "c", "s3cret")


@pytest.mark.parametrize("named", [True, False], ids=["from the start", "when it pauses"])
async def test_a_call_pauses_for_a_token_and_goes_on_with_it(named: bool) -> None:
    async with stage() as it:
        server = "files" if named else None
        await it.says(
            ev.ToolStarted("c", "look", "Look", server=server),
            ev.ToolReady("c", "Looking", "{}"),
            ev.ToolOutput("c", SEEN),
            ev.ToolNeedsAuth("c", "files", NEEDS),
        )
        call = it.call()
        assert call["status"] == "auth-required"
        assert call["contributor"] == {"kind": "mcp", "customizationId": "files"}
        assert call["content"] == [{"type": "text", "text": "seen"}]
        assert (call["toolInput"], call["confirmed"]) == ("{}", "not-needed")
        (entry,) = it.state(S)["inputNeeded"]
        assert entry["kind"] == "toolAuthentication"
        chat = it.host.ledger.find(C)
        assert chat is not None
        it.host.system.ref(chat.path).cast(token("ahp-chat:/another"))
        await settled()
        assert it.call()["status"] == "auth-required"
        it.host.system.ref(chat.path).cast(token())
        it.host.system.ref(chat.path).cast(token())
        await settled()
        assert it.call()["status"] == "running"
        assert it.call()["content"] == [{"type": "text", "text": "seen"}]
        assert "inputNeeded" not in it.state(S)
        assert it.puppet.answers == [Authorized("c", "s3cret")]
        assert all("s3cret" not in str(frame) for _, frame in it.ann.frames)
        assert "s3cret" not in repr(token())


async def test_a_token_may_come_by_the_agents_own_way() -> None:
    async with stage() as it:
        await it.says(*RUNS, ev.ToolNeedsAuth("c", "files", NEEDS))
        await it.says(ev.ToolFinished("c", True, "Looked", SEEN))
        assert it.call()["status"] == "completed"
        assert it.call()["success"] is True
        assert "inputNeeded" not in it.state(S)


async def test_anybody_may_give_up_on_a_token_but_not_invent_a_result() -> None:
    """R-24.7."""
    async with stage() as it:
        bob = await room(it.host, "bob", subscribe=(S,))
        await it.says(*RUNS, ev.ToolNeedsAuth("c", "files", NEEDS))
        assert "can only be given up" in str(await it.why(given_up("t1", "c", success=True)))
        content = {
            "type": "chat/toolCallContentChanged", "turnId": "t1", "toolCallId": "c", "content": [],
        }  # fmt: skip
        assert "can only be given up" in str(await it.why(content))
        await bob.dispatch(C, given_up("t1", "c"))
        await settled()
        assert it.call()["status"] == "completed"
        assert it.call()["success"] is False
        assert it.puppet.answers == [Authorized("c", None)]


@pytest.mark.parametrize(
    "events",
    [
        (),
        (ev.ToolStarted("c", "look", "Look"),),
        ASKS,
        (*RUNS, ev.ToolFinished("c", True, "Looked")),
    ],
    ids=["no call", "streaming", "asking", "over"],
)
async def test_a_call_that_does_not_run_cannot_wait_for_a_token(events: Any) -> None:
    async with stage() as it:
        await it.says(*events, ev.ToolNeedsAuth("c", "files", NEEDS))
        assert Authorized("c", None) in it.puppet.answers, "nobody would ever answer"
        assert "auth-required" not in str(it.state())


# ---- output -------------------------------------------------------------------------------------


def output(count: int, unit: str = "x") -> ev.ToolOutput:
    return ev.ToolOutput("c", (ToolResultTextContent(text=unit * count),))


def sent(it: Stage) -> list[int]:
    """The sizes of the outputs that Ann was told."""
    return [
        len(a["content"][0]["text"])
        for a in actions(it.ann, C)
        if a["type"] == "chat/toolCallContentChanged"
    ]


async def test_b46_output_that_is_told_whole_each_time_does_not_cost_its_square() -> None:
    async with stage() as it:
        await it.says(*RUNS)
        for number in range(1, 801):
            it.puppet.say(output(number * 2048))
        await settled()
        await trio.sleep(60)
        assert sent(it)[-1] == 800 * 2048, "the last one comes in the end"
        assert sum(sent(it)) < 5 * 800 * 2048
        assert it.call()["content"][0]["text"] == "x" * (800 * 2048)


async def test_output_that_comes_slowly_is_shown_as_it_comes() -> None:
    async with stage() as it:
        await it.says(*RUNS)
        for number in range(1, 31):
            await it.says(output(number * 100))
            await trio.sleep(0.2)
        assert sent(it) == [number * 100 for number in range(1, 31)]


async def test_held_output_is_not_said_when_something_else_has_taken_its_place() -> None:
    async with stage() as it:
        await it.says(*RUNS, output(1000), output(1100), ev.ToolReady("c", "Anew", "{}"))
        await trio.sleep(10)
        assert sent(it) == [1000]
        await it.says(output(1001), output(1002), ev.ToolFinished("c", True, "Looked", SEEN))
        await trio.sleep(10)
        assert it.call()["content"] == [{"type": "text", "text": "seen"}]


async def test_held_output_is_there_while_a_call_waits_for_a_token_and_gone_with_its_turn() -> None:
    async with stage() as it:
        await it.says(*RUNS, output(1000), output(1100), ev.ToolNeedsAuth("c", "files", NEEDS))
        assert len(it.call()["content"][0]["text"]) == 1100
        await it.says(output(1200), output(1300))
        assert await it.why(cancelled("t1")) is None
        await trio.sleep(10)
        assert max(sent(it)) < 1300


# ---- nobody is left waiting ---------------------------------------------------------------------


async def test_a_tool_of_a_client_that_nobody_offers_fails_at_once() -> None:
    async with stage() as it:
        await it.says(ev.ClientToolCalled("c", "gone__open", "Open", "{}"))
        assert it.call()["status"] == "completed"
        assert it.call()["success"] is False
        (answer,) = it.puppet.answers
        assert isinstance(answer, ClientResult)
        assert not answer.result.success


async def test_a_call_that_was_never_announced_is_refused_at_once() -> None:
    async with stage() as it:
        await it.says(ev.ToolAsks("never", "May I?"))
        assert [(a.call_id, a.approved) for a in it.puppet.permissions] == [("never", False)]
        assert it.parts() == []


WAITING = (
    (ev.ToolStarted("a", "x", "X"), ev.ToolAsks("a", "X?", "{}")),
    (*RUNS, ev.ToolNeedsAuth("c", "files", NEEDS)),
    (*RUNS, ev.ToolFinished("c", True, "Looked", SEEN, asks_approval=True)),
)


@pytest.mark.parametrize("events", WAITING, ids=["permission", "token", "approval"])
async def test_b28_what_waits_when_a_turn_is_cancelled_is_answered(events: Any) -> None:
    async with stage() as it:
        it.puppet.deaf = True
        await it.says(*events)
        assert "inputNeeded" in it.state(S)
        assert await it.why(cancelled("t1")) is None
        assert "inputNeeded" not in it.state(S)
        (answer,) = it.puppet.answers
        assert answer in (
            Permission("a", approved=False, reason="the turn is over"),
            Authorized("c", None),
            Verdict("c", approved=False),
        )
        assert it.puppet.cancels == 1


async def test_b28_what_an_agent_asks_after_its_turn_is_refused_and_the_next_turn_works() -> None:
    async with stage() as it:
        it.puppet.deaf = True
        assert await it.why(cancelled("t1")) is None
        await it.says(*ASKS, ev.QuestionsAsked(_request()))
        assert [type(a).__name__ for a in it.puppet.answers] == ["Permission", "Answers"]
        assert "inputNeeded" not in it.state(S)
        await it.ann.dispatch(C, started("t2"))
        it.puppet.hear()
        await at_work(it.agent, "t2")
        await it.mutters(*ASKS, ev.QuestionsAsked(_request()))
        assert [type(a).__name__ for a in it.puppet.answers] == ["Permission", "Answers"] * 2
        assert it.parts() == []


def _request() -> Any:
    return ChatInputRequest(id="q", message="Well?")


# ---- silence ------------------------------------------------------------------------------------


async def test_an_agent_that_says_nothing_for_too_long_is_stopped() -> None:
    async with stage(settings=Settings(silence_limit=60)) as it:
        for _ in range(3):
            await trio.sleep(50)
            await it.says(ev.TextChunk("still here "))
        assert it.state().get("activeTurn")
        await trio.sleep(61)
        (turn,) = it.state()["turns"]
        assert turn["state"] == "error"
        assert turn["duration"] == pytest.approx(210_000, abs=2000)
        error = turn["responseParts"][-1]
        assert error["error"]["errorType"] == "AgentSilent"
        assert "60 seconds" in error["error"]["message"]
        assert error["resumable"] is True
        assert it.puppet.cancels == 1
        ends = [a for a in actions(it.ann, C) if a["type"] == "chat/error"]
        assert len(ends) == 1


async def test_waiting_for_people_is_not_silence() -> None:
    async with stage(settings=Settings(silence_limit=60)) as it:
        await it.says(*ASKS)
        await trio.sleep(3600)
        assert it.state().get("activeTurn"), "a person takes as long as a person takes"
        assert await it.why(approved("t1", "c")) is None
        await trio.sleep(55)
        assert it.state().get("activeTurn"), "counted from the answer"
        await trio.sleep(10)
        assert it.state()["turns"][0]["state"] == "error"


async def test_there_is_no_limit_unless_it_is_set() -> None:
    async with stage() as it:
        await trio.sleep(80_000)
        assert it.state().get("activeTurn")
