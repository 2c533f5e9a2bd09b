"""Mixed load for minutes: memory must not grow, and a ping must not wait.

What people do to many sessions at a time, ten times a second each: a turn is started in a chat
whose older turns are taken away, a title is changed, somebody leaves and comes back, a session is
ended and another begun. All that is said is read, by other processes.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import attrs

from ahpd.bench.daemon import Daemon, Peer, daemon
from ahpd.bench.naive import Naive
from ahpd.bench.processes import resident
from ahpd.bench.readers import Readers
from ahpd.bench.report import Aim, Row
from ahpd.bench.sockets import WebSocket

_MIB = 1 << 20
_EVERY = 0.1
#: So many chats are talked in: few enough that each has had its turn within the first minute.
_TALKED_IN = 50
_SCRIPT = [
    {"steps": [{"thought": "Hm. ", "times": 5}, {"text": "x" * 50, "times": 50, "everyMs": 20}]}
]


@attrs.frozen
class _Size:
    sessions: int
    connections: int
    minutes: float
    #: Seconds after which memory is not to grow any more.
    warm: float


@attrs.define
class _Seen:
    """What was looked at, each time."""

    pings: list[float] = attrs.field(factory=list)
    bare: list[float] = attrs.field(factory=list)
    memory: list[tuple[float, int]] = attrs.field(factory=list)


def soak(*, quick: bool, minutes: float = 10.0) -> list[Row]:
    """Memory after the first minute, and the longest ping, under mixed load."""
    size = _Size(30, 10, 0.1, 2.0) if quick else _Size(1000, 200, minutes, min(60, 20 * minutes))
    seen = _Seen()
    with ExitStack() as stack:
        host = stack.enter_context(daemon(_SCRIPT))
        plain = stack.enter_context(WebSocket(stack.enter_context(Naive("echo")).port))
        people = _People(host, size)
        channels = [[chat] for chat in people.chats[: size.connections]]
        reading = Readers(
            host.port,
            host.path,
            greetings=[host.greeting(*each) for each in channels],
            count=0,
            envelopes=False,
        )
        stack.enter_context(reading)
        reading.ready()
        pinger, work = host.connect(), people.work()
        begun = time.monotonic()
        while (now := time.monotonic()) < begun + 60 * size.minutes:
            next(work)
            reading.program.running()
            seen.pings.append(_timed(lambda: pinger.request("ping")))
            seen.bare.append(_timed(lambda: _round_trip(plain)))
            seen.memory.append((now - begun, resident(host.pid)))
            time.sleep(max(0.0, now + _EVERY - time.monotonic()))
    return _rows(seen, size)


def _rows(seen: _Seen, size: _Size) -> list[Row]:
    late = [each for at, each in seen.memory if at >= size.warm]
    # Medians of many looks: memory goes up and down with what is under way.
    few = max(1, len(late) // 10)
    first, last = sorted(late[:few])[few // 2], sorted(late[-few:])[few // 2]
    return [
        Row(
            f"memory after {size.minutes:g} min",
            "MiB",
            [last / _MIB],
            f"after {size.warm:g} s",
            [first / _MIB],
            (Aim(1.05, at_most=True, times=True),),
        ),
        Row(
            f"longest of {len(seen.pings)} pings",
            "ms",
            [max(seen.pings)],
            "a bare echo",
            [max(seen.bare)],
            (Aim(100, at_most=True),),
        ),
    ]


class _People:
    """Those who do things, over a few connections."""

    def __init__(self, host: Daemon, size: _Size) -> None:
        self._host = host
        self._peer = host.connect()
        self.chats = self._peer.sessions(host, size.sessions)
        self._spare = [host.new_session() for _ in range(10)]
        for uri in self._spare:
            self._peer.request("createSession", channel=uri)
        self._chance = random.Random(1)

    def work(self) -> Iterator[None]:
        """One thing of each kind at a time."""
        peer, host = self._peer, self._host
        guests: list[Peer] = []
        while True:
            chat = self._chance.choice(self.chats[:_TALKED_IN])
            peer.dispatch(chat, {"type": "chat/truncated"})
            peer.start_turn(chat, "go")
            title = {"type": "session/titleChanged", "title": f"title {time.monotonic_ns()}"}
            peer.dispatch(self._chance.choice(self._spare), title)
            guests.append(host.connect())
            if len(guests) > 5:
                guests.pop(0).close()
            peer.request("disposeSession", channel=self._spare.pop(0))
            self._spare.append(host.new_session())
            peer.request("createSession", channel=self._spare[-1])
            yield


def _timed(trip: Callable[[], object]) -> float:
    begun = time.perf_counter()
    trip()
    return (time.perf_counter() - begun) * 1000


def _round_trip(socket: WebSocket) -> None:
    socket.send(b"ping")
    socket.receive()
