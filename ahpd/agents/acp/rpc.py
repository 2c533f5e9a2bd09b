"""JSON-RPC both ways over an agent's stdio, with one reader that takes everything in its order.

A response is handed on at its place among the updates, so that the last words of a turn come before
its end. Both sides have ids of their own; the agent's may be anything and are given back as they
came. What is no message is passed over and logged, within a bound.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from typing import Any, Protocol, TypeAlias

import trio
from msgspec import Struct

from ahpd.agents.acp.process import AgentGone, AgentProcess, LineTooLong
from ahpd.agents.acp.runs import LineReader
from ahpd.protocol.jsontext import dumps
from ahpd.protocol.model import JSON

_log = logging.getLogger("ahpd.agents.acp")

METHOD_NOT_FOUND = -32601
AUTH_REQUIRED = -32000

#: Lines in a row that are no messages before the agent is taken for something else.
NOISE_LIMIT = 1000
#: Of those, how many are logged, and how many kept for people.
_NOISE_LOGGED = 20
#: Bytes of answers that may wait for an agent that does not read, and seconds that more may.
ANSWERS_BYTES = 4 << 20
ANSWERS_WITHIN = 60.0
#: Seconds for the rest of the output when the process has ended, and for its last words.
REST_WITHIN = 1.0


class RpcFault(Exception):
    """The agent answered with an error. `data` may be anything (None: nothing)."""

    def __init__(self, code: int, message: str, data: JSON = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.data = data


class Answered(Struct, frozen=True):
    """A response: a result, or the error that came instead."""

    result: JSON = None
    fault: RpcFault | None = None


#: What is called with the response, in the reader's own step; None: the agent is gone.
Then: TypeAlias = Callable[[Answered | None], None]


class Asked(Struct, frozen=True, eq=False):
    """A request of the agent's. `id` is as it came."""

    id: JSON
    method: str
    params: dict[str, Any]


class Listener(Protocol):
    """Who hears what the agent says. The first two are called in the order in which it came."""

    def heard(self, method: str, params: dict[str, Any]) -> None:
        """A notification. Never fails."""
        ...

    def asked(self, request: Asked) -> None:
        """A request; `Link.reply` or `Link.refuse` answers it. Never fails."""
        ...

    async def room(self) -> None:
        """Called after each piece that was read: waits while the listener is behind."""
        ...


class Link:
    """A connection to one agent. `run` must be running for anything to happen."""

    def __init__(self, process: AgentProcess, listener: Listener) -> None:
        self.process = process
        self._listener = listener
        self._pending: dict[int, Then] = {}
        self._next_id = 0
        self._noise = 0
        self._noises: list[str] = []
        self._lines = LineReader()
        self._reads = 0
        self._held = False
        #: Bytes of answers since all that was sent had been read.
        self._answers = 0
        #: Why there is no agent any more, for people; None: there is one.
        self.ended: str | None = None

    # ---- what is sent ------------------------------------------------------------------------

    def call(self, method: str, params: JSON, then: Then) -> int:
        """Send a request; `then` is called exactly once unless it is `forget`-ed.

        Raises `AgentGone`, and `ParseError` for what no JSON can hold.
        """
        self._check()
        number = self._next_id
        self._send({"jsonrpc": "2.0", "id": number, "method": method, "params": params})
        self._next_id += 1
        self._pending[number] = then
        return number

    def forget(self, number: int) -> None:
        """The response to that request is not wanted any more."""
        self._pending.pop(number, None)

    async def request(self, method: str, params: JSON, within: float) -> JSON:
        """Send a request and wait for its result, so many seconds at most.

        Raises `RpcFault` for an error and `AgentGone` when there is no response.
        """
        came: list[Answered | None] = []
        bell = trio.Event()

        def then(answered: Answered | None) -> None:
            came.append(answered)
            bell.set()

        number = self.call(method, params, then)
        try:
            with trio.move_on_after(within):
                await bell.wait()
        finally:
            self.forget(number)
            if not came and method != "initialize":
                # Most do not listen to it (hazard 19), and none is harmed.
                self.notify("$/cancel_request", {"requestId": number})
        if not came:
            raise AgentGone(f"the agent did not answer {method} in {within:g} s")
        if came[0] is None:
            raise AgentGone(self.ended or "the agent is gone")
        if came[0].fault is not None:
            raise came[0].fault
        return came[0].result

    def notify(self, method: str, params: JSON) -> None:
        """Send a notification; lost without a word when the agent is gone."""
        if self.ended is None:
            self._send({"jsonrpc": "2.0", "method": method, "params": params})

    def reply(self, request: Asked, result: JSON) -> None:
        """Answer a request of the agent's."""
        if self.ended is None:
            self._answer({"jsonrpc": "2.0", "id": request.id, "result": result})

    def refuse(self, request: Asked, code: int, message: str) -> None:
        """Answer a request of the agent's with an error."""
        if self.ended is None:
            error = {"code": code, "message": message}
            self._answer({"jsonrpc": "2.0", "id": request.id, "error": error})

    def _answer(self, message: JSON) -> None:
        self._answers += self._send(message)

    def _send(self, message: JSON) -> int:
        line = dumps(message) + b"\n"
        self.process.send(line)
        return len(line)

    def _check(self) -> None:
        if self.ended is not None:
            raise AgentGone(self.ended)

    # ---- what is read ------------------------------------------------------------------------

    async def run(self) -> None:
        """Read and write until there is no agent any more; then `ended` says why.

        Cancelled it can be run again, and nothing is lost.
        """
        if self.ended is not None:
            await trio.lowlevel.checkpoint()
            return
        why: str | None = None
        async with trio.open_nursery() as nursery:
            reading = trio.CancelScope()
            nursery.start_soon(self.process.drain)
            nursery.start_soon(self._write)
            nursery.start_soon(self._watch, reading)
            with reading:
                why = await self._read()
            with trio.move_on_after(REST_WITHIN):
                await self.process.said_all.wait()
                await self.process.wait()
            nursery.cancel_scope.cancel("the agent's output has ended")
        self.close(why or self._how_it_ended())

    async def _write(self) -> None:
        await self.process.write()
        # It takes nothing any more. What it still says counts, and it may be about to end.
        _log.debug("agent %d: its input is closed", self.process.pid)

    async def _watch(self, reading: trio.CancelScope) -> None:
        """A child may keep the output open when the process itself has ended."""
        await self.process.wait()
        before = -1
        while self._held or before != self._reads:
            before = self._reads
            await trio.sleep(REST_WITHIN)
        reading.cancel("the agent has ended, and its output is silent")

    async def _read(self) -> str | None:
        """To the end of its output; says why when that is not all."""
        while True:
            try:
                lines = await self.process.read()
            except LineTooLong as error:
                self._take_all(error.lines)
                return f"the agent sent too much at once: {error}"
            if lines is None:
                return None
            self._reads += 1
            self._take_all(lines)
            if self._noise > NOISE_LIMIT:
                return "what the agent writes to its output is not the protocol"
            self._held = True  # a listener that is behind is no silence of the agent's
            await self._listener.room()
            if not await self._reads_answers():
                return "the agent does not read the answers to what it asks"
            self._held = False

    async def _reads_answers(self) -> bool:
        """While it does not, it is not listened to: it may ask for more and more."""
        if self.process.is_drained.is_set():
            self._answers = 0
        if self._answers > ANSWERS_BYTES:
            with trio.move_on_after(ANSWERS_WITHIN):
                await self.process.is_drained.wait()
                self._answers = 0
        return self._answers <= ANSWERS_BYTES

    def _take_all(self, lines: Iterable[bytes]) -> None:
        for message, line in self._lines.messages(lines):
            if isinstance(message, list):
                for each in message:
                    self._take(each, line)
            else:
                self._take(message, line)

    def _take(self, message: JSON, line: bytes) -> None:
        if not isinstance(message, dict):
            self._note_noise(line)
            return
        method, params = message.get("method"), message.get("params")
        params = params if isinstance(params, dict) else {}
        if isinstance(method, str) and "id" in message:
            self._listener.asked(Asked(message["id"], method, params))
        elif isinstance(method, str):
            self._listener.heard(method, params)
        elif "result" in message or "error" in message or self._is_awaited(message.get("id")):
            self._answered(message)  # JavaScript leaves out a result that is undefined
        else:
            self._note_noise(line)
            return
        self._noise = 0

    def _answered(self, message: dict[str, Any]) -> None:
        number, error = _number(message.get("id")), message.get("error")
        then = None if number is None else self._pending.pop(number, None)
        if then is None:
            _log.debug("agent %d: a response to nothing: %.200r", self.process.pid, message)
            return
        then(Answered(message.get("result"), None if error is None else _fault(error)))

    def _is_awaited(self, id: JSON) -> bool:
        return _number(id) in self._pending

    def _note_noise(self, line: bytes) -> None:
        self._noise += 1
        if self._noise <= _NOISE_LOGGED:
            text = self.process.beginning(line, 200)
            self._noises = [*self._noises[-4:], text]
            _log.warning("agent %d: no message of the protocol: %r", self.process.pid, text)

    # ---- the end -----------------------------------------------------------------------------

    def close(self, why: str) -> None:
        """Nothing is sent or waited for any more; not again when that was so already."""
        if self.ended is None:
            self._end(why)

    def _end(self, why: str) -> None:
        self.ended = why
        pending, self._pending = self._pending, {}
        for then in pending.values():
            then(None)

    def _how_it_ended(self) -> str:
        code = self.process.returncode
        if code is None:
            told = "the agent closed its output"
        elif code < 0:
            told = f"the agent was ended by signal {-code}"
        else:
            told = f"the agent ended with exit code {code}"
        said = self.process.tail() or "\n".join(self._noises)
        return f"{told}; it said last:\n{said}" if said else told


def _number(id: JSON) -> int | None:
    """The number of a request of ours in a response, which may come back as another type."""
    if isinstance(id, float) and id.is_integer():
        return int(id)
    if isinstance(id, str) and id.isascii() and id.isdecimal() and len(id) < 20:
        return int(id)
    return id if isinstance(id, int) and not isinstance(id, bool) else None


def _fault(error: JSON) -> RpcFault:
    if not isinstance(error, dict):
        return RpcFault(0, str(error)[:2000])
    code, message = error.get("code"), error.get("message")
    return RpcFault(
        code if isinstance(code, int) else 0,
        message if isinstance(message, str) else "it did not say why",
        error.get("data"),
    )
