"""A real daemon whose disk is full, fails, or is not what it was."""

from __future__ import annotations

import json
import resource
import signal
import sqlite3
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import trio

from ahpd.cli import exits
from tests.daemon.support import CHAT, SESSION, Daemon, Peer, ahpd, daemon, peer
from tests.journal.support import sql
from tests.wire import Wiretap

pytestmark = pytest.mark.real_time

#: More than fits anywhere where a test leaves no room.
LONG = "x" * 50_000


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A folder on a disk of its own, of 4 MiB."""
    state = tmp_path / "state"
    state.mkdir()
    made = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=4m", "ahpd-test", str(state)],
        capture_output=True, check=False,
    )  # fmt: skip
    if made.returncode:
        pytest.skip("disks can be made by root alone")
    yield tmp_path
    subprocess.run(["umount", "-l", str(state)], check=True)


@contextmanager
def no_room(host: Daemon) -> Iterator[None]:
    """Its disk is full."""
    filler = host.state / "filler"
    with filler.open("wb", buffering=0) as file:
        try:
            while True:
                file.write(bytes(4096))
        except OSError:
            pass
    yield
    filler.unlink()


@contextmanager
def failing_writes(host: Daemon) -> Iterator[None]:
    """No file of its may grow, which is an input/output error to SQLite."""
    limits = resource.prlimit(host.process.pid, resource.RLIMIT_FSIZE)
    longest = max(each.stat().st_size for each in host.state.iterdir())
    resource.prlimit(host.process.pid, resource.RLIMIT_FSIZE, (longest, limits[1]))
    yield
    resource.prlimit(host.process.pid, resource.RLIMIT_FSIZE, limits)


def draft(number: int, text: str = LONG) -> Any:
    return {
        "channel": CHAT,
        "clientSeq": number,
        "action": {
            "type": "chat/draftChanged",
            "draft": {"text": text, "origin": {"kind": "user"}},
        },
    }


async def status(host: Daemon, folder: Path) -> Any:
    """What the command says, as JSON."""

    def ask() -> Any:
        said = ahpd(folder, "status", "--json", "--state-dir", str(host.state))
        assert said.returncode == exits.OK, said.stderr
        return json.loads(said.stdout)

    return await trio.to_thread.run_sync(ask)


async def echo(client: Peer, number: int) -> None:
    """Wait until this dispatch was answered."""
    while True:
        message = client.heard.pop(0) if client.heard else await client.next()
        if message.get("params", {}).get("origin", {}).get("clientSeq") == number:
            return


async def is_deaf(host: Daemon, folder: Path, client: Peer, sentence: str) -> None:
    """It says nothing that it cannot keep, answers what needs nothing kept, and says why."""
    while (facts := await status(host, folder))["journal"]["failing"] is None:
        await trio.sleep(0.05)
    assert sentence in facts["journal"]["failing"]
    assert facts["journal"]["waitingBytes"] > len(LONG)
    assert await client.request("ping") is None
    assert [each for each in client.heard if each.get("method") == "action"] == []


async def goes_on(folder: Path, wire: Wiretap, host: Daemon, fault: Any, sentence: str) -> None:
    async with peer(host.unix, wire.connection()) as client:
        await client.hello()
        await client.request("createSession", channel=SESSION)
        await client.request("subscribe", channel=CHAT)
        await client.send("dispatchAction", draft(1, "a"))
        await echo(client, 1)
        client.heard.clear()
        with fault(host):
            for number in range(2, 30):
                await client.send("dispatchAction", draft(number, LONG + str(number)))
            # As many as there was room for are answered.
            answered = 0
            with trio.move_on_after(3):
                while True:
                    client.heard.append(await client.next())
            answered = len(client.heard)
            assert answered < 28
            client.heard.clear()
            await is_deaf(host, folder, client, sentence)
        await echo(client, 29)
        facts = await status(host, folder)
        assert (facts["journal"], facts["pid"]) == (
            {"failing": None, "waitingBytes": 0},
            host.process.pid,
        )
    assert host.end(signal.SIGKILL) == -signal.SIGKILL


async def came_back(folder: Path, wire: Wiretap, name: str = "state") -> None:
    with daemon(folder, name=name) as host:
        async with peer(host.unix, wire.connection()) as client:
            await client.hello()
            state = (await client.request("subscribe", channel=CHAT))["snapshot"]["state"]
            assert state["draft"]["text"] == LONG + "29"
        assert host.end() == exits.OK
        assert b"Traceback" not in host.said


async def test_b38_a_full_disk_is_a_pause(small_disk: Path, wire: Wiretap) -> None:
    with daemon(small_disk) as host:
        await goes_on(small_disk, wire, host, no_room, "the disk is full: ")
    assert b"the journal works again" in host.said
    await came_back(small_disk, wire)


async def test_an_input_output_error_is_a_pause(tmp_path: Path, wire: Wiretap) -> None:
    with daemon(tmp_path) as host:
        await goes_on(tmp_path, wire, host, failing_writes, "failed (input/output error)")
    await came_back(tmp_path, wire)


def test_what_cannot_be_used_at_the_start_is_said_and_has_a_code(tmp_path: Path) -> None:
    file = tmp_path / "state" / "journal.db"

    def refused(code: int, sentence: str) -> None:
        ended = ahpd(tmp_path, "--port", "0", "--state-dir", str(file.parent))
        [said] = ended.stderr.decode().splitlines()
        assert said.startswith("ahpd: the journal: ")
        assert (ended.returncode, str(file) in said) == (code, True)
        assert sentence in said

    file.parent.mkdir()
    file.write_text("Dear diary,\n" * 99)
    refused(exits.JOURNAL_UNUSABLE, "is no journal")
    file.unlink()
    with daemon(tmp_path) as host:
        host.end()
    sql(file, "PRAGMA user_version = 99")
    refused(exits.JOURNAL_UNUSABLE, "was written by a newer ahpd")
    sql(file, "PRAGMA user_version = 1")
    holder = sqlite3.connect(file, isolation_level=None)
    holder.execute("PRAGMA locking_mode = EXCLUSIVE")
    holder.execute("BEGIN EXCLUSIVE")
    refused(exits.CANNOT_SERVE, "is locked by another program")
    holder.execute("ROLLBACK")
    holder.close()


async def test_a_journal_that_is_spoiled_under_a_running_host_ends_it_in_a_sentence(
    tmp_path: Path, wire: Wiretap
) -> None:
    with daemon(tmp_path) as host:
        async with peer(host.unix, wire.connection()) as client:
            await client.hello()
            await client.request("createSession", channel=SESSION)
            await client.request("subscribe", channel=CHAT)
            sql(host.state / "journal.db", "DROP TABLE envelopes")
            await client.send("dispatchAction", draft(1, "a"))
            await client.until_closed()
        assert await trio.to_thread.run_sync(host.process.wait, 30) == exits.JOURNAL_UNUSABLE
        host.end()
    last = host.said.decode().splitlines()[-1]
    assert last.startswith("ahpd: the journal: ")
    assert "is damaged: its tables are not those of a journal" in last
    assert "Traceback" not in host.said.decode()


def test_a_lock_that_was_left_and_a_pid_that_is_another_process_keep_nobody_out(
    tmp_path: Path,
) -> None:
    with daemon(tmp_path) as host:
        host.end(signal.SIGKILL)
    lock = host.state / "lock"
    assert lock.read_text().strip() == str(host.process.pid)
    lock.write_text("1\n")  # init, which lives
    with daemon(tmp_path) as host:
        assert lock.read_text().strip() == str(host.process.pid)
        second = ahpd(tmp_path, "--port", "0", "--state-dir", str(host.state))
        assert second.returncode == exits.ALREADY_RUNNING
        assert f"the daemon with pid {host.process.pid} runs on" in second.stderr.decode()
        assert host.end() == exits.OK


async def test_a_journal_that_was_taken_away_ends_the_host(tmp_path: Path, wire: Wiretap) -> None:
    """What is written then is gone with the process, and its numbers would be used again."""
    with daemon(tmp_path) as host:
        async with peer(host.unix, wire.connection()) as client:
            await client.hello()
            await client.request("createSession", channel=SESSION)
            await client.request("subscribe", channel=CHAT)
            for name in ("journal.db", "journal.db-wal", "journal.db-shm"):
                (host.state / name).unlink(missing_ok=True)
            await client.send("dispatchAction", draft(1, "a"))
            await trio.to_thread.run_sync(host.process.wait, 30)
        assert host.end() == exits.JOURNAL_UNUSABLE
        assert "journal.db was removed or replaced while it was in use" in host.said.decode()
