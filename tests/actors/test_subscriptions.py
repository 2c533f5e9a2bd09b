"""Who hears what: the two directions of the table always agree."""

from __future__ import annotations

from random import Random

import pytest

from actors.ledger import Entry
from actors.subscriptions import Subscription, Subscriptions
from ahpd.protocol.frame import Frame


class Ear:
    client_id: str | None = None
    is_old = False

    backlog = 0

    def hear(self, entry: Entry, subscription: Subscription) -> None:
        """Nothing."""

    def flush(self) -> None:
        """Nothing."""

    def tell(self, frame: Frame) -> None:
        """Nothing."""


@pytest.mark.parametrize("seed", range(5))
def test_it_is_a_set_in_both_directions(seed: int) -> None:
    dice = Random(seed)
    table, ears, uris = Subscriptions(), [Ear() for _ in range(4)], list("abcd")
    model: set[tuple[Ear, str]] = set()
    for _ in range(400):
        ear, uri = dice.choice(ears), dice.choice(uris)
        match dice.randrange(8):
            case 0:
                table.remove_listener(ear)
                model -= {pair for pair in model if pair[0] is ear}
            case 1:
                table.remove_channel(uri)
                model -= {pair for pair in model if pair[1] == uri}
            case 2 | 3:
                assert table.remove(ear, uri) == ((ear, uri) in model)
                model.discard((ear, uri))
            case _:
                table.add(ear, uri, Subscription(hold=dice.random()))
                model.add((ear, uri))
        assert {(ear, uri) for uri in uris for ear in table.of(uri)} == model
        assert {(ear, uri) for ear in ears for uri in table.heard_by(ear)} == model
        assert all((table.find(e, u) is not None) == ((e, u) in model) for e in ears for u in uris)
