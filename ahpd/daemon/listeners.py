"""Listeners as children of the tree: how clients get in, and how everybody learns where.

They are started last and stopped first. One that fails is started again, on the port it had; one
that fails too often is parked, and the other ways in stay open.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import attrs

from actors.connection import serve_connection
from actors.host import Host
from ahpd.daemon.control import PrivateTransport
from ahpd.daemon.observing import Observer
from ahpd.daemon.running import Boot, Started, Wrap
from ahpd.daemon.state import Endpoint, read_json, write_private
from ahpd.transports import unix, websocket
from ahpd.transports.port import Transport
from ahpd.transports.upgrade import Admission
from supervisors import Actor


class _Refuser(Actor[None]):
    """A listener that may find, when the host starts, that there is nothing to serve on."""

    boot: Boot


def _refuse(listener: _Refuser, reason: str) -> bool:
    """When the host is just starting: stop all of it for this reason, without a crash.

    False when it has been up already: then the listener fails, and is started again.
    """
    if listener.boot.up:
        return False
    listener.boot.refusal = listener.boot.refusal or reason
    listener.system.stop(reason)
    return True


@attrs.define(eq=False)
class Port:
    """Where the WebSocket listener is. `port` is 0 until it was given one, and then stays."""

    host: str
    port: int
    admission: Admission
    message_bytes: int


class WebSocketListener(_Refuser):
    """Takes WebSocket connections."""

    kind = "listener"

    def __init__(self, host: Host, port: Port, wrap: Wrap, boot: Boot) -> None:
        self._host = host
        self._port = port
        self._wrap = wrap
        self.boot = boot

    async def on_start(self) -> None:
        """Listen. Fails when the port cannot be had."""
        started = Started()
        self.spawn(self._listen, started, name="listen")
        await started.event.wait()
        if started.value is not None:
            self._port.port = started.value[0][1]

    async def _listen(self, started: Started) -> None:
        """Helper: until the actor ends."""

        async def handler(transport: Transport) -> None:
            await serve_connection(self.system, self._host, self._wrap(transport))

        port = self._port
        try:
            await websocket.serve_websocket(
                handler,
                host=port.host,
                port=port.port,
                admission=port.admission,
                limits=websocket.Limits(message_bytes=port.message_bytes),
                task_status=started,
            )
        except OSError as error:
            reason = error.strerror or str(error)
            if not _refuse(self, f"cannot listen on {port.host} port {port.port}: {reason}"):
                raise
            started.started()


class UnixListener(_Refuser):
    """Takes connections on a Unix socket, which may use the private requests."""

    kind = "listener"

    def __init__(self, observer: Observer, path: Path, limit: int, wrap: Wrap, boot: Boot) -> None:
        self._observer = observer
        self._path = path
        self._limit = limit
        self._wrap = wrap
        self.boot = boot

    async def on_start(self) -> None:
        """Listen. Fails when the socket cannot be made."""
        started = Started()
        self.spawn(self._listen, started, name="listen")
        await started.event.wait()

    async def _listen(self, started: Started) -> None:
        """Helper: until the actor ends."""

        async def handler(transport: Transport) -> None:
            host = self._observer.host
            private = PrivateTransport(self._wrap(transport), self.system, host, self._observer)
            await serve_connection(self.system, host, private)

        try:
            await unix.serve_unix(handler, self._path, limit=self._limit, task_status=started)
        except (unix.SocketPathError, OSError) as error:
            if not _refuse(self, f"cannot listen on {self._path}: {error}"):
                raise
            started.started()


@attrs.define(eq=False)
class Announcement:
    """Where to say that clients are taken: files to write, and a line for people."""

    endpoint: Callable[[], Endpoint]
    discovery: Path
    endpoint_file: Path | None
    say: Callable[[Endpoint], None]
    boot: Boot
    said: bool = False


class Announcer(_Refuser):
    """Comes up last: clients are taken from now on. Takes that back before anything stops."""

    kind = "announcer"

    def __init__(self, announcement: Announcement) -> None:
        self._what = announcement
        self.boot = announcement.boot

    async def on_start(self) -> None:
        """Write the files."""
        what = self._what
        if what.boot.refusal is not None:
            return
        endpoint = what.endpoint()
        files: dict[Path, object] = {what.discovery: attrs.asdict(endpoint)}
        if what.endpoint_file is not None:
            files[what.endpoint_file] = {"url": endpoint.url, "pid": endpoint.pid}
        for path, value in files.items():
            try:
                write_private(path, value)
            except OSError as error:
                if not _refuse(self, f"cannot write {path}: {error.strerror}"):
                    raise
                return
        what.boot.up = True
        if not what.said:
            what.said = True
            what.say(endpoint)

    async def on_stop(self, reason: str) -> None:
        """Remove the files, but not those of another daemon that has taken their places."""
        for path in (self._what.discovery, self._what.endpoint_file):
            if path is None:
                continue
            value = read_json(path)
            if isinstance(value, dict) and value.get("pid") == os.getpid():
                path.unlink(missing_ok=True)
