"""What the host asks clients: resources that a client has, and watches on them (RULES 13, 14)."""

from __future__ import annotations

import logging
from typing import Any

import pytest
import trio

from actors.forwarding import client_named
from ahpd.protocol.errors import ProtocolError
from ahpd.protocol.resources import ResourceReadParams
from ahpd.protocol.uris import ROOT
from supervisors import sys
from tests.actors.support import refused, settled
from tests.harness import RawPeer, Refused, RunningHost, running_host

FILE = "virtual://bob/notes.txt"
READ = {"data": "hello", "encoding": "utf-8"}
W = "ahp-resource-watch:/bobs"


async def two(host: RunningHost) -> tuple[RawPeer, RawPeer]:
    """Ann, who asks, and bob, who has files."""
    ann, bob = await host.peer("ann"), await host.peer("bob")
    await ann.hello()
    await bob.hello()
    return ann, bob


async def asked(peer: RawPeer, method: str) -> Any:
    """The next request of this method that the host sends the peer."""
    return await peer.wait(lambda it: it.get("method") == method and "id" in it)


async def answer(peer: RawPeer, request: Any, result: Any) -> None:
    await peer.send({"jsonrpc": "2.0", "id": request["id"], "result": result})


async def refuse(peer: RawPeer, request: Any, code: int, text: str, data: Any = None) -> None:
    error = {"code": code, "message": text, **({"data": data} if data else {})}
    await peer.send({"jsonrpc": "2.0", "id": request["id"], "error": error})


#: method -> its params about bob's files, and a result.
FORWARDED: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
    ("resourceRead", {"uri": FILE}, READ),
    ("resourceWrite", {"uri": FILE, "data": "x", "encoding": "utf-8"}, {}),
    ("resourceList", {"uri": "virtual://bob/"}, {"entries": [{"name": "a", "type": "file"}]}),
    ("resourceDelete", {"uri": FILE, "recursive": True}, {}),
    ("resourceMkdir", {"uri": FILE}, {}),
    ("resourceResolve", {"uri": FILE}, {"uri": FILE, "type": "file", "etag": "7"}),
    ("resourceRequest", {"uri": FILE, "write": True}, {}),
    ("resourceCopy", {"source": FILE, "destination": "virtual://bob/b"}, {}),
    ("resourceMove", {"source": FILE, "destination": "virtual://bob/b"}, {}),
]


@pytest.mark.parametrize(("method", "params", "result"), FORWARDED, ids=[f[0] for f in FORWARDED])
async def test_a_request_about_a_clients_resource_goes_to_it_and_its_answer_comes_back(
    method: str, params: dict[str, Any], result: dict[str, Any]
) -> None:
    async with running_host() as host:
        ann, bob = await two(host)
        id = await ann.call(method, **params)
        request = await asked(bob, method)
        assert request["params"] == {"channel": ROOT, **params}
        await answer(bob, request, result)
        assert await ann.answer_to(id) == result


async def test_a_refusal_comes_back_as_it_came_and_is_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO, logger="ahpd.resources")
    async with running_host() as host:
        ann, bob = await two(host)
        for code, data in ((-32009, {"request": {"channel": ROOT, "uri": FILE}}), (-32601, None)):
            id = await ann.call("resourceRead", uri=FILE)
            await refuse(bob, await asked(bob, "resourceRead"), code, "not for you", data)
            with pytest.raises(Refused) as caught:
                await ann.answer_to(id)
            got = caught.value
            assert (got.code, got.message, got.data) == (code, "not for you", data)
    logged = [record.getMessage() for record in caplog.records]
    assert len(logged) == 2
    for text, number in zip(logged, ("-32009", "-32601"), strict=True):
        assert all(word in text for word in ("resourceRead", FILE, "ann", "bob", number)), text


async def test_the_newest_connection_of_a_client_is_asked() -> None:
    async with running_host() as host:
        ann, bob = await two(host)
        newer = await host.peer("bob")
        await newer.hello()
        id = await ann.call("resourceRead", uri=FILE)
        await answer(newer, await asked(newer, "resourceRead"), READ)
        assert await ann.answer_to(id) == READ
        assert not [it for it in bob.inbox if "id" in it]


async def test_a_client_that_goes_or_keeps_silent_fails_what_it_was_asked() -> None:
    async with running_host() as host:
        ann, bob = await two(host)
        id = await ann.call("resourceRead", uri=FILE)
        late = await asked(bob, "resourceRead")
        start = trio.current_time()
        with refused(-32603, "did not answer"):
            await ann.answer_to(id, within=120)
        assert trio.current_time() - start == pytest.approx(60, abs=1)
        await answer(bob, late, READ)  # too late; nobody minds
        id = await ann.call("resourceRead", uri=FILE)
        await asked(bob, "resourceRead")
        await bob.close()
        with refused(-32008, "went away"):
            await ann.answer_to(id)
        with refused(-32008, "bob"):
            await ann.request("resourceRead", uri=FILE)
        assert await ann.request("ping") is None


async def test_a_slow_client_holds_up_nobody_not_even_who_asked_it() -> None:
    async with running_host() as host:
        ann, bob = await two(host)
        id = await ann.call("resourceRead", uri=FILE)
        request = await asked(bob, "resourceRead")
        assert (await ann.request("listSessions"))["items"] == []
        await answer(bob, request, READ)
        assert await ann.answer_to(id) == READ


async def test_answers_of_two_clients_with_the_same_ids_are_not_mixed_up() -> None:
    async with running_host() as host:
        ann, bob = await two(host)
        one = await ann.call("resourceRead", uri="virtual://ann/a")
        other = await bob.call("resourceRead", uri="virtual://bob/b")
        mine, theirs = await asked(ann, "resourceRead"), await asked(bob, "resourceRead")
        assert mine["id"] == theirs["id"]
        await answer(bob, theirs, {**READ, "data": "bob's"})
        await answer(ann, mine, {**READ, "data": "ann's"})
        assert (await ann.answer_to(one))["data"] == "ann's"
        assert (await bob.answer_to(other))["data"] == "bob's"


#: A request that no client is asked -> the code of its refusal.
NOBODYS: list[tuple[str, dict[str, Any], int]] = [
    ("resourceRead", {"uri": "virtual://carl/x"}, -32008),
    ("resourceRead", {"uri": "untitled:Untitled-1"}, -32009),
    ("resourceRead", {"uri": "ahp-chat://bob/x"}, -32009),
    ("resourceRead", {"uri": "file:///etc/hostname"}, -32601),
    ("resourceRead", {"uri": "FILE://bob/x"}, -32601),
    ("resourceRequest", {"uri": "file:///etc/hostname"}, -32009),
    ("resourceRequest", {"uri": "ahp-root://"}, -32009),
    ("resourceRequest", {"uri": "virtual://carl/x"}, -32009),
    ("resourceCopy", {"source": FILE, "destination": "virtual://ann/x"}, -32602),
    ("resourceMove", {"source": FILE, "destination": "file:///tmp/x"}, -32602),
    ("createResourceWatch", {"uri": "virtual://carl/x"}, -32008),
]


@pytest.mark.parametrize(("method", "params", "code"), NOBODYS)
async def test_what_is_no_clients_is_refused_and_no_client_is_asked(
    method: str, params: dict[str, Any], code: int
) -> None:
    async with running_host() as host:
        ann, bob = await two(host)
        with refused(code):
            await ann.request(method, **params)
        assert not [it for it in bob.inbox if "id" in it]


def test_the_client_that_a_uri_names() -> None:
    assert client_named("vscode-vfs://bob") == "bob"
    assert client_named("x://bob?y#z") == "bob"
    assert client_named("x://bob%40home/a/b") == "bob@home"
    assert client_named("x:///a") is None
    assert client_named("x:bob/a") is None
    assert client_named("file://bob/a") is None
    assert client_named("AHP-terminal://bob/a") is None


async def test_a_client_of_ours_answers_with_its_handlers_and_without_one_gives_no_access() -> None:
    async def read(params: Any) -> Any:
        assert params["uri"] == FILE
        return READ

    async with (
        running_host() as host,
        host.client("bob", handlers={"resourceRead": read}),
        host.client("ann") as ann,
    ):
        result = await ann.request("resourceRead", ResourceReadParams(uri=FILE))
        assert result.data == "hello"
        with pytest.raises(ProtocolError, match="does not serve") as caught:
            await ann.request("resourceList", {"channel": ROOT, "uri": FILE})
        assert caught.value.code == -32601


# ---- watches ------------------------------------------------------------------------------------


def changed(uri: str = FILE) -> dict[str, Any]:
    return {
        "type": "resourceWatch/changed",
        "changes": {"items": [{"uri": uri, "type": "updated"}]},
    }


async def watch(ann: RawPeer, bob: RawPeer) -> None:
    id = await ann.call("createResourceWatch", uri="virtual://bob/", recursive=True)
    await answer(bob, await asked(bob, "createResourceWatch"), {"channel": W})
    assert await ann.answer_to(id) == {"channel": W}


async def test_a_watch_on_a_clients_files_is_relayed_and_only_that_client_may_speak() -> None:
    async with running_host() as host:
        ann, bob = await two(host)
        await watch(ann, bob)
        snapshot = await ann.subscribe(W)
        assert snapshot["state"] == {"root": "virtual://bob/", "recursive": True}
        await bob.dispatch(W, changed())
        envelope = await ann.expect_action("resourceWatch/changed")
        assert envelope["action"] == changed()
        assert envelope["origin"] == {"clientId": "bob", "clientSeq": 1}
        for action, word in (
            (changed(), "only the client"),
            ({"type": "session/ready"}, "only says"),
        ):
            refusal = await ann.answered(await ann.dispatch(W, action))
            assert word in refusal["params"]["rejectionReason"]
        await bob.subscribe(W)
        empty = await bob.answered(await bob.dispatch(W, {**changed(), "changes": {"items": []}}))
        assert "nothing" in empty["params"]["rejectionReason"]


async def test_a_watch_is_freed_with_its_last_subscriber() -> None:
    async with running_host() as host:
        ann, bob = await two(host)
        await watch(ann, bob)
        await ann.subscribe(W)
        await bob.subscribe(W)
        await ann.notify("unsubscribe", channel=W)
        await settled()
        assert host.ledger.find(W) is not None
        await bob.notify("unsubscribe", channel=W)
        assert (await bob.expect("unsubscribe"))["channel"] == W  # it may stop watching
        assert host.ledger.find(W) is None
        assert not host.tables.watchers
        with refused(-32008):
            await ann.subscribe(W)
        await watch(ann, bob)  # the name is free again


async def test_a_watch_is_freed_with_the_connection_of_its_subscriber_or_of_its_client() -> None:
    async with running_host() as host:
        ann, bob = await two(host)
        await watch(ann, bob)
        await ann.subscribe(W)
        ann.cut()
        await settled()
        assert host.ledger.find(W) is None
        ann = await host.peer("ann")
        await ann.hello()
        await watch(ann, bob)
        await ann.subscribe(W)
        bob.cut()
        await settled()
        assert host.ledger.find(W) is None


async def test_a_watch_that_nobody_listens_to_is_freed_after_a_while() -> None:
    async with running_host() as host:
        ann, bob = await two(host)
        await watch(ann, bob)
        await trio.sleep(29)
        assert host.ledger.find(W) is not None
        await trio.sleep(2)
        assert host.ledger.find(W) is None


async def test_a_client_cannot_name_a_channel_that_is_there_already() -> None:
    async with running_host(provoked=["expected"]) as host:
        ann, bob = await two(host)
        for result, code in (({"channel": ROOT}, -32010), ({"channel": "ahp-root:"}, -32010)):
            id = await ann.call("createResourceWatch", uri=FILE)
            await answer(bob, await asked(bob, "createResourceWatch"), result)
            with refused(code):
                await ann.answer_to(id)
        id = await ann.call("createResourceWatch", uri=FILE)
        await answer(bob, await asked(bob, "createResourceWatch"), {"chanel": W})
        with refused(-32603, "named no channel"):
            await ann.answer_to(id)


@pytest.mark.parametrize(
    "name", ["", "w", "file:///w", "ahp-chat://default/x", "AGENT:/s", "w:/" + "x" * 2048]
)
async def test_a_client_names_only_what_can_be_a_watch(name: str) -> None:
    async with running_host() as host:
        ann, bob = await two(host)
        id = await ann.call("createResourceWatch", uri="virtual://bob/")
        name = name.replace("AGENT", next(iter(host.tables.agents)))
        await answer(bob, await asked(bob, "createResourceWatch"), {"channel": name})
        with refused(-32603, "can be no watch"):
            await ann.answer_to(id)
        assert not host.tables.watchers


@pytest.mark.parametrize("result", [5, [], {"entries": [{"name": "a"}]}, {"entries": 1}])
async def test_what_is_no_result_is_not_passed_on(result: Any) -> None:
    async with running_host(provoked=["expected"]) as host:
        ann, bob = await two(host)
        id = await ann.call("resourceList", uri="virtual://bob/")
        await answer(bob, await asked(bob, "resourceList"), result)
        with refused(-32603, "the client bob gave no result of resourceList"):
            await ann.answer_to(id)
        id = await ann.call("resourceMkdir", uri="virtual://bob/d")
        await answer(bob, await asked(bob, "resourceMkdir"), None)
        assert await ann.answer_to(id) == {}


async def test_watches_outlive_the_actor_that_relays_them() -> None:
    async with running_host() as host:
        ann, bob = await two(host)
        await watch(ann, bob)
        await ann.subscribe(W)
        sys.kill(host.system.ref("watches"))
        await settled()
        await bob.dispatch(W, changed())
        await ann.expect_action("resourceWatch/changed")
        await ann.notify("unsubscribe", channel=W)
        await settled()
        assert host.ledger.find(W) is None
