"""How a frame that passed becomes a line of a capture, without decoding it where that can be saved.

The shapes are those of `ahpd.protocol.capture`. Used by the thread that writes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime

import attrs

from ahpd.protocol.capture import LOG_KEY, LOG_WAYS, RAW_KEY, Way
from ahpd.protocol.jsontext import ParseError, dumps, loads
from ahpd.protocol.model import JSON
from ahpd.transports.redaction import Redactor

#: What a frame in the queue weighs besides its text.
_OVERHEAD = 128


@attrs.frozen
class Passed:
    """A frame that passed, when (Unix seconds), and how many before it were left out.

    `transport` is the kind of its connection, `conn` which one it is, from 1.
    """

    way: Way
    conn: int
    transport: str
    at: float
    text: bytes | str
    lost: int = 0

    def __len__(self) -> int:
        return len(self.text) + _OVERHEAD


def frames_line(passed: Passed, redact: Redactor) -> bytes:
    """``{"dir": …, "conn": …, "at": …, "frame": …}``."""
    lost = b',"lost":%d' % passed.lost if passed.lost else b""
    return b'{"dir":"%s","conn":%d,"at":"%s"%s,"frame":%s}\n' % (
        passed.way.encode(),
        passed.conn,
        _iso(passed.at).encode(),
        lost,
        redact.json(_as_json(passed)),
    )


def ahplog_line(passed: Passed, redact: Redactor) -> bytes:
    """The message with ``_ahpLog`` in it."""
    text = _as_json(passed)
    if not text.startswith(b"{"):
        value = loads(text)
        raw = value if isinstance(value, str) else text.decode()
        text = dumps({RAW_KEY: raw})
    about: dict[str, JSON] = {
        "ts": _iso(passed.at),
        "dir": LOG_WAYS[passed.way],
        "connectionId": str(passed.conn),
        "transport": passed.transport,
        "byteLength": _length(passed.text),
    }
    if passed.lost:
        about["lost"] = passed.lost
    text = redact.json(text).rstrip()
    comma = b"" if text == b"{}" else b","
    return b'%s%s"%s":%s}\n' % (text[:-1], comma, LOG_KEY.encode(), dumps(about))


#: The shapes by the names that they are asked for by.
SHAPES: Mapping[str, Callable[[Passed, Redactor], bytes]] = {
    "frames": frames_line,
    "ahplog": ahplog_line,
}


def _as_json(passed: Passed) -> bytes:
    """One line of JSON text: the frame, or a string when a peer sent what is no JSON."""
    text = passed.text
    if passed.way == "h2c" and isinstance(text, bytes):
        return text  # ours: it is that already
    try:
        return dumps(loads(text))
    except ParseError:
        shown = text if isinstance(text, str) else text.decode("utf-8", "replace")
        return dumps(shown.encode("utf-8", "replace").decode())


def _iso(moment: float) -> str:
    text = datetime.fromtimestamp(moment, UTC).isoformat(timespec="milliseconds")
    return text.replace("+00:00", "Z")


def _length(text: bytes | str) -> int:
    return len(text) if isinstance(text, bytes) else len(text.encode("utf-8", "replace"))
