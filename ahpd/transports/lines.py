"""Bytes to lines: one JSON message a line, split on the byte ``\\n`` and on nothing else.

Pure, without I/O, for every stream of JSON lines: stdio, the Unix socket, agents' output. U+2028,
U+2029 and U+0085 may stand unescaped inside a JSON string, so text readers that split on them
would cut a message in two (HAZARDS B37); and a line may be as long as a message may be (B23).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ahpd.protocol.frame import Frame

#: The longest line taken unless told otherwise, in bytes without its end.
LINE_LIMIT = 64 * 1024 * 1024

_BOM = b"\xef\xbb\xbf"


class LineTooLong(Exception):
    """The peer sent a line beyond the limit; the rest of its stream cannot be made sense of.

    `lines` are the complete lines that came before it in the same piece of input.
    """

    def __init__(self, limit: int, lines: Sequence[bytes] = ()) -> None:
        super().__init__(f"a line is longer than {limit} bytes")
        self.limit = limit
        self.lines = lines


class LineSplitter:
    """Feed it bytes as they come; it gives complete lines without their ends.

    A ``\\r`` before the ``\\n``, blank lines and a UTF-8 byte order mark on the first line are
    tolerated and left out. Each byte is looked at once, however small the pieces are.
    """

    __slots__ = ("_at_start", "_broken", "_limit", "_partial")

    def __init__(self, limit: int = LINE_LIMIT) -> None:
        self._limit = limit
        self._partial = bytearray()  # Invariant: holds no newline, and at most `limit` + 1 bytes.
        self._at_start = True
        self._broken = False

    @property
    def pending(self) -> int:
        """How many bytes of an unfinished line are held."""
        return len(self._partial)

    def feed(self, data: bytes) -> list[bytes]:
        """The lines that `data` completes.

        Raises `LineTooLong`, with the lines before the long one in it, and then for ever.
        """
        if self._broken:
            raise LineTooLong(self._limit)
        *ends, rest = data.split(b"\n")
        lines: list[bytes] = []
        # Nearly always: nothing in it that a line is rid of, and no line too long.
        plain = len(data) <= self._limit and b"\r" not in data and not self._at_start
        if ends and (self._partial or not plain):
            # Only the first piece can belong to what is held; the others are whole lines.
            self._hold(ends[0], lines)
            self._take(bytes(self._partial), lines)
            self._partial.clear()
            del ends[0]
        if plain:
            lines += [line for line in ends if line and not line.isspace()]
        else:
            for line in ends:
                self._take(line, lines)
        if rest:
            self._hold(rest, lines)
        return lines

    def finish(self) -> list[bytes]:
        """What is left when the stream has ended: the last line if it had no newline.

        Raises `LineTooLong` when that was the reason for the end.
        """
        if self._broken:
            raise LineTooLong(self._limit)
        lines: list[bytes] = []
        self._take(bytes(self._partial), lines)
        self._partial.clear()
        return lines

    def _hold(self, piece: bytes, lines: list[bytes]) -> None:
        # One byte of grace: it may be the "\r" of the end. `_take` judges the line itself.
        if len(self._partial) + len(piece) > self._limit + 1:
            self._break(lines)
        self._partial += piece

    def _take(self, line: bytes, lines: list[bytes]) -> None:
        if self._at_start:
            self._at_start = False
            line = line.removeprefix(_BOM)
        line = line.removesuffix(b"\r")
        if len(line) > self._limit:
            self._break(lines)
        if line and not line.isspace():
            lines.append(line)

    def _break(self, lines: list[bytes]) -> None:
        self._broken = True
        self._partial = bytearray()
        raise LineTooLong(self._limit, lines)


def line_of(frame: Frame) -> bytes:
    """The message as a line. The text must be JSON in one line, as `jsontext.dumps` writes it."""
    return frame.text + b"\n"


def joined_lines(frames: Iterable[Frame]) -> bytes:
    """Several messages as the bytes of as many lines."""
    parts = [frame.text for frame in frames]
    parts.append(b"")
    return b"\n".join(parts)
