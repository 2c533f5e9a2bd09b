"""`authenticate`: which tokens are taken, and what goes on once one came (RULES 19).

Every resource is taken that the host has itself announced: in an agent's list, in the state of an
MCP server that waits for a token, or in the challenge of a paused call (R-19.5). A token settles
what waits for it wherever that is, for whoever sees that something waits may bring the token; what
agents do *next* runs on the tokens of the client that wants it done (R-24.27).
"""

from __future__ import annotations

import logging
import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import trio

from actors.credentials import Token, missing, tokens_for
from actors.host import Host
from actors.ledger import Channel
from actors.messages import Authorize, AuthorizeServer
from actors.telling import tell
from ahpd.agents.events import Failed, Outcome
from ahpd.agents.port import Agent, Leaving
from ahpd.protocol.chat import ChatState, ToolCallResponsePart
from ahpd.protocol.common import ProtectedResourceMetadata
from ahpd.protocol.customizations import McpServerAuthRequiredState, McpServerCustomization
from ahpd.protocol.discreet import Discreet
from ahpd.protocol.errors import ErrorCode, ProtocolError
from ahpd.protocol.frame import frame
from ahpd.protocol.jsonrpc import notification
from ahpd.protocol.root import (
    AuthenticateParams,
    AuthenticateResult,
    AuthRequiredErrorData,
    AuthRequiredParams,
)
from ahpd.protocol.session import SessionState
from ahpd.protocol.tools import McpAuthRequirement, ToolCallAuthRequiredState
from ahpd.protocol.uris import ROOT

if TYPE_CHECKING:
    from actors.connection import Connection

_log = logging.getLogger("ahpd.agents")

#: Seconds that an agent may take to be signed out.
SIGN_OUT_WITHIN = 60.0


async def authenticate(connection: Connection, params: AuthenticateParams) -> AuthenticateResult:
    """Take a token, replace it, or take it back (R-19.5 to R-19.10)."""
    held, host, name = connection.credentials, connection.host, params.resource
    resource = next((each for each in _announced(host) if each.resource == name), None)
    if not params.token:
        if not held.drop(name) and resource is None:
            raise _unannounced(name)
        for agent in _left(host, name):
            connection.spawn(_sign_out, agent, name, name="sign out")
        return AuthenticateResult()
    if resource is None:
        raise _unannounced(name)
    token = Token(resource, params.token, params.scopes, _end(params))
    host.on_secret(token.value)
    held.keep(token)
    if token.expires < math.inf:
        connection.spawn(_expire, connection, token, name="token")
    _settle(connection, token)
    return AuthenticateResult()


def _unannounced(resource: str) -> ProtocolError:
    return ProtocolError(
        ErrorCode.INVALID_PARAMS, f"authenticate: nothing here needs a token for {resource}"
    )


def _left(host: Host, resource: str) -> Iterator[Leaving]:
    """The agents that somebody signs out of by taking back the token of this resource."""
    for agent in host.agents.values():
        named = agent.info.protected_resources or ()
        if isinstance(agent, Leaving) and any(each.resource == resource for each in named):
            yield agent


async def _sign_out(agent: Leaving, resource: str) -> None:
    """Helper: what does not work is logged, since the token is gone all the same (R-19.15)."""
    with trio.move_on_after(SIGN_OUT_WITHIN) as scope:
        try:
            await agent.sign_out(resource)
        except Exception:  # noqa: BLE001 an agent's own code: not the connection's end
            _log.exception("signing out of %s failed", resource)
    if scope.cancelled_caught:
        _log.warning("signing out of %s took too long", resource)


def _end(params: AuthenticateParams) -> float:
    return math.inf if params.expires_in is None else trio.current_time() + params.expires_in


async def _expire(connection: Connection, token: Token) -> None:
    """Helper: drop a token at its end and say so to the one whose it was (R-19.8)."""
    await trio.sleep_until(token.expires)
    if connection.credentials.drop(token.resource.resource, token):
        params = AuthRequiredParams(channel=ROOT, resource=token.resource, reason="expired")
        connection.post(frame(notification("auth/required", params.wire())))


def say_needs(host: Host, chat: Channel, outcome: Outcome) -> None:
    """Tell those in the session of a chat what its agent needs tokens for, if it does (R-19.12)."""
    session = chat.owner
    if session is None or not isinstance(outcome, Failed) or not outcome.needs:
        return
    told = [
        frame(
            notification(
                "auth/required",
                AuthRequiredParams(channel=session, resource=each, reason="required").wire(),
            )
        )
        for each in outcome.needs
    ]

    def release() -> None:
        for listener in host.subscriptions.of(session):
            for each in told:
                listener.tell(each)

    host.ledger.post(release)


# ---- what is announced, and what waits ----------------------------------------------------------


def _announced(host: Host) -> Iterator[ProtectedResourceMetadata]:
    for agent in host.agents.values():
        yield from agent.info.protected_resources or ()
    for channel in host.ledger.channels.values():
        for _, server in _waiting_servers(channel):
            yield server.resource
        for _, _, challenge in _paused_calls(channel):
            yield challenge.resource


def _waiting_servers(channel: Channel) -> Iterator[tuple[str, McpAuthRequirement]]:
    """The MCP servers of a session that wait for a token, by id."""
    if not isinstance(channel.state, SessionState):
        return
    for entry in channel.state.customizations or ():
        for each in (entry, *(getattr(entry, "children", None) or ())):
            if isinstance(each, McpServerCustomization) and isinstance(
                each.state, McpServerAuthRequiredState
            ):
                yield each.id, each.state


def _paused_calls(channel: Channel) -> Iterator[tuple[str, str, McpAuthRequirement]]:
    """The calls of a chat that wait for a token, as (turn, call, challenge)."""
    turn = channel.state.active_turn if isinstance(channel.state, ChatState) else None
    for part in turn.response_parts if turn is not None else ():
        if isinstance(part, ToolCallResponsePart):
            call = part.tool_call
            if isinstance(call, ToolCallAuthRequiredState):
                assert turn is not None
                yield turn.id, call.tool_call_id, call.auth


def _settle(connection: Connection, token: Token) -> None:
    """Let go on what waited for this token, where it grants enough (R-19.13, R-19.14)."""

    def fits(challenge: McpAuthRequirement) -> bool:
        is_it = challenge.resource.resource == token.resource.resource
        return is_it and token.grants(challenge.required_scopes)

    for channel in list(connection.host.ledger.channels.values()):
        told = connection.find(channel.path)
        for _, call_id, challenge in _paused_calls(channel):
            if fits(challenge):
                tell(told, Authorize(channel.uri, call_id, token.value))
        for server_id, challenge in _waiting_servers(channel):
            if fits(challenge):
                tell(told, AuthorizeServer(server_id, token.value))


# ---- whose tokens -------------------------------------------------------------------------------


class Held(Discreet, frozen=True):
    """The tokens that an agent is to work with for a client, and what it lacks."""

    hidden = frozenset({"tokens"})

    tokens: Any
    lacks: Sequence[ProtectedResourceMetadata]

    @property
    def reason(self) -> str | None:
        """Why the agent cannot work for that client; None when it can (R-19.3)."""
        if not self.lacks:
            return None
        names = ", ".join(each.resource_name or each.resource for each in self.lacks)
        return f"this agent needs a token for {names}; authenticate, then try again"


def held_for(host: Host, client_id: str | None, agent: Agent) -> Held:
    """What a client's connections hold for an agent; the newest one's counts."""
    record = host.clients.find(client_id) if client_id is not None else None
    connections = record.connections if record is not None else []
    resources = agent.info.protected_resources or ()
    tokens = tokens_for(resources, [each.credentials for each in connections])
    return Held(tokens, missing(resources, tokens))


def check_tokens(connection: Connection, agent: Agent) -> None:
    """R-8.3: a connection without the tokens that an agent needs is told which."""
    resources = agent.info.protected_resources or ()
    lacks = missing(resources, tokens_for(resources, [connection.credentials]))
    if lacks:
        held = Held({}, lacks)
        data = AuthRequiredErrorData(resources=tuple(lacks))
        raise ProtocolError(ErrorCode.AUTH_REQUIRED, held.reason or "", data.wire())
