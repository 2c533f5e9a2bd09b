"""The jail again, with no luck in it: a folder is swapped for a link at every call of the system.

Each request is made over and over; the first time ``d`` becomes a link that leads out just before
the request's first call of the system, then before its second, and so on to its last; and once more
with ``d`` a folder again some calls later, for those who look twice.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from ahpd.protocol.errors import ProtocolError
from tests.resources.support import Files, watched_inodes

pytestmark = pytest.mark.real_time

#: All that is done by name here. What is done to an open file meets a swap no sooner.
CALLS = ("open", "stat", "readlink", "mkdir", "rmdir", "unlink", "rename", "symlink")

X = {"data": "inside", "encoding": "utf-8"}
REQUESTS: list[tuple[str, list[str], dict[str, Any]]] = [
    ("read", ["d/a"], {}),
    ("read", ["d/e/f"], {}),
    ("list", ["d"], {}),
    ("list", ["d/e"], {}),
    ("resolve", ["d"], {}),
    ("resolve", ["d/a"], {}),
    ("request", ["d/a"], {"write": True}),
    ("watch", ["d"], {"recursive": True}),
    ("watch", ["d/a"], {}),
    ("write", ["d/a"], X),
    ("write", ["d/a"], {**X, "mode": "append"}),
    ("write", ["d/a"], {**X, "mode": "insert", "position": 2}),
    ("write", ["d/new"], {**X, "createOnly": True}),
    ("mkdir", ["d/m/n"], {}),
    ("delete", ["d/a"], {}),
    ("delete", ["d/e"], {"recursive": True}),
    ("delete", ["d"], {"recursive": True}),
    ("copy", ["d/a", "copied"], {}),
    ("copy", ["d", "copied"], {}),
    ("copy", ["ok", "d/a"], {}),
    ("copy", ["folder", "d/e"], {}),
    ("move", ["d/a", "moved"], {}),
    ("move", ["d", "moved"], {}),
    ("move", ["ok", "d/a"], {"failIfExists": False}),
    ("move", ["ok", "d/new"], {"failIfExists": True}),
    ("move", ["folder", "d/e"], {}),
]


class Swapper:
    """Swaps before the call of this number, and again `back` calls later."""

    def __init__(self, folder: Path, at: int, back: int | None) -> None:
        self.folder = folder
        self.moments = {at} if back is None else {at, at + back}
        self.calls = 0
        #: Calls for the folders above cannot tell one moment from the next.
        self.above = {b"/", *os.fsencode(folder).split(b"/")}
        self._rename = os.rename
        self._is_swapped = False

    def count(self, name: object) -> None:
        if name in self.above:
            return
        if self.calls in self.moments:
            self._swap()
        self.calls += 1

    def _swap(self) -> None:
        here, away, link = (self.folder / name for name in ("d", ".away", ".link"))
        pairs = [(here, away), (link, here)]
        if self._is_swapped:
            pairs = [(here, link), (away, here)]
        try:
            for old, new in pairs:
                self._rename(old, new)
        except FileNotFoundError:  # the request has moved or deleted it
            self.moments = set()
        self._is_swapped = not self._is_swapped


@contextmanager
def swapping(swapper: Swapper) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        for name in CALLS:
            patch.setattr(os, name, counted(getattr(os, name), swapper))
        yield


def counted(call: Any, swapper: Swapper) -> Any:
    def counting(*args: Any, **more: Any) -> Any:
        swapper.count(args[0])
        return call(*args, **more)

    return counting


def lay_out(top: Path, word: str) -> None:
    """What is inside says so in its text, and so does what is outside."""
    (top / "e").mkdir(parents=True)
    (top / "a").write_text(word)
    (top / "e/f").write_text(word)


def lay_out_inside(folder: Path, outside: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    lay_out(folder / "d", "inside")
    (folder / "ok").write_text("inside")
    (folder / "folder").mkdir()
    (folder / "folder/g").write_text("inside")
    (folder / ".link").symlink_to(outside)


def whole(folder: Path) -> dict[str, tuple[int, bytes]]:
    """Every name with its inode and content."""
    return {
        str(path.relative_to(folder)): (
            path.lstat().st_ino,
            path.read_bytes() if path.is_file() and not path.is_symlink() else b"",
        )
        for path in folder.rglob("*")
    }


@pytest.mark.parametrize(
    ("do", "names", "more"), REQUESTS, ids=[f"{do} {' '.join(names)}" for do, names, _ in REQUESTS]
)
async def test_at_no_moment_does_a_swap_let_a_request_out(
    tmp_path: Path, do: str, names: list[str], more: dict[str, Any]
) -> None:
    inside, outside = tmp_path / "w", tmp_path / "outside"
    lay_out(outside, "what is outside")
    (outside / "only-outside").touch()
    before = whole(outside)
    forbidden = {(outside / name).stat().st_ino for name in (".", "e")}
    files = Files(inside)
    swaps, codes = 0, set()
    for back in (None, 1, 3):
        at = 0
        while True:
            lay_out_inside(inside, outside)
            swapper = Swapper(inside, at, back)
            got: Any = None
            with swapping(swapper):
                try:
                    got = await files.ask(do, *names, **more)
                except ProtocolError as error:
                    codes.add(error.code)
            told = (do, names, at, back, got)
            assert "outside" not in str(got), told
            assert not isinstance(got, dict) or got.get("size") != len("what is outside"), told
            assert whole(outside) == before, told
            contents = [content for _, content in whole(inside).values()]
            assert not [each for each in contents if b"outside" in each], told
            assert do != "watch" or not watched_inodes() & forbidden, told
            if at >= swapper.calls:
                break
            at += 1
            swaps += 1
    assert swaps >= 3
    assert codes <= {-32008, -32009, -32010, -32602}
