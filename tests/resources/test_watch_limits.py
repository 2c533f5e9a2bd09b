"""The kernel's own limits on watches, lowered for a real host in a user namespace of its own."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.daemon.support import INITIALIZE, PATIENCE, call, environment, lines, until
from tests.wire import Connection, Wiretap

pytestmark = [
    pytest.mark.real_time,
    pytest.mark.skipif("sys.platform != 'linux'", reason="inotify"),
]


class Limited:
    """A host over stdio whose user may have few watches; `set` changes how few."""

    def __init__(self, process: subprocess.Popen[bytes], wire: Connection) -> None:
        self.process = process
        self._wire = wire
        self._number = 0
        #: What the host said between answers.
        self.told: list[Any] = []

    def set(self, name: str, value: int) -> None:
        file = f"/proc/sys/user/max_inotify_{name}"
        inside = ["nsenter", "--user", "--preserve-credentials", "-t", str(self.process.pid)]
        subprocess.run([*inside, "sh", "-c", f"echo {value} > {file}"], check=True, timeout=20)

    def ask(self, method: str, **params: Any) -> Any:
        """The whole answer to a request."""
        self._number += 1
        message = call(self._number, method, {"channel": "ahp-root://", **params})
        self._wire.sent(message)
        assert self.process.stdin is not None
        self.process.stdin.write(lines([message]))
        self.process.stdin.flush()
        while True:
            got = self.hear()
            if got.get("id") == self._number:
                return got

    def hear(self) -> Any:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        self._wire.received(line)
        got = json.loads(line)
        self.told.append(got)
        return got

    def until_told(self, *uris: str) -> None:
        """Wait until all of these have changed."""
        missing = set(uris)
        while missing:
            got = self.hear()
            if got.get("method") == "action":
                items = got["params"]["action"].get("changes", {}).get("items", ())
                missing -= {item["uri"] for item in items}

    def marks(self) -> int:
        """How many folders the kernel watches for it."""
        folder = Path(f"/proc/{self.process.pid}/fdinfo")
        texts = []
        for name in os.listdir(folder):
            try:
                texts.append((folder / name).read_text())
            except OSError:  # closed by now
                continue
        return sum(text.count("inotify wd:") for text in texts)


@contextmanager
def limited(folder: Path, wire: Connection, *, watches: int, instances: int) -> Iterator[Limited]:
    """A host that serves `folder`. Skips where no user namespace may be made."""
    limits = (("watches", watches), ("instances", instances))
    lower = [f"echo {value} > /proc/sys/user/max_inotify_{name}" for name, value in limits]
    try:
        may = subprocess.run(
            ["unshare", "-Ur", "sh", "-c", " && ".join(lower)], capture_output=True, timeout=20
        )
        subprocess.run(["nsenter", "--version"], check=True, capture_output=True, timeout=20)
    except FileNotFoundError as missing:
        pytest.skip(f"there is no {missing.filename}")
    if may.returncode:
        pytest.skip(f"no limits of one's own here: {may.stderr.decode().strip()}")
    lowering = " && ".join([*lower, 'exec "$@"'])
    with host_by(["unshare", "-Ur", "sh", "-c", lowering, "sh"], folder, wire) as host:
        yield host


@contextmanager
def host_by(start: list[str], folder: Path, wire: Connection) -> Iterator[Limited]:
    """A host that serves `folder`, and that is started by this command."""
    serve = [sys.executable, "-m", "ahpd", "--stdio", "--path", str(folder)]
    process = subprocess.Popen(
        [*start, *serve, "--log-level", "warning"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment(folder.parent),
    )
    deadline = threading.Timer(PATIENCE, process.kill)  # whoever waits for a line then gets none
    deadline.start()
    with process:
        try:
            host = Limited(process, wire)
            assert "result" in host.ask("initialize", **INITIALIZE)
            yield host
        finally:
            deadline.cancel()
            process.kill()


def by_a_person() -> list[str]:
    """What starts a host that may not read everything."""
    if os.geteuid():
        return ["env"]
    if shutil.which("setpriv") is None:
        pytest.skip("there is no setpriv")
    return ["setpriv", "--bounding-set", "-dac_override,-dac_read_search"]


def test_the_kernels_limits_are_told_and_leave_nothing_behind(
    tmp_path: Path, wire: Wiretap
) -> None:
    root = tmp_path / "w"
    for number in range(40):
        (root / str(number)).mkdir(parents=True)
    tree = {"uri": root.as_uri(), "recursive": True}
    above = len(root.parts) - 1  # the folders above a target are watched too
    with limited(root, wire.connection(), watches=above + 20, instances=0) as host:
        for _ in range(2):
            error = host.ask("createResourceWatch", **tree)["error"]
            assert error["code"] == -32603
            assert root.as_uri() in error["message"]
            assert "fs.inotify.max_user_instances" in error["message"]
        host.set("instances", 5)
        for _ in range(3):
            error = host.ask("createResourceWatch", **tree)["error"]
            assert error["code"] == -32603
            assert root.as_uri() in error["message"]
            assert "fs.inotify.max_user_watches" in error["message"]
            until(lambda: not host.marks())
        # What was refused has used nothing up.
        channel = host.ask("createResourceWatch", uri=root.as_uri())["result"]["channel"]
        host.ask("subscribe", channel=channel)
        (root / "a").touch()
        host.until_told(f"{root.as_uri()}/a")


def test_folders_that_come_when_there_is_no_room_are_told_all_the_same(
    tmp_path: Path, wire: Wiretap
) -> None:
    root = tmp_path / "w"
    root.mkdir()
    above = len(root.parts) - 1
    with limited(root, wire.connection(), watches=above + 6, instances=5) as host:
        asked = host.ask("createResourceWatch", uri=root.as_uri(), recursive=True)
        host.ask("subscribe", channel=asked["result"]["channel"])
        names = [f"{root.as_uri()}/{number}" for number in range(20)]
        for number in range(20):
            (root / str(number)).mkdir()
        host.until_told(*names)
        assert host.marks() <= above + 6
        for number in range(20):
            (root / str(number) / "f").touch()
        host.until_told(*(f"{name}/f" for name in names))
        # Room comes back: then the kernel is asked again.
        host.set("watches", 1000)
        until(lambda: host.marks() == above + 21)
        host.process.stdin.close()  # type: ignore[union-attr]
        assert host.process.stderr is not None
        said = host.process.stderr.read().decode()
        assert said.count("max_user_watches") == 1, said
        assert "looked at every 2 s" in said


def test_a_folder_above_that_may_not_be_read_does_not_keep_a_target_from_being_watched(
    tmp_path: Path, wire: Wiretap
) -> None:
    above = tmp_path / "above"
    root = above / "w"
    root.mkdir(parents=True)
    above.chmod(0o311)
    try:
        with host_by(by_a_person(), root, wire.connection()) as host:
            asked = host.ask("createResourceWatch", uri=root.as_uri(), recursive=True)
            host.ask("subscribe", channel=asked["result"]["channel"])
            (root / "a").touch()
            host.until_told(f"{root.as_uri()}/a")
            root.rename(above / "away")
            host.until_told(root.as_uri())
            (above / "away").rename(root)
            host.until_told(root.as_uri(), f"{root.as_uri()}/a")
    finally:
        above.chmod(0o700)


def test_folders_that_may_not_be_looked_into_are_passed_over(tmp_path: Path, wire: Wiretap) -> None:
    root = tmp_path / "w"
    listed = root / "listed"  # and what is in it may not be looked at
    for folder in (listed / "in", root / "closed", root / "open"):
        folder.mkdir(parents=True)
    listed.chmod(0o400)
    (root / "closed").chmod(0)
    try:
        with host_by(by_a_person(), root, wire.connection()) as host:
            asked = host.ask("createResourceWatch", uri=root.as_uri(), recursive=True)
            host.ask("subscribe", channel=asked["result"]["channel"])
            (root / "open/a").touch()
            host.until_told(f"{root.as_uri()}/open/a")
            listed.chmod(0o700)
            (listed / "b").touch()
            host.until_told(f"{root.as_uri()}/listed/b")
            (listed / "b").write_text("more")
            listed.chmod(0o400)
            (root / "open/c").touch()
            host.until_told(f"{root.as_uri()}/open/c")
            listed.chmod(0o700)
            (root / "closed").chmod(0o700)
            (listed / "d").touch()
            (root / "closed/e").touch()
            host.until_told(f"{root.as_uri()}/listed/d", f"{root.as_uri()}/closed/e")
            host.process.stdin.close()  # type: ignore[union-attr]
            assert host.process.stderr is not None
            assert host.process.stderr.read() == b"", "nothing failed over it"
    finally:
        listed.chmod(0o700)
        (root / "closed").chmod(0o700)
