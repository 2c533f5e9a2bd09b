"""Real rounds: a real host in a process of its own, killed with SIGKILL while real clients work."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from random import Random
from typing import Any

import attrs
import trio

from ahpd.client import (
    Backoff,
    Client,
    ConnectionLost,
    Operation,
    RequestTimeout,
    open_client,
)
from ahpd.protocol.chat import ChatState
from ahpd.protocol.codec import DecodeError
from ahpd.protocol.errors import ProtocolError
from ahpd.protocol.frame import Frame
from ahpd.protocol.model import JSON
from ahpd.protocol.session_actions import SessionTitleChangedAction
from ahpd.protocol.uris import ROOT, URI, default_chat
from ahpd.transports.connect import ConnectFailed, ProcessTransport, connect, start_host
from ahpd.transports.port import Transport, TransportClosed
from tests.chaos.wishes import (
    cancel_turn,
    confirm,
    queue_message,
    start_message,
    type_draft,
    waiting_calls,
)
from tests.daemon.support import environment
from tests.harness.tap import Tap, Taps

#: Seconds after which anything that waits for a process fails. No round measures time.
PATIENCE = 60.0

SESSION = URI("test:/round")
CHAT = default_chat(SESSION)
CHANNELS = (ROOT, SESSION, CHAT)

_DIG = {"name": "dig", "title": "Dig a hole", "input": {}, "output": "A hole.\n", "confirm": True}
_SCRIPT = {
    "turns": [
        {"when": "long", "steps": [{"text": "word ", "times": 150, "everyMs": 4}]},
        {"when": "dig", "steps": [{"text": "May I? "}, {"tool": _DIG}, {"text": "Thanks."}]},
        {"when": "fail", "steps": [{"text": "Alas. "}, {"fail": "no luck", "resumable": True}]},
        {"steps": [{"thought": "Hm. ", "times": 3}, {"echo": True}]},
    ]
}
_KINDS = ("long", "long", "dig", "fail", "short")
#: All envelopes stay in the journal, so that they can be counted in the end.
_CONFIG = "[limits]\nreplay_envelopes = 1000000\n"

#: Operations of one user that wait for answers; somebody who gets none stops typing.
_OPEN = 8

#: What a request may come to while the host goes down.
FAILED = (ConnectionLost, RequestTimeout, ProtocolError, DecodeError)


class Place:
    """A folder with all that a host is started with."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.state = folder / "state"
        self.log = folder / "log"
        self.endpoint = folder / "endpoint.json"
        (folder / "script.json").write_text(json.dumps(_SCRIPT))
        (folder / "config.toml").write_text(_CONFIG)

    def command(self, *words: str) -> list[str]:
        """The command line of a host on this folder."""
        return [
            *(sys.executable, "-m", "ahpd", *words, "--state-dir", str(self.state)),
            *("--config", str(self.folder / "config.toml"), "--path", str(self.folder)),
            *("--agent", f"test=scripted:{self.folder / 'script.json'}"),
        ]


class DaemonHost:
    """A daemon that is killed, and started again on the same state folder."""

    def __init__(self, place: Place, nursery: trio.Nursery) -> None:
        self.place = place
        self.process: trio.Process | None = None
        self._nursery = nursery

    async def start(self) -> None:
        """Start it; do not wait until it takes clients."""
        self.place.endpoint.unlink(missing_ok=True)
        words = ("serve", "--port", "0", "--quiet", "--endpoint-file", str(self.place.endpoint))
        with self.place.log.open("ab") as log:
            self.process = await trio.lowlevel.open_process(
                self.place.command(*words),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=environment(self.place.folder),
                cwd=self.place.folder,
            )

    async def kill(self) -> None:
        """End it as nothing that it could answer to would."""
        assert self.process is not None
        self.process.kill()
        await self.process.wait()

    async def stop(self) -> int:
        """Stop it in order; its exit code."""
        assert self.process is not None
        self.process.send_signal(signal.SIGTERM)
        return await self.process.wait()

    def dial(self, name: str) -> Callable[[], Awaitable[Transport]]:
        """How a client gets to it: the desk by WebSocket, everybody else by the Unix socket."""

        async def open_one() -> Transport:
            try:
                if name != "desk":
                    return await connect(self._nursery, f"unix:{self.place.state / 'ahpd.sock'}")
                url = str(json.loads(self.place.endpoint.read_bytes())["url"])
                return await connect(self._nursery, url)
            except (ConnectFailed, OSError, ValueError) as error:
                raise TransportClosed(str(error)) from error

        return open_one


class StdioHost:
    """A host for one client at a time, which starts it, and again when it was killed."""

    def __init__(self, place: Place) -> None:
        self.place = place
        self._started: list[ProcessTransport] = []

    async def start(self) -> None:
        """Its client starts it."""

    async def kill(self) -> None:
        """End it as nothing that it could answer to would."""
        if self._started:
            process = self._started[-1].process
            process.kill()
            await process.wait()

    async def stop(self) -> int:
        """Its client has stopped it already."""
        code = self._started[-1].process.returncode
        assert code is not None
        return code

    def dial(self, name: str) -> Callable[[], Awaitable[Transport]]:
        """How its client gets to it."""

        async def open_one() -> Transport:
            try:
                made = await start_host(
                    self.place.command("--stdio"),
                    cwd=self.place.folder,
                    env=environment(self.place.folder),
                )
            except ConnectFailed as error:
                raise TransportClosed(str(error)) from error
            self._started.append(made)
            return made

        return open_one


@attrs.define(eq=False)
class User:
    """A client, and what it did."""

    name: str
    dice: Random
    operations: list[Operation] = attrs.field(factory=list)
    client: Client | None = None
    #: What it held in the end.
    states: dict[URI, JSON] = attrs.field(factory=dict)

    def act(self) -> None:
        """Do something in the chat, connected or not."""
        assert self.client is not None
        if len(self.client.open_operations) >= _OPEN:
            return
        chat: ChatState = self.client.store(CHAT).optimistic
        name = f"{self.name}-{len(self.operations)}"
        choice = self.dice.randrange(10)
        if chat.active_turn is None and choice < 5:
            self.do(start_message(f"{self.dice.choice(_KINDS)}-{name}"))
        elif waiting_calls(chat) and choice < 6:
            self.do(confirm(chat, approved=self.dice.random() < 0.6))
        elif choice < 7:
            self.do(type_draft(f"draft {name}"))
        elif choice < 8:
            self.do(queue_message(f"{self.dice.choice(_KINDS)}-{name}"))
        elif choice == 9 and chat.active_turn is not None:
            self.do(cancel_turn(chat))

    def do(self, action: Any) -> None:
        """Dispatch it."""
        assert self.client is not None
        self.operations.append(self.client.dispatch(CHAT, action))

    def is_done(self) -> bool:
        """Whether nothing is under way any more, as far as it knows; decides what waits."""
        assert self.client is not None
        if self.client.status != "connected" or self.client.open_operations:
            return False
        chat: ChatState = self.client.store(CHAT).optimistic
        if chat.active_turn is not None and waiting_calls(chat):
            self.do(confirm(chat, approved=True))
        if chat.active_turn is None and chat.queued_messages:
            self.do(start_message(f"short-{self.name}-{len(self.operations)}"))  # it was held
        return chat.active_turn is None and not chat.queued_messages


class Round:
    """One round: a host, its users, and kills at moments that the seed chose."""

    def __init__(self, seed: int, folder: Path, *, stdio: bool) -> None:
        self.seed = seed
        self.dice = Random(f"round {seed}")
        self.place = Place(folder)
        self.stdio = stdio
        self.taps = Taps()
        names = ("desk",) if stdio else ("desk", "phone")
        self.users = [User(name, Random(f"{seed} {name}")) for name in names]
        self.kills = self.dice.choice([1, 1, 1, 2, 3])
        self.exit_code: int | None = None
        self._rests = 0
        #: What somebody who was not there is told in the end.
        self.told: dict[URI, JSON] = {}

    async def run(self) -> None:
        """Play it to its end; then there is something to check."""
        with trio.fail_after(3 * PATIENCE):
            async with trio.open_nursery() as nursery:
                host: DaemonHost | StdioHost = (
                    StdioHost(self.place) if self.stdio else DaemonHost(self.place, nursery)
                )
                try:
                    await host.start()
                    async with AsyncExitStack() as stack:
                        for user in self.users:
                            await self._enter(stack, host, user)
                        await self._work(host)
                        for user in self.users:
                            assert user.client is not None
                            user.states = {
                                uri: user.client.store(uri).confirmed.wire() for uri in CHANNELS
                            }
                    await self._ask_a_witness(host)
                    self.exit_code = await host.stop()
                finally:
                    with trio.CancelScope(shield=True):
                        await host.kill()
                nursery.cancel_scope.cancel()

    async def _enter(self, stack: AsyncExitStack, host: DaemonHost | StdioHost, user: User) -> None:
        client = await self._open(stack, host, user.name)
        if user is self.users[0]:
            await client.request("createSession", {"channel": SESSION})
        for channel in (SESSION, CHAT):
            await client.subscribe(channel)
        await client.until(SESSION, lambda session: session.lifecycle == "ready")
        user.client = client
        # A baseline counts when the host has kept it, which it does soon, and before it says more.
        await client.dispatch(CHAT, type_draft(f"{user.name} is here")).wait()

    async def _open(self, stack: AsyncExitStack, host: DaemonHost | StdioHost, name: str) -> Client:
        dial = self._tapped(name, host.dial(name))
        while True:
            try:
                return await stack.enter_async_context(
                    open_client(
                        dial,
                        client_id=name,
                        backoff=Backoff(first=0.02, factor=1.5, most=0.3),
                        seed=self.seed,
                    )
                )
            except FAILED:
                await trio.sleep(0.05)  # it is not up yet

    def _tapped(
        self, name: str, dial: Callable[[], Awaitable[Transport]]
    ) -> Callable[[], Awaitable[Transport]]:
        connections = 0

        async def open_one() -> Transport:
            nonlocal connections
            transport = await dial()
            connections += 1
            return _Heard(transport, self.taps.tap(f"{name}#{connections}"))

        return open_one

    async def _work(self, host: DaemonHost | StdioHost) -> None:
        over = False

        async def use(user: User) -> None:
            while not over:
                user.act()
                await trio.sleep(user.dice.choice([0.001, 0.02, 0.05, 0.1]))

        async with trio.open_nursery() as nursery:
            for user in self.users:
                nursery.start_soon(use, user)
            for _ in range(self.kills):
                if self.dice.random() < 0.8:
                    await self._all_connected()
                await trio.sleep(self.dice.uniform(0.0, 0.7))
                await host.kill()
                await host.start()
            await self._all_connected()
            over = True
        while not await self._at_rest():
            await trio.sleep(0.05)

    async def _at_rest(self) -> bool:
        """Whether all is done, and everybody has been told of it.

        What the chat and the session were saying when it looked so is said when they have answered
        once more: a message leaves the queue one envelope before its turn starts.
        """
        if not self._are_done():
            return False
        first = self.users[0].client
        assert first is not None
        self._rests += 1
        name = f"at rest {self._rests}"
        for channel, action in (
            (CHAT, type_draft(name)),
            (SESSION, SessionTitleChangedAction(title=name)),
        ):
            operation = first.dispatch(channel, action)
            self.users[0].operations.append(operation)
            await operation.wait()
        for user in self.users:
            assert user.client is not None
            await user.client.until(SESSION, lambda session: session.title == name)
        return self._are_done()

    def _are_done(self) -> bool:
        done = [user.is_done() for user in self.users]  # each of them, since they decide as well
        return all(done)

    async def _all_connected(self) -> None:
        for user in self.users:
            assert user.client is not None
            await user.client.wait_status("connected")

    async def _ask_a_witness(self, host: DaemonHost | StdioHost) -> None:
        async with AsyncExitStack() as stack:
            witness = await self._open(stack, host, "witness")
            for channel in CHANNELS:
                await witness.subscribe(channel)
                self.told[channel] = witness.store(channel).confirmed.wire()


class _Heard:
    """A transport whose frames are noted, those of the host when they come."""

    def __init__(self, inner: Transport, tap: Tap) -> None:
        self.peer = inner.peer
        self._inner = inner
        self._tap = tap

    async def receive(self) -> bytes:
        """See `Transport.receive`."""
        received = await self._inner.receive()
        text = received.encode() if isinstance(received, str) else received
        self._tap.passed("h2c", text)
        return text

    async def send(self, frames: Sequence[Frame]) -> None:
        """See `Transport.send`."""
        for frame in frames:
            self._tap.passed("c2h", frame.text)
        await self._inner.send(frames)

    async def close(self, code: int = 1000, reason: str = "") -> None:
        """See `Transport.close`."""
        await self._inner.close(code, reason)


__all__ = ["CHANNELS", "CHAT", "SESSION", "Round", "User"]
