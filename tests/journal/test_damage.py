"""Files that are not as they were left: torn, spoiled, locked, somebody else's (hazard B38)."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from random import Random

import attrs
import pytest
from msgspec import structs

from actors.restoring import CannotRestore, restore_channel, restore_session, summary_of
from ahpd.journal.file import FORMAT, faults, read_only
from ahpd.journal.port import Batch, Envelope, JournalDamaged, JournalFailed
from ahpd.journal.reading import read_kept
from ahpd.journal.sqlite import SqliteJournal
from ahpd.protocol.uris import ROOT, URI
from tests.journal.support import View, World, as_killed, opened, sql, view
from tests.journal.test_sqlite import envelope, facts, remarks

#: Every how many bytes a file is cut where it is long, and how often a long one is spoiled.
#: `AHPD_TEST_DEEP` tries all of them.
DEEP = bool(os.environ.get("AHPD_TEST_DEEP"))


# ---- torn ---------------------------------------------------------------------------------------


async def test_b38_a_tail_that_is_torn_at_any_byte_costs_what_was_torn_alone(
    tmp_path: Path,
) -> None:
    """What comes out is a beginning of what was written; and what is written then, stays."""
    path, batches = tmp_path / "j", 5
    _with_small_pages(path)
    with opened(path) as (journal, _):
        await journal.write(Batch(0, channels=[facts()], states=[remarks()]))
        assert journal._syncing is not None
        journal._syncing.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        wal, ends = path.with_name("j-wal"), []
        for seq in range(1, batches + 1):
            text = f'{{"n":{seq},"text":"\u2028é🦊"}}'.encode()
            await journal.write(Batch(seq, [envelope(seq, text=text)]))
            ends.append(wal.stat().st_size)
        copy = as_killed(path, tmp_path / "killed")
    torn = copy.with_name("j-wal").read_bytes()
    assert len(torn) == ends[-1]
    last = range(ends[-2], len(torn) + 1)
    cuts = range(len(torn) + 1) if DEEP else [*range(0, ends[-2], 97), *last]
    for cut in cuts:
        for name, content in (("j", copy.read_bytes()), ("j-wal", torn[:cut])):
            (tmp_path / "torn" / name).parent.mkdir(exist_ok=True)
            (tmp_path / "torn" / name).write_bytes(content)
        whole = sum(end <= cut for end in ends)
        _has(tmp_path / "torn" / "j", whole)
        if DEEP or cut % 13 == 0:
            _goes_on(tmp_path / "torn" / "j", whole)
        shutil.rmtree(tmp_path / "torn")


def _has(path: Path, whole: int) -> None:
    connection = read_only(path)
    kept = read_kept(connection, limit=99)
    connection.close()
    assert [each.seq for each in kept.window] == list(range(1, whole + 1)), whole


def _goes_on(path: Path, whole: int) -> None:
    journal = SqliteJournal(path)
    kept = journal.begin(limit=99, boot="b")
    assert (kept.seq, len(kept.window)) == (whole, whole)
    # The new record is not joined to what was torn, and lives.
    journal._write(Batch(whole + 1, [envelope(whole + 1, text=b"new")]))
    assert journal._connection is not None
    journal._connection.close()  # killed
    again = SqliteJournal(path)
    kept = again.begin(limit=99, boot="b")
    assert [each.seq for each in kept.window] == list(range(1, whole + 2))
    assert kept.window[-1].params == b"new"
    assert again._connection is not None
    again._connection.close()


def _with_small_pages(path: Path) -> None:
    """So that a frame of the WAL is short, and every byte of it can be tried."""
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA page_size = 512")
    connection.execute("CREATE TABLE x(y)")
    connection.execute("DROP TABLE x")
    connection.close()


async def test_a_file_without_its_wal_is_as_it_was_when_it_was_synced(tmp_path: Path) -> None:
    path = tmp_path / "j"
    with opened(path) as (journal, _):
        await journal.write(Batch(1, [envelope(1)], [facts()], [remarks()]))
        await journal.sync()
        await journal.write(Batch(2, [envelope(2)]))
        copy = as_killed(path, tmp_path / "killed")
    copy.with_name("j-wal").unlink()
    with opened(copy) as (_, kept):
        assert (kept.seq, len(kept.window)) == (1, 1)


@pytest.mark.parametrize("size", [1, 50, 99, 100, 512, 4096, 8192, 20_000])
async def test_a_file_that_was_cut_off_is_refused_in_words(tmp_path: Path, size: int) -> None:
    path = tmp_path / "j"
    with opened(path) as (journal, kept):
        await _fill(World(journal, kept, 1))
    data = path.read_bytes()
    path.write_bytes(data[:size])
    with pytest.raises(JournalDamaged, match=r"is damaged|is no journal"), opened(path):
        pass
    assert path.read_bytes() == data[:size]  # nothing was done to it


# ---- spoiled ------------------------------------------------------------------------------------


async def _fill(world: World, steps: int = 500) -> None:
    world.open_root()
    for _ in range(steps):
        world.step()
        if world.dice.random() < 0.1:
            await world.keep()
    await world.keep()


@attrs.define
class Found:
    """What a host gets out of a file."""

    seq: int = -1
    views: dict[URI, View] = attrs.field(factory=dict)
    window: list[Envelope] = attrs.field(factory=list)
    #: Why something is not there, in words.
    told: list[str] = attrs.field(factory=list)


async def _load(path: Path) -> Found:
    """As a host does it, with everything that can be read set aside or told."""
    found = Found()
    try:
        with opened(path) as (journal, kept):
            found.seq, found.window = kept.seq, list(kept.window)
            world = World(journal, kept, 1)
            try:
                found.told += [why for (why,) in sql(path, "SELECT why FROM damaged")]
            except sqlite3.DatabaseError as error:
                found.told.append(str(error))
            if kept.root is not None:
                try:
                    root = restore_channel(kept.root, "root", world.recorder)
                    found.views[ROOT] = view(root)
                except CannotRestore as error:
                    found.told.append(str(error))
            for session in kept.sessions:
                try:
                    rows = await journal.load(session.uri)
                    summary = summary_of(session.summary)
                    it = restore_session(rows, "session/x", world.recorder, summary)
                    for bad, why in it.damaged:
                        found.told.append(why)
                        await journal.set_aside(bad.key, why)
                except JournalFailed as error:
                    found.told.append(str(error))
                else:
                    found.views.update((each.uri, view(each)) for each in it.channels)
            try:
                await journal.write(Batch(found.seq + 1, [Envelope(found.seq + 1, 1, b"{}")]))
            except JournalDamaged as error:
                found.told.append(str(error))
    except JournalFailed as error:  # full, too: of a row with the highest number that there is
        found.told.append(str(error))
    return found


def _spoiled(data: bytes, dice: Random) -> Iterator[bytes]:
    """The same with one bit turned, one byte, a few, a stretch of zeros, a page of rubbish."""
    size = len(data)
    for length in (1, 1, 1, 16, 100, 4096):
        at = dice.randrange(size)
        new = bytearray(data)
        end = min(at + length, size)
        match dice.randrange(3):
            case 0:
                new[at] ^= 1 << dice.randrange(8)
            case 1:
                new[at:end] = bytes(end - at)
            case _:
                new[at:end] = dice.randbytes(end - at)
        yield bytes(new)


@pytest.mark.parametrize("seed", range(40 if DEEP else 6))
async def test_b38_damage_anywhere_is_told_and_never_taken_for_what_was_written(
    tmp_path: Path, seed: int, caplog: pytest.LogCaptureFixture
) -> None:
    path, dice = tmp_path / "j", Random(seed)
    with opened(path) as (journal, kept):
        world = World(journal, kept, 1)
        await _fill(world)
    before = await _load(_copy(path, path.read_bytes(), tmp_path / "whole"))
    assert (before.views, before.told) == (world.views(), [])
    for _ in range(15):
        for spoiled in _spoiled(path.read_bytes(), dice):
            caplog.clear()
            after = await _load(_copy(path, spoiled, tmp_path / "spoiled"))
            shutil.rmtree(tmp_path / "spoiled")
            for uri, each in after.views.items():
                was = before.views[uri]
                assert _without_ids(each) == _without_ids(was), uri
                assert set(each.used) <= set(was.used), uri
            if before.views.keys() - after.views.keys():
                assert after.told or caplog.records
            if after.seq >= 0:
                assert after.seq >= before.seq
            assert all(each in before.window for each in after.window)


def _without_ids(view: View) -> View:
    """Without the ids that were used, and how lists show it: both are made up for."""
    return attrs.evolve(view, used=[], notes=structs.replace(view.notes, summary=None))


def _copy(path: Path, content: bytes, folder: Path) -> Path:
    folder.mkdir()
    (folder / path.name).write_bytes(content)
    return folder / path.name


async def test_the_bytes_of_what_is_set_aside_are_kept(tmp_path: Path) -> None:
    path = tmp_path / "j"
    with opened(path) as (journal, _):
        said = [envelope(1, text=b"\xff\x00{"), envelope(2, 2)]
        await journal.write(Batch(2, said, [facts(1), facts(2, "x")], [remarks(1), remarks(2)]))
        await journal.set_aside(1, "somebody's reason")
        assert await journal.load("puppet:/1") == []
        assert len(await journal.load("x")) == 1
    rows = sql(path, "SELECT why, kept, row FROM damaged ORDER BY kept")
    assert [(why, kept) for why, kept, _ in rows] == [
        ("somebody's reason", "channels"),
        ("somebody's reason", "envelopes"),
    ]
    assert "\\u00ff\\u0000{" in rows[1][2].decode()


async def test_an_index_that_leads_astray_is_made_anew(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "j"
    with opened(path) as (journal, _):
        await journal.write(Batch(1, [envelope(1)], [facts()], [remarks()]))
    data = path.read_bytes()
    [(page,)] = sql(
        path, "SELECT rootpage FROM sqlite_schema WHERE name LIKE '%autoindex_channels%'"
    )
    at = data.index(b"puppet:/1", (page - 1) * 4096)
    assert at < page * 4096
    path.write_bytes(data[:at] + b"puppet:/2" + data[at + 9 :])
    with opened(path) as (journal, _):
        assert len(await journal.load("puppet:/1")) == 1
    assert "an index of the table channels did not fit its rows" in caplog.text


async def test_a_text_that_is_no_text_any_more_is_damage_like_any_other(tmp_path: Path) -> None:
    path = tmp_path / "j"
    with opened(path) as (journal, _):
        whole = facts(1, used=("an-id",), attached={"m-id": b"[]"})
        await journal.write(Batch(1, [envelope(1)], [whole], [remarks()]))
    sql(path, "UPDATE envelopes SET audience = CAST(x'ff' AS TEXT)")
    with opened(path) as (journal, kept):
        assert list(kept.window) == []
        # It may have been an action that the channel's state needs.
        assert await journal.load("puppet:/1") == []
    [(why,)] = sql(path, "SELECT DISTINCT why FROM damaged")
    assert why == "what happened last in it cannot be read"


# ---- files of others ----------------------------------------------------------------------------


def test_what_is_no_database_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "j"
    path.write_text("Dear diary,\n" * 999)
    _refused(path, "is no journal: it is not an SQLite file")
    assert path.read_text() == "Dear diary,\n" * 999


def test_a_database_of_another_program_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "j"
    sql(path, "CREATE TABLE bookmarks(url)")
    before = path.read_bytes()
    _refused(path, "is no journal: it belongs to another program")
    assert path.read_bytes() == before


def test_a_file_of_a_newer_version_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "j"
    with opened(path):
        pass
    sql(path, f"PRAGMA user_version = {FORMAT + 1}")
    before = path.read_bytes()
    _refused(path, f"it has format {FORMAT + 1}, this one reads up to {FORMAT}")
    assert path.read_bytes() == before


def test_tables_that_are_not_ours_are_damage(tmp_path: Path) -> None:
    path = tmp_path / "j"
    with opened(path):
        pass
    sql(path, "ALTER TABLE envelopes RENAME TO letters")
    with pytest.raises(JournalDamaged, match="its tables are not those of a journal"), opened(path):
        pass


def test_a_folder_in_its_place_is_said(tmp_path: Path) -> None:
    with pytest.raises(JournalFailed, match="cannot be opened"), opened(tmp_path):
        pass


def _refused(path: Path, sentence: str) -> None:
    for look in (lambda: SqliteJournal(path).begin(limit=9, boot="b"), lambda: read_only(path)):
        with pytest.raises(JournalDamaged) as refused:
            look()
        assert str(path) in str(refused.value)
        assert sentence in str(refused.value)


# ---- a medium that does not work ----------------------------------------------------------------

_HOLD = """
import sqlite3, sys
connection = sqlite3.connect(sys.argv[1], isolation_level=None)
connection.execute("PRAGMA locking_mode = EXCLUSIVE")
connection.execute("BEGIN EXCLUSIVE")
connection.execute("INSERT OR REPLACE INTO meta VALUES('x', 1, 1)")
print("held", flush=True)
sys.stdin.read()
connection.execute("ROLLBACK")
connection.close()
"""


def test_a_file_that_another_process_locks_is_said_and_works_when_it_lets_go(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ahpd.journal.file._LOCKED_WITHIN", 0.05)
    path = tmp_path / "j"
    with opened(path) as (journal, _):
        journal._write(Batch(1, [envelope(1)], [facts()], [remarks()]))
        copy = as_killed(path, tmp_path / "killed")
    holder = subprocess.Popen(
        [sys.executable, "-c", _HOLD, str(copy)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert holder.stdout is not None
    assert holder.stdin is not None
    try:
        assert holder.stdout.readline() == b"held\n"
        with pytest.raises(JournalFailed, match="is locked by another program") as refused:
            SqliteJournal(copy).begin(limit=9, boot="b")
        assert not isinstance(refused.value, JournalDamaged)
        holder.stdin.close()
        holder.wait(60)
    finally:
        holder.kill()
        holder.wait()
        holder.stdout.close()
    with opened(copy) as (_, kept):
        assert kept.seq == 1


_BEGIN = """
import os, sys
from pathlib import Path
from ahpd.journal.port import JournalDamaged, JournalFailed
from ahpd.journal.reading import read_kept
from ahpd.journal.sqlite import SqliteJournal
if os.getuid() == 0:
    os.setgroups([])
    os.setgid(65534)
    os.setuid(65534)
try:
    SqliteJournal(Path(sys.argv[1])).begin(limit=9, boot="b")
except JournalFailed as error:
    print(type(error).__name__, error)
"""


@pytest.mark.parametrize(("mode", "folder"), [(0o444, 0o777), (0o666, 0o555), (0, 0o777)])
def test_what_may_only_be_read_is_said(mode: int, folder: int) -> None:
    """By somebody who is not root, for whom nothing is read-only."""
    place = Path(tempfile.mkdtemp())
    path = place / "j"
    try:
        with opened(path) as (journal, _):
            journal._write(Batch(1, [envelope(1)], [facts()], [remarks()]))
        path.chmod(mode)
        place.chmod(folder)
        said = subprocess.run(
            [sys.executable, "-c", _BEGIN, str(path)], capture_output=True, text=True, check=False
        )
    finally:
        place.chmod(0o700)
        shutil.rmtree(place)
    assert said.stderr == ""
    assert said.stdout.startswith("JournalFailed ")
    assert "read-only" in said.stdout or "Permission denied" in said.stdout
    assert str(path) in said.stdout


def test_errors_of_the_medium_are_told_from_damage_and_named(tmp_path: Path) -> None:
    path = tmp_path / "{odd} name"

    def told(code: int | None, text: str = "x") -> tuple[type, str]:
        error = sqlite3.OperationalError(text)
        if code is not None:
            error.sqlite_errorcode = code
        with pytest.raises(JournalFailed) as raised, faults(path):
            raise error
        assert str(path) in str(raised.value)
        return type(raised.value), str(raised.value)

    ioerr_write, corrupt_index = sqlite3.SQLITE_IOERR | (3 << 8), sqlite3.SQLITE_CORRUPT | (3 << 8)
    assert told(ioerr_write)[0] is JournalFailed
    assert "input/output error" in told(ioerr_write)[1]
    assert "the disk is full" in told(sqlite3.SQLITE_FULL)[1]
    assert told(corrupt_index)[0] is JournalDamaged
    assert told(None)[0] is JournalDamaged
    assert told(sqlite3.SQLITE_INTERRUPT, "stopped {here}") == (
        JournalFailed,
        f"{path}: stopped {{here}}",
    )
