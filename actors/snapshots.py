"""Snapshots of channels, and their text without holding up the host.

A long chat's text can take a tenth of a second and more to make, during which nobody else would be
served (hazard B53). Its completed turns never change, so they are written first, a few at a time
with others in between; the snapshot itself is then taken in one step, around the texts that are
ready.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import trio
from msgspec import Struct

from actors.ledger import Channel
from actors.paging import Window, newest
from actors.subscriptions import Subscription
from ahpd.protocol.chat import ChatState, Turn, Turns
from ahpd.protocol.jsontext import Fragment, dumps
from ahpd.protocol.model import JSON

#: Fewer turns than this are written in one go.
FEW = 64
#: Bytes that are written between two looks at the others.
PORTION = 256 << 10


class TurnTexts:
    """Texts of completed turns, by the turn itself."""

    def __init__(self) -> None:
        # The turn is kept with its text: an id may only be looked up while its owner lives.
        self._texts: dict[int, tuple[Turn, Fragment]] = {}

    async def write(self, turns: Iterable[Turn]) -> None:
        """Write these beforehand, letting others run in between. A checkpoint."""
        portion = 0
        for turn in turns:
            text = dumps(turn.wire())
            self._texts[id(turn)] = (turn, Fragment(text))
            portion += len(text)
            if portion >= PORTION:
                portion = 0
                await trio.lowlevel.checkpoint()
        await trio.lowlevel.checkpoint()

    def of(self, turn: Turn) -> JSON:
        """The turn's text, or what a text can be made of."""
        kept = self._texts.get(id(turn))
        return kept[1] if kept is not None else turn.wire()


_NONE = TurnTexts()


class Taken(Struct, frozen=True):
    """A snapshot: a state and the number of the moment when it was the channel's."""

    channel: Channel
    state: Any
    seq: int
    subscription: Subscription

    def wire(self, texts: TurnTexts = _NONE) -> JSON:
        """As the protocol spells it (R-4.18)."""
        state = self.state
        if isinstance(state, ChatState) and len(state.turns) >= FEW:
            body = state.evolve(turns=Turns()).wire()
            body["turns"] = [texts.of(turn) for turn in state.turns]
        else:
            body = state.wire()
        return {"resource": self.channel.uri, "state": body, "fromSeq": self.seq}


def take(channel: Channel, seq: int, *, turns: int | None = None, hold: float = 0.0) -> Taken:
    """A snapshot of a channel, now, at the number `seq`; of a chat perhaps its newest turns only.

    `turns` is how many are asked for (R-4.26), `hold` goes into the subscription.
    """
    state, window = channel.state, None
    if isinstance(state, ChatState) and turns is not None:
        state, start = newest(state, turns)
        window = Window(seq, start) if start else None
    return Taken(channel, state, seq, Subscription(hold, window))


async def write_ahead(channels: Iterable[Channel], turns: int | None = None) -> TurnTexts:
    """The texts of what snapshots of these channels will hold. A checkpoint if it takes long."""
    texts = TurnTexts()
    for channel in channels:
        state = channel.state
        if isinstance(state, ChatState) and len(state.turns) >= FEW:
            await texts.write((state if turns is None else newest(state, turns)[0]).turns)
    return texts
