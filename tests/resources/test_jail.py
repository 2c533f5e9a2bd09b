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

from ahpd.protocol.errors import ProtocolError
from ahpd.resources.jail import Folders, lineage, plain, spot
from tests.resources.support import Files, fails, open_fds

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
    ("mkdir", {}), ("delete", {"recursive": True}), ("request", {"write": True}), ("resolve", {}),
]  # fmt: skip
OUTSIDE = ["out/secret", "out/real-evil/x", "out/nope", "../real-evil/x", "%2e%2e/real-evil/x",
           "sub/../../secret", "dang/x", "../link-evil", "out/link/../secret"]  # fmt: skip


@pytest.mark.parametrize(("do", "more"), ONE)
async def test_outside_is_denied_with_the_grant_that_would_help(
    files: Files, do: str, more: dict[str, Any]
) -> None:
    outside = [*OUTSIDE, *(["f", "dang"] if do != "delete" else [])]
    for name in outside:
        with fails(-32009, "outside") as caught:
            await files.ask(do, name, **more)
        data: Any = caught.value.data
        assert data["request"]["uri"] == files.uri(name)
        assert data["request"].get("read") or data["request"].get("write")
    parent = files.folder.parent
    assert (parent / "secret").read_text() == "secret"
    assert (parent / "real-evil/x").read_text() == "evil"


@pytest.mark.parametrize("do", ["copy", "move"])
async def test_both_ends_of_a_copy_or_move_are_looked_at(files: Files, do: str) -> None:
    for name in ("f", "out/secret", "../secret"):
        for pair in (("ok.txt", name), (name, "new")):
            with fails(-32009):
                await files.ask(do, *pair)
    assert (files.folder.parent / "secret").read_text() == "secret"
    assert (files.folder / "ok.txt").read_text() == "ok"
    assert not (files.folder / "new").exists()


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
    before = open_fds()
    for name in ("ok.txt", "f", "loop", "out/nope", "within", "sub/..", "up/../ok.txt", "a/b"):
        for do, more in ONE[:-2]:
            if do != "delete":
                with suppress(ProtocolError):
                    await files.ask(do, name, **more)
    assert open_fds() == before


def test_paths() -> None:
    assert plain(b"//w/./a//") == b"/w/a"
    assert list(lineage(b"/w/a")) == [b"/w/a", b"/w", b"/"]
    assert Folders([b"/w"]).holds(b"/w/x")
    assert not Folders([b"/w"]).holds(b"/")
    assert Folders([b"/w/a"]).below(b"/w")
    assert not Folders([b"/w/a"]).below(b"/w/a")


def test_a_link_to_the_top_serves_nothing(tmp_path: Path) -> None:
    (tmp_path / "top").symlink_to("/")
    folders = Folders([bytes(tmp_path / "top"), bytes(tmp_path) + b"/../../../../../../.."])
    assert not folders.holds(b"/etc/hostname")


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
