"""How a command reaches the daemon: over its Unix socket, or at a URL that it was given."""

from __future__ import annotations

import functools
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import quote
from uuid import uuid4

import attrs
import click

from ahpd.cli import exits
from ahpd.cli.shown import line

if TYPE_CHECKING:
    import trio

    from ahpd.client import Backoff, Client, Connect, Observer
    from ahpd.transports.port import Transport

F = TypeVar("F", bound=Callable[..., Any])


class Unreachable(click.ClickException):
    """There is no daemon to talk to, or it does not answer."""

    exit_code = exits.NO_DAEMON

    def __init__(self, message: str) -> None:
        super().__init__(line(message))  # a peer may have written parts of it


class Refused(click.ClickException):
    """The host said no; the message is its own."""

    exit_code = exits.REFUSED

    def __init__(self, message: str) -> None:
        super().__init__(line(message))


@attrs.frozen
class Target:
    """Which daemon: that of a state folder (None: the usual one), or the one at `url`."""

    state_dir: Path | None = None
    url: str | None = attrs.field(default=None, repr=False)

    def address(self) -> str | None:
        """Where it takes clients now; None when it does not run."""
        if self.url is not None:
            return self.url
        from ahpd.daemon.state import StateFolder, default_folder  # noqa: PLC0415 - not for --help

        endpoint = StateFolder(self.state_dir or default_folder()).read_endpoint()
        return None if endpoint is None else unix_address(endpoint.unix)

    def check(self) -> None:
        """Raise `Unreachable` when it is known beforehand that nobody is there."""
        if self.address() is None:
            where = "" if self.state_dir is None else f" --state-dir {self.state_dir}"
            raise Unreachable(
                f"no daemon is running; start one with: ahpd start{where}"
                " (or say with --url where there is one)"
            )


def unix_address(path: object) -> str:
    """The address of a Unix socket."""
    return f"unix:{quote(str(path))}"


def connector(nursery: trio.Nursery, address: Callable[[], str | None]) -> Connect:
    """What a client makes its connections with; their background work is done in `nursery`.

    The address is asked for each time, since a daemon that was started again may be elsewhere.
    """

    async def dial() -> Transport:
        from ahpd.transports.connect import ConnectFailed, connect  # noqa: PLC0415
        from ahpd.transports.port import TransportClosed  # noqa: PLC0415

        where = address()
        if where is None:
            raise TransportClosed("no daemon is running")
        try:
            return await connect(nursery, where)
        except ConnectFailed as error:
            raise TransportClosed(str(error)) from error

    return dial


def _checked(_: click.Context, __: click.Parameter, url: str | None) -> str | None:
    if url is not None and not url.lower().startswith(("ws:", "unix:")):
        raise click.BadParameter("it has to begin with ws:// or unix:/")
    return url


def reaching(command: F) -> F:
    """Give a command the options that say which daemon it talks to, as its argument `target`."""

    @functools.wraps(command)
    def wrapped(*args: Any, state_dir: Path | None, url: str | None, **kwargs: Any) -> Any:
        return command(*args, target=Target(state_dir, url), **kwargs)

    with_url = click.option(
        "--url",
        metavar="URL",
        callback=_checked,
        help="Talk to the host at ws://HOST:PORT/?tkn=TOKEN.",
    )
    with_folder = click.option(
        "--state-dir",
        metavar="DIR",
        type=click.Path(path_type=Path, file_okay=False),
        help="The state folder of the daemon.",
    )
    return with_folder(with_url(wrapped))  # type: ignore[return-value]


@asynccontextmanager
async def reached(
    target: Target,
    nursery: trio.Nursery,
    command: str,
    *,
    observer: Observer | None = None,
    backoff: Backoff | None = None,
) -> AsyncIterator[Client]:
    """A client of the daemon. Raises `Unreachable`, and `Refused` when a request is refused."""
    from ahpd import __version__  # noqa: PLC0415
    from ahpd.client import ConnectionLost, RequestTimeout, open_client  # noqa: PLC0415
    from ahpd.protocol import ProtocolError  # noqa: PLC0415
    from ahpd.protocol.codec import DecodeError  # noqa: PLC0415
    from ahpd.protocol.common import Implementation  # noqa: PLC0415

    target.check()
    opened = False
    try:
        async with open_client(
            connector(nursery, target.address),
            client_id=f"ahpd-{command}-{uuid4().hex[:12]}",
            client_info=Implementation(name=f"ahpd {command}", version=__version__),
            observer=observer,
            backoff=backoff,
        ) as client:
            opened = True
            yield client
    except (ConnectionLost, RequestTimeout, DecodeError) as error:
        told = "the connection is gone" if opened else "the daemon cannot be reached"
        raise Unreachable(f"{told}: {error.__cause__ or error}") from error
    except ProtocolError as error:
        raise Refused(error.message) from error


async def unless_refused(code: int, request: Awaitable[Any]) -> bool:
    """Whether the request was granted; False when it was refused with this `code`."""
    from ahpd.protocol import ProtocolError  # noqa: PLC0415

    try:
        await request
    except ProtocolError as error:
        if error.code != code:
            raise
        return False
    return True
