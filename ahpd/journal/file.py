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
same for all, is a run of its own. Most streams are of one channel, so most batches are one row.

How lists are kept, as in `turns` and `used`, is said in `ahpd.journal.packing`. Every row that
holds somebody's words has a checksum over them: SQLite finds a page that makes no sense, but not a
letter that has become another one.

The file is in SQLite's WAL mode. A killed process loses nothing that was committed; what a loss of
power can take is said in `ahpd.journal.sqlite`.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ahpd.journal.packing import COLUMNS
from ahpd.journal.port import JournalDamaged, JournalFailed

#: Marks the file as ours ("ahpd").
APPLICATION = 0x61687064
#: The version of the tables; files of a newer one are refused.
FORMAT = 1

_TABLES = f"""
CREATE TABLE meta(name TEXT PRIMARY KEY, value NOT NULL) WITHOUT ROWID;
CREATE TABLE channels(
    key INTEGER PRIMARY KEY, uri TEXT NOT NULL UNIQUE, kind TEXT NOT NULL, owner TEXT,
    path TEXT NOT NULL, busy INTEGER NOT NULL, notes BLOB, heritage BLOB, summary BLOB,
    at INTEGER NOT NULL DEFAULT -1, state BLOB, turns INTEGER NOT NULL DEFAULT 0, crc INTEGER);
CREATE INDEX channels_owner ON channels(owner) WHERE owner IS NOT NULL;
CREATE TABLE turns({COLUMNS});
CREATE TABLE used({COLUMNS});
CREATE TABLE attached(
    channel INTEGER NOT NULL, id TEXT NOT NULL, text BLOB NOT NULL, PRIMARY KEY(channel, id))
    WITHOUT ROWID;
CREATE TABLE envelopes(
    seq INTEGER PRIMARY KEY, first INTEGER NOT NULL, channel INTEGER NOT NULL,
    params BLOB NOT NULL, audience TEXT, windowed BLOB, page_start INTEGER, page_end INTEGER,
    crc INTEGER NOT NULL);
CREATE INDEX envelopes_channel ON envelopes(channel, seq);
CREATE TABLE clients(
    id TEXT PRIMARY KEY, version TEXT NOT NULL, left_at INTEGER, lost INTEGER NOT NULL,
    baselines BLOB NOT NULL) WITHOUT ROWID;
CREATE TABLE damaged(
    at TEXT NOT NULL, why TEXT NOT NULL, kept TEXT NOT NULL, row BLOB NOT NULL);
"""

#: Seconds that a file which somebody else locks is waited for.
_LOCKED_WITHIN = 2.0

_SENTENCES = {
    sqlite3.SQLITE_FULL: "the disk is full: {path} cannot grow",
    sqlite3.SQLITE_READONLY: "{path} cannot be written: it, or its folder, is read-only",
    sqlite3.SQLITE_IOERR: "reading or writing {path} failed (input/output error)",
    sqlite3.SQLITE_BUSY: "{path} is locked by another program",
    sqlite3.SQLITE_LOCKED: "{path} is locked by another program",
    sqlite3.SQLITE_CANTOPEN: "{path} cannot be opened",
    sqlite3.SQLITE_PERM: "{path} may not be opened",
    sqlite3.SQLITE_AUTH: "{path} may not be opened",
    sqlite3.SQLITE_NOMEM: "there is no memory left to use {path} with",
}
_DAMAGED = {
    sqlite3.SQLITE_NOTADB: "{path} is no journal: it is not an SQLite file",
    sqlite3.SQLITE_CORRUPT: "{path} is damaged",
    sqlite3.SQLITE_SCHEMA: "{path} is damaged: its tables are not those of a journal",
}


@contextmanager
def faults(path: Path) -> Iterator[None]:
    """Raise what SQLite raises in this block as `JournalFailed` or `JournalDamaged`, in words."""
    try:
        yield
    except sqlite3.Error as error:
        code = getattr(error, "sqlite_errorcode", None)
        code = code & 0xFF if code is not None else 0
        if code in _DAMAGED:
            raise JournalDamaged(_DAMAGED[code].format(path=path)) from error
        sentence = _SENTENCES.get(code, "{path}: " + str(error).replace("{", "{{"))
        raise JournalFailed(sentence.format(path=path)) from error


def connect(path: Path, *, synchronous: str) -> sqlite3.Connection:
    """A connection to the file, which is made when there is none, mode 0600. Blocks.

    Raises `JournalFailed`, and `JournalDamaged` also for a file of another program's or of a newer
    version's.
    """
    with faults(path):
        try:
            path.touch(mode=0o600)
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
    connection.execute("PRAGMA wal_autocheckpoint = 0")
    connection.execute("PRAGMA journal_size_limit = 67108864")
    connection.execute("PRAGMA cache_size = -8192")


def _check(connection: sqlite3.Connection, path: Path) -> None:
    """Make the tables of a new file; see that those of an old one are ours."""
    (application,) = connection.execute("PRAGMA application_id").fetchone()
    (version,) = connection.execute("PRAGMA user_version").fetchone()
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
    if application != APPLICATION:
        raise JournalDamaged(f"{path} is no journal: it belongs to another program")
    if version > FORMAT:
        raise JournalDamaged(
            f"{path} was written by a newer ahpd: it has format {version}, this one reads up to"
            f" {FORMAT}"
        )
    connection.execute("PRAGMA journal_mode = WAL").fetchone()


def read_only(path: Path) -> sqlite3.Connection:
    """A connection that changes nothing, for whoever looks in from outside. Blocks.

    Raises as `connect`, and when there is no file.
    """
    if not path.exists():
        raise JournalFailed(f"there is no journal {path}")
    with faults(path):
        connection = sqlite3.connect(path, timeout=_LOCKED_WITHIN, isolation_level=None)
        try:
            connection.execute("PRAGMA query_only = 1")
            _check_only(connection, path)
        except BaseException:
            connection.close()
            raise
        return connection


def _check_only(connection: sqlite3.Connection, path: Path) -> None:
    (application,) = connection.execute("PRAGMA application_id").fetchone()
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    if application != APPLICATION or version > FORMAT:
        raise JournalDamaged(f"{path} is no journal that this ahpd can read")
