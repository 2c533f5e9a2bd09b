"""Runs a host that was built, with whatever lets clients in, until it is stopped."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import trio
from msgspec import Struct

from actors.caretaker import Caretaker
from actors.tree import tree
from ahpd.daemon.errors import CannotServe, ConfigError, HostFailed, JournalUnusable
from ahpd.daemon.launch import Launch
from ahpd.daemon.observing import Observer
from ahpd.journal.port import Journal
from ahpd.transports.port import Transport
from ahpd.transports.redaction import Redactor
from supervisors import (
    Actor,
    Backoff,
    Beyond,
    ChildSpec,
    GaveUp,
    Intensity,
    Report,
    Shutdown,
    SupervisorSpec,
    System,
    run_tree,
)

_log = logging.getLogger("ahpd.daemon")

#: Puts something around each connection's transport, such as a capture.
Wrap = Callable[[Transport], Transport]


class Boot(Struct, eq=False):
    """What the listeners tell whoever runs the tree, over their restarts."""

    #: Why the host cannot be served at all, in words.
    refusal: str | None = None
    up: bool = False


async def run_host(
    launch: Launch, observer: Observer, journal: Journal, boot: Boot, *more: ChildSpec
) -> str:
    """Run the observed host with `more` children until it is stopped; gives the reason.

    For the main thread.
    Raises `CannotServe` when one of them said in `boot` why it could not start, `JournalUnusable`
    when that happened on the way, else `HostFailed`.
    """
    host = observer.host
    caretaker = Caretaker(host)

    def report(report: Report) -> None:
        observer(report)
        try:
            caretaker(report)
        except Exception:  # noqa: BLE001 - a sink that raises is not called again
            _log.exception("the caretaker failed")

    try:
        reason = await run_tree(
            tree(host, journal, *more),
            stop_within=launch.config.limits.stop_seconds,
            signals=True,
            seed=new_seed(),
            report=report,
            task_status=_Attach(caretaker, observer),
        )
    except GaveUp as error:
        raise HostFailed(f"the host gave up: {error}") from error
    if host.ledger.is_ruined:
        raise JournalUnusable(f"the journal: {host.ledger.failing}")
    if boot.refusal is not None:
        raise CannotServe(boot.refusal)
    return reason


class _Attach(trio.TaskStatus[System]):
    """Hands the running tree to whoever looks after it."""

    def __init__(self, caretaker: Caretaker, observer: Observer) -> None:
        self._caretaker = caretaker
        self._observer = observer

    def started(self, value: System | None = None) -> None:
        assert value is not None
        self._caretaker.attach(value)
        self._observer.attach(value)


class Started:
    """A `trio.TaskStatus` for a helper of an actor: the actor waits until it has started."""

    def __init__(self) -> None:
        self.event = trio.Event()
        self.value: Any = None

    def started(self, value: Any = None) -> None:
        self.value = value
        self.event.set()


@contextmanager
def captured(launch: Launch, redact: Redactor) -> Iterator[Wrap]:
    """What is put around each connection's transport: a capture, when one is wanted."""
    if launch.wire is None:
        yield lambda transport: transport
        return
    from ahpd.transports.tap import capturing  # noqa: PLC0415 - seldom wanted

    with ExitStack() as stack:
        try:
            wire = launch.config.wire
            capture = stack.enter_context(
                capturing(
                    launch.wire,
                    limit=launch.config.limits.wire_bytes,
                    redact=redact,
                    shape=wire.format,
                    max_bytes=wire.max_bytes,
                    keep=wire.keep,
                )
            )
        except OSError as error:
            raise ConfigError(f"--wire: {launch.wire}: {error.strerror}") from None
        yield capture.tap


def served_paths(launch: Launch) -> Sequence[Path]:
    """The folders that are served: of the flags, else of the file, else the current one."""
    return launch.paths or [Path(path) for path in launch.config.path] or [Path.cwd()]


def new_seed() -> int:
    """A number that nobody can guess."""
    return int.from_bytes(os.urandom(8), "big")


def listeners_spec(*listeners: ChildSpec) -> ChildSpec:
    """The supervisor of the listeners: each alone, and parked when it fails too often."""
    spec = SupervisorSpec(
        listeners,
        intensity=Intensity(restarts=10, period=120.0),
        beyond=Beyond.PARK,
        backoff=Backoff(first=0.1, cap=10.0),
    )
    return ChildSpec("listeners", spec)


def listener_spec(id: str, start: Callable[..., Actor[Any]], *args: object) -> ChildSpec:
    """One listener; its connections have said goodbye within the grace."""
    return ChildSpec(id, start, args, shutdown=Shutdown(grace=5.0))
