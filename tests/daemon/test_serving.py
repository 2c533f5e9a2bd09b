from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
from contextlib import AsyncExitStack
from pathlib import Path

import pytest
import trio

from ahpd.cli import exits
from ahpd.transports.connect import ConnectFailed
from tests.daemon import support
from tests.daemon.support import PATIENCE, Peer, ahpd, daemon, free_port, mode, peer
from tests.wire import Wiretap

pytestmark = pytest.mark.real_time


async def test_a_turn_is_played_to_a_client_at_the_url_of_the_endpoint_file(
    tmp_path: Path, wire: Wiretap
) -> None:
    with daemon(tmp_path) as host:
        async with peer(host.url, wire.connection()) as client:
            hello = await client.hello()
            assert hello["defaultDirectory"] == tmp_path.as_uri()
            [root] = hello["snapshots"]
            assert root["state"]["agents"][0]["provider"] == "demo"
            await client.begin("please fail")
            error = await client.until_action("chat/error")
            assert error["turnId"] == "t1"
        assert host.end() == exits.OK


async def test_the_token_is_needed_by_tcp_and_not_on_the_unix_socket(
    tmp_path: Path, wire: Wiretap
) -> None:
    with daemon(tmp_path) as host:
        with pytest.raises(ConnectFailed) as refused:
            async with peer(host.url.partition("?")[0], wire.connection()):
                pass
        assert refused.value.status == 401
        async with peer(host.unix, wire.connection()) as client:
            assert "result" not in await client.hello()


async def test_the_private_requests_are_unknown_by_tcp(tmp_path: Path, wire: Wiretap) -> None:
    with daemon(tmp_path) as host:
        async with peer(host.url, wire.connection()) as client:
            await client.hello()
            error = await client.request("x-ahpd/status")
            assert error["code"] == -32601
        async with peer(host.unix, wire.connection()) as client:
            assert (await client.request("x-ahpd/status"))["parked"] == []
            assert await client.request("x-ahpd/restartActor", path="catalogue") is None
            assert (await client.request("x-ahpd/restartActor", path="gone"))["code"] == -32008
            assert (await client.request("x-ahpd/restartActor"))["code"] == -32602
            assert (await client.request("x-ahpd/other"))["code"] == -32601
            await client.hello()


def test_its_files_are_private_and_say_where_it_is_as_long_as_it_is_there(tmp_path: Path) -> None:
    with daemon(tmp_path) as host:
        state = host.state
        assert mode(state) == 0o700
        files = ("lock", "token", "journal.db", "ahpd.sock", "endpoint.json", "launch.json")
        assert {name: mode(state / name) for name in files} == dict.fromkeys(files, 0o600)
        assert mode(host.endpoint) == 0o600
        said = json.loads(host.endpoint.read_bytes())
        assert said.keys() == {"url", "pid"}
        found = json.loads((state / "endpoint.json").read_bytes())
        assert found["url"] == said["url"]
        assert found["pid"] == said["pid"] == host.process.pid
        assert found["unix"] == str(state / "ahpd.sock")
        assert found["url"].endswith("?tkn=" + (state / "token").read_text().strip())
        assert host.end() == exits.OK
        assert not host.endpoint.exists()
        assert sorted(path.name for path in state.iterdir()) == [
            "journal.db",
            "launch.json",
            "lock",
            "token",
        ]


def test_it_says_once_where_to_connect_and_what_agents_it_has(tmp_path: Path) -> None:
    script = tmp_path / "script.json"
    script.write_text('{"turns": [{"steps": [{"echo": true}]}]}')
    agents = ("--agent", f"one=scripted:{script}", "--agent", f"two=scripted:{script}")
    with daemon(tmp_path, *agents) as host:
        url = host.url
        host.end()
    assert host.said.decode().splitlines() == [f"ahpd: {url}  (agents: one, two)"]


def test_quiet_says_nothing(tmp_path: Path) -> None:
    with daemon(tmp_path, "--quiet") as host:
        host.end()
    assert host.said == b""


def test_ctrl_c_ends_it_in_order_without_a_traceback(tmp_path: Path) -> None:
    with daemon(tmp_path, "--quiet") as host:
        assert host.end(signal.SIGINT) == exits.INTERRUPTED
        assert host.said == b""
        assert not host.endpoint.exists()


async def test_a_stop_under_load_is_in_order(tmp_path: Path, wire: Wiretap) -> None:
    with daemon(tmp_path, "--log-level", "warning", "--quiet") as host:
        async with AsyncExitStack() as stack:
            first = await stack.enter_async_context(peer(host.url, wire.connection()))
            addresses = (host.url, host.unix, host.unix)
            others: list[Peer] = [
                await stack.enter_async_context(peer(address, wire.connection()))
                for address in addresses
            ]
            await first.hello()
            await first.begin("take long")
            for number, other in enumerate(others):
                params = {**support.INITIALIZE, "clientId": f"other-{number}"}
                await other.request("initialize", **params)
                await other.request("subscribe", channel=support.CHAT)
                await other.until_action("chat/delta")
            assert await trio.to_thread.run_sync(host.end) == exits.OK
            assert (await first.until_closed()).code in (1000, 1001)
            for other in others:
                await other.until_closed()
    assert b"Traceback" not in host.said


def test_one_daemon_for_each_state_folder(tmp_path: Path) -> None:
    with daemon(tmp_path) as host, daemon(tmp_path, name="other") as other:
        assert host.url.partition("?")[0] != other.url.partition("?")[0]
        second = ahpd(tmp_path, "--port", "0", "--state-dir", str(host.state))
        assert second.returncode == exits.ALREADY_RUNNING
        assert f"the daemon with pid {host.process.pid} runs on" in second.stderr.decode()
        assert host.endpoint.exists()


def test_a_killed_daemon_leaves_nothing_that_matters(tmp_path: Path) -> None:
    with daemon(tmp_path) as host:
        token = host.url.partition("?")[2]
        host.end(signal.SIGKILL)
        assert (host.state / "ahpd.sock").exists()
    with daemon(tmp_path) as host:
        assert host.url.partition("?")[2] == token
        assert host.end() == exits.OK


def test_a_port_that_is_taken_is_said_and_no_traceback(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        ended = ahpd(tmp_path, "--port", str(port), "--log-level", "error")
    assert ended.returncode == exits.CANNOT_SERVE
    [said] = ended.stderr.decode().splitlines()
    assert said.startswith(f"ahpd: cannot listen on 127.0.0.1 port {port}: ")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--host", "0.0.0.0", "--without-connection-token"], "only loopback is served"),
        (["--connection-token", "a b"], "may hold only letters"),
        (["--connection-token", "a", "--without-connection-token"], "only one of"),
        (["--connection-token-file", "no/such/folder"], "No such file or directory"),
        (["--agent", "demo"], "--agent: expected NAME=scripted:FILE or NAME=acp:COMMAND"),
        (["--agent", "Demo=scripted:x"], "begins with a letter"),
        (["--agent", "demo=scripted:missing.json"], "missing.json"),
        (["--path", "missing"], "the path missing cannot be served"),
        (["--port", "70000"], "--port: expected a whole number of a TCP port from 0 to 65535"),
        (["--log-level", "loud"], "--log-level: expected one of"),
        (["--config", "missing.toml"], "missing.toml: there is no such file"),
        (["--wire", "no/such/folder"], "--wire: no/such/folder"),
        (["--state-dir", "/proc/ahpd"], "/proc/ahpd"),
        (["--unheard-of"], "No such option"),
    ],
)
def test_what_is_wrong_with_the_command_line_is_said(
    arguments: list[str], said: str, tmp_path: Path
) -> None:
    ended = ahpd(tmp_path, "serve", *arguments)
    assert ended.returncode == exits.USAGE
    assert said in ended.stderr.decode()
    assert "Traceback" not in ended.stderr.decode()


def test_an_endpoint_file_that_cannot_be_written_ends_it(tmp_path: Path) -> None:
    ended = ahpd(tmp_path, "--port", "0", "--endpoint-file", "no/such/folder")
    assert ended.returncode == exits.CANNOT_SERVE
    [said] = ended.stderr.decode().splitlines()
    assert said.startswith("ahpd: cannot write no/such/folder: ")


async def test_without_a_token_the_url_has_none(tmp_path: Path, wire: Wiretap) -> None:
    with daemon(tmp_path, "--without-connection-token") as host:
        assert "tkn" not in host.url
        async with peer(host.url, wire.connection()) as client:
            assert "snapshots" in await client.hello()
        assert not (host.state / "token").exists()


async def test_a_capture_is_legal_and_holds_no_token(tmp_path: Path, wire: Wiretap) -> None:
    capture = tmp_path / "wire.jsonl"
    with daemon(tmp_path, "--wire", str(capture)) as host:
        token = (host.state / "token").read_text().strip()
        async with peer(host.url, wire.connection()) as client:
            await client.hello()
            await client.begin(f"fail on ws://localhost/?tkn={token}")
            await client.until_action("chat/error")
        async with peer(host.unix, wire.connection()) as client:
            await client.hello()
        assert host.end() == exits.OK
    assert mode(capture) == 0o600
    passed = [json.loads(line) for line in capture.read_bytes().splitlines()]
    assert {line["conn"] for line in passed} == {1, 2}
    assert token not in capture.read_text()
    assert "tkn=***" in capture.read_text()
    ended = ahpd(tmp_path, "wire", "check", str(capture))
    assert ended.returncode == exits.OK, ended.stdout


def test_a_crash_loop_of_what_the_host_needs_ends_it_with_its_own_code(tmp_path: Path) -> None:
    program = """
from ahpd.cli import main
from ahpd.journal.sqlite import SqliteJournal
async def write(self, batch):
    raise ValueError("what is this?")
SqliteJournal.write = write
main()
"""
    port = str(free_port())
    command = [sys.executable, "-c", program, "serve", "--port", port, "--quiet"]
    with subprocess.Popen(
        command, stderr=subprocess.PIPE, env=support.environment(tmp_path), cwd=tmp_path
    ) as process:
        try:
            assert process.stderr is not None
            token = tmp_path / "xdg_state_home" / "ahpd" / "endpoint.json"
            support.until(lambda: token.exists() or process.poll() is not None)
            with socket.socket(socket.AF_UNIX) as sock:
                sock.connect(str(token.with_name("ahpd.sock")))
                sock.sendall(support.lines([support.call(1, "initialize", support.INITIALIZE)]))
                for number in range(2, 40):  # each an envelope that cannot be kept
                    create = {"channel": f"demo:/{number}"}
                    sock.sendall(support.lines([support.call(number, "createSession", create)]))
                said = process.stderr.read().decode()
                assert process.wait(PATIENCE) == exits.HOST_FAILED
        finally:
            process.kill()
    assert "sequencer" in said.splitlines()[-1]
    assert said.splitlines()[-1].startswith("ahpd: ")
