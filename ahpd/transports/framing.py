"""WebSocket frames as a server sends them, built by hand because that is where the speed is.

A server's frames are not masked, so a text message is a header of 2, 4 or 10 bytes and the text
as it is. The framed form is the same for every connection: it is made once and kept in
`Frame.framed`, and many of them are joined into one write. Receiving, the handshake and everything
else about WebSocket is trio-websocket's.
"""

from __future__ import annotations

import functools
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
