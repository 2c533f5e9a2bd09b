from __future__ import annotations

import fcntl
import os
import threading
from pathlib import Path

import attrs
import pytest

from ahpd.daemon.errors import AlreadyRunning, StateError
from ahpd.daemon.state import Endpoint, StateFolder, read_json, write_private
from tests.daemon.support import mode

ENDPOINT = Endpoint("ws://x/?tkn=secret", "/s", os.getpid(), "1", "2031-01-01T00:00:00Z")


def test_the_folder_is_made_private_whatever_it_was(tmp_path: Path) -> None:
    folder = StateFolder(tmp_path / "a" / "b")
    folder.make()
    assert mode(folder.path) == 0o700
    folder.path.chmod(0o755)
    folder.make()
    assert mode(folder.path) == 0o700


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StateError, match="file/state: Not a directory"):
        StateFolder(tmp_path / "file" / "state").make()


def test_one_holds_it_at_a_time(tmp_path: Path) -> None:
    folder = StateFolder(tmp_path / "state")
    assert folder.holder() is None
    with folder.held():
        assert folder.holder() == os.getpid()
        with pytest.raises(AlreadyRunning) as refused, folder.held():
            pass
        assert refused.value.pid == os.getpid()
        assert folder.holder() == os.getpid()
    assert folder.holder() is None
    with folder.held():
        pass


def test_a_number_that_a_killed_daemon_left_does_not_matter(tmp_path: Path) -> None:
    folder = StateFolder(tmp_path / "state")
    folder.make()
    folder.lock.write_text("1\n")  # a process that lives, and is no daemon
    write_private(folder.endpoint, attrs.asdict(attrs.evolve(ENDPOINT, pid=1)))
    assert folder.holder() is None
    assert folder.read_endpoint() is None
    with folder.held():
        assert folder.read_endpoint() is None
        assert not folder.endpoint.exists()


def test_the_endpoint_counts_while_its_daemon_holds_the_folder(tmp_path: Path) -> None:
    folder = StateFolder(tmp_path / "state")
    with folder.held():
        assert folder.read_endpoint() is None
        write_private(folder.endpoint, attrs.asdict(ENDPOINT))
        assert folder.read_endpoint() == ENDPOINT
        for other in (attrs.evolve(ENDPOINT, pid=1), None):
            write_private(folder.endpoint, attrs.asdict(other) if other else {"pid": 1})
            assert folder.read_endpoint() is None
    assert folder.read_endpoint() is None
    assert "secret" not in repr(ENDPOINT)


def test_a_file_is_written_whole_and_private_or_not_at_all(tmp_path: Path) -> None:
    file = tmp_path / "file"
    write_private(file, {"a": 1})
    file.chmod(0o644)
    write_private(file, {"a": 2})
    assert (mode(file), read_json(file)) == (0o600, {"a": 2})
    with pytest.raises(TypeError):
        write_private(file, object())
    with pytest.raises(OSError, match="No such file"):
        write_private(tmp_path / "none" / "file", 1)
    assert (read_json(file), os.listdir(tmp_path)) == ({"a": 2}, ["file"])


def test_what_is_no_json_is_nothing(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("{")
    assert read_json(tmp_path / "file") is None
    assert read_json(tmp_path / "none") is None


@pytest.mark.parametrize("name", ["endpoint.json", "lock"])
def test_what_stands_in_the_way_is_named(tmp_path: Path, name: str) -> None:
    folder = StateFolder(tmp_path / "state")
    folder.make()
    (folder.path / name).mkdir()
    with pytest.raises(StateError, match="state: "), folder.held():
        pass


def test_whoever_asks_who_holds_it_does_not_keep_anybody_from_it(tmp_path: Path) -> None:
    folder = StateFolder(tmp_path / "state")
    folder.make()
    asked = os.open(folder.lock, os.O_RDWR | os.O_CREAT)
    fcntl.flock(asked, fcntl.LOCK_SH)
    done = threading.Timer(0.015, os.close, (asked,))
    done.start()
    with folder.held():
        assert folder.holder() == os.getpid()
    done.join()
