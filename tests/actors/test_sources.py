"""Chats that are made from others: forks and side chats (R-9.1 to R-9.11)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from ahpd.agents.events import Done, Failed, TextChunk, ToolReady, ToolStarted
from ahpd.agents.port import ConfigContext, Configuration
from ahpd.protocol.chat import MarkdownResponsePart, Turn
from ahpd.protocol.model import JSON
from ahpd.protocol.root import MultipleChatsCapability, MultipleWorkingDirectoriesCapability
from ahpd.protocol.session import (
    SessionConfigPropertySchema,
    SessionConfigSchema,
    SessionConfigValueItem,
)
from ahpd.protocol.uris import ROOT
from supervisors import sys
from tests.actors.support import (
    C2,
    S2,
    C,
    S,
    actions,
    at_work,
    cancelled,
    ending,
    message,
    refused,
    room,
    settled,
    started,
    turn,
)
from tests.harness import PuppetAgent, RawPeer, RunningHost, differences, running_host
from tests.harness.replicas import state_of


def fork(turn_id: str, chat: str = C) -> dict[str, Any]:
    return {"kind": "fork", "chat": chat, "turnId": turn_id}


def side(turn_id: str, chat: str = C, **more: JSON) -> dict[str, Any]:
    return {"kind": "sideChat", "chat": chat, "turnId": turn_id, **more}


async def make(peer: RawPeer, source: JSON, chat: str = C2, **more: Any) -> Any:
    result = await peer.request("createChat", channel=S, chat=chat, source=source, **more)
    assert result is None
    return await peer.subscribe(chat)


async def talked(host: RunningHost, agent: PuppetAgent, *turns: str) -> RawPeer:
    """A peer in a session whose default chat has these turns, each with the answer ``of <id>``."""
    ann = await room(host)
    for turn_id in turns:
        await ann.dispatch(C, started(turn_id, f"ask {turn_id}"))
        puppet = await at_work(agent, turn_id)
        puppet.say(TextChunk(f"of {turn_id}"))
        puppet.end(Done())
        await ending(ann, turn_id)
    return ann


def told(turns: Sequence[Turn]) -> list[tuple[str, str]]:
    """Each turn's id and the text of its answer."""
    return [
        (
            each.id,
            "".join(
                str(part.content)
                for part in each.response_parts
                if isinstance(part, MarkdownResponsePart)
            ),
        )
        for each in turns
    ]


# ---- forks --------------------------------------------------------------------------------------


async def test_a_fork_has_the_turns_up_to_the_one_it_names_and_then_goes_its_own_way() -> None:
    agent = PuppetAgent()
    async with running_host(agent) as host:
        ann = await talked(host, agent, "t1", "t2", "t3")
        snapshot = await make(ann, fork("t2"))
        state, source = snapshot["state"], state_of(host, C)
        assert state["turns"] == source["turns"][:2]
        assert state["origin"] == fork("t2")
        added = [a for a in actions(ann, S) if a["type"] == "session/chatAdded"]
        assert [a["summary"]["origin"] for a in added] == [fork("t2")]
        assert added[0]["summary"]["title"] == "ask t1"

        await turn(ann, agent, "u1", Done(), C2)
        await turn(ann, agent, "t4", Done(), C)
        assert [each["id"] for each in state_of(host, C2)["turns"]] == ["t1", "t2", "u1"]
        assert [each["id"] for each in state_of(host, C)["turns"]] == ["t1", "t2", "t3", "t4"]
        request = agent.of[C2].request
        assert told(request.history) == [("t1", "of t1"), ("t2", "of t2")]
        assert not request.context


async def test_a_fork_of_a_fork_and_a_fork_whose_source_is_gone() -> None:
    agent = PuppetAgent()
    async with running_host(agent) as host:
        ann = await talked(host, agent, "t1")
        await make(ann, fork("t1"))
        await turn(ann, agent, "u1", Done(), C2)
        third = "ahp-chat:/third"
        await make(ann, fork("u1", C2), chat=third)
        await ann.request("disposeChat", channel=C2)
        await turn(ann, agent, "v1", Done(), third)
        assert [each["id"] for each in state_of(host, third)["turns"]] == ["t1", "u1", "v1"]
        assert state_of(host, third)["origin"] == fork("u1", C2)
        assert [each.id for each in agent.of[third].request.history] == ["t1", "u1"]


async def test_a_fork_does_not_start_its_inherited_turns_again() -> None:
    agent = PuppetAgent()
    async with running_host(agent) as host:
        ann = await talked(host, agent, "t1")
        await make(ann, fork("t1"))
        answer = await ann.answered(await ann.dispatch(C2, started("t1")))
        assert "already started" in answer["params"]["rejectionReason"]


async def test_a_fork_keeps_the_directories_of_its_source_whatever_is_asked() -> None:
    agent = PuppetAgent(directories=MultipleWorkingDirectoriesCapability())
    async with running_host(agent) as host:
        ann = await host.peer("ann")
        await ann.hello(subscribe=())
        await ann.request("createSession", channel=S, workingDirectories=["file:///w"])
        await ann.subscribe(C)
        await ann.dispatch(C, {"type": "chat/workingDirectorySet", "directory": "file:///w"})
        await turn(ann, agent, "t1", Done())
        state = (await make(ann, fork("t1"), workingDirectories=["file:///elsewhere"]))["state"]
        assert state["workingDirectories"] == ["file:///w"]


async def test_a_fork_starts_with_a_first_message() -> None:
    agent = PuppetAgent()
    async with running_host(agent) as host:
        ann = await talked(host, agent, "t1")
        await make(ann, fork("t1"), initialMessage=message("And now?"))
        await settled()
        puppet = agent.of[C2]
        assert puppet.prompted is not None
        assert puppet.prompted.message.text == "And now?"
        puppet.end(Done())
        await settled()
        assert [each["message"]["text"] for each in state_of(host, C2)["turns"]] == [
            "ask t1",
            "And now?",
        ]


# ---- side chats ---------------------------------------------------------------------------------


async def test_a_side_chat_shows_nothing_and_its_agent_knows_the_history() -> None:
    agent = PuppetAgent()
    async with running_host(agent) as host:
        ann = await talked(host, agent, "t1", "t2", "t3")
        picked = {"text": " of t2 ", "responsePartId": "t2/0"}
        state = (await make(ann, side("t2", selection=picked)))["state"]
        assert state["turns"] == []
        assert state["origin"] == side("t2", selection=picked)
        await turn(ann, agent, "u1", Done(), C2)
        request = agent.of[C2].request
        assert told(request.context) == [("t1", "of t1"), ("t2", "of t2")]
        assert request.selection == " of t2 "
        assert not request.history
        assert [each["id"] for each in state_of(host, C2)["turns"]] == ["u1"]


async def test_the_context_of_a_running_turn_is_frozen_when_the_side_chat_is_made() -> None:
    agent = PuppetAgent()
    async with running_host(agent) as host:
        ann = await talked(host, agent, "t1")
        await ann.dispatch(C, started("t2"))
        puppet = await at_work(agent, "t2")
        puppet.say(TextChunk("so far"), ToolStarted("c", "run", "Run"), ToolReady("c", "Running"))
        await settled()
        await make(ann, side("t2"))
        puppet.say(TextChunk(" and later"))
        await settled()
        await ann.dispatch(C2, started("u1"))
        context = (await at_work(agent, "u1", C2)).request.context
        assert told(context) == [("t1", "of t1"), ("t2", "so far")]
        # A call that was running is one whose end the side chat will not hear of.
        assert context[1].response_parts[1].wire()["toolCall"]["status"] == "cancelled"
        assert state_of(host, C)["activeTurn"]["id"] == "t2"


@pytest.mark.parametrize("source", [fork("t1"), side("t1", selection={"text": "of t1"})])
async def test_what_it_was_made_from_outlives_a_crash_of_its_actor(source: JSON) -> None:
    agent = PuppetAgent()
    async with running_host(agent) as host:
        ann = await talked(host, agent, "t1")
        await make(ann, source)
        await turn(ann, agent, "u1", Done(), C2)
        before, first = state_of(host, C2), agent.of[C2].request
        channel = host.ledger.find(C2)
        assert channel is not None
        sys.kill(host.system.ref(channel.path))
        await turn(ann, agent, "u2", Done(), C2)
        assert agent.of[C2] is not agent.made[-2]
        assert agent.of[C2].request == first
        assert state_of(host, C2)["turns"][:-1] == before["turns"]
        assert state_of(host, C2)["origin"] == before["origin"]


# ---- refusals -----------------------------------------------------------------------------------


async def test_sources_that_are_refused_say_why_and_leave_no_chat() -> None:
    agent = PuppetAgent()
    async with running_host(agent) as host:
        ann = await talked(host, agent, "t1")
        await ann.dispatch(C, started("t2"))
        await at_work(agent, "t2")
        await ann.request("createSession", channel=S2)
        other = state_of(host, S2)["defaultChat"]
        for source, words in (
            (fork("t2"), ("t2", "still running")),
            (fork("t9"), ("t9", "not in that chat")),
            (side("t9"), ("t9", "not in that chat")),
            (fork("t1", "ahp-chat:/none"), ("no chat ahp-chat:/none",)),
            (fork("t1", other), ("the session has no chat", other)),
            (side("t1", other), ("the session has no chat",)),
            (fork("t1", S), ("the session has no chat",)),
            (fork("t1", C2), ("itself",)),
            (side("t1", C2), ("itself",)),
            (side("t1", selection={"text": ""}), ("selection", "empty")),
        ):
            with refused(-32602, *words):
                await make(ann, source)
            assert host.ledger.find(C2) is None
        await ann.dispatch(C, cancelled("t2"))
        await make(ann, fork("t2"))  # it has ended, so it can be the last one of a fork


@pytest.mark.parametrize(
    ("can", "source", "word"),
    [
        (MultipleChatsCapability(side_chat=True), fork("t1"), "copy"),
        (MultipleChatsCapability(fork=True), side("t1"), "context"),
        (MultipleChatsCapability(fork=False), fork("t1"), "copy"),
    ],
    ids=["no fork", "no side chat", "fork: false"],
)
async def test_an_agent_that_cannot_is_not_asked(
    can: MultipleChatsCapability, source: JSON, word: str
) -> None:
    agent = PuppetAgent(chats=can)
    async with running_host(agent) as host:
        ann = await talked(host, agent, "t1")
        with refused(-32602, "puppet", word):
            await make(ann, source)


async def test_a_source_of_a_kind_that_nobody_knows_is_refused_by_its_name() -> None:
    async with running_host(agent := PuppetAgent(), provoked=["c2h"]) as host:
        ann = await talked(host, agent, "t1")
        with refused(-32602, "graft"):
            await make(ann, {"kind": "graft", "chat": C, "turnId": "t1"})


async def test_replicas_follow_forks_that_fail_and_go_on() -> None:
    agent = PuppetAgent()
    async with running_host(agent) as host:
        ann = await talked(host, agent, "t1")
        await make(ann, fork("t1"))
        async with host.client("laptop", subscriptions=(ROOT, S, C, C2)) as laptop:
            await turn(ann, agent, "u1", Failed("no"), C2)
            await turn(ann, agent, "u2", Done(), C2)
            await settled()
            assert differences(laptop, host) == []


# ---- settings -----------------------------------------------------------------------------------


class Moody(PuppetAgent):
    """An agent with a mood in each chat."""

    async def config_schema(self, context: ConfigContext) -> Configuration:
        mood = SessionConfigPropertySchema(type="string", title="Mood", session_mutable=True)
        return Configuration(SessionConfigSchema(properties={"mood": mood}), frozenset({"mood"}))

    async def config_values(
        self, context: ConfigContext, key: str, query: str
    ) -> Sequence[SessionConfigValueItem]:
        return ()

    def config_refusal(self, key: str, value: JSON) -> str | None:
        return None


async def test_a_fork_goes_on_with_what_its_source_had_set_for_itself() -> None:
    """Also in a session of its own, whose other chats begin as those of the old one did."""
    agent = Moody()
    async with running_host(agent) as host:
        ann = await host.peer("ann")
        await ann.hello(subscribe=(ROOT,))
        await ann.request("createSession", channel=S, config={"mood": "calm"})
        await settled()
        await ann.subscribe(C)
        await ann.dispatch(C, {"type": "session/configChanged", "config": {"mood": "keen"}})
        await turn(ann, agent, "t1", Done())
        await make(ann, fork("t1"))
        await make(ann, side("t1"), chat="ahp-chat:/side")
        for chat, mood in ((C, "keen"), (C2, "keen"), ("ahp-chat:/side", "calm")):
            await turn(ann, agent, f"{chat}-u", Done(), chat)
            assert agent.of[chat].request.config == {"mood": mood}
        moved = await ann.request("moveChat", channel=C2, destination={"kind": "newSession"})
        new = "ahp-chat:/new"
        await ann.request("createChat", channel=moved["session"], chat=new)
        await ann.subscribe(new)
        for chat, mood in ((C2, "keen"), (new, "calm")):
            await turn(ann, agent, f"{chat}-v", Done(), chat)
            assert agent.of[chat].request.config == {"mood": mood}
