"""The jail: links that lead out, names that only look like inside, and races (hazard B32)."""

from __future__ import annotations

import os
import random
import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
import trio

from ahpd.protocol.errors import ProtocolError
from ahpd.protocol.resources import CreateResourceWatchParams
from ahpd.resources.jail import Folders, lineage, plain, spot
from ahpd.resources.port import Served
from tests.resources.support import Files, fails, open_fds, watched_inodes

pytestmark = pytest.mark.real_time


@pytest.fixture
def files(tmp_path: Path) -> Files:
    """``link`` leads to ``real``, which is served by that name; beside it lies ``real-evil``."""
    real = tmp_path / "real"
    (real / "sub").mkdir(parents=True)
    (real / "ok.txt").write_text("ok")
    (real / "sub" / "in.txt").write_text("in")
    (tmp_path / "real-evil").mkdir()
    (tmp_path / "real-evil" / "x").write_text("evil")
    (tmp_path / "secret").write_text("secret")
    (tmp_path / "link").symlink_to(real)
    for name, target in (
        ("out", tmp_path), ("f", tmp_path / "secret"), ("dang", "/nope"), ("loop", "loop"),
        ("within", "sub/in.txt"), ("up", "../real/sub"), ("whole", real / "sub"),
    ):  # fmt: skip
        (real / name).symlink_to(target)
    return Files(tmp_path / "link")


DATA = {"data": "x", "encoding": "utf-8"}
#: What is asked for one URI.
ONE: list[tuple[str, dict[str, Any]]] = [
    ("read", {}), ("list", {}), ("write", DATA), ("write", {**DATA, "createOnly": True}),
    ("mkdir", {}), ("delete", {"recursive": True}), ("request", {"write": True}), ("request", {}),
    ("watch", {}), ("watch", {"recursive": True}), ("resolve", {}),
]  # fmt: skip
#: What changes something, so that the grant it needs is one to write.
WRITING = ("write", "mkdir", "delete")
OUTSIDE = ["out/secret", "out/real-evil/x", "out/nope", "../real-evil/x", "%2e%2e/real-evil/x",
           "sub/../../secret", "dang/x", "../link-evil", "out/link/../secret"]  # fmt: skip


def grant(uri: str, what: str) -> Any:
    """What a refusal says would help: the params of a `resourceRequest`."""
    return {"request": {"channel": "ahp-root://", "uri": uri, what: True}}


@pytest.mark.parametrize(("do", "more"), ONE)
async def test_outside_is_denied_with_the_grant_that_would_help(
    files: Files, do: str, more: dict[str, Any]
) -> None:
    outside = [*OUTSIDE, *(["f", "dang"] if do != "delete" else [])]
    for name in outside:
        with fails(-32009, "outside") as caught:
            await files.ask(do, name, **more)
        data: Any = caught.value.data
        writes = do in WRITING or more.get("write")
        assert data == grant(files.uri(name), "write" if writes else "read")
    parent = files.folder.parent
    assert (parent / "secret").read_text() == "secret"
    assert (parent / "real-evil/x").read_text() == "evil"


@pytest.mark.parametrize("do", ["copy", "move"])
async def test_both_ends_of_a_copy_or_move_are_looked_at(files: Files, do: str) -> None:
    for name in (*OUTSIDE, "f", "dang"):
        for pair in (("ok.txt", name), (name, "new"), (name, name)):
            with fails(-32009, "outside") as caught:
                await files.ask(do, *pair)
            data: Any = caught.value.data
            reads = do == "copy" and pair[0] == name
            assert data == grant(files.uri(name), "read" if reads else "write")
    assert (files.folder.parent / "secret").read_text() == "secret"
    assert (files.folder / "ok.txt").read_text() == "ok"
    assert not (files.folder / "new").exists()


#: What names no file of this machine; `{}` is the served folder.
BAD = [
    "file://otherhost{}/ok.txt", "http:{}/ok.txt", "HTTP://x{}/ok.txt", "x:{}/ok.txt", "ok.txt",
    "{}/ok.txt", "file:ok.txt", "file:", "file://", "", "file://{}/ok.txt%00", "file://{}/%00/..",
    "file://{}/ok.txt?x", "file://{}/ok.txt#x", "file://{}/" + "a/" * 2100,
]  # fmt: skip


class Spelled(Files):
    """URIs are what they are."""

    def uri(self, name: str) -> str:
        return name


@pytest.mark.parametrize(("do", "more"), [*ONE, ("copy", {}), ("move", {})])
async def test_what_names_no_file_of_this_machine_is_no_good_request(
    files: Files, do: str, more: dict[str, Any]
) -> None:
    good, files = files.uri("ok.txt"), Spelled(files.folder)
    for bad in (each.replace("{}", str(files.folder)) for each in BAD):
        for names in ((bad, good), (good, bad)) if do in ("copy", "move") else ((bad,),):
            with fails(-32602, do.capitalize()):
                await files.ask(do, *names, **more)
    assert sorted(os.listdir(files.folder.parent)) == ["link", "real", "real-evil", "secret"]


async def test_links_that_stay_inside_work_as_people_expect(files: Files) -> None:
    for name in ("ok.txt", "within", "up/in.txt", "whole/in.txt", "sub/../ok.txt", "./ok.txt"):
        got = await files.ask("read", name)
        assert got["data"] == ("ok" if name.endswith("ok.txt") else "in")
    real = (files.folder.parent / "real").as_uri()
    assert (await files.ask("read", f"{real}/ok.txt"))["data"] == "ok"
    assert (await files.ask("resolve", "up/in.txt"))["uri"] == f"{real}/sub/in.txt"
    await files.write("within", "changed")
    assert (files.folder / "sub/in.txt").read_text() == "changed"
    assert (files.folder / "within").is_symlink()
    await files.write("up/new.txt", "new")
    assert (files.folder / "sub/new.txt").read_text() == "new"
    with fails(-32008, "leads nowhere"):
        await files.ask("read", "loop")


async def test_of_a_link_that_leads_out_the_link_may_be_seen_and_deleted(files: Files) -> None:
    got = await files.ask("resolve", "out", followSymlinks=False)
    assert got["type"] == "symlink"
    kinds = {e["name"]: e["type"] for e in (await files.ask("list", ""))["entries"]}
    assert (kinds["out"], kinds["up"], kinds["whole"]) == ("file", "directory", "directory")
    for name in ("out", "f", "dang", "loop"):
        await files.ask("delete", name, recursive=True)
    assert (files.folder.parent / "secret").read_text() == "secret"


async def test_a_folder_beside_with_the_same_beginning_is_not_inside(files: Files) -> None:
    files.served = [(files.folder.parent / "real").as_uri()]
    for name in ("real-evil/x", "real-evil", "rea"):
        with fails(-32009):
            await files.ask("read", f"{files.folder.parent.as_uri()}/{name}")


async def test_what_is_not_of_this_machine_serves_nothing(files: Files) -> None:
    for served in (
        f"file://otherhost{files.folder}",
        f"vscode-remote://x{files.folder}",
        "x:/",
        "",
    ):
        files.served = [served]
        with fails(-32009):
            await files.ask("read", "ok.txt")


async def test_no_descriptor_stays_open(files: Files) -> None:
    await files.ask("watch", "")  # the descriptor of all watches stays
    before = open_fds()
    for name in ("ok.txt", "f", "loop", "out/nope", "within", "sub/..", "up/../ok.txt", "a/b"):
        for do, more in ONE:
            if do != "delete":
                with suppress(ProtocolError):
                    await files.ask(do, name, **more)
    assert open_fds() == before


def test_paths() -> None:
    assert plain(b"//w/./a//") == b"/w/a"
    assert list(lineage(b"/w/a")) == [b"/w/a", b"/w", b"/"]
    assert Folders([b"/w"]).holds(b"/w/x", "read")
    assert not Folders([b"/w"]).holds(b"/", "read")
    assert Folders([b"/w/a"]).below(b"/w")
    assert not Folders([b"/w/a"]).below(b"/w/a")


def test_a_link_to_the_top_serves_nothing(tmp_path: Path) -> None:
    (tmp_path / "top").symlink_to("/")
    folders = Folders([bytes(tmp_path / "top"), bytes(tmp_path) + b"/../../../../../../.."])
    assert not folders.holds(b"/etc/hostname", "read")


def test_walks_end_where_the_kernels_do(tmp_path: Path) -> None:
    """Random trees of folders and links: a walk finds what `os.path.realpath` finds."""
    for seed in range(30):
        rng = random.Random(seed)
        top = tmp_path / str(seed)
        folders = [top]
        top.mkdir()
        for number in range(25):
            place = rng.choice(folders) / str(number)
            if rng.random() < 0.5:
                place.mkdir()
                folders.append(place)
            else:
                target = rng.choice([str(rng.choice(folders)), "..", "../x", "1", "./2/3", "/"])
                place.symlink_to(target)
        for _ in range(200):
            steps = rng.choices([*map(str, range(25)), "..", "."], k=rng.randint(1, 6))
            path = os.fsencode("/".join([str(rng.choice(folders)), *steps]))
            try:
                wanted: tuple[int, int] | None = os.stat(path)[1:3]
            except OSError:
                wanted = None
            try:
                with spot(path) as found:
                    info = found.info
                    got = info[1:3] if info is not None else None
                    assert info is None or found.path == os.path.realpath(path), (seed, path)
            except Exception:  # noqa: BLE001 compared below
                got = None
            assert got == wanted, (seed, path)


# ---- races --------------------------------------------------------------------------------------

SEED = int(os.environ.get("AHPD_TEST_SEED", random.SystemRandom().randrange(1 << 32)))


@contextmanager
def swapping(folder: Path, outside: Path) -> Iterator[None]:
    """While the block runs ``d`` is now a folder, now a link to `outside`, as fast as may be."""
    over = threading.Event()
    rng = random.Random(SEED)
    spare, link, name = folder / "spare", folder / "spare-link", folder / "d"

    def swap() -> None:
        while not over.is_set():
            os.rename(name, spare)
            link.symlink_to(outside)
            put(link)
            for _ in range(rng.randrange(200)):
                pass
            os.unlink(name)
            put(spare)
            for _ in range(rng.randrange(200)):
                pass

    def put(what: Path) -> None:
        while True:
            try:
                os.rename(what, name)
            except OSError:  # a request has made a folder there in between
                shutil.rmtree(name, ignore_errors=True)
            else:
                return

    thread = threading.Thread(target=swap)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


async def test_a_folder_that_is_swapped_for_a_link_lets_nobody_out(tmp_path: Path) -> None:
    """Nothing of what is outside is read, listed, written or deleted, however it falls."""
    print(f"seed {SEED}")
    inside, outside = tmp_path / "w", tmp_path / "outside"
    (inside / "d").mkdir(parents=True)
    outside.mkdir()
    (inside / "d" / "a").write_text("inside")
    (outside / "a").write_text("outside")
    (outside / "only-outside").write_text("outside")
    before = {path.name: path.read_text() for path in outside.iterdir()}
    files = Files(inside)
    seen: dict[str, int] = {}
    with swapping(inside, outside):
        for number in range(150):
            for do, names, more in (
                ("read", ["d/a"], {}),
                ("list", ["d"], {}),
                ("resolve", ["d/only-outside"], {}),
                ("write", ["d/a"], {"data": "inside", "encoding": "utf-8"}),
                ("write", [f"d/new{number}"], {"data": "inside", "encoding": "utf-8"}),
                ("delete", [f"d/new{number}"], {}),
                ("copy", ["d/a", "d/b"], {}),
                ("move", ["d/b", f"d/c{number}"], {}),
                ("mkdir", ["d/m/n"], {}),
                ("delete", ["d/m"], {"recursive": True}),
            ):
                try:
                    got = await files.ask(do, *names, **more)
                except ProtocolError as error:
                    key = f"{do} {error.code}"
                else:
                    key = do
                    assert "outside" not in str(got), (SEED, number, do, got)
                seen[key] = seen.get(key, 0) + 1
    assert {path.name: path.read_text() for path in outside.iterdir()} == before, SEED
    codes = {key.split()[1] for key in seen if " " in key}
    assert codes <= {"-32008", "-32009", "-32010", "-32602"}, (SEED, seen)
    assert seen.get("read"), f"seed {SEED}: it was never there: {seen}"
    assert seen.get("read -32009") or seen.get("read -32008"), f"seed {SEED}: never swapped: {seen}"


async def test_a_file_that_is_swapped_for_a_link_lets_nobody_out(tmp_path: Path) -> None:
    print(f"seed {SEED}")
    inside, secret = tmp_path / "w", tmp_path / "secret"
    inside.mkdir()
    secret.write_text("outside")
    (inside / "d").write_text("inside")
    files, codes = Files(inside), set()
    with swapping(inside, secret):
        for number in range(1000):
            try:
                assert (await files.ask("read", "d"))["data"] in ("inside", ""), (SEED, number)
                await files.write("d", "inside")
            except ProtocolError as error:
                codes.add(error.code)
    assert codes <= {-32008, -32009}, SEED
    assert secret.read_text() == "outside", SEED


@pytest.mark.skipif("sys.platform != 'linux'", reason="inotify")
async def test_a_folder_that_is_swapped_for_a_link_has_nobody_watch_what_is_outside(
    tmp_path: Path,
) -> None:
    """Watches begin, and one goes on, while ``d`` is now a folder and now a link that leads out."""
    print(f"seed {SEED}")
    inside, outside = tmp_path / "w", tmp_path / "outside"
    (inside / "d" / "e").mkdir(parents=True)
    (outside / "e").mkdir(parents=True)
    forbidden = {outside.stat().st_ino, (outside / "e").stat().st_ino}
    files, begun = Files(inside), 0
    told: set[str] = set()
    codes: set[int] = set()
    whole = CreateResourceWatchParams(uri=files.uri("").rstrip("/"), recursive=True)
    below = CreateResourceWatchParams(uri=files.uri("d"), recursive=True)
    watch = await files.resources.watch(whole, Served(files.served))

    async def follow() -> None:
        while True:
            await watch.changed()
            told.update(change.uri for change in watch.take(1 << 20))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(files.resources.keep_watch)
        nursery.start_soon(follow)
        with swapping(inside, outside):
            deadline, number = trio.current_time() + 20, 0
            while number < 100 or begun < 5:
                number += 1
                assert trio.current_time() < deadline, f"seed {SEED}: it was never there"
                (outside / f"outside{number}").touch()
                (outside / "e" / f"outside{number}").touch()
                try:
                    other = await files.resources.watch(below, Served(files.served))
                except ProtocolError as error:
                    codes.add(error.code)
                else:
                    begun += 1
                    assert not watched_inodes() & forbidden, (SEED, number)
                    other.close()
        (inside / "last").touch()
        with trio.fail_after(20):
            while files.uri("last") not in told:
                await trio.sleep(0.01)
        nursery.cancel_scope.cancel()
    watch.close()
    assert codes <= {-32008, -32009}, (SEED, codes)
    assert files.uri("d") in told, f"seed {SEED}: never swapped"
    assert not [uri for uri in told if "outside" in uri], SEED
