"""A real daemon for the tests of commands that talk to one, and agents with rude things to say."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import attrs
import pytest
import trio

from ahpd.cli.group import run

#: Seconds that anything may take before a test gives up.
WITHIN = 60.0

#: What a terminal must not get: colours, a new title, a clear, text turned around.
RUDE = "\x1b[31mred\x1b]0;owned\x07 \u202eback\r over \x9b2J"
RUDE_SHOWN = r"\x1b[31mred\x1b]0;owned\x07 \u202eback\r over \x9b2J"

_OPTIONS = [
    {"id": "once", "label": "Yes, once", "kind": "approve"},
    {"id": "never", "label": "No, never", "kind": "deny"},
]
_TOOL = {"name": "dig", "title": "Dig a hole", "input": {"depth": 3}, "output": "A hole.\n"}

#: What the agent `test` does, by a word of the prompt.
SCRIPT: dict[str, Any] = {
    "turns": [
        {"when": "rude", "steps": [{"title": RUDE}, {"thought": RUDE}, {"text": RUDE}]},
        {
            "when": "dig",
            "steps": [
                {"text": "May I? "},
                {"tool": {**_TOOL, "confirm": True, "options": _OPTIONS}},
                {"text": "Thanks."},
            ],
        },
        {
            "when": "poke",
            "steps": [{"tool": {**_TOOL, "title": RUDE, "confirm": True}}, {"text": "Poked."}],
        },
        {"when": "link", "steps": [{"text": "see [/etc/hosts] https://a.example/b?c=[d]&e"}]},
        {"when": "fail", "steps": [{"text": "Alas. "}, {"fail": "no luck", "resumable": False}]},
        {"when": "hang", "steps": [{"text": "I stay."}, {"hang": True}]},
        {"steps": [{"thought": "Hm."}, {"text": "You said: "}, {"echo": True}]},
    ]
}


@attrs.frozen
class Daemon:
    """A daemon that runs, and what to call it by."""

    state: Path
    url: str
    pid: int

    def arguments(self, *arguments: str) -> list[str]:
        """A command line that finds it."""
        return [*arguments, "--state-dir", str(self.state)]

    def command(self, *arguments: str) -> list[str]:
        """The same as a process to start."""
        return [sys.executable, "-m", "ahpd", *self.arguments(*arguments)]

    def run(self, *arguments: str) -> int:
        """Run a command in this process."""
        return run(self.arguments(*arguments))


def start_daemon(folder: Path) -> tuple[subprocess.Popen[bytes], Daemon]:
    """Start one, with the agents `test` and `mute`, and wait until it takes clients."""
    script, endpoint, state = folder / "script.json", folder / "endpoint.json", folder / "state"
    script.write_text(json.dumps(SCRIPT))
    endpoint.unlink(missing_ok=True)
    config = folder / "none.toml"
    config.touch()
    with (folder / "log").open("ab") as log:
        process = subprocess.Popen(
            [
                *(sys.executable, "-m", "ahpd", "serve", "--port", "0", "--quiet"),
                *("--endpoint-file", str(endpoint), "--state-dir", str(state)),
                *("--config", str(config), "--agent", f"test=scripted:{script}"),
                *("--agent", "mute=acp:cat /dev/null"),
            ],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
        )
    until = time.monotonic() + WITHIN
    while not endpoint.exists():
        assert process.poll() is None, (folder / "log").read_text()
        assert time.monotonic() < until
        time.sleep(0.02)
    found = json.loads(endpoint.read_text())
    return process, Daemon(state, found["url"], found["pid"])


def stop_daemon(process: subprocess.Popen[bytes]) -> None:
    """End it, whatever it takes."""
    process.send_signal(signal.SIGTERM)
    try:
        process.wait(WITHIN)
    finally:
        process.kill()
        process.wait()


@pytest.fixture(scope="session")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    """One daemon for all tests that do not harm it."""
    process, found = start_daemon(tmp_path_factory.mktemp("d"))
    yield found
    stop_daemon(process)


def environment() -> dict[str, str]:
    """The environment of commands under test: plain text, a terminal that can do what is usual.

    Its size is the terminal's own, not what somebody above has said it is.
    """
    mine = {key: value for key, value in os.environ.items() if key not in ("COLUMNS", "LINES")}
    # Nobody answers here when a terminal is asked where its cursor is.
    mine["PROMPT_TOOLKIT_NO_CPR"] = "1"
    return {**mine, "NO_COLOR": "1", "TERM": "xterm-256color", "LANG": "C.UTF-8"}


def spawn(command: list[str], *, columns: int = 100, lines: int = 30) -> Any:
    """Run a command on a terminal of its own, which has its size before the command looks."""
    import pexpect

    waits = f'until [ "$(stty size)" = "{lines} {columns}" ]; do sleep 0.01; done; exec "$@"'
    return pexpect.spawn(
        "/bin/sh",
        ["-c", waits, "sh", *command],
        env=environment(),
        encoding="utf-8",
        timeout=WITHIN,
        dimensions=(lines, columns),
    )


def ended(child: Any) -> int:
    """Wait for its end, and return its exit code."""
    import pexpect

    child.expect(pexpect.EOF)
    child.close()
    return int(child.exitstatus if child.exitstatus is not None else -child.signalstatus)


class Line:
    """A way to a daemon's socket that can be cut, and then refuses until it is mended."""

    def __init__(self, daemon: Daemon) -> None:
        self._socket = str(daemon.state / "ahpd.sock")
        self._scopes: list[trio.CancelScope] = []
        self.is_cut = False
        self.connections = 0

    async def serve(self, near: trio.abc.Stream) -> None:
        async with near:
            if self.is_cut:
                return
            self.connections += 1
            far = await trio.open_unix_socket(self._socket)
            async with far, trio.open_nursery() as nursery:
                self._scopes.append(nursery.cancel_scope)
                nursery.start_soon(self._pump, near, far, nursery.cancel_scope)
                nursery.start_soon(self._pump, far, near, nursery.cancel_scope)

    async def _pump(
        self, source: trio.abc.Stream, sink: trio.abc.Stream, scope: trio.CancelScope
    ) -> None:
        try:
            while data := await source.receive_some():
                await sink.send_all(data)
        except trio.BrokenResourceError:
            pass
        scope.cancel()

    def cut(self) -> None:
        self.is_cut = True
        for scope in self._scopes:
            scope.cancel()

    def mend(self) -> None:
        self.is_cut = False


@asynccontextmanager
async def line_to(daemon: Daemon, path: Path) -> AsyncIterator[Line]:
    """Such a way, under a path of its own."""
    line = Line(daemon)
    socket = trio.socket.socket(trio.socket.AF_UNIX)
    with socket:
        await socket.bind(str(path))
        socket.listen()
        listener = trio.SocketListener(socket)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(trio.serve_listeners, line.serve, [listener])
            yield line
            nursery.cancel_scope.cancel()
