"""The socket under a WebSocket connection, written to without waiting."""

from __future__ import annotations

import socket

import pytest
import trio

from ahpd.protocol.frame import Frame
from ahpd.transports.framing import text_header
from ahpd.transports.wire import Wire

pytestmark = pytest.mark.real_time


def pair(buffer: int) -> tuple[Wire, trio.SocketStream]:
    near, far = socket.socketpair()
    near.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, buffer)
    near.setblocking(False)
    stream = trio.SocketStream(trio.socket.from_stdlib_socket(near))
    return Wire(stream, 256 * 1024), trio.SocketStream(trio.socket.from_stdlib_socket(far))


def framed(frames: list[Frame]) -> bytes:
    return b"".join(text_header(len(frame)) + frame.text for frame in frames)


async def read(stream: trio.SocketStream, count: int) -> bytes:
    data = b""
    with trio.fail_after(10):
        while len(data) < count:
            data += await stream.receive_some(65536)
    return data


async def test_what_fits_is_written_at_once() -> None:
    wire, far = pair(1 << 16)
    frames = [Frame(b'"one"'), Frame(b'"two"')]
    assert wire.send_nowait(frames)
    assert await read(far, len(framed(frames))) == framed(frames)
    wire.abort()
    await far.aclose()


async def test_what_does_not_fit_goes_out_before_what_follows_and_is_not_torn() -> None:
    """Neither by more of the same kind, nor by a ping, nor by an ordinary write."""
    wire, far = pair(4096)
    first = [Frame(b'"%s"' % (b"a" * 60_000))]
    assert not wire.send_nowait(first)
    second, third = [Frame(b'"second"')], [Frame(b'"third"')]
    assert not wire.send_nowait(second)
    ping = b"\x89\x00"
    async with trio.open_nursery() as nursery:

        async def write() -> None:
            await wire.send_ping()
            await wire.send_frames(third)
            await wire.send_frames([])

        nursery.start_soon(write)
        wanted = framed([*first, *second]) + ping + framed(third)
        assert await read(far, len(wanted)) == wanted
    wire.abort()
    await far.aclose()


async def test_a_peer_that_is_gone_is_found_by_the_write_that_must_follow() -> None:
    wire, far = pair(4096)
    await far.aclose()
    assert not wire.send_nowait([Frame(b'"x"')])
    with pytest.raises((trio.BrokenResourceError, trio.ClosedResourceError)):
        await wire.send_frames([])
    wire.abort()
