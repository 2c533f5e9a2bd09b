from __future__ import annotations

import json
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import trio

from ahpd.protocol.frame import Frame
from ahpd.protocol.jsontext import dumps
from ahpd.transports import tap
from ahpd.transports.memory import memory_pair
from ahpd.transports.tap import Capture, capturing
from tests.transports import contract
from tests.transports.contract import Pair

LIMIT = 1 << 20


def written(path: Path) -> list[Any]:
    return [json.loads(line) for line in path.read_bytes().splitlines()]


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
        capture.passed(way, 1, dumps(sent))
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
        capture.passed("c2h", 1, text)
    assert [line["frame"] for line in written(tmp_path / "wire")] == [kept]


def test_what_a_slow_disk_has_no_room_for_is_counted(tmp_path: Path) -> None:
    read_fd, write_fd = os.pipe()
    capture = Capture(write_fd, limit=500_000)
    text = b'"' + b"x" * 100_000 + b'"'
    for _ in range(20):
        capture.passed("h2c", 1, text)
    received = b""
    while received.count(b"\n") < 5:
        received += os.read(read_fd, 1 << 20)
        if received.count(b"\n") == 4:  # all that was let in: there is room again
            capture.passed("h2c", 1, b"1")
    capture.close()
    os.close(read_fd)
    lines = [json.loads(line) for line in received.splitlines()]
    assert [line.get("lost") for line in lines] == [None, None, None, None, 16]


def test_a_disk_that_fails_ends_the_capture_and_nothing_else(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    def full(fd: int, data: bytes) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(tap, "_write", full)
    with capturing(tmp_path / "wire", limit=LIMIT) as capture:
        for _ in range(3):
            capture.passed("h2c", 1, b"1")
    assert [record.getMessage() for record in caplog.records] == [
        "the capture ends here: No space left on device"
    ]
