"""Channel URIs, as exact strings.

They never pass through a library that normalises: ``ahp-root://`` with its empty authority would
not survive one. A URI is opaque to whoever did not choose it (R-3.1); the few that the protocol
fixes, and the few that this host chooses, are made and recognised here.
"""

from __future__ import annotations

import base64
from typing import Literal, TypeAlias

URI: TypeAlias = str

#: Kinds of channels that carry state, as reducers and the protocol's cases name them.
ChannelKind: TypeAlias = Literal[
    "root",
    "session",
    "chat",
    "terminal",
    "changeset",
    "annotations",
    "resourceWatch",
    "automation",
    "automationRun",
    "canvas",
]

ROOT: URI = "ahp-root://"
AUTOMATIONS: URI = "ahp-automations://"

#: Other spellings that clients use for fixed channels (R-3.13, and ``ahp-root:`` on resources).
_ALIASES: dict[URI, URI] = {"ahp-root:": ROOT, "ahp-automations://catalog": AUTOMATIONS}

_DEFAULT_CHAT = "ahp-chat://default/"
_ANNOTATIONS = "/annotations"


def canonical(uri: URI) -> URI:
    """The URI under which the host keeps a channel; only aliases of fixed channels change."""
    return _ALIASES.get(uri, uri)


def default_chat(session: URI) -> URI:
    """The URI of a session's default chat, which clients compute for themselves (R-3.11)."""
    return _DEFAULT_CHAT + _base64url(session)


def default_chat_session(chat: URI) -> URI | None:
    """The session whose default chat this URI names, or None when it names no default chat."""
    if not chat.startswith(_DEFAULT_CHAT):
        return None
    encoded = chat[len(_DEFAULT_CHAT) :]
    try:
        session = base64.b64decode(
            encoded + "=" * (-len(encoded) % 4), altchars=b"-_", validate=True
        ).decode()
    except ValueError:  # not base64, or not UTF-8
        return None
    return session if default_chat(session) == chat else None


def worker_chat(session: URI, tool_call_id: str) -> URI:
    """The URI of the chat in which a tool call's worker talks; the authority marks it."""
    return f"ahp-chat://subagent/{_base64url(session)}/{_base64url(tool_call_id)}"


def annotations_of(session: URI) -> URI:
    """The annotations channel of a session (R-3.8)."""
    return session + _ANNOTATIONS


def annotations_session(uri: URI) -> URI | None:
    """The session of an annotations channel, or None when the URI names none."""
    return uri.removesuffix(_ANNOTATIONS) if uri.endswith(_ANNOTATIONS) else None


def scheme(uri: URI) -> str:
    """What stands before the first colon; empty when there is none."""
    head, colon, _ = uri.partition(":")
    return head if colon else ""


def _base64url(text: str) -> str:
    """Without padding. Lone surrogates, which no URI holds, are kept apart rather than raise."""
    return base64.urlsafe_b64encode(text.encode("utf-8", "surrogatepass")).rstrip(b"=").decode()
