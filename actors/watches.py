"""Watches on clients' files: channels on which one client tells the others what changed.

Subscriptions and envelopes go one way only, so a client that was asked to watch says what changed
as a dispatch on the channel that it named, and the host relays it (R-24.26). Only that client may
(R-14.10). A watch is freed when nobody hears it any more, when nobody ever did for a while (R-14.2,
R-14.3), or when its client is gone: a watch that goes on after a gap would keep quiet about what
happened in between.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import trio
from msgspec import Struct

from actors.endings import close_channel
from actors.host import Host
from actors.messages import Dispatch, RelayWatch
from actors.refusal import refusal
from actors.telling import tell
from ahpd.protocol.connection import UnsubscribeParams
from ahpd.protocol.errors import ErrorCode
from ahpd.protocol.frame import frame
from ahpd.protocol.jsonrpc import notification
from ahpd.protocol.resources import ResourceWatchChangedAction
from ahpd.protocol.uris import URI
from supervisors import Actor


class WatcherGone(Struct, frozen=True):
    """The last connection of this client closed."""

    client_id: str


class LookAtWatch(Struct, frozen=True):
    """Somebody may have been the last to hear this channel, or its time to be heard is up."""

    channel: URI


Incoming: TypeAlias = Dispatch | RelayWatch | WatcherGone | LookAtWatch


class Watches(Actor[Incoming]):
    """See the module's docstring. Whose each watch is stands in `Host.watchers`."""

    kind = "watches"

    def __init__(self, host: Host) -> None:
        self._host = host

    async def on_start(self) -> None:
        """Free what should have been freed meanwhile, and be told from now on."""
        host, ref = self._host, self.ref
        host.subscriptions.on_unheard = lambda uri: (
            tell(ref, LookAtWatch(uri)) if uri in host.watchers else None
        )
        for uri, client_id in list(host.watchers.items()):
            if not host.clients.is_connected(client_id):
                self._free(uri)
            elif not host.subscriptions.of(uri):
                self.spawn(self._unused, uri, name="unused watch")

    async def handle(self, message: Incoming) -> Any:
        """One message; see the classes for what each says."""
        match message:
            case Dispatch():
                self._take(message)
            case RelayWatch():
                self._relay(message)
            case WatcherGone():
                for uri, client_id in list(self._host.watchers.items()):
                    if client_id == message.client_id:
                        self._free(uri)
            case LookAtWatch():
                uri = message.channel
                if uri in self._host.watchers and not self._host.subscriptions.of(uri):
                    self._free(uri)

    def _relay(self, message: RelayWatch) -> None:
        host, uri = self._host, message.channel
        if host.ledger.find(uri) is not None:
            raise refusal(ErrorCode.ALREADY_EXISTS, f"the channel {uri} exists already")
        if not host.clients.is_connected(message.client_id):
            raise refusal(ErrorCode.NOT_FOUND, "the client that would watch went away")
        host.ledger.open(uri, "resourceWatch", message.state, self.path)
        host.watchers[uri] = message.client_id
        self.spawn(self._unused, uri, name="unused watch")

    async def _unused(self, uri: URI) -> None:
        """Helper: the time in which somebody should have begun to listen."""
        await trio.sleep(self._host.settings.unheard_within)
        self.ref.cast(LookAtWatch(uri))

    def _take(self, dispatch: Dispatch) -> None:
        """Relay what changed; it is not kept in any state (R-14.8), so it is always news."""
        ledger, channel = self._host.ledger, dispatch.channel
        reason = self._reason(dispatch)
        dispatch.answered = True
        if reason is None:
            assert dispatch.action is not None
            ledger.append(
                channel, dispatch.action, channel.state, origin=dispatch.origin, raw=dispatch.raw
            )
        else:
            ledger.answer(
                channel, dispatch.raw, origin=dispatch.origin, asker=dispatch.asker, reason=reason
            )

    def _reason(self, dispatch: Dispatch) -> str | None:
        action = dispatch.action
        if action is None:
            return f"this action cannot be read: {dispatch.fault}"
        if not isinstance(action, ResourceWatchChangedAction):
            return "a watch only says what changed"
        if self._host.watchers.get(dispatch.channel.uri) != dispatch.origin.client_id:
            return "only the client that watches may say what changed"
        return None if action.changes.items else "nothing changed"

    def _free(self, uri: URI) -> None:
        """Nobody hears it any more; its client may stop watching, if it knows how."""
        host = self._host
        record = host.clients.find(host.watchers.pop(uri))
        channel = host.ledger.find(uri)
        if channel is not None:
            close_channel(host, channel)
        if record is not None and record.connections:
            params = UnsubscribeParams(channel=uri).wire()
            record.connections[-1].tell(frame(notification("unsubscribe", params)))
