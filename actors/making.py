"""How a session comes into the tables: its channels, and the word to those who list sessions.

Everything here is one sync step. Who starts the actors is the catalogue, which looks for sessions
without them, so nothing is lost when it fails in between.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, TypeAlias

from actors.annotations import open_annotations
from actors.host import Host
from actors.ledger import Channel
from actors.summaries import older_summary, session_summary
from ahpd.protocol.root import SessionAddedParams
from ahpd.protocol.session import SessionState
from ahpd.protocol.uris import ROOT, URI
from supervisors import Ref

#: Finds the actor at a path.
Find: TypeAlias = Callable[[str], Ref[Any]]


def open_session(host: Host, find: Find, uri: URI, state: SessionState) -> Channel:
    """The channels of a session that is made now, its chats apart."""
    base = free_base(find, uri)
    channel = host.ledger.open(uri, "session", state, f"{base}/session")
    open_annotations(host, uri, base)
    return channel


def supervisor_of(session: Channel) -> str:
    """The path of the supervisor of a session and all that belongs to it."""
    return session.path.rpartition("/")[0]


def supervisor_id(session: Channel) -> str:
    """The id of that supervisor among those of all sessions."""
    return supervisor_of(session).rpartition("/")[2]


def announce(host: Host, session: Channel, now: str) -> None:
    """The session is in lists from now on (R-8.5)."""
    assert host.catalogue is not None, "stored sessions are still being read"
    summary = session_summary(session.uri, session.state, now)
    host.catalogue[session.uri] = summary
    session.note(summary=summary)
    host.notify(
        "root/sessionAdded",
        SessionAddedParams(channel=ROOT, summary=summary),
        SessionAddedParams(channel=ROOT, summary=older_summary(summary)),
    )


def chat_path(session: Channel) -> str:
    """A path for one more chat of a session, which none of its chats has had."""
    number = session.notes.chats_made
    session.note(chats_made=number + 1)
    return f"{supervisor_of(session)}/chat/{number}"


def free_base(find: Find, uri: URI) -> str:
    """A path for a session's supervisor: the end of the URI, and a number when an actor has it."""
    wanted = re.sub(r"[^A-Za-z0-9._-]+", "-", uri.partition(":")[2]).strip("-")[-36:] or "s"
    name, number = wanted, 1
    while find(f"session/{name}").cell is not None:
        number += 1
        name = f"{wanted}~{number}"
    return f"session/{name}"
