"""Every frame that a test produces goes through the frame checker: the fixture `wire`.

A test, or the harness it uses, hands each frame over as it passes::

    def test_something(wire: Wiretap) -> None:
        laptop = wire.connection("laptop")
        laptop.sent(client_frame)        # what the client sent
        laptop.received(host_frame)      # what the host sent

A frame may be a plain value or the text that travelled; either way it is judged as JSON text
would be, so a value that JSON does not have is a fault as well. The first fault fails the test
where it happens, and again at the end should the failure have been swallowed by a task. A client
that is meant to send nonsense says so: ``wire.connection("rogue", legal="h2c")`` judges the host's
frames alone.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ahpd.protocol.capture import Way, line_of
from ahpd.protocol.jsontext import dumps, loads
from ahpd.protocol.strict import FrameChecker

#: Environment variable that names a folder into which every test's capture is written.
KEEP = "AHPD_TEST_CAPTURES"


class Connection:
    """The frames of one connection, from its first on."""

    def __init__(self, name: str, tap: Wiretap, *, legal: Way | None) -> None:
        self.name = name
        self.frames: list[tuple[Way, Any]] = []
        self._tap = tap
        self._legal = legal
        self._checker = FrameChecker(whole=legal is None)

    def sent(self, frame: Any) -> None:
        """The client sent `frame`: a plain value, or its text."""
        self.passed("c2h", frame)

    def received(self, frame: Any) -> None:
        """The host sent `frame`."""
        self.passed("h2c", frame)

    def passed(self, way: Way, frame: Any) -> None:
        """A frame went `way`; fails the test when it is not legal."""
        frame = loads(frame if isinstance(frame, (bytes, str)) else dumps(frame))
        self.frames.append((way, frame))
        faults = self._checker.check(way, frame)
        if faults and self._legal in (None, way):
            told = "; ".join(f"{way} frame {fault}" for fault in faults)
            self._tap.faults.append(f"connection {self.name}: {told}: {frame!r:.2000}")
            pytest.fail(self._tap.faults[-1])


class Wiretap:
    """All connections of one test."""

    def __init__(self) -> None:
        self.connections: list[Connection] = []
        self.faults: list[str] = []

    def connection(self, name: str = "client", *, legal: Way | None = None) -> Connection:
        """A new connection; with `legal`, only the frames that go this way are judged."""
        made = Connection(name, self, legal=legal)
        self.connections.append(made)
        return made

    def write(self, folder: Path) -> list[Path]:
        """Write each connection's capture into `folder`, in the format of ``ahpd wire check``."""
        folder.mkdir(parents=True, exist_ok=True)
        files = []
        for number, connection in enumerate(self.connections, 1):
            file = folder / f"{number:02}-{connection.name}.jsonl"
            file.write_bytes(b"".join(line_of(way, frame) for way, frame in connection.frames))
            files.append(file)
        return files


@pytest.fixture
def wire(request: pytest.FixtureRequest) -> Iterator[Wiretap]:
    """A `Wiretap` for one test; see the module."""
    tap = Wiretap()
    yield tap
    keep = os.environ.get(KEEP)
    if keep:
        name = "".join(letter if letter.isalnum() else "-" for letter in request.node.nodeid)
        tap.write(Path(keep) / name[-120:])
    if tap.faults:
        pytest.fail("\n".join(tap.faults))
