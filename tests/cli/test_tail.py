"""``ahpd tail`` against a real daemon: lines, envelopes, and lost connections."""

from __future__ import annotations

import json
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import trio

from ahpd.cli import exits
from ahpd.cli.reach import Target, reached
from ahpd.protocol.strict import FrameChecker
from tests.cli.daemons import (
    RUDE_SHOWN,
    WITHIN,
    Daemon,
    daemon,
    environment,
    line_to,
    start_daemon,
    stop_daemon,
)

pytestmark = pytest.mark.real_time

__all__ = ["daemon"]


def new_session(daemon: Daemon, capsys: pytest.CaptureFixture[str]) -> str:
    assert daemon.run("ask", "--json", "before") == exits.OK
    return str(json.loads(capsys.readouterr().out)["session"])


@contextmanager
def tailing(command: list[str]) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment(),
        text=True,
    )
    with process:
        try:
            yield process
        finally:
            process.kill()


def read_until(process: subprocess.Popen[str], wanted: str) -> list[str]:
    """The lines up to one that holds `wanted`."""
    lines = []
    assert process.stdout is not None
    for line in process.stdout:
        lines.append(line.rstrip("\n"))
        if wanted in line:
            return lines
    raise AssertionError((wanted, lines, process.stderr and process.stderr.read()))


def without_time(lines: list[str]) -> list[str]:
    return [line[10:] for line in lines]


def test_a_line_for_each_thing_that_happens(
    daemon: Daemon, capsys: pytest.CaptureFixture[str]
) -> None:
    session = new_session(daemon, capsys)
    with tailing(daemon.command("tail", session)) as tail:
        assert without_time(read_until(tail, "1 chat")) == ["before: 1 chat; idle"]
        assert daemon.run("ask", "dig", "--yes", "--session", session) == exits.OK
        lines = without_time(read_until(tail, "the turn is over"))
        assert lines[:-1] == [
            "user asks: dig",
            "says: May I?",
            "tool Dig a hole: being written",
            'tool Dig a hole: waits for approval: {"depth":3}',
            'tool Dig a hole: running: {"depth":3}',
            "tool Dig a hole: done",
            "says: Thanks.",
        ]
        assert lines[-1].startswith("the turn is over: done in ")
        tail.send_signal(signal.SIGINT)
        assert tail.wait(WITHIN) == exits.INTERRUPTED


def test_lines_are_safe_for_a_terminal(daemon: Daemon, capsys: pytest.CaptureFixture[str]) -> None:
    session = new_session(daemon, capsys)
    with tailing(daemon.command("tail", session)) as tail:
        read_until(tail, "1 chat")
        assert daemon.run("ask", "rude", "--session", session) == exits.OK
        lines = without_time(read_until(tail, "the turn is over"))
    assert lines[1:4] == [
        f"the session is called: {RUDE_SHOWN}",
        f"thinks: {RUDE_SHOWN}",
        f"says: {RUDE_SHOWN}",
    ]


def test_json_gives_legal_envelopes_with_growing_numbers(
    daemon: Daemon, capsys: pytest.CaptureFixture[str]
) -> None:
    session = new_session(daemon, capsys)
    with tailing(daemon.command("tail", session, "--json")) as tail:
        assert tail.stderr is not None
        assert "1 chat; idle" in tail.stderr.readline()
        assert daemon.run("ask", "hello", "--session", session) == exits.OK
        found = [json.loads(line) for line in read_until(tail, "chat/turnComplete")]
    checker = FrameChecker(whole=False)
    for envelope in found:
        assert not checker.check("h2c", {"jsonrpc": "2.0", "method": "action", "params": envelope})
    numbers = [each["serverSeq"] for each in found]
    assert numbers == sorted(set(numbers))
    assert found[-1]["channel"].startswith("ahp-chat:")
    assert {each["channel"] for each in found} > {session}


def test_it_ends_when_the_session_does(daemon: Daemon, capsys: pytest.CaptureFixture[str]) -> None:
    session = new_session(daemon, capsys)

    async def dispose() -> None:
        async with (
            trio.open_nursery() as nursery,
            reached(Target(daemon.state), nursery, "other") as client,
        ):
            await client.dispose_session(session)

    with tailing(daemon.command("tail", session)) as tail:
        read_until(tail, "1 chat")
        trio.run(dispose)
        assert without_time(read_until(tail, "gone")) == ["the session is gone"]
        assert tail.wait(WITHIN) == exits.OK


def test_no_such_session(daemon: Daemon, capsys: pytest.CaptureFixture[str]) -> None:
    assert daemon.run("tail", "ahp-session:/nowhere") == exits.USAGE
    assert "there is no session ahp-session:/nowhere; see: ahpd sessions" in capsys.readouterr().err


async def test_a_lost_connection_loses_nothing(daemon: Daemon, tmp_path: Path) -> None:
    async def ask(*arguments: str) -> Any:
        done = await trio.run_process(
            daemon.command("ask", "--json", *arguments), capture_stdout=True, env=environment()
        )
        return json.loads(done.stdout)

    with trio.fail_after(WITHIN):
        session = (await ask("before"))["session"]
        path = tmp_path / "l.sock"
        async with line_to(daemon, path) as line, trio.open_nursery() as nursery:
            tail = partial(
                trio.run_process,
                [*daemon.command("tail", session), "--url", f"unix:{path}"],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                check=False,
                env=environment(),
            )
            process = await nursery.start(tail)
            lines = Lines(process.stdout)
            await lines.until("1 chat")
            line.cut()
            await Lines(process.stderr).until("the connection is lost")
            await ask("while it was away", "--session", session)
            line.mend()
            told = await lines.until("the turn is over")
            assert [each[10:] for each in told[:-1]] == [
                "user asks: while it was away",
                "thinks: Hm.",
                "says: You said: while it was away",
            ]
            assert line.connections == 2
            process.terminate()


class Lines:
    """The lines that come out of a pipe."""

    def __init__(self, stream: trio.abc.ReceiveStream) -> None:
        self._stream = stream
        self._rest = b""

    async def until(self, wanted: str) -> list[str]:
        found: list[str] = []
        while True:
            while b"\n" not in self._rest:
                data = await self._stream.receive_some()
                assert data, (wanted, found)
                self._rest += data
            text, _, self._rest = self._rest.partition(b"\n")
            found.append(text.decode())
            if wanted in found[-1]:
                return found


def test_a_daemon_that_comes_back_without_the_session(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It reconnects by itself, to wherever the daemon is now, and finds that there is none."""
    process, first = start_daemon(tmp_path)
    try:
        session = new_session(first, capsys)
        with tailing(first.command("tail", session)) as tail:
            read_until(tail, "1 chat")
            stop_daemon(process)
            (tmp_path / "state" / "journal.db").unlink()
            process, _ = start_daemon(tmp_path)
            assert tail.stderr is not None
            assert "the connection is lost" in tail.stderr.readline()
            assert tail.wait(WITHIN) == exits.OK
            assert "the session is gone" in tail.stdout.read() if tail.stdout else False
    finally:
        stop_daemon(process)
