"""The agents that are known, and what their programs say when they are asked who they are."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from ahpd.agents.acp.known import installed_agents, known_agents, package_version
from ahpd.agents.acp.probing import Answer, probe
from ahpd.daemon.config import is_agent_name
from tests.agents.acp.support import PATIENCE, ROGUE


def test_the_list() -> None:
    known = known_agents()
    assert len(known) >= 15
    assert all(is_agent_name(each.name) for each in known)
    assert len({each.name for each in known}) == len(known)
    assert len({each.command[0] for each in known}) == len(known)
    assert all(each.notes.endswith(".") for each in known)
    by_name = {each.name: each for each in known}
    assert by_name["opencode"].install == "npm install -g opencode-ai"
    assert by_name["hermes"].install == "pipx install 'hermes-agent[acp]'"
    assert by_name["goose"].install is None


def test_what_is_installed(tmp_path: Path) -> None:
    package = tmp_path / "lib" / "opencode"
    (package / "bin").mkdir(parents=True)
    (package / "package.json").write_text('{"name": "opencode-ai", "version": "1.2.3"}')
    program = package / "bin" / "opencode"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    folder = tmp_path / "bin"
    folder.mkdir()
    (folder / "opencode").symlink_to(program)
    (folder / "gemini").write_text("not to be run")
    assert [each.name for each in installed_agents(str(folder))] == ["opencode"]
    assert package_version(folder / "opencode") == "1.2.3"
    (package / "package.json").write_text("[]")
    assert package_version(folder / "opencode") is None
    assert package_version(folder / "gemini") is None


async def asked(start: Sequence[str], *, within: float = PATIENCE, only: bool = False) -> Answer:
    command = (sys.executable, "-S", str(ROGUE), *start)
    return await probe(command, {}, "1", within=within, handshake_only=only)


@pytest.mark.real_time
async def test_whether_somebody_has_to_sign_in() -> None:
    assert await asked([]) == Answer(needs_sign_in=False, sign_in=("Browser",))
    assert await asked(["needs-auth"]) == Answer(needs_sign_in=True, sign_in=("Browser",))
    assert await asked(["needs-auth"], only=True) == Answer(sign_in=("Browser",))


@pytest.mark.real_time
@pytest.mark.parametrize(
    ("start", "problem"),
    [
        ("new-version", "it speaks version 2 of ACP only"),
        ("dies", "the agent ended with exit code 1; it said last:\n"),
        ("chatty", "the agent ended with exit code 0; it said last:\nthis program is no longer"),
        ("silent", "it did not answer within 0.5 s"),
    ],
)
async def test_one_that_cannot_be_used(start: str, problem: str) -> None:
    answer = await asked([start], within=0.5 if start == "silent" else PATIENCE)
    assert answer.problem is not None
    assert answer.problem.startswith(problem)


@pytest.mark.real_time
async def test_one_that_is_not_there() -> None:
    answer = await probe(("/nowhere/agent",), {}, "1", within=PATIENCE)
    assert answer.problem is not None
    assert "/nowhere/agent" in answer.problem


@pytest.mark.real_time
@pytest.mark.parametrize("dies", ["stderr", "refuses"])
async def test_what_it_says_is_shown_without_what_is_secret(dies: str) -> None:
    says = {
        "stderr": "sys.stderr.write(secret); sys.exit(1)",
        "refuses": "print(json.dumps({'id': 0, 'error': {'code': 1, 'message': secret}}))",
    }[dies]
    program = f"import json, os, sys; sys.stdin.readline(); secret = os.environ['A_KEY']; {says}"
    command = (sys.executable, "-S", "-c", program)
    answer = await probe(command, {"A_KEY": "luck", "B": "x"}, "1", within=PATIENCE)
    assert answer.problem is not None
    assert answer.problem.endswith("***")
    assert "luck" not in answer.problem
