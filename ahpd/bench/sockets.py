"""WebSocket as a client speaks it, on blocking sockets and with nothing between.

A client's frames have to be masked; the mask here is all zeros, which leaves a text as it is. Whom
it is said to has the same work with it as with any other.
"""

from __future__ import annotations

import base64
import os
import socket
from collections.abc import Iterator
from typing import Self

#: Seconds that anything may take before it counts as stuck.
STUCK = 120.0

_HEAD_END = b"\r\n\r\n"
_MASK = bytes(4)
_PING, _PONG, _CLOSE = 9, 10, 8


class WebSocketEnded(ConnectionError):
    """The other side closed the connection."""


class WebSocket:
    """One connection to a server on loopback. `received` is what has come and was not taken."""

    def __init__(self, port: int, path: str = "/", *, receive_bytes: int | None = None) -> None:
        self.socket = socket.socket()
        if receive_bytes is not None:  # before the connection is there, or it has no effect
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_bytes)
        self.socket.settimeout(STUCK)
        self.received = bytearray()
        try:
            self.socket.connect(("127.0.0.1", port))
            self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._shake_hands(path)
        except BaseException:
            self.socket.close()
            raise

    def _shake_hands(self, path: str) -> None:
        key = base64.b64encode(os.urandom(16)).decode()
        self.socket.sendall(
            f"GET {path} HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\n"
            f"Connection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
            f"Sec-WebSocket-Key: {key}\r\n\r\n".encode()
        )
        while _HEAD_END not in self.received:
            self._receive()
        head, _, rest = bytes(self.received).partition(_HEAD_END)
        if not head.startswith(b"HTTP/1.1 101"):
            raise ConnectionError(head.splitlines()[0].decode())
        self.received[:] = rest

    def _receive(self) -> None:
        data = self.socket.recv(1 << 20)
        if not data:
            raise WebSocketEnded("the other side ended the connection")
        self.received += data

    def send(self, text: bytes) -> None:
        """Send a text message."""
        self.socket.sendall(_masked(0x81, text))

    def receive(self) -> bytes:
        """The next text message."""
        while True:
            frame = first_frame(self.received)
            if frame is None:
                self._receive()
                continue
            opcode, start, end = frame
            payload = bytes(self.received[start:end])
            del self.received[:end]
            if opcode == _PING:
                self.socket.sendall(_masked(0x80 | _PONG, payload))
            elif opcode == _CLOSE:
                raise WebSocketEnded(payload[2:].decode(errors="replace"))
            elif opcode != _PONG:
                return payload

    def pong(self) -> None:
        """Say that somebody is here, without having been asked (RFC 6455, 5.5.3)."""
        self.socket.sendall(_masked(0x80 | _PONG, b""))

    def close(self) -> None:
        """Let go of it, without a word."""
        self.socket.close()

    def __enter__(self) -> Self:
        """It is open."""
        return self

    def __exit__(self, *_: object) -> None:
        """It is not."""
        self.close()


def _masked(first: int, payload: bytes) -> bytes:
    size = len(payload)
    if size < 126:
        head = bytes((first, 0x80 | size))
    elif size < 65_536:
        head = bytes((first, 0x80 | 126)) + size.to_bytes(2, "big")
    else:
        head = bytes((first, 0x80 | 127)) + size.to_bytes(8, "big")
    return head + _MASK + payload


def first_frame(data: bytes | bytearray | memoryview, at: int = 0) -> tuple[int, int, int] | None:
    """Opcode, start and end of the payload of the server's frame at `at`; None: not all there."""
    if len(data) < at + 2:
        return None
    short = data[at + 1]
    start = at + 2 + {126: 2, 127: 8}.get(short, 0)
    if len(data) < start:
        return None
    size = short if short < 126 else int.from_bytes(data[at + 2 : start], "big")
    return None if len(data) < start + size else (data[at] & 0x0F, start, start + size)


def texts(data: bytes | bytearray) -> Iterator[bytes]:
    """The text messages in what a server sent; what is cut off at the end is passed over.

    Raises ValueError for what no server may send here.
    """
    at = 0
    while (frame := first_frame(data, at)) is not None:
        opcode, start, end = frame
        if data[at] & 0x80 == 0 or opcode not in (1, _PING, _PONG, _CLOSE):
            raise ValueError(f"the frame at {at} begins with {data[at]:#x}")
        if opcode == 1:
            yield bytes(data[start:end])
        at = end
