"""Builds a host from a configuration: its agents, its tables and its tree."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

from actors.host import Host, Settings
from actors.tree import make_host
from ahpd import __version__
from ahpd.agents.scripted import ScriptedAgent
from ahpd.daemon.config import AgentConfig, Config
from ahpd.daemon.errors import ConfigError
from ahpd.journal.port import Kept
from ahpd.protocol.model import Object
from ahpd.protocol.uris import URI
from ahpd.resources.files import FileLimits, FileResources
from ahpd.terminals.port import Spawn, Terminal, Terminals

if TYPE_CHECKING:
    from ahpd.agents.port import Agent
    from ahpd.agents.script import Script

_log = logging.getLogger("ahpd.daemon")

#: The agent of a host that was given none.
BUILTIN_NAME = "demo"


def build_host(
    config: Config,
    *,
    seed: int,
    paths: Iterable[Path],
    kept: Kept | None = None,
    mark: str | None = None,
) -> Host:
    """A host as `config` has it, not running yet; `seed` makes the ids it hands out.

    It goes on from what was `kept`.

    `paths` are the folders that are served; agents' programs bear the `mark`. Blocks for the
    agents' files. Raises `ConfigError`.
    """
    limits = config.limits
    settings = Settings(
        client_queue_bytes=limits.client_queue_bytes,
        grace=limits.grace_seconds,
        cancel_within=limits.cancel_seconds,
        silence_limit=limits.silence_seconds,
        client_tool_within=limits.client_tool_seconds,
        reverse_within=limits.client_answer_seconds,
        unheard_within=limits.watch_seconds,
        watches=limits.watches,
        request_within=limits.request_seconds,
        open_requests=limits.open_requests,
        delta_window=limits.delta_window_ms / 1000.0,
        page=limits.page_turns,
        drafts_after=limits.draft_seconds,
        terminals=limits.terminals,
        scrollback=limits.terminal_scrollback,
        terminal_input_bytes=limits.terminal_input_bytes,
        served=tuple(folder_uri(path) for path in paths),
        grants=config.grants,
        version=__version__,
    )
    host = make_host(
        build_agents(config.agents, mark, found=_found(config), servers=_servers(config)),
        wall=time.time,
        steady=time.monotonic,
        seed=seed,
        settings=settings,
        replay=limits.replay_envelopes,
        replay_bytes=limits.replay_bytes,
        kept=kept,
        resources=FileResources(
            FileLimits(
                read_bytes=limits.read_bytes,
                list_entries=limits.list_entries,
                within=limits.file_seconds,
                threads=limits.file_threads,
            )
        ),
        terminals=_Terminals(),
    )
    host.ledger.room.limit = limits.unkept_bytes
    return host


def build_agents(
    agents: Mapping[str, AgentConfig],
    mark: str | None = None,
    found: Mapping[str, AgentConfig] | None = None,
    servers: Object | None = None,
) -> list[Agent]:
    """The agents by name, the built-in one when there are none, and then those that were found.

    `servers` are MCP servers for those that are programs. Raises `ConfigError`.
    """
    configured, found = agents or {BUILTIN_NAME: AgentConfig()}, found or {}
    return [
        _agent(name, agent, mark, servers or {}, waits=name in found)
        for name, agent in {**configured, **found}.items()
    ]


def _servers(config: Config) -> Object:
    """The MCP servers of the configuration; of what is wrong with the others people are warned."""
    if not config.mcp_servers:
        return {}
    from ahpd.agents.acp.servers import read_servers  # noqa: PLC0415 - only when there are some

    read = read_servers(config.mcp_servers)
    for fault in read.faults:
        _log.warning("mcp_servers: %s", fault)
    return {each.name: config.mcp_servers[each.name] for each in read.servers}


def _found(config: Config) -> Mapping[str, AgentConfig]:
    if not config.find_agents:
        return {}
    from ahpd.daemon.agents import found_agents  # noqa: PLC0415 - only when it is wanted

    return found_agents(config.agents)


def _agent(
    name: str, agent: AgentConfig, mark: str | None, servers: Object, *, waits: bool
) -> Agent:
    if agent.kind == "scripted":
        return ScriptedAgent(name, _script(name, agent), title=agent.title)
    from ahpd.agents.acp.agent import MARK, AcpAgent, Options  # noqa: PLC0415 - only with one

    marks = {} if mark is None else {MARK: mark}
    options = Options(
        title=agent.title,
        waits=waits,
        variables=agent.tokens,
        auth_method=agent.auth_method,
        terminals=agent.terminals,
        files=agent.files,
        conversations=agent.conversations,
        servers=servers,
    )
    return AcpAgent(name, agent.command, {**agent.env, **marks}, __version__, options=options)


def _script(name: str, agent: AgentConfig) -> Script | None:
    if agent.script is None:
        return None
    from ahpd.agents.script import ScriptError, load_script  # noqa: PLC0415

    try:
        return load_script(agent.script)
    except ScriptError as error:
        raise ConfigError(f"the agent {name}: {error}") from None


class _Terminals:
    """`PtyTerminals`, which are imported when the first terminal is made."""

    def __init__(self) -> None:
        self._made: Terminals | None = None

    def tells(self) -> bool:
        """See the port."""
        return self._real().tells()

    async def spawn(self, spawn: Spawn) -> Terminal:
        """See the port."""
        return await self._real().spawn(spawn)

    def _real(self) -> Terminals:
        if self._made is None:
            from ahpd.terminals.pty import PtyTerminals  # noqa: PLC0415

            self._made = PtyTerminals()
        return self._made


def folder_uri(path: Path) -> URI:
    """The ``file:`` URI of a folder. Raises `ConfigError` when there is none there."""
    try:
        found = path.expanduser().resolve(strict=True)
    except (OSError, RuntimeError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise ConfigError(f"the path {path} cannot be served: {reason}") from None
    if not found.is_dir():
        raise ConfigError(f"the path {path} cannot be served: it is not a folder")
    return "file://" + quote(str(found).encode())
