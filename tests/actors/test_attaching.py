"""Chats that messages refer to: pinned when the message is accepted (R-9.37 to R-9.41)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from ahpd.agents.events import Done, Failed
from ahpd.agents.port import Attached, Prompt, Transcript
from ahpd.protocol.model import JSON
from supervisors import sys
from tests.actors.support import (
    C2,
    S2,
    C,
    S,
    at_work,
    message,
    pending,
    refused,
    room,
    settled,
    started,
    turn,
    withdrawn,
)
from tests.harness import PuppetAgent, RawPeer, RunningHost, running_host
from tests.harness.replicas import state_of


def chat(uri: str = C2, end: str | None = None) -> dict[str, Any]:
    made: dict[str, Any] = {"type": "chat", "label": "the other chat", "resource": uri}
    return made if end is None else {**made, "endTurn": end}


def asking(turn_id: str, *attachments: JSON) -> dict[str, Any]:
    made = started(turn_id)
    made["message"]["attachments"] = list(attachments)
    return made


def waiting(id: str, kind: str, *attachments: JSON) -> dict[str, Any]:
    made = pending(id, kind)
    made["message"]["attachments"] = list(attachments)
    return made


async def two_chats(host: RunningHost, agent: PuppetAgent, *turns: str) -> RawPeer:
    """A peer in a session with two chats; the second has these turns."""
    ann = await room(host)
    await ann.request("createChat", channel=S, chat=C2)
    await ann.subscribe(C2)
    for turn_id in turns:
        await turn(ann, agent, turn_id, Done(), C2)
    return ann


def ids(attached: Sequence[Attached]) -> list[list[str]]:
    """The turns of each transcript."""
    return [[t.id for t in each.turns] for each in attached if isinstance(each, Transcript)]


async def prompted(agent: PuppetAgent, turn_id: str) -> Prompt:
    prompt = (await at_work(agent, turn_id)).prompted
    assert prompt is not None
    return prompt


async def test_the_latest_ended_turn_is_pinned_and_the_action_comes_back_as_it_was() -> None:
    agent = PuppetAgent()
    async with running_host(agent) as host:
        ann = await two_chats(host, agent, "u1", "u2")
        await ann.dispatch(C2, started("u3"))
        await at_work(agent, "u3", C2)
        action = asking("t1", chat(), chat(end="u1"))
        answer = await ann.answered(await ann.dispatch(C, action))
        assert answer["params"]["action"] == action
        prompt = await prompted(agent, "t1")
        assert ids(prompt.attached) == [["u1", "u2"], ["u1"]]
        assert state_of(host, C)["activeTurn"]["message"] == action["message"]


async def test_a_chat_without_an_ended_turn_gives_an_empty_transcript() -> None:
    agent = PuppetAgent()
    async with running_host(agent) as host:
        ann = await two_chats(host, agent)
        await ann.dispatch(C, asking("t1", chat()))
        assert (await prompted(agent, "t1")).attached == (Transcript(C2),)


async def test_a_chat_may_refer_to_itself_and_to_another_session() -> None:
    agent = PuppetAgent()
    async with running_host(agent) as host:
        ann = await room(host)
        await turn(ann, agent, "t1", Done())
        await ann.request("createSession", channel=S2)
        other = state_of(host, S2)["defaultChat"]
        await ann.subscribe(other)
        await turn(ann, agent, "u1", Done(), other)
        await ann.dispatch(C, asking("t2", chat(C), chat(other)))
        assert ids((await prompted(agent, "t2")).attached) == [["t1"], ["u1"]]


async def test_references_inside_a_transcript_are_not_followed() -> None:
    agent = PuppetAgent()
    async with running_host(agent) as host:
        ann = await two_chats(host, agent)
        await turn(ann, agent, "t1", Done())
        await ann.dispatch(C2, asking("u1", chat(C)))
        (await at_work(agent, "u1", C2)).end(Done())
        await settled()
        await ann.dispatch(C, asking("t2", chat(C2)))
        (attached,) = (await prompted(agent, "t2")).attached
        assert isinstance(attached, Transcript)
        assert [each.message.attachments for each in attached.turns] == [
            state_message(host, "u1").attachments
        ]


def state_message(host: RunningHost, turn_id: str) -> Any:
    channel = host.ledger.find(C2)
    assert channel is not None
    turns = channel.state.turns
    return turns[turns.index_of(turn_id)].message


@pytest.mark.parametrize("kind", ["queued", "steering"])
async def test_a_message_that_waits_means_what_it_meant_when_it_was_sent(kind: str) -> None:
    """A steering message with a chat starts a turn: only with a prompt can a chat be given."""
    agent = PuppetAgent()
    async with running_host(agent) as host:
        ann = await two_chats(host, agent, "u1")
        await ann.dispatch(C, started("t1"))
        puppet = await at_work(agent, "t1")
        puppet.deaf = True
        await ann.dispatch(C, waiting("m1", kind, chat()))
        await settled()
        await turn(ann, agent, "u2", Done(), C2)
        await ann.request("disposeChat", channel=C2)
        puppet.hear()
        puppet.end(Done())
        await settled()
        assert not puppet.steered
        assert puppet.prompted is not None
        assert puppet.prompted.message.text == "message m1"
        assert ids(puppet.prompted.attached) == [["u1"]]


async def test_a_message_that_is_changed_is_pinned_again_and_one_withdrawn_is_forgotten() -> None:
    agent = PuppetAgent()
    async with running_host(agent) as host:
        ann = await two_chats(host, agent, "u1")
        await ann.dispatch(C, started("t1"))
        puppet = await at_work(agent, "t1")
        for id in ("m1", "m2", "m3"):
            await ann.dispatch(C, waiting(id, "queued", chat()))
        await settled()
        await turn(ann, agent, "u2", Done(), C2)
        changed = waiting("m1", "queued", chat())
        changed["message"]["text"] = "other words"
        await ann.dispatch(C, changed)
        await ann.dispatch(C, withdrawn("m2"))
        await ann.dispatch(C, pending("m3"))
        await settled()
        channel = host.ledger.find(C)
        assert channel is not None
        assert list(channel.notes.attached) == ["m1"]
        puppet.end(Done())
        await settled()
        assert puppet.prompted is not None
        assert ids(puppet.prompted.attached) == [["u1", "u2"]]
        puppet.end(Done())
        await settled()
        assert puppet.prompts[-1].message.text == "message m3"
        assert puppet.prompts[-1].attached == ()


async def test_a_first_message_refers_to_chats_too() -> None:
    agent = PuppetAgent()
    async with running_host(agent) as host:
        ann = await room(host)
        await turn(ann, agent, "t1", Done())
        first = message("Look there", attachments=[chat(C)])
        await ann.request("createChat", channel=S, chat=C2, initialMessage=first)
        await settled()
        assert ids(agent.of[C2].prompts[0].attached) == [["t1"]]


async def test_a_turn_that_is_resumed_by_a_new_actor_gets_the_same_transcript() -> None:
    agent = PuppetAgent()
    async with running_host(agent) as host:
        ann = await two_chats(host, agent, "u1")
        await ann.dispatch(C, asking("t1", chat()))
        (await at_work(agent, "t1")).end(Failed("later", resumable=True))
        await settled()
        await turn(ann, agent, "u2", Done(), C2)
        channel = host.ledger.find(C)
        assert channel is not None
        sys.kill(host.system.ref(channel.path))
        await ann.dispatch(C, {"type": "chat/turnResume", "turnId": "t1"})
        prompt = await prompted(agent, "t1")
        assert prompt.resume
        assert ids(prompt.attached) == [["u1"]]


async def test_a_fork_passes_on_what_its_turns_referred_to() -> None:
    agent = PuppetAgent()
    async with running_host(agent) as host:
        ann = await two_chats(host, agent, "u1")
        await ann.dispatch(C, asking("t1", chat()))
        (await at_work(agent, "t1")).end(Done())
        await settled()
        for made, source in (
            ("ahp-chat:/fork", {"kind": "fork", "chat": C, "turnId": "t1"}),
            ("ahp-chat:/again", {"kind": "fork", "chat": "ahp-chat:/fork", "turnId": "t1"}),
            ("ahp-chat:/side", {"kind": "sideChat", "chat": "ahp-chat:/fork", "turnId": "t1"}),
        ):
            await ann.request("createChat", channel=S, chat=made, source=source)
            await ann.subscribe(made)
            await turn(ann, agent, "v1", Done(), made)
            attached = agent.of[made].request.attached
            assert {turn_id: ids(held) for turn_id, held in attached.items()} == {"t1": [["u1"]]}


async def test_chats_that_cannot_be_attached_are_refused_with_the_reason() -> None:
    agent = PuppetAgent()
    async with running_host(agent) as host:
        ann = await two_chats(host, agent, "u1")
        await ann.dispatch(C2, started("u2"))
        await at_work(agent, "u2", C2)
        for attachment, word in (
            (chat("ahp-chat:/none"), "does not exist"),
            (chat(S), "does not exist"),
            (chat(end="u9"), "no completed turn u9"),
            (chat(end="u2"), "still running"),
        ):
            for action in (
                asking("t1", attachment),
                waiting("m1", "queued", attachment),
                waiting("m1", "steering", attachment),
            ):
                answer = await ann.answered(await ann.dispatch(C, action))
                assert word in answer["params"]["rejectionReason"]
            first = message(attachments=[attachment])
            with refused(-32602, word):
                await ann.request(
                    "createChat", channel=S, chat="ahp-chat:/third", initialMessage=first
                )
        assert host.ledger.find("ahp-chat:/third") is None
