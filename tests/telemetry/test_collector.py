"""A real HTTP server on loopback as the collector: it takes, refuses, stalls, and goes away."""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from collections.abc import Iterator

import pytest

from ahpd.telemetry import collector
from ahpd.telemetry.collector import Collector
from tests.telemetry.loopback import loopback

pytestmark = pytest.mark.real_time


def said(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.name == "ahpd.telemetry"]


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(collector, "RETRY_AFTER", 0.01)


def test_requests_go_where_otlp_has_them() -> None:
    with loopback() as there:
        sender = Collector(there.url + "/base/", {"X-Key": "k"}, limit=1 << 20)
        sender.put("logs", b"1")
        sender.put("traces", b"2")
        sender.put("metrics", b"3")
        sender.close()
        assert [(path, body) for path, _, body in there.got] == [
            ("/base/v1/logs", b"1"),
            ("/base/v1/traces", b"2"),
            ("/base/v1/metrics", b"3"),
        ]
        headers = there.got[0][1]
        assert (headers["X-Key"], headers["Content-Type"]) == ("k", "application/x-protobuf")


def test_what_may_be_taken_later_is_sent_again(caplog: pytest.LogCaptureFixture) -> None:
    with loopback() as there:
        there.answers = [503, 429, 200, 400, 200]
        sender = Collector(there.url, {}, limit=1 << 20)
        for body in (b"1", b"2", b"3"):
            sender.put("logs", body)
        there.wait(5)
        sender.close()
        assert [body for _, _, body in there.got] == [b"1", b"1", b"1", b"2", b"3"]
    failed = f"the collector at {there.url.removeprefix('http://')} takes no telemetry: it answers"
    assert said(caplog) == [
        f"{failed} 503 Service Unavailable to /v1/logs",
        "the collector takes telemetry again",
        f"{failed} 400 Bad Request to /v1/logs",
        "the collector takes telemetry again",
    ]


def test_one_that_is_away_is_told_of_once(caplog: pytest.LogCaptureFixture) -> None:
    with loopback() as there:
        url = there.url
    sender = Collector(url, {}, limit=1 << 20)
    for _ in range(5):
        sender.put("logs", b"x")
    while sender._done < 5:
        time.sleep(0.01)
    sender.close()
    (sentence,) = said(caplog)
    assert "takes no telemetry: ConnectionRefusedError: " in sentence


def test_what_is_too_much_is_left_out_and_counted(caplog: pytest.LogCaptureFixture) -> None:
    with loopback() as there:
        there.open.clear()
        sender = Collector(there.url, {}, limit=250)
        for number in range(5):
            sender.put("logs", b"%d" % number * 100)
        there.open.set()
        there.wait(2)
        sender.put("logs", b"last")
        there.wait(3)
        sender.close()
        assert [body[:1] for _, _, body in there.got] == [b"0", b"1", b"l"]
    assert said(caplog) == ["3 exports were left out: too many waited for the collector"]


def test_the_end_does_not_wait_for_one_that_stalls(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(collector, "CLOSE_WITHIN", 0.05)
    with loopback() as there:
        there.open.clear()
        sender = Collector(there.url, {}, limit=1 << 20)
        sender.put("logs", b"x")
        sender.close()
        assert there.got == []


@contextlib.contextmanager
def answering(head: bytes, piece: bytes, every: float) -> Iterator[str]:
    """A collector whose answer begins with `head`, and never ends."""
    over = threading.Event()

    def answer(there: socket.socket) -> None:
        with there, contextlib.suppress(OSError):
            there.recv(1 << 16)
            there.sendall(head)
            while not over.wait(every):
                there.sendall(piece)

    def accept() -> None:
        with contextlib.suppress(OSError):
            while not over.is_set():
                threading.Thread(target=answer, args=(listener.accept()[0],), daemon=True).start()

    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=accept, daemon=True).start()
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            over.set()
            listener.shutdown(socket.SHUT_RDWR)


@pytest.mark.parametrize(
    ("head", "told"),
    [
        (b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n", []),  # it was taken
        (b"HTTP/1.1 200 OK\r\nX: ", []),
        (b"HTT", ["BadStatusLine"]),
    ],
)
def test_an_answer_that_trickles_is_cut_off(
    head: bytes,
    told: list[str],
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(collector, "REQUEST_WITHIN", 0.2)
    with answering(head, b"x", 0.02) as url:
        sender = Collector(url, {}, limit=1 << 20)
        sender.put("logs", b"1")
        sender.put("logs", b"2")
        done_with(sender, 2)
        sender.close()
    assert [each.split(": ")[1] for each in said(caplog)] == told


def test_an_answer_without_end_is_not_read_to_its_end(caplog: pytest.LogCaptureFixture) -> None:
    with answering(b"HTTP/1.1 200 OK\r\n\r\n", b"x" * 100_000, 0.001) as url:
        sender = Collector(url, {}, limit=1 << 20)
        sender.put("logs", b"1")
        sender.put("logs", b"2")
        done_with(sender, 2)
        sender.close()
    assert said(caplog) == []


def test_a_header_that_cannot_be_sent_ends_nothing_and_is_not_shown(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with loopback() as there:
        sender = Collector(there.url, {"X-Key": "secret\nkey"}, limit=1 << 20)
        sender.put("logs", b"1")
        sender.put("logs", b"2")
        done_with(sender, 2)
        sender.close()
    (sentence,) = said(caplog)
    assert "takes no telemetry: the address or a header cannot be sent" in sentence


def done_with(sender: Collector, size: int) -> None:
    """Until so many bytes have been sent or left out."""
    until = time.monotonic() + 60
    while sender._done < size:
        assert time.monotonic() < until
        time.sleep(0.01)
