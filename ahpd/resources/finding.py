"""`Finder`: files that fit what somebody types, out of indexes that are made anew as they age.

A late answer is worse than a short one (R-22.3): while the first index of a large tree is made,
what has been found so far is searched; an old one is searched while the next one is made.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Sequence
from contextlib import suppress

import trio

from ahpd.resources.index import Index, files_in
from ahpd.resources.jail import Astray, spot
from ahpd.resources.port import Found
from ahpd.resources.uris import to_name, to_uri

#: Seconds that an answer waits for an index at most.
PATIENCE = 0.25
#: An index that took less than this (s) to make is made for each answer.
QUICK = 0.1
#: How many times as long as it took to make it an index is good for.
_GOOD_FOR = 10
#: Folders whose indexes are kept, and that are looked through at a time.
_KEPT, _AT_A_TIME = 8, 2
#: Seconds that one waits for its turn at most: those before it may hang in a file system. And how
#: many may hang before no more are begun.
TURN, _MOST_AT_WORK = 2.0, 32


class Folder:
    """One folder's index."""

    def __init__(self, path: bytes) -> None:
        self.path = path
        self.index: Index | None = None
        #: When it was begun, and how long it took (s).
        self.begun, self.took = 0.0, 0.0
        self.made = trio.Event()
        self.is_at_work = False
        self.dropped = False
        #: What the index that is being made has so far.
        self.so_far: list[bytes] = []

    @property
    def is_old(self) -> bool:
        """Whether another one is wanted."""
        age = time.monotonic() - self.begun
        return self.index is None or self.took < QUICK or age > _GOOD_FOR * self.took


class Finder:
    """See the module's docstring."""

    def __init__(self) -> None:
        self._folders: OrderedDict[bytes, Folder] = OrderedDict()
        self._room = threading.Semaphore(_AT_A_TIME)
        self._at_work = 0

    async def find(self, typed: str, folders: Sequence[bytes], most: int) -> list[Found]:
        """See `Resources.find`; the folders are paths, as they were named."""
        found: list[Found] = []
        for path in folders:
            folder = self._folder(path)
            if folder.is_old and not folder.is_at_work:
                self._make(folder)
            if folder.index is None or folder.took < QUICK:
                with trio.move_on_after(PATIENCE):
                    await folder.made.wait()
            paths = await trio.to_thread.run_sync(_search, folder, typed, most)
            prefix = "" if len(folders) == 1 else to_name(path.rpartition(b"/")[2]) + "/"
            found += [
                Found(prefix + to_name(each), to_uri(path.rstrip(b"/") + b"/" + each))
                for each in paths
            ]
        return found[:most] if len(folders) == 1 else _evenly(found, most, len(folders))

    def _folder(self, path: bytes) -> Folder:
        folder = self._folders.setdefault(path, Folder(path))
        self._folders.move_to_end(path)
        while len(self._folders) > _KEPT:
            self._folders.popitem(last=False)[1].dropped = True
        return folder

    def _make(self, folder: Folder) -> None:
        if self._at_work >= _MOST_AT_WORK:
            return
        self._at_work += 1
        folder.is_at_work, folder.made, folder.so_far = True, trio.Event(), []
        token = trio.lowlevel.current_trio_token()

        def made() -> None:
            self._at_work -= 1
            folder.is_at_work = False
            folder.made.set()

        def work() -> None:
            has_turn = self._room.acquire(timeout=TURN)
            try:
                _make(folder)
            finally:
                if has_turn:
                    self._room.release()
                with suppress(trio.RunFinishedError):  # nobody is there to be told
                    token.run_sync_soon(made)

        threading.Thread(target=work, name="index of files", daemon=True).start()


class _Dropped(Exception):
    """Nobody wants this index any more."""


def _make(folder: Folder) -> None:
    def pause() -> None:
        if folder.dropped:
            raise _Dropped

    begun = time.monotonic()
    try:
        with spot(folder.path) as found:
            real = found.path if found.is_folder else None
        if real is not None:
            files_in(real, folder.so_far, pause)
    except (Astray, OSError, _Dropped):
        pass
    folder.index = Index(folder.so_far)
    folder.begun, folder.took = begun, time.monotonic() - begun


def _search(folder: Folder, typed: str, most: int) -> list[bytes]:
    index = folder.index or Index(folder.so_far[:])
    return index.search(typed, most)


def _evenly(found: list[Found], most: int, folders: int) -> list[Found]:
    """Of several folders, none may take all the places."""
    return found if len(found) <= most else found[:: max(1, len(found) // most)][:most]
