"""The harness itself: it shows what it is meant to show, and fails where it is meant to fail."""

from __future__ import annotations

from typing import Any

import pytest
import trio

from actors.grace import ClientGone
from ahpd.agents.events import Done, TextChunk
from ahpd.protocol.chat_actions import ChatTurnStartedAction
from ahpd.protocol.messages import Message, MessageOrigin
from ahpd.protocol.uris import ROOT, URI, default_chat
from supervisors import sys
from tests.harness import PuppetAgent, differences, running_host

SESSION = URI("puppet:/11111111-1111-4111-8111-111111111111")
CHAT = default_chat(SESSION)


def started(turn_id: str) -> ChatTurnStartedAction:
    return ChatTurnStartedAction(
        turn_id=turn_id,
        started_at="2026-09-21T00:00:00.000Z",
        message=Message(text="Fix the build", origin=MessageOrigin(kind="user")),
    )


async def test_a_peer_and_a_client_see_one_turn() -> None:
    agent = PuppetAgent()
    async with running_host(agent, seed=3) as host:
        phone = await host.peer("phone")
        await phone.hello()
        await phone.request("createSession", channel=SESSION)
        await phone.subscribe(CHAT)
        async with host.client("laptop", subscriptions=(ROOT, SESSION, CHAT)) as laptop:
            operation = laptop.dispatch(CHAT, started("t1"))
            assert (await operation.wait()).kind == "accepted"
            await phone.expect_action("chat/turnStarted", channel=CHAT)
            while CHAT not in agent.of or agent.of[CHAT].prompted is None:
                await trio.sleep(0.1)
            agent.of[CHAT].say(TextChunk("Done."))
            agent.of[CHAT].end(Done())
            ended = await phone.expect_action("chat/turnComplete")
            await laptop.until(CHAT, lambda chat: chat.turns)
            await trio.sleep(1)
            assert ended["action"]["turnId"] == "t1"
            assert differences(laptop, host) == []
        started_turns, ended_turns = host.stream.turns()
        assert started_turns == ended_turns == {"t1": 1}
        assert phone.frames[0][1]["method"] == "initialize"


async def dispatch_without_a_number(**options: Any) -> None:
    async with running_host(**options) as host:
        await (await host.peer("rude")).notify("dispatchAction", channel=ROOT)


async def test_an_illegal_frame_fails_the_test_unless_it_is_provoked() -> None:
    with pytest.raises(AssertionError, match="clientSeq"):
        await dispatch_without_a_number()
    await dispatch_without_a_number(provoked=["dispatchAction"])


async def crash_the_clocks() -> None:
    async with running_host() as host:
        host.tables.clients.find = None  # type: ignore[method-assign, assignment]
        host.system.ref("grace").cast(ClientGone("nobody"))
        await trio.sleep(0.01)


async def test_a_crash_fails_the_test_and_a_kill_does_not() -> None:
    with pytest.raises(AssertionError, match="grace: crashed"):
        await crash_the_clocks()
    async with running_host() as host:
        assert sys.kill(host.system.ref("grace"))
        await trio.sleep(1)


async def test_a_wire_that_is_held_delivers_when_it_is_told() -> None:
    async with running_host() as host:
        phone = await host.peer("phone")
        phone.wire.hold("down")
        id = await phone.call("ping")
        await trio.sleep(10)
        assert phone.inbox == []
        phone.wire.deliver("down")
        await phone.answer_to(id)
