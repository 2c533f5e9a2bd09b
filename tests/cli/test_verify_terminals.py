"""``ahpd verify`` compares of a terminal's output what neither side has forgotten."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from ahpd.cli.verify import what_both_have
from tests.cli.daemons import WITHIN, ended, spawn, start_daemon, stop_daemon


def terminal(*texts: str, title: str = "t") -> dict[str, Any]:
    parts = [{"type": "unclassified", "value": text} for text in texts]
    return {"title": title, "content": parts, "lifecycle": {"status": "running"}}


@pytest.mark.parametrize(
    ("one", "two", "same"),
    [
        (terminal("abc"), terminal("abc"), True),
        (terminal("bc"), terminal("abc"), True),
        (terminal("bc", "d"), terminal("x", "abc", "d"), True),
        (terminal("bd"), terminal("abc"), False),
        (terminal("abc", "d"), terminal("abc", "e"), False),
        (terminal("bc", title="u"), terminal("abc"), False),
        ({"turns": [1, 2]}, {"turns": [2]}, False),
        (None, terminal("a"), False),
    ],
)
def test_what_is_compared(one: Any, two: Any, same: bool) -> None:
    first, second = what_both_have(one, two)
    assert (first == second) is same


@pytest.mark.real_time
def test_a_daemon_that_forgot_output_is_found_right(tmp_path: Path) -> None:
    process, daemon = start_daemon(tmp_path)
    try:
        child = spawn(daemon.command("terminal", "--new"))
        child.sendline("seq 400000; echo do''ne")
        child.expect("done\r\n")
        child.send("\x1d")
        assert ended(child) == 0
        found = subprocess.run(
            daemon.command("verify", "--json"), capture_output=True, timeout=WITHIN, check=False
        )
        assert json.loads(found.stdout)["faults"] == []
    finally:
        stop_daemon(process)
