"""Of what ended nothing is left: no path, no agent, no channel."""

from __future__ import annotations

import pytest
import trio

from ahpd.protocol.uris import ROOT, URI, default_chat
from supervisors import sys
from tests.chaos.wishes import type_draft
from tests.harness import PuppetAgent, Refused, running_host

SESSION = URI("puppet:/5e551000-0000-4000-8000-000000000001")


async def test_chats_and_sessions_that_ended() -> None:
    agent = PuppetAgent()
    async with running_host(agent) as host:
        peer = await host.peer("ann")
        await peer.hello(subscribe=(ROOT,))
        before = host.system.registry.under("")
        await peer.request("createSession", channel=SESSION)
        await trio.sleep(1)
        made = host.system.registry.under("")
        for number in range(20):
            chat = f"ahp-chat:/{number}"
            await peer.request("createChat", channel=SESSION, chat=chat)
            if number % 3 == 0:
                sys.kill(host.system.ref("session/5e551000-0000-4000-8000-000000000001/session"))
            await peer.request("disposeChat", channel=chat)
            await trio.sleep(30)  # so that the kills do not add up
            assert host.system.registry.under("") == made
        await peer.request("disposeSession", channel=SESSION)
        await trio.sleep(1)
        assert host.system.registry.under("") == before
        assert list(host.ledger.channels) == [ROOT]
        assert all(puppet.closed for puppet in agent.made)


async def test_the_path_of_a_chat_that_ended_is_not_given_again() -> None:
    async with running_host() as host:
        peer = await host.peer("ann")
        await peer.hello(subscribe=(ROOT,))
        await peer.request("createSession", channel=SESSION)
        paths = [host.ledger.channels[default_chat(SESSION)].path]
        for number in range(3):
            chat = f"ahp-chat:/{number}"
            await peer.request("createChat", channel=SESSION, chat=chat)
            paths.append(host.ledger.channels[chat].path)
            await peer.request("disposeChat", channel=chat)
        assert len(set(paths)) == len(paths)


async def test_a_chat_asked_for_while_its_session_ends() -> None:
    async with running_host() as host:
        ann, bob = await host.peer("ann"), await host.peer("bob")
        await ann.hello(subscribe=(ROOT,))
        await bob.hello(subscribe=(ROOT,))
        await ann.request("createSession", channel=SESSION)
        session = host.system.ref(host.ledger.channels[SESSION].path)
        sys.suspend(session)
        asked = await bob.call("createChat", channel=SESSION, chat="ahp-chat:/late")
        await trio.sleep(1)
        catalogue = host.system.ref("catalogue")
        ended = await ann.call("disposeSession", channel=SESSION)
        while SESSION in host.ledger.channels:
            await trio.lowlevel.checkpoint()
        sys.resume(session)
        with pytest.raises(Refused) as refused:
            await bob.answer_to(asked)
        assert refused.value.code in (-32001, -32603)
        await ann.answer_to(ended)
        assert list(host.ledger.channels) == [ROOT]
        assert catalogue.alive


async def test_what_waits_at_a_chat_whose_session_ends() -> None:
    async with running_host() as host:
        ann = await host.peer("ann")
        await ann.hello(subscribe=(ROOT,))
        await ann.request("createSession", channel=SESSION)
        chat = default_chat(SESSION)
        await ann.subscribe(chat)
        actor = host.system.ref(host.ledger.channels[chat].path)
        sys.suspend(actor)
        await ann.dispatch(chat, type_draft("late").wire())
        await trio.sleep(1)
        ended = await ann.call("disposeSession", channel=SESSION)
        while chat in host.ledger.channels:
            await trio.lowlevel.checkpoint()
        sys.resume(actor)
        await ann.answer_to(ended)
        await trio.sleep(1)
        assert not actor.alive
