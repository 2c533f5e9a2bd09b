"""How a session that was kept and not loaded comes back into the tables.

What cannot be read of it is set aside, its bytes kept, and the rest serves: a chat of several is
taken out of the session, which says so; a session that lost its own state, or its only chat, is no
session any more.
"""

from __future__ import annotations

import logging

from actors.annotations import open_annotations
from actors.desk import Desk
from actors.host import Host
from actors.ledger import Channel
from actors.making import Find, free_base, supervisor_of
from actors.notices import Notices
from actors.restoring import Found, restore_session
from actors.summaries import is_worker
from ahpd.journal.port import Journal, JournalDamaged
from ahpd.protocol import session_actions as act
from ahpd.protocol.session import SessionState
from ahpd.protocol.uris import URI, annotations_of

_log = logging.getLogger("ahpd.journal")


async def wake(host: Host, journal: Journal, find: Find, uri: URI) -> Channel | None:
    """Load a session; None when it cannot be read any more. Raises `JournalFailed`.

    Nobody else may wake sessions at the same time.
    """
    kept = await journal.load(uri)
    summaries = host.catalogue or {}
    found = restore_session(kept, free_base(find, uri), host.recorder, summaries.get(uri))
    lost = [(each.key, each.uri, why) for each, why in found.damaged]
    session = found.session
    here = {each.uri for each in found.channels}
    #: Chats that the session names and that are not there.
    gone = [] if session is None else [each.resource for each in session.state.chats]
    gone = [uri for uri in gone if uri not in here]
    if session is None or all(is_worker(chat.state) for chat in found.chats):
        why = "the rest of its session cannot be read"
        lost += [(each.key, each.uri, why) for each in found.channels]
        session = None
    for key, what, why in lost:
        _log.error("%s: set aside, and its bytes kept in the journal: %s", what, why)
        try:
            await journal.set_aside(key, why)
        except JournalDamaged as error:  # its pages cannot be read at all, so they stay as they are
            _log.error("%s: left where it is: %s", what, error)
    host.dormant.remove(uri)
    if session is None:
        return None
    for channel in found.channels:
        host.ledger.admit(channel)
    if host.ledger.find(annotations_of(uri)) is None:
        host.clients.channel_closed(annotations_of(uri))
        open_annotations(host, uri, supervisor_of(session))
    Notices(host).take_back_all(found.channels)
    for what in gone:
        _take_out(host, session, found, what)
    return session


def _take_out(host: Host, session: Channel, found: Found, chat: URI) -> None:
    """A chat of it is not there any more."""
    host.clients.channel_closed(chat)
    state: SessionState = session.state
    if all(row.resource != chat for row in state.chats):
        return
    desk = Desk(host, session)
    desk.say(act.SessionChatRemovedAction(chat=chat))
    if state.default_chat == chat:
        other = next(each.uri for each in found.chats if not is_worker(each.state))
        desk.say(act.SessionDefaultChatChangedAction(default_chat=other))
