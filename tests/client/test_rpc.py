"""JSON-RPC over a transport."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

import pytest
import trio

from ahpd.client import rpc
from ahpd.client.rpc import ConnectionLost, Handler, Peer, RequestTimeout
from ahpd.protocol import ROOT, ErrorCode, ProtocolError, decode, jsonrpc
from ahpd.protocol.connection import SubscribeResult
from ahpd.protocol.model import JSON, Object
from ahpd.transports.memory import memory_pair
from tests.client.support import Side
from tests.wire import Wiretap

PING: JSON = {"channel": ROOT}
READ: JSON = {"channel": ROOT, "uri": "file:///x"}
FILE: JSON = {"data": "", "encoding": "utf-8"}


class Line:
    """A peer at work, the host's side of it, and the notifications that came."""

    def __init__(self, wire: Wiretap, handlers: Mapping[str, Handler]) -> None:
        near, far = memory_pair()
        self.near = near
        self.side = Side(far, wire.connection())
        self.notices: list[tuple[str, Object]] = []
        self.peer = Peer(near, lambda *notice: self.notices.append(notice), handlers)


@asynccontextmanager
async def line(wire: Wiretap, **handlers: Handler) -> AsyncIterator[Line]:
    made = Line(wire, handlers)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(made.peer.run)
        yield made
        made.peer.close("the test is over")


async def test_answers_find_their_requests_in_any_order(wire: Wiretap) -> None:
    async with line(wire) as at, trio.open_nursery() as nursery:
        results: list[JSON] = []

        async def ask(channel: str) -> None:
            results.append(await at.peer.request("subscribe", {"channel": channel}))

        nursery.start_soon(ask, ROOT)
        first = await at.side.expect("subscribe")
        nursery.start_soon(ask, "ahp-otlp:/logs")
        second = await at.side.expect("subscribe")
        assert first.id != second.id
        await at.side.answer(second, {})
        await at.side.answer(
            first, {"snapshot": {"resource": ROOT, "state": {"agents": []}, "fromSeq": 1}}
        )
        await trio.testing.wait_all_tasks_blocked()
        assert [bool(each) for each in results] == [False, True]


async def test_an_error_is_raised_with_code_and_data(wire: Wiretap) -> None:
    async with line(wire) as at, trio.open_nursery() as nursery:

        async def host() -> None:
            request = await at.side.expect("ping")
            error = ProtocolError(-32005, "no", {"supportedVersions": ["^1.0.0"]})
            await at.side.send(jsonrpc.failure(request.id, error))

        nursery.start_soon(host)
        with pytest.raises(ProtocolError) as caught:
            await at.peer.request("ping", PING)
        assert (caught.value.code, caught.value.message) == (-32005, "no")
        assert caught.value.data == {"supportedVersions": ["^1.0.0"]}


async def test_a_deadline_ends_the_wait_and_a_late_answer_is_dropped(wire: Wiretap) -> None:
    async with line(wire) as at:
        before = trio.current_time()
        with pytest.raises(RequestTimeout, match="ping: no answer within 3 s") as caught:
            await at.peer.request("ping", PING, within=3)
        assert isinstance(caught.value, TimeoutError)
        assert trio.current_time() - before == 3
        await at.side.answer(await at.side.expect("ping"), None)
        await trio.testing.wait_all_tasks_blocked()
        assert at.peer.lost is None


async def test_open_requests_fail_when_the_connection_breaks(wire: Wiretap) -> None:
    async with line(wire) as at, trio.open_nursery() as nursery:
        failures: list[ConnectionLost] = []

        async def ask() -> None:
            with pytest.raises(ConnectionLost) as caught:
                await at.peer.request("ping", PING)
            failures.append(caught.value)

        nursery.start_soon(ask)
        nursery.start_soon(ask)
        await trio.testing.wait_all_tasks_blocked()
        at.side.cut()
        await at.peer.ended.wait()
        await trio.testing.wait_all_tasks_blocked()
        assert [each.code for each in failures] == [1006, 1006]
        assert failures[0] is not failures[1]
        with pytest.raises(ConnectionLost):
            at.peer.notify("unsubscribe", {"channel": ROOT})
        with pytest.raises(ConnectionLost):
            await at.peer.request("ping", PING)


async def test_a_cancelled_request_leaves_nothing_behind(wire: Wiretap) -> None:
    async with line(wire) as at:
        with trio.move_on_after(1):
            await at.peer.request("ping", PING)
        request = await at.side.expect("ping")
        await at.side.answer(request, None)
        await trio.testing.wait_all_tasks_blocked()
        assert not at.peer._calls


async def test_the_effect_of_an_answer_comes_before_the_next_message(wire: Wiretap) -> None:
    async with line(wire) as at, trio.open_nursery() as nursery:
        seen: list[str] = []

        async def ask() -> None:
            await at.peer.request("ping", PING, on_result=lambda _: seen.append("result"))

        at.peer._on_notification = lambda method, _: seen.append(method)
        nursery.start_soon(ask)
        request = await at.side.expect("ping")
        at.near.inbound.hold()
        await at.side.answer(request, None)
        await at.side.send(
            jsonrpc.notification(
                "root/sessionRemoved", {"channel": ROOT, "session": "ahp-session:/s"}
            )
        )
        at.near.inbound.release()
        await trio.testing.wait_all_tasks_blocked()
        assert seen == ["result", "root/sessionRemoved"]


async def test_a_malformed_result_is_the_callers_error(wire: Wiretap) -> None:
    tap = wire.connection("rogue", legal="c2h")
    async with line(wire) as at, trio.open_nursery() as nursery:
        at.side = Side(at.side.transport, tap)

        async def host() -> None:
            await at.side.answer(await at.side.expect("subscribe"), {"snapshot": 3})

        nursery.start_soon(host)
        with pytest.raises(ValueError, match="SubscribeResult: snapshot"):
            await at.peer.request(
                "subscribe",
                {"channel": ROOT},
                on_result=lambda result: decode(SubscribeResult, result),
            )
        assert at.peer.lost is None


async def test_requests_of_the_host_are_served_beside_each_other(wire: Wiretap) -> None:
    slow = trio.Event()

    async def read(params: Object) -> JSON:
        if params["uri"] == "file:///slow":
            await slow.wait()
        return FILE

    async with line(wire, resourceRead=read) as at:
        await at.side.send(jsonrpc.request(1, "resourceRead", {**READ, "uri": "file:///slow"}))
        await at.side.send(jsonrpc.request("two", "resourceRead", READ))
        answer = await at.side.receive()
        assert isinstance(answer, jsonrpc.Success)
        assert answer.id == "two"
        slow.set()
        answer = await at.side.receive()
        assert isinstance(answer, jsonrpc.Success)
        assert answer.id == 1


async def _fails(_: Object) -> JSON:
    raise KeyError("a bug")


async def _denies(_: Object) -> JSON:
    raise ProtocolError(ErrorCode.PERMISSION_DENIED, "not that one")


async def _misreads(_: Object) -> JSON:
    decode(SubscribeResult, {"snapshot": 3})
    return None


@pytest.mark.parametrize(
    ("handler", "code"),
    [(None, -32601), (_fails, -32603), (_denies, -32009), (_misreads, -32602)],
)
async def test_what_cannot_be_served_is_answered_with_its_error(
    wire: Wiretap, caplog: pytest.LogCaptureFixture, handler: Handler | None, code: int
) -> None:
    caplog.set_level(logging.CRITICAL)
    async with line(wire, **({} if handler is None else {"resourceRead": handler})) as at:
        await at.side.send(jsonrpc.request(7, "resourceRead", READ))
        answer = await at.side.receive()
        assert isinstance(answer, jsonrpc.Failure)
        assert (answer.id, answer.error.code) == (7, code)
        assert at.peer.lost is None


async def test_what_is_no_message_is_answered_or_passed_over(wire: Wiretap) -> None:
    async with line(wire) as at:
        at.side = Side(at.side.transport, wire.connection("rogue", legal="c2h"))
        await at.side.send({"jsonrpc": "2.0", "id": 1})
        answer = await at.side.receive()
        assert isinstance(answer, jsonrpc.Failure)
        assert answer.error.code == ErrorCode.INVALID_REQUEST
        await at.side.send({"jsonrpc": "2.0", "result": None})
        await at.side.send({"jsonrpc": "2.0", "id": 99, "result": None})
        await at.side.nothing_more()
        assert at.peer.lost is None


async def test_frames_go_out_in_the_order_of_the_calls_and_drain_waits_for_them(
    wire: Wiretap,
) -> None:
    async with line(wire) as at:
        for number in range(20):
            at.peer.notify("unsubscribe", {"channel": f"ahp-chat:/{number}"})
        await at.peer.drain()
        assert len(at.near.outbound) == 20
        for number in range(20):
            message = await at.side.receive()
            assert isinstance(message, jsonrpc.Notification)
            assert message.params["channel"] == f"ahp-chat:/{number}"


async def test_a_host_that_does_not_read_is_given_up(
    wire: Wiretap, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rpc, "MAX_WAITING_BYTES", 1000)
    async with line(wire) as at:
        while at.peer.lost is None:
            at.peer.notify("unsubscribe", {"channel": "ahp-chat:/" + "x" * 50})
        with pytest.raises(ConnectionLost, match="does not read"):
            at.peer.notify("unsubscribe", {"channel": ROOT})
        await at.peer.ended.wait()


async def test_closed_before_it_ran_it_ends_at_once() -> None:
    near, far = memory_pair()
    peer = Peer(near, lambda *_: None)
    peer.close("changed my mind")
    await peer.run()
    assert peer.lost is not None
    assert peer.lost.reason == "changed my mind"
    with pytest.raises(Exception, match="closed"):
        await far.receive()
