"""The journal's file: its tables, how it is opened, and its faults in words.

| table | a row is | until |
|---|---|---|
| `meta` | one of the numbers that the host goes on with | |
| `channels` | a channel: its last snapshot, and what the host alone knows of it | it ends |
| `turns` | completed turns of a chat's snapshot | they are taken back |
| `used` | ids that were consumed | their channel ends |
| `attached` | what was attached to a message | its channel ends |
| `envelopes` | a run of a channel's envelopes | a snapshot holds them and no replay can want them |
| `clients` | a client that may come back | no replay can serve it |
| `damaged` | the bytes of a channel that could not be read | somebody deletes it |

A run is what came on one channel between two envelopes of others in a batch: envelopes from number
`first` to number `seq`, a line of JSON each. One that is for one client alone, or that is not the
same for all, is a run of its own. Most streams are of one channel, so most batches are one row. How
lists are kept, as in `turns` and `used`, is said in `ahpd.journal.packing`.

Every row has a checksum over all that it holds (`ahpd.journal.sums`): SQLite finds a page that
makes no sense, but not a letter that has become another one. Those of `channels` are written in
parts, and have one for each: `place` is that of the first columns, `crc` that of the snapshot, and
`notes`, `heritage` and `summary` begin with their own (`seal`).

The file is in SQLite's WAL mode. A killed process loses nothing that was committed; what a loss of
power can take is said in `ahpd.journal.sqlite`.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote

from ahpd.journal.packing import COLUMNS
from ahpd.journal.port import JournalDamaged, JournalFailed

#: Marks the file as ours ("ahpd").
APPLICATION = 0x61687064
#: The version of the tables; files of a newer one are refused.
FORMAT = 1

_TABLES = f"""
CREATE TABLE meta(name TEXT PRIMARY KEY, value NOT NULL, crc INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE channels(
    key INTEGER PRIMARY KEY, uri TEXT NOT NULL UNIQUE, kind TEXT NOT NULL, owner TEXT,
    path TEXT NOT NULL, busy INTEGER NOT NULL, place INTEGER NOT NULL,
    notes BLOB, heritage BLOB, summary BLOB,
    at INTEGER NOT NULL DEFAULT -1, state BLOB, turns INTEGER NOT NULL DEFAULT 0, crc INTEGER);
CREATE INDEX channels_owner ON channels(owner) WHERE owner IS NOT NULL;
CREATE TABLE turns({COLUMNS});
CREATE TABLE used({COLUMNS});
CREATE TABLE attached(
    channel INTEGER NOT NULL, id TEXT NOT NULL, text BLOB NOT NULL, crc INTEGER NOT NULL,
    PRIMARY KEY(channel, id)) WITHOUT ROWID;
CREATE TABLE envelopes(
    seq INTEGER PRIMARY KEY, first INTEGER NOT NULL, channel INTEGER NOT NULL,
    params BLOB NOT NULL, audience TEXT, windowed BLOB, page_start INTEGER, page_end INTEGER,
    crc INTEGER NOT NULL);
CREATE INDEX envelopes_channel ON envelopes(channel, seq);
CREATE TABLE clients(
    id TEXT PRIMARY KEY, version TEXT NOT NULL, left_at INTEGER, lost INTEGER NOT NULL,
    baselines BLOB NOT NULL, crc INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE damaged(
    at TEXT NOT NULL, why TEXT NOT NULL, kept TEXT NOT NULL, row BLOB NOT NULL);
"""

#: Bytes that every SQLite file begins with.
_HEADER = 100

#: Seconds that a file which somebody else locks is waited for.
_LOCKED_WITHIN = 2.0

_SENTENCES = {
    sqlite3.SQLITE_FULL: "the disk is full: {} cannot grow",
    sqlite3.SQLITE_READONLY: "{} cannot be written: it, or its folder, is read-only",
    sqlite3.SQLITE_IOERR: "reading or writing {} failed (input/output error)",
    sqlite3.SQLITE_BUSY: "{} is locked by another program",
    sqlite3.SQLITE_LOCKED: "{} is locked by another program",
    sqlite3.SQLITE_CANTOPEN: "{} cannot be opened: it, or its folder, may be read-only",
    sqlite3.SQLITE_PERM: "{} may not be opened",
    sqlite3.SQLITE_AUTH: "{} may not be opened",
    sqlite3.SQLITE_NOMEM: "there is no memory left to use {} with",
}
_DAMAGED = {
    sqlite3.SQLITE_NOTADB: "{} is no journal: it is not an SQLite file",
    sqlite3.SQLITE_CORRUPT: "{} is damaged",
    # Tables and columns that are not there: their definitions are in the file too.
    sqlite3.SQLITE_ERROR: "{} is damaged: its tables are not those of a journal",
    sqlite3.SQLITE_SCHEMA: "{} is damaged: its tables are not those of a journal",
    # A row that another one stands in the way of, or of a type that none was written with.
    sqlite3.SQLITE_CONSTRAINT: "{} is damaged: its rows do not fit each other",
    sqlite3.SQLITE_MISMATCH: "{} is damaged: its rows are not those of a journal",
}


@contextmanager
def faults(path: Path) -> Iterator[None]:
    """Raise what SQLite raises in this block as `JournalFailed` or `JournalDamaged`, in words."""
    try:
        yield
    except sqlite3.Error as error:
        code = getattr(error, "sqlite_errorcode", None)
        # The module's own errors have no code: values that it cannot make sense of.
        code = sqlite3.SQLITE_CORRUPT if code is None else code & 0xFF
        if code in _DAMAGED:
            raise JournalDamaged(_DAMAGED[code].format(path)) from error
        sentence = _SENTENCES.get(code)
        text = f"{path}: {error}" if sentence is None else sentence.format(path)
        raise JournalFailed(text) from error
    except UnicodeDecodeError as error:  # the module reads a definition out, and cannot
        raise JournalDamaged(_DAMAGED[sqlite3.SQLITE_SCHEMA].format(path)) from error


# ---- opening ------------------------------------------------------------------------------------


def connect(path: Path, *, synchronous: str) -> sqlite3.Connection:
    """A connection to the file, which is made when there is none, mode 0600. Blocks.

    Raises `JournalFailed`, and `JournalDamaged` also for a file of another program's or of a newer
    version's.
    """
    with faults(path):
        try:
            path.touch(mode=0o600)
            if 0 < path.stat().st_size < _HEADER:  # SQLite would take that for nothing at all
                raise JournalDamaged(_DAMAGED[sqlite3.SQLITE_NOTADB].format(path))
        except OSError as error:
            raise JournalFailed(f"{path} cannot be opened: {error.strerror}") from error
        connection = sqlite3.connect(
            path, timeout=_LOCKED_WITHIN, isolation_level=None, check_same_thread=False
        )
        try:
            _begin(connection, path, synchronous)
        except BaseException:
            connection.close()
            raise
        return connection


def _begin(connection: sqlite3.Connection, path: Path, synchronous: str) -> None:
    connection.execute(f"PRAGMA synchronous = {synchronous}")
    _check(connection, path)
    # Where the library was built to write zeros over all that is deleted, each page of it would be
    # written once more, which for output that is kept for a while only is half of all writing.
    connection.execute("PRAGMA secure_delete = FAST")
    connection.execute("PRAGMA wal_autocheckpoint = 0")
    connection.execute("PRAGMA journal_size_limit = 67108864")
    connection.execute("PRAGMA cache_size = -8192")


def _check(connection: sqlite3.Connection, path: Path) -> None:
    """Make the tables of a new file; see that those of an old one are ours."""
    application, version = _marks(connection)
    (tables,) = connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()
    if not tables:
        connection.execute("PRAGMA auto_vacuum = INCREMENTAL")
        connection.execute("PRAGMA journal_mode = WAL").fetchone()
        # One transaction: a process that is killed here leaves an empty file, or a whole one.
        connection.executescript(
            f"BEGIN; {_TABLES} PRAGMA application_id = {APPLICATION};"
            f" PRAGMA user_version = {FORMAT}; COMMIT;"
        )
        return
    _check_marks(path, application, version)
    connection.execute("PRAGMA journal_mode = WAL").fetchone()


def text_of(text: bytes) -> str:
    """For `text_factory`: what is no UTF-8 must not fail here, but at its row's checksum.

    It is some times slower than what the module does by itself.
    """
    return text.decode("utf-8", "surrogateescape")


def read_only(path: Path) -> sqlite3.Connection:
    """A connection that changes nothing, for whoever looks in from outside. Blocks.

    It works beside a daemon's, and does not move anything from the WAL into the file either.
    Raises as `connect`, and when there is no file.
    """
    if not path.exists():
        raise JournalFailed(f"there is no journal {path}")
    with faults(path):
        connection = sqlite3.connect(
            f"file:{quote(str(path.absolute()))}?{_only_read(path)}",
            uri=True,
            timeout=_LOCKED_WITHIN,
            isolation_level=None,
        )
        connection.text_factory = text_of
        try:
            application, version = _marks(connection)
            (tables,) = connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()
            if tables:
                _check_marks(path, application, version)
            else:
                raise JournalFailed(f"{path} is empty: no daemon has used it yet")
        except BaseException:
            connection.close()
            raise
        return connection


def _only_read(path: Path) -> str:
    """How to open a file that is only read.

    Beside a WAL SQLite wants to write a file of its own; where it cannot, on a medium that nobody
    writes to, and there is no WAL with anything in it, it is told that nobody does.
    """
    wal = path.with_name(path.name + "-wal")
    has_wal = wal.exists() and wal.stat().st_size > 0
    return "mode=ro" if has_wal or os.access(path.parent, os.W_OK) else "immutable=1"


def _marks(connection: sqlite3.Connection) -> tuple[int, int]:
    """The application that the file belongs to, and the version of its tables."""
    (application,) = connection.execute("PRAGMA application_id").fetchone()
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    return application, version


def _check_marks(path: Path, application: int, version: int) -> None:
    """Raises `JournalDamaged` for a file that is not ours, or too new."""
    if application != APPLICATION:
        raise JournalDamaged(f"{path} is no journal: it belongs to another program")
    if version > FORMAT:
        raise JournalDamaged(
            f"{path} was written by a newer ahpd: it has format {version}, this one reads up to"
            f" {FORMAT}"
        )
