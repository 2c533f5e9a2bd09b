"""WebSocket frames as a server sends them, built by hand because that is where the speed is.

A server's frames are not masked, so a text message is a header of 2, 4 or 10 bytes and the text
as it is. The framed form is the same for every connection: it is made once and kept in
`Frame.framed`, and many of them are joined into one write. Receiving, the handshake and everything
else about WebSocket is trio-websocket's.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Iterator, Sequence

from ahpd.protocol.frame import Frame

#: First bytes of final frames.
_TEXT, _CLOSE, _PING = 0x81, 0x88, 0x89
#: Opcode of a close frame with its FIN bit, to recognise one that was written by others.
CLOSE_OPCODE = _CLOSE

#: Texts longer than this are written from where they are: no copy of them is made or kept.
_WHOLE = 32 * 1024
#: Frames that are joined at most for one write. More would not be faster, see contrib/bench.
_JOINED = 256
#: Longest reason of a close frame, in bytes of UTF-8.
_REASON_BYTES = 123

PING = bytes((_PING, 0))


@functools.lru_cache(1024)  # lengths repeat, and the call is half of what framing costs
def text_header(length: int) -> bytes:
    """The header of an unmasked, unfragmented text frame with `length` bytes of text."""
    if length < 126:
        return bytes((_TEXT, length))
    if length < 65_536:
        return bytes((_TEXT, 126)) + length.to_bytes(2, "big")
    return bytes((_TEXT, 127)) + length.to_bytes(8, "big")


def close_frame(code: int, reason: str = "") -> bytes:
    """A close frame; a reason that is too long is cut at a character."""
    text = reason.encode()[:_REASON_BYTES].decode(errors="ignore").encode()
    payload = code.to_bytes(2, "big") + text
    return bytes((_CLOSE, len(payload))) + payload


def writes(frames: Sequence[Frame], limit: int) -> Iterator[bytes]:
    """The bytes of all `frames`, in pieces to write one after another.

    A piece is of about `limit` bytes at most, or is one long text. Short frames get their framed
    form here, once for all connections.
    """
    for start in range(0, len(frames), _JOINED):
        parts: list[bytes] = []
        size = 0
        for frame in frames[start : start + _JOINED]:
            data = frame.framed
            if data is None:
                text = frame.text
                header = text_header(len(text))
                if len(text) > _WHOLE:
                    parts.append(header)
                    yield b"".join(parts)
                    yield text
                    parts, size = [], 0
                    continue
                data = frame.framed = header + text
            parts.append(data)
            size += len(data)
            if size >= limit:
                yield b"".join(parts)
                parts, size = [], 0
        if parts:
            yield b"".join(parts)


class Lengths:
    """Reads, off the bytes of a peer's frames as they come, how long each frame says it is.

    A parser finds out that a message is too long when it has taken in that much of it; the head of
    its frame says so at once.
    """

    __slots__ = ("_head", "_left")

    def __init__(self) -> None:
        self._head = b""  # of a frame whose head is not whole yet
        self._left = 0  # payload of the frame that has begun, still to come

    def longest(self, data: bytes) -> int:
        """The longest payload that a frame whose head ends in `data` announces; 0 for none."""
        longest = position = 0
        while True:
            skipped = min(self._left, len(data) - position)
            self._left -= skipped
            position += skipped
            head = self._head + data[position : position + _LONGEST_HEAD]
            size = _head_size(head)
            if len(head) < size:
                self._head = head
                return longest
            position += size - len(self._head)
            self._head = b""
            if not _is_sound(head):
                self._left = sys.maxsize  # no frames come after this: the parser ends it there
                return longest
            self._left = _payload(head)
            longest = max(longest, self._left)


#: Two bytes, eight more of a long length, and a mask.
_LONGEST_HEAD = 14


def _head_size(head: bytes) -> int:
    if len(head) < 2:
        return 2
    short = head[1] & 0x7F
    return 2 + {126: 2, 127: 8}.get(short, 0) + (4 if head[1] & 0x80 else 0)


def _is_sound(head: bytes) -> bool:
    """A client's frame: masked, without extensions, of a kind that there is."""
    return bool(head[1] & 0x80) and not head[0] & 0x70 and head[0] & 0x0F in (0, 1, 2, 8, 9, 10)


def _payload(head: bytes) -> int:
    short = head[1] & 0x7F
    size = {126: 2, 127: 8}.get(short, 0)
    return int.from_bytes(head[2 : 2 + size], "big") if size else short
