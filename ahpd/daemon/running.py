"""Runs a host until it is stopped: as a daemon that listens, or for one peer over stdio."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

import attrs
import trio

from actors.caretaker import Caretaker
from actors.host import Host
from actors.tree import tree
from ahpd import __version__
from ahpd.daemon import logs
from ahpd.daemon.config import Config, ConfigError
from ahpd.daemon.hosting import build_host
from ahpd.daemon.listeners import (
    Announcement,
    Announcer,
    Boot,
    Outcome,
    Port,
    StdioListener,
    UnixListener,
    WebSocketListener,
    Wrap,
    listener_spec,
    listeners_spec,
)
from ahpd.daemon.state import Endpoint, StateFolder, default_folder, write_private
from ahpd.journal.memory import MemoryJournal
from supervisors import ChildSpec, GaveUp, Report, System, run_tree

_log = logging.getLogger("ahpd.daemon")


class CannotServe(Exception):
    """The host could not start to take clients; the message says why."""


class HostFailed(Exception):
    """A part of the host that it cannot be without failed too often; the message says which."""


@attrs.frozen
class TokenChoice:
    """What is asked of who connects by TCP: one of the three, or the state folder's own token."""

    token: str | None = attrs.field(default=None, repr=False)
    file: Path | None = None
    none: bool = False


@attrs.frozen
class Launch:
    """All that a start of the host says: the configuration with the flags over it, and the rest."""

    config: Config = attrs.field(factory=Config)
    #: Folders that are served.
    paths: Sequence[Path] = ()
    state_dir: Path | None = None
    token: TokenChoice = attrs.field(factory=TokenChoice)
    endpoint_file: Path | None = None
    #: Where every frame is written.
    wire: Path | None = None
    quiet: bool = False
    #: The arguments that it was started with, for ``ahpd restart``.
    arguments: Sequence[str] = ()


def serve(launch: Launch) -> str:
    """Run a daemon until it is stopped; gives the reason. For the main thread.

    Raises `ConfigError`, `StateError`, `AlreadyRunning`, `CannotServe`, `HostFailed`.
    """
    from ahpd.transports.auth import redact  # noqa: PLC0415

    folder = StateFolder(launch.state_dir or default_folder())
    with folder.held():
        token = _token(launch, folder)
        logs.set_up(
            launch.config.log.level, lambda text: redact(text).replace(token or "\0", "***")
        )
        host = build_host(launch.config, seed=_seed(), paths=_paths(launch))
        _remember(launch, folder)
        with _capture(launch) as wrap:
            return trio.run(_Daemon(launch, folder, host, token, wrap).run)


def _remember(launch: Launch, folder: StateFolder) -> None:
    """How this daemon was started, for whoever restarts it."""
    try:
        how = {"arguments": list(launch.arguments), "folder": os.getcwd()}
        write_private(folder.launch, how)
    except OSError as error:
        raise CannotServe(f"cannot write {folder.launch}: {error.strerror}") from None


def _token(launch: Launch, folder: StateFolder) -> str | None:
    """The token that clients need; None: none. Raises `ConfigError`."""
    from ahpd.transports import auth  # noqa: PLC0415

    choice = launch.token
    try:
        if choice.none:
            if not auth.is_loopback(launch.config.host):
                raise ConfigError(
                    f"without a connection token only loopback is served, not {launch.config.host}:"
                    " whoever connects can do what you can"
                )
            return None
        if choice.token is not None:
            return auth.check_token(choice.token)
        return auth.read_or_make_token(choice.file or folder.token)
    except auth.TokenError as error:
        raise ConfigError(str(error)) from None
    except OSError as error:
        raise ConfigError(f"the connection token: {error.filename}: {error.strerror}") from None


class _Daemon:
    """One run of `serve`."""

    def __init__(
        self, launch: Launch, folder: StateFolder, host: Host, token: str | None, wrap: Wrap
    ) -> None:
        from ahpd.transports.auth import is_loopback  # noqa: PLC0415
        from ahpd.transports.upgrade import Admission  # noqa: PLC0415

        config = launch.config
        self._launch = launch
        self._folder = folder
        self._host = host
        self._token = token
        self._wrap = wrap
        self._boot = Boot()
        names = set(config.allowed_hosts)
        if not is_loopback(config.host):
            names.add(config.host)
        self._port = Port(
            config.host,
            config.port,
            Admission(token, frozenset(names), frozenset(config.allowed_origins)),
            config.limits.message_bytes,
        )
        self._started = host.clock.now()

    async def run(self) -> str:
        """Until it is stopped."""
        config = self._launch.config
        websocket = listener_spec(
            "websocket", WebSocketListener, self._host, self._port, self._wrap, self._boot
        )
        unix = listener_spec(
            "unix",
            UnixListener,
            self._host,
            self._folder.socket,
            config.limits.message_bytes,
            self._wrap,
            self._boot,
        )
        announcement = Announcement(
            self._endpoint,
            self._folder.endpoint,
            self._launch.endpoint_file,
            self._say,
            self._boot,
        )
        announcer = ChildSpec("announcer", Announcer, (announcement,))
        return await _run(
            self._launch, self._host, self._boot, listeners_spec(websocket, unix), announcer
        )

    def _endpoint(self) -> Endpoint:
        query = f"/?tkn={self._token}" if self._token is not None else "/"
        name = _shown_host(self._port.host)
        return Endpoint(
            url=f"ws://{name}:{self._port.port}{query}",
            unix=str(self._folder.socket),
            pid=os.getpid(),
            version=__version__,
            started=self._started,
        )

    def _say(self, endpoint: Endpoint) -> None:
        if not self._launch.quiet:
            agents = ", ".join(self._host.agents)
            print(f"ahpd: {endpoint.url}  (agents: {agents})", file=sys.stderr, flush=True)


def _shown_host(host: str) -> str:
    """The host in a URL for this machine: every interface is shown as loopback."""
    if host in ("", "0.0.0.0"):
        return "127.0.0.1"
    if host == "::":
        return "[::1]"
    return f"[{host}]" if ":" in host else host


def serve_stdio(launch: Launch, read_fd: int, write_fd: int) -> str:
    """Serve one peer over two descriptors until it ends its stream; gives the reason.

    What it asked for in order is answered first. Raises as `serve`, and `HostFailed` when its
    connection ended because of an error here.
    """
    logs.set_up(launch.config.log.level)
    with ExitStack() as stack:
        if launch.state_dir is not None:
            stack.enter_context(StateFolder(launch.state_dir).held())
        host = build_host(launch.config, seed=_seed(), paths=_paths(launch))
        wrap = stack.enter_context(_capture(launch))
        return trio.run(_run_stdio, launch, host, wrap, read_fd, write_fd)


async def _run_stdio(launch: Launch, host: Host, wrap: Wrap, read_fd: int, write_fd: int) -> str:
    from ahpd.transports.stdio import fd_transport  # noqa: PLC0415

    outcome = Outcome()
    transport = fd_transport(read_fd, write_fd, limit=launch.config.limits.message_bytes)
    stdio = listener_spec("stdio", StdioListener, host, transport, wrap, outcome)
    reason = await _run(launch, host, Boot(), listeners_spec(stdio))
    if not outcome.ended_by_peer and not reason.startswith("SIG"):
        raise HostFailed("the connection failed inside the host")
    return reason


async def _run(launch: Launch, host: Host, boot: Boot, *more: ChildSpec) -> str:
    caretaker = Caretaker(host)

    def report(report: Report) -> None:
        logs.log_report(report)
        try:
            caretaker(report)
        except Exception:  # noqa: BLE001 - a sink that raises is not called again
            _log.exception("the caretaker failed")

    try:
        return await run_tree(
            tree(host, MemoryJournal(), *more),
            stop_within=launch.config.limits.stop_seconds,
            signals=True,
            seed=_seed(),
            report=report,
            task_status=_Attach(caretaker),
        )
    except GaveUp as error:
        if boot.refusal is not None:
            raise CannotServe(boot.refusal) from None
        raise HostFailed(str(error)) from error


class _Attach(trio.TaskStatus[System]):
    """Hands the running tree to the caretaker."""

    def __init__(self, caretaker: Caretaker) -> None:
        self._caretaker = caretaker

    def started(self, value: System | None = None) -> None:
        assert value is not None
        self._caretaker.attach(value)


@contextmanager
def _capture(launch: Launch) -> Iterator[Wrap]:
    """What is put around each connection's transport: a capture, when one is wanted."""
    if launch.wire is None:
        yield lambda transport: transport
        return
    from ahpd.transports.tap import capturing  # noqa: PLC0415 - seldom wanted

    with ExitStack() as stack:
        try:
            limit = launch.config.limits.wire_bytes
            capture = stack.enter_context(capturing(launch.wire, limit=limit))
        except OSError as error:
            raise ConfigError(f"--wire: {launch.wire}: {error.strerror}") from None
        yield capture.tap


def _paths(launch: Launch) -> Sequence[Path]:
    return launch.paths or [Path(path) for path in launch.config.path] or [Path.cwd()]


def _seed() -> int:
    return int.from_bytes(os.urandom(8), "big")
