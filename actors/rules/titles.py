"""What sessions and chats may be titled (R-8.33, R-8.34)."""

from __future__ import annotations

#: Longest title, in characters. It is in every list, and told to all who read one.
LONGEST = 1000


def title_fault(title: str) -> str | None:
    """Why a client may not give this title; None when it may."""
    if not title.strip():
        return "a title must not be blank"
    if len(title) > LONGEST:
        return f"a title has at most {LONGEST} characters, not {len(title)}"
    return None


def cut(title: str) -> str:
    """An agent's title, which cannot be refused, short enough."""
    return title if len(title) <= LONGEST else title[: LONGEST - 1] + "…"
