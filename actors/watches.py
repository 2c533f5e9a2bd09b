"""Watches on files: how they begin and end, and those on clients' files.

What changes in files of this machine is said by an actor for each watch (`actors.watch`). For files
of a client it is that client that says so: subscriptions and envelopes go one way only, so a client
that was asked to watch says what changed as a dispatch on the channel that it named, and the host
relays it (R-24.26). Only that client may (R-14.10).

A watch is freed when nobody hears it any more, when nobody ever did for a while (R-14.2, R-14.3) or
until its client was gone. On a client's own files that is also so when others hear it: a watch that
goes on after a gap would keep quiet about what happened in between.
"""

from __future__ import annotations

import logging
from contextlib import suppress
from typing import Any, TypeAlias

import trio
from msgspec import Struct

from actors.endings import close_channel
from actors.host import Host, OwnWatch
from actors.messages import Dispatch, OpenWatch, RelayWatch, WatchFailed
from actors.refusal import refusal
from actors.telling import tell
from actors.watch import path_of, watch_spec
from ahpd.protocol.connection import UnsubscribeParams
from ahpd.protocol.errors import ErrorCode
from ahpd.protocol.frame import frame
from ahpd.protocol.jsonrpc import notification
from ahpd.protocol.resources import (
    ResourceChange,
    ResourceChanges,
    ResourceWatchChangedAction,
)
from ahpd.protocol.uris import URI
from supervisors import Actor, SupervisorsError

_log = logging.getLogger("ahpd.resources")


class WatcherGone(Struct, frozen=True):
    """The last connection of this client closed."""

    client_id: str


class LookAtWatch(Struct, frozen=True):
    """Somebody may have been the last to hear this channel, or its time to be heard is up."""

    channel: URI


Incoming: TypeAlias = Dispatch | OpenWatch | RelayWatch | WatcherGone | LookAtWatch | WatchFailed


class Watches(Actor[Incoming]):
    """See the module's docstring. Whose each watch is stands in `Host.watchers`."""

    kind = "watches"

    def __init__(self, host: Host) -> None:
        self._host = host

    async def on_start(self) -> None:
        """Free what should have been freed meanwhile, and be told from now on."""
        host, ref = self._host, self.ref
        host.subscriptions.on_unheard = lambda uri: (
            tell(ref, LookAtWatch(uri)) if self._is_watch(uri) else None
        )
        for uri, own in list(host.own_watches.items()):
            if not host.subscriptions.of(uri):
                if host.clients.is_connected(own.client_id):
                    self.spawn(self._unused, uri, name="unused watch")
                else:
                    self._end(uri)
        self._stop_others()
        await self._start_missing()
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
            case OpenWatch():
                await self._open(message)
            case WatchFailed():
                self._give_up(message.path)
            case WatcherGone():
                for uri, client_id in list(self._host.watchers.items()):
                    if client_id == message.client_id:
                        self._free(uri)
                for uri, own in list(self._host.own_watches.items()):
                    if own.client_id == message.client_id:
                        self._look(uri)
            case LookAtWatch():
                self._look(message.channel)

    def _is_watch(self, uri: URI) -> bool:
        return uri in self._host.watchers or uri in self._host.own_watches

    def _look(self, uri: URI) -> None:
        """Free a watch that nobody hears."""
        if self._host.subscriptions.of(uri):
            return
        if uri in self._host.watchers:
            self._free(uri)
        elif uri in self._host.own_watches:
            self._end(uri)

    # ---- on files of this machine -------------------------------------------------------------

    async def _open(self, message: OpenWatch) -> None:
        """Make the channel, and the actor that says what changes."""
        host, uri = self._host, message.channel
        if not host.clients.is_connected(message.client_id):
            message.watched.close()
            raise refusal(ErrorCode.NOT_FOUND, "the client that would watch went away")
        number = str(self.system.number())
        host.own_watches[uri] = OwnWatch(message.watched, message.client_id, number)
        host.ledger.open(uri, "resourceWatch", message.state, self.path)
        await self._start(uri)
        self.spawn(self._unused, uri, name="unused watch")

    async def _start(self, uri: URI) -> None:
        own = self._host.own_watches[uri]
        watches = self.system.supervisor("watch")
        with suppress(SupervisorsError):  # it failed at once and is parked, or all stops
            await watches.start_child(watch_spec(self._host, own.number, uri))

    async def _start_missing(self) -> None:
        """Watches without actors get them: this actor failed, or all of theirs did."""
        await self.system.registry.wait_for("watch")
        running = {child.id for child in self.system.supervisor("watch").which_children()}
        for uri, own in list(self._host.own_watches.items()):
            if own.number not in running:
                await self._start(uri)

    def _stop_others(self) -> None:
        """Actors of watches that have ended: this one failed before they did."""
        wanted = {own.number for own in self._host.own_watches.values()}
        for child in self.system.supervisor("watch").which_children():
            if child.id not in wanted:
                self.spawn(self._stop, child.id, name="end of a watch")

    def _end(self, uri: URI) -> None:
        """The kernel need not watch any more."""
        host = self._host
        own = host.own_watches.pop(uri)
        own.watched.close()
        channel = host.ledger.find(uri)
        if channel is not None:
            close_channel(host, channel)
        self.spawn(self._stop, own.number, name="end of a watch")

    async def _stop(self, number: str) -> None:
        """Helper: stop a watch's actor, and forget it."""
        watches = self.system.supervisor("watch")
        with suppress(SupervisorsError):
            await watches.stop_child(number, "nobody listens")

    def _give_up(self, path: str) -> None:
        """It ends, and is not just silent: whoever hears it should look for themselves."""
        host = self._host
        for uri, own in list(host.own_watches.items()):
            channel = host.ledger.find(uri)
            if path_of(own.number) == path and channel is not None:
                root = channel.state.root
                _log.error("%s failed too often: the watch on %s ends", path, root)
                changes = ResourceChanges(items=(ResourceChange(uri=root, type="updated"),))
                action = ResourceWatchChangedAction(changes=changes)
                host.ledger.append(channel, action, channel.state)
                self._end(uri)

    # ---- on clients' files --------------------------------------------------------------------

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
        if dispatch.channel.uri in self._host.own_watches:
            return "what changes in the files of this machine is the host's to say"
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
