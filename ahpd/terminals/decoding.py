"""Bytes of a terminal as text, however reads cut them. Pure."""

from __future__ import annotations

import codecs


class Decoding:
    """UTF-8 read piece by piece; what is no UTF-8 becomes U+FFFD, as terminals show it.

    Invariant: the texts given so far are the decoding of the bytes taken so far, but for the up to
    three bytes of a character that has not ended.
    """

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")

    def feed(self, data: bytes) -> str:
        """The text that these bytes complete."""
        return self._decoder.decode(data)

    def finish(self) -> str:
        """What a character is worth that never ended; the decoder is as new after it."""
        text = self._decoder.decode(b"", final=True)
        self._decoder.reset()
        return text
