"""What is said of a session beside its fields, and what vendors ask that is no part of it."""

from __future__ import annotations

from typing import Any

import pytest
import trio

from ahpd.agents.events import Done, MetaChanged
from supervisors import sys
from tests.actors.support import (
    C2,
    S,
    channel_of,
    refused,
    room,
    settled,
    turn,
    types,
)
from tests.harness import PuppetAgent, running_host
from tests.harness.replicas import state_of

C3 = "ahp-chat:/third"


async def test_r_8_39_agents_of_a_session_do_not_erase_each_others_meta() -> None:
    agent = PuppetAgent()
    async with running_host(agent) as host:
        ann = await room(host)
        for chat in (C2, C3):
            await ann.request("createChat", channel=S, chat=chat)
            await ann.subscribe(chat)
            await turn(ann, agent, f"t {chat}", Done(), chat)
        model, shell = {"ahpd.model": "m"}, {"ahpd.shell": "sh"}
        agent.of[C2].mutter(MetaChanged(model))
        agent.of[C3].mutter(MetaChanged(shell))
        await settled()
        assert state_of(host, S)["_meta"] == {**model, **shell}
        agent.of[C3].mutter(MetaChanged(shell))  # nothing new, nothing said
        sys.kill(host.system.ref(channel_of(host, S).path))
        await trio.sleep(5)
        agent.of[C3].mutter(MetaChanged({"ahpd.shell": "zsh"}))
        await settled()
        assert state_of(host, S)["_meta"] == {**model, "ahpd.shell": "zsh"}
        agent.of[C2].mutter(MetaChanged(None))
        await settled()
        assert state_of(host, S)["_meta"] == {"ahpd.shell": "zsh"}
        agent.of[C2].mutter(MetaChanged(None))
        await settled()
        assert types(ann, S).count("session/metaChanged") == 4


@pytest.mark.parametrize("way", ["ended", "moved"])
async def test_with_a_chat_goes_what_its_agent_says_of_the_session(way: str) -> None:
    agent = PuppetAgent()
    async with running_host(agent) as host:
        ann = await room(host)
        await ann.request("createChat", channel=S, chat=C2)
        await ann.subscribe(C2)
        await turn(ann, agent, "t1", Done(), C2)
        agent.of[C2].mutter(MetaChanged({"ahpd.model": "m"}))
        await settled()
        if way == "ended":
            await ann.request("disposeChat", channel=C2)
        else:
            await ann.request("moveChat", channel=C2, destination={"kind": "newSession"})
        await settled()
        assert "_meta" not in state_of(host, S)


#: What a window sends that is its own, and no part of the protocol (quirk 50).
VENDORS: list[dict[str, Any]] = [
    {"method": "setClientManagedSettingsPermissions", "params": {"a": 1}},
    {"method": "setClientManagedSettingsPermissions"},
    {"method": "vscode/anything", "params": {}},
]


@pytest.mark.parametrize("message", VENDORS, ids=repr)
async def test_notifications_of_a_vendor_are_ignored(message: dict[str, Any]) -> None:
    async with running_host() as host:
        ann = await room(host)
        await ann.send({"jsonrpc": "2.0", **message})
        assert await ann.request("ping") is None
        await settled()
        assert not ann.inbox


@pytest.mark.parametrize("method", ["getManagedSettingsDiagnostics", "shutdown", "vscode/x"])
async def test_requests_of_a_vendor_are_not_served_and_say_so(method: str) -> None:
    async with running_host() as host:
        ann = await room(host)
        with refused(-32601, method):
            await ann.request(method)
        assert await ann.request("ping") is None
