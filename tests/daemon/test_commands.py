from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import trio

from ahpd.cli import exits
from ahpd.cli.group import run
from ahpd.cli.start import _for_serve
from ahpd.daemon import detached
from ahpd.daemon.state import StateFolder
from tests.daemon.support import ahpd, daemon, mode, peer, until
from tests.wire import Wiretap

pytestmark = pytest.mark.real_time


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """A folder whose daemon, in its usual state folder, is gone when the test is over."""
    yield tmp_path
    detached.stop(usual(tmp_path), within=5)


def usual(folder: Path) -> StateFolder:
    return StateFolder(folder / "xdg_state_home" / "ahpd")


def status(folder: Path) -> Any:
    return json.loads(ahpd(folder, "status", "--json").stdout)


def test_start_status_restart_stop(folder: Path) -> None:
    absent = ahpd(folder, "status")
    assert (absent.returncode, absent.stdout) == (exits.NO_DAEMON, b"not running\n")

    started = ahpd(folder, "start", "--port", "0", "--path", ".")
    assert started.returncode == exits.OK, started.stderr
    url = started.stdout.decode().strip()
    assert "?tkn=" in url

    again = ahpd(folder, "start")
    assert (again.returncode, again.stdout) == (exits.OK, started.stdout)
    assert b"runs already" in again.stderr

    facts = status(folder)
    assert (facts["running"], facts["answers"], facts["url"]) == (True, True, url)
    assert (facts["sessions"], facts["connections"], facts["parked"]) == (0, 0, [])
    assert facts["uptimeSeconds"] >= 0
    assert os.getsid(facts["pid"]) == facts["pid"]

    text = ahpd(folder, "status").stdout.decode()
    assert url in text
    assert f"pid {facts['pid']}" in text

    launch = usual(folder).launch.read_bytes()
    restarted = ahpd(folder, "restart")
    assert restarted.returncode == exits.OK, restarted.stderr
    assert status(folder)["pid"] != facts["pid"]
    assert usual(folder).launch.read_bytes() == launch

    stopped = ahpd(folder, "stop")
    assert (stopped.returncode, stopped.stderr) == (exits.OK, b"ahpd: stopped\n")
    assert status(folder) == {"running": False}
    log = usual(folder).log
    assert mode(log) == 0o600
    assert "tkn" not in log.read_text()
    idle = ahpd(folder, "stop")
    assert (idle.returncode, idle.stderr) == (exits.OK, b"ahpd: not running\n")


def test_start_says_what_is_wrong(folder: Path) -> None:
    wrong = ahpd(folder, "start", "--port", "70000")
    assert wrong.returncode == exits.USAGE
    assert b"--port: expected" in wrong.stderr
    with daemon(folder, name="other") as other:
        port = other.url.partition("?")[0].rstrip("/").rpartition(":")[2]
        taken = ahpd(folder, "start", "--port", port)
    assert taken.returncode == exits.CANNOT_SERVE
    assert b"cannot listen on" in taken.stderr
    assert b"Traceback" not in taken.stderr


def test_one_that_does_not_get_up_in_time_is_told_to_stop(folder: Path) -> None:
    late = ahpd(folder, "start", "--port", "0", "--within", "0.1")
    assert late.returncode == exits.CANNOT_SERVE
    assert b"takes no clients after 0.1 s" in late.stderr
    until(lambda: usual(folder).holder() is None)


async def test_status_counts_what_there_is(folder: Path, wire: Wiretap) -> None:
    with daemon(folder) as host:
        async with peer(host.unix, wire.connection()) as client:
            await client.hello()
            await client.request("createSession", channel="demo:/1")
            said = ahpd(folder, "status", "--json", "--state-dir", str(host.state))
            facts = json.loads(said.stdout)
            assert (facts["sessions"], facts["connections"]) == (1, 1)


def test_a_daemon_that_does_not_answer_is_running_and_no_success(folder: Path) -> None:
    with daemon(folder) as host:
        host.process.send_signal(signal.SIGSTOP)
        said = ahpd(folder, "status", "--json", "--state-dir", str(host.state))
        killed = ahpd(folder, "stop", "--state-dir", str(host.state), "--within", "0.2")
        assert said.returncode == exits.NO_DAEMON
        facts = json.loads(said.stdout)
        assert (facts["running"], facts["answers"]) == (True, False)
        assert killed.returncode == exits.KILLED
        assert b"so it was killed" in killed.stderr
        assert host.process.wait(5) == -signal.SIGKILL


def test_one_actor_is_restarted(folder: Path) -> None:
    with daemon(folder) as host:
        options = ("--state-dir", str(host.state))
        done = ahpd(folder, "restart", "listeners/websocket", *options)
        assert (done.returncode, done.stderr) == (
            exits.OK,
            b"ahpd: listeners/websocket is up again\n",
        )
        unknown = ahpd(folder, "restart", "nobody", *options)
        assert unknown.returncode == exits.REFUSED
        assert b"there is no actor nobody" in unknown.stderr
    assert ahpd(folder, "restart", "catalogue", *options).returncode == exits.NO_DAEMON


async def test_the_listener_comes_back_where_it_was(folder: Path, wire: Wiretap) -> None:
    with daemon(folder) as host:
        async with peer(host.unix, wire.connection()) as owner:
            await owner.request("x-ahpd/restartActor", path="listeners/websocket")
            async with peer(host.url, wire.connection()) as client:
                await client.hello()
            await owner.hello()


async def test_the_background_log_is_moved_aside_while_its_daemon_runs(
    folder: Path, wire: Wiretap
) -> None:
    config = folder / "config.toml"
    config.write_text('[log]\nlevel = "debug"\nmax_bytes = 4096\nkeep = 1\n')
    arguments = ("start", "--port", "0", "--config", str(config))
    started = await trio.to_thread.run_sync(ahpd, folder, *arguments)
    assert started.returncode == exits.OK
    endpoint = usual(folder).read_endpoint()
    assert endpoint is not None
    log = usual(folder).log
    old = log.with_name("daemon.log.1")
    async with peer(f"unix:{endpoint.unix}", wire.connection()) as owner:
        for _ in range(100):
            await owner.request("x-ahpd/restartActor", path="drafts")
            if old.exists():
                break
    assert 0 < old.stat().st_size <= 4096
    assert (mode(log), mode(old)) == (0o600, 0o600)
    os.kill(endpoint.pid, signal.SIGUSR1)  # what is no log line is in the new one too
    until(lambda: b"most recent call first" in log.read_bytes())


def test_levels_are_changed_while_it_runs(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with daemon(folder) as host:
        at = ("--state-dir", str(host.state))
        assert run(["log", "level", "tree", "debug", *at]) == exits.OK
        assert run(["restart", "drafts", *at]) == exits.OK
        assert run(["log", "level", "tree", "inherit", *at]) == exits.OK
        assert run(["restart", "grace", *at]) == exits.OK
        capsys.readouterr()
        assert run(["log", "level", "--json", *at]) == exits.OK
        assert json.loads(capsys.readouterr().out)["tree"] == "info"
        assert run(["log", "level", "trees", "debug", *at]) == exits.REFUSED
        assert "there is no subsystem trees; there are all, agents" in capsys.readouterr().err
        assert run(["log", "level", "tree", "loud", *at]) == exits.REFUSED
        assert "there is no level loud; there are debug" in capsys.readouterr().err
        assert run(["log", "level", "tree", *at]) == exits.USAGE
        host.end()
        said = host.said.decode()
    assert run(["log", "level", *at]) == exits.NO_DAEMON
    assert "DEBUG drafts: started" in said
    assert "DEBUG grace" not in said


def test_what_a_daemon_was_started_with(tmp_path: Path) -> None:
    folder = StateFolder(tmp_path)
    assert detached.past(folder) == detached.Past((), str(Path.cwd()))
    folder.launch.write_text('{"arguments": ["--port", "0"], "folder": "/x"}')
    assert detached.past(folder) == detached.Past(["--port", "0"], "/x")
    assert _for_serve(["--within", "3", "--port", "0", "--within=2"]) == ["--port", "0"]
