"""The catalogue: which sessions there are. Makes them, ends them, and keeps their summaries.

The summaries are in `Host.catalogue`, as root subscribers were last told; like a session with its
chats, the catalogue reads what it missed off the sessions' states when it starts again.
"""

from __future__ import annotations

import re
from typing import Any, TypeAlias

from actors.endings import close_channel
from actors.host import Host
from actors.ledger import Channel
from actors.messages import CreateSession, DisposeSession, SessionMoved, SessionsCounted
from actors.refusal import refusal
from actors.session import new_chat, session_spec
from actors.settings import begin_chat, begin_session
from actors.summaries import chat_row, is_worker, older_summary, session_summary, summary_changes
from actors.telling import tell
from ahpd.protocol import uris
from ahpd.protocol.errors import ErrorCode
from ahpd.protocol.root import SessionAddedParams, SessionRemovedParams, SessionSummaryChangedParams
from ahpd.protocol.session import CreateSessionParams, SessionState, SessionSummary
from ahpd.protocol.uris import ROOT, URI
from ahpd.reducers.status import IDLE, READ
from supervisors import Actor, StartFailed

Incoming: TypeAlias = CreateSession | DisposeSession | SessionMoved


class Catalogue(Actor[Incoming]):
    """See the module's docstring."""

    kind = "catalogue"

    def __init__(self, host: Host) -> None:
        self._host = host

    async def on_start(self) -> None:
        """Say what moved while nobody looked, and finish what an earlier incarnation had begun."""
        for uri in list(self._summaries):
            self._look_at(uri)
        await self._match_sessions()

    async def handle(self, message: Incoming) -> Any:
        """One message; see `actors.messages` for what each says."""
        match message:
            case SessionMoved():
                self._look_at(message.session)
            case CreateSession():
                await self._create(message)
            case DisposeSession():
                self._dispose(message.session)

    @property
    def _summaries(self) -> dict[URI, SessionSummary]:
        return self._host.catalogue if self._host.catalogue is not None else {}

    # ---- making ------------------------------------------------------------------------------

    async def _create(self, message: CreateSession) -> None:
        """R-8.1 to R-8.8: the channel can be subscribed as soon as this answers, and before."""
        params, client_id = message.params, message.client_id
        host, uri = self._host, params.channel
        provider = params.provider or host.default_provider
        self._check_new(uri, provider)
        directories = self._directories(params, provider)
        chat_uri = uris.default_chat(uri)
        now = host.clock.now()
        chat = new_chat(chat_uri, now)
        client = params.active_client
        session = SessionState(
            provider=provider,
            title="",
            status=IDLE | READ,
            working_directories=directories,
            lifecycle="creating",
            active_clients=() if client is None else (client.evolve(client_id=client_id),),
            chats=(chat_row(chat, ""),),
            default_chat=chat_uri,
            config=message.config.state,
        )
        base = f"session/{self._slug(uri)}"
        channel = host.ledger.open(uri, "session", session, f"{base}/session")
        begin_session(channel, message.config)
        chats = [host.ledger.open(chat_uri, "chat", chat, f"{base}/chat/0", uri)]
        begin_chat(channel, chats[0], client_id)
        summary = session_summary(uri, session, now)
        self._summaries[uri] = summary
        host.notify(
            "root/sessionAdded",
            SessionAddedParams(channel=ROOT, summary=summary),
            SessionAddedParams(channel=ROOT, summary=older_summary(summary)),
        )
        self._count()
        try:
            await self._start(channel, chats)
        except StartFailed as error:
            self._forget(channel)
            raise refusal(ErrorCode.INTERNAL_ERROR, "the session did not start") from error

    async def _start(self, channel: Channel, chats: list[Channel]) -> None:
        sessions = self.system.supervisor("sessions")
        await sessions.start_child(session_spec(self._host, channel, chats))

    async def _match_sessions(self) -> None:
        """Sessions without actors get them; actors without a session go."""
        if self._host.catalogue is None:
            return
        channels = self._host.ledger.channels.values()
        mine = {c.path.split("/")[1]: c for c in channels if c.kind == "session"}
        sessions = self.system.supervisor("sessions")
        running = {child.id for child in sessions.which_children()}
        for name in sorted(mine.keys() - running):
            uri = mine[name].uri
            chats = [c for c in channels if c.owner == uri and not is_worker(c.state)]
            await self._start(mine[name], chats)
        for name in sorted(running - mine.keys()):
            await sessions.stop_child(name, "the session was ended")

    def _check_new(self, uri: URI, provider: str) -> None:
        host = self._host
        if host.catalogue is None:
            raise refusal(ErrorCode.INTERNAL_ERROR, "stored sessions are still being read")
        if uri in host.catalogue:
            raise refusal(ErrorCode.SESSION_ALREADY_EXISTS, f"the session {uri} already exists")
        for other in (uris.canonical(uri), uris.default_chat(uri)):
            if host.ledger.find(other) is not None:
                raise refusal(ErrorCode.SESSION_ALREADY_EXISTS, f"{other} is another channel")
        if provider not in host.agents:
            known = ", ".join(host.agents)
            raise refusal(
                ErrorCode.PROVIDER_NOT_FOUND, f"there is no agent {provider}; there are: {known}"
            )

    def _directories(self, params: CreateSessionParams, provider: str) -> tuple[URI, ...] | None:
        """R-8.12: more than one only where the agent can; else the first."""
        capabilities = self._host.agents[provider].info.capabilities
        several = capabilities is not None and capabilities.multiple_working_directories is not None
        held = params.working_directories
        return held if held is None or several else held[:1]

    def _slug(self, uri: URI) -> str:
        """A name for paths: the readable end of the URI, and a number when that is taken."""
        name = re.sub(r"[^A-Za-z0-9._-]+", "-", uri.partition(":")[2]).strip("-")[-36:] or "s"
        taken = self.system.registry
        if taken.get(f"session/{name}") is None:
            return name
        number = 2
        while taken.get(f"session/{name}~{number}") is not None:
            number += 1
        return f"{name}~{number}"

    # ---- ending ------------------------------------------------------------------------------

    def _dispose(self, uri: URI) -> None:
        """R-8.22: nothing of the session is said after `root/sessionRemoved` (hazard B41)."""
        host = self._host
        channel = host.ledger.find(uri)
        if channel is None or channel.kind != "session":
            raise refusal(ErrorCode.SESSION_NOT_FOUND, f"there is no session {uri}")
        self._look_at(uri)
        self._forget(channel)
        self.spawn(self._tear_down, channel, name="dispose")

    def _forget(self, channel: Channel) -> None:
        """From now on there is no such session."""
        host, uri = self._host, channel.uri
        for other in [each for each in host.ledger.channels.values() if each.owner == uri]:
            close_channel(host, other)
        close_channel(host, channel)
        self._summaries.pop(uri, None)
        removed = SessionRemovedParams(channel=ROOT, session=uri)
        host.notify("root/sessionRemoved", removed, removed)
        self._count()

    async def _tear_down(self, channel: Channel) -> None:
        """Helper: bring the session's actors and agents down; its URI is free already."""
        child = channel.path.split("/")[1]
        await self.system.supervisor("sessions").stop_child(child, "the session was ended")

    # ---- telling -----------------------------------------------------------------------------

    def _look_at(self, uri: URI) -> None:
        """Say what moved in a session's summary (R-7.14)."""
        channel, before = self._host.ledger.find(uri), self._summaries.get(uri)
        if channel is None or before is None:
            return
        channel.stirred = False
        after = session_summary(uri, channel.state, before.created_at)
        changes = summary_changes(before, after)
        if changes is None:
            return
        self._summaries[uri] = after
        older = older_summary(changes)
        params = SessionSummaryChangedParams(channel=ROOT, session=uri, changes=changes)
        self._host.notify(
            "root/sessionSummaryChanged", params, params.evolve(changes=older) if older else None
        )

    def _count(self) -> None:
        tell(self.find("root"), SessionsCounted(len(self._summaries)))
