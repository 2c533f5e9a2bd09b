"""Watches on files and folders (RULES 14): `Watching`, which they share, and each `FolderWatch`.

A file is watched through the folder that it is in, and any target through all folders above it: so
a save by rename is seen, and a target that goes away and comes back is found again (hazards B11,
B64). What is told is what changed since it was last told; see `ahpd.resources.tree`.

`Watching.run` reads what the kernel says and hands it out. Everything that touches the disk is done
in threads.

The kernel is asked by `ahpd.resources.inotify` and not through watchfiles, which was measured
(1.3.0, Linux 6.18). It keeps quiet where a watch must not: of 20 folders that came when the limit
left room for nine it dropped eleven without a word, after an overflow of the kernel's queue it told
none of 200 new files, and of 161 names that were moved in as one tree it told one. Nor does it say
when to look for oneself, so no layer above could make up for that. And it goes by path: it follows
links out of the folder, dies of a name that is no UTF-8, and takes one of the 128 watchers of a
user for each watch.
"""

from __future__ import annotations

import errno
import logging
import math
import os
import stat
import threading
import time
from collections import deque
from collections.abc import Sequence
from typing import Literal, TypeAlias

import trio
from msgspec import Struct, field

from ahpd.protocol.errors import ErrorCode, ProtocolError
from ahpd.protocol.resources import CreateResourceWatchParams, ResourceChange
from ahpd.protocol.uris import URI
from ahpd.resources.access import Access, shown
from ahpd.resources.globs import Globs
from ahpd.resources.inotify import (
    ALL,
    DELETE_SELF,
    IGNORED,
    MOVE_SELF,
    NAMES,
    NO_WATCHES,
    OVERFLOW,
    Event,
    Inotify,
    WatchLimit,
)
from ahpd.resources.jail import Astray, open_real, spot
from ahpd.resources.tree import Changes, Node, Tree
from ahpd.resources.uris import to_name, to_path, to_uri

_log = logging.getLogger("ahpd.resources")

#: Seconds in which changes are gathered, from the first one on (R-14.9).
GATHER = 0.05
#: Watches that look at the disk at a time. One that takes longer than so many seconds, because it
#: hangs in a file system, goes on and counts no more.
AT_A_TIME, PATIENCE = 16, 1.0
#: Seconds between two looks at folders for which the kernel has no room.
LOOK_AGAIN = 2.0
#: Nanoseconds that the clock of a file system may be behind.
_BEHIND = 50_000_000

_SELF = DELETE_SELF | MOVE_SELF | IGNORED

Kind: TypeAlias = Literal["file", "folder"]


class Guard(Struct, frozen=True, eq=False):
    """A folder above a target: of what is in it only the next name on the way counts."""

    watch: FolderWatch
    name: bytes

    def hear(self, event: Event) -> None:
        """Something happened in it, or to it."""
        if event.name == self.name:
            self.watch.touch_root(self)
        elif event.mask & _SELF:
            self.watch.touch_root()


class Member(Struct, frozen=True):
    """A folder of a watched tree."""

    watch: FolderWatch
    node: Node

    def hear(self, event: Event) -> None:
        """Something happened in it, or to it."""
        if event.mask & _SELF:
            self.watch.touch_folder(self.node)
        else:
            self.watch.touch(self.node, event.name)


class Watching:
    """What all watches of a host share: the kernel's descriptor, and who is told what."""

    def __init__(self) -> None:
        self.watches: set[FolderWatch] = set()
        #: Up to when everything that happened has been handed out (ns of the wall clock).
        self.caught_up = 0
        self._inotify: Inotify | None = None
        self._heard: dict[int, dict[object, Guard | Member]] = {}
        #: Over the two above: threads watch more folders while the kernel's words are handed out.
        self._lock = threading.Lock()
        self._begun = trio.Event()
        self.turns = trio.CapacityLimiter(AT_A_TIME)
        #: Words of the kernel have been read, and not all handed out.
        self._in_hand = False

    def begin(self) -> None:
        """There is going to be a watch. Raises `WatchLimit` and `OSError`."""
        if self._inotify is None:
            self._inotify = Inotify()
            self.caught_up = time.time_ns()
            self._begun.set()

    def watch(self, folder: int, who: object, teller: Guard | Member, mask: int) -> int:
        """Have `teller` told of an open folder, on behalf of `who`. Any thread."""
        with self._lock:
            assert self._inotify is not None
            wd = self._inotify.add(folder, mask)
            self._heard.setdefault(wd, {})[who] = teller
            return wd

    def unwatch(self, wd: int, who: object) -> None:
        """Tell it no more. Any thread."""
        with self._lock:
            tellers = self._heard.get(wd)
            if tellers is None or tellers.pop(who, None) is None or tellers:
                return
            del self._heard[wd]
            assert self._inotify is not None
            self._inotify.remove(wd)

    async def run(self) -> None:
        """Hand out what the kernel says, for ever. What was missed while nobody did is looked for.

        Cancelled: the next run goes on.
        """
        await self._begun.wait()
        assert self._inotify is not None
        inotify = self._inotify
        if self._in_hand:  # it failed over these, and they are lost
            self._doubt()
        while True:
            await trio.lowlevel.wait_readable(inotify.fd)
            before = time.time_ns()
            self._in_hand = True
            events, is_all = inotify.read()
            for event in events:
                self._hand_out(event)
            if is_all and not any(event.mask & OVERFLOW for event in events):
                self.caught_up = before
            self._in_hand = False

    def _doubt(self) -> None:
        for watch in self.watches:
            watch.doubt()

    def _hand_out(self, event: Event) -> None:
        if event.mask & OVERFLOW:
            self._doubt()
            return
        with self._lock:
            tellers = list(self._heard.get(event.wd, {}).values())
            if event.mask & IGNORED:
                self._heard.pop(event.wd, None)
        for teller in tellers:
            teller.hear(event)


class Work(Struct):
    """What there is to look at."""

    touched: dict[Node, dict[bytes, None]] = field(default_factory=dict)
    #: Whether the target is there still, and
    root: bool = False
    #: that something happened to the target itself.
    target: bool = False
    #: Everything, if anything may have changed since then (ns).
    doubt_since: int | None = None
    unwatched: bool = False
    #: Somebody is at it; else it is still to be done.
    is_begun: bool = False

    def add(self, other: Work) -> None:
        """All that there is in `other` as well."""
        for node, names in other.touched.items():
            self.touched.setdefault(node, {}).update(names)
        self.root |= other.root
        self.target |= other.target
        self.unwatched |= other.unwatched
        if self.doubt_since is None or other.doubt_since is None:
            self.doubt_since = self.doubt_since or other.doubt_since
        else:
            self.doubt_since = min(self.doubt_since, other.doubt_since)

    def __bool__(self) -> bool:
        return bool(self.touched) or self.root or self.unwatched or self.doubt_since is not None


class FolderWatch:
    """One watch: see `Watched`. Made by `open_watch`."""

    def __init__(
        self, watching: Watching, params: CreateResourceWatchParams, path: bytes, access: Access
    ) -> None:
        self._watching = watching
        self._uri = params.uri.rstrip("/") if to_path(params.uri, "") != b"/" else "file://"
        self._named = params.uri
        self._path = path
        self._steps = [step for step in path.split(b"/") if step]
        root = to_name(path)
        self._excludes = self._globs(access, params, "excludes", root)
        self._includes = self._globs(access, params, "includes", root)
        self._pause = self._check_open
        self._tree = Tree(
            self,
            path,
            recursive=params.recursive is True,
            tells=self._tells,
            enters=self._enters,
            pause=self._check,
        )
        self._kind: Kind | None = None
        self._guards: list[tuple[int, Guard]] = []
        #: Why not all folders above the target are watched, if they are not.
        self._unguarded = ""
        #: What a file was when it was last looked at.
        self._stamp: tuple[int, ...] = ()
        self._work = Work()
        self._ready: deque[ResourceChange] = deque()
        self._news = trio.Event()
        self._limiter = trio.CapacityLimiter(1)
        #: No thread looks.
        self._idle = trio.Event()
        self._idle.set()
        #: Held by the thread that looks; one that was left alone may still be at it.
        self._looking = threading.Lock()
        self._token = trio.lowlevel.current_trio_token()
        self.is_closed = False
        watching.watches.add(self)

    @staticmethod
    def _globs(
        access: Access, params: CreateResourceWatchParams, which: str, root: str
    ) -> Globs | None:
        patterns = getattr(params, which)
        if patterns is None or not patterns.items:
            return None
        try:
            return Globs(patterns.items, root)
        except ValueError as error:
            raise access.problem(params.uri, f"cannot be watched: {which}: {error}") from None

    def _enters(self, path: bytes) -> bool:
        return self._excludes is None or not self._excludes.fit(to_name(path))

    def _tells(self, path: bytes) -> bool:
        return self._includes is None or self._includes.fit(to_name(path))

    # ---- what the kernel says; in the loop's thread -------------------------------------------

    def touch(self, node: Node, name: bytes) -> None:
        """Something happened to this name."""
        self._work.touched.setdefault(node, {})[name] = None
        self._news.set()

    def touch_folder(self, node: Node) -> None:
        """A folder went away, or the kernel watches it no more."""
        node.is_lost = True
        if node.parent is None:
            self.touch_root()
        else:
            self.touch(node.parent, node.name)

    def touch_root(self, guard: Guard | None = None) -> None:
        """The target, or a folder above it, may be another; `guard`: who saw it by its name."""
        self._work.root = True
        if guard is not None and self._guards and guard is self._guards[-1][1]:
            self._work.target = True
        self._news.set()

    def doubt(self) -> None:
        """Words of the kernel were lost."""
        if self._work.doubt_since is None:
            self._work.doubt_since = self._watching.caught_up - _BEHIND
        self.touch_root()

    @property
    def is_blind(self) -> bool:
        """Whether the kernel does not watch all of it, so that it is looked at as well."""
        return bool(self._unguarded) or bool(self._tree.unwatched)

    # ---- what it is asked ---------------------------------------------------------------------

    async def changed(self) -> None:
        """See `Watched`."""
        while not self._ready:
            if not self._work:
                self._news = trio.Event()
                with trio.move_on_after(LOOK_AGAIN if self.is_blind else math.inf):
                    await self._news.wait()
                if not self._ready and not self._work and self.is_blind:
                    self._work.unwatched = True
                continue
            await self._idle.wait()
            await trio.sleep(GATHER)
            async with self._watching.turns:
                await self._have_looked()

    async def _have_looked(self) -> None:
        """Have a thread look at what there is to look at; for `PATIENCE`, then it is left to it."""
        work, self._work = self._work, Work()
        self._idle = trio.Event()
        try:
            with trio.move_on_after(PATIENCE):
                await trio.to_thread.run_sync(
                    self._look, work, abandon_on_cancel=True, limiter=self._limiter
                )
        finally:
            if not work.is_begun:
                work.add(self._work)
                self._work = work
                self._idle.set()

    def take(self, most: int) -> Sequence[ResourceChange]:
        """See `Watched`."""
        taken: list[ResourceChange] = []
        while self._ready and len(taken) < most:
            taken.append(self._ready.popleft())
        return taken

    def close(self) -> None:
        """See `Watched`. What a thread is looking at just now is let go of when it is done."""
        if not self.is_closed:
            self.is_closed = True
            self._watching.watches.discard(self)
            threading.Thread(target=self._let_go, name="end of a watch", daemon=True).start()

    def _let_go(self) -> None:
        with self._looking:
            self._tree.end(None)
            self._unguard()

    # ---- looking; in threads ------------------------------------------------------------------

    def begin(self, access: Access) -> None:
        """Know what is there. Raises `ProtocolError`; then nothing is watched."""
        self._pause = access.go_on
        with self._looking:
            try:
                self._check_open()
                self._kind = self._guard(strict=True)
                if self._kind == "folder":
                    fd = open_real(self._path)
                    try:
                        self._tree.begin(fd, None)
                    finally:
                        os.close(fd)
            except WatchLimit as error:
                raise no_room(access, self._named, error) from None
            except Astray as error:  # it was there a moment ago
                raise access.failed(self._named, error.code) from None
            except OSError as error:
                raise access.failed(self._named, error.errno or errno.EIO) from None
            finally:
                self._pause = self._check_open

    def _check(self) -> None:
        self._pause()

    def _check_open(self) -> None:
        if self.is_closed:
            raise Closed

    def _look(self, work: Work) -> None:
        """Find out what changed, and put it where `take` finds it."""
        work.is_begun = True
        with self._looking:
            if self.is_closed:
                return
            changes, was_blind = Changes(), self.is_blind
            try:
                if work.root or self._unguarded:
                    self._look_at_root(work, changes)
                if work.doubt_since is not None:
                    self._tree.match(changes, work.doubt_since)
                for node, names in work.touched.items():
                    self._tree.look(node, names, changes)
                if work.unwatched:
                    self._tree.look_at_unwatched(changes)
            except Closed:
                return
            except Exception:
                self._token.run_sync_soon(self.doubt)  # it was not all looked at
                raise
            finally:
                self._ready.extend(
                    ResourceChange(uri=self._uri_of(path), type=what)
                    for path, what in changes.found.items()
                )
                self._token.run_sync_soon(self._wake)
            if self.is_blind and not was_blind:
                _log.warning(
                    "the watch on %s: %s; what is not watched is looked at every %g s",
                    self._named, self._unguarded or NO_WATCHES, LOOK_AGAIN,
                )  # fmt: skip

    def _wake(self) -> None:
        self._idle.set()
        self._news.set()

    def _uri_of(self, path: bytes) -> str:
        return self._uri + to_uri(b"/" + path)[len("file://") :] if path else self._named

    def _look_at_root(self, work: Work, changes: Changes) -> None:
        before, stamp = self._kind, self._stamp
        self._kind = self._guard(strict=False)
        now = self._kind
        if before == "folder" and now != "folder":
            self._tree.end(changes)
        if before != now:
            changes.say(b"", "deleted" if now is None else "updated" if before else "added")
        elif now == "file" and (work.target or stamp != self._stamp):
            changes.say(b"", "updated")
        if now == "folder":
            self._look_at_folder(changes)

    def _look_at_folder(self, changes: Changes) -> None:
        try:
            fd = open_real(self._path)
        except (Astray, OSError):
            return  # gone again: that was told too
        try:
            if self._tree.root is None:
                self._tree.begin(fd, changes)
            elif self._tree.is_another(fd):
                changes.say(b"", "updated")
                self._tree.take(fd, changes)
        finally:
            os.close(fd)

    def _guard(self, *, strict: bool) -> Kind | None:
        """Watch all folders above the target, as they are now, and say what the target is.

        Where the kernel has no room: raises `WatchLimit` if `strict`, else it is looked at again,
        and so it is below a folder that may be gone through and not read.
        """
        old, self._guards = self._guards, []
        self._unguarded = ""
        kind: Kind | None = None
        try:
            way = b"/"
            for step in self._steps:
                fd = _folder(way)
                if fd is None:
                    break
                try:
                    self._guards.append(self._guard_one(fd, step, is_last=step is self._steps[-1]))
                except PermissionError:
                    self._unguarded = f"the folder {shown(to_uri(way))} may not be read"
                finally:
                    os.close(fd)
                way = way.rstrip(b"/") + b"/" + step
        except WatchLimit:
            if strict:
                raise
            self._unguarded = NO_WATCHES
        finally:
            for wd, guard in old:
                self._watching.unwatch(wd, guard)
        try:
            with spot(self._path, follow=False) as found:
                if found.info is not None and found.path == self._path:
                    info = found.info
                    self._stamp = (info.st_ino, info.st_size, info.st_mtime_ns, info.st_ctime_ns)
                    kind = "folder" if found.is_folder else "file"
        except Astray:
            pass
        return kind

    def _guard_one(self, fd: int, step: bytes, *, is_last: bool) -> tuple[int, Guard]:
        guard = Guard(self, step)
        mask = NAMES
        if is_last:
            info = _info(fd, step)
            if info is None or not stat.S_ISDIR(info.st_mode):
                mask = ALL  # it is a file, or may become one
        return self._watching.watch(fd, guard, guard, mask), guard

    def _unguard(self) -> None:
        for wd, guard in self._guards:
            self._watching.unwatch(wd, guard)
        self._guards = []

    # ---- as the tree's kernel -----------------------------------------------------------------

    def watch(self, folder: int, who: object, mask: int) -> int:
        """See `Kernel`."""
        assert isinstance(who, Node)
        return self._watching.watch(folder, who, Member(self, who), mask)

    def unwatch(self, wd: int, who: object) -> None:
        """See `Kernel`."""
        self._watching.unwatch(wd, who)


def _folder(path: bytes) -> int | None:
    try:
        return open_real(path, getattr(os, "O_PATH", os.O_RDONLY))
    except (Astray, OSError):
        return None


def _info(fd: int, name: bytes) -> os.stat_result | None:
    try:
        return os.stat(name, dir_fd=fd, follow_symlinks=False)
    except OSError:
        return None


class Closed(Exception):
    """Nobody watches any more."""


def target(access: Access, params: CreateResourceWatchParams) -> bytes:
    """The real path of what is to be watched, which has to be there (R-14.4). Blocks."""
    with access.reach(params.uri, "read") as found:
        if found.info is None:
            raise access.failed(params.uri, errno.ENOENT)
        return found.path


def no_room(access: Access, uri: URI, error: Exception) -> ProtocolError:
    """What is said when the kernel does not let it be watched."""
    return access.problem(uri, f"cannot be watched: {error}", ErrorCode.INTERNAL_ERROR)
