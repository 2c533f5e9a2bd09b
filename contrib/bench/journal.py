"""What the journal costs, as shares measured in one run; see the README.

    python contrib/bench/journal.py [--json] [--dir DIR] [--rounds N]

Everything but the start of a stored host runs in this process, on files in `--dir`. The two sides
of a share are measured in turns, so that a busy machine slows both alike.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import attrs
import trio

from actors.annotations import open_annotations
from actors.connection import serve_connection
from actors.host import Host
from actors.ledger import Channel
from actors.summaries import chat_row, session_summary
from actors.tree import make_host, tree
from ahpd import reducers
from ahpd.agents.script import parse_script
from ahpd.agents.scripted import ScriptedAgent
from ahpd.journal.memory import MemoryJournal
from ahpd.journal.port import Journal, Kept
from ahpd.journal.sqlite import SqliteJournal
from ahpd.protocol import chat_actions as act
from ahpd.protocol.actions import StateAction
from ahpd.protocol.chat import ChatState, MarkdownResponsePart, Turns, UserChatOrigin
from ahpd.protocol.frame import frame
from ahpd.protocol.jsontext import dumps, loads
from ahpd.protocol.messages import Message, MessageOrigin
from ahpd.protocol.session import SessionState
from ahpd.protocol.session_actions import SessionTitleChangedAction
from ahpd.protocol.uris import ROOT, URI, default_chat
from ahpd.reducers.status import IDLE, READ
from ahpd.transports.memory import MemoryTransport, memory_pair
from supervisors import running

WHEN = "2026-01-01T00:00:00.000Z"


@attrs.frozen
class Row:
    """One figure; `aim` says what is hoped for, in words."""

    name: str
    figure: float
    unit: str
    aim: str = ""
    met: bool | None = None


# ---- a host and a peer --------------------------------------------------------------------------


class Peer:
    """Says frames and reads what comes, decoding as little as it can."""

    def __init__(self, transport: MemoryTransport) -> None:
        self.transport = transport
        self._ids = 0

    async def request(self, method: str, **params: Any) -> Any:
        """The result of a request; what comes before it is dropped."""
        self._ids += 1
        request = {"jsonrpc": "2.0", "id": self._ids, "method": method, "params": params}
        await self.transport.send([frame(request)])
        return await self.answer()

    async def answer(self) -> Any:
        """The result of the last request."""
        while True:
            text = await self.transport.receive()
            if b'"method":"action"' not in text[:64]:
                value: Any = loads(text)
                if value.get("id") == self._ids:
                    assert "result" in value, value
                    return value["result"]

    async def dispatch(self, channel: URI, action: StateAction, number: int) -> None:
        """Dispatch an action."""
        params = {"channel": channel, "clientSeq": number, "action": action.wire()}
        message = {"jsonrpc": "2.0", "method": "dispatchAction", "params": params}
        await self.transport.send([frame(message)])


def script(text: str, times: int) -> ScriptedAgent:
    """An agent that says the same thing many times."""
    steps = [{"text": text, "times": times}]
    return ScriptedAgent("bench", parse_script({"turns": [{"steps": steps}]}))


@asynccontextmanager
async def serving(
    agent: ScriptedAgent, journal: Journal, kept: Kept | None = None
) -> AsyncIterator[tuple[Host, Peer]]:
    """A host in this process and somebody connected to it."""
    host = make_host([agent], wall=time.time, steady=time.monotonic, seed=1, kept=kept)
    async with running(tree(host, journal)) as system, trio.open_nursery() as nursery:
        await system.wait_for("connections")
        far, near = memory_pair()
        nursery.start_soon(serve_connection, system, host, near)
        peer = Peer(far)
        await peer.request("initialize", channel=ROOT, protocolVersions=["1.0.0"], clientId="bench")
        yield host, peer
        await far.close(1000, "")
        nursery.cancel_scope.cancel()


async def begin(peer: Peer, session: URI) -> URI:
    """A session to talk in; its chat, subscribed."""
    await peer.request("createSession", channel=session)
    chat = default_chat(session)
    await peer.request("subscribe", channel=chat)
    return chat


def started(number: int, text: str = "go") -> act.ChatTurnStartedAction:
    """Somebody says something."""
    message = Message(text=text, origin=MessageOrigin(kind="user"))
    return act.ChatTurnStartedAction(turn_id=f"turn-{number}", started_at=WHEN, message=message)


# ---- what is measured ---------------------------------------------------------------------------


async def rate(journal: Journal, deltas: int) -> float:
    """Envelopes a second from an agent to one peer."""
    async with serving(script("x" * 250, deltas), journal) as (_, peer):
        chat = await begin(peer, "bench:/rate")
        start = time.perf_counter()
        await peer.dispatch(chat, started(1), 1)
        seen = 0
        while True:
            text = await peer.transport.receive()
            seen += b'"chat/delta"' in text[:200]
            if b'"chat/turnComplete"' in text:
                break
        took = time.perf_counter() - start
        assert seen == deltas - 1, f"{seen} of {deltas} came"  # the first begins the part
        return deltas / took


async def latencies(journal: Journal, count: int) -> list[float]:
    """Seconds from a dispatch to its echo, on an idle host."""
    found = []
    async with serving(script("x", 1), journal) as (_, peer):
        await peer.request("createSession", channel="bench:/latency")
        await peer.request("subscribe", channel="bench:/latency")
        await trio.sleep(0.1)
        for number in range(count):
            action = SessionTitleChangedAction(title=f"title {number}")
            start = time.perf_counter()
            await peer.dispatch("bench:/latency", action, number + 1)
            while b'"session/titleChanged"' not in await peer.transport.receive():
                pass
            found.append(time.perf_counter() - start)
            await trio.sleep(0.002)
    return found


def in_file(folder: Path, name: str) -> SqliteJournal:
    """A new journal."""
    journal = SqliteJournal(folder / f"{name}.db")
    journal.begin(limit=1000, boot="bench")
    return journal


def shares(folder: Path, rounds: int) -> list[Row]:
    """Rate and latency with and without, in turns."""
    without, kept = [], []
    idle: list[float] = []
    written: list[float] = []
    for number in range(rounds):
        without.append(trio.run(rate, MemoryJournal(), 20_000))
        journal = in_file(folder, f"rate-{number}")
        kept.append(trio.run(rate, journal, 20_000))
        journal.close()
        idle += trio.run(latencies, MemoryJournal(), 300)
        journal = in_file(folder, f"latency-{number}")
        written += trio.run(latencies, journal, 300)
        journal.close()
    share = statistics.median(kept) / statistics.median(without)
    added = statistics.median(written) - statistics.median(idle)
    tail = statistics.quantiles(written, n=100)[98] - statistics.quantiles(idle, n=100)[98]
    return [
        Row("envelopes a second without", statistics.median(without), "/s"),
        Row("envelopes a second with", statistics.median(kept), "/s"),
        Row("share of the rate that is left", share, "x", "at least 0.7", share >= 0.7),
        Row("added to one envelope, median", added * 1e3, "ms"),
        Row("added to one envelope, p99", tail * 1e3, "ms"),
    ]


# ---- stored hosts -------------------------------------------------------------------------------


class Store:
    """Fills a journal as a host would, without its actors."""

    def __init__(self, path: Path) -> None:
        self.journal = SqliteJournal(path)
        kept = self.journal.begin(limit=1000, boot="bench")
        self.host = make_host(
            [script("x", 1)], wall=time.time, steady=time.monotonic, seed=1, kept=kept
        )

    async def session(self, uri: URI) -> Channel:
        """A session with one chat, which is given."""
        host, chat_uri = self.host, default_chat(uri)
        chat = ChatState(
            resource=chat_uri,
            title="A talk",
            status=IDLE,
            modified_at=WHEN,
            origin=UserChatOrigin(),
            turns=Turns(),
        )
        state = SessionState(
            provider="bench",
            title="A talk",
            status=IDLE | READ,
            lifecycle="ready",
            active_clients=(),
            chats=(chat_row(chat, "A talk", None),),
            default_chat=chat_uri,
        )
        base = f"session/{uri.rpartition('/')[2]}"
        channel = host.ledger.open(uri, "session", state, f"{base}/session")
        channel.note(summary=session_summary(uri, state, WHEN), chats_made=1)
        open_annotations(host, uri, base)
        return host.ledger.open(chat_uri, "chat", chat, f"{base}/chat/0", uri)

    def say(self, channel: Channel, action: StateAction) -> None:
        """One envelope."""
        state = reducers.apply(channel.kind, channel.state, action)
        self.host.ledger.append(channel, action, state)

    def turn(self, chat: Channel, number: int, deltas: int, text: str) -> None:
        """A whole turn."""
        turn_id = f"turn-{number}"
        self.say(chat, started(number))
        part = MarkdownResponsePart(id="p", content="")
        self.say(chat, act.ChatResponsePartAction(turn_id=turn_id, part=part))
        for _ in range(deltas):
            self.say(chat, act.ChatDeltaAction(turn_id=turn_id, part_id="p", content=text))
        self.say(chat, act.ChatTurnCompleteAction(turn_id=turn_id, duration=1.0))

    async def keep(self) -> None:
        """Write what has been said, as the sequencer does."""
        ledger, recorder = self.host.ledger, self.host.recorder
        taken = recorder.take(ledger.queue)
        recorder.kept(taken, await self.journal.write(taken.batch))
        for item in ledger.queue:
            self.host.window.add(item)  # type: ignore[arg-type]
        ledger.queue.clear()


async def many_sessions(path: Path, count: int) -> None:
    """A journal with so many sessions of one short turn each."""
    store = Store(path)
    for number in range(count):
        chat = await store.session(f"demo:/{number:08}")
        store.turn(chat, 1, 3, "A word or two. ")
        if number % 500 == 499:
            await store.keep()
    await store.keep()
    store.journal.close()


async def long_chat(path: Path, turns: int) -> None:
    """A journal with one chat of so many turns."""
    store = Store(path)
    chat = await store.session("bench:/long")
    for number in range(turns):
        store.turn(chat, number, 4, "Some twenty words of an answer that nobody will read. " * 2)
        if number % 500 == 499:
            await store.keep()
    await store.keep()
    store.journal.close()


def start_up(folder: Path, count: int, rounds: int) -> list[Row]:
    """From exec to the moment in which clients are taken, with and without stored sessions."""
    trio.run(many_sessions, folder / "journal.db", count)
    (folder / "none").mkdir(mode=0o700)
    found: dict[str, list[float]] = {"": [], "none": []}
    for _ in range(rounds):
        for name, times in found.items():
            times.append(_listening(folder / name))
    full, none = (statistics.median(each) for each in found.values())
    return [
        Row(f"listening with {count} stored sessions", full, "s", "under 1.5 s", full < 1.5),
        Row("listening with none", none, "s"),
    ]


def _listening(state: Path) -> float:
    endpoint = state / "endpoint.json"
    start = time.perf_counter()
    command = [sys.executable, "-m", "ahpd", "serve", "--port", "0", "--state-dir", str(state)]
    with subprocess.Popen([*command, "--quiet"], stderr=subprocess.DEVNULL) as daemon:
        while not endpoint.exists():
            assert daemon.poll() is None, "the daemon did not start"
            time.sleep(0.002)
        took = time.perf_counter() - start
        daemon.terminate()
    return took


async def _first_snapshot(path: Path) -> float:
    journal = SqliteJournal(path)
    kept = journal.begin(limit=1000, boot="bench")
    async with serving(script("x", 1), journal, kept) as (_, peer):
        start = time.perf_counter()
        chat = default_chat("bench:/long")
        result = await peer.request("subscribe", channel=chat, view={"turns": 50})
        took = time.perf_counter() - start
        assert len(result["snapshot"]["state"]["turns"]) == 50
    journal.close()
    return took


def snapshots(folder: Path, rounds: int) -> list[Row]:
    """The first look at a long chat after a start."""
    rows = []
    for turns in (1_000, 10_000):
        path = folder / f"long-{turns}.db"
        trio.run(long_chat, path, turns)
        took = statistics.median(trio.run(_first_snapshot, path) for _ in range(rounds)) * 1e3
        met = took < 50
        rows.append(Row(f"first 50 of {turns} turns", took, "ms", "under 50 ms", met))
    return rows


async def _growth(path: Path, turns: int, deltas: int) -> int:
    store = Store(path)
    chat = await store.session("bench:/growth")
    for number in range(turns):
        store.turn(chat, number, deltas, "streamed ")
        await store.keep()
        if number % 50 == 0:
            await store.journal.sync()
    store.journal.close()
    return len(dumps(chat.state.wire()))


def growth(folder: Path, turns: int, deltas: int) -> list[Row]:
    """What many small deltas of finished turns leave behind."""
    path = folder / "growth.db"
    transcript = trio.run(_growth, path, turns, deltas)
    factor = path.stat().st_size / transcript
    name = f"file after {turns * deltas} deltas in {turns} turns, times the transcript"
    return [Row(name, factor, "x", "under 2", factor < 2)]


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--dir", type=Path, help="where the files go; a temporary folder if not")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--sessions", type=int, default=10_000)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.dir) as name:
        folder = Path(name)
        rows = [
            *shares(folder, options.rounds),
            *start_up(folder, options.sessions, options.rounds),
            *snapshots(folder, options.rounds),
            *growth(folder, 1_000, 1_000),
        ]
    if options.json:
        print(json.dumps([attrs.asdict(row) for row in rows]))
        return
    for row in rows:
        met = "" if row.met is None else "  met" if row.met else "  MISSED"
        print(f"{row.name:62} {row.figure:10.3f} {row.unit:3} {row.aim}{met}")


if __name__ == "__main__":
    main()
