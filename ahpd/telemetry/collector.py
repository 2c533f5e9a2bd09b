"""`Collector`: sends export requests to an OpenTelemetry collector, by OTLP over HTTP.

A thread of its own does it, so that a collector that is slow or away holds up nobody. What waits
for it is bounded in bytes: requests beyond are left out, and how many is logged when it goes on.
What fails is tried again while that makes sense (as OTLP has it: 429, 502, 503 and 504, and what
never got there), and left out then. A failure is logged once, until something is taken again.
"""

from __future__ import annotations

import http.client
import logging
import queue
import socket
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from urllib.parse import urlsplit

from msgspec import Struct

from ahpd.telemetry.port import Signal

_log = logging.getLogger("ahpd.telemetry")

#: Seconds that a request may take, its answer included.
REQUEST_WITHIN = 10.0
#: Bytes of an answer that are read; nobody needs them but for the next request on the connection.
ANSWER_BYTES = 64 << 10
#: Times that a request is sent at most, and seconds before the second; each time twice as many.
TRIES, RETRY_AFTER = 3, 1.0
#: Seconds that the last requests may take.
CLOSE_WITHIN = 3.0
#: Answers after which a request may be sent again.
_AGAIN = frozenset((429, 502, 503, 504))


class _Request(Struct, frozen=True):
    signal: Signal
    body: bytes


class NotTaken(Exception):
    """The collector did not take it; `again` says whether it may later."""

    def __init__(self, text: str, *, again: bool) -> None:
        super().__init__(text)
        self.again = again


class Collector:
    """See the module. `endpoint` is the collector's base, such as ``http://127.0.0.1:4318``.

    `limit` bounds the bytes that wait. `headers` go with each request; they may hold secrets. It
    must be closed.
    """

    def __init__(self, endpoint: str, headers: Mapping[str, str], *, limit: int) -> None:
        self._parts = urlsplit(endpoint)
        self._headers = {"Content-Type": "application/x-protobuf", **headers}
        self._limit = limit
        self._queue: queue.SimpleQueue[_Request | None] = queue.SimpleQueue()
        #: Bytes put in and bytes done with: each is counted by one thread alone.
        self._put = self._done = 0
        self._lost = 0
        self._closing = threading.Event()
        self._connection: http.client.HTTPConnection | None = None
        self._failing: str | None = None
        self._thread = threading.Thread(target=self._work, name="ahpd-telemetry", daemon=True)
        self._thread.start()

    def put(self, signal: Signal, body: bytes) -> None:
        """See `Exporter.put`."""
        if self._put - self._done + len(body) > self._limit:
            self._lost += 1
            return
        self._put += len(body)
        self._queue.put(_Request(signal, body))

    def close(self) -> None:
        """Send what waits, `CLOSE_WITHIN` seconds at most. Blocks."""
        self._closing.set()
        self._queue.put(None)
        self._thread.join(CLOSE_WITHIN)

    # ---- the sending thread --------------------------------------------------------------------

    def _work(self) -> None:
        while (request := self._queue.get()) is not None:
            self._deliver(request)
            self._done += len(request.body)
        self._hang_up()

    def _deliver(self, request: _Request) -> None:
        wait = RETRY_AFTER
        for left in reversed(range(TRIES)):
            try:
                self._send(request)
            except NotTaken as error:
                self._say_failed(str(error))
                if not error.again or not left or self._closing.wait(wait):
                    return
                wait *= 2
            else:
                self._say_works()
                return

    def _send(self, request: _Request) -> None:
        path = f"{self._parts.path.rstrip('/')}/v1/{request.signal}"
        try:
            connection = self._connected()
            with _cut_off(connection.sock):
                connection.request("POST", path, request.body, self._headers)
                response = connection.getresponse()
                response.read(ANSWER_BYTES)
            if not response.isclosed():
                self._hang_up()
        except (OSError, http.client.HTTPException) as error:
            self._hang_up()
            raise NotTaken(f"{type(error).__name__}: {error}", again=True) from None
        except ValueError:  # its words may show a header
            self._hang_up()
            raise NotTaken("the address or a header cannot be sent", again=False) from None
        if response.status >= 300:
            text = f"it answers {response.status} {response.reason} to {path}"
            raise NotTaken(text, again=response.status in _AGAIN)

    def _connected(self) -> http.client.HTTPConnection:
        if self._connection is None:
            host, port = self._parts.hostname or "localhost", self._parts.port
            if self._parts.scheme == "https":
                self._connection = http.client.HTTPSConnection(host, port, timeout=REQUEST_WITHIN)
            else:
                self._connection = http.client.HTTPConnection(host, port, timeout=REQUEST_WITHIN)
        if self._connection.sock is None:
            self._connection.connect()
        return self._connection

    def _hang_up(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _say_failed(self, why: str) -> None:
        if self._failing is None:
            where = self._parts.netloc.rpartition("@")[2]
            _log.warning("the collector at %s takes no telemetry: %s", where, why)
        self._failing = why

    def _say_works(self) -> None:
        if self._failing is not None:
            self._failing = None
            _log.warning("the collector takes telemetry again")
        if self._lost:
            lost, self._lost = self._lost, 0
            _log.warning("%d exports were left out: too many waited for the collector", lost)


@contextmanager
def _cut_off(sock: socket.socket) -> Iterator[None]:
    """End the connection when the block takes longer than a request may.

    The socket's own timeout is for each read alone: an answer that trickles would last for ever.
    """

    def cut() -> None:
        with suppress(OSError):  # it is closed already
            sock.shutdown(socket.SHUT_RDWR)

    timer = threading.Timer(REQUEST_WITHIN, cut)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
