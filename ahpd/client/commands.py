"""The commands of the protocol as methods; each is one request."""

from __future__ import annotations

import abc
from collections.abc import Mapping, Sequence
from typing import Any

import attrs

from ahpd.protocol.chat import ChatSource, CreateChatParams, DisposeChatParams, FetchTurnsParams
from ahpd.protocol.codec import decoder
from ahpd.protocol.connection import PingParams
from ahpd.protocol.messages import Message
from ahpd.protocol.methods import METHODS
from ahpd.protocol.model import JSON, Object, Wire
from ahpd.protocol.root import AuthenticateParams
from ahpd.protocol.session import (
    CreateSessionParams,
    DisposeSessionParams,
    ListSessionsParams,
    ListSessionsResult,
    SessionActiveClient,
)
from ahpd.protocol.uris import URI


@attrs.frozen
class Default:
    """Stands for the client's own deadline, where None means none at all."""


DEFAULT = Default()


def plain(params: Wire | Object) -> JSON:
    """Params as plain JSON."""
    return params.wire() if isinstance(params, Wire) else dict(params)


def result_of(method: str, result: JSON) -> Any:
    """A result in its type: None where success is ``null``, plain JSON for unknown methods.

    Raises `DecodeError`.
    """
    known = METHODS.get(method)
    if known is None:
        return result
    return None if known.result is None else decoder(known.result)(result)


class Commands(abc.ABC):
    """What a client can ask.

    Every method raises what `request` does. After a `ConnectionLost` the methods that name what
    they make may be called again with the same URI: -32003 then says that it was made.
    """

    @abc.abstractmethod
    async def request(
        self, method: str, params: Wire | Object, *, within: float | Default | None = DEFAULT
    ) -> Any:
        """Send a request and wait for its typed result."""

    async def ping(self) -> None:
        """Ask for a sign of life (R-1.36)."""
        await self.request("ping", PingParams())

    async def list_sessions(
        self, *, limit: int | None = None, cursor: str | None = None
    ) -> ListSessionsResult:
        """The host's sessions, newest first; all of them unless a `limit` is given (R-7.23)."""
        params = ListSessionsParams(limit=limit, cursor=cursor)
        result: ListSessionsResult = await self.request("listSessions", params)
        return result

    async def create_session(
        self,
        session: URI,
        *,
        provider: str | None = None,
        working_directories: Sequence[URI] | None = None,
        config: Mapping[str, Any] | None = None,
        active_client: SessionActiveClient | None = None,
        progress_token: str | None = None,
    ) -> None:
        """Make a session under a URI of the caller's choice (R-8.1)."""
        params = CreateSessionParams(
            channel=session,
            provider=provider,
            working_directories=_tuple(working_directories),
            config=config,
            active_client=active_client,
            progress_token=progress_token,
        )
        await self.request("createSession", params)

    async def dispose_session(self, session: URI) -> None:
        """End a session for everybody (R-8.22)."""
        await self.request("disposeSession", DisposeSessionParams(channel=session))

    async def create_chat(
        self,
        session: URI,
        chat: URI,
        *,
        initial_message: Message | None = None,
        source: ChatSource | None = None,
        working_directories: Sequence[URI] | None = None,
    ) -> None:
        """Make a chat in a session, under a URI of the caller's choice (R-9.1)."""
        params = CreateChatParams(
            channel=session,
            chat=chat,
            initial_message=initial_message,
            source=source,
            working_directories=_tuple(working_directories),
        )
        await self.request("createChat", params)

    async def dispose_chat(self, chat: URI) -> None:
        """End a chat (R-9.17)."""
        await self.request("disposeChat", DisposeChatParams(channel=chat))

    async def fetch_turns(self, chat: URI, cursor: str | None = None) -> None:
        """Have older turns loaded; they are in the chat's store when this returns (R-9.72)."""
        await self.request("fetchTurns", FetchTurnsParams(channel=chat, cursor=cursor))

    async def authenticate(
        self,
        resource: str,
        token: str,
        *,
        expires_in: int | None = None,
        scopes: Sequence[str] | None = None,
    ) -> None:
        """Hand over a token, for this connection only (R-19.11); an empty one takes it back."""
        params = AuthenticateParams(
            resource=resource, token=token, expires_in=expires_in, scopes=_tuple(scopes)
        )
        await self.request("authenticate", params)


def _tuple(items: Sequence[str] | None) -> tuple[str, ...] | None:
    return None if items is None else tuple(items)
