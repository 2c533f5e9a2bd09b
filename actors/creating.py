"""`createSession`: what is checked before there is a session, and how far it is (RULES 8)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from actors.authenticating import check_tokens
from actors.configuring import configured, find_agent
from actors.messages import CreateSession
from actors.progress import progress
from actors.rules.names import folders_fault
from ahpd.protocol.errors import ErrorCode, ProtocolError
from ahpd.protocol.session import CreateSessionParams

if TYPE_CHECKING:
    from actors.connection import Connection

#: The steps that are told: the session itself, then its agent.
STEPS = 2


async def create_session(connection: Connection, params: CreateSessionParams) -> None:
    """R-8.1 to R-8.14. The agent comes up afterwards, which the session's state tells (R-8.4)."""
    client, client_id = params.active_client, connection.client_id
    assert client_id is not None
    if client is not None and client.client_id != client_id:
        raise ProtocolError(
            ErrorCode.INVALID_PARAMS,
            f"createSession: activeClient: {client.client_id} is not this connection's client",
        )
    wrong = folders_fault(params.working_directories)
    if wrong is not None:
        raise ProtocolError(ErrorCode.INVALID_PARAMS, f"createSession: workingDirectories: {wrong}")
    with progress(connection, params.progress_token, STEPS, "The session is there") as told:
        told.at(0, "Making the session")
        check_tokens(connection, find_agent(connection, params.provider))
        config = await configured(connection, params)
        told.at(1, "Starting its agent")
        message = CreateSession(params, client_id, config)
        within = connection.host.settings.request_within
        await connection.find("catalogue").call(message, within=within)
