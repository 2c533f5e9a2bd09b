from __future__ import annotations

import fcntl
import os
import pty
import socket
import subprocess
import sys
import tty
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest
import trio
import trio.testing

from ahpd.protocol.frame import Frame
from ahpd.transports.lines import LINE_LIMIT
from ahpd.transports.linestream import LineTransport
from ahpd.transports.port import TransportClosed
from ahpd.transports.stdio import fd_transport
from tests.transports import contract
from tests.transports.contract import Pair, take, text_of

pytestmark = pytest.mark.real_time


@asynccontextmanager
async def pipes() -> AsyncIterator[Pair]:
    (near_in, far_out), (far_in, near_out) = os.pipe(), os.pipe()
    near, far = fd_transport(near_in, near_out), fd_transport(far_in, far_out)
    yield Pair(near, far, cut=far.close)
    await near.close()
    await far.close()


@asynccontextmanager
async def socket_pair() -> AsyncIterator[Pair]:
    """What Node gives a child process instead of pipes."""
    a, b = socket.socketpair()
    near = fd_transport(os.dup(a.fileno()), a.detach())
    far = fd_transport(os.dup(b.fileno()), b.detach())
    yield Pair(near, far)
    await near.close()
    await far.close()


@contract.every_check
async def test_contract_over_pipes(check: contract.Check) -> None:
    await contract.run(check, pipes)


@contract.every_check
async def test_contract_over_sockets(check: contract.Check) -> None:
    await contract.run(check, socket_pair)


@asynccontextmanager
async def reading(limit: int = LINE_LIMIT) -> AsyncIterator[tuple[LineTransport, int]]:
    """A transport, and the descriptor on which its peer writes."""
    read_fd, peer_fd = os.pipe()
    transport = fd_transport(read_fd, os.open(os.devnull, os.O_WRONLY), limit=limit)
    with trio.fail_after(contract.PATIENCE):
        yield transport, peer_fd
    await transport.close()
    with suppress(OSError):
        os.close(peer_fd)


async def write_in_thread(fd: int, pieces: list[bytes]) -> None:
    def write() -> None:
        for piece in pieces:
            data = piece
            while data:
                data = data[os.write(fd, data) :]
        os.close(fd)

    await trio.to_thread.run_sync(write)


async def test_a_five_mebibyte_line_in_small_writes_then_one_without_an_end() -> None:
    line = b'"' + b"x" * (5 * 1024 * 1024) + b'"'
    pieces = [line[at : at + 1024] for at in range(0, len(line), 1024)]
    pieces += [b"\r", b"\n", b"\r", b"\n", b'"', b"1", b'"']
    async with reading() as (transport, peer), trio.open_nursery() as nursery:
        nursery.start_soon(write_in_thread, peer, [b"\xef\xbb\xbf", *pieces])
        assert await take(transport, 2) == [line, b'"1"']
        with pytest.raises(TransportClosed, match="ended") as caught:
            await transport.receive()
        assert caught.value.clean


async def test_the_default_cap_is_64_mebibytes_and_such_a_line_passes() -> None:
    line = b"x" * (64 * 1024 * 1024)
    async with reading() as (transport, peer), trio.open_nursery() as nursery:
        nursery.start_soon(write_in_thread, peer, [line, b"\n", line, b"x"])
        assert await transport.receive() == line
        with pytest.raises(TransportClosed, match="longer than 67108864 bytes"):
            await transport.receive()


async def test_past_the_cap_the_connection_ends_and_says_why() -> None:
    async with reading(limit=1_000_000) as (transport, peer), trio.open_nursery() as nursery:
        flood = [b'"ok"\n', *[b"x" * 100_000] * 30]

        async def write() -> None:
            with suppress(BrokenPipeError):  # it stops reading, and closes
                await write_in_thread(peer, flood)

        nursery.start_soon(write)
        assert await take(transport, 1) == [b'"ok"']
        for _ in range(2):
            with pytest.raises(TransportClosed, match="longer than 1000000 bytes") as caught:
                await transport.receive()
            assert (caught.value.code, caught.value.clean) == (1009, False)
        await transport.close()
        os.set_blocking(peer, False)


async def test_a_closed_stdout_is_a_closed_transport() -> None:
    read_fd, peer_fd = os.pipe()
    gone, write_fd = os.pipe()
    os.close(gone)
    transport = fd_transport(read_fd, write_fd)
    for _ in range(2):
        with pytest.raises(TransportClosed):
            await transport.send([Frame(b"1")])
    await transport.close()
    os.close(peer_fd)


async def test_descriptors_stay_blocking_for_those_who_share_them() -> None:
    (read_fd, peer_out), (peer_in, write_fd) = os.pipe(), os.pipe()
    shared = os.dup(read_fd), os.dup(write_fd)
    transport = fd_transport(read_fd, write_fd)
    os.write(peer_out, b"1\n")
    assert await transport.receive() == b"1"
    await transport.send([Frame(b"2")])
    assert [bool(fcntl.fcntl(fd, fcntl.F_GETFL) & os.O_NONBLOCK) for fd in shared] == [False] * 2
    await transport.close()
    for fd in (*shared, peer_out, peer_in):
        os.close(fd)


async def test_files_are_read_and_written(tmp_path: Path) -> None:
    source, sink = tmp_path / "in", tmp_path / "out"
    source.write_bytes(b"".join(b'{"n":%d}\n' % n for n in range(10_000)))
    transport = fd_transport(
        os.open(source, os.O_RDONLY), os.open(sink, os.O_WRONLY | os.O_CREAT, 0o600)
    )
    await transport.send([Frame(b"1"), Frame(b"2")])
    assert (await take(transport, 10_000))[-1] == b'{"n":9999}'
    with pytest.raises(TransportClosed):
        await transport.receive()
    await transport.close()
    assert sink.read_bytes() == b"1\n2\n"


@asynccontextmanager
async def terminal() -> AsyncIterator[tuple[LineTransport, int]]:
    ours, theirs = pty.openpty()
    tty.setraw(theirs)
    transport = fd_transport(os.dup(theirs), theirs)
    with trio.fail_after(contract.PATIENCE):
        yield transport, ours
    await transport.close()
    with suppress(OSError):
        os.close(ours)


async def test_a_terminal_loses_nothing_when_a_receive_is_cancelled() -> None:
    async with terminal() as (transport, ours):
        with trio.move_on_after(0.02) as scope:
            await transport.receive()
        assert scope.cancelled_caught
        os.write(ours, b"1\n2\n")
        assert await take(transport, 2) == [b"1", b"2"]
        await transport.send([Frame(b"3")])
        assert await trio.to_thread.run_sync(os.read, ours, 10) == b"3\n"
        os.close(ours)
        with pytest.raises(TransportClosed):
            await transport.receive()


async def test_a_stopped_terminal_does_not_stop_a_close() -> None:
    async with terminal() as (transport, _), trio.open_nursery() as nursery:
        with trio.move_on_after(0.05) as scope:
            await transport.send([Frame(b"x" * 1_000_000)])
        assert scope.cancelled_caught

        async def receive() -> None:
            with pytest.raises(TransportClosed):
                await transport.receive()

        nursery.start_soon(receive)
        await trio.testing.wait_all_tasks_blocked(0.01)
        await transport.close()
        with pytest.raises(TransportClosed):
            await transport.send([Frame(b"1")])


CHILD = """
import os, subprocess, sys, trio
from ahpd.protocol.frame import Frame
from ahpd.transports.port import TransportClosed
from ahpd.transports.stdio import open_stdio
assert not {"trio_websocket", "wsproto", "h11"} & set(sys.modules), "loaded too much"

async def main():
    transport = open_stdio()
    print("a stray print", flush=True)
    subprocess.run(["cat"], check=True)  # would swallow the peer's messages
    try:
        while True:
            await transport.send([Frame(await transport.receive())])
    except TransportClosed as end:
        print(end.reason, file=sys.stderr)
    await transport.close()

trio.run(main)
"""


def test_only_frames_reach_stdout_and_the_end_of_stdin_ends_the_process() -> None:
    messages = b'{"n":1}\n{"n":2}\n'
    child = subprocess.run(
        [sys.executable, "-c", CHILD], input=messages, capture_output=True, timeout=30, check=False
    )
    assert child.returncode == 0, child.stderr.decode()
    assert child.stdout == messages
    assert b"a stray print" in child.stderr
    assert b"the peer ended its stream" in child.stderr


def test_nothing_but_websocket_loads_what_websocket_needs() -> None:
    code = """
import sys
import ahpd.transports.auth, ahpd.transports.connect, ahpd.transports.memory
import ahpd.transports.stdio, ahpd.transports.unix
sys.exit(str({"trio_websocket", "wsproto", "h11"} & set(sys.modules) or ""))
"""
    child = subprocess.run([sys.executable, "-c", code], capture_output=True, check=False)
    assert child.stderr.strip() == b""


async def test_text_that_is_not_utf8_is_handed_on_for_the_answer_that_says_so() -> None:
    async with reading() as (transport, peer):
        os.write(peer, b"\xff\xfe\n")
        assert text_of(await transport.receive()) == b"\xff\xfe"
