"""The file, one kind of row at a time."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from msgspec import structs

from ahpd.journal import sqlite as adapter
from ahpd.journal.file import read_only
from ahpd.journal.port import (
    Batch,
    ChannelFacts,
    ClientFacts,
    Envelope,
    JournalFailed,
    StateAt,
)
from ahpd.journal.sqlite import JUMP, Durability, SqliteJournal
from ahpd.journal.sums import checksum, seal, unseal
from ahpd.protocol.annotations import AnnotationsState
from ahpd.protocol.chat import ChatState, Turn, Turns
from ahpd.protocol.codec import decode
from tests.journal.support import NOW, World, as_killed, opened, sql, sqlite_journal

S, C = "puppet:/1", "ahp-chat:/1"


def facts(key: int = 1, uri: str = S, kind: str = "session", **more: object) -> ChannelFacts:
    given: dict[str, object] = {
        "owner": None, "path": f"session/x/{key}", "is_busy": False, "notes": b"{}",
    }  # fmt: skip
    return ChannelFacts(key, uri, kind, **{**given, **more})  # type: ignore[arg-type]


def remarks(key: int = 1, seq: int = 0) -> StateAt:
    """Some state, of no interest."""
    return StateAt(key, "annotations", seq, AnnotationsState(annotations=()))


def turn(id: str, text: str = "hi") -> Turn:
    return decode(Turn, {
        "id": id, "startedAt": NOW, "responseParts": [], "state": "complete", "duration": 1,
        "message": {"text": text, "origin": {"kind": "user"}},
    })  # fmt: skip


def chat(*turns: Turn) -> ChatState:
    return ChatState(resource=C, title="", status=1, modified_at=NOW, turns=Turns(turns))


def envelope(seq: int, key: int = 1, text: bytes = b"{}", **more: object) -> Envelope:
    return Envelope(seq, key, text, **more)  # type: ignore[arg-type]


async def test_an_empty_file_is_a_new_journal(tmp_path: Path) -> None:
    path = tmp_path / "journal.db"
    path.touch()
    with opened(path) as (_, kept):
        assert (kept.seq, kept.next_key, kept.evicted) == (0, 1, 0)
        assert (kept.root, list(kept.sessions), list(kept.window)) == (None, [], [])
        assert (path.stat().st_mode & 0o777, os.listdir(tmp_path)[0]) == (0o644, "journal.db")


async def test_everything_about_a_channel_comes_back(tmp_path: Path) -> None:
    path = tmp_path / "journal.db"
    whole = facts(
        is_busy=True, heritage=b'{"h":1}', summary=b'{"s":1}', used=("a", "b"),
        attached={"m": b'[1]', "n": b'[2]'},
    )  # fmt: skip
    with opened(path) as (journal, _):
        sizes = await journal.write(Batch(5, channels=[whole], states=[remarks(seq=5)]))
        assert sizes == {1: len(b'{"annotations":[]}')}
        more = facts(notes=b'{"n":2}', used=("c",), used_from=2, attached={"m": None})
        await journal.write(Batch(6, channels=[more]))
        [kept] = await journal.load(S)
        assert (kept.key, kept.uri, kept.kind, kept.owner) == (1, S, "session", None)
        assert (kept.seq, kept.state, kept.actions) == (5, {"annotations": []}, [])
        assert (kept.notes, kept.heritage) == ({"n": 2}, {"h": 1})
        assert (list(kept.used), kept.attached) == (["a", "b", "c"], {"n": [2]})
    with opened(path) as (_, start):
        [session] = start.sessions
        assert (session.uri, session.summary, session.is_busy) == (S, b'{"s":1}', False)
        assert (start.seq, start.next_key) == (6, 2)


async def test_a_session_is_busy_when_something_of_it_is(tmp_path: Path) -> None:
    with opened(tmp_path / "j") as (journal, _):
        child = facts(2, C, "chat", owner=S, is_busy=True)
        states = [remarks(1), StateAt(2, "chat", 0, chat())]
        await journal.write(Batch(1, channels=[facts(), child], states=states))
    with opened(tmp_path / "j") as (_, kept):
        [session] = kept.sessions
        assert (list(session.channels), session.is_busy) == ([S, C], True)


async def test_actions_after_the_snapshot_come_with_it_and_private_answers_do_not(
    tmp_path: Path,
) -> None:
    with opened(tmp_path / "j") as (journal, _):
        said = [
            envelope(1, text=b'{"a":1}'),
            envelope(2, text=b'{"a":2}', windowed=b"w", page=(3, 4)),
            envelope(3, text=b"no", audience="ann"),
        ]
        await journal.write(Batch(3, said, [facts()], [remarks(seq=1)]))
        [kept] = await journal.load(S)
        assert list(kept.actions) == [(2, b'{"a":2}')]
    with opened(tmp_path / "j") as (_, start):
        assert list(start.window) == said
        assert start.uris == {1: S}
    with opened(tmp_path / "j", limit=2) as (_, start):
        assert (list(start.window), start.evicted) == (said[1:], 1)


async def test_turns_grow_end_and_begin_anew(tmp_path: Path) -> None:
    """Each once in the file, where it stands, whatever was there before."""
    path = tmp_path / "j"
    one, two, three, other = turn("1"), turn("2"), turn("3"), turn("2", "again")
    histories = [(one,), (one, two), (one, two, three), (one,), (one, other), (), (two,)]
    with opened(path) as (journal, _):
        await journal.write(Batch(1, channels=[facts(1, C, "chat", owner=None)]))
        base = Turns()
        for seq, history in enumerate(histories, 2):
            # As reducers make them: each list shares what it can with the one before.
            base = Turns(history)
            state = chat().evolve(turns=base)
            await journal.write(Batch(seq, states=[StateAt(1, "chat", seq, state)]))
            [kept] = await journal.load(C)
            assert [each.wire() for each in kept.turns] == [each.wire() for each in history]
            with opened(as_killed(path, tmp_path / f"{seq}")) as (again, _):
                [kept] = await again.load(C)
                assert [each.wire() for each in kept.turns] == [each.wire() for each in history]


async def test_turns_that_are_there_are_not_written_again(tmp_path: Path) -> None:
    with opened(tmp_path / "j") as (journal, _):
        turns = Turns([turn("1")])
        state = chat().evolve(turns=turns)
        at = StateAt(1, "chat", 1, state)
        await journal.write(Batch(1, channels=[facts(1, C, "chat")], states=[at]))
        connection = journal._connection
        assert connection is not None
        before = connection.total_changes
        state = state.evolve(turns=turns.append(turn("2")))
        await journal.write(Batch(2, states=[StateAt(1, "chat", 2, state)]))
        # The turn, the channel's row and the number.
        assert connection.total_changes - before == 3


async def test_what_was_rolled_back_is_not_taken_for_written(tmp_path: Path) -> None:
    """The writer remembers which turns the file has, and up to where it has swept."""
    path = tmp_path / "j"
    with opened(path) as (journal, _):
        one = chat().evolve(turns=Turns([turn("1")]))
        at = StateAt(1, "chat", 1, one)
        said = [envelope(2, audience="ann"), envelope(3, audience="ann")]
        await journal.write(Batch(3, said, channels=[facts(1, C, "chat")], states=[at]))
        two = one.evolve(turns=one.turns.append(turn("2")))
        # The last of it cannot be written: a client's baselines that are no JSON.
        bad = ClientFacts("ann", "1", None, False, {1: 2})
        batch = Batch(4, states=[StateAt(1, "chat", 4, two)], clients=[bad], evicted=3)
        with pytest.raises(ValueError, match="cannot be written as JSON"):
            await journal.write(batch)
        connection = journal._connection
        assert connection is not None
        connection.execute(f"PRAGMA max_page_count = {_pages(journal)}")
        big = Batch(4, [envelope(4, text=bytes(100_000))], evicted=3)
        with pytest.raises(JournalFailed, match="the disk is full: "):
            await journal.write(big)
        connection.execute("PRAGMA max_page_count = 4294967294")
        assert len((await journal.load(C))[0].turns) == 1
        await journal.write(structs.replace(batch, clients=[]))
        assert len((await journal.load(C))[0].turns) == 2
        assert connection.execute("SELECT seq FROM envelopes").fetchall() == []


def _pages(journal: adapter.SqliteJournal) -> int:
    assert journal._connection is not None
    return int(journal._connection.execute("PRAGMA page_count").fetchone()[0])


async def test_the_end_of_a_channel_takes_all_of_it(tmp_path: Path) -> None:
    path = tmp_path / "j"
    with opened(path) as (journal, _):
        whole = facts(1, C, "chat", used=("a",), attached={"m": b"[]"})
        other = facts(2, "x", "chat", used=("a",), attached={"m": b"[]"})
        states = [StateAt(key, "chat", 1, chat(turn("1"))) for key in (1, 2)]
        await journal.write(Batch(2, [envelope(1), envelope(2, 2)], [whole, other], states))
        await journal.write(Batch(2, closed=[1]))
        assert await journal.load(C) == []
        [left] = await journal.load("x")
        assert (len(left.turns), list(left.used), left.attached) == (1, ["a"], {"m": []})
    for table in ("turns", "used", "attached", "envelopes", "channels"):
        assert sql(path, f"SELECT count(*) FROM {table}") == [(1,)], table


async def test_a_uri_that_is_used_again_is_another_channel(tmp_path: Path) -> None:
    path = tmp_path / "j"
    with opened(path) as (journal, _):
        first = Batch(1, [envelope(1)], [facts(1, used=("a",))], [remarks(1, 0)])
        await journal.write(first)
        # Its end and the new one's beginning in one batch.
        second = Batch(2, [envelope(2, 2)], [facts(2, used=("b",))], [remarks(2, 1)], closed=[1])
        for _ in range(2):
            await journal.write(second)
            [kept] = await journal.load(S)
            assert (kept.key, list(kept.used), list(kept.actions)) == (2, ["b"], [(2, b"{}")])
        await journal.write(Batch(2, closed=[2]))
    with opened(path) as (_, start):
        assert start.next_key == 3  # those of channels that ended too are not given out again
        assert list(start.window) == []


async def test_clients_come_and_go(tmp_path: Path) -> None:
    ann = ClientFacts("ann", "1.0.0", None, False, {"x": [1, None]})
    bob = ClientFacts("bob", "0.9.0", 7, True, {})
    with opened(tmp_path / "j") as (journal, _):
        await journal.write(Batch(1, clients=[ann, bob]))
        ann = structs.replace(ann, left_at=3)
        await journal.write(Batch(1, clients=[ann], forgotten=["bob", "cy"]))
    with opened(tmp_path / "j") as (_, kept):
        assert list(kept.clients) == [ann]


async def test_envelopes_go_when_a_snapshot_holds_them_and_no_replay_can_want_them(
    tmp_path: Path,
) -> None:
    path = tmp_path / "j"

    def left() -> list[int]:
        return [seq for (seq,) in sql(path, "SELECT seq FROM envelopes ORDER BY seq")]

    with opened(path) as (journal, _):
        said = [envelope(n, audience="ann" if n == 3 else None) for n in range(1, 9)]
        for each in said:  # what comes in one batch has one row
            await journal.write(Batch(each.seq, [each], [facts()]))
        await journal.write(Batch(8, states=[remarks(seq=2)]))
        assert left() == [1, 2, 3, 4, 5, 6, 7, 8]
        await journal.write(Batch(8, evicted=5))
        assert left() == [4, 5, 6, 7, 8]  # those that the snapshot does not hold stay
        await journal.write(Batch(8, states=[remarks(seq=7)]))
        assert left() == [6, 7, 8]  # 6 and 7 can still be replayed
        await journal.write(Batch(8, evicted=8))
        assert left() == [8]
    # A window that is smaller than it was: swept at the start, not never.
    with opened(path) as (journal, _):
        for n in range(9, 13):
            await journal.write(Batch(n, [envelope(n)]))
        await journal.write(Batch(12, states=[remarks(seq=12)]))
    with opened(path, limit=2) as (_, kept):
        assert [each.seq for each in kept.window] == [11, 12]
        assert left() == [11, 12]


async def test_the_file_gives_back_what_it_does_not_need(tmp_path: Path) -> None:
    path = tmp_path / "j"
    with opened(path) as (journal, _):
        seq = 0
        await journal.write(Batch(0, channels=[facts()], states=[remarks()]))
        for _ in range(20):
            said = [envelope(seq + n, text=bytes(50_000)) for n in range(1, 21)]
            seq += 20
            await journal.write(Batch(seq, said))
        await journal.sync()
        full = path.stat().st_size
        await journal.write(Batch(seq, states=[remarks(seq=seq)], evicted=seq))
        for _ in range(20):
            await journal.write(Batch(seq, evicted=seq))
        await journal.sync()
        assert path.stat().st_size < full / 4


async def test_the_wal_begins_anew_while_batches_come_without_a_pause(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(adapter, "LONG_WAL", 20)
    path = tmp_path / "j"
    wal = path.with_name("j-wal")
    with opened(path) as (journal, _):
        sizes = []
        for seq in range(1, 60):
            await journal.write(Batch(seq, [envelope(seq, text=bytes(20_000))]))
            await journal.sync()
            sizes.append(wal.stat().st_size)
        assert max(sizes) == max(sizes[:10])


# ---- numbers ------------------------------------------------------------------------------------


async def test_after_a_loss_of_power_numbers_jump_and_nothing_is_replayed(tmp_path: Path) -> None:
    path = tmp_path / "j"
    with opened(path, boot="one") as (journal, kept):
        world = World(journal, kept, 3)
        world.open_root()
        for _ in range(100):
            world.step()
        await world.keep()
        copy = as_killed(path, tmp_path / "killed")
    seq = world.ledger.seq
    with opened(copy, boot="two") as (journal, kept):
        assert (kept.seq, kept.evicted, list(kept.window)) == (seq + JUMP, seq + JUMP, [])
        other = World(journal, kept, 3)
        await other.wake_all()
        assert other.views() == world.views()
        assert not other.window.reaches(seq, kept.seq)  # whoever comes back gets snapshots
        again = as_killed(copy, tmp_path / "again")
    # What it can have said is far above; that is known from then on.
    with opened(again, boot="two") as (_, kept):
        assert kept.seq == seq + JUMP
        assert sql(again, "SELECT count(*) FROM envelopes WHERE audience IS NOT NULL") == [(0,)]


@pytest.mark.parametrize("durability", list(Durability))
async def test_a_host_that_ended_in_order_or_whose_batches_were_on_the_medium_loses_nothing(
    tmp_path: Path, durability: Durability
) -> None:
    path = tmp_path / "j"
    journal = sqlite_journal(path, durability=durability)
    journal.begin(limit=9, boot="one")
    await journal.write(Batch(4, [envelope(4)], [facts()], [remarks()]))
    copy = as_killed(path, tmp_path / "killed")
    journal.close()
    after = sqlite_journal(
        path if durability is Durability.PROCESS else copy, durability=durability
    )
    kept = after.begin(limit=9, boot="two")
    assert (kept.seq, [each.seq for each in kept.window]) == (4, [4])
    after.close()


@pytest.mark.parametrize("name", ["seq", "evicted", "highest_key", "in_use"])
async def test_numbers_that_cannot_be_believed_are_not_used_again(
    tmp_path: Path, name: str
) -> None:
    path = tmp_path / "j"
    with opened(path) as (journal, _):
        await journal.write(Batch(9, [envelope(9)], [facts(5)], [remarks(5, 9)]))
    sql(path, f"UPDATE meta SET value = 77 WHERE name = '{name}'")
    with opened(path) as (_, kept):
        assert kept.seq >= 9 + JUMP
        assert (kept.next_key, list(kept.window)) == (6, [])


# ---- checksums ----------------------------------------------------------------------------------


def test_a_checksum_is_over_types_and_borders_too() -> None:
    rows: list[tuple[object, ...]] = [
        ("a",), (b"a",), ("a", ""), ("", "a"), (b"", b"a"), (1,), ("1",), (None,), ("None",),
        (1.0,), (), ("\udcff",), (b"\xff",), (1, 1), (11,),
    ]  # fmt: skip
    assert len({checksum(*row) for row in rows}) == len(rows)
    assert checksum(True) == checksum(1)  # SQLite gives a number back


def test_a_sealed_text_belongs_to_its_channel_and_column() -> None:
    sealed = seal(1, "notes", b"text")
    assert unseal(1, "notes", sealed) == b"text"
    for key, what, text in (
        (2, "notes", sealed), (1, "summary", sealed), (1, "notes", sealed[:-1]),
        (1, "notes", b"abc"), (1, "notes", "text"),
    ):  # fmt: skip
        with pytest.raises(ValueError, match=what):
            unseal(key, what, text)


async def test_a_number_that_no_sound_row_says_is_not_gone_on_from(tmp_path: Path) -> None:
    """A bit that is turned must not take the numbers to where clients cannot count any more."""
    path = tmp_path / "j"
    with opened(path) as (journal, _):
        both = [facts(1), facts(2, "x")]
        await journal.write(Batch(9, [envelope(9)], both, [remarks(1, 9), remarks(2, 8)]))
    sql(path, "UPDATE channels SET at = ? WHERE key = 1", 1 << 60)
    sql(path, "UPDATE envelopes SET seq = ?", 1 << 61)
    sql(path, "UPDATE channels SET key = ? WHERE key = 2", 1 << 50)
    with opened(path) as (journal, kept):
        assert 9 < kept.seq <= 9 + JUMP
        assert kept.next_key == 3
        assert await journal.load("puppet:/1") == []


def test_a_journal_on_a_medium_that_nobody_writes_to_can_be_read(tmp_path: Path) -> None:
    """SQLite wants a file beside it, which is not to be had there."""
    folder = tmp_path / "medium"
    folder.mkdir()
    journal = SqliteJournal(folder / "journal.db")
    journal.begin(limit=10, boot="b")
    journal.close()
    made = subprocess.run(
        ["mount", "-o", "bind,ro", str(folder), str(folder)], capture_output=True, check=False
    )
    if made.returncode:
        pytest.skip("read-only media can be made by root alone")
    try:
        connection = read_only(folder / "journal.db")
        try:
            assert connection.execute("SELECT count(*) FROM channels").fetchone() == (0,)
        finally:
            connection.close()
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)
