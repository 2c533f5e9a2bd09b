"""What a chat's agent is opened for, and what it is told that belongs to no turn.

It is to be up before anybody needs it, to work with other settings, to switch what it is customized
with, to start and stop its MCP servers or hand them a token, and that a terminal is let be. None of
this waits for the turn that may run, and a backend that is not up learns what counts when it is
opened.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Any, TypeAlias

from msgspec import structs

from actors.authenticating import held_for, say_needs
from actors.host import Host
from actors.ledger import Channel
from actors.messages import (
    AgentChanged,
    AuthorizeServer,
    ChatOpened,
    ConfigMoved,
    Control,
    LetBe,
    OpenAgent,
    Switch,
)
from actors.run import Engine
from actors.serving_agents import AgentCommands, AgentFiles
from actors.settings import config_of
from actors.sources import history_left
from actors.telling import tell
from ahpd.agents.events import Failed, ServerChanged
from ahpd.agents.port import AgentFailed, Authorizable, OpenRequest, Released, failure
from ahpd.protocol.chat import ForkChatOrigin
from ahpd.protocol.common import ErrorInfo
from ahpd.protocol.customizations import ClientPluginCustomization, McpServerErrorState
from ahpd.protocol.model import Object
from ahpd.protocol.root import RootState
from ahpd.protocol.session import SessionState
from ahpd.protocol.uris import ROOT, URI
from supervisors import Actor, Ref, System

_log = logging.getLogger("ahpd.agents")

Errand: TypeAlias = OpenAgent | Control | Switch | ConfigMoved | AuthorizeServer | LetBe


def conversation_of(host: Host, chat: Channel) -> OpenRequest:
    """What a chat's agent knows a conversation by, without anybody's tokens.

    Raises `AgentFailed` when there is no session any more: nobody is to work for it.
    """
    owner = host.ledger.find(chat.owner) if chat.owner is not None else None
    if owner is None:
        raise AgentFailed("the session has ended")
    session: SessionState = owner.state
    directories = chat.state.working_directories
    if directories is None:
        directories = session.working_directories or ()
    history = history_left(chat.notes.heritage, chat.state)
    known = {turn.id for turn in (*history, *chat.notes.heritage.context)}
    return OpenRequest(
        owner.uri,
        chat.uri,
        directories,
        config_of(host, chat),
        history=history,
        context=chat.notes.heritage.context,
        selection=chat.notes.heritage.selection,
        attached={key: held for key, held in chat.notes.heritage.attached.items() if key in known},
        customizations=session.customizations or (),
        conversation=chat.notes.conversation,
    )


def open_request(host: Host, chat: Channel, system: System) -> OpenRequest:
    """What a chat's backend is opened for, as things are now.

    Raises as `conversation_of`, and when the client for which the agent is to work has no token
    that it needs (R-19.3).
    """
    request = conversation_of(host, chat)
    session: SessionState = host.ledger.channels[request.session].state
    held = held_for(host, chat.notes.starter, host.agent_of(session.provider))
    if held.reason is not None:
        raise AgentFailed(held.reason, resumable=True)
    return structs.replace(
        request,
        tokens=held.tokens,
        commands=AgentCommands(host, system, chat) if host.terminals is not None else None,
        files=AgentFiles(host, host.resources, chat) if host.resources is not None else None,
        servers=_servers(host),
        plugins=tuple(_plugins(session)),
        parent=_parent(host, chat),
    )


def _parent(host: Host, chat: Channel) -> str | None:
    """What a fork's agent knows the conversation by that it was made from, as long as that has not
    gone on, and this one has not begun.
    """
    origin, state = chat.state.origin, chat.state
    if not isinstance(origin, ForkChatOrigin) or chat.notes.conversation is not None:
        return None
    source = host.ledger.find(origin.chat)
    if source is None or source.state.active_turn is not None or not source.state.turns:
        return None
    history = history_left(chat.notes.heritage, state)
    is_whole = source.state.turns[-1].id == origin.turn_id == (history[-1].id if history else None)
    return source.notes.conversation if is_whole else None


def _servers(host: Host) -> Object:
    """The MCP servers that an editor has pushed."""
    root: RootState | None = host.ledger.state_of(ROOT, "root")
    values = root.config.values if root is not None and root.config is not None else {}
    servers = values.get("mcpServers")
    return servers if isinstance(servers, dict) else {}


def _plugins(session: SessionState) -> Iterator[URI]:
    """The plugins that those bring who take part, as far as they are switched on."""
    for client in session.active_clients:
        for each in client.customizations or ():
            if isinstance(each, ClientPluginCustomization):
                first = each.enablement[0] if each.enablement else None
                if getattr(first, "enabled", True):
                    yield each.uri


class Upkeep:
    """See the module. `actor` is the chat's, in whose tasks all of it is done."""

    def __init__(
        self, host: Host, channel: Channel, engine: Engine, actor: Actor[Any], session: Ref[Any]
    ) -> None:
        self._host = host
        self._channel = channel
        self._engine = engine
        self._actor = actor
        self._session = session
        self._is_opening = False

    @property
    def _is_awaited(self) -> bool:
        """The session waits for its first agent."""
        owner = self._channel.owner
        session = self._host.ledger.find(owner) if owner is not None else None
        return session is not None and session.state.lifecycle == "creating"

    def take(self, errand: Errand) -> None:
        """Do it, or see to it beside the mailbox."""
        backend = self._engine.backend
        match errand:
            case OpenAgent():
                if not self._is_opening:  # or one that fails would be tried twice
                    self._is_opening = True
                    self._actor.spawn(self._open, name="open")
            case ConfigMoved():
                self._engine.configure(config_of(self._host, self._channel))
            case Control() if errand.opens or backend is not None:
                self._actor.spawn(self._control, errand, name="control")
            case Switch() if backend is not None:
                backend.switch(errand.customization_id, errand.enablement)
            case AuthorizeServer() if isinstance(backend, Authorizable):
                backend.authorize_server(errand.server_id, errand.token)
            case LetBe():
                turn = self._channel.state.active_turn
                if turn is not None and errand.turn_id in (None, turn.id):
                    self._engine.tell(Released(errand.call_id))
            case _:
                pass

    async def _open(self) -> None:
        """Helper: bring the agent up and tell the session how that went."""
        try:
            if not self._is_awaited:
                return
            failed = await self._open_or_why_not()
        finally:
            self._is_opening = False
        if failed is not None:
            say_needs(self._host, self._channel, failed)
        tell(self._session, ChatOpened(self._channel.uri, failed))

    async def _open_or_why_not(self) -> Failed | None:
        try:
            await self._engine.open()
        except AgentFailed as error:
            return failure(error)
        except Exception as error:  # noqa: BLE001 an agent's own code: not this chat's end
            _log.exception("%s: opening the agent failed", self._channel.uri)
            return Failed(f"the agent crashed: {error}", "AgentFailed")
        return None

    async def _control(self, errand: Control) -> None:
        """Helper: pass on what somebody wants of an MCP server, or say that nobody heard it."""
        error = await self._open_or_why_not()
        backend = self._engine.backend
        if backend is not None:
            backend.control(errand.server_id, errand.request)
        elif error is not None:
            told = ErrorInfo(error_type=error.error_type, message=error.message)
            state = McpServerErrorState(error=told)
            tell(self._session, AgentChanged(ServerChanged(errand.server_id, state)))
