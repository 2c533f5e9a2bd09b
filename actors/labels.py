"""`Labels`: what is known of whoever writes a log line: channel, number, client, turn."""

from __future__ import annotations

from collections.abc import Mapping

from actors.connection import Connection
from actors.host import Host
from actors.ledger import Channel
from actors.messages import Dispatch
from ahpd.protocol.chat import ChatState
from supervisors.whereabouts import Whereabouts

#: Paths whose channels are remembered, so that they need not be looked for at each line.
_REMEMBERED = 1000


class Labels:
    """Looks at the tables when a line is written, and costs nothing before."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._channels: dict[str, Channel] = {}

    def __call__(self, where: Whereabouts) -> Mapping[str, str | int]:
        """By name, those that are known: `channel`, `number`, `client`, `turn`. Sync."""
        found: dict[str, str | int] = {}
        client = _client_of(where)
        channel = self._channel_of(where)
        if channel is not None:
            found["channel"] = channel.uri
            found["number"] = channel.seq
        if client is not None:
            found["client"] = client
        state = channel.state if channel is not None else None
        if isinstance(state, ChatState) and state.active_turn is not None:
            found["turn"] = state.active_turn.id
        return found

    def _channel_of(self, where: Whereabouts) -> Channel | None:
        if isinstance(where.message, Dispatch):
            return where.message.channel
        found = self._channels.get(where.path)
        if found is not None and found.path == where.path and not found.closed:
            return found
        # A worker's chat has the path of the chat that it works for, which was there before.
        of_path = (each for each in self._host.ledger.channels.values() if each.path == where.path)
        channel = next(of_path, None)
        if channel is None:
            return None
        if len(self._channels) >= _REMEMBERED:
            self._channels.clear()
        self._channels[where.path] = channel
        return channel


def _client_of(where: Whereabouts) -> str | None:
    if isinstance(where.message, Dispatch):
        return where.message.origin.client_id
    return where.actor.client_id if isinstance(where.actor, Connection) else None
