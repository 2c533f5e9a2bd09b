"""Peers without manners, and what they must not do to others (HAZARDS B01, B02, B65)."""

from __future__ import annotations

import gc
import logging
import os
import resource
import time

import pytest
import trio
import trio.testing

from ahpd.protocol.frame import Frame
from ahpd.protocol.jsontext import dumps
from ahpd.transports.framing import Lengths
from ahpd.transports.port import Transport, TransportClosed
from ahpd.transports.upgrade import Admission
from ahpd.transports.websocket import Limits, WebSocketTransport, serve_websocket
from tests.transports import contract
from tests.transports.contract import frames
from tests.transports.raw import (
    BINARY,
    CLOSE,
    PING,
    PONG,
    TEXT,
    TOKEN,
    RawClient,
    masked,
    raw_client,
    request,
)
from tests.transports.test_websocket import hosting, idle, works

pytestmark = pytest.mark.real_time


async def stream_to_one_and_send_big_to_others(transport: Transport) -> None:
    """The first message says which: a number is that many small messages, anything else is big."""
    first = contract.text_of(await transport.receive())
    if first.isdigit():
        for number in range(int(first)):
            await transport.send(frames(1, start=number))
            await trio.sleep(0.0005)
    else:
        await transport.send([Frame(dumps("x" * 10_000_000))])


async def rude_reset(client: RawClient) -> None:
    client.reset()


async def rude_bad_utf8(client: RawClient) -> None:
    await client.send(masked(TEXT, b"\xff\xfe"))
    assert (await client.closing())[0] == 1007


async def rude_half_a_frame(client: RawClient) -> None:
    await client.send(masked(TEXT, b"x" * 1000)[:18])
    client.stream.socket.close()


async def rude_reset_during_ten_megabytes(client: RawClient) -> None:
    await client.send(masked(TEXT, b"big"))
    await client.take(100_000)
    client.reset()


async def rude_binary(client: RawClient) -> None:
    await client.send(masked(BINARY, b"{}"))
    assert (await client.closing())[0] == 1003


async def rude_garbage(client: RawClient) -> None:
    await client.send(bytes(range(256)) * 20)
    assert await client.ended()


async def rude_unmasked(client: RawClient) -> None:
    await client.send(b"\x81\x7f" + b"\xff" * 8 + b"x" * 100)
    assert (await client.closing())[0] == 1002


async def rude_close_with_a_forbidden_code(client: RawClient) -> None:
    await client.send(masked(CLOSE, b"\x00\x01"))
    assert (await client.closing())[0] == 1002


async def rude_frames_after_the_close(client: RawClient) -> None:
    await client.send(masked(CLOSE, b"\x03\xe8") + masked(PING, b"") * 50 + masked(TEXT, b"1") * 50)
    assert await client.ended()


async def rude_end_without_goodbye(client: RawClient) -> None:
    await client.stream.send_eof()
    assert await client.ended()


RUDE = (
    rude_reset,
    rude_bad_utf8,
    rude_half_a_frame,
    rude_reset_during_ten_megabytes,
    rude_binary,
    rude_garbage,
    rude_unmasked,
    rude_close_with_a_forbidden_code,
    rude_frames_after_the_close,
    rude_end_without_goodbye,
)
RUDE_HANDSHAKES = {
    "half a request": request()[:40],
    "nothing": b"",
    "no HTTP": b"\x16\x03\x01\x00\xff" + bytes(range(256)),
    "a head without end": b"GET / HTTP/1.1\r\n" + b"X: y\r\n" * 100,
    "a bad host": request(host="\u00ff" * 70 + ".x"),
    "two requests": request(upgrade=False) * 2,
}


async def test_no_rude_peer_hurts_the_listener_or_another_connection() -> None:
    """B01 a to g and more, each many times, while another connection follows a stream."""
    async with hosting(handler=stream_to_one_and_send_big_to_others) as host:
        count = 800
        done = trio.Event()

        async def follow() -> None:
            async with raw_client(host.port) as bystander:
                await bystander.send(masked(TEXT, b"%d" % count))
                for number in range(count):
                    assert await bystander.frame() == (TEXT, b'{"n":%d}' % number)
            done.set()

        async def misbehave() -> None:
            for rude in RUDE:
                for _ in range(3):
                    async with raw_client(host.port) as client:
                        await rude(client)
            for start in RUDE_HANDSHAKES.values():
                async with raw_client(host.port, upgrade=False) as client:
                    await client.send(start)
                async with raw_client(host.port, upgrade=False) as client:
                    await client.send(start)
                    client.reset()

        async with trio.open_nursery() as nursery:
            nursery.start_soon(follow)
            nursery.start_soon(misbehave)
        assert done.is_set()
        async with raw_client(host.port) as client:
            await client.send(masked(TEXT, b"1"))
            assert await client.frame() == (TEXT, b'{"n":0}')


async def test_nothing_of_a_dead_peer_remains() -> None:
    async with hosting(handler=stream_to_one_and_send_big_to_others) as host:

        async def settle() -> tuple[int, int]:
            await trio.testing.wait_all_tasks_blocked(0.2)
            gc.collect()
            return len(os.listdir("/proc/self/fd")), trio.lowlevel.current_statistics().tasks_living

        async with raw_client(host.port) as client:
            await rude_binary(client)
        before = await settle()
        for rude in RUDE:
            async with raw_client(host.port) as client:
                await rude(client)
        assert await settle() == before


async def test_a_reset_at_any_byte_of_the_handshake() -> None:
    async with hosting() as host:
        whole = request() + masked(TEXT, b"1")
        for cut in range(0, len(whole), 7):
            async with raw_client(host.port, upgrade=False) as client:
                await client.send(whole[:cut])
                client.reset()
        await works(host)


async def test_a_refused_request_gets_its_whole_answer_despite_what_follows_it() -> None:
    async with hosting() as host:
        for path, status in (("/?tkn=wrong", 401), (f"/?tkn={TOKEN}", 426)):
            async with raw_client(host.port, upgrade=False) as client:
                body = b"x" * 50_000
                await client.send(request(path, method="POST", upgrade=False) + body)
                got, headers = await client.response()
                assert (got, headers["access-control-allow-origin"]) == (status, "*")
                assert len(await client.take(int(headers["content-length"]))) > 10
                assert await client.ended()


async def test_a_head_without_end_and_one_that_is_slow() -> None:
    limits = Limits(head_bytes=2000, handshake_seconds=0.2)
    async with hosting(limits) as host:
        async with raw_client(host.port, upgrade=False) as client:
            await client.send(b"GET / HTTP/1.1\r\n" + b"X: y\r\n" * 1000)
            assert (await client.response())[0] == 431
        async with raw_client(host.port, upgrade=False) as client:
            await client.send(request()[:50])
            assert await client.ended()
        await works(host)


async def test_many_that_never_finish_their_handshake_do_not_keep_others_out() -> None:
    limits = Limits(handshakes=5, handshake_seconds=60)
    async with hosting(limits) as host, trio.open_nursery() as nursery:
        ended = 0

        async def dawdle() -> None:
            nonlocal ended
            async with raw_client(host.port, upgrade=False) as client:
                await client.send(b"GET /")
                await client.ended()
                ended += 1

        for _ in range(20):
            nursery.start_soon(dawdle)
        while ended < 15:  # the oldest make room for the newest
            await trio.sleep(0.001)
        await works(host)
        nursery.cancel_scope.cancel()


async def test_a_handler_that_raises_ends_its_own_connection_only(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def handler(transport: Transport) -> None:
        if await transport.receive() == "{}":
            raise ValueError("broken")
        await transport.send(frames(1))
        await trio.sleep_forever()

    async with hosting(handler=handler) as host:
        async with raw_client(host.port) as other, raw_client(host.port) as client:
            await client.send(masked(TEXT, b"{}"))
            assert (await client.closing())[0] == 1011
            await other.send(masked(TEXT, b"1"))
            assert await other.frame() == (TEXT, b'{"n":0}')
        assert "the handler failed" in caplog.text


async def test_running_out_of_descriptors_passes(caplog: pytest.LogCaptureFixture) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    async with hosting() as host:
        sock = trio.socket.socket()
        try:
            taken = [os.open(os.devnull, os.O_RDONLY)]
            resource.setrlimit(resource.RLIMIT_NOFILE, (taken[0] + 1, hard))
            await sock.connect(("127.0.0.1", host.port))  # into the backlog: nobody can accept it
            await trio.sleep(0.25)
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
            os.close(taken[0])
        client = RawClient(trio.SocketStream(sock))
        await client.send(request())
        assert (await client.response())[0] == 101
        sock.close()
    said = [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]
    assert ["no connection" in said[0], "again" in said[1], len(said)] == [True, True, 2]
    assert "Traceback" not in caplog.text


async def test_no_token_reaches_the_log(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    async with hosting() as host:
        for start in (
            request(f"/?tkn={TOKEN}x"),
            request(f"/?tkn={TOKEN}", host="evil.example"),
            request(f"/?tkn={TOKEN}", upgrade=False),
            request("/", Authorization=f"Bearer {TOKEN}", Origin="http://evil.example"),
            request(f"/?tkn={TOKEN}")[:60],
        ):
            async with raw_client(host.port, upgrade=False) as client:
                await client.send(start)
                await client.stream.send_eof()
                assert await client.ended()
        async with raw_client(host.port) as client:
            await rude_garbage(client)
    assert "401" in caplog.text
    assert "403" in caplog.text
    assert TOKEN not in caplog.text
    assert "tkn=t" not in caplog.text


async def test_without_a_token_only_loopback_is_served() -> None:
    for address in ("0.0.0.0", "", "::", "example.org"):
        with pytest.raises(ValueError, match="only loopback"):
            await serve_websocket(idle, host=address, port=0, admission=Admission(None))


# Half-open peers (B65). The times are short, the counting of them is what is tested.

QUICK = Limits(ping_seconds=0.2, pong_seconds=0.2)


async def test_a_peer_that_vanished_is_given_up() -> None:
    async with hosting(QUICK) as host, raw_client(host.port) as client:
        # It never reads, so it never answers, but its machine acknowledges everything.
        end = await host.end()
        assert (end.code, end.clean) == (1006, False)
        assert await client.frame() == (PING, b"")
        assert await client.ended()


async def test_a_quiet_peer_that_answers_pings_stays() -> None:
    async with hosting(QUICK) as host, raw_client(host.port) as client:
        for _ in range(6):
            assert await client.frame() == (PING, b"")
            await client.send(masked(PONG, b""))
        await client.send(masked(TEXT, b"1"))
        assert await client.frame() == (TEXT, b"1")
        assert not host.ends


async def test_a_peer_that_talks_is_not_asked_for_pongs() -> None:
    """Browsers and some libraries cannot be made to ping, and need not (R-1.8)."""
    async with hosting(QUICK) as host, raw_client(host.port) as client:
        for _ in range(20):
            await client.send(masked(TEXT, b"1"))
            opcode, _ = await client.frame()
            assert opcode == TEXT
            await trio.sleep(0.04)
        assert not host.ends


async def test_our_own_stall_does_not_count_as_the_peers() -> None:
    async with hosting(QUICK) as host, raw_client(host.port) as client:
        await trio.sleep(0.05)
        time.sleep(1.5)  # noqa: ASYNC251  # a host that is busy, far beyond all deadlines
        assert await client.frame() == (PING, b"")
        await client.send(masked(PONG, b""))
        await client.send(masked(TEXT, b"1"))
        opcode, payload = await client.frame()
        while opcode == PING:
            await client.send(masked(PONG, b""))
            opcode, payload = await client.frame()
        assert payload == b"1"
        assert not host.ends


async def test_a_handler_that_is_behind_does_not_cost_the_peer_its_connection() -> None:
    limits = Limits(ping_seconds=0.1, pong_seconds=0.1, inbox_bytes=1000)
    async with hosting(limits, handler=idle) as host, raw_client(host.port) as client:
        transport = await host.transport()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(client.send, masked(TEXT, b"x" * 1000) * 500)
            await trio.sleep(0.6)  # its pongs could not be read
            assert await contract.take(transport, 500) == [b"x" * 1000] * 500


async def test_a_slow_line_is_not_taken_for_a_dead_one() -> None:
    """The ping waits behind 3 MB that the peer takes in small bites."""
    async with (
        hosting(QUICK, handler=idle) as host,
        raw_client(host.port, receive_buffer=4096) as client,
    ):
        transport = await host.transport()
        big = Frame(dumps("x" * 3_000_000))
        async with trio.open_nursery() as nursery:
            nursery.start_soon(transport.send, [big])
            for _ in range(30):
                await client.take(20_000)
                await trio.sleep(0.04)  # altogether three times the deadline
            assert isinstance(transport, WebSocketTransport)
            assert transport.statistics().unacknowledged > 0
            del client.buffer[:]
            await trio.testing.wait_all_tasks_blocked(0.001)
            nursery.cancel_scope.cancel()
        # It was there all the time: only our cancelled send has broken it now.
        with pytest.raises(TransportClosed) as caught:
            await transport.send(frames(1))
        assert caught.value.reason != "the peer did not answer a ping"


async def test_one_that_reads_nothing_at_all_is_given_up_though_a_send_is_stuck() -> None:
    handler = stream_to_one_and_send_big_to_others
    async with (
        hosting(QUICK, handler=handler) as host,
        raw_client(host.port, receive_buffer=4096) as client,
    ):
        await client.send(masked(TEXT, b"big"))
        assert (await host.end()).code == 1006


# ---- one direction only, and lengths that no message has -----------------------------------------


async def test_who_sends_no_more_still_gets_its_answers_and_a_goodbye() -> None:
    async def handler(transport: Transport) -> None:
        for _ in range(2):
            await transport.receive()
        with pytest.raises(TransportClosed) as closed:
            await transport.receive()
        assert (closed.value.code, closed.value.clean) == (1006, False)
        for number in range(3):
            await transport.send(frames(1, start=number))
            await trio.sleep(0.01)

    async with hosting(handler=handler) as host, raw_client(host.port) as client:
        await client.send(masked(TEXT, b"1") + masked(TEXT, b"2"))
        await client.stream.send_eof()
        for number in range(3):
            assert await client.frame() == (TEXT, b'{"n":%d}' % number)
        assert await client.frame() == (CLOSE, (1000).to_bytes(2, "big"))


@pytest.mark.parametrize("size", [65_537, 1 << 40, 1 << 62, (1 << 63) - 1])
@pytest.mark.parametrize("piece", [1, 7, 10_000])
async def test_a_frame_that_announces_too_much_is_refused_at_once(size: int, piece: int) -> None:
    limits = Limits(message_bytes=65_536)
    heard: list[bytes | str] = []
    ends: list[TransportClosed] = []

    async def handler(transport: Transport) -> None:
        try:
            while True:
                heard.append(await transport.receive())
        except TransportClosed as closed:
            ends.append(closed)

    async with hosting(handler=handler, limits=limits) as host, raw_client(host.port) as client:
        head = bytes([0x81, 0xFF]) + size.to_bytes(8, "big") + b"mask"
        data = masked(TEXT, b"before") + head
        for start in range(0, len(data), piece):
            await client.send(data[start : start + piece])
        code, reason = await client.closing()
        assert (code, "longer than 65536 bytes" in reason) == (1009, True)
    assert [contract.text_of(each) for each in heard] == [b"before"]
    assert [end.code for end in ends] == [1009]


def test_the_lengths_of_frames_are_read_however_they_are_cut() -> None:
    sizes = [0, 1, 125, 126, 65_535, 65_536, 70_000, 3]
    data = b"".join(masked(TEXT, b"x" * size) for size in sizes)
    for piece in (1, 3, 14, 1000, len(data)):
        lengths = Lengths()
        found = [lengths.longest(data[at : at + piece]) for at in range(0, len(data), piece)]
        assert max(found) == 70_000
        assert piece != 1 or [size for size in found if size] == [size for size in sizes if size]
