"""The kernel's watches on folders (inotify), through the C library.

One descriptor for the whole host: the kernel allows a user few of them (128), and many watches on
each. A folder is watched through an open descriptor, so that nobody can put another in its place
between the look and the watch.
"""

from __future__ import annotations

import errno
import os
import struct
import sys

from msgspec import Struct

MODIFY, ATTRIB, CLOSE_WRITE = 0x2, 0x4, 0x8
MOVED_FROM, MOVED_TO, CREATE, DELETE = 0x40, 0x80, 0x100, 0x200
DELETE_SELF, MOVE_SELF = 0x400, 0x800
UNMOUNT, OVERFLOW, IGNORED = 0x2000, 0x4000, 0x8000
_ONLYDIR, _MASK_ADD = 0x0100_0000, 0x2000_0000

#: What comes and goes in a folder, and that it goes itself.
NAMES = MOVED_FROM | MOVED_TO | CREATE | DELETE | DELETE_SELF | MOVE_SELF
#: And what changes in the files in it.
ALL = NAMES | MODIFY | ATTRIB | CLOSE_WRITE

_HEAD = struct.Struct("iIII")
#: Bytes of the longest event.
_LONGEST = _HEAD.size + 256
#: Bytes read at a time: some thousand events.
_PORTION = 256 << 10

#: What is said when there is no room. A container may have limits of its own beside the machine's,
#: under the second names.
NO_WATCHES = (
    "there are no more of the watches that the kernel allows a user"
    " (sysctl fs.inotify.max_user_watches, user.max_inotify_watches)"
)
NO_WATCHERS = (
    "there are no more of the watchers that the kernel allows a user"
    " (sysctl fs.inotify.max_user_instances, user.max_inotify_instances)"
)
_LIMITS = {errno.ENOSPC: NO_WATCHES, errno.EMFILE: NO_WATCHERS}


class WatchLimit(Exception):
    """The kernel allows no more; the message says of what."""


class Event(Struct, frozen=True):
    """Something happened in the folder of `wd`: to `name` in it, or when that is empty to it."""

    wd: int
    mask: int
    name: bytes


class Inotify:
    """One descriptor. Its methods may be called from any thread, and do not wait.

    Raises `WatchLimit`, and `OSError`.
    """

    def __init__(self) -> None:
        self.fd = -1
        if not sys.platform.startswith("linux"):
            raise OSError(errno.ENOSYS, "files can be watched on Linux only")
        import ctypes  # noqa: PLC0415 - nobody watches at the start

        self._ctypes = ctypes
        self._libc = ctypes.CDLL(None, use_errno=True)
        self.fd = self._checked(self._libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC))

    def __del__(self) -> None:
        if self.fd >= 0:
            os.close(self.fd)

    def add(self, folder: int, mask: int) -> int:
        """Watch an open folder, from now on also for `mask`; the same number for the same one."""
        path = f"/proc/self/fd/{folder}".encode()
        flags = self._ctypes.c_uint32(mask | _ONLYDIR | _MASK_ADD)
        return self._checked(self._libc.inotify_add_watch(self.fd, path, flags))

    def remove(self, wd: int) -> None:
        """Watch it no more; one that is gone already is fine."""
        self._libc.inotify_rm_watch(self.fd, wd)

    def read(self) -> tuple[list[Event], bool]:
        """What has happened, the oldest first, and whether that was all."""
        try:
            data = os.read(self.fd, _PORTION)
        except BlockingIOError:
            return [], True
        events, place = [], 0
        while place < len(data):
            wd, mask, _, length = _HEAD.unpack_from(data, place)
            place += _HEAD.size
            events.append(Event(wd, mask, data[place : place + length].rstrip(b"\0")))
            place += length
        return events, len(data) + _LONGEST <= _PORTION

    def _checked(self, result: int) -> int:
        if result >= 0:
            return result
        code = self._ctypes.get_errno()
        if code in _LIMITS:
            if code == errno.EMFILE:  # the same is said of a process that has no descriptors left
                os.close(os.open("/", os.O_RDONLY | os.O_CLOEXEC))
            raise WatchLimit(_LIMITS[code])
        raise OSError(code, os.strerror(code))
