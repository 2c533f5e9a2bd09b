"""Finding the chat that a command is about."""

from __future__ import annotations

from typing import Any

import trio

from ahpd.cli.group import Unusable
from ahpd.cli.shown import line
from ahpd.client import Client
from ahpd.protocol import ErrorCode, ProtocolError
from ahpd.protocol.session import SessionState
from ahpd.protocol.uris import URI

#: Seconds that a new session may take to get ready.
READY_WITHIN = 60.0


async def subscribed(client: Client, uri: URI) -> Any:
    """The state of a channel that somebody named. Raises `Unusable` when there is none."""
    try:
        store = await client.subscribe(uri)
    except ProtocolError as error:
        if error.code not in (ErrorCode.SESSION_NOT_FOUND, ErrorCode.NOT_FOUND):
            raise
        raise Unusable(f"there is no session {line(uri)}; see: ahpd sessions") from None
    return None if store is None else store.confirmed


async def joined(client: Client, uri: URI) -> SessionState:
    """A session that somebody named, once it is ready or has failed. Raises `Unusable`."""
    if not isinstance(await subscribed(client, uri), SessionState):
        raise Unusable(f"{line(uri)} is no session; see: ahpd sessions")
    with trio.move_on_after(READY_WITHIN):
        return await client.until(uri, _settled)
    raise Unusable(f"the session {line(uri)} is not ready after {READY_WITHIN:g} s")


def _settled(session: Any) -> Any:
    return None if session.lifecycle == "creating" else session
