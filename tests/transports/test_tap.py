from __future__ import annotations

import json
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
import trio

from ahpd.protocol.capture import parse_line
from ahpd.protocol.frame import Frame
from ahpd.protocol.jsontext import dumps
from ahpd.transports.memory import memory_pair
from ahpd.transports.redaction import Redactor
from ahpd.transports.rotated import RotatedFile
from ahpd.transports.tap import Capture, capturing
from tests.transports import contract
from tests.transports.contract import Pair

LIMIT = 1 << 20


def written(path: Path) -> list[Any]:
    """The lines, without when they were written."""
    lines = [json.loads(line) for line in path.read_bytes().splitlines()]
    for line in lines:
        assert datetime.fromisoformat(line.pop("at")).tzinfo is not None
    return lines


class Pipe:
    """A sink that is as slow as whoever reads it."""

    def __init__(self, fd: int) -> None:
        self._file = open(fd, "wb", buffering=0)  # noqa: SIM115 - closed below

    def write(self, data: bytes) -> None:
        while data:
            data = data[self._file.write(data) :]

    def close(self) -> None:
        self._file.close()


@contract.every_check
async def test_contract(check: contract.Check, tmp_path: Path) -> None:
    with capturing(tmp_path / "wire", limit=LIMIT) as capture:

        @asynccontextmanager
        async def pair() -> AsyncIterator[Pair]:
            far, near = memory_pair(capacity=64 * 1024)

            async def cut() -> None:
                await trio.lowlevel.checkpoint()
                far.cut()

            yield Pair(capture.tap(near), far, cut)

        await contract.run(check, pair)


async def test_every_frame_has_its_way_and_its_connection(tmp_path: Path) -> None:
    file = tmp_path / "wire"
    file.write_text("of an earlier run")
    file.chmod(0o644)
    with capturing(file, limit=LIMIT) as capture:
        for number in (1, 2):
            far, near = memory_pair()
            tapped = capture.tap(near)
            await far.send([Frame(b'{"asked":%d}' % number)])
            await tapped.receive()
            await tapped.send([Frame(b'{"said":1}'), Frame(b'{"said":2}')])
    assert file.stat().st_mode & 0o777 == 0o600
    assert written(file) == [
        {"dir": way, "conn": conn, "frame": frame}
        for conn in (1, 2)
        for way, frame in (("c2h", {"asked": conn}), ("h2c", {"said": 1}), ("h2c", {"said": 2}))
    ]


@pytest.mark.parametrize(
    ("sent", "kept"),
    [
        ({"token": "abc"}, {"token": "***"}),
        ({"accessToken": 'a"b\\c'}, {"accessToken": "***"}),
        ({"GITHUB_TOKEN": "abc"}, {"GITHUB_TOKEN": "***"}),
        ({"headers": {"Authorization": "Bearer abc"}}, {"headers": {"Authorization": "***"}}),
        ({"clientSecret": ""}, {"clientSecret": "***"}),
        ({"x": "Bearer abc.def and on"}, {"x": "Bearer *** and on"}),
        ({"x": 'go to "ws://h/?tkn=abc" now'}, {"x": 'go to "ws://h/?tkn=***" now'}),
        ({"x": "tkn%3Dabc&y"}, {"x": "tkn%3D***&y"}),
        ({"progressToken": "p1", "inputTokens": 3}, {"progressToken": "p1", "inputTokens": 3}),
        ({"token": 5, "tokens": "many"}, {"token": 5, "tokens": "many"}),
        ({"text": 'the "token": is'}, {"text": 'the "token": is'}),
    ],
)
@pytest.mark.parametrize("way", ["c2h", "h2c"])
def test_secrets_are_left_out(way: Any, sent: Any, kept: Any, tmp_path: Path) -> None:
    with capturing(tmp_path / "wire", limit=LIMIT) as capture:
        capture.passed(way, 1, "unix", dumps(sent))
    assert [line["frame"] for line in written(tmp_path / "wire")] == [kept]


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        (b"{oops", "{oops"),
        ("{oops \ud800", "{oops ?"),
        (b"\xff", "\ufffd"),
        (b'{\n "a": 1\r\n}', {"a": 1}),
        ('{"a": "\u2028"}', {"a": "\u2028"}),
    ],
)
def test_what_a_peer_sends_stays_one_line(text: Any, kept: Any, tmp_path: Path) -> None:
    with capturing(tmp_path / "wire", limit=LIMIT) as capture:
        capture.passed("c2h", 1, "unix", text)
    assert [line["frame"] for line in written(tmp_path / "wire")] == [kept]


def test_what_a_slow_disk_has_no_room_for_is_counted(tmp_path: Path) -> None:
    read_fd, write_fd = os.pipe()
    capture = Capture(Pipe(write_fd), limit=500_000)
    text = b'"' + b"x" * 100_000 + b'"'
    for _ in range(20):
        capture.passed("h2c", 1, "unix", text)
    received = b""
    while received.count(b"\n") < 5:
        received += os.read(read_fd, 1 << 20)
        if received.count(b"\n") == 4:  # all that was let in: there is room again
            capture.passed("h2c", 1, "unix", b"1")
    capture.close()
    os.close(read_fd)
    lines = [json.loads(line) for line in received.splitlines()]
    assert [line.get("lost") for line in lines] == [None, None, None, None, 16]


def test_a_disk_that_fails_ends_the_capture_and_nothing_else(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    def full(self: RotatedFile, data: bytes) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(RotatedFile, "write", full)
    with capturing(tmp_path / "wire", limit=LIMIT) as capture:
        for _ in range(3):
            capture.passed("h2c", 1, "unix", b"1")
    assert [record.getMessage() for record in caplog.records] == [
        "the capture ends here: No space left on device"
    ]


async def test_the_shape_of_other_hosts(tmp_path: Path) -> None:
    with capturing(tmp_path / "wire", limit=LIMIT, shape="ahplog") as capture:
        far, near = memory_pair()
        tapped = capture.tap(near)
        asked = {"jsonrpc": "2.0", "id": 1, "method": "ping", "params": {"token": "abc"}}
        for text in (dumps(asked), b"{}", b"{oops", b"[1]"):
            await far.send([Frame(text)])
            await tapped.receive()
        await tapped.send([Frame(b'{"said":1}')])
    texts = (tmp_path / "wire").read_bytes().splitlines()
    lines = [json.loads(text) for text in texts]
    about = [line.pop("_ahpLog") for line in lines]
    assert lines == [
        {**asked, "params": {"token": "***"}},
        {},
        {"_raw": "{oops"},
        {"_raw": "[1]"},
        {"said": 1},
    ]
    assert [each["dir"] for each in about] == ["c2s"] * 4 + ["s2c"]
    assert {each["connectionId"] for each in about} == {"1"}
    assert about[0]["byteLength"] == len(dumps(asked))
    assert about[0]["transport"] == "websocket"
    assert about[0]["ts"].endswith("Z")
    read = [parse_line(text) for text in texts]
    assert [each.way for each in read] == ["c2h"] * 4 + ["h2c"]
    assert [each.frame for each in read] == [*lines[:2], "{oops", "[1]", lines[4]]


def test_a_long_capture_is_moved_aside_between_two_lines(tmp_path: Path) -> None:
    file = tmp_path / "wire"
    (tmp_path / "wire.1").write_text("of an earlier run")
    redact = Redactor(["s3cr3t-value"])
    with capturing(file, limit=LIMIT, redact=redact, max_bytes=100_000, keep=2) as capture:
        for number in range(400):
            text = dumps({"number": number, "x": "s3cr3t-value" + "x" * 1000})
            capture.passed("h2c", 1, "unix", text)
    found = sorted(each.name for each in tmp_path.iterdir())
    assert found == ["wire", "wire.1", "wire.2"]
    assert all(each.stat().st_size <= 100_000 for each in tmp_path.iterdir())
    numbers = [
        line["frame"]["number"] for name in reversed(found) for line in written(tmp_path / name)
    ]
    assert numbers == list(range(400 - len(numbers), 400))
    assert b"s3cr3t" not in b"".join((tmp_path / name).read_bytes() for name in found)
