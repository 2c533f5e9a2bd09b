"""A chat: its queue, steering, confirmations, and what happens when a turn ends meanwhile."""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import Any

import pytest
import trio

from ahpd.agents.events import (
    Done,
    Failed,
    TextChunk,
    ThoughtChunk,
    TitleProposed,
    ToolAsks,
    ToolFinished,
    ToolOutput,
    ToolReady,
    ToolStarted,
    UsageReport,
)
from ahpd.protocol.tools import ConfirmationOption
from supervisors import sys
from tests.actors.support import (
    C2,
    C,
    S,
    actions,
    answer,
    approved,
    at_work,
    cancelled,
    denied,
    ending,
    pending,
    readable,
    room,
    settled,
    started,
    turn,
    types,
    withdrawn,
)
from tests.harness import PuppetAgent, RawPeer, SlowJournal, running_host
from tests.harness.replicas import state_of


async def reason(peer: RawPeer, action: Any) -> str | None:
    """Why an action is refused; None: it is not."""
    params = await answer(peer, await peer.dispatch(C, action))
    why: str | None = params.get("rejectionReason")
    assert why is None or readable(why), why
    return why


# ---- the queue (B52) -----------------------------------------------------------------------------


async def test_r_9_79_queued_messages_start_in_order_each_by_its_two_steps() -> None:
    agent = PuppetAgent()
    async with running_host(agent) as host:
        ann = await room(host)
        await ann.dispatch(C, started("t1"))
        puppet = await at_work(agent, "t1")
        for id in ("q1", "q2", "q3"):
            await ann.dispatch(C, pending(id))
        await ann.dispatch(C, {"type": "chat/queuedMessagesReordered", "order": ["q3", "zzz"]})
        assert await reason(ann, withdrawn("q2")) is None
        ann.inbox.clear()
        for _ in range(3):
            puppet.end(Done())
            await trio.sleep(1)
        said = [
            (a["type"], a.get("id") or a.get("queuedMessageId"))
            for a in actions(ann, C)
            if a["type"] in ("chat/pendingMessageRemoved", "chat/turnStarted")
        ]
        assert said == [
            ("chat/pendingMessageRemoved", "q3"),
            ("chat/turnStarted", "q3"),
            ("chat/pendingMessageRemoved", "q1"),
            ("chat/turnStarted", "q1"),
        ]
        assert [prompt.message.text for prompt in puppet.prompts[1:]] == [
            "message q3",
            "message q1",
        ]


async def test_r_9_80_a_message_queued_while_nothing_runs_starts_at_once() -> None:
    agent = PuppetAgent()
    async with running_host(agent) as host:
        ann = await room(host)
        await ann.dispatch(C, pending("q1"))
        started_turn = (await ann.expect_action("chat/turnStarted"))["action"]
        assert started_turn["queuedMessageId"] == "q1"
        assert "queued" in str(await reason(ann, withdrawn("q1")))


@pytest.mark.parametrize("takes_steering", [True, False])
async def test_b52_steering_does_not_send_the_queued_text(takes_steering: bool) -> None:
    """Taken in the turn by an agent that can; else the turn ends and it starts the next."""
    agent = PuppetAgent(takes_steering=takes_steering)
    async with running_host(agent) as host:
        ann = await room(host)
        await ann.dispatch(C, started("t1"))
        puppet = await at_work(agent, "t1")
        assert await reason(ann, pending("q1")) is None
        await ann.dispatch(C, pending("s1", "steering"))
        await trio.sleep(1)
        said = types(ann, C)
        after = said[said.index("chat/pendingMessageSet") + 1]
        assert after == ("chat/pendingMessageRemoved" if takes_steering else "chat/turnCancelled")
        for _ in range(3):
            puppet.end(Done())
            await trio.sleep(1)
        heard = [prompt.message.text for prompt in puppet.prompts]
        if takes_steering:
            assert [each.text for each in puppet.steered] == ["message s1"]
            assert heard == ["Tidy up", "message q1"]
        else:
            assert heard == ["Tidy up", "message s1", "message q1"]
        assert "steeringMessage" not in state_of(host, C)


async def test_quirk_42_a_steering_message_is_not_left_parked_while_nothing_runs() -> None:
    agent = PuppetAgent()
    async with running_host(agent) as host:
        ann = await room(host)
        await ann.dispatch(C, pending("s1", "steering"))
        await ann.expect_action("chat/pendingMessageSet")  # its own lands first
        await ann.expect_action("chat/pendingMessageRemoved")
        turn_id = (await ann.expect_action("chat/turnStarted"))["action"]["turnId"]
        (await at_work(agent, turn_id)).end(Done())
        await ending(ann, turn_id)


@pytest.mark.parametrize("opens_in", [0.0, 3.0])
@pytest.mark.parametrize("takes_steering", [True, False])
async def test_steering_does_not_take_the_place_of_a_message_the_agent_never_got(
    takes_steering: bool, opens_in: float
) -> None:
    """Sent with the turn's start in one go: the agent gets the turn's own message first."""
    agent = PuppetAgent(takes_steering=takes_steering)
    agent.opens_in = opens_in
    async with running_host(agent) as host:
        ann = await room(host)
        await ann.dispatch(C, started("t1", "first"))
        await ann.dispatch(C, pending("s1", "steering", "second"))
        await trio.sleep(10)
        puppet = agent.of[C]
        heard = [p.message.text for p in puppet.prompts] + [m.text for m in puppet.steered]
        assert heard == ["first", "second"]


async def test_a_cancel_before_the_agent_has_the_message_is_not_taken_for_the_next_turn() -> None:
    agent = PuppetAgent()
    async with running_host(agent) as host:
        ann = await room(host)
        await turn(ann, agent, "t0", Done())
        puppet = agent.of[C]
        heard: list[int] = []
        real = puppet.cancel

        def cancel() -> None:
            heard.append(len(puppet.prompts))
            real()

        puppet.cancel = cancel  # type: ignore[method-assign]
        await ann.dispatch(C, started("t1"))
        await ann.dispatch(C, cancelled("t1"))
        await ann.dispatch(C, started("t2"))
        await at_work(agent, "t2")
        await trio.sleep(30)
        assert [prompt.turn_id for prompt in puppet.prompts if prompt.turn_id == "t2"] == ["t2"]
        assert puppet.prompted is not None
        assert all(puppet.prompts[count - 1].turn_id == "t1" for count in heard)


@pytest.mark.parametrize("batch", range(10))
async def test_b52_messages_that_arrive_as_the_turn_ends_are_neither_lost_nor_doubled(
    batch: int,
) -> None:
    """50 runs a batch: a turn ends within a millisecond of three messages, in any order."""
    dice = Random(batch)
    agent = PuppetAgent(takes_steering=batch % 2 == 0)
    async with running_host(agent, journal=SlowJournal(batch, 0.002)) as host:
        ann, bob = await room(host), await room(host, "bob", subscribe=())
        wanted: Counter[str] = Counter()
        for run in range(50):
            await ann.dispatch(C, started(f"t{run}"))
            puppet = await at_work(agent, f"t{run}")
            messages = [f"q{run}a", f"q{run}b", f"s{run}"]
            deeds = [*messages, "end", "withdraw"]
            dice.shuffle(deeds)
            withdrawal = 0
            for deed in deeds:
                peer = dice.choice((ann, bob))
                if deed == "end":
                    puppet.end(Done() if dice.random() < 0.9 else Failed("no"))
                elif deed == "withdraw":
                    withdrawal = await ann.dispatch(C, withdrawn(f"q{run}b"))
                else:
                    kind = "steering" if deed.startswith("s") else "queued"
                    await peer.dispatch(C, pending(deed, kind, deed))
                if dice.random() < 0.5:
                    await trio.sleep(0.0005)
            wanted.update(messages)
            if "rejectionReason" not in await answer(ann, withdrawal):
                wanted[f"q{run}b"] -= 1
            for _ in range(12):
                if agent.of[C].prompted is not None:
                    agent.of[C].end(Done())
                await trio.sleep(0.02)
            await bob.dispatch(C, pending(f"x{run}", "queued", f"x{run}"))  # after a failure
            wanted[f"x{run}"] += 1
            for _ in range(12):
                if agent.of[C].prompted is not None:
                    agent.of[C].end(Done())
                await trio.sleep(0.02)
        heard: Counter[str] = Counter()
        for made in agent.made:
            heard.update(p.message.text for p in made.prompts if p.message.text != "Tidy up")
            heard.update(message.text for message in made.steered)
        assert heard == +wanted
        started_turns, ended_turns = host.stream.turns()
        assert started_turns == ended_turns
        assert set(started_turns.values()) == {1}
        assert "queuedMessages" not in state_of(host, C)


async def test_r_9_86_the_queue_goes_on_after_a_cancel_and_waits_after_a_failure() -> None:
    agent = PuppetAgent()
    async with running_host(agent) as host:
        ann = await room(host)
        await ann.dispatch(C, started("t1"))
        await at_work(agent, "t1")
        for id in ("q1", "q2", "q3"):
            await ann.dispatch(C, pending(id))
        await ann.dispatch(C, cancelled("t1"))
        await trio.sleep(1)
        assert agent.of[C].prompts[-1].message.text == "message q1"
        agent.of[C].end(Failed("overloaded"))
        await trio.sleep(60)
        assert [each["id"] for each in state_of(host, C)["queuedMessages"]] == ["q2", "q3"]
        await ann.dispatch(C, {"type": "chat/queuedMessagesReordered", "order": ["q3"]})
        await trio.sleep(1)
        assert agent.of[C].prompts[-1].message.text == "message q3"


# ---- confirmations -------------------------------------------------------------------------------

OPTIONS = (
    ConfirmationOption(id="once", label="Once", kind="approve"),
    ConfirmationOption(id="never", label="Never", kind="deny"),
)

ANSWERS: list[tuple[Any, str | None]] = [
    (approved("t1", "c1", selectedOptionId="once"), None),
    (approved("t1", "c1"), None),
    (denied("t1", "c1", selectedOptionId="never", reasonMessage={"markdown": "No, *never*"}), None),
    (approved("t1", "c1", editedToolInput="ls"), None),
    (approved("t1", "c1", selectedOptionId="never"), "one to deny"),
    (denied("t1", "c1", selectedOptionId="once"), "one to approve"),
    (approved("t1", "c1", selectedOptionId="zzz"), "no option"),
    (approved("t1", "c9"), "no tool call"),
    (approved("t9", "c1"), "no tool call"),
    (approved("t1", "fixed", editedToolInput="ls"), "cannot be edited"),
    (approved("t1", "runs"), "not waiting"),
    (denied("t1", "done"), "not waiting"),
    ({"type": "chat/toolCallResultConfirmed", "turnId": "t1", "toolCallId": "done",
      "approved": True}, "not waiting"),
    ({"type": "chat/toolCallComplete", "turnId": "t1", "toolCallId": "runs",
      "result": {"success": True, "pastTenseMessage": "Ran"}}, "only the client"),
    ({"type": "chat/toolCallComplete", "turnId": "t1", "toolCallId": "c1",
      "result": {"success": True, "pastTenseMessage": "Ran"}}, "only the client"),
    ({"type": "chat/toolCallContentChanged", "turnId": "t1", "toolCallId": "runs",
      "content": []}, "only the client"),
]  # fmt: skip


@pytest.mark.parametrize(("action", "expected"), ANSWERS)
async def test_r_10_13_what_may_be_answered_to_a_call_that_asks(
    action: Any, expected: str | None
) -> None:
    agent = PuppetAgent()
    async with running_host(agent) as host:
        ann, bob = await room(host), await room(host, "bob")
        await ann.dispatch(C, started("t1"))
        puppet = await at_work(agent, "t1")
        puppet.say(
            ToolStarted("c1", "run", "Run"),
            ToolAsks("c1", "Run it", "rm -r x", editable=True, options=OPTIONS),
            ToolStarted("fixed", "run", "Run"),
            ToolAsks("fixed", "Run it"),
            ToolStarted("runs", "run", "Run"),
            ToolReady("runs", "Running"),
            ToolStarted("done", "run", "Run"),
            ToolFinished("done", success=True, message="Ran"),
        )
        await settled()
        before = state_of(host, C)
        why = await reason(ann, action)
        if expected is not None:
            assert expected in str(why)
            assert state_of(host, C) == before
            assert puppet.permissions == []
            return
        assert why is None
        [permission] = puppet.permissions
        assert permission.approved is action["approved"]
        assert permission.option_id == action.get("selectedOptionId")
        assert permission.input == action.get("editedToolInput")
        assert permission.reason == action.get("reasonMessage", {"markdown": None})["markdown"]
        assert [e["id"].rpartition("/")[2] for e in state_of(host, S)["inputNeeded"]] == ["fixed"]
        call = state_of(host, C)["activeTurn"]["responseParts"][0]["toolCall"]
        assert call["status"] == ("running" if action["approved"] else "cancelled")
        if action.get("editedToolInput"):
            assert call["toolInput"] == "ls"
        if action.get("selectedOptionId"):
            assert call["selectedOption"]["id"] == action["selectedOptionId"]
        assert "not waiting" in str(await reason(bob, approved("t1", "c1")))


async def test_r_5_21_of_two_answers_the_first_wins() -> None:
    agent = PuppetAgent()
    async with running_host(agent) as host:
        ann, bob = await room(host), await room(host, "bob")
        await ann.dispatch(C, started("t1"))
        puppet = await at_work(agent, "t1")
        puppet.say(ToolStarted("c1", "run", "Run"), ToolAsks("c1", "Run it"))
        await settled()
        one = await ann.dispatch(C, approved("t1", "c1"))
        two = await bob.dispatch(C, denied("t1", "c1"))
        answers = [await answer(ann, one), await answer(bob, two)]
        refused = ["rejectionReason" in params for params in answers]
        assert sorted(refused) == [False, True]
        assert [each.approved for each in puppet.permissions] == [refused[1]]


# ---- what the agent says -------------------------------------------------------------------------


async def test_quirk_34_parts_are_opened_before_text_and_kept_apart() -> None:
    agent = PuppetAgent()
    async with running_host(agent) as host:
        ann = await room(host)
        await ann.dispatch(C, started("t1"))
        puppet = await at_work(agent, "t1")
        ann.inbox.clear()
        puppet.say(ThoughtChunk("hm"), ThoughtChunk(", so"), TextChunk("I"), TextChunk(" see"))
        puppet.say(ToolStarted("c1", "look", "Look"), TextChunk("more"))
        await settled()
        assert types(ann, C) == [
            "chat/responsePart",
            "chat/reasoning",
            "chat/responsePart",
            "chat/delta",
            "chat/toolCallStart",  # it makes its own part (R-9.49)
            "chat/responsePart",
        ]
        parts = state_of(host, C)["activeTurn"]["responseParts"]
        assert [part["kind"] for part in parts] == ["reasoning", "markdown", "toolCall", "markdown"]
        assert len({part["id"] for part in parts if "id" in part}) == 3
        assert state_of(host, C)["turns"] == []


async def test_quirk_38_calls_end_inside_their_result_also_from_streaming() -> None:
    agent = PuppetAgent()
    async with running_host(agent) as host:
        ann = await room(host)
        await ann.dispatch(C, started("t1"))
        puppet = await at_work(agent, "t1")
        puppet.say(
            ToolStarted("c1", "look", "Look", "read"),
            ToolReady("c1", "Looking", '{"a": 1}'),
            ToolOutput("c1", ()),
            ToolFinished("c1", success=False, message="Looked", error="not there"),
            ToolStarted("c2", "look", "Look"),
            ToolFinished("c2", success=True, message="Looked"),
            ToolStarted("c2", "look", "Look"),  # a second start is not a second row (R-10.3)
        )
        await settled()
        one, two = (part["toolCall"] for part in state_of(host, C)["activeTurn"]["responseParts"])
        assert (one["status"], one["success"], one["confirmed"]) == (
            "completed",
            False,
            "not-needed",
        )
        assert one["error"]["message"] == "not there"
        assert one["_meta"]["toolKind"] == "read"
        assert (two["status"], two["success"]) == ("completed", True)
        ready = [a for a in actions(ann, C) if a["type"] == "chat/toolCallReady"]
        assert [a["invocationMessage"] for a in ready] == ["Looking", "Looked"]
        assert ready[0]["toolInput"] == '{"a": 1}'


async def test_b67_numbers_that_json_does_not_have_never_get_out() -> None:
    agent = PuppetAgent()
    async with running_host(agent) as host:
        ann = await room(host)
        await ann.dispatch(C, started("t1"))
        puppet = await at_work(agent, "t1")
        puppet.say(UsageReport(float("nan"), float("inf"), 5, extra={"cost": float("nan")}))
        puppet.say(TextChunk("fine"))
        await ann.expect_action("chat/responsePart")
        usage = state_of(host, C)["activeTurn"].get("usage", {})
        assert usage.get("cacheReadTokens") == 5
        assert "inputTokens" not in usage


async def test_a_turn_that_was_cancelled_while_its_agent_opened_leaves_nothing_behind() -> None:
    agent = PuppetAgent()
    agent.opens_in = 5.0
    async with running_host(agent) as host:
        ann = await room(host)
        await ann.dispatch(C, started("t1"))
        await ann.dispatch(C, cancelled("t1"))
        await ann.dispatch(C, started("t2"))
        await at_work(agent, "t2")
        agent.of[C].end(Done())
        await ending(ann, "t2")
        assert state_of(host, S)["lifecycle"] == "ready"
        assert [p.turn_id for made in agent.made for p in made.prompts] == ["t2"]
    assert all(puppet.closed for puppet in agent.made)


@pytest.mark.parametrize("after", [0, 1, 2, 3, 5, 8, 13, 21])
async def test_every_backend_that_was_opened_is_closed(after: int) -> None:
    """Whenever its chat ends or is killed, counted in scheduler steps from its creation."""
    for kill in (False, True):
        agent = PuppetAgent()
        async with running_host(agent) as host:
            ann = await room(host, subscribe=(S,))
            await ann.request("createChat", channel=S, chat=C2)
            await ann.dispatch(C2, started("t1"))
            for _ in range(after):
                await trio.lowlevel.checkpoint()
            if kill:
                sys.kill(host.system.ref(host.ledger.channels[C2].path))
            else:
                await ann.request("disposeChat", channel=C2)
            await trio.sleep(10)
        assert all(puppet.closed for puppet in agent.made)


# ---- what else a client may say ------------------------------------------------------------------

MANY: list[tuple[Any, str | None]] = [
    (started("new") | {"message": {"text": "x", "origin": {"kind": "agent"}}}, "of its user"),
    (started("new") | {"message": {"text": "x", "origin": {"kind": "automation"}}}, "of its user"),
    (started("new") | {"startedAt": "yesterday"}, "no time"),
    (started("new", queuedMessageId="q1"), "only the host"),
    (started("done"), "already started"),
    (cancelled("t1"), "no turn is running"),
    (cancelled("done"), "no turn is running"),
    ({"type": "chat/turnResume", "turnId": "done"}, "after an error"),
    ({"type": "chat/turnResume", "turnId": "zzz"}, "after an error"),
    ({"type": "chat/truncated", "turnId": "done"}, None),
    ({"type": "chat/truncated", "turnId": "zzz"}, "no completed turn zzz"),
    ({"type": "chat/truncated"}, None),
    (withdrawn("q9"), "is not waiting"),
    (withdrawn("s9", "steering"), "is not waiting"),
    (pending("q") | {"message": {"text": "x", "origin": {"kind": "tool"}}}, "of its user"),
    ({"type": "chat/draftChanged", "draft": {"text": "x", "origin": {"kind": "tool"}}}, "draft"),
    ({"type": "chat/inputAnswerChanged", "requestId": "r", "questionId": "q"}, "is open"),
    ({"type": "chat/inputCompleted", "requestId": "r", "response": "accept"}, "is open"),
    ({"type": "chat/workingDirectorySet", "directory": "file:///x"}, "working directories"),
    ({"type": "chat/workingDirectoryRemoved", "directory": "file:///x"}, None),
    ({"type": "chat/queuedMessagesReordered", "order": ["a"]}, None),
    ({"type": "chat/isReadChanged", "isRead": True}, None),
    ({"type": "chat/isArchivedChanged", "isArchived": True}, "archives its session"),
    ({"type": "chat/draftChanged", "draft": {"text": "x", "origin": {"kind": "user"}}}, None),
    ({"type": "session/titleChanged", "title": " "}, "blank"),
    ({"type": "session/titleChanged", "title": "x" * 1001}, "at most 1000 characters, not 1001"),
    (started("new") | {"message": {"text": "x", "origin": {"kind": "user"}, "attachments": [
        {"type": "chat", "label": "l", "resource": "ahp-chat:/never"}]}}, "does not exist"),
    (started("new") | {"message": {"text": "x", "origin": {"kind": "user"}, "attachments": [
        {"type": "chat", "label": "l", "resource": C, "endTurn": "zzz"}]}}, "no completed turn"),
    (started("new") | {"message": {"text": "x", "origin": {"kind": "user"}, "attachments": [
        {"type": "simple", "label": "l"}]}}, "no text for the model"),
]  # fmt: skip


@pytest.mark.parametrize(("action", "expected"), MANY)
async def test_the_validation_table_of_chat_actions(action: Any, expected: str | None) -> None:
    agent = PuppetAgent()
    async with running_host(agent) as host:
        ann = await room(host)
        await turn(ann, agent, "done", Done())
        await trio.sleep(1)
        before, title = state_of(host, C), state_of(host, S)["title"]
        why = await reason(ann, action)
        assert (why is None) == (expected is None), why
        if expected is not None:
            assert expected in str(why)
            assert state_of(host, C) == before
            assert state_of(host, S)["title"] == title


async def test_b50_a_second_start_while_a_turn_runs_is_refused_not_overwritten() -> None:
    agent = PuppetAgent()
    async with running_host(agent) as host:
        ann, bob = await room(host), await room(host, "bob")
        seqs = [
            (ann, await ann.dispatch(C, started("t1"))),
            (bob, await bob.dispatch(C, started("t2"))),
        ]
        answers = [(await answer(peer, seq)) for peer, seq in seqs]
        [refused] = [params for params in answers if "rejectionReason" in params]
        assert "queue the message" in refused["rejectionReason"]
        winner = "t1" if refused["action"]["turnId"] == "t2" else "t2"
        assert "running turn is" in str(await reason(ann, cancelled("t9")))
        await at_work(agent, winner)
        agent.of[C].end(Done())
        await ending(ann, winner)


async def test_r_9_63_only_a_resumable_error_of_the_last_turn_can_be_resumed() -> None:
    agent = PuppetAgent()
    async with running_host(agent) as host:
        ann = await room(host)
        await turn(ann, agent, "t1", Failed("no"))
        resume = {"type": "chat/turnResume", "turnId": "t1"}
        assert "cannot be resumed" in str(await reason(ann, resume))
        await turn(ann, agent, "t2", Failed("busy", resumable=True))
        assert "last turn" in str(await reason(ann, resume))
        assert await reason(ann, {**resume, "turnId": "t2"}) is None
        assert "running" in str(await reason(ann, {**resume, "turnId": "t2"}))
        (await at_work(agent, "t2")).end(Done())
        await ending(ann, "t2")
        assert state_of(host, C)["turns"][-1]["state"] == "complete"


async def test_quirk_22_a_title_sent_to_a_chat_renames_it_and_its_session() -> None:
    agent = PuppetAgent()
    async with running_host(agent) as host:
        ann = await room(host)
        await ann.request("createChat", channel=S, chat=C2)
        assert await reason(ann, {"type": "session/titleChanged", "title": "Mine"}) is None
        await ann.expect_action("session/titleChanged", channel=S)
        await ann.dispatch(C2, {"type": "session/titleChanged", "title": "Other"})
        await settled()
        state = state_of(host, S)
        assert [row["title"] for row in state["chats"]] == ["Mine", "Other"]
        assert state["title"] == "Mine"
        await ann.dispatch(C, started("t1", "Do it"))
        (await at_work(agent, "t1")).say(TitleProposed("The agent's name"))
        await ann.expect_action("session/titleChanged", channel=S)
        assert state_of(host, S)["chats"][0]["title"] == "The agent's name"


async def test_a_long_title_of_an_agents_is_cut() -> None:
    agent = PuppetAgent()
    async with running_host(agent) as host:
        ann = await room(host)
        await ann.dispatch(C, started("t1"))
        (await at_work(agent, "t1")).say(TitleProposed("x" * 5000))
        await settled()
        assert state_of(host, S)["title"] == "x" * 999 + "…"
