"""Who hears what: `Subscriptions`, and the `Listener` that a connection is to the rest of the host.

Invariant: the two directions agree, and a subscription exists only for an open channel or a
stateless one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Protocol

from msgspec import Struct

from actors.credentials import Credentials
from actors.ledger import Entry
from actors.paging import Window
from actors.reverse import Reverse
from ahpd.protocol.frame import Frame
from ahpd.protocol.model import JSON
from ahpd.protocol.uris import URI


class Subscription(Struct, frozen=True, eq=False):
    """How one connection hears one channel.

    `hold` is how many seconds its envelopes may be held back (R-4.22); `window`, which turns it
    holds of a chat of which it was given only the newest.
    """

    hold: float = 0.0
    window: Window | None = None

    def text_of(self, entry: Entry) -> bytes | None:
        """An envelope's text as this subscriber gets it; None when it is not for it."""
        if self.window is None or entry.page is None:
            return entry.params
        return entry.windowed if self.window.takes(entry.seq, *entry.page) else None

    def frame_of(self, entry: Entry) -> Frame | None:
        """As `text_of`, as a whole frame."""
        text = self.text_of(entry)
        if text is None or text is entry.params:
            return None if text is None else entry.frame
        return entry.windowed_frame()


class Listener(Protocol):
    """A connection as the sequencer sees it. Everything here is sync and never fails."""

    #: The client's id; None before the handshake.
    client_id: str | None
    #: It negotiated a version that does not know what 1.0.0 added to summaries (R-2.14).
    is_old: bool

    @property
    def backlog(self) -> int:
        """Bytes that wait to be written to it."""
        ...

    def hear(self, entry: Entry, subscription: Subscription) -> None:
        """An envelope of a channel it is subscribed to."""
        ...

    def flush(self) -> None:
        """That was all for now: what it heard may go out."""
        ...

    def tell(self, frame: Frame) -> None:
        """A frame that is no envelope: a notification."""
        ...


class Peer(Listener, Protocol):
    """A connection as the rest of the host sees it."""

    #: What the host asks its client.
    reverse: Reverse
    #: Settings of the host that are about this connection alone.
    settings: dict[str, JSON]
    #: Tokens that its client handed over.
    credentials: Credentials


class Subscriptions:
    """Every subscription of every connection."""

    def __init__(self) -> None:
        #: Told each channel that nobody hears any more. Sync; never fails.
        self.on_unheard: Callable[[URI], None] = _nobody_asks
        self._by_channel: dict[URI, dict[Listener, Subscription]] = {}
        self._by_listener: dict[Listener, dict[URI, None]] = {}

    def add(self, listener: Listener, uri: URI, subscription: Subscription) -> None:
        """Subscribe; a second time replaces how (a set, hazard B26)."""
        self._by_channel.setdefault(uri, {})[listener] = subscription
        self._by_listener.setdefault(listener, {})[uri] = None

    def remove(self, listener: Listener, uri: URI) -> bool:
        """Unsubscribe; False when it was not subscribed."""
        listeners = self._by_channel.get(uri)
        if listeners is None or listener not in listeners:
            return False
        del listeners[listener]
        if not listeners:
            del self._by_channel[uri]
        mine = self._by_listener[listener]
        del mine[uri]
        if not mine:
            del self._by_listener[listener]
        if not listeners:
            self.on_unheard(uri)
        return True

    def remove_listener(self, listener: Listener) -> list[URI]:
        """The connection is gone; the channels it heard."""
        uris = list(self._by_listener.get(listener, ()))
        for uri in uris:
            self.remove(listener, uri)
        return uris

    def remove_channel(self, uri: URI) -> None:
        """The channel is gone; nobody hears it any more (R-4.41)."""
        for listener in list(self._by_channel.get(uri, ())):
            self.remove(listener, uri)

    def find(self, listener: Listener, uri: URI) -> Subscription | None:
        """How this connection hears that channel, if it does."""
        return self._by_channel.get(uri, {}).get(listener)

    def of(self, uri: URI) -> dict[Listener, Subscription]:
        """Who hears that channel; not to be changed."""
        return self._by_channel.get(uri, _NOBODY)

    def heard_by(self, listener: Listener) -> Iterator[URI]:
        """The channels that this connection hears."""
        return iter(self._by_listener.get(listener, ()))


def _nobody_asks(_: URI) -> None:
    """Until somebody wants to know."""


_NOBODY: dict[Listener, Subscription] = {}
