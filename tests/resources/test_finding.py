"""Files for completions: what is found, in which order, and what is ignored."""

from __future__ import annotations

import os
import threading
from pathlib import Path
from typing import Any

import pytest
import trio

from ahpd.resources import finding
from ahpd.resources import index as index_module
from ahpd.resources.files import FileResources
from ahpd.resources.ignoring import Rules
from ahpd.resources.index import Index, files_in

pytestmark = pytest.mark.real_time


def make(folder: Path, *names: str, **contents: str) -> None:
    for name in names:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()


async def found(folder: Path, typed: str, most: int = 50) -> list[str]:
    return [each.label for each in await FileResources().find(typed, [folder.as_uri()], most)]


async def test_the_best_come_first(tmp_path: Path) -> None:
    make(tmp_path, "src/main.py", "src/domain/x.py", "main/a.txt", "m/a/i/n.c", "README", "remain")
    assert await found(tmp_path, "main") == [
        "src/main.py", "main/a.txt", "remain", "src/domain/x.py", "m/a/i/n.c",
    ]  # fmt: skip
    assert (await found(tmp_path, "MAIN.P"))[0] == "src/main.py"
    assert (await found(tmp_path, "src/ma"))[0] == "src/main.py"
    assert (await found(tmp_path, ""))[0] == "README"
    assert await found(tmp_path, "nothing") == []
    assert len(await found(tmp_path, "", 2)) == 2


async def test_ignore_files_are_respected_as_git_does(tmp_path: Path) -> None:
    make(
        tmp_path, "a.o", "keep.o", "build/x", "src/build/y", "src/z.log", "src/keep.log",
        "a b/c.txt", "node_modules/m/i.js", "src/deep/only/here", "src/deep/else", "sub/[x]",
        "sub/y", "doc/a/b/c", "doc/b/c", "src/tmp/x", "src/tmp.d/x", "q1", "q22",
    )  # fmt: skip
    (tmp_path / ".gitignore").write_text(
        "*.o\n!keep.o\n/build/\nnode_modules\n# none\n\n*.log\ndoc/**/c\ntmp/\nq?\n"
    )
    (tmp_path / "src/.gitignore").write_text("!keep.log\ndeep/*\n!deep/only/\n")
    (tmp_path / "sub/.gitignore").write_text("\\[x\\]\n")
    git = ["git", "-C", str(tmp_path)]
    await trio.run_process([*git, "init", "-q"])
    listing = [*git, "ls-files", "-co", "-z", "--exclude-standard"]
    done = await trio.run_process(listing, capture_stdout=True)
    wanted = {name for name in done.stdout.decode().split("\0") if name}
    assert set(await found(tmp_path, "")) == wanted
    assert {"keep.o", "src/keep.log", "src/deep/only/here", "sub/y", "q22"} <= wanted
    (tmp_path / ".ignore").write_text("q22\n")
    assert set(await found(tmp_path, "")) == {*wanted, ".ignore"} - {"q22"}


async def test_a_folder_inside_a_repository_is_ignored_by_what_is_above_it(tmp_path: Path) -> None:
    make(
        tmp_path, "packages/ä/src/m.py", "packages/ä/node_modules/x/i.js", "packages/ä/a.log",
        "packages/ä/keep.log", "packages/ä/out/x", "packages/ä/src/out/y", "packages/b/z",
        "out/gone", "build/made/a.c", "build/made/b.log",
    )  # fmt: skip
    (tmp_path / ".gitignore").write_text("node_modules\n*.log\n/out\n/build/\n")
    (tmp_path / "packages/.gitignore").write_text("!keep.log\n/ä/out\n")
    package = tmp_path / "packages/ä"
    assert "a.log" in await found(package, ""), "it is no repository yet"
    await trio.run_process(["git", "-C", str(tmp_path), "init", "-q"])
    listing = ["git", "-C", str(package), "ls-files", "-co", "-z", "--exclude-standard"]
    done = await trio.run_process(listing, capture_stdout=True)
    wanted = {name for name in done.stdout.decode().split("\0") if name}
    assert wanted == {"src/m.py", "src/out/y", "keep.log"}
    assert set(await found(package, "")) == wanted
    assert set(await found(package / "src", "")) == {"m.py", "out/y"}
    # Who has been sent into an ignored folder wants to see what is in it.
    assert set(await found(tmp_path / "build/made", "")) == {"a.c", "b.log"}
    # A repository in a repository is its own.
    await trio.run_process(["git", "-C", str(package), "init", "-q"])
    assert {"a.log", "out/x"} <= set(await found(package, ""))


def test_patterns_with_and_without_exceptions() -> None:
    rules = Rules(["*.o", "/x/", "a/**/b"])
    assert rules.verdict("d/y.o") is True
    assert rules.verdict("x/") is True
    assert rules.verdict("x") is None
    assert rules.verdict("a/1/2/b") is True
    assert Rules(["*.o", "!y.o"]).verdict("d/y.o") is False
    assert Rules([""]).verdict("a") is None


async def test_links_are_not_followed_and_any_name_is_found(tmp_path: Path) -> None:
    outside, root = tmp_path / "outside", tmp_path / "w"
    make(outside, "secret")
    make(root, "a")
    (root / "out").symlink_to(outside)
    (root / os.fsdecode(b"\xff name")).touch()
    resources = FileResources()
    all_of_it = await resources.find("", [root.as_uri()], 50)
    assert {each.uri for each in all_of_it} == {
        f"{root.as_uri()}/{name}" for name in ("a", "out", "%FF%20name")
    }
    (named,) = await resources.find("name", [root.as_uri()], 50)
    assert named.uri.endswith("/%FF%20name")
    assert await resources.find("a", [(tmp_path / "nope").as_uri(), "x:/y"], 50) == []


async def test_several_folders_are_told_apart(tmp_path: Path) -> None:
    make(tmp_path, "one/a", "two/a")
    uris = [(tmp_path / name).as_uri() for name in ("one", "two")]
    got = await FileResources().find("a", uris, 50)
    assert [(each.label, each.uri) for each in got] == [
        ("one/a", f"{uris[0]}/a"), ("two/a", f"{uris[1]}/a"),
    ]  # fmt: skip


async def test_a_small_tree_is_always_as_it_is_now(tmp_path: Path) -> None:
    resources = FileResources()
    for number in range(20):
        make(tmp_path, f"f{number}")
        got = await resources.find(f"f{number}", [tmp_path.as_uri()], 5)
        assert f"f{number}" in [each.label for each in got]


async def test_a_slow_tree_gives_what_there_is_and_then_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make(tmp_path, "a", "d/b")
    go_on = threading.Event()
    walk = index_module._walk

    def slowly(fd: int, path: bytes, *more: Any) -> None:
        if path:
            go_on.wait(60)
        walk(fd, path, *more)

    monkeypatch.setattr(index_module, "_walk", slowly)
    resources = FileResources()

    async def labels() -> list[str]:
        return [each.label for each in await resources.find("", [tmp_path.as_uri()], 5)]

    try:
        with trio.fail_after(30):
            assert await labels() == ["a"]
    finally:
        go_on.set()
    with trio.fail_after(30):
        while await labels() != ["a", "d/b"]:
            await trio.sleep(0.01)


async def test_folders_that_hang_leave_the_others_to_be_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(5):
        make(tmp_path, f"slow{number}/hangs", f"quick{number}/a")
    go_on = threading.Event()
    search = index_module.files_in

    def hanging(folder: bytes, *more: Any) -> None:
        if b"slow" in folder:
            go_on.wait(60)
        search(folder, *more)

    monkeypatch.setattr(finding, "files_in", hanging)
    monkeypatch.setattr(finding, "TURN", 0.05)
    resources = FileResources()

    async def labels(name: str) -> list[str]:
        found = await resources.find("", [(tmp_path / name).as_uri()], 5)
        return [each.label for each in found]

    try:
        with trio.fail_after(30):
            for number in range(5):
                assert await labels(f"slow{number}") == []
            for number in range(5):
                while await labels(f"quick{number}") != ["a"]:
                    await trio.sleep(0.01)
    finally:
        go_on.set()
    with trio.fail_after(30):
        while await labels("slow4") != ["hangs"]:
            await trio.sleep(0.01)


def test_letters_are_found_in_a_long_text() -> None:
    paths = [f"folder{number}/name{number}.txt".encode() for number in range(20_000)]
    index = Index([*paths, b"deep/quite/zebra_crossing.py"])
    assert index.search("zbrcrsng", 5) == [b"deep/quite/zebra_crossing.py"]
    assert index.search("name19999", 5)[0] == b"folder19999/name19999.txt"
    assert len(index.search("name", 50)) == 50


def test_the_walk_can_be_given_up(tmp_path: Path) -> None:
    make(tmp_path, "a", "d/b")

    def pause() -> None:
        raise RuntimeError("given up")

    with pytest.raises(RuntimeError, match="given up"):
        files_in(bytes(tmp_path), [], pause)
