from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from ahpd.cli import exits
from ahpd.cli.stdio import read
from tests.daemon.support import (
    CHAT,
    INITIALIZE,
    PATIENCE,
    SESSION,
    ahpd,
    call,
    daemon,
    environment,
    lines,
    mode,
    turn,
    until,
)
from tests.wire import Connection, Wiretap

pytestmark = pytest.mark.real_time

BEGIN = [
    call(1, "initialize", INITIALIZE),
    call(2, "createSession", {"channel": SESSION}),
    call(3, "subscribe", {"channel": CHAT}),
]


def dispatch(prompt: str) -> Any:
    return {"jsonrpc": "2.0", "method": "dispatchAction", "params": turn(prompt)}


def told(output: bytes, wire: Connection) -> list[Any]:
    """Every line is a legal frame of the host's, and there is nothing else."""
    assert output.endswith(b"\n") or not output
    found = []
    for line in output.split(b"\n")[:-1]:
        wire.received(line)
        found.append(json.loads(line))
    return found


@contextmanager
def started(folder: Path, *arguments: str, **options: Any) -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen(
        [sys.executable, "-m", "ahpd", "--stdio", *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment(folder),
        cwd=folder,
        **options,
    )
    with process:
        try:
            yield process
        finally:
            process.kill()


def speak(process: subprocess.Popen[bytes], wire: Connection, messages: list[Any]) -> None:
    assert process.stdin is not None
    for message in messages:
        wire.sent(message)
    process.stdin.write(lines(messages))
    process.stdin.flush()


def hear(process: subprocess.Popen[bytes], wire: Connection) -> Any:
    assert process.stdout is not None
    line = process.stdout.readline()
    wire.received(line)
    return json.loads(line)


def until_action(process: subprocess.Popen[bytes], wire: Connection, name: str) -> Any:
    while True:
        message = hear(process, wire)
        if message.get("method") == "action" and message["params"]["action"]["type"] == name:
            return message["params"]["action"]


def test_all_that_was_asked_is_answered_when_stdin_has_ended_already(
    tmp_path: Path, wire: Wiretap
) -> None:
    client = wire.connection()
    asked = [
        *BEGIN,
        *(call(number, "ping", {"channel": "ahp-root://"}) for number in range(4, 40)),
        call(40, "listSessions", {"channel": "ahp-root://"}),
    ]
    for message in asked:
        client.sent(message)
    ended = ahpd(tmp_path, "--stdio", given=lines(asked))
    assert ended.returncode == exits.OK
    answers = {it["id"]: it for it in told(ended.stdout, client) if "id" in it}
    assert sorted(answers) == list(range(1, 41))
    assert len(answers[40]["result"]["items"]) == 1
    assert ended.stderr == b""


def test_what_was_dispatched_last_is_echoed(tmp_path: Path, wire: Wiretap) -> None:
    client = wire.connection()
    asked = [*BEGIN, dispatch("hang")]
    for message in asked:
        client.sent(message)
    ended = ahpd(tmp_path, "--stdio", given=lines(asked))
    actions = [it["params"]["action"]["type"] for it in told(ended.stdout, client) if "id" not in it
               and it["method"] == "action"]  # fmt: skip
    assert "chat/turnStarted" in actions
    assert ended.returncode == exits.OK


@pytest.mark.parametrize("given", [b"", b"\n \r\n\n"])
def test_nothing_said_is_nothing_answered(given: bytes, tmp_path: Path) -> None:
    ended = ahpd(tmp_path, "--stdio", given=given)
    assert (ended.returncode, ended.stdout, ended.stderr) == (exits.OK, b"", b"")


def test_a_conversation_and_its_end_in_the_middle_of_a_turn(tmp_path: Path, wire: Wiretap) -> None:
    client = wire.connection()
    with started(tmp_path) as process:
        speak(process, client, [*BEGIN, dispatch("take long")])
        until_action(process, client, "chat/delta")
        output, logged = process.communicate(timeout=PATIENCE)
        told(output, client)
        assert (process.returncode, logged) == (exits.OK, b"")


def test_lines_end_at_line_feeds_and_nowhere_else(tmp_path: Path, wire: Wiretap) -> None:
    prompt = "a\u2028b\u2029c\u0085d\u000be"
    script = tmp_path / "echo.json"
    script.write_text('{"turns": [{"steps": [{"echo": true}]}]}')
    client = wire.connection()
    with started(tmp_path, "--agent", f"demo=scripted:{script}") as process:
        raw = json.dumps(dispatch(prompt), ensure_ascii=False).replace("\\u000b", "\\u000b")
        speak(process, client, BEGIN)
        client.sent(raw)
        assert process.stdin is not None
        process.stdin.write(b"\r\n" + raw.encode() + b"\r\n")
        process.stdin.flush()
        said = until_action(process, client, "chat/responsePart")
        assert said["part"]["content"] == prompt


@pytest.mark.parametrize(
    ("line", "code"),
    [
        (b'{"jsonrpc":"2.0","id":7,"method":"ping","params":{"x":NaN}}', -32700),
        (b"[" * 100_000, -32700),
        (b'"\xff"', -32700),
        (b'{"jsonrpc":"2.0","id":7}', -32600),
    ],
)  # fmt: skip
def test_garbage_is_answered_and_ends_nothing(
    line: bytes, code: int, tmp_path: Path, wire: Wiretap
) -> None:
    ended = ahpd(tmp_path, "--stdio", given=line + b"\n" + lines(BEGIN))
    first, *others = told(ended.stdout, wire.connection(legal="c2h"))
    assert first["error"]["code"] == code
    assert [it["id"] for it in others if "id" in it] == [1, 2, 3]
    assert ended.returncode == exits.OK


def test_a_line_over_the_limit_ends_it(tmp_path: Path) -> None:
    (tmp_path / "c.toml").write_text("[limits]\nmessage_bytes = 2000\n")
    ended = ahpd(tmp_path, "--stdio", "--config", "c.toml", given=lines(BEGIN[:1]) + b"x" * 5000)
    assert ended.returncode == exits.PEER_BROKE
    answers = [json.loads(line) for line in ended.stdout.splitlines()]
    error = next(it["error"] for it in answers if it["id"] is None)
    assert (error["code"], error["message"]) == (-32600, "a line is longer than 2000 bytes")
    # What came before it counts.
    assert any(it["id"] == 1 and "result" in it for it in answers)
    assert ended.stderr.decode().splitlines() == ["ahpd: stdio: a line is longer than 2000 bytes"]


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGTERM, exits.OK), (signal.SIGINT, exits.INTERRUPTED)]
)
def test_a_signal_ends_it_in_order(number: int, code: int, tmp_path: Path, wire: Wiretap) -> None:
    client = wire.connection()
    with started(tmp_path) as process:
        speak(process, client, BEGIN[:1])
        hear(process, client)
        process.send_signal(number)
        assert process.wait(PATIENCE) == code
        assert process.stderr is not None
        assert process.stderr.read() == b""


def test_who_does_not_read_does_not_keep_it(tmp_path: Path) -> None:
    # Nobody reads its stdout, which is full, and stdin ends: it gives up within its bounds.
    with started(tmp_path) as process:
        assert process.stdin is not None
        process.stdin.write(lines([BEGIN[0]]) + b"{\n" * 3000)
        process.stdin.close()
        assert process.wait(PATIENCE) == exits.OK


def test_its_stdout_is_nobody_elses(tmp_path: Path, wire: Wiretap) -> None:
    # A stray print, and a child of its, would break the protocol.
    program = (
        "import sys, os; from ahpd.cli import main; import ahpd.daemon.hosting as h; "
        "real = h.build_agents; "
        "stray = lambda: (print('stray'), os.system('echo stray; cat')); "
        "h.build_agents = lambda *a, **k: (stray(), real(*a, **k))[1]; "
        "sys.argv = ['ahpd', '--stdio']; main()"
    )
    ended = subprocess.run(
        [sys.executable, "-c", program],
        input=lines(BEGIN),
        capture_output=True,
        timeout=PATIENCE,
        env=environment(tmp_path),
        check=True,
    )
    answers = told(ended.stdout, wire.connection(legal="h2c"))
    assert [it["id"] for it in answers if "id" in it] == [1, 2, 3]
    assert ended.stderr.count(b"stray") == 2


def test_it_takes_the_options_that_make_sense(tmp_path: Path, wire: Wiretap) -> None:
    script = tmp_path / "echo.json"
    script.write_text('{"turns": [{"steps": [{"echo": true}]}]}')
    (tmp_path / "served").mkdir()
    arguments = ["--agent", f"echo=scripted:{script}", "--path=served", "--log-level=error"]
    arguments += ["--wire", "wire.jsonl", "--state-dir", "state"]
    ended = ahpd(tmp_path, "--stdio", *arguments, given=lines(BEGIN[:1]))
    [answer] = told(ended.stdout, wire.connection(legal="h2c"))
    [root] = answer["result"]["snapshots"]
    assert [agent["provider"] for agent in root["state"]["agents"]] == ["echo"]
    assert answer["result"]["defaultDirectory"] == (tmp_path / "served").as_uri()
    assert len((tmp_path / "wire.jsonl").read_bytes().splitlines()) == 2
    assert mode(tmp_path / "state") == 0o700


def test_one_with_a_state_folder_can_be_looked_into(tmp_path: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "ahpd", "--stdio", "--state-dir", "state"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=environment(tmp_path),
        cwd=tmp_path,
    )
    until((tmp_path / "state" / "look.sock").exists)
    seen = ahpd(tmp_path, "ps", "listeners", "--json", "--state-dir", "state")
    paths = [each["path"] for each in json.loads(seen.stdout)["actors"]]
    assert paths == ["listeners", "listeners/look", "listeners/stdio"]
    process.communicate(timeout=PATIENCE)
    assert process.returncode == exits.OK


def test_a_state_folder_that_is_taken_is_refused(tmp_path: Path) -> None:
    with daemon(tmp_path) as host:
        ended = ahpd(tmp_path, "--stdio", "--state-dir", str(host.state))
        assert ended.returncode == exits.ALREADY_RUNNING
        assert ended.stdout == b""


def test_without_stdin_it_says_so(tmp_path: Path) -> None:
    ended = subprocess.run(
        ["/bin/sh", "-c", '"$0" -m ahpd --stdio <&-', sys.executable],
        capture_output=True,
        timeout=PATIENCE,
        env=environment(tmp_path),
        check=False,
    )
    assert ended.returncode == exits.USAGE
    assert b"must be open" in ended.stderr


def test_what_it_does_not_know_is_explained_by_the_ordinary_way(tmp_path: Path) -> None:
    ended = ahpd(tmp_path, "--stdio", "--unheard-of")
    assert ended.returncode == exits.USAGE
    assert b"No such option" in ended.stderr
    assert ended.stdout == b""
    assert b"Usage" in ahpd(tmp_path, "serve", "--stdio", "--help").stdout


@pytest.mark.parametrize(
    "option",
    [
        ["--port", "5"],
        ["--port", "0"],
        ["--host", "127.0.0.1"],
        ["--connection-token", "t"],
        ["--connection-token-file", "t"],
        ["--without-connection-token"],
        ["--endpoint-file", "e"],
    ],
    ids=lambda option: " ".join(option),
)
def test_what_is_for_listeners_is_not_for_it(tmp_path: Path, option: list[str]) -> None:
    ended = ahpd(tmp_path, "--stdio", *option)
    assert ended.returncode == exits.USAGE
    assert f"{option[0]} is not for --stdio" in ended.stderr.decode()
    assert ended.stdout == b""


def test_by_the_ordinary_way_it_is_the_same(tmp_path: Path, wire: Wiretap) -> None:
    ended = ahpd(tmp_path, "serve", "--stdio", "--log-level", "info", "--quiet", given=lines(BEGIN))
    answers = told(ended.stdout, wire.connection(legal="h2c"))
    assert [it["id"] for it in answers if "id" in it] == [1, 2, 3]


def test_it_starts_without_what_only_others_need(tmp_path: Path) -> None:
    program = (
        "import sys; from ahpd.cli import main; sys.argv = ['ahpd', '--stdio']\n"
        "try: main()\n"
        "finally: print(*{name.partition('.')[0] for name in sys.modules}, file=sys.stderr)"
    )
    ended = subprocess.run(
        [sys.executable, "-c", program],
        input=lines(BEGIN[:1]),
        capture_output=True,
        timeout=PATIENCE,
        env=dict(environment(tmp_path), PYTHONPATH=os.pathsep.join(sys.path)),
        check=True,
    )
    loaded = set(ended.stderr.decode().split())
    assert "trio" in loaded
    assert not loaded & {"click", "rich", "trio_websocket", "wsproto", "h11", "cattrs", "tomllib"}


@pytest.mark.parametrize(
    ("arguments", "found"),
    [
        ("--stdio", {}),
        ("serve --stdio --quiet", {}),
        ("--path a --stdio --path=b", {"--path": ["a", "b"]}),
        ("--stdio --config", None),
        ("--stdio --port 1", None),
        ("--stdio --help", None),
        ("start --stdio", None),
        ("serve", None),
        ("", None),
    ],
)
def test_which_command_lines_go_the_short_way(arguments: str, found: object) -> None:
    assert read(arguments.split()) == found
