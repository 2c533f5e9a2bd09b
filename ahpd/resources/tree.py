"""What is known of a watched tree, and how it is compared with what is there. Blocks.

The kernel says that something happened to a name; what happened is found by looking. So a batch
tells the difference between what was told before and what is there now, whatever order the kernel's
words came in and however many of them were lost.

No link is followed, so nothing outside is ever looked at.
"""

from __future__ import annotations

import errno
import os
import stat
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Protocol

from msgspec import Struct, field

from ahpd.protocol.resources import ResourceChangeType
from ahpd.resources.inotify import ALL, WatchLimit
from ahpd.resources.jail import Astray, open_real

#: Folders in each other that are watched.
DEEPEST = 256
#: What the host has run out of itself; other errors are those of a folder.
_OURS = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOMEM})
#: Nanoseconds that the clock of a file system may be behind.
_BEHIND = 50_000_000


class Node(Struct, eq=False):
    """A watched folder. `names` are those in it that were told, and whether each is a folder."""

    parent: Node | None
    name: bytes
    #: Device and number, to know it again.
    id: tuple[int, int]
    wd: int | None = None
    #: The kernel watches it no more.
    is_lost: bool = False
    #: It is in the tree no more.
    is_cut: bool = False
    names: dict[bytes, bool] = field(default_factory=dict)
    children: dict[bytes, Node] = field(default_factory=dict)

    def path(self, *more: bytes) -> bytes:
        """From the root on, without a slash before it; empty for the root."""
        steps = list(reversed(more))
        node: Node | None = self
        while node is not None and node.parent is not None:
            steps.append(node.name)
            node = node.parent
        return b"/".join(reversed(steps))


class Kernel(Protocol):
    """Who watches folders for trees."""

    def watch(self, folder: int, who: object, mask: int) -> int:
        """Have `who` told what happens in an open folder. Raises `WatchLimit` and `OSError`."""
        ...

    def unwatch(self, wd: int, who: object) -> None:
        """Tell it no more."""
        ...


class Changes:
    """The changes of one batch, each path once."""

    def __init__(self) -> None:
        self.found: dict[bytes, ResourceChangeType] = {}

    def say(self, path: bytes, what: ResourceChangeType) -> None:
        """This too happened; what came and went again did not."""
        before = self.found.pop(path, None)
        if before == "added" and what == "deleted":
            return
        if before == "added":
            what = "added"
        elif before is not None and what == "added":
            what = "updated"
        self.found[path] = what


class Tree:
    """The folder at `path`, a real path. `tells` says whether a path in it is anybody's business.

    `enters` says so of a folder and all in it. `pause` is called now and then, and may raise.
    """

    def __init__(
        self,
        kernel: Kernel,
        path: bytes,
        *,
        recursive: bool,
        tells: Callable[[bytes], bool],
        enters: Callable[[bytes], bool],
        pause: Callable[[], None],
    ) -> None:
        self._kernel = kernel
        self._path = path
        self._recursive = recursive
        self._tells = tells
        self._enters = enters
        self.pause = pause
        self.root: Node | None = None
        #: Folders that the kernel has no room to watch: looked at again and again.
        self.unwatched: set[Node] = set()
        #: When those were last looked at (ns of the wall clock).
        self._looked = time.time_ns()

    # ---- the root ----------------------------------------------------------------------------

    def begin(self, fd: int, changes: Changes | None) -> None:
        """The folder is there, open for reading: know all in it. Raises `WatchLimit`.

        Without `changes` nothing is said, and to have no room for a watch is an error.
        """
        info = os.fstat(fd)
        self.root = Node(None, b"", (info.st_dev, info.st_ino))
        self._scan(self.root, fd, changes, 1)

    def end(self, changes: Changes | None) -> None:
        """The folder is there no more."""
        if self.root is not None:
            self._cut(self.root, changes)
            self.root = None

    def is_another(self, fd: int) -> bool:
        """Whether an open folder is another than the root that is known."""
        info = os.fstat(fd)
        root = self.root
        return root is None or root.is_lost or root.id != (info.st_dev, info.st_ino)

    def take(self, fd: int, changes: Changes) -> None:
        """This open folder is the root from now on."""
        if self.root is not None:
            self._match(self.root, fd, changes, None)

    def match(self, changes: Changes, since: int) -> None:
        """Look at everything again. Files that changed after `since` (ns) are told."""
        if self.root is None:
            return
        try:
            fd = open_real(self._path)
        except (Astray, OSError):
            return  # who watches the way to it is told
        try:
            self._match(self.root, fd, changes, since)
        finally:
            os.close(fd)

    # ---- what happened -----------------------------------------------------------------------

    def look(self, node: Node, names: Iterable[bytes], changes: Changes) -> None:
        """Something happened to these names in a folder."""
        if node.is_cut:
            return
        try:
            fd = open_real(self._path + b"/" + node.path())
        except (Astray, OSError):
            return  # it is gone: its own name in the folder above was touched as well
        try:
            for name in names:
                self._compare(node, fd, name, changes)
        finally:
            os.close(fd)

    def look_at_unwatched(self, changes: Changes) -> None:
        """Look at what the kernel does not watch, and ask it again to."""
        since, self._looked = self._looked - _BEHIND, time.time_ns()
        for node in list(self.unwatched):
            if node.is_cut:
                self.unwatched.discard(node)
                continue
            try:
                fd = open_real(self._path + b"/" + node.path())
            except (Astray, OSError):
                continue
            try:
                with _passing_over():
                    self._match(node, fd, changes, since, deep=False)
            finally:
                os.close(fd)

    def _compare(
        self, node: Node, fd: int, name: bytes, changes: Changes, since: int | None = None
    ) -> None:
        """One name. `since`: whether a file has changed is to be found out; else it has."""
        path = node.path(name)
        if not self._enters(path):
            return
        try:
            info = os.stat(name, dir_fd=fd, follow_symlinks=False)
        except FileNotFoundError:
            if name in node.names:
                self._remove(node, name, changes)
            return
        except PermissionError:
            return  # what is in the folder may be listed, and not looked at
        is_folder = stat.S_ISDIR(info.st_mode)
        known = node.names.get(name)
        if known is None:
            self._add(node, fd, name, is_folder, changes)
        elif known != is_folder:
            self._remove(node, name, changes)
            self._add(node, fd, name, is_folder, changes)
        elif not is_folder:
            if since is None or info.st_ctime_ns >= since:
                self._say(changes, path, "updated")
        elif self._recursive:
            child = node.children.get(name)
            if child is None:
                self._descend(node, fd, name, changes)
            elif child.is_lost or child.id != (info.st_dev, info.st_ino) or since is not None:
                self._match_child(child, fd, changes, since)

    def _match_child(self, child: Node, fd: int, changes: Changes, since: int | None) -> None:
        own = _open(fd, child.name)
        if own is None:
            return
        try:
            with _passing_over():
                self._match(child, own, changes, since)
        finally:
            os.close(own)

    def _match(
        self, node: Node, fd: int, changes: Changes, since: int | None, *, deep: bool = True
    ) -> None:
        """Compare a whole folder, open, with what is known. Of another folder all files changed."""
        info = os.fstat(fd)
        if node.id != (info.st_dev, info.st_ino):
            node.id, since = (info.st_dev, info.st_ino), None
            node.is_lost = True
        if node.is_lost or node.wd is None:
            self._release(node)
            node.is_lost = False
            self._watch(node, fd, changes)
        found = _names(fd)
        for name in [name for name in node.names if name not in found]:
            self._compare(node, fd, name, changes, since)
        for name, is_folder in found.items():
            self.pause()
            if deep or not is_folder or name not in node.names:
                self._compare(node, fd, name, changes, since)

    def _add(self, node: Node, fd: int, name: bytes, is_folder: bool, changes: Changes) -> None:
        node.names[name] = is_folder
        self._say(changes, node.path(name), "added")
        if is_folder and self._recursive:
            self._descend(node, fd, name, changes)

    def _remove(self, node: Node, name: bytes, changes: Changes | None) -> None:
        child = node.children.pop(name, None)
        if child is not None:
            self._cut(child, changes)
        del node.names[name]
        self._say(changes, node.path(name), "deleted")

    def _cut(self, node: Node, changes: Changes | None) -> None:
        """A folder is gone with all in it."""
        todo = [node]
        while todo:
            each = todo.pop()
            if changes is not None:
                for name in each.names:
                    self._say(changes, each.path(name), "deleted")
            todo += each.children.values()
            each.is_cut = True
            self._release(each)
            self.unwatched.discard(each)

    # ---- going down --------------------------------------------------------------------------

    def _descend(self, node: Node, fd: int, name: bytes, changes: Changes | None) -> None:
        own = _open(fd, name)
        if own is None:
            return
        try:
            info = os.fstat(own)
            child = Node(node, name, (info.st_dev, info.st_ino))
            node.children[name] = child
            depth = child.path().count(b"/") + 2
            with _passing_over():
                self._scan(child, own, changes, depth)
        finally:
            os.close(own)

    def _scan(self, node: Node, fd: int, changes: Changes | None, depth: int) -> None:
        """Watch a folder first, and then look what is in it: nothing comes in between."""
        self._watch(node, fd, changes)
        path = node.path()
        folders = []
        for name, is_folder in _names(fd).items():
            self.pause()
            inner = path + b"/" + name if path else name
            if self._enters(inner):
                node.names[name] = is_folder
                self._say(changes, inner, "added")
                if is_folder:
                    folders.append(name)
        if self._recursive and depth < DEEPEST:
            for name in folders:
                self._descend(node, fd, name, changes)

    def _watch(self, node: Node, fd: int, changes: Changes | None) -> None:
        try:
            node.wd = self._kernel.watch(fd, node, ALL)
        except WatchLimit:
            if changes is None:
                raise
            self.unwatched.add(node)
        except OSError as error:
            if error.errno not in (errno.ENOENT, errno.EACCES):
                raise
        else:
            self.unwatched.discard(node)

    def _release(self, node: Node) -> None:
        if node.wd is not None:
            self._kernel.unwatch(node.wd, node)
            node.wd = None

    def _say(self, changes: Changes | None, path: bytes, what: ResourceChangeType) -> None:
        if changes is not None and self._tells(path):
            changes.say(path, what)


@contextmanager
def _passing_over() -> Iterator[None]:
    """A folder below the root that cannot be looked into, whatever it is, is passed over."""
    try:
        yield
    except OSError as error:
        if error.errno in _OURS:
            raise


def _open(fd: int, name: bytes) -> int | None:
    """Open a folder in a folder; None when it is none any more, or may not be read."""
    try:
        return os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=fd)
    except OSError as error:
        if error.errno in _OURS:
            raise
        return None


def _names(fd: int) -> dict[bytes, bool]:
    """The names in an open folder, and whether each is a folder."""
    with os.scandir(fd) as scanned:
        return {os.fsencode(each.name): each.is_dir(follow_symlinks=False) for each in scanned}
