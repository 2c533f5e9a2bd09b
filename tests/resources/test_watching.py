"""Watches on real files, with the real kernel (hazards B11, B64)."""

from __future__ import annotations

import errno
import os
import random
import resource
import shutil
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import attrs
import pytest
import trio

from ahpd.protocol.resources import CreateResourceWatchParams, GlobPatterns
from ahpd.protocol.uris import URI
from ahpd.resources import inotify, tree, watching
from ahpd.resources.files import FileResources
from ahpd.resources.port import Served
from tests.resources.support import fails

pytestmark = [
    pytest.mark.real_time,
    pytest.mark.skipif("sys.platform != 'linux'", reason="inotify"),
]

SEED = int(os.environ.get("AHPD_TEST_SEED", random.SystemRandom().randrange(1 << 32)))


@attrs.define
class Eye:
    """A watch, and what it has said: the last word on each path from the root on."""

    folder: Path
    root: URI
    watch: watching.FolderWatch
    resources: FileResources
    nursery: trio.Nursery
    said: list[tuple[str, str]] = attrs.field(factory=list)
    batches: list[list[tuple[str, str]]] = attrs.field(factory=list)

    async def follow(self) -> None:
        while True:
            await self.watch.changed()
            batch: list[tuple[str, str]] = []
            for change in self.watch.take(1 << 20):
                assert change.uri == self.root or change.uri.startswith(self.root + "/")
                batch.append((change.uri[len(self.root) + 1 :], change.type))
            assert len({path for path, _ in batch}) == len(batch), batch
            self.said += batch
            self.batches.append(batch)

    async def until(self, wanted: Callable[[], bool]) -> None:
        with trio.move_on_after(20):
            while not wanted():
                await trio.sleep(0.01)
            return
        raise AssertionError(f"not said; there is {self.said[-50:]}")

    async def says(self, *changes: tuple[str, str]) -> set[tuple[str, str]]:
        """All of these, in any order; then forget what was said, which is returned."""
        await self.until(lambda: set(changes) <= set(self.said))
        await self.rest()
        said = set(self.said)
        self.said.clear()
        return said

    async def rest(self) -> None:
        """Wait until nothing has been said for a while."""
        count = -1
        while count != len(self.said):
            count = len(self.said)
            await trio.sleep(0.15)

    async def says_only(self, *changes: tuple[str, str]) -> None:
        await self.until(lambda: set(changes) <= set(self.said))
        await self.rest()
        assert sorted(set(self.said)) == sorted(changes), self.said
        self.said.clear()

    async def is_silent(self) -> None:
        await trio.sleep(0.25)
        assert self.said == []


@asynccontextmanager
async def looking(
    folder: Path,
    target: str = "",
    *,
    resources: FileResources | None = None,
    served: Path | None = None,
    **more: Any,
) -> AsyncIterator[Eye]:
    files = resources or FileResources()
    root = folder.as_uri() + (f"/{target}" if target else "")
    globs: dict[str, Any] = {
        k: GlobPatterns(items=tuple(v)) for k, v in more.items() if k != "recursive"
    }
    params = CreateResourceWatchParams(uri=root, recursive=more.get("recursive"), **globs)
    watch = await files.watch(params, Served([(served or folder).as_uri()]))
    async with trio.open_nursery() as nursery:
        if resources is None:
            nursery.start_soon(files.keep_watch)
        eye = Eye(folder, root, watch, files, nursery)
        nursery.start_soon(eye.follow)
        yield eye
        watch.close()
        nursery.cancel_scope.cancel()


def marks() -> int:
    """How many folders the kernel watches for this process."""
    count = 0
    for name in os.listdir("/proc/self/fdinfo"):
        try:
            text = Path(f"/proc/self/fdinfo/{name}").read_text()
        except OSError:
            continue
        count += text.count("inotify wd:")
    return count


def replace(path: Path, text: str) -> None:
    """Save as editors do."""
    other = path.with_name(f".{path.name}.tmp")
    other.write_text(text)
    os.replace(other, path)


async def test_b11_a_file_is_heard_after_every_kind_of_save(tmp_path: Path) -> None:
    file = tmp_path / "a.txt"
    file.write_text("0")
    async with looking(tmp_path, "a.txt") as eye:
        for number in range(3):
            replace(file, str(number))
            await eye.says_only(("", "updated"))
        with file.open("a") as stream:
            stream.write("more")
        await eye.says_only(("", "updated"))
        os.rename(file, tmp_path / "a~")
        file.write_text("new")
        await eye.says_only(("", "updated"))
        file.unlink()
        await eye.says_only(("", "deleted"))
        file.write_text("again")
        await eye.says_only(("", "added"))
        (tmp_path / "b.txt").write_text("another")
        await eye.is_silent()


VIM = ["vim", "-u", "NONE", "-n", "-es", "-c", "set writebackup backupcopy={}", "-c", "normal Ox",
       "-c", "wq", "a.txt"]  # fmt: skip
EDITORS = {
    "vim that renames": [each.format("no") for each in VIM],
    "vim that copies": [each.format("yes") for each in VIM],
    "sed": ["sed", "-i", "s/^/x/", "a.txt"],
    "ed": ["sh", "-c", "printf '1s/^/x/\\nw\\nq\\n' | ed -s a.txt"],
    "git": ["git", "checkout", "-q", "-f", "-"],
}


@pytest.mark.parametrize("editor", EDITORS)
async def test_b11_real_editors_are_heard_each_time_they_save(tmp_path: Path, editor: str) -> None:
    command = EDITORS[editor]
    if any(shutil.which(name) is None for name in (command[0], editor.split(maxsplit=1)[0])):
        pytest.skip(f"there is no {editor}")
    file = tmp_path / "a.txt"
    if editor == "git":
        git = ["git", "-C", str(tmp_path), "-c", "user.name=x", "-c", "user.email=x@x"]
        await trio.run_process([*git, "init", "-q"])
        for text in "01":
            file.write_text(text)
            for more in (["checkout", "-qb", f"b{text}"], ["add", "."], ["commit", "-qm", "x"]):
                await trio.run_process([*git, *more])
    else:
        file.write_text("1\n")
    resources = FileResources()
    async with (
        looking(tmp_path, "a.txt", resources=resources) as one,
        looking(tmp_path, resources=resources) as folder,
    ):
        folder.nursery.start_soon(resources.keep_watch)
        for _ in range(2):
            before = file.read_text()
            await trio.run_process(command, cwd=tmp_path, check=False)
            assert file.read_text() != before
            await one.says_only(("", "updated"))
            await folder.says(("a.txt", "updated"))


async def test_r_14_5_without_recursive_only_what_is_in_the_folder_itself(tmp_path: Path) -> None:
    (tmp_path / "d").mkdir()
    async with looking(tmp_path) as eye:
        (tmp_path / "a").write_text("1")
        (tmp_path / "d" / "b").write_text("1")
        (tmp_path / "e").mkdir()
        await eye.says_only(("a", "added"), ("e", "added"))
        (tmp_path / "e" / "c").write_text("1")
        await eye.is_silent()
        (tmp_path / "a").write_text("2")
        (tmp_path / "e" / "c").unlink()
        (tmp_path / "e").rmdir()
        await eye.says_only(("a", "updated"), ("e", "deleted"))


async def test_recursive_the_whole_tree(tmp_path: Path) -> None:
    (tmp_path / "d/e").mkdir(parents=True)
    (tmp_path / "d/e/f").write_text("1")
    async with looking(tmp_path, recursive=True) as eye:
        (tmp_path / "d/e/f").write_text("2")
        await eye.says_only(("d/e/f", "updated"))
        (tmp_path / "d/e/f").chmod(0o600)
        await eye.says_only(("d/e/f", "updated"))
        os.rename(tmp_path / "d/e", tmp_path / "g")
        await eye.says_only(
            ("d/e", "deleted"), ("d/e/f", "deleted"), ("g", "added"), ("g/f", "added")
        )
        (tmp_path / "g/f").write_text("3")
        await eye.says_only(("g/f", "updated"))
        replace(tmp_path / "g/f", "4")
        await eye.says_only(("g/f", "updated"))
        shutil.rmtree(tmp_path / "g")
        await eye.says_only(("g", "deleted"), ("g/f", "deleted"))


async def test_what_comes_and_goes_in_a_batch_is_not_told_and_what_stays_is(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("1")
    async with looking(tmp_path, recursive=True) as eye:
        (tmp_path / "b").write_text("1")
        (tmp_path / "b").unlink()
        (tmp_path / "a").unlink()
        (tmp_path / "a").write_text("2")
        await eye.says_only(("a", "updated"))
        (tmp_path / "a").unlink()
        (tmp_path / "a").mkdir()
        (tmp_path / "a/x").touch()
        await eye.says_only(("a", "updated"), ("a/x", "added"))
        shutil.rmtree(tmp_path / "a")
        (tmp_path / "a").write_text("a file")
        await eye.says_only(("a", "updated"), ("a/x", "deleted"))


async def test_a_tree_that_is_made_in_one_go_is_told_whole(tmp_path: Path) -> None:
    made = tmp_path / "made"
    for number in range(40):
        (made / str(number) / "x" / "y").mkdir(parents=True)
        (made / str(number) / "x" / "y" / "f").touch()
    root = tmp_path / "w"
    root.mkdir()
    wanted = {f"t/{path.relative_to(made)}" for path in made.rglob("*")} | {"t"}
    async with looking(root, recursive=True) as eye:
        for way in ("copied", "renamed"):
            if way == "copied":
                await trio.to_thread.run_sync(shutil.copytree, made, root / "t")
            else:
                os.rename(made, root / "t")
            added = {(path, "added") for path in wanted}
            later = await eye.says(*added) - added
            # A copy is not made in one step: what was told of it may change again.
            assert later <= ({(path, "updated") for path in wanted} if way == "copied" else set())
            for number in range(40):
                (root / f"t/{number}/x/y/f").write_text("1")
            await eye.says_only(*((f"t/{number}/x/y/f", "updated") for number in range(40)))
            await trio.to_thread.run_sync(shutil.rmtree, root / "t")
            await eye.says_only(*((path, "deleted") for path in wanted))


async def test_a_folder_that_is_replaced_is_heard_and_its_files_are_told(tmp_path: Path) -> None:
    for name in ("d", "new"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "same").write_text(name)
    (tmp_path / "d/old").touch()
    async with looking(tmp_path, recursive=True) as eye:
        os.rename(tmp_path / "d", tmp_path / "away")
        os.rename(tmp_path / "new", tmp_path / "d")
        await eye.says(("d/same", "updated"), ("d/old", "deleted"), ("away/old", "added"))
        (tmp_path / "d/same").write_text("more")
        await eye.says_only(("d/same", "updated"))


async def test_b64_the_root_goes_and_comes_back(tmp_path: Path) -> None:
    root = tmp_path / "w"
    root.mkdir()
    (root / "a").write_text("1")
    async with looking(root, recursive=True, served=tmp_path) as eye:
        shutil.rmtree(root)
        await eye.says_only(("", "deleted"), ("a", "deleted"))
        root.mkdir()
        (root / "b").write_text("1")
        await eye.says_only(("", "added"), ("b", "added"))
        (root / "b").write_text("2")
        await eye.says_only(("b", "updated"))
        os.rename(root, tmp_path / "elsewhere")
        await eye.says_only(("", "deleted"), ("b", "deleted"))
        (tmp_path / "elsewhere/b").write_text("3")
        await eye.is_silent()
        os.rename(tmp_path / "elsewhere", root)
        await eye.says_only(("", "added"), ("b", "added"))
        (root / "b").write_text("4")
        await eye.says_only(("b", "updated"))
        shutil.rmtree(root)
        root.mkdir()
        (root / "c").touch()
        await eye.says(("b", "deleted"), ("c", "added"))
        (root / "c").write_text("5")
        await eye.says_only(("c", "updated"))


async def test_a_folder_above_the_root_goes_and_comes_back(tmp_path: Path) -> None:
    root = tmp_path / "x/y/w"
    root.mkdir(parents=True)
    (root / "a").touch()
    async with looking(root, served=tmp_path) as eye:
        os.rename(tmp_path / "x", tmp_path / "z")
        await eye.says_only(("", "deleted"), ("a", "deleted"))
        (tmp_path / "x/y").mkdir(parents=True)
        await eye.is_silent()
        os.rename(tmp_path / "z/y/w", root)
        await eye.says_only(("", "added"), ("a", "added"))
        (root / "a").write_text("1")
        await eye.says_only(("a", "updated"))
        os.rename(root, tmp_path / "w")
        root.symlink_to(tmp_path / "w")
        await eye.says_only(("", "updated"), ("a", "deleted"))  # it is no folder any more


async def test_r_14_6_globs(tmp_path: Path) -> None:
    for name in ("src/node_modules/m", "out/b", ".git"):
        (tmp_path / name).mkdir(parents=True)
    globs: dict[str, Any] = {
        "excludes": ["**/node_modules/**", "out", "*.tmp", f"{tmp_path}/.git"],
        "includes": ["**/*.{ts,js}", "docs"],
    }
    async with looking(tmp_path, recursive=True, **globs) as eye:
        for name in ("src/node_modules/m/a.ts", "out/b/a.ts", ".git/a.ts", "a.tmp", "src/a.py"):
            (tmp_path / name).touch()
        for name in ("a.ts", "src/b.js"):
            (tmp_path / name).touch()
        (tmp_path / "docs/x").mkdir(parents=True)
        (tmp_path / "docs/x/y.md").touch()
        await eye.says_only(
            ("a.ts", "added"), ("src/b.js", "added"), ("docs", "added"), ("docs/x", "added"),
            ("docs/x/y.md", "added"),
        )  # fmt: skip
    with fails(-32602, "glob"):
        async with looking(tmp_path, excludes=["{a"]):
            pass


async def test_a_folder_that_cannot_be_listed_is_passed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("bad", "good"):
        (tmp_path / name).mkdir()
    bad, names = (tmp_path / "bad").stat().st_ino, tree._names

    def failing(fd: int) -> dict[bytes, bool]:
        if os.fstat(fd).st_ino == bad:
            raise OSError(errno.EIO, "as file systems of other machines do")
        return names(fd)

    monkeypatch.setattr(tree, "_names", failing)
    async with looking(tmp_path, recursive=True) as eye:
        (tmp_path / "good/a").touch()
        await eye.says_only(("good/a", "added"))
        eye.watch.doubt()  # then all of it is looked at
        (tmp_path / "good/b").touch()
        await eye.says(("good/b", "added"))


async def test_links_are_not_followed_and_names_are_exact(tmp_path: Path) -> None:
    outside, root = tmp_path / "outside", tmp_path / "w"
    outside.mkdir()
    root.mkdir()
    (root / "out").symlink_to(outside)
    (tmp_path / "way").symlink_to(root)
    served = tmp_path / "way"
    async with looking(served, recursive=True) as eye:  # the root itself is a link
        (outside / "secret").touch()
        await eye.is_silent()
        name = b"\xff \xc3\xbc"
        os.mkdir(os.fsencode(root) + b"/" + name)
        os.mkdir(os.fsencode(root) + b"/" + name + b"/#")
        await eye.says_only(("%FF%20%C3%BC", "added"), ("%FF%20%C3%BC/%23", "added"))


async def test_r_14_4_what_is_not_there_or_outside_is_refused(tmp_path: Path) -> None:
    root = tmp_path / "w"
    root.mkdir()
    (root / "out").symlink_to(tmp_path)
    before = marks()
    for target, code in (("nope", -32008), ("out", -32009), ("../x", -32009), ("out/w", None)):
        if code is None:
            async with looking(root, target):
                pass
            continue
        with fails(code):
            async with looking(root, target):
                pass
    await none_left(before)


async def none_left(before: int) -> None:
    with trio.fail_after(20):
        while marks() > before:
            await trio.sleep(0.02)


async def test_b64_a_watch_that_is_closed_leaves_no_mark(tmp_path: Path) -> None:
    for number in range(30):
        (tmp_path / str(number) / "x").mkdir(parents=True)
    async with looking(tmp_path, "0/..") as keep:
        resources = keep.resources
        before = marks()
        for _ in range(3):
            async with looking(tmp_path, recursive=True, resources=resources):
                assert marks() >= before + 60
            await none_left(before)
        (tmp_path / "a").touch()
        await keep.says_only(("a", "added"))


async def test_the_kernels_limit_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(10):
        (tmp_path / str(number)).mkdir()
    room = 8
    add = inotify.Inotify.add

    def few(self: inotify.Inotify, folder: int, mask: int) -> int:
        nonlocal room
        if room <= 0:
            raise inotify.WatchLimit(
                "there are no more of the watches (fs.inotify.max_user_watches)"
            )
        room -= 1
        return add(self, folder, mask)

    monkeypatch.setattr(inotify.Inotify, "add", few)
    before = marks()
    with fails(-32603, "max_user_watches"):
        async with looking(tmp_path, recursive=True):
            pass
    await none_left(before)
    # And when it comes later, what cannot be watched is looked at again and again.
    monkeypatch.setattr(watching, "LOOK_AGAIN", 0.2)
    room = 100
    async with looking(tmp_path, recursive=True) as eye:
        room = 0
        (tmp_path / "new/x").mkdir(parents=True)
        await eye.says(("new", "added"), ("new/x", "added"))
        (tmp_path / "new/x/a").touch()
        await eye.says(("new/x/a", "added"))
        await trio.sleep(0.5)
        eye.said.clear()
        (tmp_path / "new/x/a").write_text("1")
        await eye.says(("new/x/a", "updated"))
        room = 100
        await eye.until(lambda: not eye.watch._tree.unwatched)
        (tmp_path / "new/x/a").unlink()
        await eye.says(("new/x/a", "deleted"))


async def test_a_process_without_descriptors_is_not_taken_for_a_user_without_watchers() -> None:
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    free = os.open("/", os.O_RDONLY)
    os.close(free)
    resource.setrlimit(resource.RLIMIT_NOFILE, (free, before[1]))
    try:
        with pytest.raises(OSError, match="Too many open files"):
            inotify.Inotify()
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
    inotify.Inotify()


def queue_length() -> int:
    return int(Path("/proc/sys/fs/inotify/max_queued_events").read_text())


async def test_what_the_kernel_could_not_say_is_found(tmp_path: Path) -> None:
    """Its queue overflows, since nobody reads it; the difference is found by looking."""
    most = queue_length()
    (tmp_path / "d").mkdir()
    for name in ("a", "d/b", "d/c"):
        (tmp_path / name).write_text("0")
    async with looking(tmp_path, recursive=True) as eye:
        await trio.sleep(0.1)  # the clock of the file system goes on

        def storm() -> None:
            for _ in range(most // 2 + 10):
                (tmp_path / "x").touch()
                (tmp_path / "x").unlink()
            (tmp_path / "d/b").write_text("1")
            (tmp_path / "d/c").unlink()
            (tmp_path / "new").mkdir()
            (tmp_path / "new/f").touch()

        storm()  # in the loop's own thread
        await eye.says(("d/b", "updated"), ("d/c", "deleted"), ("new", "added"), ("new/f", "added"))
        (tmp_path / "new/f").write_text("1")
        await eye.says_only(("new/f", "updated"))


async def test_whoever_comes_after_is_told_what_happened_in_between(tmp_path: Path) -> None:
    resources = FileResources()
    params = CreateResourceWatchParams(uri=tmp_path.as_uri(), recursive=True)
    watch = await resources.watch(params, Served([tmp_path.as_uri()]))
    async with trio.open_nursery() as nursery:
        nursery.start_soon(resources.keep_watch)
        for number in range(40):
            (tmp_path / str(number)).touch()
            with trio.move_on_after(0.001 * (number % 8) * 10):
                await watch.changed()
        told: set[str] = set()
        with trio.fail_after(20):
            while len(told) < 40:
                await watch.changed()
                told |= {change.uri.rpartition("/")[2] for change in watch.take(7)}
        nursery.cancel_scope.cancel()
    (tmp_path / "while nobody read").touch()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(resources.keep_watch)
        uris = ""
        with trio.fail_after(20):
            while "nobody" not in uris:
                await watch.changed()
                uris += watch.take(1)[0].uri
        nursery.cancel_scope.cancel()
    watch.close()


def all_in(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*")}


async def test_a_copy_that_is_kept_by_what_is_told_equals_the_tree(tmp_path: Path) -> None:
    """A random walk: at rest, what was told leads to what is there, file for file."""
    print(f"seed {SEED}")
    rng = random.Random(SEED)
    stop = threading.Event()

    def walk() -> None:
        while not stop.is_set():
            folders = [tmp_path, *(p for p in list(tmp_path.rglob("*")) if p.is_dir())]
            place = rng.choice(folders) / rng.choice("abcd")
            try:
                match rng.randrange(7):
                    case 0:
                        place.mkdir()
                    case 1 | 2:
                        place.write_text(str(rng.random()))
                    case 3:
                        replace(place, str(rng.random()))
                    case 4:
                        os.rename(place, rng.choice(folders) / rng.choice("abcd"))
                    case 5:
                        place.unlink()
                    case 6:
                        shutil.rmtree(place)
            except OSError:
                continue
            if rng.random() < 0.02:
                threading.Event().wait(0.06)

    known: dict[str, str] = {}
    async with looking(tmp_path, recursive=True) as eye:
        for _ in range(5):
            stop.clear()
            async with trio.open_nursery() as nursery:
                nursery.start_soon(trio.to_thread.run_sync, walk)
                await trio.sleep(0.6)
                stop.set()
            await eye.rest()
            for path, what in eye.said:
                assert (path in known) == (what != "added"), (SEED, path, what)
                if what == "deleted":
                    del known[path]
                else:
                    known[path] = what
            eye.said.clear()
            there = all_in(tmp_path)
            assert set(known) == there, (SEED, set(known) ^ there)
