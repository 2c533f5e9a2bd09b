"""A host as anybody would start it, and somebody who talks to it."""

from __future__ import annotations

import hashlib
import itertools
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Self
from urllib.parse import urlsplit

import attrs
import orjson

from ahpd.bench.processes import BenchFailed, environment, wait_for
from ahpd.bench.sockets import WebSocket
from ahpd.protocol.uris import ROOT, default_chat

#: The agent's name, which is the scheme of its sessions.
AGENT = "bench"
_WHEN = "2026-01-01T00:00:00.000Z"
_STOP_WITHIN = 30.0


@attrs.frozen
class Daemon:
    """A host that runs."""

    pid: int
    port: int
    #: Of its URL, with the token.
    path: str
    _numbers: Iterator[int] = attrs.field(factory=lambda: itertools.count(1))
    _connected: ExitStack = attrs.field(factory=ExitStack)

    def connect(self, client_id: str | None = None) -> Peer:
        """Somebody who has said hello; a client that was here before has not.

        Who is still connected when the host is to end leaves before.
        """
        socket = self._connected.enter_context(WebSocket(self.port, self.path))
        if client_id is not None:
            return Peer(socket, client_id)
        peer = Peer(socket, f"peer-{next(self._numbers)}")
        peer.answer(peer.say(initialize(0, peer.client_id)))
        return peer

    def __enter__(self) -> Self:
        """It runs."""
        return self

    def __exit__(self, *_: object) -> None:
        """It is about to end."""
        self._connected.close()

    def greeting(self, *channels: str) -> list[Any]:
        """What a new client says to hear these channels."""
        name = f"reader-{next(self._numbers)}"
        return [initialize(1, name)] + [
            request(number, "subscribe", channel=channel)
            for number, channel in enumerate(channels, 2)
        ]

    def new_session(self) -> str:
        """A URI for a session that there is not yet."""
        return f"{AGENT}:/{next(self._numbers)}"


@contextmanager
def daemon(turns: Sequence[Any], config: str = "", *, acp: str | None = None) -> Iterator[Daemon]:
    """A host whose agent plays `turns`, the entries of a script; its journal is in a folder.

    With `acp`, its agent is a program that speaks ACP, and this its command line.
    """
    with tempfile.TemporaryDirectory(prefix="ahpd-bench-") as name:
        folder = Path(name)
        (folder / "script.json").write_text(json.dumps({"turns": list(turns)}))
        (folder / "config.toml").write_text(config)  # and nothing that somebody has configured
        with (folder / "log").open("wb") as log:
            process = subprocess.Popen(
                command(folder, port=0, acp=acp),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=environment(),
            )
        try:
            wait_for("the host starts", lambda: _has_started(process, folder))
            url = urlsplit(json.loads((folder / "endpoint.json").read_text())["url"])
            assert url.port is not None
            with Daemon(process.pid, url.port, f"{url.path}?{url.query}") as host:
                yield host
        finally:
            end(process)


def command(folder: Path, port: int, acp: str | None = None) -> list[str]:
    """The command line of a host whose files are in `folder`."""
    agent = f"scripted:{folder / 'script.json'}" if acp is None else f"acp:{acp}"
    return [
        *(sys.executable, "-m", "ahpd", "serve", "--port", str(port), "--quiet"),
        *("--endpoint-file", str(folder / "endpoint.json")),
        *("--state-dir", str(folder / "state"), "--config", str(folder / "config.toml")),
        *("--path", str(folder), "--agent", f"{AGENT}={agent}"),
    ]


def _has_started(process: subprocess.Popen[bytes], folder: Path) -> bool:
    if process.poll() is not None:
        raise BenchFailed(f"the host did not start: {(folder / 'log').read_text().strip()}")
    return (folder / "endpoint.json").exists()


def end(process: subprocess.Popen[bytes]) -> None:
    """Have a host stop, or make it."""
    process.terminate()
    try:
        process.wait(_STOP_WITHIN)
    finally:
        process.kill()
        process.wait()


def request(number: int, method: str, **params: Any) -> Any:
    """A request as it is sent."""
    params.setdefault("channel", ROOT)
    return {"jsonrpc": "2.0", "id": number, "method": method, "params": params}


def initialize(number: int, client_id: str, *channels: str) -> Any:
    """The first request of a connection."""
    return request(
        number,
        "initialize",
        protocolVersions=["1.0.0"],
        clientId=client_id,
        initialSubscriptions=list(channels),
    )


class Peer:
    """Asks one thing at a time. What comes while it waits for an answer is dropped."""

    def __init__(self, socket: WebSocket, client_id: str) -> None:
        self.socket = socket
        self.client_id = client_id
        self._ids = itertools.count(1)
        self._seqs = itertools.count(1)

    def say(self, message: Any) -> int:
        """Say anything; its number."""
        self.socket.send(orjson.dumps(message))
        number: int = message.get("id", 0)
        return number

    def send(self, method: str, **params: Any) -> int:
        """Send a request and go on; its number."""
        return self.say(request(next(self._ids), method, **params))

    def answer(self, number: int) -> Any:
        """The result of a request."""
        head = b'"id":%d' % number
        while True:
            text = self.socket.receive()
            if head in text[:64]:
                answer = orjson.loads(text)
                if "result" not in answer:
                    raise BenchFailed(f"{self.client_id}: {answer}")
                return answer["result"]

    def request(self, method: str, **params: Any) -> Any:
        """Ask, and wait for the answer."""
        return self.answer(self.send(method, **params))

    def dispatch(self, channel: str, action: Any) -> None:
        """Dispatch an action."""
        params = {"channel": channel, "clientSeq": next(self._seqs), "action": action}
        self.say({"jsonrpc": "2.0", "method": "dispatchAction", "params": params})

    def sessions(self, host: Daemon, count: int) -> list[str]:
        """So many new sessions; their chats. Their agents are there on return."""
        uris = [host.new_session() for _ in range(count)]
        for number in [self.send("createSession", channel=uri) for uri in uris]:
            self.answer(number)
        for uri in uris:
            wait_for(f"{uri} is ready", lambda uri=uri: self._is_ready(uri))  # type: ignore[misc]
        return [default_chat(uri) for uri in uris]

    def _is_ready(self, session: str) -> bool:
        return bool(self.state(session)["lifecycle"] != "creating")

    def state(self, channel: str) -> Any:
        """What a channel holds now."""
        state = self.request("subscribe", channel=channel)["snapshot"]["state"]
        self.say({"jsonrpc": "2.0", "method": "unsubscribe", "params": {"channel": channel}})
        return state

    def start_turn(self, chat: str, text: str) -> float:
        """Say `text` to the agent of a chat; the time."""
        turn = f"{self.client_id}-{next(self._seqs)}"
        message = {"text": text, "origin": {"kind": "user"}}
        now = time.monotonic()
        self.dispatch(
            chat,
            {"type": "chat/turnStarted", "turnId": turn, "startedAt": _WHEN, "message": message},
        )
        return now

    def turn_is_over(self, chat: str) -> None:
        """Wait until no turn of the chat runs."""
        wait_for(f"a turn of {chat} ends", lambda: not self.state(chat).get("activeTurn"))

    def last_text(self, chat: str) -> bytes:
        """What the agent said in the chat's last turn, once that is over."""
        self.turn_is_over(chat)
        parts = self.state(chat)["turns"][-1]["responseParts"]
        return "".join(part["content"] for part in parts).encode()

    def close(self) -> None:
        """Leave."""
        self.socket.close()


def digest(text: bytes) -> str:
    """What stands for a long text."""
    return hashlib.sha256(text).hexdigest()
