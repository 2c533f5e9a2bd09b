"""A WebSocket client without manners: raw frames over a plain socket, to be rude with."""

from __future__ import annotations

import os
import socket
import struct
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress

import trio

TOKEN = "t0ken-for.tests_~"
KEY = "dGhlIHNhbXBsZSBub25jZQ=="
TEXT, BINARY, CLOSE, PING, PONG, CONTINUATION = 0x1, 0x2, 0x8, 0x9, 0xA, 0x0


def request(
    path: str = f"/?tkn={TOKEN}",
    *,
    host: str | None = "localhost",
    method: str = "GET",
    upgrade: bool = True,
    more: Mapping[str, str] | None = None,
    **headers: str,
) -> bytes:
    """An HTTP request; `more` are more headers, and so are keywords, with ``_`` for ``-``."""
    headers |= more or {}
    lines = [f"{method} {path} HTTP/1.1"]
    if host is not None:
        lines.append(f"Host: {host}")
    if upgrade:
        lines += ["Upgrade: websocket", "Connection: keep-alive, Upgrade"]
        headers = {"Sec_WebSocket_Version": "13", "Sec_WebSocket_Key": KEY} | headers
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return "\r\n".join([*lines, "", ""]).encode("latin-1")


def masked(opcode: int, payload: bytes, *, fin: bool = True) -> bytes:
    """A frame as a client must send it."""
    size = len(payload)
    head = bytes([opcode | (0x80 if fin else 0)])
    if size < 126:
        head += bytes([0x80 | size])
    elif size < 65536:
        head += bytes([0x80 | 126]) + struct.pack("!H", size)
    else:
        head += bytes([0x80 | 127]) + struct.pack("!Q", size)
    mask = os.urandom(4)
    key = int.from_bytes((mask * (size // 4 + 1))[:size], "big")
    return head + mask + (int.from_bytes(payload, "big") ^ key).to_bytes(size, "big")


class RawClient:
    def __init__(self, stream: trio.SocketStream) -> None:
        self.stream = stream
        self.buffer = bytearray()

    async def send(self, data: bytes) -> None:
        await self.stream.send_all(data)

    async def _fill(self) -> None:
        piece = await self.stream.receive_some(1 << 18)
        if not piece:
            raise EOFError(bytes(self.buffer))
        self.buffer += piece

    async def take(self, count: int) -> bytes:
        while len(self.buffer) < count:
            await self._fill()
        data = bytes(self.buffer[:count])
        del self.buffer[:count]
        return data

    async def response(self) -> tuple[int, dict[str, str]]:
        """The status and the headers, lower case, of the HTTP response; the body stays."""
        while (end := self.buffer.find(b"\r\n\r\n")) < 0:
            await self._fill()
        head = (await self.take(end + 4)).decode().split("\r\n")
        pairs = (line.split(": ", 1) for line in head[1:] if line)
        return int(head[0].split()[1]), {name.lower(): value for name, value in pairs}

    async def frame(self) -> tuple[int, bytes]:
        """The opcode and the payload of the next frame, which must be whole and not masked."""
        first, size = await self.take(2)
        assert first & 0xF0 == 0x80
        assert not size & 0x80
        if size == 126:
            (size,) = struct.unpack("!H", await self.take(2))
        elif size == 127:
            (size,) = struct.unpack("!Q", await self.take(8))
        return first & 0x0F, await self.take(size)

    async def closing(self, *, answer: bool = True) -> tuple[int, str]:
        """The code and the reason of the close frame; then the end of the stream, no reset."""
        while True:
            opcode, payload = await self.frame()
            if opcode == CLOSE:
                break
        if answer:
            with suppress(trio.BrokenResourceError):  # it may be closed already
                await self.send(masked(CLOSE, payload[:2]))
        try:
            await self.take(1)
        except EOFError:
            return int.from_bytes(payload[:2], "big"), payload[2:].decode()
        raise AssertionError("more bytes after the close frame")

    async def ended(self) -> bool:
        """Whether the peer ends the connection, politely or with a reset, now or soon."""
        try:
            while True:
                await self.take(1)
        except (EOFError, trio.BrokenResourceError):
            return True

    def reset(self) -> None:
        """Vanish with a RST."""
        sock = self.stream.socket
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        sock.close()


@asynccontextmanager
async def raw_client(
    port: int, *, upgrade: bool = True, receive_buffer: int | None = None
) -> AsyncIterator[RawClient]:
    """A raw connection; with `upgrade` the handshake is done."""
    sock = trio.socket.socket()
    if receive_buffer is not None:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
    await sock.connect(("127.0.0.1", port))
    client = RawClient(trio.SocketStream(sock))
    try:
        if upgrade:
            await client.send(request())
            status, _ = await client.response()
            assert status == 101
        yield client
    finally:
        sock.close()
