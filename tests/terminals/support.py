"""What tests with real terminals share. Every wait has a deadline."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import attrs
import trio

from ahpd.terminals.port import Ended, Output, Piece, Spawn, Terminal
from ahpd.terminals.pty import PtyTerminals

WITHIN = 60.0

#: A shell without anybody's own files.
ENVIRONMENT = {
    "PATH": os.environ["PATH"], "SHELL": "/bin/bash", "HOME": "/nonexistent", "LC_ALL": "C.UTF-8",
}  # fmt: skip


@attrs.define
class Talk:
    """A terminal, and all that it has said."""

    terminal: Terminal
    pieces: list[Piece] = attrs.field(factory=list)
    over: trio.Event = attrs.field(factory=trio.Event)
    _news: trio.Event = attrs.field(factory=trio.Event)

    async def read(self) -> None:
        while pieces := await self.terminal.read():
            assert not self.over.is_set()
            self.pieces += pieces
            self._news.set()
            self._news = trio.Event()
        self.over.set()
        self._news.set()

    @property
    def text(self) -> str:
        return "".join(piece.text for piece in self.pieces if isinstance(piece, Output))

    async def say(self, line: str) -> None:
        await self.terminal.write(line.encode() + b"\r")

    async def until(self, wanted: str, times: int = 1) -> None:
        with trio.fail_after(WITHIN):
            while self.text.count(wanted) < times:
                assert not self.over.is_set(), f"{wanted!r} is not in {self.text[-2000:]!r}"
                await self._news.wait()

    async def until_piece(self, wanted: Piece) -> None:
        with trio.fail_after(WITHIN):
            while wanted not in self.pieces:
                assert not self.over.is_set(), (wanted, self.pieces)
                await self._news.wait()

    async def ended(self) -> Ended:
        with trio.fail_after(WITHIN):
            await self.over.wait()
            return await self.terminal.wait()


@asynccontextmanager
async def talking(
    terminals: PtyTerminals | None = None,
    *,
    command: str | None = None,
    cwd: str | None = "/",
    cols: int = 80,
    rows: int = 24,
    environment: Mapping[str, str] | None = None,
) -> AsyncIterator[Talk]:
    """A terminal that is read all the time."""
    terminals = terminals or PtyTerminals(ENVIRONMENT)
    spawn = Spawn(cwd, cols, rows, command, environment or {})
    with trio.fail_after(WITHIN):
        talk = Talk(await terminals.spawn(spawn))
    async with trio.open_nursery() as nursery:
        nursery.start_soon(talk.terminal.wait)
        nursery.start_soon(talk.read)
        try:
            yield talk
        finally:
            await talk.terminal.close()
        with trio.fail_after(WITHIN):
            await talk.over.wait()


async def output_of(command: str) -> tuple[str, Ended]:
    """All that a command says, and how it ends."""
    async with talking(command=command) as talk:
        ended = await talk.ended()
    return talk.text, ended


def descriptors() -> int:
    """How many files this process has open."""
    return len(os.listdir("/proc/self/fd"))


def children() -> set[int]:
    """This process's children, those that ended and were not waited for among them."""
    found = set()
    for task in Path("/proc/self/task").iterdir():
        with suppress(FileNotFoundError):  # a thread that has just ended has none
            found |= {int(pid) for pid in (task / "children").read_text().split()}
    return found


def lives(pid: int) -> bool:
    """Whether that process runs."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state not in ("Z", "X")
