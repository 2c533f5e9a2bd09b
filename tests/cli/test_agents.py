"""``ahpd agents``: what there is, is found and is written; and a newcomer's first turn."""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path
from typing import Any

import pytest

from ahpd.cli import exits
from ahpd.cli.group import run
from ahpd.protocol.uris import URI, default_chat
from tests.agents.acp.support import ROGUE
from tests.daemon.support import daemon, peer

pytestmark = pytest.mark.real_time

SESSION = URI("opencode:/11111111-1111-4111-8111-111111111111")
CHAT = default_chat(SESSION)


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder in ``PATH`` with one agent that answers, and one that has to be signed in."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for name, start in (("opencode", ""), ("qwen", "needs-auth")):
        program = folder / name
        rogue = shlex.join([sys.executable, "-S", str(ROGUE)])
        program.write_text(f"#!/bin/sh\necho {name} >> {tmp_path}/started\nexec {rogue} {start}\n")
        program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")
    monkeypatch.setenv("ROGUE_HOME", str(tmp_path))
    return folder


def listed(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    assert run(["agents", "--json", *arguments]) == exits.OK
    return {each["name"]: each for each in json.loads(capsys.readouterr().out)["agents"]}


def test_the_list(programs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config = tmp_path / "config.toml"
    config.write_text(
        '[agents.mine]\nkind = "acp"\ncommand = ["none-such"]\n[agents.played]\nkind = "scripted"\n'
    )
    told = listed(capsys, "--config", str(config))
    assert list(told)[:4] == ["mine", "played", "opencode", "qwen"]
    assert len(told) >= 2 + 15
    opencode, qwen, mine = told["opencode"], told["qwen"], told["mine"]
    assert (opencode["source"], opencode["installed"]) == ("found", True)
    assert opencode["program"] == str(programs / "opencode")
    assert (opencode["answers"], opencode["needsSignIn"]) == (True, False)
    assert (qwen["answers"], qwen["needsSignIn"], qwen["signIn"]) == (True, True, ["Browser"])
    assert (mine["source"], mine["installed"], mine["answers"]) == ("configured", False, None)
    assert told["played"]["installed"]
    assert (told["goose"]["source"], told["goose"]["installed"]) == ("known", False)


def test_the_list_for_people(programs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["agents", "--config", "/dev/null", "--no-start"]) == exits.OK
    shown = capsys.readouterr().out.splitlines()
    assert shown[0].split() == ["NAME", "AGENT", "VERSION", "ANSWERS", "SIGN-IN", "FROM"]
    assert shown[1].split() == ["opencode", "opencode", "-", "not", "asked", "-", "found", "here"]
    assert "  claude      npm install -g @agentclientprotocol/claude-agent-acp" in shown


def test_one_is_added(programs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config = str(tmp_path / "config.toml")
    mine = ["agents", "add", "mine", "--config", config, "--env", "KEY=a=b", "--", "qwen", "--env"]
    assert run(mine) == exits.OK
    assert run(["agents", "add", "opencode", "--config", config]) == exits.OK
    capsys.readouterr()
    told = listed(capsys, "--config", config, "--no-start")
    assert told["mine"]["command"] == ["qwen", "--env"]
    assert told["mine"]["source"] == told["opencode"]["source"] == "configured"
    assert "qwen" not in [name for name, each in told.items() if each["source"] == "found"]
    assert 'KEY = "a=b"' in Path(config).read_text()


@pytest.mark.parametrize(
    "arguments", [["add", "unheard-of"], ["add", "x", "--env", "KEY", "--", "y"], ["add", "X", "y"]]
)
def test_what_cannot_be_added(arguments: list[str], tmp_path: Path) -> None:
    config = tmp_path / "config.toml"
    assert run(["agents", *arguments[:2], "--config", str(config), *arguments[2:]]) == exits.USAGE
    assert not config.exists()


async def test_what_is_found_is_offered(programs: Path, tmp_path: Path, wire: Any) -> None:
    """Nobody has written a file, and a turn with a real program works."""
    with daemon(tmp_path) as host:
        async with peer(host.url, wire.connection()) as ann:
            root = (await ann.hello())["snapshots"][0]["state"]
            assert [each["provider"] for each in root["agents"]] == ["demo", "opencode", "qwen"]
            titles = [each["displayName"] for each in root["agents"]]
            assert titles[1:] == ["opencode", "Qwen Code"]
            await ann.request("listSessions")
            where = {"provider": "opencode", "workingDirectories": [tmp_path.as_uri()]}
            await ann.request("createSession", channel=SESSION, **where)
            await ann.request("subscribe", channel=CHAT)
            message = {"text": "hello", "origin": {"kind": "user"}}
            when = "2031-01-01T00:00:00.000Z"
            action = {"type": "chat/turnStarted", "turnId": "t1", "startedAt": when}
            params = {"channel": CHAT, "clientSeq": 1, "action": {**action, "message": message}}
            await ann.send("dispatchAction", params)
            await ann.until_action("chat/turnComplete")
        host.end()
    started = set((tmp_path / "started").read_text().split())
    assert started == {"opencode"}, "none is started before it is used"


async def test_with_agents_on_the_command_line_there_are_no_others(
    programs: Path, tmp_path: Path, wire: Any
) -> None:
    with daemon(tmp_path, "--agent", f"mine=acp:{programs / 'qwen'}") as host:
        async with peer(host.url, wire.connection()) as ann:
            root = (await ann.hello())["snapshots"][0]["state"]
            assert [each["provider"] for each in root["agents"]] == ["mine"]
        host.end()
