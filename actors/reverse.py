"""What the host asks a client: requests the other way, on that client's connection (R-13.1).

They have ids of their own, which never meet those of the client's requests (R-1.13). Each ends in
exactly one of an answer, a deadline, or the end of the connection (R-13.10); whoever asks is told
of all but a result as a `ProtocolError`, and of a client's own refusal in the client's own words,
code and data (R-23.4).
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import count

import trio
from msgspec import Struct, field

from ahpd.protocol.errors import ErrorCode, ProtocolError
from ahpd.protocol.frame import Frame, frame
from ahpd.protocol.jsonrpc import Failure, Id, Success, request
from ahpd.protocol.model import JSON


class _Asked(Struct, eq=False):
    """One request that has no answer yet."""

    done: trio.Event = field(default_factory=trio.Event)
    result: JSON = None
    error: ProtocolError | None = None

    def fail(self, error: ProtocolError) -> None:
        self.error = error
        self.done.set()


class Reverse:
    """The host's open requests on one connection; `put` sends a frame there."""

    def __init__(self, put: Callable[[Frame], None]) -> None:
        self._put = put
        self._ids = count(1)
        self._open: dict[Id, _Asked] = {}
        self._closed = False

    async def ask(self, method: str, params: JSON, *, within: float) -> JSON:
        """The client's result, as it came. Raises `ProtocolError`. A checkpoint."""
        if self._closed:
            raise _gone()
        id, asked = next(self._ids), _Asked()
        self._open[id] = asked
        try:
            self._put(frame(request(id, method, params)))
            with trio.move_on_after(within):
                await asked.done.wait()
        finally:
            del self._open[id]
        if asked.error is not None:
            raise asked.error
        if not asked.done.is_set():
            raise ProtocolError(
                ErrorCode.INTERNAL_ERROR, f"the client did not answer {method} in {within:g} s"
            )
        return asked.result

    def answered(self, message: Success | Failure) -> None:
        """The client answered something; what nobody waits for (any more) is dropped."""
        asked = None if message.id is None else self._open.get(message.id)
        if asked is None or asked.done.is_set():
            return
        if isinstance(message, Failure):
            asked.fail(message.error)
        else:
            asked.result = message.result
            asked.done.set()

    def close(self) -> None:
        """The connection is over: whoever waits is told so, and nothing more can be asked."""
        self._closed = True
        for asked in self._open.values():
            if not asked.done.is_set():
                asked.fail(_gone())

    def __len__(self) -> int:
        """How many requests have no answer yet."""
        return len(self._open)


def is_no_access(error: ProtocolError) -> bool:
    """Whether a client's refusal says that there is nothing to be had from it, now or at all.

    A client that serves no resources knows none of the methods (R-13.9).
    """
    return error.code in (ErrorCode.METHOD_NOT_FOUND, ErrorCode.PERMISSION_DENIED)


def _gone() -> ProtocolError:
    return ProtocolError(ErrorCode.NOT_FOUND, "the client that has this went away")
