"""A session: its chats, its name, and what it says about what they do (RULES 7, 8)."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest
import trio

from actors.session import title_from
from ahpd.agents.events import (
    ActivityChanged,
    Done,
    Failed,
    TextChunk,
    ThoughtChunk,
    ToolAsks,
    ToolStarted,
)
from ahpd.protocol.root import AgentInfo
from ahpd.protocol.uris import ROOT
from supervisors import sys
from tests.actors.support import (
    C2,
    S2,
    C,
    S,
    actions,
    answer,
    at_work,
    cancelled,
    ending,
    message,
    readable,
    refused,
    room,
    settled,
    started,
    turn,
    types,
)
from tests.harness import PuppetAgent, RawPeer, Refused, RunningHost, running_host
from tests.harness.replicas import state_of

C3 = "ahp-chat:/third"

# ---- names ---------------------------------------------------------------------------------------

TITLES = [
    ("Fix the build", "Fix the build"),
    ("\n\n  Fix it  \nand more", "Fix it"),
    ("word " * 40, "word word word word word word word word word word word word…"),
    ("x" * 200, "x" * 60 + "…"),
    (" \n\t ", ""),
    ("", ""),
    ("é" * 60, "é" * 60),
]


@pytest.mark.parametrize(("text", "title"), TITLES)
def test_a_title_is_the_first_line_of_a_message_cut_at_a_word(text: str, title: str) -> None:
    assert title_from(text) == title


async def test_a_session_is_named_after_its_first_message_unless_somebody_named_it() -> None:
    agent = PuppetAgent()
    async with running_host(agent) as host:
        ann = await room(host)
        await ann.request("createChat", channel=S, chat=C2)
        await ann.dispatch(C2, started("t0", "In the second chat"))
        await settled()
        assert [row["title"] for row in state_of(host, S)["chats"]] == ["", "In the second chat"]
        assert state_of(host, S)["title"] == ""
        await ann.dispatch(C, started("t1", "Fix the build\nplease"))
        await settled()
        assert state_of(host, S)["title"] == "Fix the build"
        await ann.request("createSession", channel=S2)
        await ann.dispatch(S2, {"type": "session/titleChanged", "title": "My own name"})
        await ann.dispatch(state_of(host, S2)["defaultChat"], started("t2", "Something else"))
        await settled()
        assert state_of(host, S2)["title"] == "My own name"
        assert state_of(host, S2)["chats"][0]["title"] == "My own name"


# ---- what it says of its chats -------------------------------------------------------------------


async def test_r_7_44_a_row_is_said_when_it_moved_and_not_for_each_token() -> None:
    agent = PuppetAgent()
    async with running_host(agent) as host:
        ann = await room(host)
        await ann.dispatch(C, started("t1"))
        puppet = await at_work(agent, "t1")
        await settled()
        ann.inbox.clear()
        for _ in range(50):
            puppet.say(TextChunk("a"), ThoughtChunk("b"))
            await settled()
        assert actions(ann, S) == []
        assert [it for it in ann.inbox if it["method"].startswith("root/")] == []
        puppet.say(ActivityChanged("Reading"))
        await settled()
        assert types(ann, S) == ["session/chatUpdated", "session/activityChanged"]
        puppet.say(ActivityChanged("Reading"))
        await settled()
        assert len(actions(ann, S)) == 2


async def test_r_7_46_a_turn_clears_what_says_that_everything_was_read() -> None:
    agent = PuppetAgent()
    async with running_host(agent) as host:
        ann = await room(host)
        assert state_of(host, S)["status"] & 32
        await ann.dispatch(C, {"type": "chat/isReadChanged", "isRead": True})
        await ann.dispatch(C, started("t1"))
        said = await ann.expect_action("session/isReadChanged", channel=S)
        assert said["action"]["isRead"] is False
        await settled()
        assert state_of(host, S)["status"] & 32 == 0
        assert state_of(host, C)["status"] & 32 == 0
        assert state_of(host, S)["chats"][0]["status"] == state_of(host, C)["status"]
        await ann.dispatch(S, {"type": "session/isReadChanged", "isRead": True})
        await ann.expect_action("session/isReadChanged", channel=S)
        assert state_of(host, C)["status"] & 32 == 0  # each has its own


async def test_quirk_28_the_list_shows_the_most_urgent_of_the_chats() -> None:
    """R-7.37, R-7.38: a question outranks an error, which outranks the default chat's own."""
    agent = PuppetAgent()
    async with running_host(agent) as host:
        ann = await room(host)

        async def shown() -> int:
            await settled()
            status: int = (await ann.request("listSessions"))["items"][0]["status"]
            return status & 31

        await ann.request("createChat", channel=S, chat=C2)
        await ann.subscribe(C2)
        assert await shown() == 1
        await ann.dispatch(C, started("t1"))
        puppet = await at_work(agent, "t1")
        assert await shown() == 8
        await turn(ann, agent, "t2", Failed("no"), C2)
        assert await shown() == 2
        puppet.say(ToolStarted("c1", "run", "Run"), ToolAsks("c1", "Run it"))
        assert await shown() == 24
        assert state_of(host, S)["inputNeeded"][0]["chat"] == C
        await ann.dispatch(C, cancelled("t1"))
        assert await shown() == 2
        await turn(ann, agent, "t3", Done(), C2)
        assert await shown() == 1


async def test_r_11_24_two_calls_that_ask_at_once_have_an_entry_each() -> None:
    agent = PuppetAgent()
    async with running_host(agent) as host:
        ann = await room(host)
        await ann.request("createChat", channel=S, chat=C2)
        for chat in (C, C2):
            await ann.dispatch(chat, started("same-id"))
            puppet = await at_work(agent, "same-id", chat)
            for call in ("c1", "c2"):
                puppet.say(ToolStarted(call, "run", "Run"), ToolAsks(call, "Run it"))
        await settled()
        entries = state_of(host, S)["inputNeeded"]
        assert len({entry["id"] for entry in entries}) == 4
        assert {(entry["chat"], entry["toolCall"]["toolCallId"]) for entry in entries} == {
            (chat, call) for chat in (C, C2) for call in ("c1", "c2")
        }
        await ann.request("disposeChat", channel=C2)
        await settled()
        assert {entry["chat"] for entry in state_of(host, S)["inputNeeded"]} == {C}


# ---- several chats -------------------------------------------------------------------------------


async def test_r_9_1_a_chat_is_in_the_catalogue_before_its_creation_is_answered() -> None:
    agent = PuppetAgent()
    async with running_host(agent) as host:
        ann = await room(host)
        id = await ann.call("createChat", channel=S, chat=C2, initialMessage=message("Go"))
        assert await ann.answer_to(id) is None
        assert "session/chatAdded" in types(ann, S)
        await ann.subscribe(C2)
        with refused(-32010, C2):
            await ann.request("createChat", channel=S, chat=C2)
        assert await ann.request("createChat", channel=S, chat=C) is None  # quirk 24
        with trio.fail_after(10):
            while C2 not in agent.of or agent.of[C2].prompted is None:
                await trio.sleep(0.01)
        assert agent.of[C2].prompts[0].message.text == "Go"


CHATS: list[tuple[dict[str, Any], int]] = [
    ({"channel": S2}, -32001),
    ({"channel": C}, -32001),
    ({"chat": ROOT}, -32010),
    ({"chat": S}, -32010),
    ({"workingDirectories": ["file:///elsewhere"]}, -32602),
    ({"initialMessage": {"text": "x", "origin": {"kind": "agent"}}}, -32602),
    ({"source": {"kind": "fork", "chat": C, "turnId": "t"}}, -32602),
]


@pytest.mark.parametrize(("params", "code"), CHATS, ids=repr)
async def test_what_a_chat_cannot_be_made_with(params: dict[str, Any], code: int) -> None:
    async with running_host() as host:
        ann = await room(host)
        before = state_of(host, S)
        with refused(code):
            await ann.request("createChat", **{"channel": S, "chat": C2, **params})
        assert state_of(host, S) == before
        assert C2 not in host.ledger.channels


async def test_r_9_4_without_the_capability_there_is_one_chat() -> None:
    class Single(PuppetAgent):
        def __init__(self) -> None:
            super().__init__()
            info = self.info
            self.info = AgentInfo(
                provider=info.provider,
                display_name=info.display_name,
                description=info.description,
                models=(),
            )

    async with running_host(Single()) as host:
        ann = await room(host)
        with refused(-32602, "one chat"):
            await ann.request("createChat", channel=S, chat=C2)


async def test_ending_chats_names_a_successor_and_stops_at_the_last() -> None:
    agent = PuppetAgent()
    async with running_host(agent) as host:
        ann = await room(host)
        for chat in (C2, C3):
            await ann.request("createChat", channel=S, chat=chat)
        await ann.dispatch(C2, started("t2"))
        (await at_work(agent, "t2", C2)).say(ActivityChanged("In the second"))
        await settled()
        assert not state_of(host, S).get("activity")
        assert await ann.request("disposeChat", channel=C) is None
        await settled()
        said = [kind for kind in types(ann, S) if "hat" in kind]
        assert said[-2:] == ["session/chatRemoved", "session/defaultChatChanged"]
        assert state_of(host, S)["defaultChat"] == C2
        assert state_of(host, S)["activity"] == "In the second"
        with refused(-32008):
            await ann.request("disposeChat", channel=C)
        await ann.request("disposeChat", channel=C2)
        with refused(-32602, "end the session"):
            await ann.request("disposeChat", channel=C3)
        assert [row["resource"] for row in state_of(host, S)["chats"]] == [C3]
        assert all(agent.of[chat].closed for chat in (C2,))
        await ann.subscribe(C3)
        await turn(ann, agent, "t3", Done(), C3)


async def test_a_session_that_is_killed_while_chats_come_and_go_ends_up_whole() -> None:
    agent = PuppetAgent()
    async with running_host(agent) as host:
        ann = await room(host)
        for number in range(12):
            chat = f"ahp-chat:/n{number}"
            id = await ann.call("createChat", channel=S, chat=chat)
            for _ in range(number):
                await trio.lowlevel.checkpoint()
            sys.kill(host.system.ref(host.ledger.channels[S].path))
            with suppress(Refused):
                await ann.answer_to(id)
            await trio.sleep(1)
            rows = {row["resource"] for row in state_of(host, S)["chats"]}
            open_chats = {c.uri for c in host.ledger.channels_of(S) if c.kind == "chat"}
            assert rows == open_chats
            await check_works(host, ann, agent, sorted(rows)[-1], f"t{number}")
            await trio.sleep(60)


async def check_works(
    host: RunningHost, peer: RawPeer, agent: PuppetAgent, chat: str, turn_id: str
) -> None:
    if chat not in {it["params"]["channel"] for it in peer.inbox if "params" in it}:
        await peer.subscribe(chat)
    await peer.dispatch(chat, started(turn_id))
    (await at_work(agent, turn_id, chat)).end(Done())
    await ending(peer, turn_id)


# ---- what clients may say to it ------------------------------------------------------------------

SAID: list[tuple[dict[str, Any], str | None]] = [
    ({"type": "session/titleChanged", "title": "New"}, None),
    ({"type": "session/titleChanged", "title": " \n"}, "blank"),
    ({"type": "session/titleChanged", "title": "\u00e9" * 1000}, None),
    ({"type": "session/titleChanged", "title": "x" * 1001}, "at most 1000 characters, not 1001"),
    ({"type": "session/titleChanged", "title": "x" * 2_000_000}, "at most 1000 characters"),
    ({"type": "session/isReadChanged", "isRead": False}, None),
    ({"type": "session/isArchivedChanged", "isArchived": True}, None),
    ({"type": "session/activeClientSet", "activeClient": {"clientId": "ann", "tools": []}}, None),
    ({"type": "session/activeClientSet", "activeClient": {"clientId": "bob", "tools": []}},
     "only add itself"),
    ({"type": "session/activeClientRemoved", "clientId": "bob"}, "only remove itself"),
    ({"type": "session/activeClientRemoved", "clientId": "ann"}, None),
    ({"type": "session/workingDirectorySet", "directory": "file:///x"}, "started with"),
    ({"type": "session/workingDirectoryRemoved", "directory": "file:///x"}, "started with"),
    ({"type": "session/workingDirectoryReplaced", "directory": "file:///x",
      "replacement": "file:///y"}, "started with"),
    ({"type": "session/configChanged", "config": {"a": 1}}, "nothing to configure"),
    ({"type": "session/mcpServerStartRequested", "id": "m"}, "no MCP server"),
    ({"type": "session/defaultChatChanged"}, "the host's to say"),
]  # fmt: skip


@pytest.mark.parametrize(("action", "expected"), SAID)
async def test_the_rules_for_what_clients_say_to_a_session(
    action: dict[str, Any], expected: str | None
) -> None:
    async with running_host(provoked=["c2h", "rejectionReason"]) as host:
        ann = await room(host)
        params = await answer(ann, await ann.dispatch(S, action))
        reason = params.get("rejectionReason")
        assert (reason is None) == (expected is None), reason
        assert expected is None or (expected in reason and readable(reason))


async def test_what_is_already_so_is_said_to_its_sender_alone() -> None:
    """R-5.25: a client that answers each change of the session would loop on its own echo."""
    async with running_host() as host:
        ann, bob = await room(host), await room(host, "bob")
        client = {"clientId": "ann", "tools": []}
        action = {"type": "session/activeClientSet", "activeClient": client}
        await answer(ann, await ann.dispatch(S, action))
        await settled()
        bob.inbox.clear()
        numbers = set()
        for _ in range(5):
            params = await answer(ann, await ann.dispatch(S, action))
            assert "rejectionReason" not in params
            numbers.add(params["serverSeq"])
        await settled()
        assert len(numbers) == 5
        assert bob.inbox == []
