"""The client while its connection holds."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
import trio

from ahpd.client import (
    ChannelGone,
    Client,
    ConnectionLost,
    RequestTimeout,
    open_client,
)
from ahpd.protocol import ROOT, URI, ErrorCode, ProtocolError, jsonrpc
from ahpd.protocol.connection import ActionEnvelope, SubscribeView, SubscriptionDeliveryOptions
from ahpd.protocol.jsontext import ParseError
from ahpd.protocol.model import JSON
from ahpd.protocol.root import SessionRemovedParams
from tests.client.support import (
    CHAT,
    CHAT_STATE,
    LOGS,
    ROOT_STATE,
    SESSION,
    Diary,
    ScriptedHost,
    Side,
    delta,
    envelope,
    part,
    snapshot,
    started,
    turn_texts,
)
from tests.wire import Wiretap


@asynccontextmanager
async def opened(
    wire: Wiretap, diary: Diary | None = None, **options: Any
) -> AsyncIterator[tuple[Client, Side, ScriptedHost]]:
    """A client that shows a chat, and the host's side of its connection."""
    host = ScriptedHost(wire)
    made: list[Side] = []

    async def welcome() -> None:
        made.append(await host.accept())
        await made[0].welcome(snapshot(ROOT_STATE, 0, ROOT), snapshot())

    async with trio.open_nursery() as nursery:
        nursery.start_soon(welcome)
        async with open_client(
            host.connect,
            client_id="phone",
            subscriptions=(ROOT, CHAT),
            observer=(diary or Diary()).observer(),
            **options,
        ) as client:
            yield client, made[0], host
        nursery.cancel_scope.cancel()


async def settle() -> None:
    await trio.testing.wait_all_tasks_blocked()


async def test_it_is_connected_with_the_states_it_asked_for(wire: Wiretap) -> None:
    diary = Diary()
    async with opened(wire, diary) as (client, _, _):
        assert client.status == "connected"
        assert client.store(CHAT).kind == "chat"
        assert client.store("ahp-root:").kind == "root"  # another spelling of the same
        assert client.host is not None
        assert client.host.protocol_version == "1.0.0"
        assert client.last_seen == 0
    assert diary.statuses == ["connecting", "resuming", "connected", "closed"]


async def test_a_dispatch_is_shown_sent_and_confirmed(wire: Wiretap) -> None:
    diary = Diary()
    async with opened(wire, diary) as (client, side, _):
        operation = client.dispatch(CHAT, started("t1"))
        assert turn_texts(client.store(CHAT).optimistic) == ["Fix the build"]
        params = await side.expect_dispatch()
        assert (params["channel"], params["clientSeq"]) == (CHAT, 1)
        await side.tell(envelope(1, started("t1"), by=("phone", 1)))
        assert (await operation.wait()).kind == "accepted"
        assert turn_texts(client.store(CHAT).confirmed) == ["Fix the build"]
        assert client.last_seen == 1
        assert client.next_client_seq == 2
        assert diary.settled == [operation]


async def test_a_refusal_is_told_with_its_reason(wire: Wiretap) -> None:
    async with opened(wire) as (client, side, _):
        operation = client.dispatch(CHAT, started("t1"))
        await side.expect_dispatch()
        await side.tell(envelope(1, started("t1"), by=("phone", 1), refused="a turn runs"))
        outcome = await operation.wait()
        assert (outcome.kind, outcome.reason) == ("refused", "a turn runs")
        assert turn_texts(client.store(CHAT).optimistic) == []


async def test_without_a_subscription_no_answer_is_waited_for(wire: Wiretap) -> None:
    async with opened(wire) as (client, side, _):
        operation = client.dispatch("ahp-chat:/other", started("t1"))
        assert (await operation.wait()).kind == "unanswered"
        await side.expect_dispatch()
        assert client.open_operations == ()


async def test_what_is_no_json_is_refused_before_it_is_shown(wire: Wiretap) -> None:
    async with opened(wire) as (client, side, _):
        for _ in range(2):
            with pytest.raises(ParseError):
                client.dispatch(CHAT, started("t1", "\ud800"))
            assert client.store(CHAT).pending == ()
            side.cut()
            await client.wait_status("offline")


async def test_subscribing_brings_a_store_and_the_observers_hear_of_it(wire: Wiretap) -> None:
    diary = Diary()
    async with opened(wire, diary) as (client, side, _), trio.open_nursery() as nursery:
        heard: list[int | None] = []

        def on_change(_: URI, __: Any, what: ActionEnvelope | None) -> None:
            heard.append(None if what is None else what.server_seq)

        client.unsubscribe(CHAT)
        await side.receive()
        stop = client.observe(CHAT, on_change)
        view = SubscribeView(turns=20)
        delivery = SubscriptionDeliveryOptions(max_latency_ms=50)

        async def subscribe() -> None:
            store = await client.subscribe(CHAT, view=view, delivery=delivery)
            assert store is client.store(CHAT)

        nursery.start_soon(subscribe)
        request = await side.expect("subscribe")
        assert request.params == {
            "channel": CHAT,
            "view": {"turns": 20},
            "delivery": {"maxLatencyMs": 50},
        }
        # What comes around the answer: the first is in the snapshot, the second is not.
        await side.tell(envelope(3, started("t0")), envelope(5, part("t1")))
        running: JSON = {"id": "t1", "startedAt": "x", "responseParts": []}
        running["message"] = {"text": "hi", "origin": {"kind": "user"}}
        state = {**CHAT_STATE, "activeTurn": running}
        await side.answer(request, {"snapshot": snapshot(state, 4).wire()})
        await side.tell(envelope(6, delta("t1", "more")))
        found = await client.until(CHAT, lambda chat: chat.active_turn.response_parts)
        await settle()
        assert len(found) == 1
        assert heard == [None, 5, 6]
        stop()
        await side.tell(envelope(7, delta("t1", "more")))
        await settle()
        assert heard == [None, 5, 6]
        assert diary.changes[-1] == (CHAT, 7)


async def test_a_channel_without_state_has_no_store_and_its_notices_come(wire: Wiretap) -> None:
    diary = Diary()
    async with opened(wire, diary) as (client, side, _), trio.open_nursery() as nursery:

        async def subscribe() -> None:
            assert await client.subscribe(LOGS) is None

        nursery.start_soon(subscribe)
        await side.answer(await side.expect("subscribe"), {})
        logs: JSON = {"channel": LOGS, "payload": {"resourceLogs": []}}
        await side.send(jsonrpc.notification("otlp/exportLogs", logs))
        removed: JSON = {"channel": ROOT, "session": SESSION}
        await side.send(jsonrpc.notification("root/sessionRemoved", removed))
        await side.send(jsonrpc.notification("x-vendor/news", {"a": 1}))
        await settle()
        assert [name for name, _ in diary.notices] == [
            "otlp/exportLogs",
            "root/sessionRemoved",
            "x-vendor/news",
        ]
        assert diary.notices[1][1] == SessionRemovedParams(channel=ROOT, session=SESSION)
        with pytest.raises(ChannelGone):
            client.store(LOGS)


async def test_a_refused_subscribe_leaves_no_channel(wire: Wiretap) -> None:
    async with opened(wire) as (client, side, _), trio.open_nursery() as nursery:

        async def host() -> None:
            await side.refuse(await side.expect("subscribe"), ErrorCode.NOT_FOUND)

        nursery.start_soon(host)
        with pytest.raises(ProtocolError):
            await client.subscribe(SESSION)
        assert SESSION not in client.channels
        await side.nothing_more()


async def test_a_cancelled_subscribe_is_taken_back(wire: Wiretap) -> None:
    async with opened(wire) as (client, side, _):
        with trio.move_on_after(5):
            await client.subscribe(SESSION)
        assert SESSION not in client.channels
        request = await side.expect("subscribe")
        notice = await side.receive()
        assert isinstance(notice, jsonrpc.Notification)
        assert (notice.method, notice.params) == ("unsubscribe", {"channel": SESSION})
        await side.answer(request, {})
        await settle()
        assert SESSION not in client.channels


async def test_a_refresh_that_fails_keeps_the_old_state_and_loses_nothing(wire: Wiretap) -> None:
    async with opened(wire) as (client, side, _), trio.open_nursery() as nursery:

        async def refresh() -> None:
            with pytest.raises(RequestTimeout):
                await client.subscribe(CHAT)

        nursery.start_soon(refresh)
        await side.expect("subscribe")
        await side.tell(envelope(1, started("t1")))
        await settle()
        assert turn_texts(client.store(CHAT).confirmed) == []
        await trio.sleep(31)
        assert turn_texts(client.store(CHAT).confirmed) == ["Fix the build"]


async def test_an_unsubscribed_channel_ends_its_operations(wire: Wiretap) -> None:
    diary = Diary()
    async with opened(wire, diary) as (client, side, _):
        operation = client.dispatch(CHAT, started("t1"))
        client.unsubscribe(CHAT)
        outcome = await operation.wait()
        assert (outcome.kind, outcome.reason) == ("unanswered", "unsubscribed")
        await side.expect_dispatch()
        notice = await side.receive()
        assert isinstance(notice, jsonrpc.Notification)
        assert notice.method == "unsubscribe"
        await side.tell(envelope(1, started("t1"), by=("phone", 1)))
        await settle()
        assert CHAT not in client.channels
        assert diary.dropped == []


async def test_an_envelope_that_cannot_be_read_brings_a_new_snapshot(wire: Wiretap) -> None:
    async with opened(wire) as (client, side, _):
        operation = client.dispatch(CHAT, started("t2"))
        await side.expect_dispatch()
        rogue = Side(side.transport, wire.connection("rogue", legal="c2h"))
        broken: JSON = {"channel": CHAT, "serverSeq": 1, "action": {"type": "chat/turnStarted"}}
        await rogue.send(jsonrpc.notification("action", broken))
        await side.tell(envelope(2, started("t2"), by=("phone", 1), refused="a turn runs"))
        request = await side.expect("subscribe")
        message = {"text": "broken", "origin": {"kind": "user"}}
        turn = {"id": "t1", "startedAt": "x", "message": message, "responseParts": []}
        await side.answer(
            request, {"snapshot": snapshot({**CHAT_STATE, "activeTurn": turn}, 2).wire()}
        )
        assert (await operation.wait()).kind == "refused"
        assert turn_texts(client.store(CHAT).optimistic) == ["broken"]


async def test_a_malformed_notice_is_passed_over(wire: Wiretap) -> None:
    diary = Diary()
    async with opened(wire, diary) as (client, side, _):
        rogue = Side(side.transport, wire.connection("rogue", legal="c2h"))
        await rogue.send(jsonrpc.notification("root/sessionRemoved", {"channel": 3}))
        await rogue.send(jsonrpc.notification("action", {"channel": "ahp-chat:/unknown"}))
        await side.nothing_more()
        assert (diary.notices, client.status) == ([], "connected")


async def test_commands_are_typed_requests(wire: Wiretap) -> None:
    async with opened(wire) as (client, side, _), trio.open_nursery() as nursery:
        asked: list[tuple[str, JSON]] = []
        results: dict[str, JSON] = {
            "listSessions": {"items": []},
            "fetchTurns": {},
            "authenticate": {},
            "x-vendor/ask": [1],
        }

        async def host() -> None:
            while True:
                request = await side.receive()
                assert isinstance(request, jsonrpc.Request)
                asked.append((request.method, request.params))
                await side.answer(request, results.get(request.method))

        nursery.start_soon(host)
        await client.ping()
        listed = await client.list_sessions(limit=5)
        assert listed.items == ()
        await client.create_session(SESSION, provider="scripted", working_directories=["file:///w"])
        await client.create_chat(SESSION, CHAT)
        await client.fetch_turns(CHAT, "older")
        await client.dispose_chat(CHAT)
        await client.dispose_session(SESSION)
        await client.authenticate("https://api", "secret", expires_in=60, scopes=["read"])
        assert await client.request("x-vendor/ask", {"channel": ROOT}) == [1]
        assert asked[:3] == [
            ("ping", {"channel": ROOT}),
            ("listSessions", {"channel": ROOT, "limit": 5}),
            (
                "createSession",
                {
                    "channel": SESSION,
                    "provider": "scripted",
                    "workingDirectories": ["file:///w"],
                },
            ),
        ]
        nursery.cancel_scope.cancel()


async def test_a_request_of_the_host_reaches_its_handler(wire: Wiretap) -> None:
    async def read(_: Any) -> JSON:
        return {"data": "x", "encoding": "utf-8"}

    async with opened(wire, handlers={"resourceRead": read}) as (_, side, _):
        params = {"channel": ROOT, "uri": "file:///x"}
        await side.send(jsonrpc.request(1, "resourceRead", params))
        answer = await side.receive()
        assert isinstance(answer, jsonrpc.Success)


async def test_what_was_dispatched_last_is_written_before_the_end(wire: Wiretap) -> None:
    diary = Diary()
    async with opened(wire, diary) as (client, side, _):
        operation = client.dispatch(CHAT, started("t1"))
    assert operation.outcome is not None
    assert operation.outcome.reason == "the client was closed"
    await side.expect_dispatch()
    await side.ended()
    with pytest.raises(ConnectionLost):
        await client.ping()
    with pytest.raises(ConnectionLost):
        await client.wait_status("connected")
    with pytest.raises(ConnectionLost):
        await client.until(CHAT, lambda _: False)


async def test_what_the_body_raises_comes_out_as_it_is(wire: Wiretap) -> None:
    host = ScriptedHost(wire)

    async def welcome() -> None:
        await (await host.accept()).welcome()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(welcome)
        with pytest.raises(KeyError, match="mine"):
            async with open_client(host.connect, client_id="phone", subscriptions=()):
                raise KeyError("mine")


async def test_the_first_connection_is_tried_once(wire: Wiretap) -> None:
    host = ScriptedHost(wire)
    host.down = True
    with pytest.raises(ConnectionLost, match="cannot connect: connection refused"):
        async with open_client(host.connect, client_id="phone"):
            raise AssertionError("not reached")
    assert host.attempts == 1


async def test_a_connection_that_never_comes_about_has_a_deadline() -> None:
    async def connect() -> Any:
        await trio.sleep_forever()

    with pytest.raises(ConnectionLost, match="within 10 s"):
        async with open_client(connect, client_id="phone"):
            raise AssertionError("not reached")


async def test_a_host_without_a_version_for_us_refuses_the_handshake(wire: Wiretap) -> None:
    host = ScriptedHost(wire)

    async def refuse() -> None:
        side = await host.accept()
        request = await side.expect("initialize")
        assert request.params["protocolVersions"] == ["0.1.0"]
        error = ProtocolError(-32005, "no", {"supportedVersions": ["^1.0.0"]})
        await side.send(jsonrpc.failure(request.id, error))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(refuse)
        with pytest.raises(ProtocolError):
            async with open_client(host.connect, client_id="phone", versions=["0.1.0"]):
                raise AssertionError("not reached")
