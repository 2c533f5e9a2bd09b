"""An agent is written into a configuration file, and what people wrote there stays."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ahpd.daemon.config import AgentConfig
from ahpd.daemon.config_edit import add_agent
from ahpd.daemon.config_file import read_config
from ahpd.daemon.errors import ConfigError
from tests.daemon.support import mode

TEXT = """\
# My host.
port = 0   # any

[agents.first] # stays
kind = "acp"
command = [
    "a", # the program
]

[limits]
grace_seconds = 7
"""


def never(sentence: str) -> None:
    raise AssertionError(sentence)


def add(file: Path, name: str = "second", command: Any = ("b", "--acp"), **more: Any) -> None:
    given: dict[str, Any] = {"replace": False, "warn": never, **more}
    add_agent(file, name, command, given.pop("environment", {}), **given)


def test_a_new_file_is_private(tmp_path: Path) -> None:
    file = tmp_path / "new" / "config.toml"
    add(file, environment={"KEY": 'a "secret"'})
    assert mode(file) == 0o600
    assert read_config(file, never).agents == {
        "second": AgentConfig(kind="acp", command=("b", "--acp"), env={"KEY": 'a "secret"'})
    }
    assert [each.name for each in file.parent.iterdir()] == ["config.toml"]


def test_what_is_there_stays(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    file.write_text(TEXT)
    file.chmod(0o644)
    link = tmp_path / "link.toml"
    link.symlink_to(file)
    add(link)
    assert link.is_symlink()
    assert mode(file) == 0o644
    assert all(line in file.read_text().splitlines() for line in TEXT.splitlines())
    config = read_config(file, never)
    assert list(config.agents) == ["first", "second"]
    assert config.limits.grace_seconds == 7


@pytest.mark.parametrize("text", ["agents = {}\n", "agents.first = {kind = 'scripted'}\n", ""])
def test_every_way_to_write_a_table(text: str, tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    file.write_text(text)
    add(file)
    assert read_config(file, never).agents["second"].command == ("b", "--acp")


def test_one_that_is_there_is_replaced_when_that_is_wanted(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    file.write_text(TEXT)
    with pytest.raises(ConfigError, match="there is an agent first already"):
        add(file, "first")
    assert file.read_text() == TEXT
    add(file, "first", replace=True)
    assert read_config(file, never).agents["first"].command == ("b", "--acp")


@pytest.mark.parametrize(
    ("text", "name", "fault"),
    [
        ("port = ", "second", "this is not TOML"),
        ("port = 70000", "second", "port: expected a whole number"),
        ("agents = 3", "second", "agents: expected a table"),
        ("", "Second", "expected a name of lower-case letters"),
        ("", "http", "is no scheme of files"),
    ],
)
def test_a_file_with_a_fault_is_left_alone(
    text: str, name: str, fault: str, tmp_path: Path
) -> None:
    file = tmp_path / "config.toml"
    file.write_text(text)
    with pytest.raises(ConfigError, match=fault) as raised:
        add(file, name)
    assert str(file) in str(raised.value) or not text
    assert file.read_text() == text
    assert [each.name for each in tmp_path.iterdir()] == ["config.toml"]
