"""The daemon: a host that listens by TCP and on a Unix socket, one for each state folder."""

from __future__ import annotations

import faulthandler
import os
import signal
import sys

import trio

from ahpd import __version__
from ahpd.daemon.errors import CannotServe, ConfigError
from ahpd.daemon.hosting import build_host
from ahpd.daemon.inherited import catch_what_is_ignored
from ahpd.daemon.keeping import journal_in
from ahpd.daemon.launch import Launch
from ahpd.daemon.listeners import (
    Announcement,
    Announcer,
    Port,
    UnixListener,
    WebSocketListener,
)
from ahpd.daemon.look import LookListener
from ahpd.daemon.observing import Observer, open_log
from ahpd.daemon.running import (
    Boot,
    Wrap,
    captured,
    listener_spec,
    listeners_spec,
    new_seed,
    run_host,
    served_paths,
)
from ahpd.daemon.state import Endpoint, StateFolder, default_folder, write_private
from ahpd.daemon.telemetry import telemetry_of
from ahpd.journal.port import Journal
from ahpd.transports import auth
from ahpd.transports.upgrade import Admission
from supervisors import ChildSpec


def serve(launch: Launch) -> str:
    """Run a daemon until it is stopped; gives the reason. For the main thread.

    Raises `ConfigError`, `StateError`, `AlreadyRunning`, `JournalUnusable`, `CannotServe`,
    `HostFailed`.
    """
    # What a process that hangs is doing: kill -USR1 has it print the stacks of all threads.
    faulthandler.register(signal.SIGUSR1)
    catch_what_is_ignored()
    folder = StateFolder(launch.state_dir or default_folder())
    with folder.held() as was_killed:
        token = _token(launch, folder)
        log = open_log(launch.config, token=token, home=folder.log)
        wants_capture = captured(launch, log.redact)
        with journal_in(folder, launch.config) as (journal, kept), wants_capture as wrap:
            mark = str(folder.path.resolve())
            host = build_host(
                launch.config,
                seed=new_seed(),
                paths=served_paths(launch),
                kept=kept,
                mark=mark,
            )
            if was_killed:
                _end_leftovers(mark)
            _remember(launch, folder)
            observer = Observer(log, host, launch.config, reports=folder.crashes)
            daemon = _Daemon(launch, folder, observer, token, journal=journal, wrap=wrap)
            with telemetry_of(host, log, launch.config.telemetry):
                return trio.run(daemon.run)


def _remember(launch: Launch, folder: StateFolder) -> None:
    """How this daemon was started, for whoever restarts it."""
    try:
        how = {"arguments": list(launch.arguments), "folder": os.getcwd()}
        write_private(folder.launch, how)
    except OSError as error:
        raise CannotServe(f"cannot write {folder.launch}: {error.strerror}") from None


def _end_leftovers(mark: str) -> None:
    from ahpd.agents.acp.leftovers import end_leftovers  # noqa: PLC0415 - seldom wanted

    end_leftovers(mark)


def _token(launch: Launch, folder: StateFolder) -> str | None:
    """The token that clients need; None: none. Raises `ConfigError`."""
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
        self,
        launch: Launch,
        folder: StateFolder,
        observer: Observer,
        token: str | None,
        *,
        journal: Journal,
        wrap: Wrap,
    ) -> None:
        config, host = launch.config, observer.host
        self._launch = launch
        self._folder = folder
        self._host = host
        self._observer = observer
        self._journal = journal
        self._token = token
        self._wrap = wrap
        self._boot = Boot()
        names = set(config.allowed_hosts)
        if not auth.is_loopback(config.host):
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
            self._observer,
            self._folder.socket,
            config.limits.message_bytes,
            self._wrap,
            self._boot,
        )
        folder = self._folder
        look = listener_spec("look", LookListener, self._host, folder.look, folder.journal)
        announcement = Announcement(
            self._endpoint,
            self._folder.endpoint,
            self._launch.endpoint_file,
            self._say,
            self._boot,
        )
        announcer = ChildSpec("announcer", Announcer, (announcement,))
        return await run_host(
            self._launch,
            self._observer,
            self._journal,
            self._boot,
            listeners_spec(websocket, unix, look),
            announcer,
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
