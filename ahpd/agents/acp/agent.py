"""`AcpAgent`: what the host is told of an agent that is a program, and how one is started.

The module is small on purpose: what runs the program is imported when the first chat is opened.
"""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

import trio
from msgspec import field

from ahpd.agents.acp.learned import Learned
from ahpd.agents.port import (
    AgentFailed,
    ConfigContext,
    Configuration,
    OpenRequest,
    PastConversation,
    PastTurn,
    SignInNeeded,
)
from ahpd.protocol.common import ProtectedResourceMetadata
from ahpd.protocol.discreet import Discreet
from ahpd.protocol.model import JSON, Object
from ahpd.protocol.root import AgentCapabilities, AgentInfo, MultipleChatsCapability
from ahpd.protocol.session import SessionConfigSchema, SessionConfigValueItem
from ahpd.protocol.uris import URI

if TYPE_CHECKING:
    from ahpd.agents.acp.backend import AcpBackend
    from ahpd.agents.acp.process import AgentProcess
    from ahpd.agents.acp.servers import Server
    from ahpd.agents.acp.signin import Grant

_log = logging.getLogger("ahpd.agents.acp")

#: A variable of the environment that tells a program's host from others: see `leftovers`.
MARK = "AHPD_AGENT_OF"
#: Bytes of the longest line that is taken from an agent.
LINE_BYTES = 64 * 1024 * 1024

#: Seconds for finding out what can be set, and before that is tried again.
FIND_WITHIN = 20.0
FIND_AGAIN = 60.0

#: Variables whose values are not to be shown.
_SECRET = re.compile("KEY|TOKEN|SECRET|PASS|AUTH|CREDENTIAL|COOKIE", re.IGNORECASE)


def secrets_in(environment: Mapping[str, str]) -> Sequence[str]:
    """The values of the variables that are named as secrets are; nobody is shown them."""
    return [value for name, value in environment.items() if _SECRET.search(name)]


class Options(Discreet, frozen=True):
    """What can be set of an agent.

    `variables`: into which variable of its environment the token of a resource goes, variable ->
    resource. `auth_method`: the way that it is to sign in by. `terminals` and `files`: whether the
    host runs commands, and reads and writes files, for it. `conversations`: whether it is asked
    which it keeps; one that `waits` is asked only once it was used. `servers`: MCP servers that it
    is given, by name and as editors write them. `title` is what people see for its name.
    """

    hidden = frozenset({"servers"})

    title: str | None = None
    waits: bool = False

    variables: Mapping[str, str] = field(default_factory=dict)
    auth_method: str | None = None
    terminals: bool = True
    files: bool = False
    conversations: bool = True
    servers: Object = field(default_factory=dict)


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
    options: Options = field(default_factory=Options)
    learned: Learned = field(default_factory=Learned)

    @property
    def info(self) -> AgentInfo:
        """What clients are told; what the program says of itself is not known before it runs."""
        able = self.learned.abilities
        return AgentInfo(
            provider=self.name,
            display_name=self.options.title or self.name,
            description=f"Runs {os.path.basename(self.command[0])} (ACP)",
            models=(),
            capabilities=AgentCapabilities(
                multiple_chats=MultipleChatsCapability(
                    fork=True if able is not None and able.forks else None, side_chat=True
                )
            ),
            protected_resources=self._resources or None,
        )

    @property
    def _resources(self) -> tuple[ProtectedResourceMetadata, ...]:
        """What tokens are taken for: by configuration, and since the agent wanted a sign-in."""
        named = dict.fromkeys(self.options.variables.values())
        set_up = [ProtectedResourceMetadata(resource=uri, required=False) for uri in named]
        return (*set_up, *(each for each in self.learned.resources if each.resource not in named))

    def watch(self, changed: Callable[[], None]) -> None:
        """See `Changing`."""
        self.learned.watch(changed)

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
        from ahpd.agents.acp.handshake import Where  # noqa: PLC0415

        cwd, *others = _folders(request.working_directories)
        grant = self._grant(request.tokens)
        servers = await self._servers(request)
        secrets = [value for each in servers for value in each.values.values()]
        process = await self.start(grant, cwd, secrets)
        backend = AcpBackend(self, process, request, Where(cwd, others, servers))
        is_open = False
        try:
            await backend.begin(grant, request.config)
            self.learned.settings = backend.settings
            is_open = True
        except SignInNeeded as needed:
            self.learned.note_sign_in(needed)
            raise
        finally:
            if not is_open:
                with trio.CancelScope(shield=True):  # which takes some seconds at most: see `end`
                    await process.end()
        return backend

    def _grant(self, tokens: Mapping[str, str]) -> Grant:
        from ahpd.agents.acp.signin import granted  # noqa: PLC0415 - see the module

        able = self.learned.abilities
        methods = able.methods if able is not None else ()
        options = self.options
        return granted(self.name, methods, tokens, options.variables, options.auth_method)

    async def _servers(self, request: OpenRequest) -> Sequence[Server]:
        """The MCP servers that it is to have: clients' own over those of the configuration."""
        from ahpd.agents.acp.plugins import servers_of  # noqa: PLC0415 - see the module
        from ahpd.agents.acp.servers import merged, read_servers  # noqa: PLC0415

        found = [read_servers(each) for each in (self.options.servers, request.servers)]
        for fault in (fault for each in found for fault in each.faults):
            _log.warning("%s: %s", self.name, fault)
        return merged(*(each.servers for each in found), await servers_of(request.plugins))

    async def start(self, grant: Grant, cwd: str, secrets: Sequence[str] = ()) -> AgentProcess:
        """A process of its own; whoever has it must `end` it. Raises `AgentFailed`."""
        from ahpd.agents.acp.process import start_process  # noqa: PLC0415 - see the module

        environment = {**self.environment, **grant.environment}
        secrets = [
            *secrets,
            *grant.environment.values(),
            *secrets_in(self.environment),
        ]
        return await start_process(
            self.command, environment, cwd, limit=self.line_bytes, secrets=secrets
        )

    async def sign_out(self, resource: str) -> None:
        """See `Leaving`. A process of its own is told, if this agent knows how to."""
        self.learned.is_signed_in = False
        able = self.learned.abilities
        if able is None or not able.signs_out:
            await trio.lowlevel.checkpoint()
            return
        from ahpd.agents.acp.errands import sign_out  # noqa: PLC0415 - see the module

        await sign_out(self)

    async def config_schema(self, context: ConfigContext) -> Configuration:
        """What the agent's last session could be set to. A checkpoint.

        Before there was one a process is started to find out, for somebody who waits for it; what
        cannot be found out in time, or without signing in, is nothing. Raises `AgentFailed`.
        """
        await trio.lowlevel.checkpoint()
        if self.learned.settings is None and context.may_wait:
            await self._find_settings(context.working_directory)
        if not self.learned.settings:
            return Configuration(SessionConfigSchema(properties={}))
        from ahpd.agents.acp.settings import configuration  # noqa: PLC0415 - see the module

        return configuration(self.learned.settings)

    async def _find_settings(self, folder: URI | None) -> None:
        from ahpd.agents.acp.errands import settings  # noqa: PLC0415 - see the module

        learned, cwd = self.learned, _folders(() if folder is None else (folder,))[0]
        with trio.move_on_after(FIND_WITHIN):
            async with learned.finding:
                if learned.settings is not None or trio.current_time() < learned.find_after:
                    return
                learned.find_after = trio.current_time() + FIND_AGAIN
                try:
                    learned.settings = await settings(self, cwd)
                except SignInNeeded as needed:
                    learned.note_sign_in(needed)
                except AgentFailed as error:
                    _log.info("%s: its settings are not known: %s", self.name, error.message)

    async def config_values(
        self, context: ConfigContext, key: str, query: str
    ) -> Sequence[SessionConfigValueItem]:
        """None: an agent says all values at once. A checkpoint."""
        await trio.lowlevel.checkpoint()
        return ()

    async def conversations(self) -> Sequence[PastConversation] | None:
        """See `Remembering`. A process of its own is asked, unless it is known not to tell."""
        able, options = self.learned.abilities, self.options
        waits = able is None and options.waits
        cannot = able is not None and not (able.lists and able.loads)
        if not options.conversations or waits or cannot:
            await trio.lowlevel.checkpoint()
            return None
        from ahpd.agents.acp.errands import conversations  # noqa: PLC0415 - see the module

        return await conversations(self)

    async def recall(self, conversation: PastConversation) -> Sequence[PastTurn]:
        """See `Remembering`. A process of its own loads it."""
        from ahpd.agents.acp.errands import recall  # noqa: PLC0415 - see the module

        folder = (conversation.folder,) if conversation.folder is not None else ()
        return await recall(self, conversation.name, _folders(folder)[0])

    def config_refusal(self, key: str, value: JSON) -> str | None:
        """None: what fits the schema is the agent's to judge, when it is told."""
        return None

    async def forget(self, request: OpenRequest) -> None:
        """Have a process of its own delete the conversation, if this agent knows how to.

        Whether it does is asked when it is not known. Raises `AgentFailed`.
        """
        able = self.learned.abilities
        if request.conversation is None or (able is not None and not able.deletes):
            await trio.lowlevel.checkpoint()
            return
        from ahpd.agents.acp.errands import delete  # noqa: PLC0415 - see the module

        await delete(self, request.conversation)


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
