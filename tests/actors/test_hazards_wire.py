"""The protocol hazards that a single message can bring about, each by its number."""

from __future__ import annotations

from typing import Any

import pytest
import trio

from ahpd.protocol.actions import ACTIONS
from ahpd.protocol.methods import CLIENT_METHODS
from ahpd.protocol.uris import ROOT
from tests.actors.support import (
    S2,
    C,
    S,
    answer,
    least,
    readable,
    refused,
    room,
    settled,
    started,
)
from tests.harness import Refused, running_host
from tests.harness.replicas import state_of

# ---- B04: spellings of URIs ---------------------------------------------------------------------

ODD = ("puppet:/A%2Fb?x#y", "puppet:/trailing/", "puppet:/UPPER", "puppet:/a b", "puppet:/\u00e9")


@pytest.mark.parametrize("uri", ODD)
async def test_b04_a_channel_uri_is_echoed_byte_for_byte(uri: str) -> None:
    async with running_host() as host:
        ann = await host.peer("ann")
        await ann.hello()
        await ann.request("createSession", channel=uri)
        assert (await ann.subscribe(uri))["resource"] == uri
        added = await ann.expect("root/sessionAdded")
        assert added["summary"]["resource"] == uri
        for other in (uri.rstrip("/") + "//", uri.lower() + "?", uri.replace("%2F", "/") + "/"):
            with refused(-32001, other):
                await ann.subscribe(other)


async def test_b04_the_root_is_always_spelled_one_way() -> None:
    """`ahp-root:` is taken for it (quirk 8); other spellings are errors, never a second state."""
    async with running_host() as host:
        ann = await host.peer("ann")
        result = await ann.hello(subscribe=("ahp-root:", ROOT))
        assert [each["resource"] for each in result["snapshots"]] == [ROOT]
        assert (await ann.subscribe("ahp-root:"))["resource"] == ROOT
        for spelling in ("ahp-root:///", "AHP-ROOT://", "ahp-root:/"):
            with refused(-32008):
                await ann.subscribe(spelling)
        seq = await ann.dispatch("ahp-root:", {"type": "root/configChanged", "config": {}})
        assert (await answer(ann, seq))["channel"] == ROOT
        with refused(-32003):
            await ann.request("createSession", channel="ahp-root:")


# ---- B05: who may say what ----------------------------------------------------------------------

CHANNELS = {"root": ROOT, "session": S, "chat": C}
#: A chat is renamed and configured on its own channel (quirk 22, R-8.42).
ELSEWHERE = {("session/titleChanged", "chat"), ("session/configChanged", "chat")}


@pytest.mark.parametrize("kind", CHANNELS)
async def test_b05_every_action_type_on_every_kind_of_channel(kind: str) -> None:
    """Host-only ones and those of another channel are refused, in words, and change nothing.

    Those that a client may send there are answered too: echoed, or refused for a reason of theirs.
    """
    async with running_host(provoked=["c2h"]) as host:
        ann, bob = await room(host), await room(host, "bob")
        for name, info in ACTIONS.items():
            for cls in info.classes:
                before = state_of(host, CHANNELS[kind])
                seq = await ann.dispatch(CHANNELS[kind], least(cls))
                params = await answer(ann, seq)
                reason = params.get("rejectionReason")
                assert reason is None or readable(reason), (name, reason)
                assert params["action"] == least(cls)
                if info.channel == kind and info.client_may_dispatch:
                    continue
                if (name, kind) in ELSEWHERE:
                    continue
                assert reason is not None, name
                expected = "the host's to say" if info.channel == kind else "belongs on a"
                assert expected in reason, (name, reason)
                assert state_of(host, CHANNELS[kind]) == before, name
        await settled()
        assert not any("rejectionReason" in it.get("params", {}) for it in bob.inbox)


MALFORMED: list[Any] = [
    {"type": 5},
    {},
    [],
    "chat/delta",
    None,
    {"type": ["chat/delta"]},
    {"type": None, "turnId": "t"},
]


@pytest.mark.parametrize("action", MALFORMED, ids=repr)
async def test_b05_an_action_without_a_type_is_dropped_and_the_connection_stays(
    action: Any,
) -> None:
    async with running_host(provoked=["c2h"]) as host:
        ann = await room(host)
        seq = host.ledger.seq
        await ann.notify("dispatchAction", channel=C, clientSeq=1, action=action)
        assert await ann.request("ping") is None
        await settled()
        assert host.ledger.seq == seq


UNREADABLE: list[Any] = [
    {"type": "chat/zzz"},
    {"type": "x-mine/thing", "a": 1},
    {"type": "chat/turnStarted"},
    {"type": "chat/turnStarted", "turnId": 5, "startedAt": "x", "message": {}},
    {"type": "chat/toolCallConfirmed", "turnId": "t", "toolCallId": "c", "approved": "yes"},
    {"type": "chat/pendingMessageSet", "kind": "queued", "id": "q"},
]


@pytest.mark.parametrize("action", UNREADABLE, ids=repr)
async def test_b05_an_action_that_cannot_be_read_is_refused(action: Any) -> None:
    async with running_host(provoked=["c2h", "h2c"]) as host:
        ann = await room(host)
        seq = await ann.dispatch(C, action)
        params = await answer(ann, seq)
        assert readable(params["rejectionReason"]), params
        assert params["action"] == action
        assert params["origin"] == {"clientId": "ann", "clientSeq": seq}


async def test_b05_an_action_for_a_channel_that_does_not_exist_gets_nothing() -> None:
    """R-5.15: no echo, no refusal, no error, and no number."""
    async with running_host() as host:
        ann = await room(host)
        await settled()
        before, seq = len(ann.inbox), host.ledger.seq
        await ann.dispatch(S2, {"type": "session/titleChanged", "title": "x"})
        await ann.dispatch("ahp-chat:/never", started("t1"))
        await ann.request("ping")
        await settled()
        assert (len(ann.inbox), host.ledger.seq) == (before, seq)


# ---- B49: versions ------------------------------------------------------------------------------

OFFERS: list[tuple[Any, Any]] = [
    (["0.7.0"], -32005),
    (["1.0.0", "0.9.0"], "1.0.0"),
    (["0.9.0", "1.0.0"], "1.0.0"),
    (["0.9.0"], "0.9.0"),
    (["0.10.0"], "0.10.0"),
    (["0.10.0", "0.9.7"], "0.10.0"),
    (["1.99.0"], "1.99.0"),
    (["9.0.0", "1.0.0"], "1.0.0"),
    (["1.10.0", "1.2.99"], "1.10.0"),
    ([], -32005),
    (["1"], -32602),
    (["v1.0.0"], -32602),
    (["1.0.0", "1.0.0-beta"], -32602),
    (["01.0.0"], -32602),
    ([1.0], -32602),
    ("1.0.0", -32602),
    (None, -32602),
    ([f"2.{n}.0" for n in range(10_000)], -32005),
    ([*(f"2.{n}.0" for n in range(10_000)), "1.0.0"], "1.0.0"),
]


@pytest.mark.parametrize(("offer", "expected"), OFFERS, ids=lambda it: repr(it)[:30])
async def test_b49_the_highest_version_that_fits_is_chosen(offer: Any, expected: Any) -> None:
    async with running_host(provoked=["c2h"]) as host:
        ann = await host.peer("ann")
        id = await ann.call("initialize", clientId="ann", protocolVersions=offer)
        if isinstance(expected, str):
            assert (await ann.answer_to(id))["protocolVersion"] == expected
        else:
            with refused(expected):
                await ann.answer_to(id)
        assert await ann.request("ping") is None


async def test_b49_quirk_2_an_offer_that_does_not_fit_leaves_time_for_a_second() -> None:
    """The data names what is served; five seconds later the connection is closed."""
    async with running_host() as host:
        ann, bob = await host.peer("ann"), await host.peer("bob")
        for peer in (ann, bob):
            id = await peer.call("initialize", clientId=peer.name, protocolVersions=["0.7.0"])
            with pytest.raises(Refused) as caught:
                await peer.answer_to(id)
            assert caught.value.code == -32005
            assert caught.value.data is not None
            assert "^1.0.0" in caught.value.data["supportedVersions"]
        await trio.sleep(4.9)
        assert ann.closed is bob.closed is None
        await bob.hello()
        start = trio.current_time()
        await ann.ended()
        assert trio.current_time() - start < 0.2
        await trio.sleep(60)
        assert bob.closed is None
        assert await bob.request("ping") is None


async def test_b49_the_handshake_comes_first_and_once_and_ping_at_any_time() -> None:
    async with running_host() as host:
        ann = await host.peer("ann")
        assert await ann.request("ping") is None
        for method, params in (
            ("listSessions", {}),
            ("subscribe", {"channel": ROOT}),
            ("createSession", {"channel": S}),
        ):
            with refused(-32600, method):
                await ann.request(method, **params)
        await ann.notify("unsubscribe", channel=ROOT)
        await ann.dispatch(ROOT, {"type": "root/configChanged", "config": {}})
        await ann.hello()
        with refused(-32600, "initialize"):
            await ann.hello()
        with refused(-32600, "reconnect"):
            await ann.request("reconnect", clientId="ann", lastSeenServerSeq=0, subscriptions=[])
        assert await ann.request("ping") is None
        assert (await ann.request("listSessions"))["items"] == []


# ---- B67, B68: JSON and JSON-RPC ---------------------------------------------------------------

#: What is sent -> the error code of the answer, and its id; None: no answer at all.
FRAMES: list[tuple[bytes, int | None, Any]] = [
    (b"{", -32700, None),
    (b"", -32700, None),
    (b'"x"', -32600, None),
    (b"5", -32600, None),
    (b"null", -32600, None),
    (b"{}", -32600, None),
    (b'{"jsonrpc":"2.0","id":4}', -32600, 4),
    (b"[]", -32600, None),
    (b'[{"jsonrpc":"2.0","id":1,"method":"ping"},{"jsonrpc":"2.0","id":2}]', -32600, None),
    (b'{"method":42}', -32600, None),
    (b'{"jsonrpc":"2.0","id":3,"method":42}', -32600, 3),
    (b'{"jsonrpc":"2.0","method":"zzz"}', None, None),
    (b'{"jsonrpc":"2.0","method":"zzz","params":[]}', None, None),
    (b'{"jsonrpc":"2.0","id":7,"method":"zzz"}', -32601, 7),
    (b'{"jsonrpc":"2.0","id":"a","method":"zzz"}', -32601, "a"),
    (b'{"jsonrpc":"2.0","id":1.5,"method":"zzz"}', -32601, 1.5),
    (b'{"jsonrpc":"2.0","id":null,"method":"zzz"}', -32600, None),
    (b'{"jsonrpc":"2.0","id":{},"method":"zzz"}', -32600, None),
    (b'{"jsonrpc":"2.0","id":true,"method":"zzz"}', -32600, None),
    (b'{"jsonrpc":"1.0","id":8,"method":"ping"}', -32600, 8),
    (b'{"id":8,"method":"ping"}', -32600, 8),
    (b'{"jsonrpc":"2.0","id":8,"method":"listSessions","params":[]}', -32602, 8),
    (b'{"jsonrpc":"2.0","id":8,"method":"listSessions","params":5}', -32602, 8),
    (b'{"jsonrpc":"2.0","id":8,"method":"createSession","params":null}', -32602, 8),
    (b'{"jsonrpc":"2.0","id":8,"method":"createSession"}', -32602, 8),
    (b'{"jsonrpc":"2.0","id":8,"method":"subscribe","params":{}}', -32602, 8),
    (b'{"jsonrpc":"2.0","id":8,"method":"subscribe","params":{"channel":5}}', -32602, 8),
    (b'{"jsonrpc":"2.0","id":9,"result":{}}', None, None),
    (b'{"jsonrpc":"2.0","id":9,"error":{"code":1,"message":"m"}}', None, None),
    (b'{"jsonrpc":"2.0","id":9,"result":1,"error":{"code":1,"message":"m"}}', None, None),
    (b'{"jsonrpc":"2.0","id":8,"method":"unsubscribe","params":{"channel":"a:b"}}', -32601, 8),
    (b'{"jsonrpc":"2.0","id":8,"method":"dispatchAction","params":{}}', -32601, 8),
    (b'{"jsonrpc":"2.0","method":"unsubscribe","params":{}}', None, None),
    (b'{"jsonrpc":"2.0","method":"unsubscribe","params":{"channel":[]}}', None, None),
    (b'{"jsonrpc":"2.0","method":"ping"}', None, None),
    (b'{"jsonrpc":"2.0","method":"initialize"}', None, None),
    (b'{"jsonrpc":"2.0","id":8,"method":"listSessions","params":{"limit":NaN}}', -32700, None),
    (b'{"jsonrpc":"2.0","id":8,"method":"listSessions","params":{"limit":1e999}}', -32700, None),
    (b"[" * 100_000, -32700, None),
    (b'{"jsonrpc":"2.0","id":8,"method":"zzz","params":{"a":' + b"[" * 300 + b"]" * 300 + b"}}",
     -32700, None),
    (b'{"jsonrpc":"2.0","id":8,"method":"zzz","params":{"a":' + b"7" * 1_000_000 + b"}}",
     -32700, None),
    (b"\xff\xfe", -32700, None),
    (b'{"jsonrpc":"2.0","id":8,"method":"z\xff"}', -32700, None),
]  # fmt: skip


@pytest.mark.parametrize(("text", "code", "id"), FRAMES, ids=lambda it: repr(it)[:50])
async def test_b68_ill_formed_messages_are_answered_or_not_and_the_connection_stays(
    text: bytes, code: int | None, id: Any
) -> None:
    async with running_host(provoked=["c2h", "h2c"]) as host:
        ann = await host.peer("ann")
        await ann.hello()
        ann.inbox.clear()
        await ann.send(text)
        assert await ann.request("ping") is None
        await settled()
        if code is None:
            assert ann.inbox == []
        else:
            [answer] = ann.inbox
            assert (answer["error"]["code"], answer["id"]) == (code, id)
            assert "Traceback" not in answer["error"]["message"]


async def test_b68_two_requests_with_one_id_are_both_answered() -> None:
    async with running_host(provoked=["."]) as host:
        ann = await host.peer("ann")
        await ann.hello()
        request = {"jsonrpc": "2.0", "id": 5, "method": "listSessions", "params": {}}
        await ann.send(request)
        await ann.send(request)
        for _ in range(2):
            assert await ann.answer_to(5) == {"items": []}


async def test_b68_a_handler_that_fails_is_answered_without_its_internals(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with running_host() as host:
        ann = await room(host)
        host.tables.catalogue = 5  # type: ignore[assignment]
        with refused(-32603, "listSessions"):
            await ann.request("listSessions")
        host.tables.catalogue = {}
        assert await ann.request("ping") is None
        assert "Traceback" in caplog.text


SEQS: list[tuple[bytes, int | float | None]] = [
    (b"1.0", 1.0),
    (b"-7", -7),
    (b"1.5", 1.5),
    (b"9007199254740993", 9007199254740993),
    (b"true", None),
    (b'"1"', None),
    (b"null", None),
    (b"{}", None),
]


@pytest.mark.parametrize(("text", "seq"), SEQS, ids=repr)
async def test_b67_a_client_seq_is_a_number_and_comes_back_as_it_was(
    text: bytes, seq: float | None
) -> None:
    """R-1.32: a dispatch without one cannot be answered, so it is dropped."""
    async with running_host(provoked=["c2h"]) as host:
        ann = await room(host)
        await settled()
        ann.inbox.clear()
        await ann.send(
            b'{"jsonrpc":"2.0","method":"dispatchAction","params":{"channel":"%s","clientSeq":%s,'
            b'"action":{"type":"chat/isReadChanged","isRead":false}}}' % (C.encode(), text)
        )
        await ann.request("ping")
        await settled()
        origins = [m["params"].get("origin") for m in ann.inbox if m["params"]["channel"] == C]
        assert origins == ([] if seq is None else [{"clientId": "ann", "clientSeq": seq}])


SEEN: list[tuple[bytes, str]] = [
    (b"-1", "snapshot"),
    (b"1e300", "snapshot"),
    (b"99999", "snapshot"),
    (b"0", "snapshot"),
    (b'"5"', "-32602"),
    (b"1.5", "-32602"),
    (b"true", "-32602"),
    (b"null", "-32602"),
]


@pytest.mark.parametrize(("seen", "answer"), SEEN, ids=repr)
async def test_b22_b67_a_last_seen_number_that_makes_no_sense(seen: bytes, answer: str) -> None:
    """Too high or too low: snapshots. No whole number: -32602."""
    async with running_host(replay=2, provoked=["c2h"]) as host:
        ann = await room(host)
        for number in range(4):
            await ann.dispatch(C, {"type": "chat/isReadChanged", "isRead": number % 2 == 0})
        await ann.request("listSessions")
        ann.cut()
        again = await host.peer("ann")
        await again.send(
            b'{"jsonrpc":"2.0","id":77,"method":"reconnect","params":{"channel":"ahp-root://",'
            b'"clientId":"ann","lastSeenServerSeq":%s,"subscriptions":["%s"]}}' % (seen, C.encode())
        )
        if answer == "snapshot":
            result = await again.answer_to(77)
            assert result["type"] == "snapshot"
            assert [each["resource"] for each in result["snapshots"]] == [C]
        else:
            with refused(int(answer)):
                await again.answer_to(77)
            assert await again.request("ping") is None


# ---- every method -------------------------------------------------------------------------------

SERVED = {
    "initialize", "ping", "reconnect", "subscribe", "listSessions", "createSession",
    "disposeSession", "createChat", "disposeChat", "moveChat", "fetchTurns", "resourceRequest",
    "resourceRead", "resourceWrite", "resourceList", "resourceCopy", "resourceMove",
    "resourceDelete", "resourceResolve", "resourceMkdir", "createResourceWatch", "completions",
    "authenticate", "resolveSessionConfig", "sessionConfigCompletions", "createTerminal",
    "disposeTerminal",
}  # fmt: skip


@pytest.mark.parametrize("name", [n for n, m in CLIENT_METHODS.items() if m.is_request])
async def test_every_method_is_served_or_says_that_it_is_not(name: str) -> None:
    """R-1.29, R-1.30: never an empty success for what is not served."""
    async with running_host(provoked=["c2h"]) as host:
        ann = await room(host)
        id = await ann.call(name, **least(CLIENT_METHODS[name].params))
        answer = await ann.wait(lambda it: it.get("id") == id)
        code = answer.get("error", {}).get("code")
        assert (code == -32601) == (name not in SERVED), answer


@pytest.mark.parametrize("name", sorted(n for n in SERVED if CLIENT_METHODS[n].fixed_channel))
async def test_a_fixed_channel_may_be_missing_but_not_wrong(name: str) -> None:
    """R-1.18: the refusal names the right one; `initialize` and `ping` take any."""
    method = CLIENT_METHODS[name]
    for channel in (None, C, "ahp-root:", 5):
        async with running_host(provoked=["c2h"]) as host:
            ann = await host.peer("ann")
            if name not in ("initialize", "ping", "reconnect"):
                await ann.hello()
            params: dict[str, Any] = least(method.params)
            params |= {"clientId": "ann", "protocolVersions": ["1.0.0"], "channel": channel}
            if channel is None:
                del params["channel"]
            await ann.send({"jsonrpc": "2.0", "id": 9, "method": name, "params": params})
            answer = await ann.wait(lambda it: it.get("id") == 9)
            error = answer.get("error", {"code": 0, "message": ""})
            wrong = channel in (C, 5) and name not in ("initialize", "ping")
            named = error["code"] == -32602 and ROOT in error["message"]
            assert named == wrong, answer
