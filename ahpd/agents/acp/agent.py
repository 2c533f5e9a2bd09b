"""`AcpAgent`: what the host is told of an agent that is a program, and how one is started.

The module is small on purpose: what runs the program is imported when the first chat is opened.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

import trio
from msgspec import Struct, field

from ahpd.agents.port import AgentFailed, ConfigContext, Configuration, OpenRequest
from ahpd.protocol.discreet import Discreet
from ahpd.protocol.model import JSON
from ahpd.protocol.root import AgentCapabilities, AgentInfo, MultipleChatsCapability
from ahpd.protocol.session import SessionConfigSchema, SessionConfigValueItem
from ahpd.protocol.uris import URI

if TYPE_CHECKING:
    from ahpd.agents.acp.backend import AcpBackend
    from ahpd.agents.acp.settings import Setting

#: A variable of the environment that tells a program's host from others: see `leftovers`.
MARK = "AHPD_AGENT_OF"
#: Bytes of the longest line that is taken from an agent.
LINE_BYTES = 64 * 1024 * 1024

_CAPABILITIES = AgentCapabilities(multiple_chats=MultipleChatsCapability())


class Learned(Struct, eq=False):
    """What is known of an agent only since it ran: the settings that it offers."""

    settings: Mapping[str, Setting] = field(default_factory=dict)


class AcpAgent(Discreet, frozen=True, eq=False):
    """An agent called `name`: a program that speaks ACP over its stdio. Implements `Agent`.

    Each chat has a process of `command` of its own, with `environment` (which may hold secrets, so
    it is never shown) added to the host's. `version` is the host's own.
    """

    hidden = frozenset({"environment"})

    name: str
    command: Sequence[str]
    environment: Mapping[str, str] = field(default_factory=dict)
    version: str = "0"
    line_bytes: int = LINE_BYTES
    learned: Learned = field(default_factory=Learned)

    @property
    def info(self) -> AgentInfo:
        """What clients are told; what the program says of itself is not known before it runs."""
        return AgentInfo(
            provider=self.name,
            display_name=self.name,
            description=f"Runs {os.path.basename(self.command[0])} (ACP)",
            models=(),
            capabilities=_CAPABILITIES,
        )

    @property
    def can_resume(self) -> bool:
        """False: a turn that broke off cannot be gone on with, only the conversation."""
        return False

    @property
    def can_rewind(self) -> bool:
        """False: ACP has no way to forget turns."""
        return False

    @property
    def can_switch(self) -> bool:
        """False: ACP tells nothing of customizations."""
        return False

    @property
    def can_control(self) -> bool:
        """False: ACP tells nothing of an agent's MCP servers."""
        return False

    async def open(self, request: OpenRequest) -> AcpBackend:
        """Start a process, and begin a conversation with it or take up the chat's.

        Raises `AgentFailed`, also when it takes too long. However it fails or is cancelled, no
        process is left.
        """
        from ahpd.agents.acp.backend import AcpBackend  # noqa: PLC0415 - see the module
        from ahpd.agents.acp.process import start_process  # noqa: PLC0415

        cwd, *others = _folders(request.working_directories)
        process = await start_process(self.command, self.environment, cwd, limit=self.line_bytes)
        backend, is_open = AcpBackend(process, cwd), False
        try:
            await backend.begin(self.version, others, request)
            self.learned.settings = backend.settings
            is_open = True
        finally:
            if not is_open:
                with trio.CancelScope(shield=True):  # which takes some seconds at most: see `end`
                    await process.end()
        return backend

    async def config_schema(self, context: ConfigContext) -> Configuration:
        """What the agent's last session could be set to; nothing before it had one. A checkpoint.

        No process is started to find out: that may take seconds, and leave a session behind.
        """
        await trio.lowlevel.checkpoint()
        if not self.learned.settings:
            return Configuration(SessionConfigSchema(properties={}))
        from ahpd.agents.acp.settings import configuration  # noqa: PLC0415 - see the module

        return configuration(self.learned.settings)

    async def config_values(
        self, context: ConfigContext, key: str, query: str
    ) -> Sequence[SessionConfigValueItem]:
        """None: an agent says all values at once. A checkpoint."""
        await trio.lowlevel.checkpoint()
        return ()

    def config_refusal(self, key: str, value: JSON) -> str | None:
        """None: what fits the schema is the agent's to judge, when it is told."""
        return None

    async def forget(self, request: OpenRequest) -> None:
        """Nothing: what the agent keeps of a conversation is left to it. A checkpoint."""
        await trio.lowlevel.checkpoint()


def _folders(uris: Sequence[URI]) -> Sequence[str]:
    """The working directories as paths, at least one. Raises `AgentFailed` for what is none."""
    found = []
    for uri in uris:
        parts = urlsplit(uri)
        if parts.scheme != "file" or parts.netloc not in ("", "localhost"):
            raise AgentFailed(f"the agent cannot work in {uri}: it is no folder of this machine")
        path = unquote(parts.path)
        if path.rstrip("/"):  # `file:///` stands for no folder
            found.append(path)
    return found or [os.getcwd()]
