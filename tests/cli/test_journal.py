"""The commands that look into the journal, beside a daemon and without one."""

from __future__ import annotations

import json
import signal
from pathlib import Path
from typing import Any

import pytest
import trio

from ahpd.cli import exits
from tests.daemon.support import CHAT, SESSION, Daemon, ahpd, daemon, peer
from tests.journal.support import sql
from tests.wire import Wiretap

pytestmark = pytest.mark.real_time


class Commands:
    """Runs them on one state folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.state = folder / "state"
        self.file = self.state / "journal.db"

    def run(self, *arguments: str) -> Any:
        return ahpd(self._folder, *arguments, "--state-dir", str(self.state))

    def json(self, *arguments: str, code: int = exits.OK) -> Any:
        ended = self.run(*arguments, "--json")
        assert (ended.returncode, ended.stderr) == (code, b"")
        return json.loads(ended.stdout)

    async def beside(self, *arguments: str, code: int = exits.OK) -> Any:
        return await trio.to_thread.run_sync(lambda: self.json(*arguments, code=code))


async def played(host: Daemon, wire: Wiretap, prompt: str, ends: str) -> None:
    async with peer(host.unix, wire.connection()) as client:
        await client.hello()
        await client.begin(prompt)
        await client.until_action(ends)


async def test_they_work_while_a_daemon_runs_and_after_it_was_killed(
    tmp_path: Path, wire: Wiretap
) -> None:
    commands = Commands(tmp_path)
    with daemon(tmp_path) as host:
        await played(host, wire, "please fail", "chat/error")
        async with peer(host.unix, wire.connection()) as client:
            await client.request("initialize", channel="ahp-root://", protocolVersions=["1.0.0"],
                                 clientId="other")  # fmt: skip
            stats = await commands.beside("journal", "stats")
            assert stats["walBytes"] > 0
            assert stats["rows"]["channels"] == 4
            assert 0 < stats["liveBytes"] < stats["fileBytes"] + stats["walBytes"]
            assert await commands.beside("journal", "verify") == {"ok": True, "faults": []}
            found = await commands.beside("verify")
            assert found == {"ok": True, "channels": 4, "compared": 4, "faults": []}
        refused = commands.run("journal", "compact")
        assert refused.returncode == exits.ALREADY_RUNNING
        assert b"stop it first: ahpd stop" in refused.stderr
        host.end(signal.SIGKILL)
    before = commands.json("journal", "stats")
    assert commands.json("journal", "verify")["ok"]
    assert commands.json("verify")["compared"] is None
    assert commands.json("journal", "stats") == before  # to look changes nothing
    lines = commands.run("journal", "export", SESSION).stdout.splitlines()
    rows = [json.loads(each) for each in lines]
    kinds = [row.get("kind") for row in rows if row["type"] == "channel"]
    assert sorted(kinds) == ["annotations", "chat", "session"]
    [chat] = [row for row in rows if row.get("channel") == CHAT]
    said = [row["params"] for row in rows if row["type"] == "envelope"]
    assert [each["serverSeq"] for each in said] == sorted(each["serverSeq"] for each in said)
    assert [each["action"]["type"] for each in said if each["channel"] == CHAT][-1] != ""
    assert chat["state"]["turns"][0]["state"] == "error" or said
    text = commands.run("journal", "stats").stdout.decode()
    assert str(commands.file) in text
    compacted = commands.json("journal", "compact")
    assert compacted["after"] > 0
    assert commands.json("verify")["ok"]


async def at_rest(file: Path) -> None:
    """Wait until the daemon has written what follows from what it was asked for."""
    look = "SELECT max(seq), (SELECT group_concat(hex(summary)) FROM channels) FROM envelopes"
    before, same = sql(file, look), 0
    while same < 5:
        await trio.sleep(0.1)
        now = sql(file, look)
        before, same = now, same + 1 if now == before else 0


async def test_what_is_not_the_same_is_told_with_its_place(tmp_path: Path, wire: Wiretap) -> None:
    """The daemon goes on from other numbers than the file has: somebody wrote into it."""
    commands = Commands(tmp_path)
    with daemon(tmp_path) as host:
        await played(host, wire, "please fail", "chat/error")
        await at_rest(commands.file)
        sql(commands.file, "DELETE FROM envelopes WHERE seq = (SELECT max(seq) FROM envelopes)")
        sql(commands.file, "UPDATE channels SET summary = x'00' WHERE kind = 'session'")
        found = await commands.beside("journal", "verify", code=exits.FAULTS)
        assert any("is listed is not what was written" in each for each in found["faults"])
        host.end(signal.SIGKILL)
    sql(commands.file, "UPDATE channels SET state = replace(state, 'demo', 'dxmo')")
    found = commands.json("verify", code=exits.FAULTS)
    assert {"channel": SESSION, "message": "its snapshot cannot be read"} in found["faults"]
    ended = commands.run("verify")
    assert ended.returncode == exits.FAULTS
    assert f"{SESSION}: its snapshot cannot be read" in ended.stdout.decode()
    partly = commands.run("journal", "export", SESSION)
    assert partly.returncode == exits.FAULTS
    assert b'"type": "damaged"' in partly.stdout


async def test_a_state_that_is_not_the_daemons_is_told_with_its_place(
    tmp_path: Path, wire: Wiretap
) -> None:
    from ahpd.journal.sums import checksum

    commands = Commands(tmp_path)
    with daemon(tmp_path) as host:
        async with peer(host.unix, wire.connection()) as client:
            await client.hello()
            await client.request("createSession", channel=SESSION)
            await client.request("subscribe", channel=SESSION)
            [row] = sql(
                commands.file, "SELECT key, at, state, turns FROM channels WHERE uri = ?", SESSION
            )
            key, at, state, turns = row
            other = state.replace(b'"provider":"demo"', b'"provider":"dumbo"')
            assert other != state
            sql(
                commands.file, "UPDATE channels SET state = ?, crc = ? WHERE key = ?",
                other, checksum(key, at, other, turns), key,
            )  # fmt: skip
            found = await commands.beside("verify", code=exits.FAULTS)
    [fault] = found["faults"]
    assert fault["channel"] == SESSION
    assert "provider: expected" in fault["message"]
    assert '"dumbo"' in fault["message"]


def test_what_there_is_not_is_said(tmp_path: Path) -> None:
    commands = Commands(tmp_path)
    for arguments in (("stats",), ("verify",), ("compact",), ("export", "demo:/1")):
        ended = commands.run("journal", *arguments)
        assert ended.returncode == exits.USAGE, arguments
        assert f"there is no journal {commands.file}" in ended.stderr.decode()
    assert commands.run("verify").returncode == exits.USAGE
    commands.state.mkdir(mode=0o700)
    commands.file.write_text("Dear diary,\n" * 99)
    for arguments in (("stats",), ("compact",), ("export", "demo:/1")):
        ended = commands.run("journal", *arguments)
        assert ended.returncode == exits.JOURNAL_UNUSABLE, arguments
        assert b"is no journal" in ended.stderr
    assert commands.json("journal", "verify", code=exits.FAULTS)["ok"] is False
    assert commands.json("verify", code=exits.FAULTS)["ok"] is False
    assert commands.file.read_text() == "Dear diary,\n" * 99


def test_a_session_that_is_not_there_is_said(tmp_path: Path) -> None:
    with daemon(tmp_path) as host:
        host.end()
    ended = Commands(tmp_path).run("journal", "export", "demo:/none")
    assert ended.returncode == exits.USAGE
    assert b"there is no session demo:/none in" in ended.stderr
