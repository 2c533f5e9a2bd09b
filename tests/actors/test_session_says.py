"""What the host itself says of a session: `_meta` from several sources, and its own tools."""

from __future__ import annotations

from typing import Any

import pytest
import trio

from actors.messages import SetMeta, SetServerTools
from ahpd.protocol.tools import ToolDefinition
from supervisors import sys
from tests.actors.support import S, refused, room, settled, types
from tests.harness import running_host
from tests.harness.replicas import state_of


async def test_r_8_39_sources_of_meta_do_not_erase_each_other() -> None:
    async with running_host() as host:
        ann = await room(host)
        session = host.system.ref(host.ledger.channels[S].path)
        git, hub = {"git": {"branch": "main"}}, {"github": {"owner": "ann"}}
        session.cast(SetMeta("git", git))
        session.cast(SetMeta("hub", hub))
        await settled()
        assert state_of(host, S)["_meta"] == {**git, **hub}
        session.cast(SetMeta("hub", hub))  # nothing new, nothing said
        sys.kill(session)
        await trio.sleep(5)
        session.cast(SetMeta("git", {"git": {"branch": "fix"}}))
        await settled()
        assert state_of(host, S)["_meta"] == {"git": {"branch": "fix"}, **hub}
        session.cast(SetMeta("git", None))
        session.cast(SetMeta("hub", None))
        await settled()
        assert "_meta" not in state_of(host, S)
        assert types(ann, S).count("session/metaChanged") == 5


async def test_r_8_40_the_hosts_own_tools_are_a_list_that_is_replaced() -> None:
    async with running_host() as host:
        ann = await room(host)
        session = host.system.ref(host.ledger.channels[S].path)
        for names in (("list", "send"), ("send",), ()):
            session.cast(SetServerTools([ToolDefinition(name=name) for name in names]))
            said = await ann.expect_action("session/serverToolsChanged")
            assert [each["name"] for each in said["action"]["tools"]] == list(names)
            assert "origin" not in said
        session.cast(SetServerTools(()))
        await settled()
        assert "session/serverToolsChanged" not in types(ann, S)


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
