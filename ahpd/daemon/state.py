"""The state folder: what one daemon owns on disk, and how others find it.

The folder has mode 0700 and its files 0600, whatever the umask. One daemon at a time holds `lock`,
by `flock`, which the kernel lets go of with the process: a number left in the file by a daemon that
was killed never matters.

| file | holds |
|---|---|
| `lock` | the pid of the daemon that holds it |
| `token` | the connection token of the TCP listener |
| `journal.db` | everything that a restart has to find again (`ahpd.journal`) |
| `ahpd.sock` | the Unix socket |
| `look.sock` | the socket of `ahpd ps` and `ahpd attach` |
| `endpoint.json` | `url`, `unix`, `pid`, `version`, `started`: while clients are taken |
| `launch.json` | `arguments` and `folder` of the last start, for ``ahpd restart`` |
| `crashes` | a folder with reports on actors that crashed |
| `daemon.log` | what a daemon started by ``ahpd start`` says |
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import stat
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import attrs

from ahpd.daemon.errors import AlreadyRunning, StateError

#: How often a lock that is held is asked for, and the seconds between.
_TRIES, _TRY_AGAIN = 5, 0.01


def default_folder() -> Path:
    """Where the state lives when nobody says otherwise."""
    import platformdirs  # noqa: PLC0415 - slow, and of no use to whoever names a folder

    return platformdirs.user_state_path("ahpd", appauthor=False)


@attrs.frozen
class Endpoint:
    """How to reach a running daemon. `url` carries the token; `started` is ISO 8601."""

    url: str = attrs.field(repr=False)
    unix: str
    pid: int
    version: str
    started: str


@attrs.frozen
class StateFolder:
    """The paths in one state folder."""

    path: Path

    @property
    def lock(self) -> Path:
        """See the module."""
        return self.path / "lock"

    @property
    def token(self) -> Path:
        """See the module."""
        return self.path / "token"

    @property
    def journal(self) -> Path:
        """See the module."""
        return self.path / "journal.db"

    @property
    def socket(self) -> Path:
        """See the module."""
        return self.path / "ahpd.sock"

    @property
    def look(self) -> Path:
        """See the module."""
        return self.path / "look.sock"

    @property
    def endpoint(self) -> Path:
        """See the module."""
        return self.path / "endpoint.json"

    @property
    def launch(self) -> Path:
        """See the module."""
        return self.path / "launch.json"

    @property
    def crashes(self) -> Path:
        """See the module."""
        return self.path / "crashes"

    @property
    def log(self) -> Path:
        """See the module."""
        return self.path / "daemon.log"

    def make(self) -> None:
        """Make the folder when it is missing, and private in any case. Raises `StateError`."""
        try:
            self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
            about = self.path.stat()
            if about.st_uid != os.getuid():
                raise StateError(f"the state folder {self.path} belongs to another user")
            if stat.S_IMODE(about.st_mode) != 0o700:
                self.path.chmod(0o700)
        except OSError as error:
            raise StateError(f"the state folder {self.path}: {error.strerror}") from None

    @contextlib.contextmanager
    def held(self) -> Iterator[bool]:
        """Make the folder and be its one daemon for the length of the block.

        Gives whether the last one was killed. Raises `AlreadyRunning`, and `StateError` when the
        folder cannot be used.
        """
        self.make()
        try:
            fd = os.open(self.lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise StateError(f"the state folder {self.path}: {error.strerror}") from None
        try:
            self._lock(fd)
            try:
                os.ftruncate(fd, 0)
                os.pwrite(fd, b"%d\n" % os.getpid(), 0)
                # What a daemon that was killed left behind; nobody else can be using it now.
                was_killed = self.endpoint.exists()
                self.endpoint.unlink(missing_ok=True)
            except OSError as error:
                raise StateError(f"the state folder {self.path}: {error.strerror}") from None
            yield was_killed
        finally:
            # The file stays: one that is removed while another daemon waits for it locks nothing.
            os.close(fd)

    def _lock(self, fd: int) -> None:
        """Lock the folder. Whoever asks who holds it (`holder`) has the lock for a moment too."""
        for _ in range(_TRIES):
            with contextlib.suppress(BlockingIOError):
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return
            time.sleep(_TRY_AGAIN)
        raise AlreadyRunning(self.path, _number(os.pread(fd, 32, 0)))

    def holder(self) -> int | None:
        """The pid of the daemon that runs on this folder; None when there is none. Blocks briefly.

        A daemon whose pid is not in the file yet is one that is just starting: then 0.
        """
        try:
            fd = os.open(self.lock, os.O_RDWR | os.O_CLOEXEC)
        except OSError:
            return None
        try:
            fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return _number(os.pread(fd, 32, 0)) or 0
        finally:
            os.close(fd)
        return None

    def read_endpoint(self) -> Endpoint | None:
        """How to reach the daemon that runs on this folder; None when none takes clients."""
        pid = self.holder()
        value = read_json(self.endpoint) if pid is not None else None
        if not isinstance(value, dict):
            return None
        try:
            endpoint = Endpoint(
                **{field.name: value[field.name] for field in attrs.fields(Endpoint)}
            )
        except KeyError:
            return None
        return endpoint if endpoint.pid == pid else None


def folder_at(name: str | None) -> StateFolder:
    """The state folder of that name, or the usual one."""
    return StateFolder(default_folder() if name is None else Path(name).expanduser())


def read_json(path: Path) -> Any:
    """The value in a file of ours; None when there is none that can be read."""
    try:
        return json.loads(path.read_bytes())
    except (OSError, ValueError):
        return None


def write_private(path: Path, value: Any) -> None:
    """Put a JSON value into a file of mode 0600, whole or not at all. Raises OSError."""
    draft = path.with_name(f".{path.name}.{os.getpid()}.{os.urandom(4).hex()}")
    fd = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        with os.fdopen(fd, "w", encoding="utf-8") as file:
            json.dump(value, file)
            file.write("\n")
        draft.replace(path)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise


def _number(text: bytes) -> int | None:
    try:
        return int(text)
    except ValueError:
        return None
