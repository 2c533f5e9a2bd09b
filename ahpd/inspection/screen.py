"""Where the debugger is used from: a console, whose lines come over the socket."""

from __future__ import annotations

from collections.abc import Callable

import trio

from ahpd.inspection import names
from ahpd.inspection.debugger import Debugger
from ahpd.protocol.errors import ErrorCode, ProtocolError


class Screen:
    """A console as the debugger sees it."""

    def __init__(self, tell: Callable[..., None]) -> None:
        self.debugger: Debugger | None = None
        self._tell = tell
        self._lines: list[str] = []
        self._news = trio.Event()
        self._left = False

    def type(self, text: str) -> None:
        """The person typed a line."""
        self._lines.append(text if text.endswith("\n") else text + "\n")
        self._news.set()

    def leave(self) -> None:
        """There will be no more lines; the handler goes on. Sync; harmless twice."""
        self._left = True
        if self.debugger is not None:
            self.debugger.is_left = True
        self._news.set()

    async def line(self, prompt: str) -> str:
        """See `Screen`."""
        self._tell(names.ASKS, prompt=prompt)
        while not self._lines and not self._left:
            self._news = trio.Event()
            await self._news.wait()
        return self._lines.pop(0) if self._lines and not self._left else ""

    def show(self, text: str) -> None:
        """See `Screen`."""
        self._tell(names.SAID, text=text)


class Debugging:
    """Who uses the debugger: one at a time, because Python traces one function at a time."""

    def __init__(self) -> None:
        self._by: str | None = None

    def by(self, name: str, path: str) -> _Turn:
        """For the length of a block. Raises `ProtocolError` when somebody else uses it."""
        if self._by is not None:
            raise ProtocolError(ErrorCode.CONFLICT, f"one debugger at a time: {self._by}")
        return _Turn(self, f"{name} uses it in {path}")

    def set(self, by: str | None) -> None:
        """From now on it is used so."""
        self._by = by


class _Turn:
    def __init__(self, debugging: Debugging, by: str) -> None:
        self._debugging = debugging
        self._by = by

    def __enter__(self) -> None:
        self._debugging.set(self._by)

    def __exit__(self, *_: object) -> None:
        self._debugging.set(None)
