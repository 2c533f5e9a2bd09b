"""The client's side, against the project's own listeners: the contract with both ends ours."""

from __future__ import annotations

import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import trio

from ahpd.transports.connect import ConnectFailed, connect, start_host
from ahpd.transports.port import Transport, TransportClosed
from ahpd.transports.unix import serve_unix
from tests.transports import contract
from tests.transports.contract import Pair, frames, take
from tests.transports.raw import TOKEN
from tests.transports.test_websocket import hosting, idle

pytestmark = pytest.mark.real_time


@asynccontextmanager
async def client(url: str) -> AsyncIterator[Transport]:
    async with trio.open_nursery() as nursery:
        transport = await connect(nursery, url)
        yield transport
        await transport.close()


@asynccontextmanager
async def client_first() -> AsyncIterator[Pair]:
    async with (
        hosting(handler=idle) as host,
        client(f"ws://127.0.0.1:{host.port}/?tkn={TOKEN}") as near,
    ):
        far = await host.transport()
        yield Pair(near, far)
        await far.close()


@asynccontextmanager
async def host_first() -> AsyncIterator[Pair]:
    async with client_first() as pair:
        yield Pair(pair.far, pair.near)


@contract.every_check
@pytest.mark.parametrize("open_pair", [client_first, host_first])
async def test_contract(check: contract.Check, open_pair: contract.Open) -> None:
    await contract.run(check, open_pair)


async def test_what_the_host_says_when_it_refuses_reaches_the_caller() -> None:
    async with hosting() as host, trio.open_nursery() as nursery:
        with pytest.raises(ConnectFailed, match="token is needed") as caught:
            await connect(nursery, f"ws://127.0.0.1:{host.port}/?tkn=wrong")
        assert caught.value.status == 401
        assert "wrong" not in str(caught.value)
        with pytest.raises(ConnectFailed):
            await connect(nursery, f"ws://127.0.0.1:{host.port}")


async def test_addresses_that_lead_nowhere(tmp_path: Path) -> None:
    sock = trio.socket.socket()
    await sock.bind(("127.0.0.1", 0))
    port = sock.getsockname()[1]
    async with trio.open_nursery() as nursery:
        for url in (
            f"ws://127.0.0.1:{port}/?tkn=secret",
            f"unix:{tmp_path}/none",
            "http://127.0.0.1/?tkn=secret",
            "ws:///?tkn=secret",
            "ws://127.0.0.1:99999/?tkn=secret",
            "nothing",
            "",
        ):
            with pytest.raises(ConnectFailed) as caught:
                await connect(nursery, url)
            assert "secret" not in str(caught.value)
            if f":{port}" in url:
                assert f"cannot connect to ws://127.0.0.1:{port}/: " in str(caught.value)
        sock.listen()
        with pytest.raises(ConnectFailed, match="no answer"):
            await connect(nursery, f"ws://127.0.0.1:{port}", within=0.1)
    sock.close()


async def test_a_port_that_speaks_something_else() -> None:
    async def babble(stream: trio.SocketStream) -> None:
        await stream.send_all(b"SSH-2.0-OpenSSH_9.9\r\n\r\n")
        await trio.sleep_forever()

    async with trio.open_nursery() as nursery:
        [listener] = await trio.open_tcp_listeners(0, host="127.0.0.1")
        nursery.start_soon(trio.serve_listeners, babble, [listener])
        with pytest.raises(ConnectFailed):
            await connect(nursery, f"ws://127.0.0.1:{listener.socket.getsockname()[1]}", within=0.5)
        nursery.cancel_scope.cancel()


async def test_a_unix_address(tmp_path: Path) -> None:
    path = tmp_path / "a b.sock"

    async def echo(transport: Transport) -> None:
        try:
            while True:
                await take(transport, 1)
                await transport.send(frames(1))
        except TransportClosed:
            pass

    async with trio.open_nursery() as nursery:

        async def serve(task_status: trio.TaskStatus[Path]) -> None:
            await serve_unix(echo, path, task_status=task_status)

        await nursery.start(serve)
        for url in (f"unix:{path}", f"unix://{path}".replace(" ", "%20")):
            async with client(url) as transport:
                await transport.send(frames(1))
                assert await take(transport, 1) == [b'{"n":0}']
        nursery.cancel_scope.cancel()


ECHO = """
import sys, trio
from ahpd.protocol.frame import Frame
from ahpd.transports.port import TransportClosed
from ahpd.transports.stdio import open_stdio

async def main():
    transport = open_stdio()
    try:
        while True:
            await transport.send([Frame(await transport.receive())])
    except TransportClosed:
        pass

trio.run(main)
"""
STUBBORN = (
    "import signal,time; signal.signal(15, signal.SIG_IGN); print(1, flush=True); time.sleep(99)"
)


async def test_a_started_host_talks_and_ends_with_its_input() -> None:
    with trio.fail_after(contract.PATIENCE):
        transport = await start_host([sys.executable, "-c", ECHO])
        await transport.send(frames(1000))
        assert await take(transport, 1000) == [frame.text for frame in frames(1000)]
        await transport.close()
        assert transport.process.returncode == 0
        with pytest.raises(TransportClosed):
            await transport.receive()


async def test_a_started_host_that_does_not_end_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ahpd.transports.connect.EXIT_SECONDS", 0.1)
    transport = await start_host([sys.executable, "-c", STUBBORN])
    assert await take(transport, 1) == [b"1"]
    await transport.close()
    assert transport.process.returncode == -9


async def test_a_started_host_that_dies_is_an_end_and_one_that_is_missing_an_error() -> None:
    transport = await start_host([sys.executable, "-c", "print(1)"])
    assert await take(transport, 1) == [b"1"]
    with pytest.raises(TransportClosed):
        await transport.receive()
    await transport.close()
    with pytest.raises(ConnectFailed, match="cannot start"):
        await start_host([os.path.join(os.sep, "no", "such", "program")])
