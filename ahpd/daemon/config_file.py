"""Reads the configuration file: TOML into the classes of `ahpd.daemon.config`.

What does not fit is named with file and key and what was expected; keys that nobody knows are named
once, and passed over, so that a file can serve an older program too.
"""

from __future__ import annotations

import collections.abc
import functools
import shlex
import tomllib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, get_origin

import attrs
import cattrs

from ahpd.daemon.config import AGENT_NAME, AgentConfig, Config, is_agent_name
from ahpd.daemon.errors import ConfigError

_Hook = Callable[[Any, Any], Any]


class _Misfit(Exception):
    """A value is not what its key takes; `path` is where it is, from the outside in."""

    def __init__(self, expected: str, found: str, *path: str) -> None:
        super().__init__(expected)
        self.expected = expected
        self.found = found
        self.path = path

    def below(self, step: str) -> _Misfit:
        return _Misfit(self.expected, self.found, step, *self.path)


def read_config(path: Path, warn: Callable[[str], None]) -> Config:
    """The configuration in a file; `warn` is called with a sentence for each unknown key.

    File names in it are taken from the file's folder. Blocks. Raises `ConfigError`, and
    `FileNotFoundError` when there is no such file.
    """
    try:
        with path.open("rb") as file:
            value = tomllib.load(file)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise ConfigError(f"{path}: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path}: this is not TOML: {error}") from None
    try:
        config: Config = _converter().structure(value, Config)
    except _Misfit as misfit:
        where = ".".join(misfit.path) or "the file"
        raise ConfigError(
            f"{path}: {where}: expected {misfit.expected}, got {misfit.found}"
        ) from None
    for key in _unknown(value, Config):
        warn(f"{path}: {key}: there is no such key; it is passed over")
    return _from_folder(config, path.parent)


def _from_folder(config: Config, folder: Path) -> Config:
    def at(name: str) -> str:
        return str(folder / Path(name).expanduser())

    def placed(agent: AgentConfig) -> AgentConfig:
        script = None if agent.script is None else at(agent.script)
        # A bare name is looked for where programs are.
        program = [at(each) if "/" in each else each for each in agent.command[:1]]
        return attrs.evolve(agent, script=script, command=(*program, *agent.command[1:]))

    agents = {name: placed(agent) for name, agent in config.agents.items()}
    log = config.log
    if log.file is not None:
        log = attrs.evolve(log, file=at(log.file))
    path = tuple(at(each) for each in config.path)
    return attrs.evolve(config, agents=agents, path=path, log=log)


# --- structuring: cattrs finds the hook of each type, the hook says precisely what does not fit ---


@functools.cache
def _converter() -> cattrs.Converter:
    # Not cattrs' own validation: it collects what is wrong in groups, and one sentence will do.
    made = cattrs.Converter(detailed_validation=False)
    made.register_structure_hook(str, _exactly("a string", str))
    made.register_structure_hook(bool, _exactly("true or false", bool))
    made.register_structure_hook(int, _exactly("a whole number", int))
    made.register_structure_hook(float, _number)
    made.register_structure_hook(bool, _exactly("true or false", bool))
    made.register_structure_hook_func(lambda hint: hint == (str | None), _exactly("a string", str))
    made.register_structure_hook_func(lambda hint: hint == tuple[str, ...], _texts)
    made.register_structure_hook_func(_is_mapping, functools.partial(_agents, made))
    made.register_structure_hook_func(lambda hint: hint == Mapping[str, str], _variables)
    servers = Mapping[str, Mapping[str, Any]]
    made.register_structure_hook_func(lambda hint: hint == servers, _servers)
    made.register_structure_hook_func(attrs.has, functools.partial(_table, made))
    return made


def _is_mapping(hint: Any) -> bool:
    return get_origin(hint) is collections.abc.Mapping


def _variables(value: Any, _: Any) -> dict[str, str]:
    """Environment variables; what a wrong one holds is not shown."""
    if not isinstance(value, dict):
        raise _Misfit("a table of strings", _shown(value))
    for name, text in value.items():
        if not name or "=" in name or "\0" in name:
            raise _Misfit("the name of an environment variable", _shown(name))
        if not isinstance(text, str) or "\0" in text:
            raise _Misfit("a string", "something else", name)
    return dict(value)


def _servers(value: Any, _: Any) -> dict[str, dict[str, Any]]:
    """MCP servers, as editors write them; what is wrong with one is told when the host starts."""
    if not isinstance(value, dict):
        raise _Misfit("a table of MCP servers by name", _shown(value))
    for name, each in value.items():
        if not isinstance(each, dict):
            raise _Misfit("a table", "something else", name)
    return dict(value)


def _exactly(expected: str, kind: type) -> _Hook:
    def structure(value: Any, _: Any) -> Any:
        if type(value) is not kind:
            raise _Misfit(expected, _shown(value))
        return value

    return structure


def _number(value: Any, _: Any) -> float:
    if type(value) not in (int, float):
        raise _Misfit("a number", _shown(value))
    return float(value)


def _texts(value: Any, _: Any) -> tuple[str, ...]:
    """Several strings; one alone need not be in brackets."""
    values = [value] if isinstance(value, str) else value
    if not isinstance(values, list) or not all(isinstance(each, str) and each for each in values):
        raise _Misfit("a string or an array of strings, none empty", _shown(value))
    return tuple(values)


def _agents(made: cattrs.Converter, value: Any, _: Any) -> dict[str, AgentConfig]:
    if not isinstance(value, dict):
        raise _Misfit("a table of agents by name", _shown(value))
    found = {}
    for name, agent in value.items():
        try:
            if not is_agent_name(name):
                raise _Misfit(AGENT_NAME, "another one")
            found[name] = made.structure(_with_words(agent), AgentConfig)
            fault = found[name].fault
            if fault is not None:
                key, expected = fault
                raise _Misfit(expected, "it" if key in agent else "nothing", key)
        except _Misfit as misfit:
            raise misfit.below(name) from None
    return found


def _with_words(agent: Any) -> Any:
    """A command in one string is split as a shell does it."""
    if not isinstance(agent, dict) or not isinstance(agent.get("command"), str):
        return agent
    try:
        return {**agent, "command": shlex.split(agent["command"])}
    except ValueError as error:
        raise _Misfit("a command", f"one that cannot be split: {error}", "command") from None


def _table(made: cattrs.Converter, value: Any, cls: Any) -> Any:
    if not isinstance(value, dict):
        raise _Misfit("a table", _shown(value))
    given = {}
    for field in attrs.fields(attrs.resolve_types(cls)):
        if field.name not in value:
            continue
        expected, fits = field.metadata.get("expected"), field.metadata.get("fits")
        raw = value[field.name]
        try:
            made_value = made.structure(raw, field.type)
            if fits is not None and not fits(made_value):
                secret = field.metadata.get("secret", False)
                raise _Misfit(expected, "something else" if secret else _shown(raw))
        except _Misfit as misfit:
            # The field knows better than its type what it takes.
            better = misfit if misfit.path or expected is None else _Misfit(expected, misfit.found)
            raise better.below(field.name) from None
        given[field.name] = made_value
    return cls(**given)


def _unknown(value: Mapping[str, Any], cls: Any) -> Iterator[str]:
    """The keys that no class knows, with the tables they are in."""
    known = {field.name: field for field in attrs.fields(attrs.resolve_types(cls))}
    for key, inner in value.items():
        if key not in known:
            yield key
        elif attrs.has(known[key].type):
            yield from (f"{key}.{each}" for each in _unknown(inner, known[key].type))
        elif key == "agents":
            for name, agent in inner.items():
                yield from (f"{key}.{name}.{each}" for each in _unknown(agent, AgentConfig))


def _shown(value: Any) -> str:
    """A value as a person would write it in the file, not too long."""
    text = {True: "true", False: "false"}.get(value) if isinstance(value, bool) else None
    if text is None:
        text = f'"{value}"' if isinstance(value, str) else repr(value)
    return text if len(text) <= 80 else text[:77] + "..."
