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

#: What runs it.
PYTHON = sys.executable
#: Seconds from its start until it takes clients, from being asked to stop until it is made to.
START_WITHIN = 60.0
STOP_WITHIN = 30.0
#: Seconds between two looks whether it takes clients.
_LOOK = 0.02
#: Characters of what it said last that are shown when it does not start.
_SAID = 2000

_LOG, _ENDPOINT = "host.log", "endpoint.json"


class HostFailed(Exception):
    """The host did not start; the message says what it said."""


@attrs.define
class HostProcess:
    """A host of our own. `stopped` is its exit code once it was asked to stop."""

    process: trio.Process
    folder: Path
    #: Where it takes clients, with its token; empty until `ready`.
    url: str = attrs.field(default="", repr=False)
    stopped: int | None = None
    #: It did not stop when it was asked to.
    killed: bool = False

    @property
    def pid(self) -> int:
        """The process."""
        return self.process.pid

    @property
    def address(self) -> str:
        """Its URL without the token, for people."""
        return self.url.partition("?")[0]

    @property
    def unix(self) -> str:
        """The address of its Unix socket."""
        return unix_address(StateFolder(self.folder / "state").socket)

    async def ready(self) -> None:
        """Wait until it takes clients. Raises `HostFailed` when it will not."""
        endpoint = trio.Path(self.folder / _ENDPOINT)
        with trio.move_on_after(START_WITHIN):
            while self.process.poll() is None:
                with suppress(OSError, ValueError, KeyError, TypeError):  # not there yet
                    self.url = str(json.loads(await endpoint.read_bytes())["url"])
                    return
                await trio.sleep(_LOOK)
        said = (self.folder / _LOG).read_bytes().decode(errors="replace").strip()
        raise HostFailed(f"the host did not start: {said[-_SAID:] or 'it said nothing'}")

    async def kill(self) -> None:
        """End it with SIGKILL: it gets to know nothing of it. Returns when it is gone."""
        self.process.kill()
        await self.process.wait()

    async def start_again(self) -> None:
        """Start another one on what it left, and wait until that takes clients."""
        (self.folder / _ENDPOINT).unlink(missing_ok=True)
        self.process = await _start(self.folder)
        await self.ready()


async def _start(folder: Path) -> trio.Process:
    config = folder / "none.toml"
    config.touch()  # what somebody has configured must not change the story
    with (folder / _LOG).open("wb") as log:
        return await trio.lowlevel.open_process(
            [
                PYTHON,
                *("-m", "ahpd", "serve", "--host", "127.0.0.1", "--port", "0"),
                *("--endpoint-file", str(folder / _ENDPOINT)),
                *("--state-dir", str(folder / "state"), "--config", str(config)),
                *("--path", str(folder), "--quiet"),
            ],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            cwd=folder,  # nothing here can be taken for a module of Python's
            start_new_session=True,  # Ctrl-C is for the demo, which stops its host itself
        )


@asynccontextmanager
async def host_process(folder: Path) -> AsyncIterator[HostProcess]:
    """A host with the built-in agent on a free port, with all that it keeps in `folder`.

    It has been started when the block begins, and has ended when the block has, whatever ended
    that.
    """
    host = HostProcess(await _start(folder), folder)
    try:
        yield host
    finally:
        host.killed = await _stop(host.process)
        host.stopped = host.process.returncode


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
