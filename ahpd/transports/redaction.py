"""`Redactor`: takes secrets out of everything that is written for people to read or keep.

Logs, crash reports, telemetry and captures all go through one of these (R-19.16). Two kinds of
secrets are known: those that look like one (what follows ``tkn=`` and ``Bearer``, and the text
under a name that says that it is one, as in JSON, in Python's own notation and in assignments), and
those whose text is known (`Redactor.add`): the connection token, values of the environment that
agents are given, tokens that clients hand over. Each becomes ``***``.
"""

from __future__ import annotations

import functools
import os
import re
from collections.abc import Iterable, Mapping, Sequence

from ahpd.protocol.jsontext import ParseError, dumps

#: A shorter text is no secret that anybody could look for without finding it everywhere.
LEAST_SECRET = 6
#: Known secrets that are remembered; the oldest go first.
MOST_SECRETS = 1000
#: A word of an environment that is shorter is none, whatever its name says.
LONG_WORD = 12
#: A value of an environment that is as long as this may be a secret, whatever its name says.
LONG_VALUE = 24

#: What a name ends in that says so. `progressToken` is the protocol's, and is none.
_WORD = (
    r"(?<!progress)(?:token|secret|password|passphrase|api[-_]?key|authorization|credentials?"
    r"|cookie|private[-_]?key)"
)
_TKN = r"(tkn(?:=|%3D))[^&\s\"\\'<>#;,)\]}]*"
_BEARER = r"(Bearer\s+)[A-Za-z0-9._~+/=-]+"

# Of JSON text: a secret never begins or ends inside an escape, nor goes beyond its string. The
# second is for JSON text inside a string.
_IN_JSON = (
    (rf'({_WORD}":)"(?:[^"\\]|\\.)*"', r'\1"***"'),
    (rf'({_WORD}\\"\s*:\s*\\")[^"\\]*', r"\1***"),
    (_TKN, r"\1***"),
    (_BEARER, r"\1***"),
)
# Of any text: as in JSON, in Python, in a query, and in an environment.
_IN_TEXT = (
    (rf"""({_WORD}["']?\s*[:=]\s*)(["'])(?:(?!\2)[^\\]|\\.)*\2""", r"\1\2***\2"),
    (rf"([?&](?:\w|%)*{_WORD}=)[^&\s\"'<>#;,)\]}}]*", r"\1***"),
    (r"((?-i:\b[A-Z0-9_]*(?:TOKEN|SECRET|PASSWORD|KEY|CREDENTIALS)=))(?![\"'])\S+", r"\1***"),
    (_TKN, r"\1***"),
    (_BEARER, r"\1***"),
)

# Compiled when the first line is written: a start need not wait for it.


@functools.cache
def _text_rules() -> Sequence[tuple[re.Pattern[str], str]]:
    return [(re.compile(pattern, re.IGNORECASE), to) for pattern, to in _IN_TEXT]


@functools.cache
def _json_rules() -> Sequence[tuple[re.Pattern[bytes], bytes]]:
    return [(re.compile(pattern.encode(), re.IGNORECASE), to.encode()) for pattern, to in _IN_JSON]


@functools.cache
def _hints() -> tuple[re.Pattern[str], re.Pattern[bytes]]:
    """Each rule needs one of these: what holds none, as most lines, need not be looked at again."""
    words = "tok|tkn|secret|pass|key|auth|credential|cookie|bearer"
    return re.compile(words, re.IGNORECASE), re.compile(words.encode(), re.IGNORECASE)


@functools.cache
def _telling() -> re.Pattern[str]:
    return re.compile(rf"{_WORD}|auth|(?:\b|_)(?:key|pat|pwd)\b", re.IGNORECASE)


@functools.cache
def _ends_telling() -> re.Pattern[str]:
    return re.compile(rf"{_WORD}$", re.IGNORECASE)


class Redactor:
    """See the module. May be used by any thread; `add` by one at a time."""

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        self._secrets: dict[str, None] = {}
        #: What finds the known ones in text and in JSON text; None: to be made anew.
        self._known: tuple[re.Pattern[str], re.Pattern[bytes]] | None = None
        self.add(*secrets)

    def add(self, *secrets: str) -> None:
        """These are secrets too, from now on; what is shorter than `LEAST_SECRET` is none. Sync."""
        new = [each for each in secrets if len(each) >= LEAST_SECRET and each not in self._secrets]
        if new:
            known = {**self._secrets, **dict.fromkeys(new)}
            for each in list(known)[:-MOST_SECRETS]:
                del known[each]
            # Replaced, not changed: another thread may be reading it.
            self._secrets, self._known = known, None

    def __call__(self, text: str) -> str:
        """A text without secrets."""
        if self._secrets:
            text = self._patterns()[0].sub("***", text)
        if _hints()[0].search(text) is None:
            return text
        for pattern, replacement in _text_rules():
            text = pattern.sub(replacement, text)
        return text

    def json(self, text: bytes) -> bytes:
        """JSON text without secrets; it stays JSON text."""
        if self._secrets:
            text = self._patterns()[1].sub(b"***", text)
        if _hints()[1].search(text) is None:
            return text
        for pattern, replacement in _json_rules():
            text = pattern.sub(replacement, text)
        return text

    def _patterns(self) -> tuple[re.Pattern[str], re.Pattern[bytes]]:
        known = self._known
        if known is None:
            # The longest first: one may begin with another.
            secrets = sorted(self._secrets, key=len, reverse=True)
            known = self._known = (
                re.compile("|".join(map(re.escape, secrets))),
                re.compile(b"|".join(re.escape(each) for each in _written(secrets))),
            )
        return known


def is_telling(name: str) -> bool:
    """Whether a name says that what it names is a secret."""
    return _telling().search(name) is not None


def names_secret(name: str) -> bool:
    """Whether a text of that name is replaced wherever it stands beside it."""
    return _ends_telling().search(name) is not None


def secrets_in(environment: Mapping[str, str], *, ours: bool) -> list[str]:
    """The values of environment variables that are, or may be, secrets.

    `ours`: somebody wrote these down for an agent, so a long one may be one whatever it is called.
    """
    return [
        value
        for name, value in environment.items()
        if (is_telling(name) and not _is_harmless(value))
        or (ours and len(value) >= LONG_VALUE and "/" not in value)
    ]


def _is_harmless(value: str) -> bool:
    """A file that is there (the name is of where a secret is), or a word (of how it is found)."""
    is_word = value.isalpha() and len(value) < LONG_WORD
    return is_word or (value.startswith("/") and os.path.exists(value))


def _written(secrets: Iterable[str]) -> list[bytes]:
    """As they stand inside a string of JSON text."""
    found = []
    for each in secrets:
        try:
            found.append(dumps(each)[1:-1])
        except ParseError:  # no JSON text can hold it
            continue
    return found or [b"(?!)"]
