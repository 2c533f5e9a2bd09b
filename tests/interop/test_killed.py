"""A conversation with an agent outlives a host that is killed, and its agent does not."""

from __future__ import annotations

import os
import shlex
import signal
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.agents.acp.support import ROGUE
from tests.daemon.support import CHAT, SESSION, daemon, peer, turn, until

pytestmark = pytest.mark.real_time


async def test_a_conversation_outlives_a_host_that_is_killed(
    tmp_path: Path, wire: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = tmp_path / "log"
    monkeypatch.setenv("ROGUE_HOME", str(tmp_path))
    monkeypatch.setenv("ROGUE_LOG", str(log))
    rogue = shlex.join([sys.executable, "-S", str(ROGUE), "loads", str(log)])
    # It outlives the end of its input, as some do.
    command = shlex.join(["sh", "-c", f"{rogue}; exec sleep 100001.{os.getpid()}"])
    for number in range(1, 4):
        with daemon(tmp_path, "--agent", f"demo=acp:{command}", "--path", str(tmp_path)) as host:
            async with peer(host.url, wire.connection()) as ann:
                await ann.hello()
                if number == 1:
                    await ann.request("createSession", channel=SESSION)
                await ann.request("subscribe", channel=CHAT)
                wanted = turn("hello")
                wanted["action"]["turnId"] = f"t{number}"
                wanted["clientSeq"] = number
                await ann.send("dispatchAction", wanted)
                await ann.until_action("chat/turnComplete")
                snapshot = (await ann.request("subscribe", channel=CHAT))["snapshot"]
            assert host.end(signal.SIGKILL) == -signal.SIGKILL
        turns = snapshot["state"]["turns"]
        assert [each["id"] for each in turns] == [f"t{each + 1}" for each in range(number)]
        for each in turns:
            assert [part["content"] for part in each["responseParts"]] == ["Hello\u2028you\u0085."]
    assert log.read_text().count("session/new") == 1
    assert log.read_text().count("session/load") == 2
    until(lambda: not running(f"{ROGUE}\0loads\0{log}"))
    until(lambda: running(f"sleep\000100001.{os.getpid()}"))
    with daemon(tmp_path):
        assert not running(f"sleep\000100001.{os.getpid()}"), "a host ends what the last one left"


def running(command: str) -> bool:
    """Whether there is a process whose command line has this in it."""
    for entry in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if command.encode() in entry.read_bytes():
                return True
        except OSError:
            continue
    return False
