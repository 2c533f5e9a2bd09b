"""Collects sessions that were opened and never used, if it is told to (`Settings.drafts_after`).

Clients make a session before anybody has written a word, and some never end it. One of those is
ended here when it has been unused, and heard by nobody, for the whole time that is set. It is off
unless set, and it judges by what is in memory alone: a session that could not be read, or that did
not come up, is never taken for an unused one (hazard B29).
"""

from __future__ import annotations

import trio

from actors.host import Host
from actors.ledger import Channel
from actors.messages import CollectDraft
from actors.telling import tell
from ahpd.protocol.annotations import AnnotationsState
from ahpd.protocol.chat import ChatState
from ahpd.protocol.session import SessionState
from ahpd.protocol.uris import URI
from supervisors import Actor

#: How often it looks in the time that is set.
LOOKS = 4


class Drafts(Actor[None]):
    """See the module's docstring."""

    kind = "drafts"

    def __init__(self, host: Host) -> None:
        self._host = host

    async def on_start(self) -> None:
        """Look from now on; what an earlier incarnation saw unused gets the whole time again."""
        after = self._host.settings.drafts_after
        if after is not None:
            self.spawn(self._look, after, name="looks")

    async def handle(self, message: None) -> None:
        """It is told nothing."""

    async def _look(self, after: float) -> None:
        """Helper: find out since when which sessions are unused, and name those whose time is up.

        The catalogue ends them, after a look of its own in the same step.
        """
        since: dict[URI, float] = {}
        while True:
            await trio.sleep(after / LOOKS)
            now = trio.current_time()
            sessions = [c for c in self._host.ledger.channels.values() if c.kind == "session"]
            since = {c.uri: since.get(c.uri, now) for c in sessions if is_unused(self._host, c)}
            for uri, seen in since.items():
                if now - seen >= after:
                    tell(self.find("catalogue"), CollectDraft(uri))


def is_unused(host: Host, session: Channel) -> bool:
    """Whether nobody has ever done anything in a session, and nobody hears it or takes part."""
    state: SessionState = session.state
    if state.lifecycle != "ready" or state.title or state.active_clients or len(state.chats) != 1:
        return False
    inside = host.ledger.channels_of(session.uri)
    if any(host.subscriptions.of(channel.uri) for channel in (session, *inside)):
        return False
    return not any(_has_content(channel) for channel in inside)


def _has_content(channel: Channel) -> bool:
    match channel.state:
        case ChatState() as chat:
            kept = (chat.active_turn, chat.steering_message, chat.queued_messages, chat.draft)
            return bool(channel.used or chat.turns) or any(kept)
        case AnnotationsState(annotations=annotations):
            return bool(annotations)
        case _:
            return True
