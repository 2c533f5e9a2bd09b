"""One chat that streams as fast as it goes, to one subscriber and to many."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import attrs

from ahpd.bench.daemon import Daemon, Peer, daemon, digest
from ahpd.bench.naive import Naive
from ahpd.bench.processes import BenchFailed, cpu_seconds
from ahpd.bench.readers import MARK, Readers
from ahpd.bench.report import Aim, Row

#: Bytes of text in one delta.
SIZE = 250
_TEXT = MARK.decode() + "x" * (SIZE - len(MARK))
#: What a frame of the host's has around the text: the naive loop's frames are as long.
_AROUND = 200


#: Deltas of one run; which of them it is depends on how fast the machine is just now. The most fit
#: into what a host keeps for a slow client (16 MiB), so that being busy costs no connections.
_SIZES = (500, 1000, 2500, 5000, 10_000, 25_000)
#: Deltas that are more than the kernels take for a connection whose peer does not read.
_FULL = 10_000
#: Seconds that a run should take about, so that all of them together take minutes.
_ABOUT = 1.5


@attrs.frozen
class Rate:
    """Messages a second that arrived, and a second of the sender's processor."""

    wall: float
    cpu: float

    def part(self, share: float) -> Rate:
        """The share of some of the subscribers."""
        return Rate(self.wall * share, self.cpu * share)


@contextmanager
def _streamer() -> Iterator[tuple[Daemon, Peer]]:
    steps = {size: [{"text": _TEXT, "times": size}] for size in _SIZES}
    with daemon([{"when": f"^{size}$", "steps": each} for size, each in steps.items()]) as host:
        yield host, host.connect()


def stream(host: Daemon, peer: Peer, deltas: int, subscribers: int, *, stalled: int = 0) -> Rate:
    """A new chat streams to so many, of whom some read nothing; what those who read get.

    One of them is looked at closely: what came is in order, and is what the host holds in the end.
    """
    chat, other = peer.sessions(host, 2)
    reading = subscribers - stalled
    greetings = [host.greeting(chat) for _ in range(reading)]
    greetings += [host.greeting(chat, other) for _ in range(stalled)]
    with Readers(
        host.port, host.path, greetings=greetings, count=deltas, stalled=stalled
    ) as readers:
        readers.ready()
        if stalled:  # what the kernels take for them is full before it begins
            peer.start_turn(other, str(_FULL))
            peer.turn_is_over(other)
        used = cpu_seconds(host.pid)
        begun = peer.start_turn(chat, str(deltas))
        outcome = readers.outcome()
        used = cpu_seconds(host.pid) - used
        held = peer.last_text(chat)
    if outcome.sample is None or outcome.sample.digest != digest(held):
        raise BenchFailed("a subscriber's text is not the host's")
    sent = deltas * reading
    return Rate(sent / (outcome.finished - begun), sent / max(0.01, used))


def naive_broadcast(messages: int, subscribers: int) -> Rate:
    """The naive loop to so many, with frames as long as the host's."""
    text = _TEXT + "x" * _AROUND
    with (
        Naive("broadcast", connections=subscribers, text=text, times=messages) as sender,
        Readers(
            sender.port, greetings=[[]] * subscribers, count=messages, envelopes=False
        ) as readers,
    ):
        readers.ready()
        used = cpu_seconds(sender.pid)
        begun = sender.go()
        outcome = readers.outcome()
        used = max(0.01, cpu_seconds(sender.pid) - used)
    if len(set(outcome.bytes)) != 1:
        raise BenchFailed("the naive loop's subscribers did not get the same")
    sent = messages * subscribers
    return Rate(sent / (outcome.finished - begun), sent / used)


def _size(rate: float, subscribers: int, *, quick: bool) -> int:
    """How many deltas make a run of the right length at that rate."""
    fitting = [each for each in _SIZES if each * subscribers <= rate * _ABOUT]
    return _SIZES[0] if quick or not fitting else fitting[-1]


def _compared(subscribers: int, aims: Sequence[Aim], *, quick: bool) -> list[Row]:
    ours, theirs = [], []
    with _streamer() as (host, peer):
        warm = stream(host, peer, _SIZES[1], subscribers)
        deltas = _size(warm.wall, subscribers, quick=quick)
        warm = naive_broadcast(max(10, 2000 // subscribers), subscribers)
        messages = max(10, int((0.1 if quick else _ABOUT) * warm.wall / subscribers))
        for _ in range(2 if quick else 5):
            ours.append(stream(host, peer, deltas, subscribers))
            theirs.append(naive_broadcast(messages, subscribers))
    to = "1 subscriber" if subscribers == 1 else f"{subscribers} subscribers"
    return _rows(to, ours, "the naive loop", theirs, aims)


def _rows(
    to: str, ours: Sequence[Rate], baseline: str, theirs: Sequence[Rate], aims: Sequence[Aim]
) -> list[Row]:
    return [
        Row(
            f"delivered to {to}",
            "/s",
            [each.wall for each in ours],
            baseline,
            [each.wall for each in theirs],
            aims,
        ),
        Row(
            "the same in a second of its processor time",
            "/s",
            [each.cpu for each in ours],
            baseline,
            [each.cpu for each in theirs],
        ),
    ]


def fanout(*, quick: bool) -> list[Row]:
    """Envelopes a second to 32 subscribers."""
    return _compared(32, (Aim(300_000), Aim(20, times=True)), quick=quick)


def single(*, quick: bool) -> list[Row]:
    """Envelopes a second to one subscriber."""
    return _compared(1, (Aim(5, times=True),), quick=quick)


def stalled(*, quick: bool) -> list[Row]:
    """What 31 subscribers get while a 32nd reads nothing, beside what they get while it reads."""
    with_it, without = [], []
    with _streamer() as (host, peer):
        warm = stream(host, peer, _SIZES[1], 32)
        deltas = _size(warm.wall, 32, quick=quick)
        for _ in range(2 if quick else 5):
            with_it.append(stream(host, peer, deltas, 32, stalled=1))
            without.append(stream(host, peer, deltas, 32).part(31 / 32))
    aims = (Aim(0.95, times=True),)
    return _rows("31 while one is stalled", with_it, "to the same 31 while none is", without, aims)


def curve(*, quick: bool) -> dict[int, float]:
    """Envelopes a second over the number of subscribers."""
    rates = {}
    with _streamer() as (host, peer):
        for subscribers in (1, 2, 4, 8, 16, 32, 64, 128):
            warm = stream(host, peer, _SIZES[1], subscribers)
            deltas = _size(warm.wall, subscribers, quick=quick)
            found = [stream(host, peer, deltas, subscribers).wall for _ in range(2)]
            rates[subscribers] = statistics.median(found)
    return rates
