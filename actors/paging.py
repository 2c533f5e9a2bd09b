"""Pages of turns: the newest ones in a snapshot, older ones by cursor (R-4.26, R-9.72).

A cursor names the oldest turn that its holder has, so it stays right while turns are added, and
is refused once that turn is gone.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable

from msgspec import Struct

from actors.ledger import Channel, Ledger
from ahpd.protocol.chat import ChatState, Turn, Turns
from ahpd.protocol.chat_actions import ChatTurnsLoadedAction
from supervisors import Reject

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


def newest(chat: ChatState, count: int) -> tuple[ChatState, int]:
    """The chat with about `count` of its newest turns, and where in the chat they start.

    It has a cursor when there are older ones. At least one is given: the last turn may be resumed,
    and whoever does not have it cannot follow that.
    """
    start = len(chat.turns) - max(count, 1)
    if start <= 0:
        return chat, 0
    kept = chat.turns[start:]
    return chat.evolve(turns=Turns(kept), turns_next_cursor=cursor_of(kept[0].id)), start


class Page(Struct, frozen=True):
    """Turns of a chat: those from `start` on, before `end`. `older` is the cursor for the rest."""

    turns: tuple[Turn, ...]
    start: int
    end: int
    older: str | None


def page_before(chat: ChatState, cursor: str, count: int) -> Page | None:
    """Up to `count` turns before the cursor's, oldest first.

    None when the cursor is not one of ours, or its turn is no longer there.
    """
    turn_id = turn_of(cursor)
    end = chat.turns.index_of(turn_id) if turn_id else -1
    if end < 0:
        return None
    start = max(0, end - count)
    turns = tuple(chat.turns[start:end])
    return Page(turns, start, end, cursor_of(turns[0].id) if start > 0 else None)


def page_to(chat: ChatState, turn_id: str | None) -> Page | None:
    """What those who hold only newer turns need before the turns after this one are taken away.

    None for the turn: before all of them are. It is a page that fits whatever they hold; None when
    they need nothing, as everybody has the last turn.
    """
    end = len(chat.turns)
    if turn_id is None:
        return Page((), 0, end, None) if end > 1 else None
    start = chat.turns.index_of(turn_id)
    if not 0 <= start < end - 1:
        return None
    return Page((chat.turns[start],), start, end, cursor_of(turn_id) if start > 0 else None)


def say_older(ledger: Ledger, channel: Channel, cursor: str, count: int) -> None:
    """Say up to `count` turns before `cursor`; raises `Reject` when that leads nowhere."""
    page = page_before(channel.state, cursor, count)
    if page is None:
        raise Reject(f"the chat has no turns behind the cursor {cursor}")
    _say(ledger, channel, page)


def say_up_to(ledger: Ledger, channel: Channel, turn_id: str | None) -> None:
    """Before turns after one are taken away, show it to those who hold newer ones (R-9.69).

    What lies between is not worth sending: it goes with the very next envelope.
    """
    page = page_to(channel.state, turn_id)
    if page is not None:
        _say(ledger, channel, page)


def _say(ledger: Ledger, channel: Channel, page: Page) -> None:
    """Those who hold everything are told no cursor."""
    turns = page.turns
    ledger.append(
        channel,
        ChatTurnsLoadedAction(turns=turns),
        channel.state,
        windowed=ChatTurnsLoadedAction(turns=turns, turns_next_cursor=page.older),
        page=(page.start, page.end),
    )


class Window:
    """Which turns of a chat a subscriber holds: all from some place on.

    A page goes to all subscribers (R-9.73), but one that would leave a hole in what a subscriber
    holds, or that holds nothing new for it and an older cursor, is not for that one.
    """

    def __init__(self, seq: int, start: int) -> None:
        #: (number, place): from that number on, the subscriber holds the turns from that place on.
        self.steps = [(seq, start)]

    @classmethod
    def of(cls, steps: Iterable[tuple[int, int]]) -> Window:
        """One with the steps of another."""
        first, *more = steps
        made = cls(*first)
        made.steps += more
        return made

    @property
    def start(self) -> int:
        """The place of the oldest turn that it holds."""
        return self.steps[-1][1]

    def takes(self, seq: int, start: int, end: int) -> bool:
        """Whether the page of that number is for this subscriber, which then holds it too."""
        if not start < self.start <= end:
            return False
        self.steps.append((seq, start))
        return True

    def as_of(self, seen: float) -> Window:
        """What is held by a client that has seen up to this number."""
        first, *more = self.steps
        return Window.of([first, *(step for step in more if step[0] <= seen)])
