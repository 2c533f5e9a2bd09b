"""Attempts to come back: broken off, refused, cancelled, repeated by themselves."""

from __future__ import annotations

import pytest
import trio

from ahpd.client import Backoff, Client, ConnectionLost, RequestTimeout
from ahpd.protocol import ROOT, ErrorCode, ProtocolError, jsonrpc
from tests.client.stage import settle, staged, turn
from tests.client.support import (
    CHAT,
    CHAT_STATE,
    ROOT_STATE,
    SESSION,
    SESSION_STATE,
    Side,
    envelope,
    snapshot,
    started,
)
from tests.wire import Wiretap


async def test_losing_the_connection_during_the_handshake_loses_no_operation(
    wire: Wiretap,
) -> None:
    async with staged(wire) as stage, trio.open_nursery() as nursery:
        operation = stage.client.dispatch(CHAT, started("t1"))
        await settle()
        await stage.lose()

        async def cut_at_reconnect() -> None:
            side = await stage.host.accept()
            await side.expect("reconnect")
            side.cut()

        nursery.start_soon(cut_at_reconnect)
        with pytest.raises(ConnectionLost):
            await stage.client.reconnect_now()
        assert stage.client.status == "offline"
        assert stage.client.open_operations == (operation,)
        assert stage.texts() == ["Fix the build"]
        async with stage.back() as side:
            await side.replay(envelope(11, started("t1"), by=("phone", 1)))
        assert (await operation.wait()).kind == "accepted"


async def test_losing_it_after_the_operations_were_taken_out_loses_none(wire: Wiretap) -> None:
    async def on_resumed(client: Client) -> None:
        if client.next_client_seq > 1:
            await client.ping()

    async with staged(wire, on_resumed=on_resumed) as stage, trio.open_nursery() as nursery:
        operation = stage.client.dispatch(CHAT, started("t1"))
        await settle()
        await stage.lose()

        async def cut_at_ping() -> None:
            side = await stage.host.accept()
            await side.restore(
                snapshot(ROOT_STATE, 12, ROOT),
                snapshot(SESSION_STATE, 12, SESSION),
                snapshot({**CHAT_STATE, "turnsNextCursor": "older"}, 12),
            )
            await side.expect("ping")
            side.cut()

        nursery.start_soon(cut_at_ping)
        with pytest.raises(ConnectionLost):
            await stage.client.reconnect_now()
        assert stage.client.open_operations == (operation,)
        async with stage.back() as side:
            await side.replay()
            await side.answer(await side.expect("ping"), None)
        # That the replay lacks an echo proves nothing: a snapshot came before it.
        outcome = await operation.wait()
        assert outcome.reason == "it may have run: not all turns since then are loaded"


async def test_a_malformed_or_unknown_answer_means_starting_over(wire: Wiretap) -> None:
    async with staged(wire) as stage:
        for answer in ({"type": "replay", "actions": 3}, {"type": "mixed"}):
            await stage.lose()
            async with stage.back() as side:
                rogue = Side(side.transport, wire.connection("rogue", legal="c2h"))
                await rogue.answer(await rogue.expect("reconnect"), answer)
                await rogue.welcome(
                    snapshot(ROOT_STATE, 3, ROOT),
                    snapshot(SESSION_STATE, 3, SESSION),
                    snapshot(CHAT_STATE, 3),
                    number=3,
                )
            assert stage.client.last_seen == 3


async def test_an_open_request_fails_and_may_be_asked_again(wire: Wiretap) -> None:
    async with staged(wire) as stage, trio.open_nursery() as nursery:
        failed = trio.Event()

        async def create() -> None:
            with pytest.raises(ConnectionLost):
                await stage.client.create_session(SESSION)
            with pytest.raises(ConnectionLost, match="not connected"):
                await stage.client.create_session(SESSION)
            failed.set()
            await stage.client.wait_status("connected")
            with pytest.raises(ProtocolError) as caught:
                await stage.client.create_session(SESSION)
            assert caught.value.code == ErrorCode.SESSION_ALREADY_EXISTS

        nursery.start_soon(create)
        await stage.side.expect("createSession")
        await stage.lose()
        await failed.wait()
        async with stage.back() as side:
            await side.replay()
        await side.refuse(await side.expect("createSession"), ErrorCode.SESSION_ALREADY_EXISTS)


async def test_a_subscribe_cut_off_leaves_nothing(wire: Wiretap) -> None:
    other = "ahp-chat:/other"
    async with staged(wire) as stage, trio.open_nursery() as nursery:

        async def subscribe() -> None:
            with pytest.raises(ConnectionLost):
                await stage.client.subscribe(other)

        nursery.start_soon(subscribe)
        await stage.side.expect("subscribe")
        await stage.lose()
        async with stage.back() as side:
            assert other not in (await side.replay()).params["subscriptions"]
        await side.nothing_more()


async def test_a_host_that_does_not_answer_the_handshake_is_left(wire: Wiretap) -> None:
    async with staged(wire) as stage, trio.open_nursery() as nursery:
        await stage.lose()

        async def silent() -> None:
            side = await stage.host.accept()
            await side.expect("reconnect")
            await side.ended()

        nursery.start_soon(silent)
        with pytest.raises(RequestTimeout):
            await stage.client.reconnect_now()
        assert stage.client.status == "offline"
        assert isinstance(stage.client.error, RequestTimeout)


async def test_cancelled_it_is_offline_and_can_come_back(wire: Wiretap) -> None:
    async with staged(wire) as stage:
        await stage.lose()
        with trio.move_on_after(1):
            await stage.client.reconnect_now()
        assert stage.client.status == "offline"
        side = await stage.host.accept()
        await side.expect("reconnect")
        await side.ended()
        async with stage.back() as side:
            await side.replay()


async def test_reconnecting_by_hand_ends_the_old_connection_first(wire: Wiretap) -> None:
    async with staged(wire) as stage:
        old = stage.side
        async with stage.back() as side:
            await old.ended()
            await side.replay()
        await stage.client.disconnect()
        assert stage.client.status == "offline"
        await side.ended()


async def test_it_comes_back_by_itself_with_growing_waits(wire: Wiretap) -> None:
    backoff = Backoff(first=1, factor=2, most=8, jitter=0.5)
    async with staged(wire, backoff=backoff, seed=3) as stage:
        stage.host.down = True
        stage.host.attempts = 0
        began = trio.current_time()
        await stage.lose()
        await trio.sleep(60)
        # Waits of 1, 2, 4, 8, 8 ... seconds, each shortened by up to half.
        assert 8 <= stage.host.attempts <= 17
        assert isinstance(stage.client.error, ConnectionLost)
        stage.host.down = False
        side = await stage.host.accept()
        await side.replay(envelope(11, started("t1")))
        await stage.client.wait_status("connected")
        assert trio.current_time() - began <= 60 + 8
        assert stage.texts() == ["Fix the build"]
        stage.side = side
        await stage.lose()
        lost = trio.current_time()
        side = await stage.host.accept()
        assert trio.current_time() - lost <= 1  # the waits begin anew
        await side.replay()


async def test_by_hand_it_need_not_wait(wire: Wiretap) -> None:
    async with staged(wire, backoff=Backoff(first=100)) as stage:
        await stage.lose()
        lost = trio.current_time()
        async with stage.back() as side:
            await side.replay()
        assert trio.current_time() == lost
        await trio.sleep(2000)
        assert stage.host.attempts == 2
        await stage.lose()
        side = await stage.host.accept()
        await side.replay()
        await stage.client.wait_status("connected")


async def test_a_version_that_fits_no_more_ends_the_automatic_attempts(wire: Wiretap) -> None:
    async with staged(wire, backoff=Backoff(first=1)) as stage:
        await stage.lose()
        side = await stage.host.accept()
        await side.refuse(await side.expect("reconnect"), ErrorCode.NOT_FOUND)
        error = ProtocolError(-32005, "no", {"supportedVersions": ["^2.0.0"]})
        await side.send(jsonrpc.failure((await side.expect("initialize")).id, error))
        await trio.sleep(1000)
        assert stage.host.attempts == 2
        assert isinstance(stage.client.error, ProtocolError)
        async with stage.back() as side:
            await side.replay()
        await stage.lose()
        side = await stage.host.accept()  # and go on after one that worked
        await side.replay()


async def test_any_other_refusal_is_tried_again(wire: Wiretap) -> None:
    async with staged(wire, backoff=Backoff(first=1)) as stage:
        await stage.lose()
        for _ in range(3):
            side = await stage.host.accept()
            await side.refuse(await side.expect("reconnect"), ErrorCode.NOT_FOUND)
            await side.refuse(await side.expect("initialize"), ErrorCode.INTERNAL_ERROR)
            await side.ended()
        side = await stage.host.accept()
        await side.replay()
        await stage.client.wait_status("connected")


async def test_closed_while_it_waits_it_is_gone_at_once(wire: Wiretap) -> None:
    began = trio.current_time()
    async with staged(wire, backoff=Backoff(first=1000)) as stage:
        operation = stage.client.dispatch(CHAT, started("t1"))
        await stage.lose()
    assert trio.current_time() == began
    assert operation.outcome is not None
    assert operation.outcome.reason == "the client was closed"
    assert stage.diary.statuses[-1] == "closed"


async def test_a_channel_whose_hole_cannot_be_filled_ends_the_connection(wire: Wiretap) -> None:
    async with staged(wire, backoff=Backoff(first=1)) as stage:
        rogue = Side(stage.side.transport, wire.connection("rogue", legal="c2h"))
        await rogue.send(jsonrpc.notification("action", {"channel": CHAT, "serverSeq": 11}))
        await stage.side.expect("subscribe")
        await stage.side.ended()  # after the deadline of the request
        side = await stage.host.accept()
        # What is stale is not resumed but taken anew.
        assert (await side.replay()).params["subscriptions"] == [ROOT, SESSION]
        request = await side.expect("subscribe")
        state = {**CHAT_STATE, "activeTurn": turn("t1")}
        await side.answer(request, {"snapshot": snapshot(state, 12).wire()})
        await stage.client.wait_status("connected")
        assert stage.texts() == ["Fix the build"]


async def test_a_channel_dropped_between_taking_out_and_sending_ends_its_operations(
    wire: Wiretap,
) -> None:
    async def on_resumed(client: Client) -> None:
        if client.next_client_seq > 1:
            client.unsubscribe(CHAT)

    async with staged(wire, on_resumed=on_resumed) as stage:
        operation = stage.client.dispatch(CHAT, started("t1"))
        await stage.lose()
        async with stage.back() as side:
            await side.replay()
        assert (await operation.wait()).reason == "unsubscribed"
        assert stage.diary.settled == [operation]


async def test_an_observer_that_raises_ends_the_client(wire: Wiretap) -> None:
    def bug(*_: object) -> None:
        raise ZeroDivisionError

    with pytest.RaisesGroup(ZeroDivisionError, allow_unwrapped=True, flatten_subgroups=True):
        async with staged(wire) as stage:
            stage.client.observe(CHAT, bug)
            await stage.side.tell(envelope(11, started("t1")))
            await trio.sleep_forever()
