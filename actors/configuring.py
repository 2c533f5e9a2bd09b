"""What can be set in a session, asked of its agent before there is one (RULES 22)."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import TYPE_CHECKING, TypeVar

import trio

from actors.messages import Configured
from actors.rules.config import at_creation, resolved
from actors.settings import refusal_of
from ahpd.agents.port import Agent, AgentFailed, ConfigContext, Configurable, Configuration
from ahpd.protocol.errors import ErrorCode, ProtocolError
from ahpd.protocol.session import (
    CreateSessionParams,
    ResolveSessionConfigParams,
    ResolveSessionConfigResult,
    SessionConfigCompletionsParams,
    SessionConfigCompletionsResult,
    SessionConfigSchema,
    SessionConfigState,
)

if TYPE_CHECKING:
    from actors.connection import Connection

T = TypeVar("T")

_NOTHING = Configuration(SessionConfigSchema(properties={}))


async def resolve(
    connection: Connection, params: ResolveSessionConfigParams
) -> ResolveSessionConfigResult:
    """R-22.8: the whole schema, and what was chosen with the defaults of the rest."""
    agent = find_agent(connection, params.provider)
    context = ConfigContext(params.working_directory, params.config or {}, may_wait=True)
    found = await _configuration(connection, agent, context)
    return ResolveSessionConfigResult(
        schema=found.schema, values=resolved(found.schema, context.values)
    )


async def complete(
    connection: Connection, params: SessionConfigCompletionsParams
) -> SessionConfigCompletionsResult:
    """R-22.10; of a setting that nobody serves the client has all values already (R-22.12)."""
    agent = find_agent(connection, params.provider)
    context = ConfigContext(params.working_directory, params.config or {})
    found = await _configuration(connection, agent, context)
    schema = found.schema.properties.get(params.property)
    if schema is None or not schema.enum_dynamic or not isinstance(agent, Configurable):
        return SessionConfigCompletionsResult(items=())
    values = agent.config_values(context, params.property, params.query or "")
    return SessionConfigCompletionsResult(items=tuple(await _asked(connection, values)))


async def configured(connection: Connection, params: CreateSessionParams) -> Configured:
    """The configuration of a new session; raises `ProtocolError` when its values do not fit."""
    agent = find_agent(connection, params.provider)
    directories = params.working_directories or (None,)
    context = ConfigContext(directories[0], params.config or {}, may_wait=bool(params.config))
    found = await _configuration(connection, agent, context)
    schema = found.schema
    reason = at_creation(schema, context.values) or _refusal(agent, context)
    if reason is not None:
        raise ProtocolError(ErrorCode.INVALID_PARAMS, f"createSession: config: {reason}")
    if not schema.properties:
        return Configured()
    values = resolved(schema, context.values)
    return Configured(SessionConfigState(schema=schema, values=values), found.chat_scoped)


def find_agent(connection: Connection, provider: str | None) -> Agent:
    """The agent of that name, or the host's default one (R-8.2)."""
    host = connection.host
    name = host.default_provider if provider is None else provider
    if name not in host.agents:
        known = ", ".join(host.agents)
        raise ProtocolError(
            ErrorCode.PROVIDER_NOT_FOUND, f"there is no agent {name}; there are: {known}"
        )
    return host.agents[name]


def _refusal(agent: Agent, context: ConfigContext) -> str | None:
    refuses = refusal_of(agent)
    reasons = (refuses(key, value) for key, value in context.values.items())
    return next((reason for reason in reasons if reason is not None), None)


async def _configuration(
    connection: Connection, agent: Agent, context: ConfigContext
) -> Configuration:
    if not isinstance(agent, Configurable):
        return _NOTHING
    return await _asked(connection, agent.config_schema(context))


async def _asked(connection: Connection, answer: Awaitable[T]) -> T:
    """What an agent answers, in bounded time."""
    within = connection.host.settings.request_within
    try:
        with trio.fail_after(within):
            return await answer
    except AgentFailed as error:
        raise ProtocolError(ErrorCode.INTERNAL_ERROR, error.message) from None
    except trio.TooSlowError:
        raise ProtocolError(
            ErrorCode.INTERNAL_ERROR, f"the agent did not answer in {within:g} s"
        ) from None
