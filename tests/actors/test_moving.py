"""Moving chats: within a session, to another, to a new one; and every way it can go wrong."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest
import trio

from ahpd.agents.events import Done, Failed
from ahpd.protocol.model import JSON
from ahpd.protocol.root import MultipleWorkingDirectoriesCapability
from ahpd.protocol.uris import ROOT, URI, annotations_of
from supervisors.faults import Fault, FaultKind, Injection, Plan
from tests.actors.support import (
    C2,
    S2,
    C,
    S,
    a_worker,
    actions,
    at_work,
    cancelled,
    channel_of,
    ending,
    message,
    pending,
    refused,
    room,
    settled,
    started,
    turn,
    types,
)
from tests.harness import PuppetAgent, RawPeer, Refused, RunningHost, differences, running_host
from tests.harness.replicas import state_of

C3 = "ahp-chat:/third"
NEW = {"kind": "newSession"}


def to(session: URI, after: URI | None = None) -> dict[str, Any]:
    made: dict[str, Any] = {"kind": "session", "session": session}
    return made if after is None else {**made, "after": after}


async def move(peer: RawPeer, destination: JSON, chat: URI = C2) -> str:
    result = await peer.request("moveChat", channel=chat, destination=destination)
    session: str = result["session"]
    assert result == {"session": session}
    return session


def order(host: RunningHost, session: URI) -> list[str]:
    return [row["resource"] for row in state_of(host, session)["chats"]]


def chat_actors(host: RunningHost, session: URI) -> list[str]:
    """The paths of the chats' actors that run for a session."""
    base = channel_of(host, session).path.rpartition("/")[0]
    return host.system.registry.children(f"{base}/chat")


async def two_sessions(
    host: RunningHost, agent: PuppetAgent, *turns: str, directories: Any = ("file:///w",)
) -> RawPeer:
    """Somebody in two sessions; the first has a second chat, which has these turns."""
    ann = await host.peer("ann")
    await ann.hello(subscribe=(ROOT,))
    for session in (S, S2):
        await ann.request("createSession", channel=session, workingDirectories=list(directories))
    await settled()
    await ann.request("createChat", channel=S, chat=C2)
    for channel in (S, S2, C, C2):
        await ann.subscribe(channel)
    for turn_id in turns:
        await turn(ann, agent, turn_id, Done(), C2)
    await settled()
    ann.inbox.clear()
    return ann


# ---- which chats say that they can be moved -----------------------------------------------------


async def test_a_chat_says_whether_it_can_be_moved_whenever_that_changes() -> None:
    agent = PuppetAgent()
    async with running_host(agent) as host:
        ann = await two_sessions(host, agent)
        assert state_of(host, C2)["movable"] is True
        assert [row.get("movable") for row in state_of(host, S)["chats"]] == [None, True]

        await ann.dispatch(C2, started("t1"))
        puppet = await at_work(agent, "t1", C2)
        for movable in (False, True):
            said = await ann.expect_action("chat/movableChanged", channel=C2)
            assert said["action"] == {"type": "chat/movableChanged", "movable": movable}
            row = await ann.wait(
                lambda it: (
                    it.get("params", {}).get("action", {}).get("chat") == C2
                    and "movable" in it["params"]["action"]["changes"]
                )
            )
            assert row["params"]["action"]["changes"]["movable"] is movable
            assert row["params"]["serverSeq"] > said["serverSeq"]
            puppet.end(Done())
            await settled()
        assert "chat/movableChanged" not in types(ann, C)


async def test_the_successor_of_a_default_chat_can_no_longer_be_moved() -> None:
    async with running_host(agent := PuppetAgent()) as host:
        ann = await two_sessions(host, agent)
        await ann.request("disposeChat", channel=C)
        assert state_of(host, C2)["movable"] is False
        with refused(-32602, "default chat"):
            await move(ann, to(S2))


async def test_a_chat_of_an_agent_that_cannot_resume_never_says_that_it_can_be_moved() -> None:
    agent = PuppetAgent(can_resume=False)
    async with running_host(agent) as host:
        ann = await two_sessions(host, agent, "t1")
        assert "movable" not in state_of(host, C2)
        with refused(-32602, "puppet", "another place"):
            await move(ann, to(S2))


# ---- within a session ---------------------------------------------------------------------------


async def test_within_a_session_only_the_order_changes() -> None:
    agent = PuppetAgent()
    async with running_host(agent) as host:
        ann = await two_sessions(host, agent, "t1")
        await ann.request("createChat", channel=S, chat=C3)
        await settled()
        before, path = state_of(host, C2), channel_of(host, C2).path
        puppet = agent.of[C2]
        for after, expected in (
            (C3, [C, C3, C2]),
            (None, [C2, C, C3]),
            (C, [C, C2, C3]),
        ):
            ann.inbox.clear()
            assert await move(ann, to(S, after)) == S
            await settled()
            assert order(host, S) == expected
            assert actions(ann, S) == [{"type": "session/chatsReordered", "chats": expected}]
            told = await ann.expect("root/sessionSummaryChanged", session=S)
            assert [row["resource"] for row in told["changes"]["chats"]] == expected
        assert state_of(host, C2) == before
        assert channel_of(host, C2).path == path
        assert not puppet.closed
        ann.inbox.clear()
        assert await move(ann, to(S, C)) == S  # where it is
        await settled()
        assert actions(ann) == []


# ---- to another session -------------------------------------------------------------------------


@pytest.mark.parametrize("after", [None, "default"])
async def test_to_another_session_the_chat_keeps_its_name_its_state_and_its_listeners(
    after: str | None,
) -> None:
    agent = PuppetAgent()
    async with running_host(agent) as host:
        ann = await two_sessions(host, agent, "t1", "t2")
        other = state_of(host, S2)["defaultChat"]
        before, old = state_of(host, C2), agent.of[C2]
        (row,) = [row for row in state_of(host, S)["chats"] if row["resource"] == C2]
        async with host.client("laptop", subscriptions=(ROOT, S, S2, C2)) as laptop:
            await settled()
            assert await move(ann, to(S2, other if after else None)) == S2
            await settled()
            expected = [other, C2] if after else [C2, other]
            assert (order(host, S), order(host, S2)) == ([C], expected)
            assert state_of(host, C2) == before
            assert [a["type"] for a in actions(ann)] == [
                "session/chatRemoved",
                "session/chatAdded",
                "session/chatsReordered",
            ]
            assert actions(ann, S) == [{"type": "session/chatRemoved", "chat": C2}]
            added, reordered = actions(ann, S2)
            assert added["summary"] == row
            assert reordered["chats"] == expected
            frames = [it["method"] for it in ann.inbox if "method" in it]
            assert frames[:3] == ["action"] * 3
            assert frames[3:] == ["root/sessionSummaryChanged"] * 2
            assert old.closed

            # Its listeners still hear it, and dispatches reach it.
            await turn(ann, agent, "t3", Done(), C2)
            assert agent.of[C2].request.session == S2
            assert [each["id"] for each in state_of(host, C2)["turns"]] == ["t1", "t2", "t3"]
            await settled()
            assert differences(laptop, host) == []
        assert len(chat_actors(host, S)) == 1
        assert len(chat_actors(host, S2)) == 2


async def test_a_chat_moves_there_and_back_and_the_sessions_end_without_it() -> None:
    agent = PuppetAgent()
    async with running_host(agent) as host:
        ann = await two_sessions(host, agent, "t1")
        for session in (S2, S, S2):
            assert await move(ann, to(session)) == session
            await ann.request("createChat", channel=S, chat=f"{C3}-{session}-{len(order(host, S))}")
        await ann.request("disposeSession", channel=S)
        await turn(ann, agent, "t2", Done(), C2)
        assert [each["id"] for each in state_of(host, C2)["turns"]] == ["t1", "t2"]
        await ann.request("disposeSession", channel=S2)
        with refused(-32008):
            await ann.subscribe(C2)


async def test_a_fork_and_its_waiting_meanings_go_along() -> None:
    agent = PuppetAgent()
    async with running_host(agent) as host:
        ann = await two_sessions(host, agent, "t1")
        source = {"kind": "fork", "chat": C2, "turnId": "t1"}
        await ann.request("createChat", channel=S, chat=C3, source=source)
        await ann.subscribe(C3)
        await move(ann, to(S2), C3)
        await turn(ann, agent, "u1", Done(), C3)
        assert [each.id for each in agent.of[C3].request.history] == ["t1"]
        assert state_of(host, C3)["origin"] == source


async def test_a_rename_and_flags_after_a_move_are_the_new_sessions() -> None:
    agent = PuppetAgent()
    async with running_host(agent) as host:
        ann = await two_sessions(host, agent, "t1")
        await ann.dispatch(C2, {"type": "session/titleChanged", "title": "Before"})
        await settled()
        await move(ann, to(S2))
        await ann.dispatch(C2, {"type": "session/titleChanged", "title": "After"})
        await ann.dispatch(C2, {"type": "chat/isArchivedChanged", "isArchived": True})
        await settled()
        row = next(row for row in state_of(host, S2)["chats"] if row["resource"] == C2)
        assert row["title"] == "After"
        assert row["status"] & 64
        listed = (await ann.request("listSessions"))["items"]
        (there,) = [each for each in listed if each["resource"] == S2]
        (compact,) = [each for each in there["chats"] if each["resource"] == C2]
        assert (compact["title"], compact["status"]) == (row["title"], row["status"])


async def test_workers_go_with_the_chat_they_work_for() -> None:
    worker, inner, other = "ahp-chat:/worker", "ahp-chat:/inner", "ahp-chat:/other"
    agent = PuppetAgent()
    async with running_host(agent) as host:
        ann = await two_sessions(host, agent, "t1")
        await a_worker(host, C2, worker)
        await a_worker(host, worker, inner)
        await a_worker(host, C, other)
        states = [state_of(host, uri) for uri in (C2, worker, inner)]
        with refused(-32602, "worker"):
            await move(ann, to(S2), worker)
        ann.inbox.clear()
        default = state_of(host, S2)["defaultChat"]
        await move(ann, to(S2, default))
        await settled()
        assert order(host, S) == [C, other]
        assert order(host, S2) == [default, C2, worker, inner]
        assert [state_of(host, uri) for uri in (C2, worker, inner)] == states
        assert types(ann, S) == ["session/chatRemoved"] * 3
        assert types(ann, S2) == ["session/chatAdded"] * 3 + ["session/chatsReordered"]
        assert len(chat_actors(host, S2)) == 2
        await ann.subscribe(inner)
        await ann.answered(
            await ann.dispatch(inner, {"type": "chat/isReadChanged", "isRead": True})
        )
        assert state_of(host, inner)["status"] & 32


# ---- to a new session ---------------------------------------------------------------------------


async def test_a_new_session_has_the_chat_as_its_default_one_under_its_old_name() -> None:
    agent = PuppetAgent()
    async with running_host(agent) as host:
        ann = await two_sessions(host, agent, "t1")
        await a_worker(host, C2, "ahp-chat:/worker")
        ann.inbox.clear()
        before = state_of(host, C2)
        session = await move(ann, NEW)
        await settled()
        assert session not in (S, S2)
        assert session.startswith("puppet:/")
        assert state_of(host, C2) == {**before, "movable": False}
        state = (await ann.subscribe(session))["state"]
        assert state["defaultChat"] == C2
        assert state["lifecycle"] == "ready"
        assert state["workingDirectories"] == ["file:///w"]
        assert state["title"] == "Tidy up"
        assert [row["resource"] for row in state["chats"]] == [C2, "ahp-chat:/worker"]
        assert state["chats"][0]["movable"] is False
        assert (await ann.subscribe(annotations_of(session)))["state"] == {"annotations": []}
        added = await ann.expect("root/sessionAdded")
        assert added["summary"]["resource"] == session
        assert added["summary"]["defaultChat"] == C2
        counted = await ann.expect_action("root/activeSessionsChanged")
        assert counted["action"]["activeSessions"] == 3
        assert types(ann, S) == ["session/chatRemoved"] * 2
        listed = {row["resource"] for row in (await ann.request("listSessions"))["items"]}
        assert listed == {S, S2, session}

        await turn(ann, agent, "t2", Done(), C2)
        assert agent.of[C2].request.session == session
        await ann.request("createChat", channel=session, chat=C3)
        assert order(host, session) == [C2, "ahp-chat:/worker", C3]
        with refused(-32602, "default chat"):
            await move(ann, to(S))


# ---- refusals -----------------------------------------------------------------------------------


async def test_a_move_that_is_refused_says_why_and_changes_nothing() -> None:
    agent, others = PuppetAgent(), PuppetAgent("others")
    gone = "puppet:/gone"
    async with running_host(agent, others, provoked=["c2h"]) as host:
        ann = await two_sessions(host, agent, "t1")
        await ann.request("createSession", channel="others:/o", provider="others")
        await ann.request("createSession", channel="puppet:/bare")
        await settled()
        there = state_of(host, S2)["defaultChat"]
        ann.inbox.clear()
        before = [state_of(host, uri) for uri in (S, S2, C, C2)]
        for chat, destination, words in (
            (C, to(S2), ("default chat",)),
            (C, to(S, C2), ("default chat",)),
            (C2, to(gone), ("no session", gone)),
            (C2, to(C), ("no session",)),
            (C2, to(S, there), ("has no chat", there)),
            (C2, to(S2, C), ("has no chat", C)),
            (C2, to(S, C2), ("itself",)),
            (C2, to(S2, C2), ("itself",)),
            (C2, to(S, "ahp-chat:/none"), ("has no chat",)),
            (C2, to("others:/o"), ("agent others",)),
            (C2, to("puppet:/bare"), ("file:///w",)),
            (C2, {"kind": "elsewhere"}, ("elsewhere",)),
        ):
            with refused(-32602, *words):
                await move(ann, destination, chat)
        for chat in ("ahp-chat:/none", S):
            with refused(-32008, chat):
                await move(ann, NEW, chat)
        await settled()
        assert [state_of(host, uri) for uri in (S, S2, C, C2)] == before
        assert actions(ann) == []


async def test_a_busy_chat_is_not_moved() -> None:
    agent = PuppetAgent()
    async with running_host(agent) as host:
        ann = await two_sessions(host, agent)
        await a_worker(host, C2, "ahp-chat:/worker")
        await ann.dispatch(C2, started("t1"))
        puppet = await at_work(agent, "t1", C2)
        with refused(-32602, "turn is running"):
            await move(ann, to(S2))
        puppet.deaf = True
        await ann.dispatch(C2, cancelled("t1"))
        await ending(ann, "t1")
        with refused(-32602, "not stopped yet"):
            await move(ann, to(S2))
        puppet.hear()
        await settled()
        # After a failure the queue waits for a person; so does the move.
        await ann.dispatch(C2, started("t2"))
        await at_work(agent, "t2", C2)
        await ann.dispatch(C2, pending("m1"))
        await settled()
        puppet.end(Failed("no"))
        await ending(ann, "t2")
        with refused(-32602, "messages are waiting"):
            await move(ann, NEW)
        assert order(host, S) == [C, C2, "ahp-chat:/worker"]


async def test_a_session_that_failed_or_is_still_starting_takes_no_chat() -> None:
    agent = PuppetAgent()
    async with running_host(agent) as host:
        ann = await two_sessions(host, agent, directories=())
        agent.opens_in = 5.0
        await ann.request("createSession", channel="puppet:/slow")
        with refused(-32602, "not running"):
            await move(ann, to("puppet:/slow"))
        agent.broken = "no"
        await trio.sleep(10)
        with refused(-32602, "not running"):
            await move(ann, to("puppet:/slow"))


async def test_directories_of_the_chats_own_are_what_has_to_be_there() -> None:
    agent = PuppetAgent(directories=MultipleWorkingDirectoriesCapability())
    async with running_host(agent) as host:
        ann = await two_sessions(host, agent, directories=("file:///w", "file:///v"))
        await ann.request("createSession", channel="puppet:/v", workingDirectories=["file:///v"])
        await settled()
        with refused(-32602, "file:///w"):
            await move(ann, to("puppet:/v"))
        await ann.dispatch(C2, {"type": "chat/workingDirectorySet", "directory": "file:///v"})
        assert await move(ann, to("puppet:/v")) == "puppet:/v"


# ---- while others do things ---------------------------------------------------------------------


async def test_what_is_dispatched_before_and_after_a_move_arrives_in_order() -> None:
    agent = PuppetAgent()
    async with running_host(agent) as host:
        ann = await two_sessions(host, agent, "t1")
        bob = await room(host, "bob", subscribe=(C2,))
        drafts, moving = [], 0
        for number in range(40):
            peer = (ann, bob)[number % 2]
            draft = {"type": "chat/draftChanged", "draft": message(f"draft {number}")}
            drafts.append((peer, await peer.dispatch(C2, draft, 100 + number)))
            if number == 20:
                moving = await ann.call("moveChat", channel=C2, destination=to(S2))
        numbers: dict[RawPeer, list[int]] = {ann: [], bob: []}
        for peer, seq in drafts:
            answer = await peer.answered(seq)
            assert "rejectionReason" not in answer["params"]
            numbers[peer].append(answer["params"]["serverSeq"])
        assert all(each == sorted(each) for each in numbers.values())
        assert (await ann.answer_to(moving))["session"] == S2


async def test_a_turn_that_was_sent_first_is_not_lost_to_a_move() -> None:
    """Whichever comes first, the other finds things as they then are."""
    agent = PuppetAgent()
    async with running_host(agent) as host:
        ann = await two_sessions(host, agent)
        await ann.dispatch(C2, started("t1"))
        with refused(-32602, "turn is running"):
            await move(ann, to(S2))
        (await at_work(agent, "t1", C2)).end(Done())
        await ending(ann, "t1")
        await settled()
        moving = await ann.call("moveChat", channel=C2, destination=to(S2))
        await ann.dispatch(C2, started("t2"))
        with suppress(Refused):
            assert (await ann.answer_to(moving))["session"] == S2
        (await at_work(agent, "t2", C2)).end(Done())
        assert (await ending(ann, "t2"))["type"] == "chat/turnComplete"


async def test_two_moves_of_one_chat_at_once_end_in_one_place() -> None:
    agent = PuppetAgent()
    async with running_host(agent) as host:
        ann = await two_sessions(host, agent, "t1")
        bob = await room(host, "bob", subscribe=())
        first = await ann.call("moveChat", channel=C2, destination=to(S2))
        second = await bob.call("moveChat", channel=C2, destination=NEW)
        results = []
        for peer, id in ((ann, first), (bob, second)):
            try:
                results.append((await peer.answer_to(id))["session"])
            except Refused:
                results.append(None)
        await settled()
        assert any(results)
        owner = channel_of(host, C2).owner
        holding = [
            uri
            for uri, channel in host.ledger.channels.items()
            if channel.kind == "session" and C2 in order(host, uri)
        ]
        assert holding == [owner]
        await turn(ann, agent, "t2", Done(), C2)


# ---- faults -------------------------------------------------------------------------------------

BASE, BASE2 = f"session/{S[-36:]}", f"session/{S2[-36:]}"
WORKER = "ahp-chat:/worker"
#: Who takes part in a move: both sessions, the chat and its worker where they are and where they
#: come to, and those beside.
PARTS = (
    f"{BASE}/session", f"{BASE}/chat/1", f"{BASE}/chat/2",
    f"{BASE2}/session", f"{BASE2}/chat/1", f"{BASE2}/chat/2",
    "session/*", "catalogue", "root", "sequencer",
)  # fmt: skip


class Armed(Injection):
    """Faults that are counted from the moment on in which it is armed."""

    armed = False

    def next_fault(self, *given: Any) -> Fault | None:
        return super().next_fault(*given) if self.armed else None


@pytest.mark.parametrize("destination", [to(S2), NEW, to(S)], ids=["other", "new", "same"])
@pytest.mark.parametrize("kind", [FaultKind.KILL, FaultKind.CANCEL])
@pytest.mark.parametrize("part", PARTS)
async def test_whoever_fails_at_whatever_message_the_move_is_whole_or_has_not_been(
    part: str, kind: FaultKind, destination: JSON
) -> None:
    for nth in range(1, 4):
        for after in (False, True):
            await one_move(Fault(kind, part, nth, after=after), destination)


async def one_move(fault: Fault, destination: JSON) -> None:
    agent, armed = PuppetAgent(), Armed(Plan((fault,)))
    async with running_host(agent, faults=armed) as host:
        ann = await two_sessions(host, agent, "t1")
        await a_worker(host, C2, WORKER)
        before = state_of(host, C2)
        async with host.client("laptop", subscriptions=(ROOT, S, S2, C2)) as laptop:
            armed.armed = True
            try:
                expected = await move(ann, destination)
            except Refused:
                expected = S
            await trio.sleep(5)
            armed.armed = False
            assert channel_of(host, C2).owner == expected
            whole(host)
            await turn(ann, agent, "t2", Done(), C2)
            await settled()
            assert differences(laptop, host) == []
        turns = state_of(host, C2)["turns"]
        assert turns[:1] == before["turns"]
        assert [each["state"] for each in turns] == ["complete", "complete"]


def whole(host: RunningHost) -> None:
    """Every chat is in the session that owns it alone, and has an actor there, or its chat has."""
    for uri, channel in list(host.ledger.channels.items()):
        if channel.kind == "chat":
            holding = [
                each
                for each, other in host.ledger.channels.items()
                if other.kind == "session" and uri in order(host, each)
            ]
            assert holding == [channel.owner], uri
            assert host.system.ref(channel.path).alive, uri
        if channel.kind == "session":
            held = {channel_of(host, chat).path for chat in order(host, uri)}
            assert set(chat_actors(host, uri)) == held
