"""Files: what is read, written and listed, on a real disk."""

from __future__ import annotations

import base64
import errno
import os
import socket
import stat
import threading
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
import trio

from ahpd.protocol.errors import ProtocolError
from ahpd.resources.files import FileLimits, FileResources
from tests.resources.support import Files, fails, open_fds

pytestmark = pytest.mark.real_time


@pytest.fixture
def files(tmp_path: Path) -> Files:
    folder = tmp_path / "w"
    folder.mkdir()
    return Files(folder)


# ---- reading ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "wanted", "encoding"),
    [
        (b"plain", None, "utf-8"),
        ("\ufeffwith a mark, ü".encode(), None, "utf-8"),
        (b"", None, "utf-8"),
        (b"a\0b", None, "base64"),
        (b"a\0b", "utf-8", "utf-8"),
        (b"\xff\xfe", None, "base64"),
        (b"\xff\xfe", "utf-8", "base64"),
        (b"plain", "base64", "base64"),
        (b"plain", "utf-16", "utf-8"),
        (b"a\r\nb\rc\n", None, "utf-8"),
    ],
)
async def test_r_13_11_bytes_come_as_base64_and_text_as_text(
    files: Files, content: bytes, wanted: str | None, encoding: str
) -> None:
    (files.folder / "a").write_bytes(content)
    asked = {} if wanted is None else {"encoding": wanted}
    got = await files.ask("read", "a", **asked)
    assert got["encoding"] == encoding
    data = got["data"]
    assert (base64.b64decode(data) if encoding == "base64" else data.encode()) == content


async def test_what_is_too_long_is_refused_also_when_it_has_no_size(files: Files) -> None:
    files.resources = FileResources(FileLimits(read_bytes=10))
    (files.folder / "a").write_bytes(b"x" * 10)
    assert (await files.ask("read", "a"))["data"] == "x" * 10
    (files.folder / "a").write_bytes(b"x" * 11)
    with fails(-32602, "11 bytes", "limits.read_bytes"):
        await files.ask("read", "a")
    files.served = ["file:///proc/self"]
    with fails(-32602, "limits.read_bytes"):  # a file that says it has none
        await files.ask("read", "file:///proc/self/status")


async def test_what_is_no_file_is_refused_and_never_waited_on(files: Files) -> None:
    before = open_fds()
    os.mkfifo(files.folder / "fifo")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(files.folder / "socket"))
        files.served.append("file:///dev")
        with trio.fail_after(20):
            for name, word in (
                ("fifo", "FIFO"),
                ("socket", "socket"),
                ("file:///dev/zero", "devi"),
            ):
                for do in ("read", "write"):
                    with fails(-32602, word):
                        more = {"data": "x", "encoding": "utf-8"} if do == "write" else {}
                        await files.ask(do, name, **more)
                with fails(-32602, word):
                    await files.ask("copy", name, "copied")
    with fails(-32602, "folder"):
        await files.ask("read", "")
    assert open_fds() == before


async def test_r_13_13_only_a_folder_can_be_listed(files: Files) -> None:
    (files.folder / "d" / "e").mkdir(parents=True)
    (files.folder / "d" / "f").touch()
    (files.folder / "d" / "to_e").symlink_to("e")
    (files.folder / "d" / "nowhere").symlink_to("x")
    kinds = {e["name"]: e["type"] for e in (await files.ask("list", "d"))["entries"]}
    assert kinds == {"e": "directory", "f": "file", "to_e": "directory", "nowhere": "file"}
    with fails(-32602, "not a folder"):
        await files.ask("list", "d/f")
    with fails(-32008):
        await files.ask("list", "d/x")
    files.resources = FileResources(FileLimits(list_entries=3))
    with fails(-32602, "limits.list_entries"):
        await files.ask("list", "d")


async def test_r_13_14_resolve_says_what_it_really_is(files: Files) -> None:
    (files.folder / "d").mkdir()
    (files.folder / "d" / "a.ts").write_text("12345")
    (files.folder / "way").symlink_to("d")
    (files.folder / "gone").symlink_to("nope")
    got = await files.ask("resolve", "way/a.ts")
    assert (got["uri"], got["type"], got["size"]) == (files.uri("d/a.ts"), "file", 5)
    assert got["mtime"].endswith("Z")
    assert got["etag"]
    link = await files.ask("resolve", "way", followSymlinks=False)
    assert (link["uri"], link["type"]) == (files.uri("way"), "symlink")
    assert (await files.ask("resolve", "way"))["uri"] == files.uri("d")
    assert (await files.ask("resolve", "gone", followSymlinks=False))["type"] == "symlink"
    for name in ("gone", "nope", "d/a.ts/x"):
        with fails(-32008):
            await files.ask("resolve", name)
    above = await files.ask("resolve", files.folder.parent.as_uri())
    assert above == {"uri": files.folder.parent.as_uri(), "type": "directory"}
    assert (await files.ask("resolve", "file:///"))["type"] == "directory"


async def test_names_of_any_bytes_are_exact_both_ways(files: Files) -> None:
    raw = [b"\xff.txt", b"\xf4\x8f\x9f\xbf", "ü".encode(), b"a b#c?d%41", b"new\nline", b"\\", b"~"]
    for each in raw:
        (files.folder / os.fsdecode(each)).write_bytes(each)
    shown = await files.names()
    assert len(set(shown)) == len(raw)
    for name in shown:
        uri = files.uri(quote(name))
        got = await files.ask("read", uri, encoding="base64")
        content = base64.b64decode(got["data"])
        assert content in raw
        exact = (await files.ask("resolve", uri))["uri"]
        assert (await files.ask("read", exact, encoding="base64"))["data"] == got["data"]
        await files.ask("move", exact, "moved")
        assert (files.folder / "moved").read_bytes() == content
        await files.ask("move", "moved", uri)
    assert sorted(os.listdir(os.fsencode(files.folder))) == sorted(raw)


# ---- writing ------------------------------------------------------------------------------------

MODES = [
    ({}, "XY"),
    ({"position": 2}, "abXY"),
    ({"position": 6}, "abcdefXY"),
    ({"mode": "truncate", "position": 0}, "XY"),
    ({"mode": "append"}, "abcdefXY"),
    ({"mode": "append", "position": 2}, "abcdXYef"),
    ({"mode": "append", "position": 6}, "XYabcdef"),
    ({"mode": "insert"}, "XYabcdef"),
    ({"mode": "insert", "position": 4}, "abcdXYef"),
    ({"mode": "insert", "position": 6}, "abcdefXY"),
]


@pytest.mark.parametrize(("how", "result"), MODES)
async def test_r_13_16_the_modes_of_writing(files: Files, how: dict[str, Any], result: str) -> None:
    (files.folder / "a").write_text("abcdef")
    (files.folder / "a").chmod(0o640)
    os.link(files.folder / "a", files.folder / "same")
    await files.write("a", "XY", **how)
    assert (files.folder / "a").read_text() == result
    assert (files.folder / "same").read_text() == result, "it is the same file still"
    assert stat.S_IMODE((files.folder / "a").stat().st_mode) == 0o640


async def test_positions_are_bytes_and_long_files_are_shifted_whole(files: Files) -> None:
    (files.folder / "a").write_text("üü")
    await files.write("a", "x", mode="insert", position=2)
    assert (files.folder / "a").read_text() == "üxü"
    long = os.urandom(3 << 20)
    (files.folder / "b").write_bytes(long)
    await files.write("b", "y" * 1000, mode="insert", position=5)
    assert (files.folder / "b").read_bytes() == long[:5] + b"y" * 1000 + long[5:]


async def test_r_13_18_what_is_missing_is_made_and_its_folder_is_not(files: Files) -> None:
    await files.write("new", "x", mode="append")
    assert (files.folder / "new").read_text() == "x"
    with fails(-32008):
        await files.write("no/new", "x")
    with fails(-32008, "not a folder"):
        await files.write("new/x", "x")
    with fails(-32602, "folder"):
        await files.write("", "x")


async def test_r_13_19_create_only_and_if_match(files: Files) -> None:
    await files.write("a", "1", createOnly=True)
    with fails(-32010):
        await files.write("a", "2", createOnly=True)
    tag = (await files.ask("resolve", "a"))["etag"]
    await files.write("a", "2", ifMatch=tag)
    with fails(-32011):
        await files.write("a", "3", ifMatch=tag)
    assert (files.folder / "a").read_text() == "2"
    tag = (await files.ask("resolve", "a"))["etag"]
    (files.folder / "b").write_text("4")
    os.replace(files.folder / "b", files.folder / "a")
    with fails(-32011):
        await files.write("a", "3", ifMatch=tag)
    (files.folder / "a").unlink()
    with fails(-32011, "not there"):
        await files.write("a", "3", ifMatch=tag)
    assert await files.names() == []


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"encoding": "base64", "data": "%%%"}, "base64"),
        ({"encoding": "base64", "data": "YQ"}, "base64"),
        ({"encoding": "utf-16", "data": "a"}, "utf-16"),
        ({"position": 4}, "3 bytes"),
        ({"position": -1}, "position -1"),
        ({"position": 0.5}, "position 0.5"),
        ({"mode": "append", "position": 4}, "3 bytes"),
        ({"mode": "prepend"}, "prepend"),
    ],
)
async def test_r_13_20_what_cannot_be_written_changes_nothing(
    files: Files, more: dict[str, Any], words: str
) -> None:
    (files.folder / "a").write_text("abc")
    with fails(-32602, words):
        await files.ask("write", "a", **{"data": "x", "encoding": "utf-8", **more})
    assert (files.folder / "a").read_text() == "abc"
    assert await files.names() == ["a"]


async def test_bytes_are_written_as_they_are(files: Files) -> None:
    content = bytes(range(256))
    data = base64.b64encode(content).decode()
    await files.ask("write", "a", data=data, encoding="base64")
    assert (files.folder / "a").read_bytes() == content


async def test_r_13_17_appends_at_the_same_time_are_all_there_and_whole(files: Files) -> None:
    lines = [f"{number:04d}" * 50 + "\n" for number in range(120)]

    async def append(line: str) -> None:
        await files.write("log", line, mode="append")

    async with trio.open_nursery() as nursery:
        for line in lines:
            nursery.start_soon(append, line)
    got = (files.folder / "log").read_text().splitlines(keepends=True)
    assert sorted(got) == lines


async def test_r_13_17_programs_that_append_meanwhile_lose_nothing(files: Files) -> None:
    log, over = files.folder / "log", threading.Event()
    theirs: list[str] = []
    ours: list[str] = []

    def append() -> None:
        fd = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        while not over.wait(0.0005) or len(theirs) < 10:
            theirs.append(f"theirs {len(theirs)}\n" * 20)
            os.write(fd, theirs[-1].encode())
        os.close(fd)

    log.touch()
    thread = threading.Thread(target=append)
    thread.start()
    try:
        for number in range(100):
            ours.append(f"ours {number}\n" * 20)
            await files.write("log", ours[-1], mode="append")
    finally:
        over.set()
        thread.join()
    text = log.read_text()
    assert len(text) == sum(map(len, (*ours, *theirs)))
    assert all(each in text for each in (*ours, *theirs))


async def contend(files: Files, name: str, code: int, **more: Any) -> str:
    """Eight write at the same time, and one of them succeeds: what it wrote."""
    won: list[str] = []

    async def attempt(text: str) -> None:
        try:
            await files.write(name, text, **more)
        except ProtocolError as error:
            codes.append(error.code)
        else:
            won.append(text)

    codes: list[int] = []
    async with trio.open_nursery() as nursery:
        for number in range(8):
            nursery.start_soon(attempt, f"{name}-{number}")
    assert codes == [code] * 7
    (text,) = won
    return text


async def test_r_13_20_of_writers_at_the_same_time_one_matches(files: Files) -> None:
    (files.folder / "a").write_text("0")
    for _ in range(20):
        tag = (await files.ask("resolve", "a"))["etag"]
        (files.folder / "a").read_text()
        assert await contend(files, "a", -32011, ifMatch=tag) == (files.folder / "a").read_text()


async def test_of_creators_at_the_same_time_one_creates(files: Files) -> None:
    for number in range(20):
        made = await contend(files, f"f{number}", -32010, createOnly=True)
        assert (files.folder / f"f{number}").read_text() == made


async def test_a_full_disk_leaves_a_file_as_it_was(
    files: Files, monkeypatch: pytest.MonkeyPatch
) -> None:
    (files.folder / "a").write_text("abc")

    def full(*_: Any) -> None:
        raise OSError(errno.ENOSPC, "full")

    monkeypatch.setattr(os, "posix_fallocate", full)
    monkeypatch.setattr(os, "pwrite", full)
    for how in ({}, {"mode": "insert"}, {"mode": "append", "position": 1}):
        with fails(-32603, "full"):
            await files.write("a", "x" * 100, **how)
        assert (files.folder / "a").read_text() == "abc"
    with fails(-32603, "full"):
        await files.write("new", "x")
    assert await files.names() == ["a"]


async def test_r_13_23_mkdir(files: Files) -> None:
    for _ in range(2):
        await files.ask("mkdir", "a/b/c")
    assert (files.folder / "a/b/c").is_dir()
    (files.folder / "f").touch()
    with fails(-32010):
        await files.ask("mkdir", "f")
    with fails(-32008):
        await files.ask("mkdir", "f/x")
    with fails(-32008):
        await files.ask("mkdir", "x/../y")
    (files.folder / "way").symlink_to("a")
    await files.ask("mkdir", "way/d")
    assert (files.folder / "a/d").is_dir()


async def test_r_13_22_delete(files: Files) -> None:
    (files.folder / "d/e").mkdir(parents=True)
    (files.folder / "d/e/f").touch()
    (files.folder / "keep").write_text("kept")
    (files.folder / "d/way").symlink_to("../keep")
    (files.folder / "way").symlink_to("d")
    with fails(-32602, "not empty"):
        await files.ask("delete", "d")
    await files.ask("delete", "way", recursive=True)  # the link goes, and not what it leads to
    assert (files.folder / "d/e/f").exists()
    await files.ask("delete", "d", recursive=True)
    assert await files.names() == ["keep"]
    assert (files.folder / "keep").read_text() == "kept"
    (files.folder / "empty").mkdir()
    await files.ask("delete", "empty")
    await files.ask("delete", "keep")
    with fails(-32008):
        await files.ask("delete", "keep")
    for whole in ("", "."):
        with fails(-32009, "as a whole") as caught:
            await files.ask("delete", whole, recursive=True)
        assert caught.value.data is None, "no grant would help"


async def test_a_large_tree_is_deleted_and_no_descriptor_stays(files: Files) -> None:
    before = open_fds()
    for number in range(50):
        folder = files.folder / "t" / str(number) / "x" / "y"
        folder.mkdir(parents=True)
        for other in range(10):
            (folder / str(other)).touch()
    await files.ask("copy", "t", "u")
    await files.ask("delete", "t", recursive=True)
    assert sum(1 for _ in (files.folder / "u").rglob("*") if _.is_file()) == 500
    await files.ask("delete", "u", recursive=True)
    assert await files.names() == []
    assert open_fds() == before


# ---- what takes long ----------------------------------------------------------------------------


async def test_a_file_system_that_hangs_is_given_up_and_holds_up_only_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow, quick = tmp_path / "slow", tmp_path / "quick"
    for folder in (slow, quick):
        folder.mkdir()
        (folder / "a").write_text("A")
    files = Files(quick, FileResources(FileLimits(within=2.0, threads=8)))
    files.served.append(slow.as_uri())
    go_on, hung = threading.Event(), []
    look = os.stat

    def hanging(path: Any, **more: Any) -> Any:
        if path == b"slow":
            hung.append(1)
            go_on.wait(60)
        return look(path, **more)

    monkeypatch.setattr(os, "stat", hanging)
    try:
        given_up: list[str] = []

        async def ask_slow() -> None:
            with fails(-32603, "did not answer") as caught:
                await files.ask("read", f"{slow.as_uri()}/a")
            given_up.append(caught.value.message)

        async with trio.open_nursery() as nursery:
            for _ in range(40):
                nursery.start_soon(ask_slow)
            await trio.sleep(0.1)
            with trio.fail_after(60):
                for _ in range(20):
                    assert (await files.ask("read", "a"))["data"] == "A"
        assert len(given_up) == 40
        assert len(hung) == 4, "half of the places at most, and none of them twice"
        assert (await files.ask("read", "a"))["data"] == "A"
    finally:
        go_on.set()
    with trio.fail_after(60):
        while True:  # its places come back
            try:
                assert (await files.ask("read", f"{slow.as_uri()}/a"))["data"] == "A"
            except ProtocolError:
                await trio.sleep(0.05)
            else:
                break


async def test_what_was_given_up_stops_at_the_next_file(
    files: Files, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(50):
        (files.folder / f"d/{number}").mkdir(parents=True)
    files.resources = FileResources(FileLimits(within=0.5))
    remove = os.rmdir
    deleted = []

    def slowly(*args: Any, **more: Any) -> None:
        threading.Event().wait(0.1)
        remove(*args, **more)
        deleted.append(1)

    monkeypatch.setattr(os, "rmdir", slowly)
    with fails(-32603, "did not answer"):
        await files.ask("delete", "d", recursive=True)
    with trio.fail_after(30):
        while files.resources._threads.whole is None or (
            files.resources._threads.whole.borrowed_tokens
        ):
            await trio.sleep(0.05)
    assert len(deleted) < 50
