from __future__ import annotations

import os
from pathlib import Path

import pytest

from ahpd.transports.rotated import RotatedFile


def contents(folder: Path) -> dict[str, bytes]:
    return {each.name: each.read_bytes() for each in sorted(folder.iterdir())}


def test_a_long_file_is_moved_aside_and_the_oldest_go(tmp_path: Path) -> None:
    file = RotatedFile(tmp_path / "f", max_bytes=4, keep=2)
    for word in (b"aa", b"bb", b"cc", b"long one", b"dd", b"ee"):
        file.write(word)
    file.close()
    assert contents(tmp_path) == {"f": b"ddee", "f.1": b"long one", "f.2": b"cc"}
    assert {each.stat().st_mode & 0o777 for each in tmp_path.iterdir()} == {0o600}


def test_without_any_kept_it_is_begun_anew(tmp_path: Path) -> None:
    file = RotatedFile(tmp_path / "f", max_bytes=4, keep=0)
    for word in (b"aaa", b"bbb"):
        file.write(word)
    file.close()
    assert contents(tmp_path) == {"f": b"bbb"}


def test_it_goes_on_with_what_is_there_or_begins_afresh(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(b"old")
    (tmp_path / "f.1").write_bytes(b"older")
    (tmp_path / "f").chmod(0o644)
    file = RotatedFile(tmp_path / "f", max_bytes=4, keep=1)
    file.write(b"x")
    file.write(b"y")
    file.close()
    assert contents(tmp_path) == {"f": b"y", "f.1": b"oldx"}
    file = RotatedFile(tmp_path / "f", max_bytes=4, keep=1, fresh=True)
    file.close()
    assert contents(tmp_path) == {"f": b""}


def test_other_descriptors_follow_and_what_they_wrote_counts(tmp_path: Path) -> None:
    fd = os.open(tmp_path / "f", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    file = RotatedFile(tmp_path / "f", max_bytes=4, keep=1, descriptors=(fd,))
    file.write(b"ab")
    file.write(b"cde")
    os.write(fd, b"!")
    file.close()
    os.close(fd)
    assert contents(tmp_path) == {"f": b"cde!", "f.1": b"ab"}


def test_a_file_that_cannot_be_moved_aside_grows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(self: Path, target: Path) -> Path:
        raise PermissionError(13, "Permission denied")

    file = RotatedFile(tmp_path / "f", max_bytes=4, keep=1)
    file.write(b"abc")
    monkeypatch.setattr(Path, "replace", refuse)
    file.write(b"def")
    file.close()
    assert contents(tmp_path) == {"f": b"abcdef"}
