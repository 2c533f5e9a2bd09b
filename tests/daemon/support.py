"""Real daemons in processes of their own, and peers whose every frame is judged."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import trio

from ahpd.protocol.frame import Frame, frame
from ahpd.protocol.jsontext import loads
from ahpd.protocol.uris import ROOT, default_chat
from ahpd.transports.connect import ConnectFailed, connect
from ahpd.transports.port import Transport, TransportClosed
from tests.wire import Connection

#: Seconds after which anything that waits for a process fails. No test measures time.
PATIENCE = 60

SESSION = "demo:/11111111-1111-4111-8111-111111111111"
CHAT = default_chat(SESSION)
INITIALIZE = {
    "channel": ROOT,
    "protocolVersions": ["1.0.0"],
    "clientId": "cl-a",
    "initialSubscriptions": [ROOT],
}


def environment(folder: Path) -> dict[str, str]:
    """An environment in which nothing of the person who runs the tests is found."""
    places = {name: str(folder / name.lower()) for name in ("XDG_CONFIG_HOME", "XDG_STATE_HOME")}
    return dict(os.environ, HOME=str(folder), **places)


def ahpd(folder: Path, *arguments: str, given: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    """Run a command to its end."""
    return subprocess.run(
        [sys.executable, "-m", "ahpd", *arguments],
        input=given,
        capture_output=True,
        timeout=PATIENCE,
        env=environment(folder),
        cwd=folder,
        check=False,
    )


class Daemon:
    """A daemon in the foreground of a process of its own."""

    def __init__(self, process: subprocess.Popen[bytes], state: Path, endpoint: Path) -> None:
        self.process = process
        self.state = state
        self.endpoint = endpoint
        self.said = b""

    @property
    def url(self) -> str:
        """Where it takes clients, with the token."""
        return str(json.loads(self.endpoint.read_bytes())["url"])

    @property
    def unix(self) -> str:
        """The address of its socket."""
        return f"unix:{self.state / 'ahpd.sock'}"

    def end(self, number: int = signal.SIGTERM) -> int:
        """Signal it, and wait for its end; its exit code."""
        if self.process.poll() is None:
            self.process.send_signal(number)
        _, self.said = self.process.communicate(timeout=PATIENCE)
        return self.process.returncode


@contextmanager
def daemon(folder: Path, *arguments: str, name: str = "state") -> Iterator[Daemon]:
    """A daemon on a free port that takes clients."""
    endpoint = folder / f"{name}-endpoint.json"
    endpoint.unlink(missing_ok=True)
    command = [sys.executable, "-m", "ahpd", "--port", "0", "--state-dir", str(folder / name)]
    process = subprocess.Popen(
        [*command, "--endpoint-file", str(endpoint), *arguments],
        stdin=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        env=environment(folder),
        cwd=folder,
    )
    try:
        until(lambda: endpoint.exists() or process.poll() is not None)
        if process.poll() is not None:
            assert process.stderr is not None
            raise AssertionError(process.stderr.read().decode())
        yield Daemon(process, folder / name, endpoint)
    finally:
        if process.poll() is None:
            process.kill()
        process.wait(PATIENCE)
        if process.stderr is not None:
            process.stderr.close()


def until(condition: Any) -> None:
    """Wait for something outside; fails after `PATIENCE`."""
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.02)


def free_port() -> int:
    """A port that was free a moment ago."""
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return int(sock.getsockname()[1])


class Peer:
    """A client whose every word is the test's; all frames go to `wire`."""

    def __init__(self, transport: Transport, wire: Connection) -> None:
        self._transport = transport
        self._wire = wire
        self._ids = 0
        #: Notifications that came while an answer was waited for.
        self.heard: list[Any] = []

    async def send(self, method: str, params: Any, id: int | None = None) -> None:
        message = {"jsonrpc": "2.0", "method": method, "params": params}
        if id is not None:
            message["id"] = id
        self._wire.sent(message)
        await self._transport.send([frame(message)])

    async def request(self, method: str, **params: Any) -> Any:
        """The result, or the error object."""
        self._ids += 1
        await self.send(method, {"channel": ROOT, **params}, self._ids)
        while True:
            message = await self.next()
            if message.get("id") == self._ids:
                return message.get("result", message.get("error"))
            self.heard.append(message)

    async def next(self) -> Any:
        text = await self._transport.receive()
        self._wire.received(text)
        return loads(text)

    async def until_action(self, name: str) -> Any:
        """Read until an action of this type came; it."""
        while True:
            message = self.heard.pop(0) if self.heard else await self.next()
            if message.get("method") == "action" and message["params"]["action"]["type"] == name:
                return message["params"]["action"]

    async def hello(self) -> Any:
        return await self.request("initialize", **INITIALIZE)

    async def begin(self, prompt: str) -> None:
        """A session, subscribed to its chat, and a turn in it."""
        await self.request("createSession", channel=SESSION)
        await self.request("subscribe", channel=CHAT)
        await self.send("dispatchAction", turn(prompt))

    async def until_closed(self) -> TransportClosed:
        while True:
            try:
                await self.next()
            except TransportClosed as closed:
                return closed


def turn(prompt: str) -> Any:
    """The params of a dispatch that starts a turn."""
    return {
        "channel": CHAT,
        "clientSeq": 1,
        "action": {
            "type": "chat/turnStarted",
            "turnId": "t1",
            "startedAt": "2031-01-01T00:00:00.000Z",
            "message": {"text": prompt, "origin": {"kind": "user"}},
        },
    }


@asynccontextmanager
async def peer(address: str, wire: Connection) -> AsyncIterator[Peer]:
    """A connection for the length of the block."""
    failure: ConnectFailed | None = None
    with trio.fail_after(PATIENCE):
        async with trio.open_nursery() as nursery:
            try:
                transport = await connect(nursery, address)
            except ConnectFailed as error:
                failure = error
            else:
                yield Peer(transport, wire)
                await transport.close()
            nursery.cancel_scope.cancel()
    if failure is not None:
        raise failure


def lines(messages: Sequence[Any]) -> bytes:
    """Messages as a peer over stdio sends them."""
    return b"".join(
        (each if isinstance(each, bytes) else Frame(frame(each).text).text) + b"\n"
        for each in messages
    )


def call(id: int, method: str, params: Any) -> Any:
    """A request."""
    return {"jsonrpc": "2.0", "id": id, "method": method, "params": params}


def mode(path: Path) -> int:
    """The permissions of a file."""
    return path.stat().st_mode & 0o777
