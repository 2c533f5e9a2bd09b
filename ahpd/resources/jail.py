"""Where a path really leads, and whether that is inside the folders that are served (R-13.3).

A path is walked from ``/`` one name at a time. Each folder is opened under the last one, never
through a link (``openat``, ``O_NOFOLLOW``); links are read and walked by the same rule. What comes
out is a `Spot`: an open folder, the last name in it, and the names that were really gone through.
Whatever is done next is done to that name in that open folder, again without following links. So
whoever swaps a folder for a link while a request runs has it fail, or go on in the folder that it
had opened; there is no moment between the check and the use.

Everything here blocks, and is meant for threads.
"""

from __future__ import annotations

import errno
import os
import stat
from collections import deque
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import chain

from msgspec import Struct

from ahpd.resources.port import Grant

#: To go through a folder it need not be readable; where the system knows that, neither for us.
_FOLDER = os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC | getattr(os, "O_PATH", os.O_RDONLY)

#: Links on one way; the kernel's own bound.
MOST_LINKS = 40
#: How often a name may turn into something else under our eyes before that is an error.
MOST_SWAPS = 1000


class Astray(Exception):
    """The way ends: `path` is how far it really got, the name that could not be passed included.

    `code` is an `errno`.
    """

    def __init__(self, path: bytes, code: int) -> None:
        super().__init__(os.strerror(code))
        self.path = path
        self.code = code


class Spot(Struct, eq=False):
    """A place in the tree: `name` in the open folder `parent`, a descriptor.

    `path` is the real path, without links; for ``/`` itself `name` is ``.``. `info` says what is
    there, None: nothing. `rest` are the names that were still to go when nothing was found; only
    where that was asked for.
    """

    parent: int
    name: bytes
    path: bytes
    info: os.stat_result | None
    rest: Sequence[bytes] = ()

    @property
    def is_folder(self) -> bool:
        """Whether a folder is there."""
        return self.info is not None and stat.S_ISDIR(self.info.st_mode)

    @property
    def is_link(self) -> bool:
        """Whether a symbolic link is there."""
        return self.info is not None and stat.S_ISLNK(self.info.st_mode)

    def look(self) -> os.stat_result | None:
        """What is there now."""
        try:
            self.info = os.stat(self.name, dir_fd=self.parent, follow_symlinks=False)
        except FileNotFoundError:
            self.info = None
        return self.info

    def open(self, flags: int, mode: int = 0o666) -> int:
        """Open it, never through a link. Raises `OSError`."""
        return os.open(self.name, flags | os.O_NOFOLLOW | os.O_CLOEXEC, mode, dir_fd=self.parent)

    def open_folder(self) -> int:
        """Open the folder that is there, to be read. Raises `OSError`."""
        return self.open(os.O_RDONLY | os.O_DIRECTORY)


class _Way:
    """An open folder and the names that led there."""

    def __init__(self) -> None:
        self.fd = os.open(b"/", _FOLDER)
        self.names: list[bytes] = []

    def path(self, *more: bytes) -> bytes:
        return b"/" + b"/".join([*self.names, *more])

    def go(self, fd: int) -> None:
        old, self.fd = self.fd, fd
        os.close(old)

    def enter(self, name: bytes) -> None:
        self.go(os.open(name, _FOLDER, dir_fd=self.fd))
        self.names.append(name)

    def restart(self, names: Sequence[bytes] = ()) -> None:
        """Begin again at the top, and go through these names, none of which is a link."""
        self.go(os.open(b"/", _FOLDER))
        self.names = []
        for name in names:
            try:
                self.enter(name)
            except OSError as error:
                raise Astray(self.path(name), error.errno or errno.EIO) from None


@contextmanager
def spot(path: bytes, *, follow: bool = True, partial: bool = False) -> Iterator[Spot]:
    """Where `path` leads, for the length of the block; nothing may be there.

    A link at its end is followed unless not to `follow`. A folder that is missing on the way is an
    error, or with `partial` itself the spot. Raises `Astray`.
    """
    way = _Way()
    try:
        yield _walk(way, path, follow, partial)
    finally:
        os.close(way.fd)


def open_real(path: bytes, flags: int = os.O_RDONLY) -> int:
    """Open the folder at a real path, none of whose names may be a link by now.

    Raises `Astray`, and `OSError` for a folder that may not be read.
    """
    names = [step for step in path.split(b"/") if step]
    way = _Way()
    try:
        way.restart(names[:-1])
        return os.open(
            names[-1] if names else b".",
            flags | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC,
            dir_fd=way.fd,
        )
    finally:
        os.close(way.fd)


def _walk(way: _Way, path: bytes, follow: bool, partial: bool) -> Spot:
    todo = deque(step for step in path.split(b"/") if step not in (b"", b"."))
    links = swaps = 0
    while todo:
        step = todo.popleft()
        if step == b"..":
            way.restart(way.names[:-1])
            continue
        try:
            info = os.stat(step, dir_fd=way.fd, follow_symlinks=False)
        except FileNotFoundError:
            if todo and not partial:
                raise Astray(way.path(step), errno.ENOENT) from None
            return Spot(way.fd, step, way.path(step), None, tuple(todo))
        except OSError as error:
            raise Astray(way.path(step), error.errno or errno.EIO) from None
        is_link = stat.S_ISLNK(info.st_mode)
        if not todo and not (is_link and follow):
            return Spot(way.fd, step, way.path(step), info)
        links += is_link
        if links > MOST_LINKS or swaps > MOST_SWAPS:
            raise Astray(way.path(step), errno.ELOOP)
        try:
            if is_link:
                target = os.readlink(step, dir_fd=way.fd)
                if target.startswith(b"/"):
                    way.restart()
                todo.extendleft(
                    reversed([it for it in target.split(b"/") if it not in (b"", b".")])
                )
            elif stat.S_ISDIR(info.st_mode):
                way.enter(step)
            else:
                raise Astray(way.path(step), errno.ENOTDIR)
        except OSError as error:
            if error.errno not in (errno.ENOTDIR, errno.ELOOP, errno.EINVAL, errno.ENOENT):
                raise Astray(way.path(step), error.errno or errno.EIO) from None
            todo.appendleft(step)  # it is another thing than a moment ago: look again
            swaps += 1
    if not way.names:
        return Spot(way.fd, b".", b"/", os.fstat(way.fd))
    names = way.names
    way.restart(names[:-1])
    last = Spot(way.fd, names[-1], way.path(names[-1]), None)
    last.look()
    return last


class Folders:
    """The folders that are served; `paths` are `plain`, as they were named, links and all.

    `granted` are real paths that are served beside them, each for some uses only. What they lead to
    when there is a link by now was not granted.
    """

    def __init__(
        self, paths: Iterable[bytes], granted: Mapping[Grant, Collection[bytes]] | None = None
    ) -> None:
        self._named = dict.fromkeys(paths)
        self._granted = granted or {}
        self._real: set[bytes] | None = None

    def holds(self, path: bytes, grant: Grant) -> bool:
        """Whether a real path is one of them or inside one, or was granted for this use."""
        granted = self._granted.get(grant, ())
        if any(above in self._named or above in granted for above in lineage(path)):
            return True
        real = self._real_ones()
        return any(above in real for above in lineage(path))

    def is_as_a_whole(self, path: bytes) -> bool:
        """Whether what is at this real path is served, and nothing above it is."""
        above = path[: path.rindex(b"/")] or b"/"
        granted = path in self._granted.get("write", ())
        return path == b"/" or not (granted or self.holds(above, "write"))

    def below(self, path: bytes) -> bool:
        """Whether one of them is inside the folder at this real path (quirk 51)."""
        prefix = path.rstrip(b"/") + b"/"
        places = (*self._named, *self._real_ones(), *chain(*self._granted.values()))
        return any(each.startswith(prefix) for each in places)

    def _real_ones(self) -> set[bytes]:
        """Where they are really. Looked for only when a path is in none of them as it is named."""
        if self._real is None:
            self._real = set()
            for each in self._named:
                try:
                    with spot(each) as found:
                        # A link to / serves nothing: / has to be named as such.
                        if found.is_folder and found.path != b"/":
                            self._real.add(found.path)
                except Astray:
                    continue
        return self._real


def plain(path: bytes) -> bytes:
    """A path without doubled slashes, ``.`` and a slash at its end; ``..`` stays."""
    return b"/" + b"/".join(step for step in path.split(b"/") if step not in (b"", b"."))


def lineage(path: bytes) -> Iterator[bytes]:
    """A real path and all above it, the longest first."""
    while path != b"/":
        yield path
        path = path[: path.rindex(b"/")] or b"/"
    yield b"/"
