"""`Dormant`: sessions that are kept in the journal and not loaded, because nobody has asked yet.

They are in lists, from their summaries. Everything else about them is loaded when a client names
one of their channels, or at the start when something was under way in them.
"""

from __future__ import annotations

from collections.abc import Iterable

from ahpd.journal.port import KeptSession
from ahpd.protocol.model import JSON
from ahpd.protocol.uris import URI, canonical


class Dormant:
    """See the module."""

    def __init__(self, sessions: Iterable[KeptSession] = ()) -> None:
        self._channels: dict[URI, tuple[URI, ...]] = {}
        self._owners: dict[URI, URI] = {}
        #: Those that have something under way, in the order in which they were made.
        self.busy: list[URI] = []
        for session in sessions:
            self._channels[session.uri] = tuple(session.channels)
            self._owners.update(dict.fromkeys(session.channels, session.uri))
            if session.is_busy:
                self.busy.append(session.uri)

    def __bool__(self) -> bool:
        """Whether there are any."""
        return bool(self._channels)

    def __contains__(self, session: URI) -> bool:
        """Whether this session is one of them."""
        return session in self._channels

    def owner_of(self, uri: URI) -> URI | None:
        """The one that this channel is, or belongs to."""
        return self._owners.get(canonical(uri))

    def named_in(self, value: JSON) -> set[URI]:
        """Those of which some channel is named anywhere in what a client says."""
        found: set[URI] = set()
        left = [value]
        while left:
            match left.pop():
                case str() as text:
                    owner = self.owner_of(text)
                    if owner is not None:
                        found.add(owner)
                case dict() as each:
                    left += each.values()
                case list() as each:
                    left += each
        return found

    def add(self, session: URI, channels: Iterable[URI]) -> None:
        """Another one, with these channels besides its own."""
        self._channels[session] = (session, *channels)
        self._owners.update(dict.fromkeys(self._channels[session], session))

    def remove(self, session: URI) -> None:
        """It is loaded now, or gone."""
        for uri in self._channels.pop(session, ()):
            self._owners.pop(uri, None)
        if session in self.busy:
            self.busy.remove(session)
