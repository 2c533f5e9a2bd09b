"""What a shell says of itself between its output: the marks of OSC 633 and OSC 133, and OSC 7.

A mark is ``ESC ] 633 ; … BEL`` or, at its end, ``ESC \\``. Marks are taken out of the text
(R-12.29), all other sequences stay as they came, byte for byte; OSC 7, which says where the shell
is, is read and stays. Text can come in any portions: what may be the beginning of a mark is held
until it is known to be one. Everything is linear in the length of the text, and what is held is
bounded.

Any program can print marks. So where a *nonce* is given, which only the integrated shell knows, a
mark counts only if it is among its fields; others are taken out and say nothing. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from urllib.parse import quote, unquote

from ahpd.terminals.port import CommandBegan, CommandEnded, Detected, Moved, Output, Piece, Prompted

#: Characters of one mark; with more it is none, and what follows is text again.
LONGEST = 64 << 10
#: Characters of a command line that are told.
LONGEST_LINE = 16 << 10

#: The beginning of a mark, whole or as far as the text goes.
_HEAD = re.compile(r"\x1b(?:\](?:(?P<whole>(?P<kind>633|133|7);)|(?:633?|6|133?|1|7)?\Z)|\Z)")
#: What ends a mark, well or badly. ESC ends it too: what follows says which way.
_END = re.compile("[\x07\x18\x1a\x1b\x9c]")
_ESCAPED = re.compile(r"\\(?:\\|x([0-9A-Fa-f]{2}))")


class Marks:
    """Takes marks out of one terminal's text.

    `nonce`: see the module; None: every mark counts. `is_here` says of the host in an OSC 7 whether
    it is this machine: a shell on another one, by ssh, is in none of our folders.
    """

    def __init__(
        self, nonce: str | None = None, is_here: Callable[[str], bool] = lambda name: not name
    ) -> None:
        self._nonce = nonce
        self._is_here = is_here
        self._pieces: list[Piece] = []
        self._texts: list[str] = []
        #: What may be the beginning of a mark's head.
        self._start = ""
        #: Of a mark whose head is known: which, what it held so far, and how long that is.
        self._kind = ""
        self._body: list[str] = []
        self._size = 0
        self._detected = False
        self._line: str | None = None
        self._is_open = False

    @property
    def is_unsure(self) -> bool:
        """Whether it holds what may be the beginning of a mark, or of anything else."""
        return bool(self._start) and not self._kind

    def feed(self, text: str) -> Sequence[Piece]:
        """What this text says, with what was held before it."""
        place = 0
        if self._start:
            text, self._start = self._start + text, ""
        while place < len(text):
            place = self._in_mark(text, place) if self._kind else self._in_text(text, place)
        return self._taken()

    def release(self) -> Sequence[Piece]:
        """What is held for being perhaps the head of a mark is text after all."""
        self._texts.append(self._start)
        self._start = ""
        return self._taken()

    def finish(self) -> Sequence[Piece]:
        """Nothing more comes: what has not ended is text if it was no mark, and else nothing."""
        if self._kind:
            if self._kind != "7":
                self._start = ""
            self._give_up()
        return self.release()

    # ---- reading ------------------------------------------------------------------------------

    def _in_text(self, text: str, place: int) -> int:
        # Most output has no escape sequence at all, which is seen faster this way.
        first = text.find("\x1b", place)
        found = _HEAD.search(text, first) if first >= 0 else None
        if found is None:
            self._texts.append(text[place:] if place else text)
            return len(text)
        self._texts.append(text[place : found.start()])
        if found["whole"] is None:
            self._start = found[0]
            return len(text)
        self._kind, self._body, self._size = found["kind"], [], 0
        return found.end()

    def _in_mark(self, text: str, place: int) -> int:
        found = _END.search(text, place)
        stop = len(text) if found is None else found.start()
        room = LONGEST - self._size
        if stop - place > room:
            self._body.append(text[place : place + room])
            self._give_up()
            return place + room
        self._body.append(text[place:stop])
        self._size += stop - place
        if found is None:
            return stop
        end = found[0]
        if end == "\x1b":
            if stop + 1 == len(text):
                self._start = end  # what comes next says whether it ends the mark
                return len(text)
            if text[stop + 1] == "\\":
                end += "\\"
        if end in ("\x07", "\x1b\\", "\x9c"):
            self._over(end)
            return stop + len(end)
        # Broken off. ESC begins another sequence, CAN and SUB are the terminal's to see.
        self._give_up()
        return stop

    def _give_up(self) -> None:
        """No mark after all: OSC 7 stays as it came, the beginning of a mark is dropped."""
        if self._kind == "7":
            self._texts += ["\x1b]7;", *self._body]
        self._kind, self._body, self._size = "", [], 0

    def _over(self, end: str) -> None:
        kind, body = self._kind, "".join(self._body)
        self._kind, self._body, self._size = "", [], 0
        if kind == "7":
            self._texts += ["\x1b]7;", body, end]
            self._moved(body)
        else:
            self._mark(body.split(";"))

    def _taken(self) -> Sequence[Piece]:
        self._flush()
        pieces, self._pieces = self._pieces, []
        return pieces

    def _flush(self) -> None:
        text = "".join(self._texts)
        self._texts.clear()
        if text:
            self._pieces.append(Output(text))

    def _say(self, piece: Piece) -> None:
        self._flush()
        self._pieces.append(piece)

    # ---- what marks mean ------------------------------------------------------------------------

    def _mark(self, fields: list[str]) -> None:
        kind, *more = fields
        if self._nonce is not None and not any(
            field in (self._nonce, f"aid={self._nonce}") for field in more
        ):
            return
        match kind:
            case "A":
                self._detect()
                self._say(Prompted())
            case "B":
                self._detect()
            case "E":
                self._line = _plain(more[0])[:LONGEST_LINE] if more else None
            case "C":
                self._detect()
                self._end(None)
                self._say(CommandBegan(self._line or ""))
                self._line, self._is_open = None, True
            case "D":
                self._detect()
                self._end(_code(more))
            case _:
                pass

    def _detect(self) -> None:
        if not self._detected:
            self._detected = True
            self._say(Detected())

    def _end(self, code: int | None) -> None:
        if self._is_open:
            self._is_open = False
            self._say(CommandEnded(code))

    def _moved(self, body: str) -> None:
        if not body.startswith("file://"):
            return
        host, slash, path = body.removeprefix("file://").partition("/")
        if slash and self._is_here(host):
            named = unquote("/" + path, errors="surrogateescape")
            if "\0" not in named:
                self._say(Moved("file://" + quote(named, errors="surrogateescape")))


def _plain(text: str) -> str:
    """A command line as it was typed: ``\\\\`` and ``\\x3b`` stand for what ends a field."""
    return _ESCAPED.sub(lambda it: chr(int(it[1], 16)) if it[1] else "\\", text)


def _code(fields: Sequence[str]) -> int | None:
    """The exit code of a D mark, which need not tell one."""
    text = fields[0] if fields else ""
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else None
