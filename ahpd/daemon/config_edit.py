"""Writes to the configuration file, and leaves in it what people wrote: comments, order, spaces."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import tomlkit
from tomlkit.exceptions import TOMLKitError
from tomlkit.items import InlineTable

from ahpd.daemon.config import AGENT_NAME, is_agent_name
from ahpd.daemon.config_file import read_config
from ahpd.daemon.errors import ConfigError


def add_agent(
    file: Path,
    name: str,
    command: Sequence[str],
    environment: Mapping[str, str],
    *,
    replace: bool,
    warn: Callable[[str], None],
) -> None:
    """Put ``[agents.NAME]`` into the file, which is made when there is none.

    What the file holds afterwards is checked before it takes the old one's place; `warn` is as for
    `read_config`. Without `replace` an agent that is there is not touched. Blocks. Raises
    `ConfigError`.
    """
    if not is_agent_name(name):
        raise ConfigError(f"expected {AGENT_NAME}, got {name}")
    target = file.resolve()  # it may be a link into a folder where people keep such files
    document = _read(target)
    agents = document.setdefault("agents", tomlkit.table(is_super_table=True))
    if not isinstance(agents, dict):
        raise ConfigError(f"{target}: agents: expected a table of agents by name")
    if name in agents and not replace:
        raise ConfigError(f"{target}: there is an agent {name} already; --replace replaces it")
    agent: Any = tomlkit.inline_table() if isinstance(agents, InlineTable) else tomlkit.table()
    agent["kind"] = "acp"
    agent["command"] = list(command)
    if environment:
        agent["env"] = dict(environment)
    agents[name] = agent
    _write(target, tomlkit.dumps(document), warn)


def _read(file: Path) -> Any:
    try:
        return tomlkit.parse(file.read_text("utf-8"))
    except FileNotFoundError:
        return tomlkit.document()
    except OSError as error:
        raise ConfigError(f"{file}: {error.strerror}") from None
    except (TOMLKitError, UnicodeDecodeError) as error:
        raise ConfigError(f"{file}: this is not TOML: {error}") from None


def _write(file: Path, text: str, warn: Callable[[str], None]) -> None:
    """Whole or not at all, with the mode that it had; a new one is private, as it may hold keys."""
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        mode = file.stat().st_mode & 0o777 if file.exists() else 0o600
        made, name = tempfile.mkstemp(dir=file.parent, prefix=file.name)
    except OSError as error:
        raise ConfigError(f"{file}: cannot be written: {error.strerror}") from None
    try:
        with os.fdopen(made, "w", encoding="utf-8") as out:
            out.write(text)
            out.flush()
            os.fsync(out.fileno())
        os.chmod(name, mode)
        _check(Path(name), file, warn)
        os.replace(name, file)
    except OSError as error:
        raise ConfigError(f"{file}: cannot be written: {error.strerror}") from None
    finally:
        Path(name).unlink(missing_ok=True)


def _check(made: Path, file: Path, warn: Callable[[str], None]) -> None:
    def named(sentence: str) -> str:
        return sentence.replace(str(made), str(file))

    try:
        read_config(made, lambda sentence: warn(named(sentence)))
    except ConfigError as error:
        raise ConfigError(named(str(error))) from None
