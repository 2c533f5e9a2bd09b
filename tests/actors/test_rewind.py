"""A conversation that is taken back, and a turn that is gone on with."""

from __future__ import annotations

from typing import Any

import pytest
import trio

from ahpd.agents.events import Done, Failed, TextChunk, ToolAsks, ToolStarted
from ahpd.agents.port import AgentFailed, Permission
from ahpd.protocol.connection import SubscribeView
from ahpd.protocol.uris import ROOT
from supervisors import sys
from tests.actors.support import (
    C,
    S,
    actions,
    at_work,
    cancelled,
    pending,
    room,
    settled,
    started,
    turn,
)
from tests.actors.talk import Stage, resumed, stage, truncated
from tests.harness import PuppetAgent, differences, running_host


async def finish(it: Stage, *turns: str) -> None:
    """The turn ``t1`` ends well, and so do these."""
    it.puppet.end(Done())
    await settled()
    for turn_id in turns:
        await turn(it.ann, it.agent, turn_id, Done())


def ids(it: Stage) -> list[str]:
    return [each["id"] for each in it.state()["turns"]]


async def test_turns_after_one_are_taken_away_and_the_agent_forgets_them_before_the_next() -> None:
    async with stage() as it:
        await finish(it, "t2", "t3")
        assert await it.why(truncated("t1")) is None
        assert ids(it) == ["t1"]
        assert it.puppet.rewinds == [], "not before it is needed"
        await turn(it.ann, it.agent, "t4", Done())
        assert it.puppet.rewinds == ["t1"]
        assert [prompt.turn_id for prompt in it.puppet.prompts] == ["t1", "t2", "t3", "t4"]
        await turn(it.ann, it.agent, "t5", Done())
        assert it.puppet.rewinds == ["t1"], "once"
        assert "already started" in str(await it.why(started("t2"))), "an id is used up"


async def test_all_turns_can_be_taken_away() -> None:
    async with stage() as it:
        await finish(it, "t2")
        assert await it.why(truncated()) is None
        assert await it.why(truncated()) is None
        assert ids(it) == []
        await turn(it.ann, it.agent, "t3", Done())
        assert it.puppet.rewinds == [None]


async def test_the_last_of_several_rewinds_counts() -> None:
    async with stage() as it:
        await finish(it, "t2", "t3")
        assert await it.why(truncated("t2")) is None
        assert await it.why(truncated("t1")) is None
        await turn(it.ann, it.agent, "t4", Done())
        assert it.puppet.rewinds == ["t1"]


async def test_a_running_turn_is_dropped_but_ends_once_and_the_next_waits_for_the_agent() -> None:
    async with stage() as it:
        await finish(it)
        await it.ann.dispatch(C, started("t2"))
        await at_work(it.agent, "t2")
        it.puppet.deaf = True
        await it.says(TextChunk("a"), ToolStarted("c", "x", "X"), ToolAsks("c", "X?"))
        assert "no completed turn t2" in str(await it.why(truncated("t2")))
        assert await it.why(truncated("t1")) is None
        assert ids(it) == ["t1"]
        assert it.state()["status"] & 31 == 1
        assert "activity" not in it.state()
        assert "inputNeeded" not in it.state(S)
        assert it.puppet.cancels == 1
        assert it.puppet.permissions == [Permission("c", approved=False, reason="the turn is over")]
        await it.ann.dispatch(C, started("t3"))
        await settled()
        assert it.puppet.prompts[-1].turn_id == "t2", "the agent has not settled yet"
        await it.says(TextChunk("late"))
        assert it.parts() == []
        it.puppet.hear()
        await at_work(it.agent, "t3")
        assert it.puppet.rewinds == ["t1"]
        ends = [a for a in actions(it.ann, C) if a.get("turnId") == "t2" and "duration" in a]
        assert [a["type"] for a in ends] == ["chat/turnCancelled"]


async def test_a_queue_waits_for_the_person_who_went_back() -> None:
    async with stage() as it:
        await finish(it)
        await it.ann.dispatch(C, started("t2"))
        await at_work(it.agent, "t2")
        assert await it.why(pending("p")) is None
        assert await it.why(truncated("t1")) is None
        await trio.sleep(60)
        assert [each["id"] for each in it.state()["queuedMessages"]] == ["p"]
        await turn(it.ann, it.agent, "t3", Done())
        await settled()
        assert it.state()["activeTurn"]["message"]["text"] == "message p"


async def test_an_agent_that_cannot_go_back_says_so() -> None:
    agent = PuppetAgent()
    agent.can_rewind = False
    async with stage(agent) as it:
        for action in (truncated("t1"), truncated()):
            why = await it.why(action)
            assert why == "this agent cannot take a conversation back to an earlier turn"
        assert it.state().get("activeTurn")


async def test_a_new_agent_goes_back_too_and_one_that_fails_to_ends_the_turn_and_tries_again() -> (
    None
):
    async with stage() as it:
        await finish(it, "t2")
        assert await it.why(truncated("t1")) is None
        assert sys.kill(it.host.system.ref(it.host.ledger.channels[C].path))
        await trio.sleep(5)
        it.agent.rewinding_fails = "the session file is locked"
        await it.ann.dispatch(C, started("t3"))
        await trio.sleep(1)
        failed = it.state()["turns"][-1]["responseParts"][-1]["error"]
        assert failed["message"] == "the session file is locked"
        it.agent.rewinding_fails = None
        await it.ann.dispatch(C, started("t4"))
        assert (await at_work(it.agent, "t4")).rewinds == ["t1"]


async def test_an_agent_that_takes_for_ever_to_go_back_can_be_cancelled() -> None:
    async with stage() as it:
        await finish(it, "t2")
        assert await it.why(truncated("t1")) is None
        it.agent.rewinds_in = 1e9
        await it.ann.dispatch(C, started("t3"))
        await trio.sleep(60)
        assert it.puppet.prompts[-1].turn_id == "t2"
        assert await it.why(cancelled("t3")) is None
        assert it.puppet.cancels == 0, "it has nothing of the turn to cancel"
        await it.ann.dispatch(C, started("t4"))
        await trio.sleep(30)
        assert it.puppet.closed
        it.agent.rewinds_in = 0.0
        await it.ann.dispatch(C, cancelled("t4"))
        await it.ann.dispatch(C, started("t5"))
        await trio.sleep(30)
        assert (await at_work(it.agent, "t5")).rewinds == ["t1"]


async def test_going_back_again_while_the_agent_goes_back_is_not_lost() -> None:
    async with stage() as it:
        await finish(it, "t2", "t3")
        assert await it.why(truncated("t2")) is None
        it.agent.rewinds_in = 5.0
        await it.ann.dispatch(C, started("t4"))
        await trio.sleep(1)
        assert await it.why(truncated("t1")) is None
        await turn(it.ann, it.agent, "t5", Done())
        assert it.puppet.rewinds == ["t2", "t1"]


# ---- those who hold a part ----------------------------------------------------------------------


@pytest.mark.parametrize("to", ["t1", "t3", "t5", None])
async def test_those_who_hold_only_the_newest_turns_follow(to: str | None) -> None:
    """R-9.69: the turn is judged against all there are, and given to those who lack it."""
    agent = PuppetAgent()
    async with running_host(agent) as host:
        ann = await room(host)
        for number in range(1, 6):
            await turn(ann, agent, f"t{number}", Done())
        async with host.client("laptop", subscriptions=(ROOT, S)) as laptop:
            for turns in (2, 4):
                await laptop.subscribe(C, view=SubscribeView(turns=turns))
                seq = await ann.dispatch(C, truncated(to))
                assert "rejectionReason" not in (await ann.answered(seq))["params"]
                await turn(ann, agent, f"after {turns}", Done())
                await trio.sleep(1)
                assert differences(laptop, host) == []
                chat: Any = laptop.channels[C].store
                kept = [each.id for each in chat.confirmed.turns]
                assert kept[-1] == f"after {turns}"
                if to is None:
                    assert kept == [f"after {turns}"]
                    assert chat.confirmed.turns_next_cursor is None
                else:
                    assert to in kept
                await laptop.request("fetchTurns", {"channel": C})
                await trio.sleep(1)
                assert differences(laptop, host) == []


# ---- going on with a turn -----------------------------------------------------------------------


async def failed(it: Stage, *, resumable: bool = True) -> None:
    await it.says(TextChunk("Half "))
    await trio.sleep(10)
    it.puppet.end(Failed("overloaded", resumable=resumable))
    await settled()


async def test_a_failed_turn_goes_on_under_its_id_and_its_time_counts_from_its_start() -> None:
    async with stage() as it:
        await failed(it)
        first = it.state()["turns"][0]
        assert first["duration"] == pytest.approx(10_000, abs=100)
        await trio.sleep(10)
        assert await it.why(resumed("t1")) is None
        again = await at_work(it.agent, "t1")
        assert again.prompts[-1].resume is True
        assert it.state()["activeTurn"]["responseParts"] == first["responseParts"]
        await it.says(TextChunk("done"))
        await trio.sleep(10)
        it.puppet.end(Done())
        await settled()
        (done,) = it.state()["turns"]
        assert (done["id"], done["state"]) == ("t1", "complete")
        assert done["duration"] == pytest.approx(30_000, abs=100)
        assert [part["kind"] for part in done["responseParts"]] == ["markdown", "error", "markdown"]


async def test_it_may_fail_again_and_is_judged_by_its_last_error() -> None:
    async with stage() as it:
        await failed(it)
        assert await it.why(resumed("t1")) is None
        await at_work(it.agent, "t1")
        it.puppet.end(Failed("refused"))
        await settled()
        kinds = [part["kind"] for part in it.parts()]
        assert kinds == ["markdown", "error", "error"]
        assert "cannot be resumed" in str(await it.why(resumed("t1")))


async def test_the_three_conditions_of_going_on() -> None:
    async with stage() as it:
        assert await it.why(resumed("t1")) == "a turn is running"
        await failed(it)
        assert "only the last turn" in str(await it.why(resumed("t0")))
        await turn(it.ann, it.agent, "t2", Done())
        assert "only the last turn" in str(await it.why(resumed("t1")))
        assert "after an error" in str(await it.why(resumed("t2")))
        await turn(it.ann, it.agent, "t3", Failed("no login"))
        assert "cannot be resumed" in str(await it.why(resumed("t3")))
        assert len(it.puppet.prompts) == 3, "a refused one has no side effect"


async def test_a_resume_sent_twice_is_one() -> None:
    async with stage() as it:
        await failed(it)
        assert await it.why(resumed("t1")) is None
        assert await it.why(resumed("t1")) == "a turn is running"
        await at_work(it.agent, "t1")
        assert len(it.puppet.prompts) == 2


async def test_an_agent_that_cannot_go_on_says_so_once_its_backend_is_gone() -> None:
    agent = PuppetAgent()
    async with stage(agent) as it:
        await it.says(TextChunk("Half "))
        it.puppet.crash(AgentFailed("the process ended", resumable=True))
        await settled()
        agent.can_resume = False
        assert await it.why(resumed("t1")) == "this agent cannot go on with a turn that failed"
        agent.can_resume = True
        assert await it.why(resumed("t1")) is None
        assert await at_work(agent, "t1") is not it.puppet


async def test_a_turn_that_others_were_taken_away_behind_can_go_on() -> None:
    async with stage() as it:
        await failed(it)
        await turn(it.ann, it.agent, "t2", Done())
        assert await it.why(truncated("t1")) is None
        assert await it.why(resumed("t1")) is None
        again = await at_work(it.agent, "t1")
        assert again.rewinds == ["t1"]
        assert await it.why(cancelled("t1")) is None
        assert it.state()["turns"][0]["state"] == "cancelled"
