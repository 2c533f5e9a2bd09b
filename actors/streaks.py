"""Streaks: events of an agent's that follow each other and are pieces of one text.

An agent mostly streams text, many small pieces at once. Each is an envelope of its own, but the
state goes on by all of them in one step, which is most of what a piece would cost otherwise.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from typing import Any

from actors.hearing import Hearing
from ahpd.agents.events import Event, TextChunk, ThoughtChunk
from ahpd.protocol.jsontext import ParseError


def hear_all(
    hearing: Hearing,
    events: Sequence[Event],
    listens: Callable[[], bool],
    on_fault: Callable[[ParseError], None],
) -> None:
    """Hear what an agent said in its turn, or beside it once nobody `listens` to that any more."""
    for streak in streaks(events):
        if len(streak) > 1 and listens() and _hears_text(hearing, streak):
            continue
        for event in streak:
            if not listens():
                hearing.hear_beside(event)
                continue
            try:
                hearing.hear(event)
            except ParseError as error:
                on_fault(error)


def _hears_text(hearing: Hearing, streak: Sequence[Any]) -> bool:
    try:
        return hearing.hear_text(streak)
    except ParseError:
        return False  # one of them: which, is found one by one


def streaks(events: Sequence[Event]) -> Iterator[Sequence[Event]]:
    """The events in order: neighbours that are text of one kind together, others alone.

    The first piece may begin a part, so it stands alone too.
    """
    for kind, group in groupby(events, type):
        if kind is TextChunk or kind is ThoughtChunk:
            pieces = list(group)
            yield pieces[:1]
            if len(pieces) > 1:
                yield pieces[1:]
        else:
            for event in group:
                yield (event,)
