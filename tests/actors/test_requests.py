"""The requests that are served, where no other file has them."""

from __future__ import annotations

import pytest

from actors.host import Settings
from actors.requests import METHODS
from ahpd.protocol.methods import CLIENT_METHODS
from ahpd.protocol.uris import ROOT
from ahpd.resources.files import FileResources
from tests.actors.support import C, S, refused, room
from tests.harness import running_host

#: URI -> the code of its refusal, None: it may be asked for.
RESOURCES = [
    ("file:///srv/depot", None),
    ("file:///srv/depot/", None),
    ("file:///srv/depot/a%20b/c", None),
    ("file://localhost/srv/depot/x", None),
    ("file:///srv/depot-evil/x", -32009),
    ("file:///srv", -32009),
    ("file:///srv/depot/../other", -32009),
    ("file:///srv/depot/%2e%2e/other", -32009),
    ("untitled:Untitled-1", -32009),
    ("file:///srv/depot/%00", -32602),
    ("file://elsewhere/srv/depot/x", -32602),
    ("http://srv/depot", -32602),
    ("srv/depot", -32602),
    ("", -32602),
    ("file://[", -32602),
]


@pytest.mark.real_time
@pytest.mark.parametrize(("uri", "code"), RESOURCES)
async def test_r_13_4_only_files_in_the_folders_served_may_be_asked_for(
    uri: str, code: int | None
) -> None:
    settings = Settings(served=("file:///srv/depot",))
    async with running_host(settings=settings, resources=FileResources()) as host:
        ann = await host.peer("ann")
        result = await ann.hello()
        assert result["defaultDirectory"] == "file:///srv/depot"
        if code is None:
            assert await ann.request("resourceRequest", uri=uri) == {}
        else:
            with refused(code):
                await ann.request("resourceRequest", uri=uri)


def test_everything_served_is_a_request_of_the_protocols() -> None:
    assert all(CLIENT_METHODS[name].is_request for name in METHODS)


@pytest.mark.parametrize(
    ("channel", "code"),
    [("ahp-session:/no", -32001), ("any:/thing", -32001), ("ahp-chat:/no", -32008),
     ("ahp-chat://default/zzz", -32008), ("agenthost-terminal:/t", -32008),
     ("ahp-resource-watch:/no", -32008), ("ahp-changeset:/no", -32008), ("", -32001)],
)  # fmt: skip
async def test_r_3_6_what_is_not_there_cannot_be_subscribed(channel: str, code: int) -> None:
    async with running_host() as host:
        ann = await room(host)
        with refused(code):
            await ann.subscribe(channel)


async def test_r_4_32_a_second_subscribe_is_answered_with_a_fresh_snapshot() -> None:
    async with running_host() as host:
        ann = await room(host, subscribe=(ROOT, S))
        first = await ann.subscribe(C)
        await ann.dispatch(C, {"type": "chat/isReadChanged", "isRead": True})
        await ann.expect_action("chat/isReadChanged")
        second = await ann.subscribe(C)
        assert second["fromSeq"] > first["fromSeq"]
        assert second["state"]["status"] == first["state"]["status"] | 32
        await ann.notify("unsubscribe", channel=C)  # a set: one ends it (B26)
        await ann.dispatch(C, {"type": "chat/isReadChanged", "isRead": False})
        await ann.request("listSessions")
        assert not [it for it in ann.inbox if it.get("params", {}).get("channel") == C]
