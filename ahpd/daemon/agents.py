"""The agents there are: those that are configured, those that are found here, and the known others.

What is found is offered by a daemon as if it had been configured, and started when it is used.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import trio
from msgspec import field, structs

from ahpd import __version__
from ahpd.agents.acp.known import Known, installed_agents, known_agents, package_version
from ahpd.daemon.config import AgentConfig, Config
from ahpd.protocol.discreet import Discreet

if TYPE_CHECKING:
    from ahpd.agents.acp.probing import Answer

#: Programs that are started at the same time to be asked who they are.
AT_ONCE = 4


class Listed(Discreet, frozen=True):
    """An agent, and what is known of it without starting it.

    `source` is where it comes from: the configuration, this machine, or the list of known ones,
    when it is not installed. `program` is the file that is run; None: there is none, or, of a
    script (`command` is empty then), none is needed. The rest is as for `Known`.
    """

    hidden = frozenset({"environment"})

    name: str
    source: Literal["configured", "found", "known"]
    command: Sequence[str] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    program: str | None = None
    title: str | None = None
    package: str | None = None
    install: str | None = None
    notes: str | None = None
    signs_in_late: bool = False

    @property
    def is_installed(self) -> bool:
        """It can be started."""
        return not self.command or self.program is not None

    def version(self) -> str | None:
        """Its version by the package that its program is part of. Reads files."""
        return None if self.program is None else package_version(Path(self.program))


def found_agents(agents: Mapping[str, AgentConfig]) -> dict[str, AgentConfig]:
    """The known agents that are installed and not among the configured ones, by name."""
    return {
        each.name: AgentConfig(kind="acp", title=each.title, command=tuple(each.command))
        for each in installed_agents()
        if not _is_configured(each, agents)
    }


def known_agent(name: str) -> Known | None:
    """The known agent of that name."""
    return next((each for each in known_agents() if each.name == name), None)


def _is_configured(known: Known, agents: Mapping[str, AgentConfig]) -> bool:
    programs = {Path(each.command[0]).name for each in agents.values() if each.command}
    return known.name in agents or known.command[0] in programs


def listed_agents(config: Config) -> Iterator[Listed]:
    """All of them: configured, found, and the known ones that are not installed."""
    known = {each.command[0]: each for each in known_agents()}
    for name, agent in config.agents.items():
        program = Path(agent.command[0]).name if agent.command else ""
        yield _listed(name, "configured", agent.command, agent.env, known.get(program))
    installed = {each.name for each in installed_agents()}
    others = [each for each in known.values() if not _is_configured(each, config.agents)]
    for each in sorted(others, key=lambda each: each.name not in installed):
        source: Literal["found", "known"] = "found" if each.name in installed else "known"
        yield _listed(each.name, source, each.command, {}, each)


def _listed(
    name: str,
    source: Literal["configured", "found", "known"],
    command: Sequence[str],
    environment: Mapping[str, str],
    known: Known | None,
) -> Listed:
    program = shutil.which(command[0], path=environment.get("PATH")) if command else None
    listed = Listed(name, source, command, environment, program)
    if known is None:
        return listed
    return structs.replace(
        listed,
        title=known.title,
        package=known.package,
        install=known.install,
        notes=known.notes,
        signs_in_late=known.signs_in_late,
    )


async def ask_agents(
    agents: Sequence[Listed],
    heard: Callable[[Listed, Answer], None],
    *,
    within: float,
    handshake_only: bool = False,
) -> None:
    """Start those that are installed programs, a few at a time, and say what each answers.

    Each has so many seconds; see `probing.probe`. Cancelled, it leaves no process.
    """
    from ahpd.agents.acp.probing import probe  # noqa: PLC0415 - not for a mere list

    limit = trio.CapacityLimiter(AT_ONCE)
    look = partial(probe, version=__version__, within=within, handshake_only=handshake_only)

    async def ask(agent: Listed) -> None:
        async with limit:
            answer = await look(agent.command, agent.environment)
        if agent.signs_in_late and answer.needs_sign_in is False:
            answer = structs.replace(answer, needs_sign_in=None)  # its first prompt will tell
        heard(agent, answer)

    async with trio.open_nursery() as nursery:
        for each in agents:
            if each.program is not None:
                nursery.start_soon(ask, each)


__all__ = ["Answer", "Listed", "ask_agents", "found_agents", "known_agent", "listed_agents"]
