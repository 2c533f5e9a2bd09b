"""``ahpd bench``: it starts a host, measures, and says what it found."""

from __future__ import annotations

import json
import socket
from pathlib import Path

import pytest

from ahpd.bench import measures, readers
from ahpd.bench.processes import BenchFailed
from ahpd.bench.readers import MARK, verified
from ahpd.bench.report import Aim, Row, verdict
from ahpd.bench.sockets import WebSocket, texts
from ahpd.cli import bench, exits
from ahpd.cli.group import run
from ahpd.protocol.frame import Frame
from ahpd.protocol.jsontext import dumps
from ahpd.protocol.model import JSON
from ahpd.transports.framing import CLOSE_OPCODE, PING, writes


@pytest.mark.real_time
def test_the_start_is_measured(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "bench.json"
    code = run(["bench", "start", "--quick", "--json", str(file)])
    told = json.loads(file.read_text())
    accept, _ = told["rows"]
    assert accept["measure"] == "start"
    assert accept["median"] > accept["baselineMedian"] > 0
    assert len(accept["runs"]) == len(accept["baselineRuns"]) == 2
    [aim] = accept["aims"]
    assert code == (exits.OK if aim["met"] else exits.FAULTS)
    shown = capsys.readouterr().out
    assert "first accept" in shown
    assert ("met" if aim["met"] else "MISSED") in shown


@pytest.mark.real_time
def test_a_stream_is_measured_and_verified(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["bench", "single", "--quick"]) in (exits.OK, exits.FAULTS)
    assert "delivered to 1 subscriber" in capsys.readouterr().out


def test_a_reader_shows_that_it_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    """It answers no ping, and whoever is silent beside that is given up after a while."""
    monkeypatch.setattr(readers, "_SIGN", 0.0)
    here, there = socket.socketpair()
    peer = WebSocket.__new__(WebSocket)
    peer.socket, peer.received = here, bytearray()
    with here, there:
        there.sendall(MARK)
        counter = readers._Counter({"times": False, "count": 1, "before_time": ""})
        counter.read([readers._Reading(peer)])
        assert there.recv(100) == bytes((0x8A, 0x80, 0, 0, 0, 0))  # a masked pong that says nothing


def test_something_has_to_be_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["bench"]) == exits.USAGE
    assert "fanout" in capsys.readouterr().err


def test_the_names_are_those_of_the_measures() -> None:
    assert list(bench.NAMES) == [*measures.MEASURES, measures.CURVE, measures.SOAK]


@pytest.mark.parametrize(
    ("aim", "met"),
    [
        (Aim(10), True),
        (Aim(11), False),
        (Aim(10, at_most=True), True),
        (Aim(9, at_most=True), False),
        (Aim(5, times=True), True),
        (Aim(5.1, times=True), False),
        (Aim(4.9, at_most=True, times=True), False),
    ],
)
def test_an_aim_is_a_bound(aim: Aim, *, met: bool) -> None:
    row = Row("speed", "/s", [1, 10, 100], "naive", [1, 2, 10], [aim])
    assert row.met is met
    assert ("MISSED" in verdict({"it": [row]})) is not met


# --- what a reader makes of a stream --------------------------------------------------------------


def stream(*frames: JSON) -> bytes:
    return b"".join(writes([Frame(dumps(each)) for each in frames], 1 << 20))


def envelope(seq: int, kind: str, **action: JSON) -> JSON:
    said: JSON = {"type": kind, **action}
    return {"method": "action", "params": {"serverSeq": seq, "action": said}}


BEGUN = envelope(1, "chat/responsePart", part={"content": MARK.decode()})
DELTA = envelope(2, "chat/delta", content=MARK.decode() + "b" * 70_000)


def test_texts_are_found_among_other_frames() -> None:
    one, two = (stream(each) for each in (BEGUN, DELTA))
    data = one + PING + two + bytes((CLOSE_OPCODE, 0)) + one[:-1]
    assert [len(each) for each in texts(data)] == [len(one) - 2, len(two) - 10]


def test_a_stream_is_taken_apart() -> None:
    sample = verified(stream(BEGUN, {"id": 1, "result": None}, DELTA), 2)
    assert (sample.messages, sample.size) == (2, 2 * len(MARK) + 70_000)
    assert (sample.first_seq, sample.last_seq) == (1, 2)


@pytest.mark.parametrize("frames", [(DELTA, BEGUN), (DELTA, DELTA), (BEGUN,)])
def test_what_is_not_in_order_or_not_all_is_refused(frames: tuple[JSON, ...]) -> None:
    with pytest.raises(BenchFailed):
        verified(stream(*frames), 2)
