"""What the host needs of a transport, and nothing of how one works."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol, TypeAlias, runtime_checkable

from ahpd.protocol.frame import Frame


class TransportClosed(Exception):
    """The peer is gone, or broke the rules of the transport; no more messages either way.

    `code` is the WebSocket close code that says why (1006: it vanished), `clean` whether the peer
    said goodbye.
    """

    def __init__(self, reason: str, *, code: int = 1006, clean: bool = False) -> None:
        super().__init__(reason)
        self.reason = reason
        self.code = code
        self.clean = clean


class Transport(Protocol):
    """A connection to one peer that carries whole messages, in order, both ways (R-1.1).

    One task receives and one task sends; `close` may be called from any.
    """

    #: Who is on the other end, for logs: ``ws 127.0.0.1:50312``, ``stdio``, ``unix``.
    peer: str

    async def receive(self) -> bytes | str:
        """The next message's text.

        Raises `TransportClosed` when there will be none; nothing else. On cancel nothing is lost.
        """
        ...

    async def send(self, frames: Sequence[Frame]) -> None:
        """Write all of `frames`, each a message of its own, in as few writes as possible.

        Returns when the bytes were handed to the kernel. Raises `TransportClosed`. On cancel a
        frame may be cut in the middle, so the transport must then be closed.
        """
        ...

    async def close(self, code: int = 1000, reason: str = "") -> None:
        """Say goodbye as far as that needs no answer, within a bound, and let go of the socket.

        Never raises; a second call does nothing.
        """
        ...


@runtime_checkable
class Immediate(Protocol):
    """A transport that can be written to without a turn of the scheduler."""

    def send_nowait(self, frames: Sequence[Frame]) -> bool:
        """Take `frames` over and write what can be written now; True when that was all of it.

        Else the caller must `send`, more frames or none, which sees these through first and raises
        what there is to raise. Not while a `send` is under way.
        """
        ...


#: What a listener does with each connection; returns when the connection is over. Must not raise.
Handler: TypeAlias = Callable[[Transport], Awaitable[None]]
