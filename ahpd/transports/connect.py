"""The other side: connecting to a host, by address or by starting it.

For the project's own client and command line. The WebSocket here is trio-websocket's client as it
is; a client sends little, so nothing is joined.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping, Sequence
from urllib.parse import unquote, urlsplit

import trio

from ahpd.transports.auth import redact
from ahpd.transports.lines import LINE_LIMIT
from ahpd.transports.linestream import LineTransport
from ahpd.transports.port import Transport

#: Seconds that a connection may take to come about.
CONNECT_SECONDS = 10.0
#: Seconds that a started process gets to end by itself once its stdin is closed, and then again
#: after SIGTERM.
EXIT_SECONDS = 2.0


class ConnectFailed(Exception):
    """No connection came about; the message says why, without the token.

    `status` is the HTTP status when a host refused the WebSocket: 401 for a wrong token, 403 for a
    foreign host or origin.
    """

    def __init__(self, message: str, *, status: int | None = None) -> None:
        super().__init__(redact(message))
        self.status = status


async def connect(
    nursery: trio.Nursery,
    url: str,
    *,
    within: float = CONNECT_SECONDS,
    limit: int = LINE_LIMIT,
) -> Transport:
    """Connect to ``ws://HOST:PORT/?tkn=...`` or ``unix:/path/of/the.sock``.

    What the connection does in the background is done in `nursery` until `close`. `within` bounds
    connecting in seconds, `limit` a message in bytes.

    Raises `ConnectFailed`, also for an address that is of neither kind.
    """
    scheme = url.partition(":")[0].lower()
    transport: Transport | None = None
    with trio.move_on_after(within):
        if scheme == "unix":
            transport = await _connect_unix(url, limit)
        elif scheme == "ws":
            transport = await _connect_websocket(nursery, url, limit)
        else:
            raise ConnectFailed(f"expected an address with ws: or unix:, got {url}")
    if transport is None:
        raise ConnectFailed(f"no answer from {url} within {within:g} s")
    return transport


async def _connect_unix(url: str, limit: int) -> Transport:
    path = unquote(urlsplit(url).path)
    try:
        stream = await trio.open_unix_socket(path)
    except OSError as error:
        raise ConnectFailed(f"cannot connect to {path}: {error.strerror or error}") from error
    return LineTransport(stream, "unix", limit=limit)


async def _connect_websocket(nursery: trio.Nursery, url: str, limit: int) -> Transport:
    # Here and not above, so that connecting otherwise does not load what WebSocket needs.
    from ahpd.transports.wsclient import WebSocketClient  # noqa: PLC0415

    parts = urlsplit(url)
    try:
        host, port = parts.hostname, parts.port or 80
        if not host:
            raise ConnectFailed(f"there is no host in {url}")
        stream = await trio.open_tcp_stream(host, port)
    except (OSError, ValueError) as error:
        # Without the token: what is hidden of one would take the colon along.
        where = url.partition("?")[0]
        raise ConnectFailed(f"cannot connect to {where}: {error}") from error
    resource = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    client = WebSocketClient(stream, parts.netloc.rpartition("@")[2], resource, limit)
    nursery.start_soon(client.run)
    opened = False
    try:
        await client.opened.wait()
        opened = client.refused is None
    finally:
        if not opened:
            client.abort()
    if client.refused is not None:
        status, said = client.refused
        answer = f" ({status})" if status else ""
        raise ConnectFailed(f"{url} refused the connection{answer}: {said}", status=status)
    return client


async def start_host(
    command: Sequence[str | os.PathLike[str]],
    *,
    cwd: str | os.PathLike[str] | None = None,
    env: Mapping[str, str] | None = None,
    limit: int = LINE_LIMIT,
) -> ProcessTransport:
    """Start a program that speaks the protocol on its stdin and stdout, as ``ahpd --stdio``.

    Its stderr is this process's. Raises `ConnectFailed` when it cannot be started.
    """
    try:
        process = await trio.lowlevel.open_process(
            [os.fspath(word) for word in command],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            cwd=cwd,
            env=env,
        )
    except OSError as error:
        raise ConnectFailed(f"cannot start {command[0]}: {error.strerror or error}") from error
    return ProcessTransport(process, limit)


class ProcessTransport(LineTransport):
    """A `Transport` to a started program. `close` ends it, in 4 times `EXIT_SECONDS` at most."""

    def __init__(self, process: trio.Process, limit: int) -> None:
        super().__init__(_ProcessCarrier(process), f"process {process.pid}", limit=limit)
        #: For its `returncode`, which is set once the transport is closed.
        self.process = process


class _ProcessCarrier:
    """A `linestream.Carrier` over the pipes of a child process."""

    def __init__(self, process: trio.Process) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self._process = process
        self._stdin = process.stdin
        self._stdout = process.stdout

    async def receive_some(self, max_bytes: int) -> bytes | bytearray:
        return await self._stdout.receive_some(max_bytes)

    async def send_all(self, data: bytes) -> None:
        await self._stdin.send_all(data)

    async def aclose(self) -> None:
        """End its input, then ask, then force it to end; waits for it to be gone."""
        process = self._process
        with trio.move_on_after(4 * EXIT_SECONDS, shield=True):
            await self._stdin.aclose()
            await self._stdout.aclose()
            for signal in (None, process.terminate, process.kill):
                if signal is not None:
                    signal()
                with trio.move_on_after(EXIT_SECONDS):
                    await process.wait()
                    return
