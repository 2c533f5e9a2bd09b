"""Lines that the host types into a person's shell, and how it knows what becomes of them.

A shell that tells of its commands says when it waits at its prompt. It is *free* while it does and
nobody has typed since: only then is a line typed, so nothing is ever typed into a program, or to
what somebody has half written. The line is over when the shell is at its prompt again; whether a
command ran in between, and how it ended, the shell has said (hazard B58).
"""

from __future__ import annotations

from collections.abc import Callable

import trio
from msgspec import Struct, field

#: Seconds that a shell is given after its prompt to say that it takes pasted text.
PASTE_WITHIN = 0.3

_PASTE = "\x1b[?2004"
#: Takes away what was typed while a program ran, and not for it.
_KILL = "\x15"


class Line(Struct, eq=False):
    """A line and what became of it; who waits for that is told by `stir`.

    `commands` are the ids of the commands that ran for it, `exit_code` is that of the last.
    """

    text: str
    stir: Callable[[], None]
    commands: list[str] = field(default_factory=list)
    exit_code: float | None = None
    over: trio.Event = field(default_factory=trio.Event)

    @property
    def is_over(self) -> bool:
        """Whether the shell is done with it."""
        return self.over.is_set()


class Lines:
    """What is known of one shell's prompt."""

    def __init__(self) -> None:
        #: When it began to wait at its prompt; None: it does not, or somebody has typed.
        self._free_since: float | None = None
        self._takes_paste = False
        self._tail = ""
        self.line: Line | None = None

    def shown(self, text: str) -> None:
        """It wrote this."""
        edge = self._tail + text[: len(_PASTE)]  # it may be cut in two
        self._tail = (self._tail + text[-len(_PASTE) :])[-len(_PASTE) :]
        for part in (edge, text):
            if _PASTE in part:
                how = part[part.rfind(_PASTE) + len(_PASTE) :][:1]
                if how in ("h", "l"):
                    self._takes_paste = how == "h"

    def prompted(self, now: float) -> None:
        """It waits at its prompt."""
        self._free_since = now
        self._over()

    def began(self, command_id: str) -> None:
        """A command runs."""
        self._free_since = None
        if self.line is not None:
            self.line.commands.append(command_id)

    def ended(self, exit_code: float | None) -> None:
        """It is over, but for the prompt."""
        if self.line is not None:
            self.line.exit_code = exit_code

    def typed(self) -> None:
        """Somebody typed."""
        self._free_since = None

    def gone(self) -> None:
        """There is no shell any more."""
        self._free_since = None
        self._over()

    def take(self, line: Line, now: float) -> bytes | None:
        """What to type for it; None: the shell is not free, or not yet, or cannot take it."""
        if self._free_since is None or self.will_be_free(now) or not can_be_typed(line.text):
            return None
        if self._takes_paste:
            keys = f"{_KILL}\x1b[200~{line.text}\x1b[201~\r"
        elif "\n" in line.text:
            return None
        else:
            keys = f"{_KILL}{line.text}\r"
        self._free_since = None
        self.line = line
        return keys.encode()

    def will_be_free(self, now: float) -> bool:
        """Whether it is at its prompt, and may still say that it takes pasted text."""
        since = self._free_since
        return since is not None and not self._takes_paste and now < since + PASTE_WITHIN

    def _over(self) -> None:
        line, self.line = self.line, None
        if line is not None:
            line.over.set()
            line.stir()


def can_be_typed(text: str) -> bool:
    """Whether it holds no key that does something of its own."""
    return all(char.isprintable() or char == "\n" for char in text) and bool(text.strip())
