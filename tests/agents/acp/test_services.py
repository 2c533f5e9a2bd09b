"""Commands and files that a host runs, reads and writes for an agent."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from ahpd.agents.acp.agent import Options
from ahpd.agents.acp.services import kept
from ahpd.protocol.uris import ROOT
from ahpd.resources.files import FileResources
from ahpd.terminals.pty import PtyTerminals
from tests.actors.support import C, S, actions
from tests.agents.acp.support import rogue
from tests.agents.acp.test_on_a_host import calls, session, state, texts, turn, until

pytestmark = pytest.mark.real_time


@pytest.fixture
def plain_shell(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHELL", "/bin/sh")


def said(done: Any) -> Any:
    return json.loads(texts(done))


@pytest.mark.usefixtures("plain_shell")
async def test_commands_run_on_terminals_of_the_session(tmp_path: Path) -> None:
    agent = rogue(tmp_path, name="puppet")
    async with session(agent, tmp_path, terminals=PtyTerminals()) as (host, ann):
        done = await turn(ann, host, "t1", "command")
        over, output, gone = said(done)
        assert over == {"exitCode": 3, "signal": None}
        assert output == {
            "output": "rld\n",  # the last five bytes begin within a character
            "truncated": True,
            "exitStatus": {"exitCode": 3, "signal": None},
        }
        assert gone == -32002
        (call,) = calls(done)
        (shown,) = call["content"]
        assert (shown["type"], shown["result"]) == (
            "terminal",
            {"exitCode": 3, "preview": "hello w\u00f6rld\n"},
        )
        terminal = state(host, shown["resource"])
        assert "hello w\u00f6rld" in json.dumps(terminal["content"], ensure_ascii=False)
        assert terminal["lifecycle"] == {"status": "exited", "exitCode": 3}
        own = {"kind": "session", "session": S, "chat": C}
        assert terminal["claim"] == own, "the call is over"
        listed = [
            row["claim"]
            for action in actions(ann, ROOT)
            if action["type"] == "root/terminalsChanged"
            for row in action["terminals"]
        ]
        assert {**own, "turnId": "t1", "toolCallId": "t1"} in listed

        assert said(await turn(ann, host, "t2", "kill")) == [-32800, None, True]
        wrong = [-32602, -32602, -32602, -32602, -32002, -32002]
        assert said(await turn(ann, host, "t3", "wrong-commands")) == wrong


@pytest.mark.usefixtures("plain_shell")
async def test_commands_end_with_their_agent_and_stay_to_be_read(tmp_path: Path) -> None:
    agent = rogue(tmp_path, "loads", name="puppet")
    async with session(agent, tmp_path, terminals=PtyTerminals()) as (host, ann):
        assert texts(await turn(ann, host, "t1", "leave")) == "term-1"
        (row,) = state(host, "ahp-root://")["terminals"]
        assert row["lifecycle"]["status"] == "running"
        await turn(ann, host, "t2", "die")
        await until(
            lambda: state(host, "ahp-root://")["terminals"][0]["lifecycle"]["status"] == "exited"
        )


async def test_files_are_those_of_the_chats_folders_when_they_are_offered(tmp_path: Path) -> None:
    agent = structs.replace(rogue(tmp_path, name="puppet"), options=Options(files=True))
    async with session(agent, tmp_path, resources=FileResources()) as (host, ann):
        whole, part, *refused = said(await turn(ann, host, "t1", "files"))
        assert whole == {"content": "1\n2\u00e4\n3\n"}
        assert part == {"content": "2\u00e4\n"}
        assert refused == [-32002, -32602, -32602, -32602, -32602, -32602]
        assert (tmp_path / "new.txt").read_text() == "1\n2\u00e4\n3\n"


async def test_what_is_not_offered_is_not_known(tmp_path: Path) -> None:
    options = Options(terminals=False)
    agent = structs.replace(rogue(tmp_path, name="puppet"), options=options)
    served: dict[str, Any] = {"terminals": PtyTerminals(), "resources": FileResources()}
    async with session(agent, tmp_path, **served) as (host, ann):
        done = await turn(ann, host, "t1", "everything")
        assert texts(done) == "-32601" * 4
        sent = json.loads((tmp_path / "log").read_text().splitlines()[0])
        able = sent["params"]["clientCapabilities"]
        assert able["fs"] == {"readTextFile": False, "writeTextFile": False}
        assert able["terminal"] is False


@pytest.mark.parametrize(
    ("text", "limit", "end", "cut"),
    [
        ("abc", None, "abc", False),
        ("abc", 3, "abc", False),
        ("abc", 2, "bc", True),
        ("\u00e4b", 2, "b", True),
        ("\U0001f600b", 4, "b", True),
        ("\U0001f600", 0, "", True),
    ],
)
def test_the_end_of_an_output_is_kept_between_characters(
    text: str, limit: int | None, end: str, cut: bool
) -> None:
    assert kept(text, limit) == (end, cut)
