"""What clients may call the sessions and chats they make, and the folders they name (RULES 3).

Channel URIs are opaque (R-3.1), and the scheme of a session or chat is its maker's to choose. What
is refused is no URI at all, or names something else already: a file, another kind of channel, or a
channel that clients compute from the URI of a session (R-3.8, R-3.11), which would keep a session
that is made later from having its own.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from ahpd.protocol.faults import shown
from ahpd.protocol.uris import URI, default_chat_session, scheme

#: Longest URI that is taken, in characters: it is in every envelope of its channel.
LONGEST = 2048

#: RFC 3986: a scheme, and something after it that is more than slashes.
_WHOLE = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:/*[^/].*", re.DOTALL)
#: Schemes of what is no channel.
_RESOURCES = frozenset({"file", "http", "https", "ws", "wss", "data", "mcp"})
#: Schemes of channels of other kinds that do not begin like the protocol's own.
_TERMINALS = "agenthost-terminal"
#: Chats whose URIs the host and its clients compute: `uris.default_chat`, `uris.worker_chat`.
_COMPUTED = ("ahp-chat://default/", "ahp-chat://subagent/")


def session_name_fault(uri: URI) -> str | None:
    """Why no session can have this URI, to be read after the word `channel`; None when it can."""
    return _fault(uri, "ahp-session", "session")


def is_provider_name(name: str) -> bool:
    """Whether sessions can have an agent's name as their scheme, as clients write them."""
    return session_name_fault(f"{name}:/x") is None


def chat_name_fault(uri: URI, session: URI, providers: Sequence[str]) -> str | None:
    """Why no chat of `session` can have this URI; `providers` are schemes of sessions."""
    if uri.startswith(_COMPUTED):
        if default_chat_session(uri) == session:
            return None
        return f"{shown(uri)} is reserved: it is computed from another session, or for a worker"
    wrong = _fault(uri, "ahp-chat", "chat")
    if wrong is None and scheme(uri).lower() in providers:
        return f"{shown(uri)} names a session, not a chat"
    return wrong


def terminal_name_fault(uri: URI) -> str | None:
    """Why no terminal can have this URI; None when it can (R-24.17: its client chooses)."""
    if scheme(uri).lower() == _TERMINALS:
        return _no_uri(uri)
    return _fault(uri, "ahp-terminal", "terminal")


def _fault(uri: URI, own_scheme: str, kind: str) -> str | None:
    wrong = _no_uri(uri)
    if wrong is not None:
        return wrong
    head = scheme(uri).lower()
    if head in _RESOURCES:
        return f"{shown(uri)} names a resource, not a {kind}"
    if head == _TERMINALS or (head.startswith("ahp-") and head != own_scheme):
        return f"{shown(uri)} names another kind of channel, not a {kind}"
    if uri.endswith("/annotations") or "/changeset/" in uri:
        return f"{shown(uri)} is reserved: it is computed from the session it begins with"
    return None


def _no_uri(uri: URI) -> str | None:
    if len(uri) > LONGEST:
        return f"a URI has at most {LONGEST} characters, not {len(uri)}"
    if _WHOLE.fullmatch(uri) is None:
        return f"{shown(uri)} is no URI: a scheme, a colon and a name are needed"
    if not uri.isprintable():
        return f"{shown(uri)} is no URI: there is a control character in it"
    return None


def folder_fault(uri: URI) -> str | None:
    """Why this cannot be a working directory; None when it can.

    Whether it is there, and what to make of other schemes than `file:`, is its agent's to say.
    """
    head, _, rest = uri.partition(":")
    if head.lower() != "file":
        return _no_uri(uri)
    if len(uri) > LONGEST or not uri.isprintable():
        return _no_uri(uri)
    # file:///srv or file:/srv, and one host that is this one.
    path = rest.removeprefix("//").removeprefix("localhost") if rest.startswith("//") else rest
    if not path.startswith("/"):
        return f"{shown(uri)} names no folder of this machine: an absolute path is needed"
    return None


def folders_fault(uris: Sequence[URI] | None) -> str | None:
    """The same of several, with the place of the first that cannot be one."""
    for place, uri in enumerate(uris or ()):
        wrong = folder_fault(uri)
        if wrong is not None:
            return f"[{place}]: {wrong}"
    return None
