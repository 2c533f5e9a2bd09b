"""What is remembered of clients: records, their connections, and when they are forgotten."""

from __future__ import annotations

from typing import Any

from actors.clients import Baseline, Clients
from actors.credentials import Credentials
from actors.ledger import Channel, Entry
from actors.paging import Window
from actors.replay import ReplayWindow
from actors.reverse import Reverse
from ahpd.protocol.frame import Frame
from tests.actors.support import C


class Ear:
    client_id: str | None = None
    is_old = False

    def __init__(self) -> None:
        self.reverse = Reverse(self.tell)
        self.settings: dict[str, Any] = {}
        self.credentials = Credentials()

    backlog = 0

    def hear(self, entry: Entry, subscription: object) -> None:
        """Nothing."""

    def flush(self) -> None:
        """Nothing."""

    def tell(self, frame: Frame) -> None:
        """Nothing."""


def test_quirk_10_only_the_last_close_is_an_absence() -> None:
    clients, one, two = Clients(), Ear(), Ear()
    record = clients.join("ann", "1.0.0", one)
    assert clients.join("ann", "0.9.0", two) is record
    clients.join("ann", "0.9.0", two)
    assert (record.version, record.connections) == ("0.9.0", [one, two])
    assert not clients.leave(record, one, 5)
    assert (record.absences, record.connections) == (0, [two])
    assert clients.leave(record, two, 9)
    assert (record.absences, record.left_at) == (1, 9)


def test_who_is_gone_is_forgotten_when_the_window_has_moved_past_it() -> None:
    clients, window = Clients(), ReplayWindow(0, limit=1)
    channel = Channel(C, "chat", None, "x", None, 0, b"")
    here = clients.join("here", "1.0.0", Ear())
    for name, left in (("early", 3), ("late", 7)):
        ear = Ear()
        clients.leave(clients.join(name, "1.0.0", ear), ear, left)
    for seq in range(1, 7):
        window.add(Entry(seq, channel, None, b"x"))
    assert window.evicted_up_to == 5
    assert clients.forget_unreachable(window) == ["early"]
    assert [record.client_id for record in clients] == ["here", "late"]
    assert clients.find("early") is None
    assert clients.find("here") is here


def test_a_channel_that_is_gone_is_nobodys_baseline() -> None:
    clients = Clients()
    record = clients.join("ann", "1.0.0", Ear())
    record.baselines[C] = Baseline(4, Window(4, 10))
    clients.channel_closed(C)
    assert record.baselines == {}
