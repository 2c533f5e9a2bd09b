"""JSON lines over a Unix socket: for programs of the same user on the same machine.

Needs no token. Who may connect is decided three times over: by the folder (0700), by the socket
file (0600), and by the kernel's word on who the peer is.
"""

from __future__ import annotations

import errno
import fcntl
import logging
import os
import socket
import stat
import struct
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import attrs
import trio

from ahpd.transports.accepting import serve_listeners
from ahpd.transports.lines import LINE_LIMIT
from ahpd.transports.linestream import LineTransport
from ahpd.transports.port import Handler

_log = logging.getLogger("ahpd.transports")

#: Bytes a socket's path may have: the kernel's field less the NUL at its end.
PATH_LIMIT = 107 if sys.platform == "linux" else 103

_CREDENTIALS = struct.Struct("3i")  # pid, uid, gid
_BACKLOG = 128


class SocketPathError(Exception):
    """The socket cannot be made at this path; the message says why and what to do."""


class SocketInUse(SocketPathError):
    """Another process listens there."""


async def serve_unix(
    handler: Handler,
    path: Path,
    *,
    limit: int = LINE_LIMIT,
    task_status: trio.TaskStatus[Path] = trio.TASK_STATUS_IGNORED,
) -> None:
    """Listen at `path` and give each connection to `handler`; `limit` bounds one line, in bytes.

    Runs until cancelled, then removes the socket file if it is still its own. The folder is made
    when absent. A socket file that a dead process left is replaced.

    Raises `SocketPathError` when the path is too long, its folder is open to others, or something
    else is there; `SocketInUse` when another process listens there; OSError.
    """
    sock, mark = _bind(path)
    try:
        # A copy for trio, which closes it when cancelled. Ours listens until the file is gone:
        # before that nobody may take the path for a dead one's and put another file there.
        listener = trio.SocketListener(trio.socket.from_stdlib_socket(sock.dup()))
        task_status.started(path)
        await serve_listeners(_Doorman(handler, limit).serve, [listener], "unix")
    finally:
        _remove(path, mark)
        sock.close()


@attrs.frozen
class _Doorman:
    handler: Handler
    limit: int

    async def serve(self, stream: trio.SocketStream) -> None:
        uid = _peer_uid(stream.socket)
        if uid not in (None, 0, os.getuid()):
            _log.warning("unix: a process of uid %s was turned away", uid)
            await trio.aclose_forcefully(stream)
            return
        transport = LineTransport(stream, "unix", limit=self.limit)
        try:
            await self.handler(transport)
        except* Exception:  # noqa: BLE001
            # A handler promises not to raise; when it does, only its own connection ends.
            _log.exception("unix: the handler failed")
        finally:
            await transport.close()


def _peer_uid(sock: trio.socket.SocketType) -> int | None:
    """Whose process is on the other end; None where the system does not say."""
    option = getattr(socket, "SO_PEERCRED", None)
    if option is None:
        return None
    data = sock.getsockopt(socket.SOL_SOCKET, option, _CREDENTIALS.size)
    return int(_CREDENTIALS.unpack(data)[1])


def check_path(path: Path) -> None:
    """Raises `SocketPathError` when the path is longer than a socket's may be."""
    size = len(os.fsencode(path))
    if size > PATH_LIMIT:
        raise SocketPathError(
            f"{path} has {size} bytes, and the path of a Unix socket has {PATH_LIMIT} at most: "
            "choose a shorter folder"
        )


def _bind(path: Path) -> tuple[socket.socket, tuple[int, int]]:
    """A listening socket at `path`, and what identifies its file."""
    check_path(path)
    folder = path.parent
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    about = folder.stat()
    mode = stat.S_IMODE(about.st_mode)
    if about.st_uid != os.getuid():
        raise SocketPathError(f"{folder} belongs to another user (uid {about.st_uid})")
    if mode & 0o077:
        raise SocketPathError(
            f"{folder} has mode {mode:04o}, but a folder with a socket in it must be its owner's "
            f"alone: chmod 700 {folder}"
        )
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        with _locked(folder):
            _clear(path)
            # Twice, because only one of them works on each system.
            os.fchmod(sock.fileno(), 0o600)
            sock.bind(os.fspath(path))
            path.chmod(0o600)
            sock.listen(_BACKLOG)
            file = path.stat(follow_symlinks=False)
    except BaseException:
        sock.close()
        raise
    return sock, (file.st_dev, file.st_ino)


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """The folder's lock, so that of two processes that start at once one sees the other.

    It is held for the few system calls of binding, and by no other code, so waiting for it blocks
    for no time worth a thread.
    """
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX)
        yield
    finally:
        os.close(fd)


def _clear(path: Path) -> None:
    """Remove what a dead process left at `path`; raises when it is something else."""
    try:
        mode = path.stat(follow_symlinks=False).st_mode
    except FileNotFoundError:
        return
    if not stat.S_ISSOCK(mode):
        raise SocketPathError(f"{path} is there already and is no socket")
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.setblocking(False)  # one whose backlog is full is alive too
        answer = probe.connect_ex(os.fspath(path))
    if answer not in (errno.ECONNREFUSED, errno.ENOENT):
        raise SocketInUse(f"another process listens at {path}")
    path.unlink(missing_ok=True)


def _remove(path: Path, mark: tuple[int, int]) -> None:
    with suppress(OSError):
        file = path.stat(follow_symlinks=False)
        if (file.st_dev, file.st_ino) == mark:
            path.unlink()
