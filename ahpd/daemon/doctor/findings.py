"""What a check finds."""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterator, Sequence

from msgspec import Struct

from ahpd.daemon.config import Config
from ahpd.daemon.state import Endpoint, StateFolder
from ahpd.protocol.discreet import Discreet


class Level(enum.Enum):
    """How bad it is."""

    OK = "ok"
    WARN = "warn"  #: it works, and may not go on to
    FAIL = "fail"  #: something does not work


class Finding(Struct, frozen=True):
    """One thing that was looked at; `advice` is what to do about it, empty for nothing."""

    group: str
    check: str
    level: Level
    text: str
    advice: str = ""


class Subject(Discreet, frozen=True):
    """What is looked at.

    `config` is that of the running daemon, if there is one, as far as it can be known: `wrong` is
    what is wrong with the file, `warnings` what is passed over. `endpoint` is None when no daemon
    takes clients, `pid` when there is none at all.
    """

    hidden = frozenset({"endpoint"})

    folder: StateFolder
    config: Config
    paths: Sequence[str] = ()
    wrong: str | None = None
    warnings: Sequence[str] = ()
    endpoint: Endpoint | None = None
    pid: int | None = None
    token_file: str | None = None
    #: Clients need a token, and it is the one in a file.
    needs_token: bool = True


class Check(Struct, frozen=True):
    """A thing to look at; `look` blocks, and raises nothing but our own bugs."""

    group: str
    name: str
    look: Callable[[Subject], Iterator[Finding]]


class Teller(Struct, frozen=True):
    """Makes the findings of one check."""

    group: str
    name: str

    def ok(self, text: str) -> Finding:
        """All is well."""
        return Finding(self.group, self.name, Level.OK, text)

    def warn(self, text: str, advice: str = "") -> Finding:
        """It may not stay well."""
        return Finding(self.group, self.name, Level.WARN, text, advice)

    def fail(self, text: str, advice: str = "") -> Finding:
        """It does not work."""
        return Finding(self.group, self.name, Level.FAIL, text, advice)


def check(
    group: str, name: str
) -> Callable[[Callable[[Subject, Teller], Iterator[Finding]]], Check]:
    """Make a check of a function that is given what to tell with."""

    def made(look: Callable[[Subject, Teller], Iterator[Finding]]) -> Check:
        tell = Teller(group, name)
        return Check(group, name, lambda subject: look(subject, tell))

    return made
