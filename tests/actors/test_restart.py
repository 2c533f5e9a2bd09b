"""A host that was killed and started again: who comes back to it finds everything (RULES 6)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import trio

from actors.host import Settings
from ahpd.agents import events as ev
from ahpd.protocol.inputs import ChatInputRequest, ChatInputTextQuestion
from ahpd.protocol.uris import ROOT, worker_chat
from supervisors import sys
from tests.actors.restarting import kept, reason, replayed, snapshots
from tests.actors.support import (
    C2,
    C,
    S,
    approved,
    at_work,
    cancelled,
    ending,
    message,
    pending,
    refused,
    room,
    settled,
    started,
    turn,
    withdrawn,
)
from tests.actors.talk import resumed, truncated

ASKS = (ev.ToolStarted("k", "shell", "Run"), ev.ToolAsks("k", "Run it?", "{}"))
QUESTION = ChatInputRequest(
    id="q", questions=(ChatInputTextQuestion(id="name", message="Name?", required=True),)
)


# ---- who comes back -----------------------------------------------------------------------------


async def test_a_known_client_is_answered_by_replay_its_refusals_included(tmp_path: Path) -> None:
    async with kept(tmp_path) as it:
        seen = it.host.ledger.seq
        refused_one = await it.ann.dispatch(C, cancelled("never-was"))
        accepted = await it.ann.dispatch(C, started("t1"))
        (await at_work(it.agent, "t1")).say(ev.TextChunk("Hello"))
        await it.restart()
        before = it.host.ledger.seq
        _, answer = await it.back(ROOT, S, C, seen=seen)
        found = {
            each["origin"]["clientSeq"]: each.get("rejectionReason")
            for each in answer["actions"]
            if "origin" in each
        }
        assert found[refused_one]
        assert found[accepted] is None
        numbers = [each["serverSeq"] for each in answer["actions"]]
        assert numbers == sorted(set(numbers))
        assert numbers[0] > seen
        assert numbers[-1] <= it.host.ledger.seq
        assert before == it.host.ledger.seq
        assert replayed(answer).count("chat/error") == 1
        assert answer["missing"] == []


async def test_another_clients_refusals_are_not_in_the_replay(tmp_path: Path) -> None:
    async with kept(tmp_path) as it:
        await room(it.host, "bob")
        await settled()
        seen = it.host.ledger.seq
        await it.ann.dispatch(C, cancelled("never-was"))
        await it.restart()
        _, answer = await it.back(ROOT, S, C, seen=seen, name="bob")
        assert "chat/turnCancelled" not in replayed(answer)


async def test_a_client_that_nobody_knows_is_told_so(tmp_path: Path) -> None:
    async with kept(tmp_path) as it:
        await it.restart()
        with refused(-32008, "not known"):
            await it.back(ROOT, name="eve")


async def test_a_number_above_the_current_one_gets_snapshots(tmp_path: Path) -> None:
    async with kept(tmp_path) as it:
        await it.restart()
        _, answer = await it.back(ROOT, S, C, seen=it.host.ledger.seq + 1)
        assert snapshots(answer).keys() == {ROOT, S, C}


async def test_a_channel_that_the_client_never_had_gets_snapshots_of_all(tmp_path: Path) -> None:
    async with kept(tmp_path, subscribe=(ROOT, S)) as it:
        await it.restart()
        _, answer = await it.back(ROOT, S, C)
        assert snapshots(answer).keys() == {ROOT, S, C}
        assert it.state(C) == snapshots(answer)[C]


async def test_what_the_window_has_passed_gets_snapshots(tmp_path: Path) -> None:
    async with kept(tmp_path, replay=3) as it:
        seen = it.host.ledger.seq
        for n in range(5):
            await it.ann.dispatch(C, {"type": "chat/draftChanged", "draft": message(f"d{n}")})
        await it.restart()
        _, answer = await it.back(ROOT, S, C, seen=it.host.ledger.seq - 2)
        assert len(answer["actions"]) == 2
        _, answer = await it.back(ROOT, S, C, seen=seen)
        assert snapshots(answer)[C]["draft"]["text"] == "d4"


async def test_what_was_unsubscribed_before_is_not_resumed(tmp_path: Path) -> None:
    async with kept(tmp_path) as it:
        await it.ann.notify("unsubscribe", channel=C)
        await it.restart()
        _, answer = await it.back(ROOT, S, C)
        assert answer["type"] == "snapshot"


async def test_it_keeps_the_version_that_was_negotiated_before(tmp_path: Path) -> None:
    async with kept(tmp_path) as it:
        old = await it.host.peer("old")
        await old.hello(versions=("0.9.0",))
        await it.restart()
        old, _ = await it.back(ROOT, name="old")
        (row,) = (await old.request("listSessions"))["items"]
        assert "chats" not in row
        await it.again(ROOT)
        (row,) = (await it.ann.request("listSessions"))["items"]
        assert "chats" in row


async def test_numbers_go_on_over_many_restarts(tmp_path: Path) -> None:
    async with kept(tmp_path) as it:
        highest = it.host.ledger.seq
        for n in range(5):
            await it.ann.dispatch(C, {"type": "chat/draftChanged", "draft": message(f"d{n}")})
            await it.restart()
            assert it.host.ledger.seq > highest
            highest = it.host.ledger.seq
            await it.back(ROOT, S, C)
            assert it.state(C)["draft"]["text"] == f"d{n}"
        await it.restart()
        await it.restart()
        assert it.host.ledger.seq == highest  # a start of its own says nothing new


# ---- what was under way -------------------------------------------------------------------------


async def test_a_turn_that_ran_ends_once_and_takes_along_what_was_open(tmp_path: Path) -> None:
    async with kept(tmp_path) as it:
        seen = it.host.ledger.seq
        await it.ann.dispatch(C, started("t1"))
        puppet = await at_work(it.agent, "t1")
        puppet.say(ev.TextChunk("Half an ans"), *ASKS, ev.QuestionsAsked(QUESTION))
        await settled()
        assert len(it.state(S)["inputNeeded"]) == 2
        await it.restart()
        _, answer = await it.back(ROOT, S, C, seen=seen)
        assert replayed(answer).count("chat/error") == 1
        chat = it.state(C)
        assert "activeTurn" not in chat
        (turn,) = chat["turns"]
        assert turn["state"] == "error"
        assert turn["duration"] >= 0
        call = next(p["toolCall"] for p in turn["responseParts"] if p["kind"] == "toolCall")
        assert call["status"] == "cancelled"
        error = turn["responseParts"][-1]
        assert error["kind"] == "error"
        assert it.state(S).get("inputNeeded", []) == []
        await it.restart()
        started_turns, ended_turns = it.host.stream.turns()
        assert started_turns == ended_turns == {"t1": 1}


async def test_a_turn_that_was_lost_can_be_resumed(tmp_path: Path) -> None:
    async with kept(tmp_path) as it:
        await it.ann.dispatch(C, started("t1"))
        await at_work(it.agent, "t1")
        await it.restart()
        await it.back(ROOT, S, C)
        await it.ann.dispatch(C, resumed("t1"))
        (await at_work(it.agent, "t1")).end(ev.Done())
        assert (await ending(it.ann, "t1"))["type"] == "chat/turnComplete"


async def test_the_duration_of_a_lost_turn_counts_the_time_without_a_host(tmp_path: Path) -> None:
    async with kept(tmp_path) as it:
        await it.ann.dispatch(C, started("t1"))
        await at_work(it.agent, "t1")
        await trio.sleep(2)
        await it.host.kill()
        await trio.sleep(3)
        await it.host.start()
        await settled()
        assert it.state(C)["turns"][0]["duration"] == pytest.approx(5000, abs=100)


async def test_a_worker_and_work_beside_the_turns_end_too(tmp_path: Path) -> None:
    async with kept(tmp_path) as it:
        await it.ann.dispatch(C, started("t1"))
        puppet = await at_work(it.agent, "t1")
        puppet.say(
            ev.ToolStarted("c", "task", "Look", kind="subagent"),
            ev.ToolReady("c", "Looking"),
            ev.WorkerStarted("w", "c", "Look around", prompt="Look at everything"),
        )
        await settled()
        worker = worker_chat(S, "c")
        assert "activeTurn" in it.state(worker)
        await it.restart()
        assert "activeTurn" not in it.state(worker)
        assert it.state(C).get("backgroundWork", []) == []
        started_turns, ended_turns = it.host.stream.turns()
        assert started_turns == ended_turns
        assert max(ended_turns.values()) == 1


async def test_the_queue_goes_on(tmp_path: Path) -> None:
    async with kept(tmp_path) as it:
        await it.ann.dispatch(C, started("t1"))
        await at_work(it.agent, "t1")
        for each in ("m1", "m2"):
            await it.ann.dispatch(C, pending(each))
        await it.restart()
        puppet = it.agent.of[C]
        assert puppet.prompted is not None
        assert puppet.prompted.message.text == "message m1"
        assert [each["id"] for each in it.state(C)["queuedMessages"]] == ["m2"]
        await it.back(ROOT, S, C)
        assert await it.why(pending("m1"))
        await it.restart()
        assert [t["state"] for t in it.state(C)["turns"]] == ["error", "error"]
        puppet = it.agent.of[C]
        assert puppet.prompted is not None
        assert puppet.prompted.message.text == "message m2"


async def test_a_session_that_was_being_made_is_made(tmp_path: Path) -> None:
    async with kept(tmp_path) as it:
        it.agent.opens_in = 60.0
        await it.ann.request("createSession", channel="puppet:/slow")
        await settled()
        assert it.state("puppet:/slow")["lifecycle"] == "creating"
        await it.restart()
        assert it.state("puppet:/slow")["lifecycle"] == "ready"


async def test_turns_that_the_agent_has_still_to_forget(tmp_path: Path) -> None:
    async with kept(tmp_path) as it:
        for each in ("t1", "t2"):
            await turn(it.ann, it.agent, each, ev.Done())
        assert await it.why(truncated("t1")) is None
        await it.restart()
        await it.again(ROOT, S, C)
        await it.ann.dispatch(C, started("t3"))
        puppet = await at_work(it.agent, "t3")
        assert puppet.rewinds == ["t1"]
        assert [t["id"] for t in it.state(C)["turns"]] == ["t1"]


# ---- what is sent again -------------------------------------------------------------------------


async def test_a_resend_is_no_second_wish(tmp_path: Path) -> None:
    async with kept(tmp_path) as it:
        await turn(it.ann, it.agent, "t1", ev.Done())
        await it.ann.dispatch(C, started("t2"))
        (await at_work(it.agent, "t2")).say(*ASKS)
        await it.ann.dispatch(C, pending("m1"))
        await it.ann.dispatch(C, pending("m2"))
        await it.ann.dispatch(C, withdrawn("m2"))
        await it.ann.dispatch(C, approved("t2", "k"))
        await settled()
        for _ in range(2):
            await it.restart()
            await it.back(ROOT, S, C)
            for action in (started("t1"), started("t2"), pending("m1"), approved("t2", "k")):
                assert await it.why(action), action
        started_turns, ended_turns = it.host.stream.turns()
        assert started_turns["t1"] == started_turns["t2"] == 1
        assert ended_turns["t1"] == ended_turns["t2"] == 1


async def test_what_was_not_kept_is_done_when_it_is_sent_again(tmp_path: Path) -> None:
    """A dispatch that died with the process is not known, and so it is taken."""
    async with kept(tmp_path) as it:
        it.host.journal.longest = 1.0  # type: ignore[attr-defined]
        await it.ann.dispatch(C, started("t1"))
        await settled()
        await it.restart_now()
        _, answer = await it.back(ROOT, S, C)
        assert answer["type"] == "replay"
        assert await it.why(started("t1")) is None
        assert it.host.stream.turns()[0] == {"t1": 1}


# ---- who takes part -----------------------------------------------------------------------------


def joined(client: str) -> Any:
    return {"type": "session/activeClientSet", "activeClient": {"clientId": client, "tools": []}}


async def test_who_took_part_still_does_and_leaves_when_its_time_is_up(tmp_path: Path) -> None:
    async with kept(tmp_path) as it:
        bob = await room(it.host, "bob")
        await it.ann.dispatch(S, joined("ann"))
        await bob.dispatch(S, joined("bob"))
        await it.restart()
        assert [c["clientId"] for c in it.state(S)["activeClients"]] == ["ann", "bob"]
        await trio.sleep(20)
        await it.back(ROOT, S, C)
        await trio.sleep(15)
        assert [c["clientId"] for c in it.state(S)["activeClients"]] == ["ann"]


async def test_a_client_whose_time_was_up_does_not_come_back_with_the_host(tmp_path: Path) -> None:
    async with kept(tmp_path) as it:
        await it.ann.dispatch(S, joined("ann"))
        await settled()
        it.ann.cut()
        await trio.sleep(35)
        await it.restart()
        assert it.state_or_none(S) is None or it.state(S)["activeClients"] == []
        await it.back(ROOT, S, C)
        assert it.state(S)["activeClients"] == []


async def test_a_grace_that_had_begun_begins_again(tmp_path: Path) -> None:
    async with kept(tmp_path, settings=Settings(grace=10.0)) as it:
        await it.ann.dispatch(S, joined("ann"))
        await settled()
        it.ann.cut()
        await trio.sleep(6)
        await it.restart()
        await trio.sleep(6)
        assert len(it.state(S)["activeClients"]) == 1
        await trio.sleep(6)
        assert it.state(S)["activeClients"] == []


# ---- what the host alone knows ------------------------------------------------------------------


async def test_drafts_titles_and_bits_come_back(tmp_path: Path) -> None:
    async with kept(tmp_path) as it:
        await it.second_chat("u1")
        for channel, action in (
            (C, {"type": "chat/draftChanged", "draft": message("half a thou")}),
            (S, {"type": "session/titleChanged", "title": "Called so"}),
            (S, {"type": "session/isArchivedChanged", "isArchived": True}),
            (C2, {"type": "chat/isReadChanged", "isRead": True}),
        ):
            assert await it.why(action, channel) is None
        await settled()
        before = {uri: it.state(uri) for uri in (S, C, C2)}
        listed = (await it.ann.request("listSessions"))["items"]
        await it.restart()
        await it.again(ROOT)
        assert (await it.ann.request("listSessions"))["items"] == listed
        assert it.loaded() == []
        await it.ann.subscribe(S)
        assert {uri: it.state(uri) for uri in (S, C, C2)} == before
        assert (await it.ann.request("listSessions"))["items"] == listed


async def test_settings_that_were_changed_stay_changed(tmp_path: Path) -> None:
    async with kept(tmp_path) as it:
        action = {"type": "root/configChanged", "config": {"clientQueueBytes": 2 << 20}}
        assert await it.why(action, ROOT) is None
        await it.restart()
        assert it.state(ROOT)["config"]["values"]["clientQueueBytes"] == 2 << 20
        assert it.host.tables.settings.client_queue_bytes == 2 << 20
        it.host.settings = Settings(client_queue_bytes=4 << 20)
        await it.restart()
        assert it.state(ROOT)["config"]["values"]["clientQueueBytes"] == 4 << 20


@pytest.mark.parametrize("kind", ["fork", "sideChat"])
async def test_a_chat_made_from_another_knows_what_that_said(tmp_path: Path, kind: str) -> None:
    async with kept(tmp_path) as it:
        await turn(it.ann, it.agent, "t1", ev.Done())
        await turn(it.ann, it.agent, "t2", ev.Done())
        source = {"kind": kind, "chat": C, "turnId": "t1"}
        await it.ann.request("createChat", channel=S, chat=C2, source=source)
        await it.restart()
        await it.again(ROOT, S, C2)
        await it.ann.dispatch(C2, started("u1"))
        request = (await at_work(it.agent, "u1", C2)).request
        told = request.history if kind == "fork" else request.context
        assert [each.id for each in told] == ["t1"]
        if kind == "fork":
            assert await it.why(started("t1"), C2)


async def test_what_was_attached_to_a_message_that_waits(tmp_path: Path) -> None:
    async with kept(tmp_path) as it:
        await it.second_chat("u1")
        await it.ann.dispatch(C, started("t1"))
        await at_work(it.agent, "t1")
        waiting = pending("m1")
        waiting["message"]["attachments"] = [{"type": "chat", "label": "it", "resource": C2}]
        assert await it.why(waiting) is None
        await turn(it.ann, it.agent, "u2", ev.Done(), C2)
        await it.restart()
        prompt = it.agent.of[C].prompted
        assert prompt is not None
        assert [[t.id for t in each.turns] for each in prompt.attached] == [["u1"]]  # type: ignore[union-attr]


async def test_a_chat_that_moved_is_where_it_went(tmp_path: Path) -> None:
    async with kept(tmp_path) as it:
        await it.second_chat("u1")
        await settled()
        moved = await it.ann.request("moveChat", channel=C2, destination={"kind": "newSession"})
        there = moved["session"]
        await settled()
        await it.restart()
        await it.again(ROOT, C2)
        assert it.loaded() == [there]
        assert it.state(there)["defaultChat"] == C2
        await turn(it.ann, it.agent, "u2", ev.Done(), C2)
        assert it.agent.of[C2].request.session == there
        await it.ann.subscribe(S)
        assert [row["resource"] for row in it.state(S)["chats"]] == [C]


# ---- sessions that nobody has asked for ---------------------------------------------------------


ATTACHED: Any = {"type": "chat", "label": "that", "resource": C}


@pytest.mark.parametrize(
    "how", ["subscribe", "dispatch", "createChat", "moveChat", "dispose", "attachment", "fetch"]
)
async def test_a_session_is_loaded_when_somebody_asks(tmp_path: Path, how: str) -> None:
    async with kept(tmp_path) as it:
        other = "puppet:/other"
        await it.second_chat("u1")
        await turn(it.ann, it.agent, "t1", ev.Done())
        await it.ann.request("createSession", channel=other)
        await it.restart()
        await it.again(ROOT)
        assert it.loaded() == []
        listed = (await it.ann.request("listSessions"))["items"]
        assert {each["resource"] for each in listed} == {S, other}
        assert it.loaded() == []
        match how:
            case "subscribe":
                snapshot = await it.ann.subscribe(C)
                assert [t["id"] for t in snapshot["state"]["turns"]] == ["t1"]
            case "dispatch":
                draft = {"type": "chat/draftChanged", "draft": message("new")}
                await it.ann.dispatch(C, draft)
                await settled()
                assert it.state(C)["draft"]["text"] == "new"
            case "createChat":
                await it.ann.request("createChat", channel=S, chat="ahp-chat:/third")
                assert len(it.state(S)["chats"]) == 3
            case "moveChat":
                to = {"kind": "session", "session": other}
                await it.ann.request("moveChat", channel=C2, destination=to)
                assert set(it.loaded()) == {S, other}
                assert it.state(other)["chats"][0]["resource"] == C2
            case "dispose":
                await it.ann.request("disposeSession", channel=S)
                await it.restart()
                await it.again(ROOT)
                listed = (await it.ann.request("listSessions"))["items"]
                assert [each["resource"] for each in listed] == [other]
                with refused(-32001):
                    await it.ann.subscribe(S)
                return
            case "attachment":
                there = "ahp-chat:/there"
                await it.ann.request("createChat", channel=other, chat=there)
                assert it.loaded() == [other]
                asking = started("v1")
                asking["message"]["attachments"] = [ATTACHED]
                await it.ann.dispatch(there, asking)
                prompt = (await at_work(it.agent, "v1", there)).prompted
                assert prompt is not None
                assert [t.id for t in prompt.attached[0].turns] == ["t1"]  # type: ignore[union-attr]
            case _:
                with refused(-32602):
                    await it.ann.request("fetchTurns", channel=C, cursor="none")
        assert S in it.loaded()


async def test_the_uri_of_a_session_that_is_not_loaded_is_in_use(tmp_path: Path) -> None:
    async with kept(tmp_path) as it:
        await it.restart()
        await it.again(ROOT)
        with refused(-32003):
            await it.ann.request("createSession", channel=S)
        assert it.state(ROOT)["activeSessions"] == 1


async def test_a_chat_that_was_ended_stays_ended_under_its_name_for_a_new_one(
    tmp_path: Path,
) -> None:
    async with kept(tmp_path) as it:
        await it.second_chat("u1")
        await it.ann.request("disposeChat", channel=C2)
        await it.restart()
        _, answer = await it.back(ROOT, S, C, C2)
        assert answer["missing"] == [C2]
        await it.ann.request("createChat", channel=S, chat=C2)
        assert it.state(C2)["turns"] == []
        await it.restart()
        await it.again(C2)
        assert it.state(C2)["turns"] == []
        assert reason(await it.ann.answered(await it.ann.dispatch(C2, started("u1")))) is None


@pytest.mark.parametrize("how", ["kill", "at its start"])
async def test_a_session_is_there_though_the_catalogue_fails_over_it(
    tmp_path: Path, how: str
) -> None:
    async with kept(tmp_path) as it:
        await it.restart()
        it.host.journal.longest = 1.0  # type: ignore[attr-defined]
        peer = await it.host.peer("ann")
        if how == "at its start":
            sys.kill(it.host.system.ref("catalogue"))
        call = await peer.call(
            "reconnect",
            clientId="ann",
            lastSeenServerSeq=it.host.ledger.seq,
            subscriptions=[ROOT, S, C],
        )
        await settled()
        assert it.loaded() == []
        sys.kill(it.host.system.ref("catalogue"))
        answer = await peer.answer_to(call)
        assert answer["type"] == "replay"
        assert answer["missing"] == []


@pytest.mark.parametrize("running", [False, True])
async def test_a_session_whose_agent_this_host_has_not_is_kept_read_and_ended(
    tmp_path: Path, *, running: bool
) -> None:
    async with kept(tmp_path) as it:
        await turn(it.ann, it.agent, "t1", ev.Done())
        if running:
            await it.ann.dispatch(C, started("t2"))
            await at_work(it.agent, "t2")
        await it.restart(provider="another")
        await it.again(ROOT)
        await it.ann.subscribe(S)
        snapshot = await it.ann.subscribe(C)
        states = [each["state"] for each in snapshot["state"]["turns"]]
        assert states == (["complete", "error"] if running else ["complete"])
        assert await it.why({"type": "session/titleChanged", "title": "Old"}, S) is None
        await it.ann.dispatch(C, started("t3"))
        assert "without the agent puppet" in str(await ending(it.ann, "t3"))
        with refused(-32602, "puppet"):
            await it.ann.request("createChat", channel=S, chat=C2)
        await it.restart()
        await it.again(ROOT, C)
        await turn(it.ann, it.agent, "t4", ev.Done())
        await it.restart(provider="another")
        await it.again(ROOT)
        await it.ann.request("disposeSession", channel=S)
        await settled()
        assert (await it.ann.request("listSessions"))["items"] == []
