"""Many watches that have something to look at: a few look at a time, and none waits for long."""

from __future__ import annotations

import threading
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import trio

from ahpd.protocol.resources import CreateResourceWatchParams
from ahpd.resources.files import FileResources
from ahpd.resources.port import Served
from ahpd.resources.watching import AT_A_TIME, FolderWatch, Work

pytestmark = [
    pytest.mark.real_time,
    pytest.mark.skipif("sys.platform != 'linux'", reason="inotify"),
]


@asynccontextmanager
async def watches(*folders: Path) -> AsyncIterator[list[FolderWatch]]:
    """One for each of the folders, on one host."""
    files, found = FileResources(), []
    for folder in folders:
        params = CreateResourceWatchParams(uri=folder.as_uri())
        found.append(await files.watch(params, Served([folder.as_uri()])))
    async with trio.open_nursery() as nursery:
        nursery.start_soon(files.keep_watch)
        try:
            with trio.fail_after(30):
                yield found
        finally:
            for watch in found:
                watch.close()
            nursery.cancel_scope.cancel()


async def told(watch: FolderWatch, uri: str) -> None:
    while True:
        await watch.changed()
        if any(change.uri == uri for change in watch.take(100)):
            return


async def test_few_look_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lock, look = threading.Lock(), FolderWatch._look
    at_work: list[int] = [0]

    def counted(self: FolderWatch, work: Work) -> None:
        with lock:
            at_work.append(at_work[-1] + 1)
        time.sleep(0.01)
        look(self, work)
        with lock:
            at_work.append(at_work[-1] - 1)

    monkeypatch.setattr(FolderWatch, "_look", counted)
    async with watches(*[tmp_path] * 100) as all_of_them, trio.open_nursery() as nursery:
        for watch in all_of_them:
            nursery.start_soon(told, watch, f"{tmp_path.as_uri()}/a")
        (tmp_path / "a").touch()
    assert 2 <= max(at_work) <= AT_A_TIME


async def test_those_that_hang_leave_the_others_their_turn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow, quick = tmp_path / "slow", tmp_path / "quick"
    slow.mkdir()
    quick.mkdir()
    look, go_on = FolderWatch._look, threading.Event()

    def hang(self: FolderWatch, work: Work) -> None:
        if self in stuck:
            work.is_begun = True
            go_on.wait(60)
        look(self, work)

    monkeypatch.setattr(FolderWatch, "_look", hang)
    async with (
        watches(*[slow] * AT_A_TIME, quick) as [*stuck, last],
        trio.open_nursery() as nursery,
    ):
        for watch in stuck:
            nursery.start_soon(told, watch, f"{slow.as_uri()}/b")
        (slow / "a").touch()
        await trio.sleep(0.2)
        (slow / "b").touch()  # nor is this lost
        (quick / "a").touch()
        await told(last, f"{quick.as_uri()}/a")
        go_on.set()


async def test_what_was_to_be_looked_at_is_not_lost_with_whoever_waited(tmp_path: Path) -> None:
    async with watches(tmp_path) as [watch]:
        turns = watch._watching.turns
        for name in "ab":
            for taken in range(AT_A_TIME):
                turns.acquire_on_behalf_of_nowait(taken)
            (tmp_path / name).touch()
            with trio.move_on_after(0.3):  # it waits for its turn
                await watch.changed()
            for taken in range(AT_A_TIME):
                turns.release_on_behalf_of(taken)
            await told(watch, f"{tmp_path.as_uri()}/{name}")


@pytest.mark.parametrize(("one", "other", "both"), [(None, 5, 5), (5, None, 5), (7, 3, 3)])
def test_work_is_put_together(one: int | None, other: int | None, both: int) -> None:
    work = Work(doubt_since=one, root=True)
    work.add(Work(doubt_since=other, unwatched=True))
    assert (work.doubt_since, work.root, work.target, work.unwatched) == (both, True, False, True)
