"""How long things take: an agent's word to a screen, a key to its echo, coming back after a gap."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack

import attrs

from ahpd.bench.daemon import Daemon, Peer, daemon
from ahpd.bench.naive import Naive
from ahpd.bench.processes import BenchFailed, cpu_seconds
from ahpd.bench.readers import Outcome, Readers
from ahpd.bench.report import Aim, Row
from ahpd.bench.sockets import WebSocket
from ahpd.protocol.uris import default_chat

_EVERY = 0.02
#: Seconds between the starts of two chats: it spreads them over the ticks.
_APART = 0.00137
#: Ticks that are not counted, while everything gets under way.
_SKIP = 50

# ---- many chats ----------------------------------------------------------------------------------


@attrs.frozen
class _Load:
    """So many chats with so many subscribers each; `times` ticks in all."""

    chats: int
    subscribers: int
    times: int


@attrs.frozen
class _Felt:
    """Milliseconds from the making of a message to a subscriber, and the sender's processor."""

    p50: float
    p99: float
    busy: float


def many(*, quick: bool) -> list[Row]:
    """Latency from an agent's event to a subscriber, of 100 chats with 50 a second each."""
    load = _Load(10, 2, 100) if quick else _Load(100, 2, 300)
    runs = 1 if quick else 3
    script = [{"steps": [{"now": True, "times": load.times, "everyMs": _EVERY * 1000}]}]
    apart, naive = [], []
    with daemon(script) as host:
        peer = host.connect()
        chats = peer.sessions(host, load.chats)
        each = [[chat] for chat in chats for _ in range(load.subscribers)]
        _felt(host, peer, chats, each, load)  # warm
        for _ in range(runs):
            apart.append(_felt(host, peer, chats, each, load))
            naive.append(_felt_naively(load))
        all_of_them = [chats] * load.subscribers
        together = [_felt(host, peer, chats, all_of_them, load) for _ in range(runs)]
    aims = {name: (Aim(most, at_most=True),) for name, most in _MOST.items()}
    return [
        *_rows(f"over {len(each)} connections", apart, naive, aims),
        *_rows(f"over {load.subscribers} connections", together, naive, {}),
    ]


_MOST = {"p50": 2, "p99": 10, "busy": 60}


def _rows(
    how: str, ours: Sequence[_Felt], naive: Sequence[_Felt], aims: Mapping[str, Sequence[Aim]]
) -> Iterator[Row]:
    for name, what, unit in (
        ("p50", f"event to subscriber, p50, {how}", "ms"),
        ("p99", f"event to subscriber, p99, {how}", "ms"),
        ("busy", f"processor, {how}", "%"),
    ):
        yield Row(
            what,
            unit,
            [getattr(each, name) for each in ours],
            "send_message each",
            [getattr(each, name) for each in naive],
            aims.get(name, ()),
        )


def _felt(
    host: Daemon, peer: Peer, chats: Sequence[str], subscribed: Sequence[Sequence[str]], load: _Load
) -> _Felt:
    on_each = len(subscribed[0])
    with Readers(
        host.port,
        host.path,
        greetings=[host.greeting(*channels) for channels in subscribed],
        count=load.times * on_each,
        times=True,
        skip=_SKIP * on_each,
        envelopes=on_each == 1,
    ) as readers:
        readers.ready()

        def go() -> None:
            for chat in chats:
                peer.start_turn(chat, "go")
                time.sleep(_APART)

        felt = _watched(host.pid, readers, load, go)
        for chat in chats:
            peer.turn_is_over(chat)
    return felt


def _felt_naively(load: _Load) -> _Felt:
    head = '{"method":"action","params":{"action":{"content":"'
    job = {
        "connections": load.chats * load.subscribers,
        "chats": load.chats,
        "times": load.times,
        "seconds": _EVERY,
        "apart": _APART,
        "head": head,
        "tail": '"' + "x" * 150,
    }
    with (
        Naive("ticks", **job) as sender,
        Readers(
            sender.port,
            greetings=[[]] * job["connections"],  # type: ignore[operator]
            count=load.times,
            times=True,
            skip=_SKIP,
            envelopes=False,
        ) as readers,
    ):
        readers.ready()
        return _watched(sender.pid, readers, load, sender.go)


def _watched(pid: int, readers: Readers, load: _Load, go: Callable[[], object]) -> _Felt:
    """Let it go, and look at the sender's processor while all chats are at it."""
    go()
    time.sleep(_SKIP * _EVERY)
    used, since = cpu_seconds(pid), time.monotonic()
    time.sleep((load.times - _SKIP - 5) * _EVERY - load.chats * _APART)
    used, took = cpu_seconds(pid) - used, time.monotonic() - since
    return _summed(readers.outcome(), 100 * used / took)


def _summed(outcome: Outcome, busy: float) -> _Felt:
    latencies = sorted(outcome.latencies)
    if latencies[0] < 0:
        raise BenchFailed("the clock was set while this ran")
    p99 = latencies[len(latencies) * 99 // 100]
    return _Felt(statistics.median(latencies) / 1000, p99 / 1000, busy)


# ---- one key -------------------------------------------------------------------------------------


def echo(*, quick: bool) -> list[Row]:
    """From a dispatch to its echo, on a host that has nothing else to do."""
    runs, seconds = (2, 0.2) if quick else (5, 1.5)
    ours, theirs = [], []
    with daemon([]) as host, Naive("echo") as plain, ExitStack() as opened:
        peer = host.connect()
        session = host.new_session()
        peer.request("createSession", channel=session)
        peer.turn_is_over(default_chat(session))
        peer.request("subscribe", channel=session)
        bare = opened.enter_context(WebSocket(plain.port))
        text = b'{"jsonrpc":"2.0","method":"dispatchAction"' + b" " * 120 + b"}"

        def dispatch(number: int) -> None:
            title = f"title {number}"
            peer.dispatch(session, {"type": "session/titleChanged", "title": title})
            while title.encode() not in peer.socket.receive():
                pass

        def send(_: int) -> None:
            bare.send(text)
            bare.receive()

        _median(dispatch, seconds)  # warm
        _median(send, seconds)
        for _ in range(runs):
            ours.append(_median(dispatch, seconds))
            theirs.append(_median(send, seconds))
    aims = (Aim(3, at_most=True, times=True),)
    return [Row("dispatch to echo, p50", "ms", ours, "a bare echo", theirs, aims)]


def _median(trip: Callable[[int], None], seconds: float) -> float:
    """Milliseconds of one trip, with a rest after each, as keys have."""
    took = []
    until = time.perf_counter() + seconds
    while time.perf_counter() < until:
        start = time.perf_counter()
        trip(time.monotonic_ns())
        took.append(time.perf_counter() - start)
        time.sleep(0.001)
    return statistics.median(took) * 1000


# ---- back after a gap ----------------------------------------------------------------------------

_MISSED = 1000


def reconnect(*, quick: bool) -> list[Row]:
    """From nothing to everything missed: connection, handshake, the answer with all of it."""
    runs = 3 if quick else 15
    ours, theirs = [], []
    script = [{"steps": [{"text": "x" * 250, "times": _MISSED}]}]
    with daemon(script, f"[limits]\nreplay_envelopes = {2 * _MISSED}\n") as host:
        peer, away = host.connect(), host.connect()
        [chat] = peer.sessions(host, 1)
        seen = away.request("subscribe", channel=chat)["snapshot"]["fromSeq"]
        time.sleep(0.2)  # the host notes what a client holds once that was written
        away.close()
        peer.start_turn(chat, "go")
        peer.turn_is_over(chat)
        with Naive("answer", size=_size_of(host, away.client_id, seen, chat)) as plain:
            for number in range(runs + 1):
                took = _back(host, away.client_id, seen, chat)
                bare = _asked(plain.port)
                if number:  # the first is for warming up
                    ours.append(took)
                    theirs.append(bare)
    aims = (Aim(25, at_most=True),)
    what = f"reconnect with {_MISSED} missed"
    return [Row(what, "ms", ours, "a bare answer as long", theirs, aims)]


def _ask_back(host: Daemon, client_id: str, seen: int, chat: str) -> tuple[Peer, int]:
    peer = host.connect(client_id)
    number = peer.send(
        "reconnect", clientId=client_id, lastSeenServerSeq=seen, subscriptions=[chat]
    )
    return peer, number


def _size_of(host: Daemon, client_id: str, seen: int, chat: str) -> int:
    """Bytes of the answer, once it was looked at."""
    peer, number = _ask_back(host, client_id, seen, chat)
    answer = peer.answer(number)
    peer.close()
    if answer["type"] != "replay":
        raise BenchFailed(f"the answer is a {answer['type']}")
    words = [each for each in answer["actions"] if each["action"]["type"] == "chat/delta"]
    if len(words) != _MISSED - 1:  # the first begins the part
        raise BenchFailed(f"{len(words)} of {_MISSED - 1} were replayed")
    return sum(len(str(each)) for each in answer["actions"])


def _back(host: Daemon, client_id: str, seen: int, chat: str) -> float:
    start = time.perf_counter()
    peer, _ = _ask_back(host, client_id, seen, chat)
    peer.socket.receive()
    took = time.perf_counter() - start
    peer.close()
    return took * 1000


def _asked(port: int) -> float:
    start = time.perf_counter()
    with WebSocket(port) as socket:
        socket.send(b'{"jsonrpc":"2.0","id":1,"method":"reconnect"}')
        socket.receive()
        return (time.perf_counter() - start) * 1000
