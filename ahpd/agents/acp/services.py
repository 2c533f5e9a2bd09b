"""What an agent has the host do: commands on terminals of the session, and files.

Each request is served in a task of its own, and answered once. What was not offered to the agent is
refused as not known (-32601), and what it takes back (`$/cancel_request`) is given up (-32800). A
command that an agent lets go of is ended; its terminal stays, to be read.
"""

from __future__ import annotations

import logging
import shlex
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeAlias
from urllib.parse import quote

import trio
from msgspec import Struct

from ahpd.agents.acp.rpc import METHOD_NOT_FOUND, Asked, Link
from ahpd.agents.acp.tolerant import dicts_of, number_of, text_of
from ahpd.agents.port import Commands, CommandWanted, Files, HostRefused, RunningCommand
from ahpd.protocol.model import JSON
from ahpd.protocol.tools import TerminalCommandResult, ToolResultContent, ToolResultTerminalContent

_log = logging.getLogger("ahpd.agents.acp")

INVALID_PARAMS = -32602
NOT_FOUND = -32002
FAILED = -32603
CANCELLED = -32800

#: Requests of one agent's that may be at work at a time; waiting for a command's end is one too.
MOST = 256
#: Commands that were let go of and may still be shown.
RELEASED = 100
#: Bytes of a command's output that are kept with the call that shows its terminal.
PREVIEW = 16 * 1024
#: Seconds that ending all commands may take when the agent is let go of.
END_WITHIN = 3.0

_CODES = {"not found": NOT_FOUND, "not allowed": INVALID_PARAMS, "failed": FAILED}

_Serve: TypeAlias = Callable[["Services", dict[str, Any]], Awaitable[JSON]]


class _Refused(Exception):
    """The request cannot be served."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


class _Command(Struct, eq=False):
    running: RunningCommand
    limit: int | None


class Services:
    """See the module. `commands` and `files` are None where they are not offered."""

    def __init__(
        self, link: Link, cwd: str, commands: Commands | None, files: Files | None
    ) -> None:
        self._link = link
        self._cwd = cwd
        self._files = files
        self._commands = commands
        self._running: dict[str, _Command] = {}
        #: Those that the agent let go of, as a tool call may still show them.
        self._released: dict[str, ToolResultContent] = {}
        self._made = 0
        self._at_work: dict[int, tuple[JSON, trio.CancelScope]] = {}
        self._requests = 0
        self._nursery: trio.Nursery | None = None

    @property
    def capabilities(self) -> dict[str, JSON]:
        """What of it is offered, in the words of `initialize`."""
        files = self._files is not None
        return {
            "fs": {"readTextFile": files, "writeTextFile": files},
            "terminal": self._commands is not None,
        }

    def take(self, request: Asked) -> None:
        """Serve a request, or refuse it."""
        group, _, _ = request.method.partition("/")
        offered = {"fs": self._files, "terminal": self._commands}.get(group)
        serve = _SERVED.get(request.method) if offered is not None else None
        if serve is None or self._nursery is None:
            self._link.refuse(request, METHOD_NOT_FOUND, f"{request.method} is not served here")
        elif len(self._at_work) >= MOST:
            self._link.refuse(request, FAILED, f"{MOST} requests are at work already")
        else:
            self._requests += 1
            scope = trio.CancelScope()
            self._at_work[self._requests] = request.id, scope
            self._nursery.start_soon(self._serve, request, serve, self._requests, scope)

    async def run(self) -> None:
        """Serve, until cancelled."""
        async with trio.open_nursery() as nursery:
            self._nursery = nursery
            try:
                await trio.sleep_forever()
            finally:
                self._nursery = None

    async def _serve(
        self, request: Asked, serve: _Serve, number: int, scope: trio.CancelScope
    ) -> None:
        try:
            with scope:
                self._link.reply(request, await serve(self, request.params))
            if scope.cancelled_caught:
                self._link.refuse(request, CANCELLED, "taken back")
        except _Refused as error:
            self._link.refuse(request, error.code, error.message)
        except HostRefused as error:
            self._link.refuse(request, _CODES[error.kind], error.message)
        finally:
            del self._at_work[number]

    def take_back(self, request_id: Any) -> bool:
        """The agent does not want to know any more; False: it is none of these."""
        for known, scope in self._at_work.values():
            if known == request_id and type(known) is type(request_id):
                scope.cancel("the agent took the request back")
                return True
        return False

    async def close(self) -> None:
        """End all commands, within a bound."""
        left, self._running = self._running, {}
        with trio.move_on_after(END_WITHIN):
            async with trio.open_nursery() as nursery:
                for each in left.values():
                    nursery.start_soon(each.running.end)

    # ---- commands ----------------------------------------------------------------------------

    def shown(self, terminal_id: str) -> ToolResultContent | None:
        """A terminal as the content of a tool call; None when there is none of that id."""
        found = self._running.get(terminal_id)
        if found is None:
            return self._released.get(terminal_id)
        running, result = found.running, None
        if running.over is not None:
            code = running.over.exit_code
            preview, cut = kept(running.output(), PREVIEW)
            result = TerminalCommandResult(
                exit_code=None if code is None else float(code),
                preview=preview,
                truncated=True if cut else None,
            )
        return ToolResultTerminalContent(
            resource=running.uri, title=running.title, is_pty=True, result=result
        )

    async def _create(self, params: dict[str, Any]) -> JSON:
        command, args = text_of(params, "command"), params.get("args")
        if not command:
            raise _Refused(INVALID_PARAMS, "command: a program is needed")
        words = [arg for arg in args if isinstance(arg, str)] if isinstance(args, list) else []
        # A command without arguments may be a whole line, which is for the shell to read.
        line = f"{shlex.quote(command)} {shlex.join(words)}" if words else command
        environment = {
            name: value
            for each in dicts_of(params, "env")
            if (name := text_of(each, "name")) and (value := text_of(each, "value")) is not None
        }
        cwd = text_of(params, "cwd") or self._cwd
        if not cwd.startswith("/"):
            raise _Refused(INVALID_PARAMS, f"cwd: {cwd!r} is no absolute path")
        limit = number_of(params, "outputByteLimit")
        if limit is not None and not 0 <= limit < 1 << 53:
            raise _Refused(INVALID_PARAMS, f"outputByteLimit: {limit:g} is no count of bytes")
        assert self._commands is not None
        running = await self._commands.run(CommandWanted(line, cwd, environment))
        self._made += 1
        terminal_id = f"term-{self._made}"
        self._running[terminal_id] = _Command(running, None if limit is None else int(limit))
        return {"terminalId": terminal_id}

    def _found(self, params: dict[str, Any]) -> _Command:
        terminal_id = text_of(params, "terminalId")
        found = self._running.get(terminal_id or "")
        if found is None:
            raise _Refused(NOT_FOUND, f"there is no terminal {terminal_id}")
        return found

    async def _output(self, params: dict[str, Any]) -> JSON:
        found = self._found(params)
        await trio.lowlevel.checkpoint()
        output, truncated = kept(found.running.output(), found.limit)
        answer: dict[str, JSON] = {"output": output, "truncated": truncated}
        over = found.running.over
        if over is not None:
            answer["exitStatus"] = {"exitCode": over.exit_code, "signal": over.signal}
        return answer

    async def _wait(self, params: dict[str, Any]) -> JSON:
        over = await self._found(params).running.wait()
        return {"exitCode": over.exit_code, "signal": over.signal}

    async def _kill(self, params: dict[str, Any]) -> JSON:
        await self._found(params).running.end()
        return {}

    async def _release(self, params: dict[str, Any]) -> JSON:
        found, terminal_id = self._found(params), str(params["terminalId"])
        await found.running.end()
        shown = self.shown(terminal_id)
        self._running.pop(terminal_id, None)
        if shown is not None:
            self._released[terminal_id] = shown
            for old in list(self._released)[:-RELEASED]:
                del self._released[old]
        return {}

    # ---- files -------------------------------------------------------------------------------

    async def _read(self, params: dict[str, Any]) -> JSON:
        first, most = number_of(params, "line"), number_of(params, "limit")
        assert self._files is not None
        text = await self._files.read(_uri(params))
        if first is None and most is None:
            return {"content": text}
        # Lines are counted from 1, and end as editors have them end.
        lines = text.split("\n")
        start = max(int(first or 1), 1) - 1
        end = len(lines) if most is None else start + max(int(most), 0)
        chosen = "\n".join(lines[start:end])
        return {"content": chosen + "\n" * (end < len(lines) and bool(chosen))}

    async def _write(self, params: dict[str, Any]) -> JSON:
        content = text_of(params, "content")
        if content is None:
            raise _Refused(INVALID_PARAMS, "content: a text is needed")
        assert self._files is not None
        await self._files.write(_uri(params), content)
        return {}


def _uri(params: dict[str, Any]) -> str:
    path = text_of(params, "path")
    if path is None or not path.startswith("/"):
        raise _Refused(INVALID_PARAMS, f"path: {path!r} is no absolute path")
    return "file://" + quote(path)


def kept(text: str, limit: int | None) -> tuple[str, bool]:
    """The end of a text in so many bytes of UTF-8, cut between characters; whether it was cut."""
    data = text.encode(errors="replace")
    if limit is None or len(data) <= limit:
        return text, False
    start = len(data) - limit
    while start < len(data) and data[start] & 0xC0 == 0x80:
        start += 1
    return data[start:].decode(), True


_SERVED: Mapping[str, _Serve] = {
    "terminal/create": Services._create,
    "terminal/output": Services._output,
    "terminal/wait_for_exit": Services._wait,
    "terminal/kill": Services._kill,
    "terminal/release": Services._release,
    "fs/read_text_file": Services._read,
    "fs/write_text_file": Services._write,
}
