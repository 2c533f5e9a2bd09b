"""What stands in a session's `_meta`, and who says it: each of its chats' agents."""

from __future__ import annotations

from actors.desk import Desk
from actors.host import Host
from actors.ledger import Channel
from ahpd.protocol.model import Object
from ahpd.protocol.session_actions import SessionMetaChangedAction


def set_meta(host: Host, session: Channel, source: str, meta: Object | None) -> None:
    """What one source has to say from now on; None: nothing any more.

    The whole is made of all sources each time, or they would erase each other (R-8.39). Where two
    name the same key, the later by name counts.
    """
    metas = dict(session.notes.metas)
    if meta is None:
        if metas.pop(source, None) is None:
            return
    else:
        metas[source] = meta
    session.note(metas=metas)
    whole = {key: value for each in sorted(metas) for key, value in metas[each].items()}
    Desk(host, session).say(SessionMetaChangedAction(meta=whole or None))
