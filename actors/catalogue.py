"""The catalogue: which sessions there are. Makes them, ends them, and keeps their summaries.

The summaries are in `Host.catalogue`, as root subscribers were last told; like a session with its
chats, the catalogue reads what it missed off the sessions' states when it starts again.
"""

from __future__ import annotations

import logging
from contextlib import suppress
from typing import Any, TypeAlias

from actors.drafts import is_unused
from actors.endings import close_channel
from actors.forgetting import forget
from actors.host import Host
from actors.ledger import Channel
from actors.making import announce, chat_path, open_session, supervisor_id
from actors.messages import (
    CollectDraft,
    CreateSession,
    DisposeSession,
    LookForPast,
    MatchSessions,
    PastFound,
    SessionMoved,
    SessionsCounted,
    WakeSession,
)
from actors.past import Past, with_conversations
from actors.refusal import refusal
from actors.rules.names import session_name_fault
from actors.settings import begin_chat, begin_session
from actors.sources import Beginning, made_chat
from actors.summaries import chat_row, is_worker, older_summary, session_summary, summary_changes
from actors.telling import tell
from actors.terminals import stop_terminals, take_out, terminals_of
from actors.upkeep import conversation_of
from actors.waking import wake
from ahpd.agents.port import Agent, OpenRequest
from ahpd.journal.port import Journal, JournalFailed
from ahpd.protocol import uris
from ahpd.protocol.errors import ErrorCode
from ahpd.protocol.root import SessionRemovedParams, SessionSummaryChangedParams
from ahpd.protocol.session import CreateSessionParams, SessionState, SessionSummary
from ahpd.protocol.uris import ROOT, URI
from ahpd.reducers.status import IDLE, READ
from supervisors import Actor, Failure, FailureKind, Reject, Reply, StartFailed

_log = logging.getLogger("ahpd.sessions")

Incoming: TypeAlias = (
    CreateSession
    | DisposeSession
    | SessionMoved
    | CollectDraft
    | MatchSessions
    | WakeSession
    | LookForPast
    | PastFound
)


class Catalogue(Actor[Incoming]):
    """See the module's docstring."""

    kind = "catalogue"

    def __init__(self, host: Host, journal: Journal) -> None:
        self._host = host
        self._journal = journal
        self._past = Past(host, self)
        #: Who waits for a conversation that is being recalled.
        self._recalling: dict[URI, list[Reply[None]]] = {}

    async def on_start(self) -> None:
        """Say what moved while nobody looked, and finish what an earlier incarnation had begun."""
        for uri in list(self._summaries):
            self._look_at(uri)
        if self._host.catalogue is not None:
            await self._start_missing()
            await self._stop_orphans()
            for uri in list(self._host.dormant.busy):
                with suppress(Reject):
                    await self._wake(uri)

    async def handle(self, message: Incoming) -> Any:
        """One message; see `actors.messages` for what each says."""
        match message:
            case SessionMoved():
                self._look_at(message.session)
            case CreateSession():
                await self._create(message)
            case DisposeSession():
                self._dispose(message.session)
            case CollectDraft():
                self._collect(message.session)
            case MatchSessions():
                await self._start_missing()
            case WakeSession() if message.session in self._host.past:
                self._recall(message.session)
            case WakeSession():
                await self._wake(message.session)
            case LookForPast() if self._host.catalogue is not None:
                self._past.look()
            case PastFound():
                if self._past.found(message, self._left_out):
                    self._count()
            case _:
                pass

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
        _log.debug("session %s is made for %s", uri, client_id)
        chat_uri = uris.default_chat(uri)
        now = host.clock.now()
        chat = made_chat(chat_uri, now, Beginning())
        client = params.active_client
        session = SessionState(
            provider=provider,
            title="",
            status=IDLE | READ,
            working_directories=directories,
            lifecycle="creating",
            active_clients=() if client is None else (client.evolve(client_id=client_id),),
            chats=(chat_row(chat, "", None),),
            default_chat=chat_uri,
            config=message.config.state,
        )
        channel = open_session(host, self.find, uri, session)
        begin_session(channel, message.config)
        chats = [host.ledger.open(chat_uri, "chat", chat, chat_path(channel), uri)]
        begin_chat(channel, chats[0], client_id)
        announce(host, channel, now)
        self._count()
        try:
            await self._start(channel, chats)
        except StartFailed as error:
            self._forget(channel)
            raise refusal(ErrorCode.INTERNAL_ERROR, "the session did not start") from error

    async def _start(self, channel: Channel, chats: list[Channel]) -> None:
        sessions = self.system.supervisor("sessions")
        # Half of what a host consists of; no editor need wait for it before there is a session.
        from actors.session import session_spec  # noqa: PLC0415

        await sessions.start_child(session_spec(self._host, channel, chats))

    async def _start_missing(self) -> None:
        """Sessions without actors get them."""
        for session in self._without_actors():
            await self._start(session, self._served_chats(session))

    def _served_chats(self, session: Channel) -> list[Channel]:
        """The chats that have actors of their own; those of workers have not."""
        of_it = self._host.ledger.channels_of(session.uri)
        return [each for each in of_it if each.kind == "chat" and not is_worker(each.state)]

    def _without_actors(self) -> list[Channel]:
        running = self._running()
        named = self._by_name()
        return [named[name] for name in sorted(named.keys() - running)]

    async def _stop_orphans(self) -> None:
        """Actors without a session go."""
        sessions = self.system.supervisor("sessions")
        for name in sorted(self._running() - self._by_name().keys()):
            await sessions.stop_child(name, "the session was ended")

    def _by_name(self) -> dict[str, Channel]:
        """The sessions there are, by the id that their supervisors have."""
        channels = self._host.ledger.channels.values()
        return {supervisor_id(each): each for each in channels if each.kind == "session"}

    def _running(self) -> set[str]:
        sessions = self.system.supervisor("sessions")
        return {child.id for child in sessions.which_children()}

    def _check_new(self, uri: URI, provider: str) -> None:
        host = self._host
        if host.catalogue is None:
            raise refusal(ErrorCode.INTERNAL_ERROR, "stored sessions are still being read")
        taken = host.ledger.find(uris.canonical(uri)) is not None
        # What is there already is the better reason: who asks again has its answer.
        wrong = None if taken or uri in host.catalogue else session_name_fault(uri)
        if wrong is not None:
            raise refusal(ErrorCode.INVALID_PARAMS, f"createSession: channel: {wrong}")
        if uri in host.catalogue:
            raise refusal(ErrorCode.SESSION_ALREADY_EXISTS, f"the session {uri} already exists")
        for other in (uris.canonical(uri), uris.default_chat(uri), uris.annotations_of(uri)):
            if host.ledger.find(other) is not None or host.dormant.owner_of(other) is not None:
                raise refusal(ErrorCode.SESSION_ALREADY_EXISTS, f"{other} is another channel")
        if provider not in host.agents:
            known = ", ".join(host.agents)
            raise refusal(
                ErrorCode.PROVIDER_NOT_FOUND, f"there is no agent {provider}; there are: {known}"
            )

    def _directories(self, params: CreateSessionParams, provider: str) -> tuple[URI, ...] | None:
        """R-8.12: more than one only where the agent can; else the first."""
        capabilities = self._host.agent_of(provider).info.capabilities
        several = capabilities is not None and capabilities.multiple_working_directories is not None
        held = params.working_directories
        return held if held is None or several else held[:1]

    # ---- waking ------------------------------------------------------------------------------

    async def _wake(self, uri: URI) -> None:
        """Load a session that is kept, and start its actors. Raises `Reject`."""
        if uri not in self._host.dormant:
            return
        try:
            channel = await wake(self._host, self._journal, self.find, uri)
        except JournalFailed as error:
            raise refusal(ErrorCode.INTERNAL_ERROR, f"the session {uri}: {error}") from error
        if channel is None:
            self._left_out(uri)
            raise refusal(ErrorCode.SESSION_NOT_FOUND, f"the session {uri} cannot be read any more")
        if uri in self._summaries:
            self._look_at(uri)
        else:  # when it was made is not known any more
            announce(self._host, channel, self._host.clock.now())
            self._count()
        try:
            await self._start(channel, self._served_chats(channel))
        except StartFailed as error:
            raise refusal(ErrorCode.INTERNAL_ERROR, f"the session {uri} did not start") from error

    def _recall(self, uri: URI) -> None:
        """Load a conversation of an agent's; the mailbox does not wait for it."""
        waiting = self._recalling.setdefault(uri, [])
        waiting.append(self.defer())
        if len(waiting) == 1:
            self.spawn(self._load_past, uri, name=f"recall {uri}")

    async def _load_past(self, uri: URI) -> None:
        """Helper: make it a session, and say so to all who wait."""
        row, refused = self._host.past.get(uri), None
        try:
            if row is not None:
                told = await self._past.recall(row)
                if self._past.take_out(uri) is not None:
                    channel = self._past.make(self.find, uri, row, told)
                    self._look_at(uri)
                    await self._start(channel, self._served_chats(channel))
        except (Reject, StartFailed) as error:
            refused = error if isinstance(error, Reject) else Reject("the session did not start")
        for reply in self._recalling.pop(uri, []):
            if refused is None:
                reply.answer(None)
            else:
                why = Failure(FailureKind.REJECTED, self.path, refused.reason, refused.detail)
                reply.fail(why)

    def _left_out(self, uri: URI) -> None:
        """There is no such session any more, for those who see lists."""
        self._summaries.pop(uri, None)
        removed = SessionRemovedParams(channel=ROOT, session=uri)
        self._host.notify("root/sessionRemoved", removed, removed)
        self._count()

    # ---- ending ------------------------------------------------------------------------------

    def _dispose(self, uri: URI) -> None:
        """R-8.22: nothing of the session is said after `root/sessionRemoved` (hazard B41)."""
        host = self._host
        channel = host.ledger.find(uri)
        if channel is None or channel.kind != "session":
            raise refusal(ErrorCode.SESSION_NOT_FOUND, f"there is no session {uri}")
        self._look_at(uri)
        _log.debug("session %s is disposed of", uri)
        self._end(channel)

    def _collect(self, uri: URI) -> None:
        """End a session that was never used, unless somebody is just about to use it."""
        channel = self._host.ledger.find(uri)
        if channel is None or channel.kind != "session" or not is_unused(self._host, channel):
            return
        inside = (channel, *self._host.ledger.channels_of(uri))
        if not any(self._is_waited_for(each) for each in inside):
            self._end(channel)

    def _is_waited_for(self, channel: Channel) -> bool:
        waiting = self.find(channel.path).statistics()
        return waiting is not None and bool(waiting.depth or waiting.urgent)

    def _end(self, channel: Channel) -> None:
        host = self._host
        requests = [conversation_of(host, chat) for chat in self._served_chats(channel)]
        named = [each.conversation for each in requests if each.conversation is not None]
        host.let_go.update((channel.state.provider, name) for name in named)
        agent = host.agent_of(channel.state.provider)
        owned = terminals_of(host, channel.uri)
        take_out(host, owned)
        self._forget(channel)
        self.spawn(self._tear_down, channel, agent, requests, name="dispose")
        if owned:
            self.spawn(stop_terminals, self._host, self.system, owned, name="terminals")

    def _forget(self, channel: Channel) -> None:
        """From now on there is no such session."""
        host, uri = self._host, channel.uri
        for other in host.ledger.channels_of(uri):
            close_channel(host, other)
        close_channel(host, channel)
        self._left_out(uri)

    async def _tear_down(self, channel: Channel, agent: Agent, requests: list[OpenRequest]) -> None:
        """Helper: bring the session's actors and agents down; its URI is free already."""
        child = supervisor_id(channel)
        await self.system.supervisor("sessions").stop_child(child, "the session was ended")
        await forget(self._host, agent, requests)

    # ---- telling -----------------------------------------------------------------------------

    def _look_at(self, uri: URI) -> None:
        """Say what moved in a session's summary (R-7.14)."""
        channel, before = self._host.ledger.find(uri), self._summaries.get(uri)
        if channel is None or before is None:
            return
        channel.stirred = False
        annotations = self._host.ledger.state_of(uris.annotations_of(uri), "annotations")
        after = session_summary(uri, channel.state, before.created_at, annotations)
        after = with_conversations(after, self._served_chats(channel))
        changes = summary_changes(before, after)
        if changes is None:
            return
        self._summaries[uri] = after
        channel.note(summary=after)
        older = older_summary(changes)
        params = SessionSummaryChangedParams(channel=ROOT, session=uri, changes=changes)
        self._host.notify(
            "root/sessionSummaryChanged", params, params.evolve(changes=older) if older else None
        )

    def _count(self) -> None:
        tell(self.find("root"), SessionsCounted(len(self._summaries)))
