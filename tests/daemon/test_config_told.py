"""README.md names every key that can be set, with its default."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import attrs
from msgspec import structs

from actors.host import Host, Settings
from actors.root_config import SETTINGS, config_state
from ahpd.daemon.config import AgentConfig, Config, LimitsConfig
from ahpd.daemon.hosting import build_host

README = Path(__file__).parents[2] / "README.md"


def rows() -> dict[str, str]:
    """Key -> what stands in the column of its default, in the section about configuration."""
    _, _, rest = README.read_text("utf-8").partition("\n## Configuration\n")
    section, _, _ = rest.partition("\n### Scripts\n")
    found = {}
    for line in section.splitlines():
        if line.startswith("| `"):
            names, default, _ = line.strip("| ").split(" | ", 2)
            found.update(dict.fromkeys(re.findall(r"`([^`]+)`", names), default))
    return found


def keys() -> Iterator[tuple[str, object]]:
    """Every key of the file, with its default."""
    tables = {"limits", "journal", "log", "telemetry", "wire"}
    config = Config()
    for field in attrs.fields(Config):
        value = getattr(config, field.name)
        if field.name in tables:
            for inner in attrs.fields(type(value)):
                yield f"{field.name}.{inner.name}", getattr(value, inner.name)
        elif field.name != "agents":
            yield field.name, value
    for inner in attrs.fields(AgentConfig):
        yield f"agents.NAME.{inner.name}", getattr(AgentConfig(), inner.name)


#: What a host is called, and how closely writes to the journal may follow one another, which is
#: too short a time for anybody to notice.
_NOT_SET = {"name", "pace"}


def host() -> Host:
    return build_host(Config(), seed=1, paths=())


def test_every_key_of_the_file_and_of_the_root_has_a_row_and_no_row_is_about_another() -> None:
    assert rows().keys() == {key for key, _ in keys()} | SETTINGS.keys()


def test_the_defaults_that_are_told_are_those_that_count() -> None:
    told = rows()
    for key, value in keys():
        if value not in (None, (), {}):
            shown = f'`"{value}"`' if isinstance(value, str) else f"{value:.0f}"
            if isinstance(value, bool):
                shown = f"`{str(value).lower()}`"
            assert told[key].startswith(shown), key
    for key, value in config_state(host()).values.items():
        assert told[key] == f"{value:.0f}", key


def test_every_setting_of_the_host_is_one_of_the_file() -> None:
    """A file in which nothing has its default leaves none of the host's settings as they were."""
    other: dict[str, Any] = {
        name: 60.0 + value if isinstance(value, float) else 2 * value
        for name, value in attrs.asdict(LimitsConfig()).items()
        if value is not None
    }
    config = Config(grants="deny", limits=LimitsConfig(**other, draft_seconds=99.0))
    made = build_host(config, seed=1, paths=(Path("/srv"),)).settings
    for field in structs.fields(Settings):
        if field.name not in _NOT_SET:
            assert getattr(made, field.name) != field.default, field.name
