"""The WebSocket listener over real sockets: the contract, and the rules of its own."""

from __future__ import annotations

import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import attrs
import pytest
import trio
import trio.testing

from ahpd.protocol.frame import Frame
from ahpd.protocol.jsontext import dumps
from ahpd.transports.port import Transport, TransportClosed
from ahpd.transports.upgrade import Admission
from ahpd.transports.websocket import Limits, WebSocketTransport, serve_websocket
from tests.transports import contract
from tests.transports.contract import Pair, frames, take, text_of
from tests.transports.raw import (
    BINARY,
    CLOSE,
    CONTINUATION,
    PING,
    PONG,
    TEXT,
    TOKEN,
    RawClient,
    masked,
    raw_client,
    request,
)

pytestmark = pytest.mark.real_time


@attrs.define
class Host:
    """A listener in the test's process, whose handler echoes unless a test takes the transport."""

    port: int
    transports: list[Transport] = attrs.field(factory=list)
    ends: list[TransportClosed] = attrs.field(factory=list)
    handler: Callable[[Transport], Awaitable[None]] | None = None

    async def serve(self, transport: Transport) -> None:
        self.transports.append(transport)
        try:
            if self.handler is not None:
                await self.handler(transport)
                return
            while True:
                await transport.send([Frame(text_of(await transport.receive()))])
        except TransportClosed as end:
            self.ends.append(end)

    async def transport(self) -> Transport:
        while not self.transports:
            await trio.sleep(0.001)
        return self.transports[-1]

    async def end(self) -> TransportClosed:
        while not self.ends:
            await trio.sleep(0.001)
        return self.ends.pop()


@asynccontextmanager
async def hosting(
    limits: Limits | None = None,
    *,
    handler: Callable[[Transport], Awaitable[None]] | None = None,
    admission: Admission | None = None,
) -> AsyncIterator[Host]:
    host = Host(0, handler=handler)
    with trio.fail_after(contract.PATIENCE):
        async with trio.open_nursery() as nursery:

            async def serve(task_status: trio.TaskStatus[tuple[tuple[str, int], ...]]) -> None:
                await serve_websocket(
                    host.serve, host="127.0.0.1", port=0, admission=admission or Admission(TOKEN),
                    limits=limits or Limits(), task_status=task_status,
                )  # fmt: skip

            [(_, host.port)] = await nursery.start(serve)
            yield host
            nursery.cancel_scope.cancel()


async def idle(transport: Transport) -> None:
    await trio.sleep_forever()


async def works(host: Host) -> None:
    """A new connection is served, so the listener has survived."""
    async with raw_client(host.port) as client:
        await client.send(masked(TEXT, b'"still here"'))
        assert await client.frame() == (TEXT, b'"still here"')


async def flood(client: RawClient, piece: bytes) -> None:
    while True:
        await client.send(piece)


async def only_text(client: RawClient) -> None:
    while True:
        assert (await client.frame())[0] == TEXT


class FarEnd:
    """The raw client as a `Transport`, so that the contract has a peer that is not our code."""

    peer = "raw"

    def __init__(self, client: RawClient) -> None:
        self.client = client
        self.over: TransportClosed | None = None

    async def receive(self) -> bytes:
        if self.over is not None:
            raise self.over
        try:
            while True:
                await trio.lowlevel.checkpoint()
                opcode, payload = await self.client.frame()
                if opcode == TEXT:
                    return payload
                if opcode == CLOSE:
                    await self.client.send(masked(CLOSE, payload))
        except (EOFError, trio.BrokenResourceError, trio.ClosedResourceError) as error:
            self.over = TransportClosed(repr(error))
            raise self.over from None

    async def send(self, frames: list[Frame]) -> None:
        try:
            for frame in frames:
                await self.client.send(masked(TEXT, frame.text))
        except (trio.BrokenResourceError, trio.ClosedResourceError) as error:
            raise TransportClosed(repr(error)) from None

    async def close(self, code: int = 1000, reason: str = "") -> None:
        try:
            await self.client.send(masked(CLOSE, code.to_bytes(2, "big") + reason.encode()))
            self.client.stream.socket.shutdown(socket.SHUT_WR)
        except (trio.BrokenResourceError, trio.ClosedResourceError, OSError):
            pass
        self.client.stream.socket.close()


@asynccontextmanager
async def pair() -> AsyncIterator[Pair]:
    async with hosting(handler=idle) as host, raw_client(host.port) as client:

        async def cut() -> None:
            client.reset()

        yield Pair(await host.transport(), FarEnd(client), cut)  # type: ignore[arg-type]


@contract.every_check
async def test_contract(check: contract.Check) -> None:
    await contract.run(check, pair)


async def test_frames_sent_before_the_101_are_not_lost() -> None:
    async with hosting() as host, raw_client(host.port, upgrade=False) as client:
        await client.send(request() + masked(TEXT, b"1") + masked(TEXT, b"2"))
        assert (await client.response())[0] == 101
        assert [await client.frame(), await client.frame()] == [(TEXT, b"1"), (TEXT, b"2")]


async def test_a_message_of_the_limit_passes_and_one_more_byte_is_closed_with_1009() -> None:
    limit = 1_500_000
    async with hosting(Limits(message_bytes=limit)) as host:
        async with raw_client(host.port) as client:
            await client.send(masked(TEXT, b"x" * limit))
            assert await client.frame() == (TEXT, b"x" * limit)
            await client.send(masked(TEXT, b"x" * (limit + 1)))
            code, reason = await client.closing()
        assert (code, str(limit) in reason) == (1009, True)
        end = await host.end()
        assert (end.code, end.clean, str(limit) in end.reason) == (1009, False, True)
        await works(host)


async def test_the_default_limit_is_64_mebibytes_and_such_a_message_passes() -> None:
    size = Limits().message_bytes
    assert size == 64 * 1024 * 1024
    async with hosting(handler=idle) as host, raw_client(host.port) as client:
        transport = await host.transport()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(client.send, masked(TEXT, b"x" * size))
            assert len(await transport.receive()) == size
            nursery.start_soon(transport.send, [Frame(b"x" * size)])
            assert await client.frame() == (TEXT, b"x" * size)


async def test_the_limit_counts_bytes_and_all_fragments() -> None:
    async with hosting(Limits(message_bytes=3000)) as host:
        async with raw_client(host.port) as client:
            await client.send(masked(TEXT, "é".encode() * 1500))
            assert await client.frame() == (TEXT, "é".encode() * 1500)
            await client.send(masked(TEXT, "é".encode() * 1501))
            assert (await client.closing())[0] == 1009
        async with raw_client(host.port) as client:
            pieces = [masked(CONTINUATION, b"x" * 100, fin=False) for _ in range(40)]
            await client.send(masked(TEXT, b"x", fin=False) + b"".join(pieces))
            code, reason = await client.closing()
            assert (code, "3000" in reason) == (1009, True)


async def test_a_message_of_1000_fragments_is_one_message() -> None:
    async with hosting() as host, raw_client(host.port) as client:
        text = "ab€😀".encode() * 300
        pieces = [text[at : at + 3] for at in range(0, 3000, 3)]
        wire = [masked(TEXT, pieces[0], fin=False)]
        wire += [masked(CONTINUATION, piece, fin=False) for piece in pieces[1:]]
        wire.insert(500, masked(PING, b"between"))
        await client.send(b"".join(wire) + masked(CONTINUATION, b""))
        assert await client.frame() == (PONG, b"between")
        assert await client.frame() == (TEXT, text)


async def test_empty_fragments_without_end_do_not_fill_the_memory() -> None:
    async with hosting(Limits(message_bytes=1000)) as host, raw_client(host.port) as client:
        piece = masked(CONTINUATION, b"", fin=False) * 10_000
        await client.send(masked(TEXT, b"", fin=False))
        with pytest.raises(trio.BrokenResourceError):
            await flood(client, piece)
        assert (await host.end()).code == 1009


async def test_binary_is_1003_and_bad_utf8_is_1007() -> None:
    async with hosting() as host:
        for wire, code in (
            (masked(BINARY, b"{}"), 1003),
            (masked(TEXT, b"\xff\xfe"), 1007),
            (masked(TEXT, b'"\xed\xa0\x80"'), 1007),  # a surrogate
            (masked(TEXT, b"\xc3"), 1007),  # half a character
            (b"\x81\x02{}", 1002),  # not masked
            (masked(0x3, b""), 1002),  # no such opcode
            (masked(CONTINUATION, b"{}"), 1002),
        ):
            async with raw_client(host.port) as client:
                await client.send(wire)
                assert (await client.closing())[0] == code, wire
            end = await host.end()
            assert (end.code, end.clean) == (code, False)
        await works(host)


async def test_text_that_is_no_json_is_the_handlers_business() -> None:
    async with hosting() as host, raw_client(host.port) as client:
        await client.send(masked(TEXT, b"{") + masked(TEXT, b""))
        assert await client.frame() == (TEXT, b"{")
        assert await client.frame() == (TEXT, b"")


async def test_the_peers_goodbye_is_answered_and_told() -> None:
    async with hosting() as host, raw_client(host.port) as client:
        await client.send(masked(CLOSE, b"\x0f\xa1so long"))  # 4001
        assert await client.closing() == (4001, "so long")
        end = await host.end()
        assert (end.code, end.reason, end.clean) == (4001, "so long", True)


async def test_our_goodbye_carries_code_and_reason_and_arrives_despite_unread_input() -> None:
    limits = Limits(inbox_bytes=1000, close_seconds=0.2)
    async with hosting(limits, handler=idle) as host, raw_client(host.port) as client:
        transport = await host.transport()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(client.send, masked(TEXT, b"x" * 10_000) * 50)
            await trio.testing.wait_all_tasks_blocked(0.01)
            await transport.send(frames(1))
            nursery.start_soon(transport.close, 4002, "é" * 100)
            assert await client.closing(answer=False) == (4002, "é" * 61)


async def test_cancelling_the_listener_says_1001() -> None:
    async with trio.open_nursery() as nursery:
        host = Host(0)

        async def serve(task_status: trio.TaskStatus[tuple[tuple[str, int], ...]]) -> None:
            await serve_websocket(
                host.serve, host="127.0.0.1", port=0, admission=Admission(None),
                task_status=task_status,
            )  # fmt: skip

        [(_, host.port)] = await nursery.start(serve)
        async with raw_client(host.port) as client:
            await host.transport()
            nursery.cancel_scope.cancel()
            with trio.CancelScope(shield=True):
                assert (await client.closing())[0] == 1001


async def test_a_slow_handler_delays_no_ping_and_no_close() -> None:
    """HAZARDS B02."""
    async with hosting(handler=idle) as host, raw_client(host.port) as client:
        await client.send(masked(TEXT, b"x" * 10_000) * 20 + masked(PING, b"p"))
        assert await client.frame() == (PONG, b"p")
        await client.send(masked(CLOSE, b"\x03\xe8"))
        assert (await client.closing())[0] == 1000
        # What came before the close is still there for the handler when it gets to it.
        transport = await host.transport()
        assert await take(transport, 20) == [b"x" * 10_000] * 20
        with pytest.raises(TransportClosed):
            await transport.receive()


async def test_a_handler_that_takes_nothing_stops_the_peer_and_memory_stays_bounded() -> None:
    limits = Limits(inbox_bytes=100_000)
    async with hosting(limits, handler=idle) as host, raw_client(host.port) as client:
        transport = await host.transport()
        assert isinstance(transport, WebSocketTransport)
        sent = 0
        with trio.move_on_after(1):
            while sent < 1000:
                await client.send(masked(TEXT, b"x" * 50_000))
                sent += 1
        assert sent < 1000
        assert transport.statistics().inbox_messages == 2
        assert await take(transport, sent) == [b"x" * 50_000] * sent


async def test_pongs_and_closes_never_land_inside_a_frame() -> None:
    async with hosting(handler=idle) as host, raw_client(host.port, receive_buffer=4096) as client:
        transport = await host.transport()
        big = Frame(dumps("x" * 300_000))
        seen: list[tuple[int, int]] = []

        async def send() -> None:
            for _ in range(20):
                await transport.send([big, *frames(50), big])

        async def ping() -> None:
            for number in range(200):
                await client.send(masked(PING, b"%d" % number))
                await trio.sleep(0.001)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(send)
            nursery.start_soon(ping)
            while len(seen) < 20 * 52 + 200:
                opcode, payload = await client.frame()
                seen.append((opcode, len(payload)))
        assert sum(opcode == PONG for opcode, _ in seen) == 200
        assert sum(size == len(big) for _, size in seen) == 40


async def test_a_cancelled_send_never_makes_a_broken_frame_look_whole() -> None:
    async with hosting(handler=idle) as host, raw_client(host.port, receive_buffer=4096) as client:
        transport = await host.transport()
        with trio.move_on_after(0.1) as scope:
            await contract.send_for_ever(transport, [Frame(dumps("x" * 1_000_000))])
        assert scope.cancelled_caught
        with pytest.raises(TransportClosed):
            await transport.send(frames(1))
        await transport.close()
        with pytest.raises((EOFError, trio.BrokenResourceError)):
            await only_text(client)


async def test_trio_turns_nagle_off_for_us() -> None:
    async with trio.open_nursery() as nursery:
        listeners = await trio.open_tcp_listeners(0, host="127.0.0.1")
        seen: list[int] = []

        async def look(stream: trio.SocketStream) -> None:
            seen.append(stream.socket.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY))
            nursery.cancel_scope.cancel()

        nursery.start_soon(trio.serve_listeners, look, listeners)
        async with raw_client(listeners[0].socket.getsockname()[1], upgrade=False):
            await trio.sleep_forever()
    assert seen[0]
