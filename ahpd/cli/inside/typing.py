"""Where a console's lines come from: a terminal, with history and completion, or a pipe."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Protocol

import click
from prompt_toolkit import PromptSession
from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document
from prompt_toolkit.history import FileHistory, History, InMemoryHistory
from prompt_toolkit.patch_stdout import patch_stdout

from ahpd.cli.inside.commands import COMMANDS

#: Gives what may stand at the end of a line: the part that is replaced, and the candidates.
Candidates = Callable[[str], tuple[str, Sequence[str]]]


class Typist(Protocol):
    """Who types. `line` may be interrupted by `KeyboardInterrupt` (Ctrl-C)."""

    def line(self, prompt: Callable[[], str], candidates: Candidates | None) -> str | None:
        """The next line without its end; None when there will be none."""

    def show(self, lines: Iterable[str], *, wrong: bool = False) -> None:
        """Put out some lines, from any thread."""

    def drawing(self) -> AbstractContextManager[object]:
        """For the length of a console: others may put out lines while somebody types."""

    def hang_up(self) -> None:
        """There will be no more answers: stop waiting for lines. From any thread."""


class Terminal:
    """Somebody at a terminal."""

    def __init__(self, history: Path | None) -> None:
        kept: History = InMemoryHistory() if history is None else FileHistory(str(history))
        self._session: PromptSession[str] = PromptSession(history=kept)
        #: pdb's and Python's lines are not commands of the console.
        self._other: PromptSession[str] = PromptSession(history=InMemoryHistory())
        self._is_over = False

    def line(self, prompt: Callable[[], str], candidates: Candidates | None) -> str | None:
        """See `Typist`. Ctrl-C clears what is typed, and interrupts an empty line."""
        if self._is_over:
            return None
        session = self._session if candidates is not None else self._other
        completer = _Completer(candidates) if candidates is not None else None
        while True:
            try:
                return session.prompt(prompt, completer=completer, complete_while_typing=False)
            except KeyboardInterrupt:
                if not session.default_buffer.text:
                    raise
            except EOFError:
                return None

    def show(self, lines: Iterable[str], *, wrong: bool = False) -> None:
        """See `Typist`."""
        for text in lines:
            print(click.style(text, fg="red") if wrong and _colours() else text, flush=True)

    def drawing(self) -> AbstractContextManager[object]:
        """See `Typist`."""
        return patch_stdout(raw=True)

    def hang_up(self) -> None:
        """See `Typist`."""
        self._is_over = True
        for session in (self._session, self._other):
            app = session.app
            if app.is_running and app.loop is not None:
                app.loop.call_soon_threadsafe(_exit, session)


def _exit(session: PromptSession[str]) -> None:
    if session.app.is_running:
        session.app.exit(exception=EOFError)


def _colours() -> bool:
    return click.get_current_context().color is not False


class Pipe:
    """Lines of a file or of another program; what is wrong goes to standard error."""

    def line(self, prompt: Callable[[], str], candidates: Candidates | None) -> str | None:
        """See `Typist`."""
        text = sys.stdin.readline()
        return text.rstrip("\n") if text else None

    def show(self, lines: Iterable[str], *, wrong: bool = False) -> None:
        """See `Typist`."""
        stream = sys.stderr if wrong else sys.stdout
        for text in lines:
            print(text, file=stream, flush=True)

    def drawing(self) -> AbstractContextManager[object]:
        """See `Typist`."""
        return nullcontext()

    def hang_up(self) -> None:
        """See `Typist`: the next line is the last."""


class _Completer(Completer):
    def __init__(self, candidates: Candidates) -> None:
        self._candidates = candidates

    def get_completions(self, document: Document, event: CompleteEvent) -> Iterator[Completion]:
        """What may stand at the cursor."""
        part, found = self._candidates(document.text_before_cursor)
        for each in found:
            if each.startswith(part):
                yield Completion(each, start_position=-len(part))


def candidates_in(
    text: str, actions: Sequence[str], keys: Callable[[str], Sequence[str]]
) -> tuple[str, Sequence[str]]:
    """What may stand at the end of a command line; `keys` gives the names at a JSONPath."""
    name, space, rest = text.lstrip().partition(" ")
    if not space:
        return name, list(COMMANDS)
    last = rest.rpartition(" ")[2]
    match name:
        case "break":
            return last, ["on"] if " " not in rest and not rest.startswith("on ") else actions
        case "trace":
            return last, ["on", "off"]
        case "help":
            return last, list(COMMANDS)
        case "state" | "watch":
            above, dot, part = last.rpartition(".")
            return part, keys(above if dot else "$") if not last.startswith("@") else []
        case _:
            return last, []
