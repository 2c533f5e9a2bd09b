"""A collector on loopback: takes what is posted to it, or answers as the test says."""

from __future__ import annotations

import http.server
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


class Loopback:
    """What it got, as (path, headers, body), and the answers that are still to be given."""

    def __init__(self, port: int) -> None:
        self.url = f"http://127.0.0.1:{port}"
        self.got: list[tuple[str, dict[str, str], bytes]] = []
        #: Answers to the next requests, in their order; then each is taken.
        self.answers: list[int] = []
        #: Set while requests are answered at all.
        self.open = threading.Event()
        self.open.set()
        self.news = threading.Condition()

    def wait(self, count: int) -> None:
        """Until so many requests have come."""
        with self.news:
            assert self.news.wait_for(lambda: len(self.got) >= count, timeout=60), self.got


@contextmanager
def loopback() -> Iterator[Loopback]:
    """One that listens for the length of the block."""

    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            made.open.wait(60)
            with made.news:
                made.got.append((self.path, dict(self.headers), body))
                status = made.answers.pop(0) if made.answers else 200
                made.news.notify_all()
            self.send_response(status)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: Any) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        made = Loopback(server.server_address[1])
        thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        try:
            yield made
        finally:
            made.open.set()
            server.shutdown()
            thread.join()
