"""Pages of turns: the newest ones in a snapshot, older ones by cursor (R-4.26, R-9.72).

A cursor names the oldest turn that its holder has, so it stays right while turns are added, and
is refused once that turn is gone.
"""

from __future__ import annotations

import base64

from ahpd.protocol.chat import ChatState, Turn, Turns

_MARK = "before:"


def cursor_of(turn_id: str) -> str:
    """The cursor for what is older than this turn."""
    return base64.urlsafe_b64encode((_MARK + turn_id).encode()).rstrip(b"=").decode()


def turn_of(cursor: str) -> str | None:
    """The turn that a cursor names; None when it is no cursor of ours."""
    try:
        text = base64.b64decode(
            cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True
        ).decode()
    except ValueError:
        return None
    return text.removeprefix(_MARK) if text.startswith(_MARK) else None


def newest(chat: ChatState, count: int) -> ChatState:
    """The chat with about `count` of its newest turns, and a cursor when there are older ones."""
    if len(chat.turns) <= count:
        return chat
    kept = chat.turns[len(chat.turns) - count :]
    cursor = cursor_of(kept[0].id if kept else "")
    return chat.evolve(turns=Turns(kept), turns_next_cursor=cursor)


def page_before(
    chat: ChatState, cursor: str, count: int
) -> tuple[tuple[Turn, ...], str | None] | None:
    """Up to `count` turns before the cursor's, oldest first, and the cursor for those before.

    None when the cursor is not one of ours, or its turn is no longer there.
    """
    turn_id = turn_of(cursor)
    if turn_id is None:
        return None
    end = chat.turns.index_of(turn_id) if turn_id else len(chat.turns)
    if end < 0:
        return None
    start = max(0, end - count)
    page = tuple(chat.turns[start:end])
    return page, cursor_of(page[0].id) if start > 0 else None
