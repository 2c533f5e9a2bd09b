"""``ahpd demo`` end to end, and what its checks find when something is wrong."""

from __future__ import annotations

import io
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import trio
from rich.console import Console

from ahpd.cli import exits
from ahpd.cli.demo import host as hosting
from ahpd.cli.demo import story
from ahpd.cli.demo.checks import Check, compare, judge
from ahpd.cli.demo.crash import missing
from ahpd.cli.demo.host import HostFailed, HostProcess, host_process
from ahpd.cli.demo.screen import Screen
from ahpd.cli.demo.story import Stage
from ahpd.cli.demo.view import View
from ahpd.cli.group import run
from ahpd.cli.shown import width
from ahpd.client import Client, open_client
from ahpd.protocol import ROOT
from ahpd.protocol.chat import ChatState
from ahpd.protocol.codec import decode
from ahpd.protocol.frame import frame
from ahpd.protocol.session import SessionState
from ahpd.transports.memory import MemoryTransport, memory_pair
from tests.cli.daemons import RUDE, WITHIN, ended, environment, spawn

pytestmark = pytest.mark.real_time

DEMO = [sys.executable, "-m", "ahpd", "demo"]
CHECKS = [
    "both screens equal the host",
    "every dispatch was answered",
    "every turn ended once on each screen",
    "the editor came back by replay",
    "the lost actor touched one turn only",
    "numbers only grew on each screen",
    "the host stopped when asked",
]


def test_json_says_what_was_shown(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["demo", "--json"]) == exits.OK, capsys.readouterr().out
    told = capsys.readouterr()
    (text,) = told.out.splitlines()
    found = json.loads(text)
    assert found["ok"] is True
    assert [check["name"] for check in found["checks"]] == CHECKS
    assert all(check["ok"] for check in found["checks"])
    assert [turn["state"] for turn in found["turns"]] == ["complete", "error", "complete"]
    assert found["replayed"] > 0
    assert found["differences"] == []
    assert len(found["steps"]) == 13


CRASH_CHECKS = [
    "every dispatch was answered",
    "every turn ended once on each screen",
    "the editor came back by replay",
    "the phone came back by replay",
    "nothing that was accepted is lost",
    "numbers only grew on each screen",
    "both screens equal the host",
    "the host stopped when asked",
]


def test_the_crash_in_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["demo", "--crash", "--json"]) == exits.OK, capsys.readouterr().out
    found = json.loads(capsys.readouterr().out)
    assert found["ok"] is True
    assert [check["name"] for check in found["checks"]] == CRASH_CHECKS
    assert [turn["state"] for turn in found["turns"]] == ["error", "complete"]
    assert set(found["replays"]) == {"editor", "phone"}
    assert min(found["replays"].values()) > 0


def test_the_crash_on_a_terminal_and_its_summary() -> None:
    child = spawn([*DEMO, "--crash"], columns=80, lines=24)
    child.expect(r"process (\d+),")
    pid = int(child.match.group(1))
    child.expect_exact("SIGKILL")
    assert gone(pid)
    child.expect_exact("\x1b[?1049l")
    child.expect_exact("All of it holds.")
    assert ended(child) == exits.OK
    text = child.before + child.after if isinstance(child.after, str) else child.before
    assert max(map(len, text.splitlines()), default=0) <= 80


def test_an_interrupt_while_no_host_runs_ends_it() -> None:
    child = spawn([*DEMO, "--crash"], columns=50, lines=12)
    child.expect_exact("is killed")
    child.sendintr()
    assert ended(child) == exits.INTERRUPTED
    assert "Traceback" not in child.before


def test_what_a_screen_was_told_and_does_not_hold_any_more_is_lost() -> None:
    def chat(text: str, *queued: str, draft: str | None = None) -> ChatState:
        part = {"kind": "markdown", "id": "p", "content": text}
        raw: dict[str, Any] = {
            "resource": "ahp-chat:/c",
            "title": "",
            "status": 8,
            "modifiedAt": "2026-01-01T00:00:00Z",
            "turns": [],
            "activeTurn": {
                "id": "t",
                "message": _said("ask"),
                "responseParts": [part],
                "startedAt": "2026-01-01T00:00:00Z",
            },
            "queuedMessages": [{"id": each, "message": _said(each)} for each in queued],
        }
        return decode(ChatState, raw | ({"draft": _said(draft)} if draft else {}))

    before = chat("Half an ans", "m", draft="d")
    assert list(missing("editor", before, before)) == []
    assert list(missing("editor", before, chat("Half an answer", "m", draft="d"))) == []
    assert len(list(missing("editor", before, chat("Half", draft="e")))) == 3


def _said(text: str) -> dict[str, Any]:
    return {"text": text, "origin": {"kind": "user"}}


def test_plain_lines_without_a_terminal() -> None:
    done = subprocess.run(
        DEMO, env=environment(), capture_output=True, text=True, timeout=WITHIN, check=False
    )
    assert done.returncode == exits.OK, done.stdout + done.stderr
    assert done.stderr == ""
    assert "\x1b" not in done.stdout
    for name in CHECKS:
        assert f"  ok   {name}" in done.stdout
    assert "All of it holds." in done.stdout
    assert max(map(len, done.stdout.splitlines())) <= 80


def test_the_live_view_leaves_the_terminal_as_it_was() -> None:
    child = spawn(DEMO, columns=80, lines=24)
    child.expect_exact("\x1b[?1049h")
    child.expect_exact("serverSeq")
    child.expect_exact("both screens ask")
    child.expect_exact("\x1b[?1049l")
    child.expect_exact("All of it holds.")
    assert ended(child) == exits.OK


def test_an_interrupt_ends_everything() -> None:
    child = spawn(DEMO, columns=80, lines=24)
    child.expect(r"process (\d+),")
    pid = int(child.match.group(1))
    child.expect_exact("the answer streams")
    child.sendintr()
    child.expect_exact("\x1b[?1049l")
    assert ended(child) == exits.INTERRUPTED
    assert "Traceback" not in child.before
    assert gone(pid)


def test_a_small_terminal_gets_plain_lines() -> None:
    child = spawn(DEMO, columns=50, lines=12)
    child.expect(r"process (\d+),")
    pid = int(child.match.group(1))
    assert "\x1b[?1049h" not in child.before
    child.sendintr()
    assert ended(child) == exits.INTERRUPTED
    assert gone(pid)


def test_a_termination_ends_its_host_too() -> None:
    with subprocess.Popen(DEMO, env=environment(), stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        first = process.stdout.readline()
        pid = int(first.partition("process ")[2].partition(",")[0])
        process.terminate()
        assert process.wait(WITHIN) == 128 + signal.SIGTERM
    assert gone(pid)


def gone(pid: int) -> bool:
    """Whether a process that was told to end has ended."""
    until = time.monotonic() + WITHIN
    while time.monotonic() < until:
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return True
        time.sleep(0.02)
    return False


# ---- what goes wrong ----------------------------------------------------------------------------


def test_a_host_that_does_not_start_is_told_of(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(hosting, "PYTHON", "/bin/echo")
    assert run(["demo"]) == exits.FAULTS
    told = capsys.readouterr().out
    assert "The story broke off: the host did not start: -m ahpd serve" in told
    assert "Not all of it holds." in told


async def test_a_host_that_does_not_stop_is_made_to(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    deaf = tmp_path / "deaf"
    deaf.write_text(
        f"#!{sys.executable}\nimport signal, time\n"
        "signal.signal(signal.SIGTERM, signal.SIG_IGN)\nprint(1, flush=True)\ntime.sleep(600)\n"
    )
    deaf.chmod(0o700)
    monkeypatch.setattr(hosting, "PYTHON", str(deaf))
    monkeypatch.setattr(hosting, "STOP_WITHIN", 0.2)
    with trio.fail_after(WITHIN):
        async with host_process(tmp_path) as host:
            while not await trio.Path(tmp_path / "host.log").read_bytes():
                await trio.sleep(0.01)
    assert host.killed
    assert host.stopped == -signal.SIGKILL


async def test_a_host_that_dies_at_once_says_why(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(hosting, "PYTHON", "/bin/false")
    async with host_process(tmp_path) as host:
        with pytest.raises(HostFailed, match="it said nothing"):
            await host.ready()


def test_a_story_that_gets_stuck_fails(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(story, "WITHIN", 0.0)
    assert run(["demo"]) == exits.FAULTS
    told = capsys.readouterr().out
    assert "The story broke off: this did not happen in 0 s: the editor joins" in told


def root(number: int, agents: int = 0) -> Any:
    agent = {"provider": "a", "displayName": "A", "description": "", "models": []}
    return {
        "resource": ROOT,
        "state": {"agents": [agent] * agents},
        "fromSeq": number,
    }


async def answered(client: MemoryTransport, snapshot: Any) -> None:
    """A host that knows one thing: this snapshot of the root."""
    request = json.loads(await client.receive())
    result = {"protocolVersion": "1.0.0", "serverSeq": 1, "snapshots": [snapshot]}
    await client.send([frame({"jsonrpc": "2.0", "id": request["id"], "result": result})])


async def client_of(nursery: trio.Nursery, snapshot: Any, done: trio.Event) -> Client:
    near, far = memory_pair()

    async def connect() -> MemoryTransport:
        await trio.lowlevel.checkpoint()
        return near

    async def hold(task_status: trio.TaskStatus[Client]) -> None:
        async with open_client(connect, client_id="c", backoff=None) as client:
            task_status.started(client)
            await done.wait()

    nursery.start_soon(answered, far, snapshot)
    client: Client = await nursery.start(hold)
    return client


async def test_a_screen_that_differs_is_found() -> None:
    done = trio.Event()
    async with trio.open_nursery() as nursery:
        witness = await client_of(nursery, root(7, agents=1), done)
        right, wrong = Screen("right"), Screen("wrong")
        right.client = await client_of(nursery, root(7, agents=1), done)
        wrong.client = await client_of(nursery, root(7), done)
        check, found = compare([right], witness, [ROOT])
        assert (check.ok, found) == (True, [])
        assert check.seen == "1 channel each, at number 7"
        check, found = compare([right, wrong], witness, [ROOT])
        assert not check.ok
        assert found[0].startswith("wrong: ahp-root://: agents/0: expected {")
        assert check.seen == "1 difference"
        done.set()


def test_the_record_of_a_screen_that_saw_nothing_proves_nothing() -> None:
    found = {
        check.name: check for check in judge((Screen("editor"), Screen("phone")), untouched=False)
    }
    assert not found["the editor came back by replay"].ok
    assert not found["every turn ended once on each screen"].ok
    assert not found["the lost actor touched one turn only"].ok
    assert isinstance(found["every dispatch was answered"], Check)


# ---- the picture --------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [(64, 20), (80, 24), (120, 40), (200, 60)])
def test_the_picture_fits_before_anything_is_there(size: tuple[int, int]) -> None:
    lines = picture(Stage(lambda _: None, 0), size)
    assert len(lines) == size[1]
    assert all(width(line) <= size[0] for line in lines)


def picture(stage: Stage, size: tuple[int, int]) -> list[str]:
    file = io.StringIO()
    Console(file=file, width=size[0], height=size[1]).print(View(stage))
    return file.getvalue().splitlines()


async def test_the_picture_shows_the_end_of_a_long_chat_and_nothing_that_steers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    stage = Stage(lambda _: None, 0)
    message = {"text": f"ask {RUDE}", "origin": {"kind": "user"}}
    call = {
        "status": "pending-confirmation",
        "toolCallId": "k",
        "toolName": "dig",
        "displayName": RUDE,
        "invocationMessage": RUDE,
        "options": [{"id": "o", "label": RUDE, "kind": "approve"}],
    }
    chat = {
        "resource": "ahp-chat:/c",
        "title": "",
        "status": 24,
        "modifiedAt": "2026-01-01T00:00:00.000Z",
        "turns": [],
        "activeTurn": {
            "id": "t",
            "startedAt": "2026-01-01T00:00:00.000Z",
            "message": message,
            "responseParts": [
                {"kind": "reasoning", "id": "r", "content": RUDE},
                {"kind": "markdown", "id": "m", "content": f"{RUDE}\n" * 500 + "日本語" * 99},
                {"kind": "toolCall", "toolCall": call},
            ],
        },
    }
    session = {
        "provider": RUDE,
        "title": RUDE,
        "status": 24,
        "activity": RUDE,
        "lifecycle": "ready",
        "activeClients": [{"clientId": RUDE, "tools": []}],
        "chats": [],
    }
    monkeypatch.setattr(Screen, "chat_state", decode(ChatState, chat))
    monkeypatch.setattr(Screen, "session_state", decode(SessionState, session))
    stage.editor.note(RUDE)
    lines = picture(stage, (80, 24))
    assert len(lines) == 24
    assert all(width(line) <= 80 for line in lines)
    text = "".join(lines)
    assert not [c for c in text if ord(c) < 32 or 0x7F <= ord(c) < 0xA0 or c == "\u202e"]
    assert "waits for approval" in text
    assert r"1 \x1b[31mred" in text


def test_the_host_process_keeps_its_token_to_itself() -> None:
    host = HostProcess(None, Path("x"), url="ws://127.0.0.1:1/?tkn=secret")  # type: ignore[arg-type]
    assert "secret" not in host.address
    assert "secret" not in repr(host)
