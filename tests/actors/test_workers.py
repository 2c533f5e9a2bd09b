"""Workers: chats that tool calls start, filled by the same agent, and gone with it."""

from __future__ import annotations

from typing import Any

import pytest
import trio

from ahpd.agents import events as ev
from ahpd.agents.port import Answers, Permission
from ahpd.protocol.chat import BackgroundShellWork, BackgroundSubagentWork
from ahpd.protocol.inputs import ChatInputRequest
from ahpd.protocol.tools import ToolResultTextContent
from ahpd.protocol.uris import ROOT, worker_chat
from supervisors import sys
from tests.actors.support import (
    C2,
    NOW,
    C,
    S,
    actions,
    approved,
    at_work,
    cancelled,
    pending,
    refused,
    room,
    settled,
    started,
)
from tests.actors.talk import Stage, completed, draft, stage, text, truncated

W = worker_chat(S, "c")
CALL = (ev.ToolStarted("c", "task", "Look", kind="subagent"), ev.ToolReady("c", "Looking"))
START = ev.WorkerStarted("w", "c", "Look around", prompt="Look at everything")
ASKS = (ev.ToolStarted("i", "read", "Read"), ev.ToolAsks("i", "Read it?", "{}"))


def says(*events: ev.Event) -> ev.WorkerSays:
    return ev.WorkerSays("w", events)


async def begin(it: Stage) -> None:
    await it.says(*CALL, START)
    await it.ann.subscribe(W)


async def test_a_worker_has_a_chat_and_chat_and_call_name_each_other() -> None:
    async with stage() as it:
        await begin(it)
        chat = it.state(W)
        assert chat["origin"] == {"kind": "tool", "chat": C, "toolCallId": "c"}
        assert chat["interactivity"] == "read-only"
        assert chat["activeTurn"]["message"] == {
            "text": "Look at everything", "origin": {"kind": "agent"},
        }  # fmt: skip
        link = {"type": "subagent", "resource": W, "title": "Look around"}
        assert it.call()["content"] == [link]
        assert it.call()["_meta"] == {"toolKind": "subagent", "subagentChatUri": W}
        (_, row) = it.state(S)["chats"]
        assert (row["resource"], row["title"], row["origin"]) == (W, "Look around", chat["origin"])
        await it.says(ev.ToolOutput("c", (ToolResultTextContent(text="half"),)))
        assert it.call()["content"] == [link, {"type": "text", "text": "half"}]
        await it.says(ev.ToolReady("c", "Still looking"))
        assert it.call()["content"] == [link], "ready drops what there was"
        await it.says(ev.WorkerEnded("w", ev.Done()), ev.ToolFinished("c", True, "Looked"))
        assert it.call()["content"] == [link]
        assert it.state(W)["turns"][0]["state"] == "complete"
        assert [r["status"] & 31 for r in it.state(S)["chats"]] == [8, 1]


async def test_what_a_worker_does_is_mapped_as_in_any_chat() -> None:
    async with stage() as it:
        await begin(it)
        await it.says(
            says(ev.ThoughtChunk("hm"), ev.TextChunk("a"), ev.TextChunk("b")),
            says(ev.ToolStarted("i", "read", "Read"), ev.ToolReady("i", "Reading", "{}")),
            says(ev.ToolFinished("i", True, "Read it"), ev.UsageReport(5), ev.SystemNotice("n")),
            says(ev.ActivityChanged("Reading"), ev.TitleProposed("Reader")),
        )
        assert [p["kind"] for p in it.parts(W)] == [
            "reasoning", "markdown", "toolCall", "systemNotification",
        ]  # fmt: skip
        assert it.parts(W)[1]["content"] == "ab"
        assert it.state(W)["activeTurn"]["usage"] == {"inputTokens": 5}
        row = it.state(S)["chats"][1]
        assert (row["title"], row["activity"]) == ("Reader", "Reading")
        assert it.state(S)["title"] != "Reader"
        assert len(it.parts()) == 1, "nothing of it is in the other chat"


async def test_confirmations_and_questions_of_a_worker_are_answered_in_its_chat() -> None:
    async with stage() as it:
        await begin(it)
        eve = await room(it.host, "eve", subscribe=(S,))
        await it.says(says(*ASKS), says(ev.QuestionsAsked(ChatInputRequest(id="q"))))
        entries = it.state(S)["inputNeeded"]
        assert [(e["kind"], e["chat"]) for e in entries] == [
            ("toolConfirmation", W), ("chatInput", W),
        ]  # fmt: skip
        turn = entries[0]["turnId"]
        assert "no tool call i" in str(await it.why(approved("t1", "i"))), "not in this chat"
        await eve.dispatch(W, approved(turn, "i"))
        await settled()
        assert it.puppet.answers == [Permission("i", approved=True)]
        assert await it.why(completed("q", "decline"), W) is None
        assert it.puppet.answers[1:] == [Answers("q", "decline")]
        assert "inputNeeded" not in it.state(S)


READ_ONLY: list[Any] = [
    started("t9"),
    pending("p"),
    pending("p", "steering"),
    cancelled("x"),
    truncated(),
    {"type": "chat/draftChanged", "draft": {"text": "x", "origin": {"kind": "user"}}},
]


@pytest.mark.parametrize("action", READ_ONLY, ids=lambda a: a["type"])
async def test_a_workers_chat_can_only_be_read(action: Any) -> None:
    async with stage() as it:
        await begin(it)
        before = it.state(W)
        assert await it.why(action, W) is not None
        assert it.state(W) == before
        assert await it.why({"type": "chat/isReadChanged", "isRead": True}, W) is None
        assert await it.why({"type": "session/titleChanged", "title": "Scout"}, W) is None
        assert it.state(S)["chats"][1]["title"] == "Scout"


@pytest.mark.parametrize(
    ("outcome", "state"),
    [
        (ev.Done(), "cancelled"),
        (ev.Stopped(), "cancelled"),
        (ev.Failed("out of words"), "error"),
        (RuntimeError("a bug"), "error"),
    ],
    ids=str,
)
async def test_a_worker_ends_with_its_turn_once_and_what_it_asked_is_answered(
    outcome: Any, state: str
) -> None:
    async with stage() as it:
        await begin(it)
        await it.says(says(*ASKS))
        if isinstance(outcome, Exception):
            it.puppet.crash(outcome)
        else:
            it.puppet.end(outcome)
        await settled()
        (turn,) = it.state(W)["turns"]
        assert turn["state"] == state
        assert turn["duration"] >= 0
        assert turn["responseParts"][0]["toolCall"]["status"] == "cancelled"
        assert "inputNeeded" not in it.state(S)
        if not isinstance(outcome, Exception):
            assert [a.approved for a in it.puppet.permissions] == [False]


async def test_a_worker_that_ends_while_it_asks_is_answered_and_the_turn_goes_on_asking() -> None:
    async with stage() as it:
        await begin(it)
        await it.says(ev.ToolStarted("m", "x", "X"), ev.ToolAsks("m", "X?"), says(*ASKS))
        await it.says(ev.WorkerEnded("w", ev.Done()))
        assert [(a.call_id, a.approved) for a in it.puppet.permissions] == [("i", False)]
        assert [entry["toolCall"]["toolCallId"] for entry in it.state(S)["inputNeeded"]] == ["m"]
        assert await it.why(approved("t1", "m")) is None
        assert it.puppet.permissions[1:] == [Permission("m", approved=True)]


async def test_b28_a_workers_question_during_a_cancel_and_after_its_end_is_refused() -> None:
    async with stage() as it:
        await begin(it)
        it.puppet.deaf = True
        assert await it.why(cancelled("t1")) is None
        assert it.state(W)["turns"][0]["state"] == "cancelled"
        await it.says(says(*ASKS), ev.WorkerSays("unheard of", ASKS))
        assert [a.approved for a in it.puppet.permissions] == [False, False]
        assert len(it.state(W)["turns"][0]["responseParts"]) == 0


async def test_workers_have_workers() -> None:
    async with stage() as it:
        await begin(it)
        inner = worker_chat(S, "n")
        await it.says(
            says(ev.ToolStarted("n", "task", "More"), ev.ToolReady("n", "More")),
            says(ev.WorkerStarted("w2", "n", "Look closer")),
            says(ev.WorkerSays("w2", (ev.TextChunk("deep"),))),
        )
        assert it.state(inner)["origin"] == {"kind": "tool", "chat": W, "toolCallId": "n"}
        assert it.parts(inner)[0]["content"] == "deep"
        assert it.call(W)["content"][0]["resource"] == inner
        it.puppet.end(ev.Done())
        await settled()
        assert [it.state(uri)["turns"][0]["state"] for uri in (W, inner)] == ["cancelled"] * 2


async def test_a_worker_without_a_call_of_the_turn_is_not_shown() -> None:
    async with stage() as it:
        await it.says(ev.WorkerStarted("w", "never", "Nobody"), says(ev.TextChunk("x"), *ASKS))
        assert len(it.state(S)["chats"]) == 1
        assert [a.approved for a in it.puppet.permissions] == [False]


async def test_a_call_may_have_a_second_worker_in_the_same_chat_or_in_one_of_its_own() -> None:
    async with stage() as it:
        await begin(it)
        await it.says(START, ev.WorkerStarted("w2", "c", "Also"))
        first, second = [row["resource"] for row in it.state(S)["chats"]][1:]
        assert first == W
        assert second != W
        await it.says(ev.WorkerEnded("w", ev.Done()), ev.WorkerStarted("w3", "c", "Again"))
        assert len(it.state(W)["turns"]) == 1
        assert it.state(W)["activeTurn"]["message"]["text"] == "Again"


# ---- work that goes on --------------------------------------------------------------------------


SHELL = BackgroundShellWork(id="shell:1", label="Build", started_at=NOW, command="make")


async def test_background_work_survives_its_turn_and_changes_beside_turns() -> None:
    async with stage() as it:
        await it.says(ev.BackgroundSet(SHELL))
        it.puppet.end(ev.Done())
        await settled()
        assert it.state()["backgroundWork"] == [SHELL.wire()]
        await it.mutters(ev.BackgroundSet(SHELL.evolve(label="Build (2 left)")))
        assert it.state()["backgroundWork"][0]["label"] == "Build (2 left)"
        await it.mutters(ev.BackgroundGone("never"))
        await it.mutters(ev.BackgroundGone("shell:1"))
        assert "backgroundWork" not in it.state()
        said = [a["type"] for a in actions(it.ann, C) if "backgroundWork" in a["type"]]
        assert said == ["chat/backgroundWorkSet"] * 2 + ["chat/backgroundWorkRemoved"]


async def test_text_and_calls_beside_turns_are_in_no_turn() -> None:
    async with stage() as it:
        it.puppet.end(ev.Done())
        await settled()
        before = it.state()
        await it.mutters(ev.TextChunk("psst"), *CALL, START, ev.ActivityChanged("x"))
        assert it.state() == before
        await it.mutters(ev.TitleProposed("Named beside a turn"))
        assert it.state(S)["title"] == "Named beside a turn"


async def test_a_worker_in_the_background_outlives_its_turn_and_its_chat_is_named() -> None:
    work = BackgroundSubagentWork(id="subagent:w", label="Look", started_at=NOW, chat="")
    async with stage() as it:
        await begin(it)
        await it.says(ev.BackgroundSet(work, worker="w"), ev.BackgroundSet(work, worker="never"))
        (entry,) = it.state()["backgroundWork"]
        assert entry["chat"] == W
        it.puppet.end(ev.Done())
        await settled()
        assert it.state(W).get("activeTurn")
        await it.mutters(says(ev.TextChunk("later"), *ASKS))
        turn = it.state(W)["activeTurn"]["id"]
        assert await it.why(approved(turn, "i"), W) is None
        assert it.puppet.permissions == [Permission("i", approved=True)]
        await it.ann.dispatch(C, started("t2"))
        await at_work(it.agent, "t2")
        await it.ann.dispatch(C, cancelled("t2"))
        await settled()
        assert it.state(W).get("activeTurn"), "not of that turn"
        await it.mutters(ev.WorkerEnded("w", ev.Done()), ev.BackgroundGone("subagent:w"))
        assert it.state(W)["turns"][0]["state"] == "complete"


async def test_when_the_agent_breaks_down_beside_turns_its_work_is_gone() -> None:
    work = BackgroundSubagentWork(id="subagent:w", label="Look", started_at=NOW, chat="")
    async with stage() as it:
        await begin(it)
        await it.says(ev.BackgroundSet(SHELL), ev.BackgroundSet(work, worker="w"))
        it.puppet.end(ev.Done())
        await settled()
        it.puppet.collapse(RuntimeError("gone"))
        await settled()
        assert "backgroundWork" not in it.state()
        assert it.state(W)["turns"][0]["state"] == "error"
        assert it.puppet.closed
        await it.ann.dispatch(C, started("t2"))
        assert await at_work(it.agent, "t2") is not it.puppet


async def test_when_it_breaks_down_beside_a_running_turn_that_ends_once() -> None:
    async with stage() as it:
        await begin(it)
        it.puppet.collapse(RuntimeError("gone"))
        await settled()
        (turn,) = it.state()["turns"]
        assert turn["state"] == "error"
        assert "gone" in turn["responseParts"][-1]["error"]["message"]
        assert it.state(W)["turns"][0]["state"] == "error"
        started_turns, ended_turns = it.host.stream.turns()
        assert started_turns == ended_turns


# ---- their chats --------------------------------------------------------------------------------


async def test_a_chat_that_is_killed_ends_its_workers_and_forgets_its_work() -> None:
    async with stage() as it:
        await begin(it)
        await it.says(ev.BackgroundSet(SHELL), says(*ASKS))
        path = it.host.ledger.channels[C].path
        assert sys.kill(it.host.system.ref(path))
        await trio.sleep(5)
        assert it.state(W)["turns"][0]["state"] == "error"
        assert "backgroundWork" not in it.state()
        assert "inputNeeded" not in it.state(S)
        assert await it.why({"type": "chat/isReadChanged", "isRead": True}, W) is None


async def test_a_session_that_is_killed_finds_its_workers_rows_again() -> None:
    async with stage() as it:
        path = it.host.ledger.channels[S].path
        assert sys.kill(it.host.system.ref(path))
        await it.says(*CALL, START)
        await trio.sleep(5)
        assert [row["resource"] for row in it.state(S)["chats"]] == [C, W]


async def test_a_chat_takes_its_workers_chats_along_and_a_running_worker_cannot_be_ended() -> None:
    async with stage() as it:
        await it.ann.request("createChat", channel=S, chat=C2)
        await begin(it)
        await it.says(says(*ASKS))
        with refused(-32602, "a worker stops with the turn"):
            await it.ann.request("disposeChat", channel=W)
        await it.ann.request("disposeChat", channel=C)
        assert [row["resource"] for row in it.state(S)["chats"]] == [C2]
        assert it.state(S)["defaultChat"] == C2
        assert "inputNeeded" not in it.state(S)
        assert it.host.ledger.find(W) is None
        with refused(-32602, "last chat"):
            await it.ann.request("disposeChat", channel=C2)


async def test_a_workers_chat_is_no_other_chat_of_people() -> None:
    """It is not the last one, not the next default one, and can be ended when it is over."""
    async with stage() as it:
        await begin(it)
        await it.says(ev.WorkerEnded("w", ev.Done()))
        with refused(-32602, "last chat"):
            await it.ann.request("disposeChat", channel=C)
        await it.ann.request("disposeChat", channel=W)
        assert [row["resource"] for row in it.state(S)["chats"]] == [C]
        await it.says(says(ev.TextChunk("late")), ev.WorkerEnded("w", ev.Done()))
        with refused(-32008):
            await it.ann.subscribe(W)
        assert await it.why(draft("q", "x", text("y"))) is not None


async def test_a_session_goes_with_its_workers() -> None:
    async with stage(subscribe=(ROOT, S, C)) as it:
        await begin(it)
        await it.ann.request("disposeSession", channel=S)
        assert it.host.ledger.find(W) is None
        started_turns, ended_turns = it.host.stream.turns()
        assert started_turns == ended_turns
