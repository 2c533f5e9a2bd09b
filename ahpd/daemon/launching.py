"""From what the command line says to a `Launch`: flags over the file over the defaults."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import attrs

from ahpd.daemon.config import AGENT_NAME, AgentConfig, Config, is_agent_name
from ahpd.daemon.errors import ConfigError
from ahpd.daemon.launch import Launch, TokenChoice
from ahpd.protocol.discreet import Discreet


class Flags(Discreet, frozen=True, kw_only=True):
    """The options of the command line as they were given; None or empty: not given."""

    hidden = frozenset({"token", "arguments"})

    host: str | None = None
    port: int | None = None
    config: str | None = None
    state_dir: str | None = None
    agents: Sequence[str] = ()
    paths: Sequence[str] = ()
    token: str | None = None
    token_file: str | None = None
    without_token: bool = False
    endpoint_file: str | None = None
    wire: str | None = None
    wire_format: str | None = None
    log_level: str | None = None
    quiet: bool = False
    #: All of them as they came.
    arguments: Sequence[str] = ()


def make_launch(flags: Flags, warn: Callable[[str], None]) -> Launch:
    """What to run; `warn` gets sentences about what is passed over.

    Blocks. Raises `ConfigError`.
    """
    config = _with_flags(load(flags.config, warn), flags)
    given = (flags.token is not None, flags.token_file is not None, flags.without_token)
    if sum(given) > 1:
        raise ConfigError(
            "only one of --connection-token, --connection-token-file and "
            "--without-connection-token can be given"
        )
    return Launch(
        config=config,
        paths=[Path(path) for path in flags.paths],
        state_dir=_path(flags.state_dir),
        token=TokenChoice(flags.token, _path(flags.token_file), flags.without_token),
        endpoint_file=_path(flags.endpoint_file),
        wire=_path(flags.wire),
        quiet=flags.quiet,
        arguments=flags.arguments,
    )


def load(file: str | None, warn: Callable[[str], None]) -> Config:
    """The configuration: of `file`, or of the usual place when there is one, or the defaults."""
    path = Path(file) if file is not None else default_file()
    if file is None and not path.exists():
        return Config()
    from ahpd.daemon.config_file import read_config  # noqa: PLC0415 - only with a file to read

    try:
        return read_config(path, warn)
    except FileNotFoundError:
        if file is None:  # it has gone since
            return Config()
        raise ConfigError(f"{path}: there is no such file") from None


def default_file() -> Path:
    """Where the configuration file is when nobody says otherwise."""
    if sys.platform == "linux":  # as platformdirs has it, whose import an editor would wait for
        base = os.environ.get("XDG_CONFIG_HOME", "").strip()
        return Path(base or Path.home() / ".config") / "ahpd" / "config.toml"
    import platformdirs  # noqa: PLC0415

    return platformdirs.user_config_path("ahpd", appauthor=False) / "config.toml"


def _with_flags(config: Config, flags: Flags) -> Config:
    changes: dict[str, Any] = {}
    if flags.host is not None:
        changes["host"] = _checked("host", flags.host, "--host")
    if flags.port is not None:
        changes["port"] = _checked("port", flags.port, "--port")
    if flags.agents:
        changes["agents"] = dict(_agents(flags.agents))
        changes["find_agents"] = False  # those are meant, and no others
    if flags.wire_format is not None:
        shape = attrs.fields(type(config.wire)).format
        checked = _check(shape, flags.wire_format, "--wire-format")
        changes["wire"] = attrs.evolve(config.wire, format=checked)
    if flags.log_level is not None:
        log = attrs.fields(type(config.log)).level
        changes["log"] = attrs.evolve(config.log, level=_check(log, flags.log_level, "--log-level"))
    return attrs.evolve(config, **changes)


def _checked(name: str, value: Any, flag: str) -> Any:
    return _check(getattr(attrs.fields(Config), name), value, flag)


def _check(field: attrs.Attribute[Any], value: Any, flag: str) -> Any:
    if not field.metadata["fits"](value):
        raise ConfigError(f"{flag}: expected {field.metadata['expected']}, got {value}")
    return value


def _agents(texts: Iterable[str]) -> Iterator[tuple[str, AgentConfig]]:
    for text in texts:
        name, equals, what = text.partition("=")
        kind, colon, rest = what.partition(":")
        if not (equals and colon and rest.strip() and kind in ("scripted", "acp")):
            raise ConfigError(
                f"--agent: expected NAME=scripted:FILE or NAME=acp:COMMAND, got {text}"
            )
        if not is_agent_name(name):
            raise ConfigError(f"--agent: expected {AGENT_NAME}, got {name}")
        if kind == "scripted":
            yield name, AgentConfig(kind=kind, script=rest)
        else:
            yield name, AgentConfig(kind=kind, command=_command(rest))


def _command(text: str) -> tuple[str, ...]:
    """A command line as a shell splits it."""
    import shlex  # noqa: PLC0415 - only with such an agent

    try:
        words = shlex.split(text)
    except ValueError as error:
        raise ConfigError(f"--agent: expected a command, got {text}: {error}") from None
    return place_program(words)


def place_program(command: Sequence[str]) -> tuple[str, ...]:
    """A command whose program, when it is named by a path, is named by a whole one."""
    program, *arguments = command
    if "/" in program:
        program = str(Path(program).expanduser().absolute())
    return (program, *arguments)


def _path(text: str | None) -> Path | None:
    return None if text is None else Path(text).expanduser()
