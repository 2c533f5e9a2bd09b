from __future__ import annotations

import os
import socket
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import trio
import trio.testing

from ahpd.protocol.frame import Frame
from ahpd.transports import unix
from ahpd.transports.linestream import LineTransport
from ahpd.transports.port import Handler, Transport, TransportClosed
from ahpd.transports.unix import PATH_LIMIT, SocketInUse, SocketPathError, serve_unix
from tests.transports import contract
from tests.transports.contract import Pair, frames, take

pytestmark = pytest.mark.real_time


async def idle(transport: Transport) -> None:
    await trio.sleep_forever()


@asynccontextmanager
async def serving(handler: Handler, path: Path) -> AsyncIterator[trio.Nursery]:
    with trio.fail_after(contract.PATIENCE):
        async with trio.open_nursery() as nursery:

            async def serve(task_status: trio.TaskStatus[Path]) -> None:
                await serve_unix(handler, path, limit=64 * 1024 * 1024, task_status=task_status)

            assert await nursery.start(serve) == path
            yield nursery
            nursery.cancel_scope.cancel()


async def dial(path: Path) -> LineTransport:
    return LineTransport(await trio.open_unix_socket(os.fspath(path)), "unix")


@contract.every_check
async def test_contract(check: contract.Check, tmp_path: Path) -> None:
    @asynccontextmanager
    async def pair() -> AsyncIterator[Pair]:
        found: list[Transport] = []

        async def handler(transport: Transport) -> None:
            found.append(transport)
            await trio.sleep_forever()

        async with serving(handler, tmp_path / "s"):
            far = await dial(tmp_path / "s")
            while not found:
                await trio.sleep(0.001)
            yield Pair(found[0], far, far.close)
            await far.close()

    await contract.run(check, pair)


async def test_the_file_is_private_and_goes_with_a_clean_end(tmp_path: Path) -> None:
    path = tmp_path / "new" / "deep" / "ahpd.sock"
    async with serving(idle, path):
        assert path.stat().st_mode & 0o777 == 0o600
        assert path.parent.stat().st_mode & 0o777 == 0o700
    assert not path.exists()


async def test_a_live_socket_is_refused_and_keeps_serving(tmp_path: Path) -> None:
    path = tmp_path / "s"

    async def echo(transport: Transport) -> None:
        try:
            await transport.receive()
            await transport.send(frames(1))
        except TransportClosed:
            pass

    async with serving(echo, path):
        with pytest.raises(SocketInUse, match="another process listens"):
            await serve_unix(idle, path)
        client = await dial(path)
        await client.send(frames(1))
        assert await take(client, 1) == [b'{"n":0}']
        await client.close()


async def test_what_a_killed_process_left_is_replaced(tmp_path: Path) -> None:
    path = tmp_path / "s"
    code = "import os,socket,sys; s=socket.socket(socket.AF_UNIX); s.bind(sys.argv[1]); s.listen()"
    await trio.run_process(
        [sys.executable, "-c", f"{code}; os.kill(os.getpid(), 9)", path], check=False
    )
    assert path.is_socket()
    async with serving(idle, path):
        await (await dial(path)).close()


async def test_a_file_that_is_no_socket_is_not_touched(tmp_path: Path) -> None:
    path = tmp_path / "s"
    path.write_text("precious")
    with pytest.raises(SocketPathError, match="is no socket"):
        await serve_unix(idle, path)
    assert path.read_text() == "precious"


async def test_a_file_that_is_not_ours_any_more_stays(tmp_path: Path) -> None:
    path = tmp_path / "s"
    async with serving(idle, path):
        path.unlink()
        with socket.socket(socket.AF_UNIX) as other:
            other.bind(os.fspath(path))
    assert path.is_socket()


@pytest.mark.parametrize("mode", [0o750, 0o705, 0o777])
async def test_a_folder_open_to_others_is_refused_by_its_mode(tmp_path: Path, mode: int) -> None:
    folder = tmp_path / "open"
    folder.mkdir()
    folder.chmod(mode)
    with pytest.raises(SocketPathError, match=f"mode {mode:04o}.*chmod 700"):
        await serve_unix(idle, folder / "s")


async def test_a_path_that_is_too_long_is_refused_with_its_length(tmp_path: Path) -> None:
    room = PATH_LIMIT - len(os.fsencode(tmp_path)) - 1
    async with serving(idle, tmp_path / ("x" * room)):
        pass
    with pytest.raises(SocketPathError, match=f"{PATH_LIMIT + 1} bytes.*{PATH_LIMIT} at most"):
        await serve_unix(idle, tmp_path / ("x" * (room + 1)))


async def test_other_users_are_turned_away(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    handled: list[Transport] = []

    async def handler(transport: Transport) -> None:
        handled.append(transport)

    for uid, allowed in ((os.getuid() + 1, False), (os.getuid(), True), (0, True)):
        monkeypatch.setattr(unix, "_peer_uid", lambda sock, uid=uid: uid)
        async with serving(handler, tmp_path / "s"):
            client = await dial(tmp_path / "s")
            with pytest.raises(TransportClosed):
                await client.receive()
            await client.close()
        assert bool(handled) is allowed
        handled.clear()


async def test_the_kernel_says_who_the_peer_is() -> None:
    a, b = trio.socket.socketpair()
    with a, b:
        assert unix._peer_uid(a) == os.getuid()


async def test_a_handler_that_raises_ends_its_own_connection_only(tmp_path: Path) -> None:
    path = tmp_path / "s"

    async def handler(transport: Transport) -> None:
        if await transport.receive() == b"{}":
            raise ValueError("broken")
        await transport.send(frames(1))

    async with serving(handler, path):
        first, second = await dial(path), await dial(path)
        await first.send([Frame(b"{}")])
        with pytest.raises(TransportClosed):
            await first.receive()
        await second.send(frames(1))
        assert await take(second, 1) == [b'{"n":0}']
        await first.close()
        await second.close()
