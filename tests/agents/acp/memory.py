"""An agent in memory: bytes in and out as a process has them, said as the test wants them said."""

from __future__ import annotations

import json
import signal
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from typing import Any

import attrs
import trio

from ahpd.agents.acp.agent import AcpAgent
from ahpd.agents.acp.backend import AcpBackend
from ahpd.agents.acp.handshake import Where
from ahpd.agents.acp.signin import Grant
from ahpd.agents.events import Event, Outcome
from ahpd.agents.port import AgentFailed, OpenRequest
from ahpd.protocol.uris import URI
from ahpd.transports.lines import LineSplitter
from tests.agents.support import Screen, prompt

#: What an agent says to a message: bytes, a number of seconds for which it says nothing, None: the
#: end of its output.
Say = bytes | float | None
Script = Callable[[dict[str, Any]], Iterable[Say]]


def frame(**message: Any) -> bytes:
    return json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n"


def update(kind: str, /, **fields: Any) -> bytes:
    body = {"sessionUpdate": kind, **fields}
    return frame(method="session/update", params={"sessionId": "s1", "update": body})


def text(what: str, **more: Any) -> bytes:
    return update("agent_message_chunk", content={"type": "text", "text": what}, **more)


class InMemory:
    """Stands for an `AgentProcess`. `sent` is what the agent was sent."""

    pid = 2**22 + 1  # of no process

    def __init__(self, script: Script, limit: int = 1 << 20) -> None:
        self.sent: list[dict[str, Any]] = []
        self.returncode: int | None = None
        self.said_all = trio.Event()
        self.is_drained = trio.Event()
        self.is_drained.set()
        self.signals: list[signal.Signals] = []
        self._script = script
        self._out: deque[Say] = deque()
        self._news = trio.Event()
        self._over = trio.Event()
        self._splitter = LineSplitter(limit)

    def say(self, *what: Say) -> None:
        self._out.extend(what)
        self._news.set()

    async def read(self) -> Sequence[bytes] | None:
        while self.returncode is None:
            while not self._out:
                self._news = trio.Event()
                await self._news.wait()
            piece = self._out.popleft()
            if isinstance(piece, float):
                await trio.sleep(piece)
            elif piece is None:
                self.end_now()
                return self._splitter.finish() or None
            else:
                await trio.lowlevel.checkpoint()
                return self._splitter.feed(piece)
        await trio.lowlevel.checkpoint()
        return None

    def end_now(self, code: int = 0) -> None:
        self.returncode = code
        self.said_all.set()
        self._over.set()

    def send(self, data: bytes) -> None:
        message = json.loads(data)
        self.sent.append(message)
        self.say(*self._script(message))

    async def write(self) -> None:
        await trio.sleep_forever()

    async def drain(self) -> None:
        await self.said_all.wait()

    async def wait(self) -> None:
        await self._over.wait()

    def tail(self, size: int = 2000) -> str:
        return ""

    def beginning(self, what: bytes, size: int) -> str:
        return what[:size].decode(errors="replace")

    def concealed(self, what: str) -> str:
        return what

    def signal(self, number: signal.Signals) -> bool:
        self.signals.append(number)
        return True

    async def end(self) -> None:
        self.end_now()
        await trio.lowlevel.checkpoint()


@attrs.define
class Talk:
    """A backend with an agent in memory."""

    backend: AcpBackend
    process: InMemory
    beside: Screen
    gone: list[AgentFailed]

    async def turn(self, what: str = "go", then: Any = None) -> tuple[Outcome, Screen]:
        screen = Screen(then)
        with trio.fail_after(3600):
            return await self.backend.prompt(prompt(what), screen), screen

    def asked(self, method: str) -> list[dict[str, Any]]:
        return [each for each in self.process.sent if each.get("method") == method]

    def answers(self) -> list[dict[str, Any]]:
        return [each for each in self.process.sent if "method" not in each]


def answering(*said: Say, stop: str = "end_turn", able: Any = None, new: Any = None) -> Script:
    """An agent that says this in each turn, and then ends it."""

    def script(message: dict[str, Any]) -> Iterable[Say]:
        match message.get("method"):
            case "initialize":
                yield frame(id=message["id"], result={"protocolVersion": 1, **(able or {})})
            case "session/new":
                yield frame(id=message["id"], result={"sessionId": "s1"} if new is None else new)
            case "session/prompt":
                yield from said
                yield frame(id=message["id"], result={"stopReason": stop})
            case _:
                pass

    return script


#: The process of the last conversation, for tests of those that do not begin.
LAST: list[InMemory] = []


@asynccontextmanager
async def talk(
    script: Script, conversation: str | None = None, config: Any = None
) -> AsyncIterator[Talk]:
    """A conversation with an agent, for the length of the block. Raises `AgentFailed`."""
    process: Any = InMemory(script)
    LAST[:] = [process]
    request = OpenRequest(URI("mem:/s"), URI("ahp-chat:/c"), conversation=conversation)
    backend = AcpBackend(AcpAgent("mem", ("mem",)), process, request, Where("/work"))
    await backend.begin(Grant(), config or {})
    made = Talk(backend, process, Screen(), [])

    async def aside() -> None:
        try:
            await backend.aside(made.beside)
        except AgentFailed as error:
            made.gone.append(error)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(aside)
        try:
            yield made
        finally:
            nursery.cancel_scope.cancel("the test is over")
    await backend.close()


__all__ = [
    "LAST",
    "Event",
    "InMemory",
    "Say",
    "Talk",
    "answering",
    "frame",
    "talk",
    "text",
    "update",
]
