"""How far a request is, told to the connection that made it and asked to be told (R-7.47)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from ahpd.protocol.frame import frame
from ahpd.protocol.jsonrpc import notification
from ahpd.protocol.root import ProgressParams
from ahpd.protocol.uris import ROOT

if TYPE_CHECKING:
    from actors.connection import Connection


class Progress:
    """The frames of one request; without a token there are none."""

    def __init__(self, connection: Connection, token: str | None, total: int) -> None:
        self._connection = connection
        self._token = token
        self._total = total

    def at(self, step: int, message: str) -> None:
        """The request is at this step of `total` now."""
        if self._token is None:
            return
        params = ProgressParams(
            channel=ROOT,
            progress_token=self._token,
            progress=step,
            total=self._total,
            message=message,
        )
        self._connection.post(frame(notification("root/progress", params.wire())))


@contextmanager
def progress(
    connection: Connection, token: str | None, total: int, done: str
) -> Iterator[Progress]:
    """The progress of what the block does, with its closing frame, however the block ends.

    A token is free again when the request is answered (R-8.14), so the frame that closes it comes
    before that, a failure's too (R-7.50, R-7.52).
    """
    told = Progress(connection, token, total)
    message = "Failed"
    try:
        yield told
        message = done
    finally:
        told.at(total, message)
