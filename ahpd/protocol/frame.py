"""`Frame`: one message as bytes, encoded once however many peers it goes to."""

from __future__ import annotations

from ahpd.protocol.jsontext import dumps
from ahpd.protocol.model import JSON


class Frame:
    """The JSON text of one message.

    `framed` is a place for the form in which a transport puts it on a wire (for a WebSocket: with
    its header), so that many connections of one kind share that too. Only transports touch it.
    """

    __slots__ = ("framed", "text")

    def __init__(self, text: bytes) -> None:
        self.text = text
        self.framed: bytes | None = None

    def __len__(self) -> int:
        """Bytes of text: what a waiting frame weighs in a connection's queue."""
        return len(self.text)


def frame(message: JSON) -> Frame:
    """The frame of a plain JSON value; raises `ParseError` when it is not JSON."""
    return Frame(dumps(message))
