"""Names, and what was read or archived: of a chat, of its session, and where the two meet."""

from __future__ import annotations

from typing import Any

from ahpd.agents.events import Done
from ahpd.protocol.uris import ROOT
from tests.actors.support import C2, C, S, a_worker, actions, readable, room, settled, turn, types
from tests.harness import PuppetAgent, RawPeer, RunningHost, differences, running_host
from tests.harness.replicas import state_of

READ, ARCHIVED = 32, 64


def archived(on: bool = True, kind: str = "chat") -> dict[str, Any]:
    return {"type": f"{kind}/isArchivedChanged", "isArchived": on}


def read(on: bool = True) -> dict[str, Any]:
    return {"type": "chat/isReadChanged", "isRead": on}


async def with_second_chat(host: RunningHost) -> RawPeer:
    ann = await room(host)
    await ann.request("createChat", channel=S, chat=C2)
    await ann.subscribe(C2)
    await settled()
    ann.inbox.clear()
    return ann


async def flags(host: RunningHost, peer: RawPeer) -> dict[str, int]:
    """The flags of the session, of both chats' states, and of their rows everywhere (all agree)."""
    await settled()
    (listed,) = (await peer.request("listSessions"))["items"]
    session = state_of(host, S)
    found = {"session": session["status"] & 96}
    assert listed["status"] & 96 == found["session"]
    compact = {row["resource"]: row["status"] & 96 for row in listed["chats"]}
    for name, uri in (("default", C), ("second", C2)):
        (row,) = [row for row in session["chats"] if row["resource"] == uri]
        found[name] = state_of(host, uri)["status"] & 96
        assert row["status"] & 96 == found[name] == compact[uri]
    return found


async def test_a_chats_flags_are_its_own_and_stand_in_every_row() -> None:
    async with running_host() as host:
        ann = await with_second_chat(host)
        for action, expected in (
            (read(), READ),
            (archived(), READ | ARCHIVED),
            (read(False), ARCHIVED),
            (archived(False), 0),
        ):
            answer = await ann.answered(await ann.dispatch(C2, action))
            assert "rejectionReason" not in answer["params"]
            assert await flags(host, ann) == {"session": READ, "default": 0, "second": expected}
        await ann.dispatch(C, read())
        assert await flags(host, ann) == {"session": READ, "default": READ, "second": 0}
        told = [it for it in ann.inbox if it.get("method") == "root/sessionSummaryChanged"]
        assert len(told) == 5


async def test_archiving_the_default_chat_archives_the_session_instead() -> None:
    async with running_host() as host:
        ann = await with_second_chat(host)
        bob = await room(host, "bob")
        async with host.client("laptop", subscriptions=(ROOT, S, C)) as laptop:
            answer = await ann.answered(await ann.dispatch(C, archived()))
            reason = answer["params"]["rejectionReason"]
            assert "archives its session" in reason
            assert readable(reason)
            said = await bob.expect_action("session/isArchivedChanged")
            assert said["action"] == archived(kind="session")
            assert await flags(host, ann) == {
                "session": READ | ARCHIVED,
                "default": 0,
                "second": 0,
            }
            assert types(bob, C) == []
            # Once more, and back.
            await ann.answered(await ann.dispatch(C, archived()))
            answer = await ann.answered(await ann.dispatch(C, archived(False)))
            assert "rejectionReason" not in answer["params"]
            assert await flags(host, ann) == {"session": READ, "default": 0, "second": 0}
            assert [a["isArchived"] for a in actions(bob, S) if "Archived" in a["type"]] == [False]
            assert differences(laptop, host) == []


async def test_a_chat_that_was_archived_and_became_the_default_one_can_be_taken_back() -> None:
    async with running_host() as host:
        ann = await with_second_chat(host)
        await ann.answered(await ann.dispatch(C2, archived()))
        await ann.request("disposeChat", channel=C)
        await settled()
        assert state_of(host, S)["defaultChat"] == C2
        assert state_of(host, C2)["status"] & ARCHIVED
        await ann.answered(await ann.dispatch(C2, archived(False)))
        assert not state_of(host, C2)["status"] & ARCHIVED


async def test_a_name_sent_to_a_chat_is_said_by_its_session() -> None:
    agent = PuppetAgent()
    async with running_host(agent) as host:
        ann = await with_second_chat(host)
        bob = await room(host, "bob", subscribe=(ROOT, S, C, C2))
        for chat in (C, C2):
            action = {"type": "session/titleChanged", "title": f"Named {chat[-6:]}"}
            answer = await ann.answered(await ann.dispatch(chat, action))
            assert "rejectionReason" not in answer["params"]
        await settled()
        assert state_of(host, S)["title"] == f"Named {C[-6:]}"
        titles = {row["resource"]: row["title"] for row in state_of(host, S)["chats"]}
        assert titles == {C: f"Named {C[-6:]}", C2: f"Named {C2[-6:]}"}
        assert types(bob, C) == types(bob, C2) == []
        (listed,) = (await ann.request("listSessions"))["items"]
        assert {row["resource"]: row["title"] for row in listed["chats"]} == titles
        # A name that somebody gave is not taken over by a first message.
        await turn(ann, agent, "t1", Done(), C2)
        assert state_of(host, S)["chats"][1]["title"] == titles[C2]
        for blank in ("", "  \n"):
            action = {"type": "session/titleChanged", "title": blank}
            answer = await ann.answered(await ann.dispatch(C2, action))
            assert "blank" in answer["params"]["rejectionReason"]


async def test_the_successor_of_a_default_chat_is_one_that_people_talk_in() -> None:
    async with running_host() as host:
        ann = await room(host)
        await a_worker(host, C, "ahp-chat:/worker")
        await ann.request("createChat", channel=S, chat=C2)
        await ann.request("disposeChat", channel=C)
        assert state_of(host, S)["defaultChat"] == C2
