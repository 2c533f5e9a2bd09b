"""Terminals on strings: what is shown and how it ends is the test's to say."""

from __future__ import annotations

from collections.abc import Sequence

import trio

from ahpd.terminals.port import Ended, Output, Piece, Spawn, SpawnFailed, Terminal, TerminalOver


class PuppetTerminal:
    """A process that does what the test says. See the port."""

    def __init__(self, spawn: Spawn) -> None:
        self.spawn = spawn
        self.title = "puppet"
        self.typed = b""
        self.sizes: list[tuple[int, int]] = []
        self.closed = False
        #: It waits for somebody to type.
        self.reads = False
        #: It takes no input while this is set.
        self.is_deaf = False
        self._said: list[Piece] = []
        self._news = trio.Event()
        self._ended: Ended | None = None

    def say(self, *pieces: Piece | str) -> None:
        """It says this."""
        self._said += [Output(each) if isinstance(each, str) else each for each in pieces]
        self._stir()

    def end(self, exit_code: int | None = 0, signal: int | None = None) -> None:
        """It ends, when what it said has been read."""
        self._ended = self._ended or Ended(exit_code, signal)
        self._stir()

    def hear(self) -> None:
        """It takes input again."""
        self.is_deaf = False
        self._stir()

    def _stir(self) -> None:
        self._news.set()
        self._news = trio.Event()

    async def read(self) -> Sequence[Piece]:
        """See the port."""
        await trio.lowlevel.checkpoint()
        while not self._said and self._ended is None:
            await self._news.wait()
        said, self._said = self._said, []
        return said

    async def write(self, data: bytes) -> None:
        """See the port."""
        await trio.lowlevel.checkpoint()
        while self.is_deaf and self._ended is None:
            await self._news.wait()
        if self._ended is not None:
            raise TerminalOver
        self.typed += data

    def resize(self, cols: int, rows: int) -> None:
        """See the port."""
        self.sizes.append((cols, rows))

    async def wait(self) -> Ended:
        """See the port."""
        await trio.lowlevel.checkpoint()
        while self._ended is None:
            await self._news.wait()
        return self._ended

    async def is_reading(self) -> bool:
        """See the port."""
        await trio.lowlevel.checkpoint()
        return self.reads

    async def close(self) -> None:
        """See the port."""
        self.closed = True
        self.end(None, 1)
        await trio.lowlevel.checkpoint()


class PuppetTerminals:
    """Starts puppets; `fails` is what the next start fails with. See the port.

    `told`: those without a command are shells that tell of theirs, when the test has them do so.
    """

    def __init__(self, *, told: bool = False) -> None:
        self.told = told
        self.started: list[PuppetTerminal] = []
        self.fails: SpawnFailed | None = None
        #: Starting takes so many seconds.
        self.takes = 0.0

    @property
    def last(self) -> PuppetTerminal:
        """The one that was started last."""
        return self.started[-1]

    def tells(self) -> bool:
        """See the port."""
        return self.told

    async def spawn(self, spawn: Spawn) -> Terminal:
        """See the port."""
        await trio.sleep(self.takes)
        if self.fails is not None:
            raise self.fails
        self.started.append(PuppetTerminal(spawn))
        return self.last
