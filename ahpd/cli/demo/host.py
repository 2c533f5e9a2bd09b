"""The host of the demo: a process of its own, as anybody would start it."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import attrs
import trio

from ahpd.cli.reach import unix_address
from ahpd.daemon.state import StateFolder

#: Seconds from its start until it takes clients, from being asked to stop until it is made to.
START_WITHIN = 20.0
STOP_WITHIN = 5.0
#: Seconds between two looks whether it takes clients.
_LOOK = 0.02
#: Characters of what it said last that are shown when it does not start.
_SAID = 2000


class HostFailed(Exception):
    """The host did not start; the message says what it said."""


@attrs.define
class HostProcess:
    """A host that takes clients. `stopped` is its exit code once it was asked to stop."""

    url: str = attrs.field(repr=False)
    #: The same for its Unix socket.
    unix: str
    pid: int
    stopped: int | None = None
    #: It did not stop when it was asked to.
    killed: bool = False

    @property
    def address(self) -> str:
        """Its URL without the token, for people."""
        return self.url.partition("?")[0]


@asynccontextmanager
async def host_process(folder: Path) -> AsyncIterator[HostProcess]:
    """A host with the built-in agent on a free port, with all that it keeps in `folder`.

    It has ended when the block has, whatever ended that. Raises `HostFailed`.
    """
    said, endpoint, config = (folder / name for name in ("host.log", "endpoint.json", "none.toml"))
    config.touch()  # what somebody has configured must not change the story
    with said.open("wb") as log:
        process = await trio.lowlevel.open_process(
            [
                sys.executable,
                *("-m", "ahpd", "serve", "--host", "127.0.0.1", "--port", "0"),
                *("--endpoint-file", str(endpoint), "--state-dir", str(folder / "state")),
                *("--config", str(config), "--path", str(folder), "--quiet"),
            ],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            cwd=folder,  # nothing here can be taken for a module of Python's
            start_new_session=True,  # Ctrl-C is for the demo, which stops its host itself
        )
    host: HostProcess | None = None
    try:
        url = await _url(process, endpoint)
        if url is None:
            raise HostFailed(_tail(said))
        socket = StateFolder(folder / "state").socket
        host = HostProcess(url, unix_address(socket), process.pid)
        yield host
    finally:
        killed = await _stop(process)
        if host is not None:
            host.stopped, host.killed = process.returncode, killed


async def _url(process: trio.Process, endpoint: Path) -> str | None:
    """Where it takes clients; None when it will not."""
    with trio.move_on_after(START_WITHIN):
        while process.poll() is None:
            with suppress(OSError, ValueError, KeyError, TypeError):  # not there, or not whole yet
                return str(json.loads(await trio.Path(endpoint).read_bytes())["url"])
            await trio.sleep(_LOOK)
    return None


async def _stop(process: trio.Process) -> bool:
    """End it, and say whether it had to be made to."""
    with trio.move_on_after(STOP_WITHIN, shield=True) as scope:
        if process.poll() is None:
            process.terminate()
        await process.wait()
    if not scope.cancelled_caught:
        return False
    process.kill()
    with trio.move_on_after(STOP_WITHIN, shield=True):
        await process.wait()
    return True


def _tail(said: Path) -> str:
    text = said.read_bytes().decode(errors="replace").strip()
    return text[-_SAID:] or "it said nothing"
