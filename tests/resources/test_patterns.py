"""Patterns of names: what they mean, and that no pattern takes for ever on any name."""

from __future__ import annotations

import os
import random
import re
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

import pytest
import trio

from ahpd.resources.globs import Globs
from ahpd.resources.ignoring import Rules, rules_in
from ahpd.resources.index import Index

SEED = int(os.environ.get("AHPD_TEST_SEED", random.SystemRandom().randrange(1 << 32)))
#: A name on which going back and trying another way has more ways than there is time.
LONG = "a" * 200
#: What gitignore patterns are made of at random.
PARTS = (
    "a", "b", "/", "*", "**", "/**/", "**/", "/**", "?", "[ab]", "[!a]", "[^b]", "[]a]", "[a-b]",
    "[b-a]", "[a-]", "[\\]a]", "[[:alpha:]]", "[[:foo:]]", "[", "\\", "\\a", "\\ ", "!", "#", " ",
    ".", "-", "//", "\t",
)  # fmt: skip


@contextmanager
def ends() -> Iterator[None]:
    """What runs in here by itself, and would never end, fails instead."""

    def fail(_: int, __: FrameType | None) -> None:
        raise TimeoutError("it does not end")

    before = signal.signal(signal.SIGALRM, fail)
    signal.alarm(20)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


@pytest.mark.parametrize(
    "glob", ["*a" * 20 + "b", "**/" * 200 + "x", "{*a,*aa}" * 20 + "b", "**a" * 20 + "b"]
)
def test_no_glob_takes_for_ever(glob: str) -> None:
    with ends():
        globs = Globs([glob], "/r")
        assert not globs.fit(LONG)
        assert not globs.fit("a/" * 100 + "a")


@pytest.mark.parametrize("pattern", ["*a" * 20 + "b", "**/a/" * 40 + "b", "a/**/" * 40 + "b"])
def test_no_ignored_pattern_takes_for_ever(pattern: str) -> None:
    with ends():
        rules = Rules([pattern])
        assert rules.verdict(LONG) is None
        assert rules.verdict("a/" * 100 + "a") is None


def test_no_letters_take_for_ever() -> None:
    with ends():
        index = Index([LONG.encode(), b"/".join([LONG.encode()] * 20), b"aab", b"x/" + b"a" * 29])
        assert index.search("a" * 31 + "b", 5) == []
        assert index.search("aab", 5) == [b"aab"]
        assert index.search("xaa", 5) == [b"x/" + b"a" * 29]


@pytest.mark.parametrize(
    ("glob", "fits", "does_not"),
    [
        ("*.py", ["a.py", ".py", "a.py/b"], ["d/a.py", "a.pyc"]),
        ("**/*.py", ["a.py", "d/e/a.py"], ["a.pyc", "d/e"]),
        ("src/**", ["src", "src/a/b"], ["srcs", "a/src"]),
        ("a/**/b", ["a/b", "a/x/y/b", "a/b/c"], ["ab", "a/xb"]),
        ("a**z", ["az", "a/b/z"], ["a/b"]),
        ("{a,b{c,d}}/?", ["a/x", "bc/x", "bd/y/z"], ["b/x", "bcd/x", "a/xy"]),
        ("{**/x,y}", ["x", "d/x", "y"], ["d/y"]),
        ("[!a-c]x", ["dx", "]x"], ["ax", "/x", "x"]),
        ("[]]", ["]"], ["[", "a"]),
        ("a[", ["a["], ["a"]),
        ("/r/a", ["a", "a/b"], ["b"]),
        ("a,b}", ["a,b}"], ["a", "b"]),
        ("", [], ["a"]),
    ],
)
def test_globs(glob: str, fits: list[str], does_not: list[str]) -> None:
    globs = Globs([glob], "/r")
    assert [path for path in [*fits, *does_not] if globs.fit(path)] == fits


def test_globs_are_bounded() -> None:
    with pytest.raises(ValueError, match="100000 characters together"):
        Globs(["a" * 1000] * 101, "/r")
    with pytest.raises(ValueError, match="not a glob: bad character range"):
        Globs(["[z-a]"], "/r")


async def test_patterns_mean_what_they_mean_to_git(tmp_path: Path) -> None:
    chance = random.Random(SEED)
    git = ["git", "-C", str(tmp_path)]
    await trio.run_process([*git, "init", "-q"])
    for _ in range(60):
        lines = ["".join(chance.choices(PARTS, k=chance.randint(1, 6))) for _ in range(3)]
        # git looks for what is before the first of these apart, and takes a-**/ for a-/**/.
        lines = [line for line in lines if not re.search(r"[^/]\*\*", line.lstrip("!"))]
        (tmp_path / ".gitignore").write_bytes(("\ufeff" + "\r\n".join([*lines, ""])).encode())
        names = {"/".join(_name(chance) for _ in range(chance.randint(1, 4))) for _ in range(40)}
        done = await trio.run_process(
            [*git, "check-ignore", "--no-index", "-z", "--stdin"],
            stdin="\0".join(names).encode(), capture_stdout=True, check=False,
        )  # fmt: skip
        folder = os.open(tmp_path, os.O_RDONLY)
        try:
            rules = rules_in(folder, [b".gitignore"])
        finally:
            os.close(folder)
        assert rules is not None
        ignored = {name for name in names if rules.verdict(name) is True}
        assert ignored == set(done.stdout.decode().split("\0")) - {""}, (SEED, lines)


def _name(chance: random.Random) -> str:
    return "a" + "".join(chance.choices("ab.-] ", k=chance.randint(0, 2)))
