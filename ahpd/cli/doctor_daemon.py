"""What ``ahpd doctor`` asks of a daemon that runs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import trio

from ahpd import __version__
from ahpd.cli.asking import NoAnswer, Refusal, ask
from ahpd.cli.looking import Look, NobodyThere, NotDone
from ahpd.daemon.control import STATUS
from ahpd.daemon.doctor.findings import Finding, Subject, Teller
from ahpd.daemon.state import Endpoint
from ahpd.inspection.names import PS
from ahpd.protocol.errors import ProtocolError
from ahpd.protocol.uris import ROOT

#: Seconds that it has for each answer.
WITHIN = 5.0
#: Of crashes and of troubles, how many are told.
MOST = 5

_DAEMON = "the daemon"


def daemon_findings(subject: Subject) -> Iterator[Finding]:
    """Whether it answers on each of its sockets, and what is wrong inside. Blocks; for programs
    without trio."""
    tell = Teller(_DAEMON, "running")
    endpoint = subject.endpoint
    if endpoint is None and subject.pid is None:
        yield tell.ok(f"none runs on {subject.folder.path}; ahpd start starts one")
        return
    if endpoint is None:
        yield tell.fail(
            f"pid {subject.pid or '?'} takes no clients", f"its log says why: {subject.folder.log}"
        )
        return
    try:
        [status] = ask(endpoint.unix, (STATUS, {}), within=WITHIN)
    except (NoAnswer, Refusal) as error:
        yield tell.fail(
            f"pid {endpoint.pid}: {error.message}",
            f"kill -USR1 {endpoint.pid} has it print what it does into its log; then ahpd restart",
        )
        return
    yield tell.ok(f"pid {endpoint.pid}, version {endpoint.version}, since {endpoint.started}")
    if endpoint.version != __version__:
        yield tell.warn(f"this is version {__version__}, and it is not", "ahpd restart")
    yield from _status(status)
    yield _websocket(endpoint)
    yield from _inside(subject)


def _status(status: dict[str, Any]) -> Iterator[Finding]:
    journal = status["journal"]
    if journal["failing"] is not None:
        yield Teller(_DAEMON, "journal").fail(
            f"nothing can be kept, so nothing is said: {journal['failing']}",
            "mend that, and it goes on by itself",
        )
    for path in status["parked"]:
        yield Teller(_DAEMON, "actors").fail(
            f"{path} failed too often and is set aside", f"ahpd restart {path}"
        )
    crashes = status["crashes"]
    for each in crashes[: -MOST - 1 : -1]:
        where = f"see {each['file']}" if each["file"] is not None else "see the log"
        yield Teller(_DAEMON, "crashes").warn(
            f"{each['path']}, at {each['at']}: {each['text'][:200]}", where
        )
    if not crashes:
        yield Teller(_DAEMON, "crashes").ok("none since it started")


def _websocket(endpoint: Endpoint) -> Finding:
    tell = Teller(_DAEMON, "websocket")
    try:
        trio.run(_ping, endpoint.url)
    except (OSError, ProtocolError, _Silent) as error:
        return tell.fail(f"it does not answer: {error}", "ahpd restart listeners/websocket")
    return tell.ok(f"answers at {endpoint.url.partition('?')[0]}")


class _Silent(Exception):
    """It does not answer; the message says how."""


async def _ping(url: str) -> None:
    """Have it answer a ping, which needs no `initialize`."""
    from ahpd.client.rpc import ConnectionLost, Peer, RequestTimeout  # noqa: PLC0415
    from ahpd.transports.connect import ConnectFailed, connect  # noqa: PLC0415

    failure: Exception | None = _Silent(f"nothing came within {WITHIN:g} s")
    with trio.move_on_after(WITHIN):
        async with trio.open_nursery() as nursery:
            try:
                transport = await connect(nursery, url)
                peer = Peer(transport, lambda _method, _params: None)
                nursery.start_soon(peer.run)
                await peer.request("ping", {"channel": ROOT}, within=WITHIN)
            except (ConnectFailed, ConnectionLost, RequestTimeout) as error:
                failure = _Silent(str(error))
            else:
                failure = None
            nursery.cancel_scope.cancel(reason="it is known")
    if failure is not None:
        raise failure


def _inside(subject: Subject) -> Iterator[Finding]:
    tell = Teller(_DAEMON, "inside")
    try:
        with Look(subject.folder) as look:
            seen = look.ask(PS, {}, within=WITHIN)
    except (NobodyThere, NotDone) as error:
        yield tell.warn(f"nobody can look inside: {error.message}", "ahpd restart listeners/look")
        return
    # What failed, and what is set aside, was told already.
    troubles = [
        each for each in seen["troubles"] if not each["why"].startswith(("failed ", "set aside"))
    ]
    for each in troubles[:MOST]:
        yield tell.warn(f"{each['path'] or 'root'}: {each['why']}", "ahpd ps shows more")
    if not troubles:
        yield tell.ok(f"{len(seen['actors'])} actors, nothing out of the ordinary")
