"""Files that are copied, moved and deleted, on a real disk."""

from __future__ import annotations

import os
import shutil
import stat
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import trio

from ahpd.protocol.errors import ProtocolError
from tests.resources.support import Files, fails

pytestmark = pytest.mark.real_time


@pytest.fixture
def files(tmp_path: Path) -> Files:
    folder = tmp_path / "w"
    folder.mkdir()
    return Files(folder)


@pytest.mark.parametrize("do", ["copy", "move"])
async def test_r_13_21_copies_and_moves(files: Files, do: str) -> None:
    left = ["a"] if do == "copy" else []
    (files.folder / "a").write_text("A")
    (files.folder / "a").chmod(0o750)
    await files.ask(do, "a", "b")
    assert await files.names() == sorted([*left, "b"])
    assert (files.folder / "b").read_text() == "A"
    assert stat.S_IMODE((files.folder / "b").stat().st_mode) == 0o750
    (files.folder / "a").write_text("newer")
    with fails(-32010):
        await files.ask(do, "a", "b", failIfExists=True)
    assert (files.folder / "b").read_text() == "A"
    await files.ask(do, "a", "b")
    assert (files.folder / "b").read_text() == "newer"
    await files.ask(do, "b", "c", failIfExists=True)
    assert (files.folder / "c").read_text() == "newer"
    with fails(-32008):
        await files.ask(do, "nope", "c")
    with fails(-32008):
        await files.ask(do, "c", "nope/d")
    await files.ask(do, "c", "c")
    assert (files.folder / "c").read_text() == "newer"


@pytest.mark.parametrize("do", ["copy", "move"])
async def test_folders_are_copied_and_moved_whole(files: Files, do: str) -> None:
    (files.folder / "d/e").mkdir(parents=True)
    (files.folder / "d/e/f").write_text("F")
    (files.folder / "d/way").symlink_to("e/f")
    with fails(-32602, "lies in"):
        await files.ask(do, "d", "d/e/g")
    with fails(-32602, "holds"):
        await files.ask(do, "d/e", "d")
    (files.folder / "f").touch()
    for source, destination in (("d", "f"), ("f", "d")):
        with fails(-32010, "folder"):
            await files.ask(do, source, destination)
    (files.folder / "old/x").mkdir(parents=True)
    await files.ask(do, "d", "old")
    assert (files.folder / "old/e/f").read_text() == "F"
    assert os.readlink(files.folder / "old/way") == "e/f"
    assert not (files.folder / "old/x").exists()
    assert (files.folder / "d").exists() is (do == "copy")
    assert [name for name in os.listdir(files.folder) if name.startswith(".")] == []


async def test_copies_and_deletions_at_the_same_time_leave_nothing_behind(files: Files) -> None:
    for number in range(6):
        (files.folder / f"d/{number}/e").mkdir(parents=True)
        (files.folder / f"d/{number}/e/f").write_text("F")

    async def copy() -> None:
        for _ in range(40):
            await files.ask("copy", "d", "c")

    async def delete() -> None:
        for _ in range(40):
            with suppress(ProtocolError):  # it may not be there just now, or not be empty any more
                await files.ask("delete", "c", recursive=True)

    async with trio.open_nursery() as nursery:
        for job in (copy, copy, copy, delete, delete):
            nursery.start_soon(job)
    assert set(await files.names()) <= {"c", "d"}
    await files.ask("copy", "d", "c")
    assert await files.names("c") == [str(number) for number in range(6)]


async def test_of_two_who_delete_a_tree_none_stops_the_other(
    files: Files, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(3):
        (files.folder / f"d/{number}/e").mkdir(parents=True)
    opening = os.open

    def late(path: Any, *more: Any, **named: Any) -> int:
        if path == b"1":
            shutil.rmtree(files.folder / "d/1")
        return opening(path, *more, **named)

    monkeypatch.setattr(os, "open", late)
    await files.ask("delete", "d", recursive=True)
    assert await files.names() == []


async def test_a_link_does_not_take_the_place_of_what_it_leads_to(files: Files) -> None:
    (files.folder / "a").write_text("A")
    (files.folder / "way").symlink_to("a")
    with fails(-32602, "leads to"):
        await files.ask("move", "way", "a")
    assert (files.folder / "a").read_text() == "A"
    await files.ask("move", "a", "way")
    assert (files.folder / "way").read_text() == "A"
    assert await files.names() == ["way"]


async def test_a_move_onto_another_name_of_the_same_file_leaves_that_name(files: Files) -> None:
    (files.folder / "a").write_text("A")
    (files.folder / "b").hardlink_to(files.folder / "a")
    with fails(-32010):
        await files.ask("move", "a", "b", failIfExists=True)
    await files.ask("copy", "a", "b")
    assert await files.names() == ["a", "b"]
    await files.ask("move", "a", "b")
    assert await files.names() == ["b"]
    assert (files.folder / "b").read_text() == "A"


async def test_nobody_reads_or_copies_half_of_what_is_written(files: Files) -> None:
    texts = {letter * 3_000_000 for letter in "ab"}
    is_over = False

    async def look(do: str) -> None:
        while not is_over:
            if do == "read":
                assert (await files.ask("read", "a"))["data"] in texts
            else:
                await files.ask("copy", "a", "b")
                assert (files.folder / "b").read_text() in texts

    async with trio.open_nursery() as nursery:
        await files.write("a", texts.copy().pop())
        for do in ("read", "copy"):
            nursery.start_soon(look, do)
        for _ in range(10):
            for text in texts:
                await files.write("a", text)
        is_over = True


@pytest.mark.parametrize("has_nameless", [True, False])
async def test_a_new_file_has_its_name_when_all_is_in_it(
    files: Files, monkeypatch: pytest.MonkeyPatch, *, has_nameless: bool
) -> None:
    if has_nameless and not hasattr(os, "O_TMPFILE"):
        pytest.skip("this system has no files without a name")
    seen: list[list[str]] = []
    write = os.pwrite

    def watched(fd: int, data: bytes, place: int) -> int:
        seen.append(os.listdir(files.folder))
        return write(fd, data, place)

    monkeypatch.setattr(os, "pwrite", watched)
    if not has_nameless:
        monkeypatch.delattr(os, "O_TMPFILE", raising=False)
    before = os.umask(0o027)
    try:
        await files.write("a", "A")
    finally:
        os.umask(before)
    assert (files.folder / "a").read_text() == "A"
    assert stat.S_IMODE((files.folder / "a").stat().st_mode) == 0o640
    assert seen == [[] if has_nameless else ["a"]]
    with fails(-32010):
        await files.write("a", "B", createOnly=True)


#: A folder on another file system than those of tests.
OTHER = "/dev/shm"


def is_elsewhere(one: str, other: Path) -> bool:
    return os.path.isdir(one) and os.stat(one).st_dev != os.stat(other).st_dev


async def test_a_move_to_another_file_system_is_a_copy_and_a_deletion(files: Files) -> None:
    if not is_elsewhere(OTHER, files.folder):
        pytest.skip("there is only one file system")
    with tempfile.TemporaryDirectory(dir=OTHER) as name:
        files.served.append(Path(name).as_uri())
        (files.folder / "d").mkdir()
        (files.folder / "d/f").write_text("F")
        (files.folder / "d/way").symlink_to("f")
        await files.ask("move", "d", f"{Path(name).as_uri()}/d")
        assert (Path(name) / "d/f").read_text() == "F"
        assert os.readlink(Path(name) / "d/way") == "f"
        assert await files.names() == []
        await files.ask("move", f"{Path(name).as_uri()}/d/f", "f")
        assert (files.folder / "f").read_text() == "F"
        assert os.listdir(Path(name) / "d") == ["way"]
