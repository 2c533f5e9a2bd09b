"""A host's tables without its actors, on a journal in a file: whatever happens to them is drawn."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import Any, TypeVar

import attrs
import trio

from actors.clients import Baseline, Clients
from actors.ledger import Channel, Entry, Heritage, Ledger, Origin
from actors.paging import Window
from actors.recording import Recorder
from actors.replay import ReplayWindow
from actors.restoring import restore_channel, restore_session, restore_tables, summary_of
from actors.sources import Beginning, made_chat
from actors.summaries import session_summary
from ahpd import reducers
from ahpd.agents.port import Transcript
from ahpd.journal.port import JournalDamaged, JournalFailed, Kept
from ahpd.journal.sqlite import SqliteJournal
from ahpd.protocol.actions import StateAction
from ahpd.protocol.annotations import AnnotationsState
from ahpd.protocol.chat import Turn
from ahpd.protocol.chat_actions import ChatTurnsLoadedAction
from ahpd.protocol.codec import decode, decoder
from ahpd.protocol.root import RootState
from ahpd.protocol.session import SessionState
from ahpd.protocol.uris import ROOT, URI, annotations_of, default_chat
from ahpd.reducers.status import IDLE, READ

T = TypeVar("T")

NOW = "2031-01-01T00:00:00.000Z"
#: What line splitting, escaping and encodings like to trip over (hazard B37).
WORDS = (
    "so",
    " it",
    " goes",
    "\u2028",
    "\u2029",
    "\u0085",
    "\v",
    "\r\n",
    "é",
    "🦊",
    '"',
    "\\",
    "\0",
)

_ERROR = {"errorType": "X", "message": "no"}
_read = decoder(StateAction)


async def inline(blocking: Callable[[], T]) -> T:
    """Runs it here: a thread would let the mock clock jump."""
    await trio.lowlevel.checkpoint()
    return blocking()


def sqlite_journal(path: Path, **options: Any) -> SqliteJournal:
    return SqliteJournal(path, run=inline, **options)


@contextmanager
def opened(
    path: Path, *, limit: int = 1000, boot: str = "b"
) -> Iterator[tuple[SqliteJournal, Kept]]:
    """A journal, and what it begins with, for the length of the block."""
    journal = sqlite_journal(path)
    kept = journal.begin(limit=limit, boot=boot)
    try:
        yield journal, kept
    finally:
        journal.close()


def as_killed(path: Path, target: Path) -> Path:
    """The file as a process would leave it that is killed now; a copy in the folder `target`."""
    target.mkdir(parents=True, exist_ok=True)
    for name in (path.name, f"{path.name}-wal"):
        if path.with_name(name).exists():
            shutil.copyfile(path.with_name(name), target / name)
    return target / path.name


def sql(path: Path, text: str, *values: object) -> list[Any]:
    """Do to a file what no journal does."""
    connection = sqlite3.connect(path, isolation_level=None)
    try:
        return connection.execute(text, values).fetchall()
    finally:
        connection.close()


class SomePeer:
    """A connection that hears nothing."""


@attrs.frozen
class View:
    """All of a channel that has to come back."""

    kind: str
    owner: URI | None
    state: Any
    notes: Any
    used: list[str]


def view(channel: Channel) -> View:
    return View(
        channel.kind,
        channel.owner,
        channel.state.wire(),
        channel.notes,
        list(channel.used),
    )


class World:
    """See the module. `kept` is what the journal began with."""

    def __init__(self, journal: SqliteJournal, kept: Kept, seed: int, *, limit: int = 1000) -> None:
        self.journal, self.kept = journal, kept
        self.dice = Random(f"world {seed}")
        self.ledger = Ledger(kept.seq, kept.next_key)
        self.clients = Clients()
        self.window = ReplayWindow(kept.evicted, limit=limit)
        self.recorder = Recorder(self.ledger, self.clients, self.window)
        self.clients.on_change = self.ledger.stir
        restore_tables(kept, self.ledger, self.clients, self.window)
        self.peers: dict[str, SomePeer] = {}
        self._names = 0

    # ---- coming back --------------------------------------------------------------------------

    async def wake_all(self) -> None:
        """Load every session, and the root."""
        if self.kept.root is not None:
            self.ledger.admit(restore_channel(self.kept.root, "root", self.recorder))
        for session in self.kept.sessions:
            kept = await self.journal.load(session.uri)
            summary = summary_of(session.summary)
            found = restore_session(kept, "session/x", self.recorder, summary)
            assert not found.damaged, found.damaged
            for channel in found.channels:
                self.ledger.admit(channel)

    def views(self) -> dict[URI, View]:
        return {uri: view(channel) for uri, channel in self.ledger.channels.items()}

    def replayable(self) -> list[tuple[int, URI, bytes, Any]]:
        """The window's envelopes whose channels are still there."""
        return [
            (
                entry.seq,
                entry.channel.uri,
                entry.params,
                (entry.audience, entry.windowed, entry.page),
            )
            for entry in self.window._entries
            if (now := self.ledger.find(entry.channel.uri)) is not None
            and now.key == entry.channel.key
        ]

    # ---- keeping ------------------------------------------------------------------------------

    async def keep(self, write: Callable[[Any], Awaitable[Any]] | None = None) -> None:
        """What the sequencer does, until there is nothing left to do."""
        while self.ledger.queue or self.recorder.has_news:
            taken = self.recorder.take(self.ledger.queue)
            self.recorder.kept(taken, await (write or self.journal.write)(taken.batch))
            while self.ledger.queue:
                item = self.ledger.queue.popleft()
                assert isinstance(item, Entry)
                self.ledger.room.free(len(item))
                self.window.add(item)
            self.clients.forget_unreachable(self.window)

    async def keep_unheard(self) -> None:
        """A batch is written, and who asked for it is killed before the answer."""
        await self.journal.write(self.recorder.take(self.ledger.queue).batch)

    async def keep_in_vain(self) -> bool:
        """A batch is written while the file may not grow; whether there was no room for it."""
        connection = self.journal._connection
        assert connection is not None
        (pages,) = connection.execute("PRAGMA page_count").fetchone()
        connection.execute(f"PRAGMA max_page_count = {pages}")
        try:
            await self.journal.write(self.recorder.take(self.ledger.queue).batch)
        except JournalDamaged:
            raise
        except JournalFailed:
            return True
        finally:
            connection.execute("PRAGMA max_page_count = 4294967294")
        return False

    # ---- what happens -------------------------------------------------------------------------

    def name(self, what: str) -> str:
        self._names += 1
        return f"{what}-{self.ledger.seq}-{self._names}"

    def text(self) -> str:
        return "".join(self.dice.choices(WORDS, k=self.dice.randint(1, 6)))

    def open_root(self) -> Channel:
        state = RootState(agents=(), active_sessions=0)
        channel = self.ledger.open(ROOT, "root", state, "root")
        channel.note(settings={"x": 1})
        return channel

    def open_session(self, uri: URI) -> Channel:
        chat = made_chat(default_chat(uri), NOW, Beginning())
        state = SessionState(
            provider="puppet",
            title="",
            status=IDLE | READ,
            lifecycle="ready",
            active_clients=(),
            chats=(),
            default_chat=chat.resource,
        )
        channel = self.ledger.open(uri, "session", state, "session/x/session")
        channel.note(summary=session_summary(uri, state, NOW))
        remarks = AnnotationsState(annotations=())
        self.ledger.open(annotations_of(uri), "annotations", remarks, "session/x/annotations", uri)
        self.ledger.open(chat.resource, "chat", chat, "session/x/chat/0", uri)
        return channel

    def close_session(self, uri: URI) -> None:
        session = self.ledger.find(uri)
        assert session is not None
        for channel in (*self.ledger.channels_of(uri), session):
            self.ledger.close(channel)
            self.clients.channel_closed(channel.uri)

    def say(self, channel: Channel, raw: dict[str, Any], **more: Any) -> None:
        """Reduce an action, as an actor does."""
        action = _read(raw)
        state = reducers.apply(channel.kind, channel.state, action)
        if state is not channel.state:
            self.ledger.append(channel, action, state, **more)

    def of_kind(self, kind: str) -> list[Channel]:
        return [each for each in self.ledger.channels.values() if each.kind == kind]

    def step(self) -> None:
        """One thing happens, whatever it is."""
        dice = self.dice
        chats, sessions = self.of_kind("chat"), self.of_kind("session")
        if not sessions or (len(sessions) < 3 and dice.random() < 0.05):
            free = [uri for n in range(4) if self.ledger.find(uri := f"puppet:/{n}") is None]
            self.open_session(dice.choice(free))  # a URI of one that ended, now and then
            return
        deed = dice.random()
        if deed < 0.02:
            self.close_session(dice.choice(sessions).uri)
        elif deed < 0.08:
            self._client()
        elif deed < 0.16:
            self._note(dice.choice(chats))
        elif deed < 0.22:
            session = dice.choice(sessions)
            self.say(session, {"type": "session/titleChanged", "title": self.text()})
            session.note(summary=session_summary(session.uri, session.state, NOW))
        elif deed < 0.26:
            origin = Origin(dice.choice(("ann", "bob")), dice.randint(1, 99))
            self.ledger.answer(
                dice.choice(chats), {"type": "x", "y": self.text()},
                origin=origin, asker=None, reason=dice.choice((None, "no")),
            )  # fmt: skip
        else:
            self._talk(dice.choice(chats))

    def _client(self) -> None:
        dice, clients = self.dice, self.clients
        client_id = dice.choice(("ann", "bob", "cy"))
        peer = self.peers.pop(client_id, None)
        record = clients.find(client_id)
        if peer is not None and record is not None:
            clients.leave(record, peer, self.ledger.seq)  # type: ignore[arg-type]
            return
        self.peers[client_id] = peer = SomePeer()
        record = clients.join(client_id, "1.0.0", peer)  # type: ignore[arg-type]
        for uri in dice.sample(sorted(self.ledger.channels), k=1):
            window = Window.of([(dice.randint(0, 9), 5)]) if dice.random() < 0.5 else None
            clients.set_baseline(record, uri, Baseline(self.ledger.seq, window))

    def _note(self, chat: Channel) -> None:
        dice = self.dice
        turns = tuple(chat.state.turns)[:2]
        match dice.randint(0, 4):
            case 0:
                chat.note(cut=dice.choice((None, (None,), ("t1",))))
            case 1:
                chat.note(senders={self.name("m"): "ann"}, starter=dice.choice((None, "bob")))
            case 2:
                held = dict(chat.notes.attached)
                if held and dice.random() < 0.5:
                    del held[next(iter(held))]
                else:
                    held[self.name("m")] = (Transcript(chat.uri, turns),)
                chat.note(attached=held)
            case 3:
                chat.consume(*(self.name("id") for _ in range(dice.randint(1, 3))))
            case _:
                chat.note(
                    heritage=Heritage(history=turns, selection=self.text()),
                    settings={"k": self.text()},
                    began=(self.name("t"), 1.5),
                )

    def _talk(self, chat: Channel) -> None:
        dice, state = self.dice, chat.state
        turn = state.active_turn
        last = turn.response_parts[-1] if turn is not None and turn.response_parts else None
        if dice.random() < 0.15:
            self._pending(chat)
        elif turn is None:
            turns = state.turns
            if turns and dice.random() < 0.15:
                kept = dice.choice([None, *(each.id for each in turns)])
                self.say(chat, {"type": "chat/truncated", **({"turnId": kept} if kept else {})})
            elif turns and turns[-1].state == "error" and dice.random() < 0.7:
                self.say(chat, {"type": "chat/turnResume", "turnId": turns[-1].id})
            elif dice.random() < 0.05:
                self._load_older(chat)
            else:
                turn_id = self.name("turn")
                chat.consume(turn_id)
                self.say(chat, {
                    "type": "chat/turnStarted", "turnId": turn_id, "startedAt": NOW,
                    "message": {"text": self.text(), "origin": {"kind": "user"}},
                }, origin=Origin("ann", 1))  # fmt: skip
        elif getattr(last, "id", None) is None or dice.random() < 0.1:
            part = {"kind": "markdown", "id": self.name("p"), "content": ""}
            self.say(chat, {"type": "chat/responsePart", "turnId": turn.id, "part": part})
        elif dice.random() < 0.2:
            end = dice.choice(
                (
                    {"type": "chat/turnComplete"},
                    {"type": "chat/turnCancelled"},
                    {
                        "type": "chat/error",
                        "part": {"kind": "error", "error": _ERROR, "resumable": True},
                    },
                )
            )
            self.say(chat, {**end, "turnId": turn.id, "duration": 5})
        else:
            part_id = last.id if last is not None else ""
            self.say(chat, {
                "type": "chat/delta", "turnId": turn.id, "partId": part_id, "content": self.text(),
            })  # fmt: skip

    def _pending(self, chat: Channel) -> None:
        queued = chat.state.queued_messages or ()
        if queued and self.dice.random() < 0.5:
            gone = self.dice.choice(queued).id
            action = {"type": "chat/pendingMessageRemoved", "kind": "queued", "id": gone}
        else:
            action = {
                "type": "chat/pendingMessageSet", "kind": "queued", "id": self.name("m"),
                "message": {"text": self.text(), "origin": {"kind": "user"}},
            }  # fmt: skip
        self.say(chat, action)

    def _load_older(self, chat: Channel) -> None:
        """Turns come in at the front, as from a fork whose history was read late."""
        turn = {
            "id": self.name("old"), "startedAt": NOW, "responseParts": [], "state": "complete",
            "message": {"text": self.text(), "origin": {"kind": "user"}}, "duration": 1,
        }  # fmt: skip
        action = ChatTurnsLoadedAction(turns=(decode(Turn, turn),))
        other = action.evolve(turns_next_cursor=self.text())
        state = reducers.apply("chat", chat.state, action)
        self.ledger.append(chat, action, state, windowed=other, page=(0, 1))


__all__ = [
    "NOW", "World", "as_killed", "inline", "opened", "sql", "sqlite_journal", "view",
]  # fmt: skip
