"""Moving a chat: to another place in its session, to another session, or to one made for it.

A move is checked as a whole and then done in one step, without an await between: who owns the chat
and its workers, their places, and the default chat of a new session change together with what is
said about them (R-9.26). So no crash finds it half done; a refusal has changed nothing.

The step runs inside the chat's own actor, at a moment when nothing waits for that (`Relocate`), so
no dispatch is left with an actor that no longer answers for the chat. After it the chat's path is
another. Its new session starts an actor there, the old one stops the actor it had, each by making
its actors agree with its chats, also after a crash; what clients dispatch in between waits for the
new actor as it would for one that starts again.
"""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from actors.desk import Desk
from actors.host import Host
from actors.ledger import Channel
from actors.making import Find, announce, chat_path, open_session
from actors.messages import MatchChats, MatchSessions, SessionsCounted
from actors.metas import set_meta
from actors.summaries import chat_row
from actors.telling import stir_chat, stir_session, tell
from ahpd import reducers
from ahpd.protocol import session_actions as act
from ahpd.protocol.chat import (
    ChatMoveDestination,
    ChatMoveToNewSessionDestination,
    ChatMoveToSessionDestination,
    ChatState,
    ChatSummary,
    ToolChatOrigin,
)
from ahpd.protocol.chat_actions import ChatMovableChangedAction
from ahpd.protocol.model import Unknown
from ahpd.protocol.session import SessionState
from ahpd.protocol.uris import URI, canonical
from ahpd.reducers.status import ARCHIVED, IDLE, READ
from supervisors import Reject

# ---- which chats can be moved -------------------------------------------------------------------


def why_fixed(host: Host, session: Channel, chat: ChatState) -> str | None:
    """Why a chat of this session cannot be moved now; None: it can (R-9.22, R-9.23, R-9.27)."""
    state: SessionState = session.state
    if chat.resource == state.default_chat:
        return "the default chat of a session cannot be moved"
    if isinstance(chat.origin, ToolChatOrigin):
        return "a worker goes where the chat goes that it works for"
    if not host.agent_of(state.provider).can_resume:
        return f"the agent {state.provider} cannot take up a conversation again in another place"
    for uri in (chat.resource, *workers_of(state, chat.resource)):
        reason = _why_busy(host.ledger.state_of(uri, "chat"))
        if reason is not None:
            return reason
    return None


def _why_busy(chat: ChatState | None) -> str | None:
    if chat is None:
        return None
    if chat.active_turn is not None:
        return "a turn is running"
    if chat.background_work:
        return "the agent works on something beside the turns"
    if chat.steering_message is not None or chat.queued_messages:
        return "messages are waiting"
    return None


def workers_of(session: SessionState, chat: URI) -> list[URI]:
    """The chats that tool calls of this one started, and those of their own, in their order."""
    family = {chat}
    while True:
        more = {
            row.resource
            for row in session.chats
            if isinstance(row.origin, ToolChatOrigin) and row.origin.chat in family
        }
        if more <= family:
            break
        family |= more
    return [row.resource for row in session.chats if row.resource in family - {chat}]


def say_movable(host: Host, session: Channel, chat: Channel) -> None:
    """Say on a chat whether it can be moved, if that is news (R-9.29)."""
    movable = why_fixed(host, session, chat.state) is None
    if movable != bool(chat.state.movable):
        Desk(host, chat).say(ChatMovableChangedAction(movable=movable))


# ---- a move -------------------------------------------------------------------------------------


class Move:
    """One move that a client asked for. `session` is where the chat went, once it was done."""

    def __init__(
        self, host: Host, find: Find, chat: Channel, destination: ChatMoveDestination
    ) -> None:
        self._host = host
        self._find = find
        self._chat = chat
        self._destination = destination
        self.session: URI | None = None
        self._given_up = False

    def give_up(self) -> None:
        """Nobody waits for it any more: unless it was done before, it is not to be done."""
        self._given_up = True

    @property
    def leaves(self) -> bool:
        """Whether the chat goes to another session."""
        to = self._destination
        inside = isinstance(to, ChatMoveToSessionDestination) and (
            canonical(to.session) == self._chat.owner
        )
        return not inside

    def check(self) -> None:
        """Raise `Reject` if it cannot be done as things are now; changes nothing."""
        if self._given_up:
            raise Reject("nobody waits for this move any more")
        source = self._source()
        reason = why_fixed(self._host, source, self._chat.state)
        if reason is not None:
            raise Reject(reason)
        match self._destination:
            case ChatMoveToSessionDestination(after=after):
                target = self._target()
                self._check_anchor(target, after)
                if target is not source:
                    self._check_fits(source, target)
            case ChatMoveToNewSessionDestination():
                if self._host.catalogue is None:
                    raise Reject("stored sessions are still being read")
            case Unknown() as other:
                raise Reject(f"a chat cannot be moved to a destination of the kind {other.tag}")

    def carry_out(self) -> None:
        """Check again and do it, in one step."""
        self.check()
        source = self._source()
        match self._destination:
            case ChatMoveToSessionDestination(after=after) if self.leaves:
                self._transfer(source, self._target(), after)
            case ChatMoveToSessionDestination(after=after):
                self._reorder(source, after)
            case _:
                self._split_off(source)
        self.session = self._chat.owner

    # ---- checks --------------------------------------------------------------------------------

    def _source(self) -> Channel:
        owner = self._host.ledger.find(self._chat.owner) if self._chat.owner is not None else None
        if owner is None or self._chat.closed:
            raise Reject("the chat has ended")
        return owner

    def _target(self) -> Channel:
        assert isinstance(self._destination, ChatMoveToSessionDestination)
        uri = self._destination.session
        target = self._host.ledger.find(canonical(uri))
        if target is None or target.kind != "session":
            raise Reject(f"there is no session {uri}")
        return target

    def _check_anchor(self, target: Channel, after: URI | None) -> None:
        if after is None:
            return
        if after == self._chat.uri:
            raise Reject("a chat cannot be placed after itself")
        if all(row.resource != after for row in target.state.chats):
            raise Reject(f"the session {target.uri} has no chat {after}")

    def _check_fits(self, source: Channel, target: Channel) -> None:
        """The destination has to be able to go on with the conversation where it left off."""
        here: SessionState = source.state
        there: SessionState = target.state
        if there.lifecycle != "ready" or not self._find(target.path).alive:
            raise Reject(f"the session {target.uri} is not running just now")
        if there.provider != here.provider:
            raise Reject(f"the session {target.uri} uses the agent {there.provider}")
        used = self._chat.state.working_directories
        for directory in (here.working_directories or ()) if used is None else used:
            if directory not in (there.working_directories or ()):
                raise Reject(f"the session {target.uri} does not work in {directory}")

    # ---- the change -----------------------------------------------------------------------------

    def _reorder(self, session: Channel, after: URI | None) -> None:
        order = [row.resource for row in session.state.chats]
        order = _placed(order, [self._chat.uri], after)
        Desk(self._host, session).say(act.SessionChatsReorderedAction(chats=tuple(order)))
        stir_session(self._find, session)

    def _transfer(self, source: Channel, target: Channel, after: URI | None) -> None:
        family, rows = self._family(source)
        before = [row.resource for row in target.state.chats]
        self._hand_over(family, target)
        self._leave(source, rows)
        desk = Desk(self._host, target)
        for row in rows:
            desk.say(act.SessionChatAddedAction(summary=row))
        order = _placed(before, [chat.uri for chat in family], after)
        # Said also when it changes nothing: it completes the move for those who follow along.
        reordered = act.SessionChatsReorderedAction(chats=tuple(order))
        self._host.ledger.append(
            target, reordered, reducers.apply("session", target.state, reordered)
        )
        self._stir(family, source, target)
        tell(self._find(target.path), MatchChats())

    def _split_off(self, source: Channel) -> None:
        """R-9.21: a session of its own, in which the chat is the default one."""
        host, now = self._host, self._host.clock.now()
        Desk(host, self._chat).say(ChatMovableChangedAction(movable=False))
        family, rows = self._family(source)
        state: SessionState = source.state
        uri = f"{state.provider}:/{UUID(host.new_id())}"
        target = open_session(host, self._find, uri, _session_for(rows, state))
        target.note(chat_scoped=source.notes.chat_scoped, settings=source.notes.settings)
        self._hand_over(family, target)
        self._leave(source, rows)
        announce(host, target, now)
        self._stir(family, source, target)
        assert host.catalogue is not None
        tell(self._find("root"), SessionsCounted(len(host.catalogue)))
        tell(self._find("catalogue"), MatchSessions())

    def _family(self, source: Channel) -> tuple[list[Channel], list[ChatSummary]]:
        """The chat and all its workers, and the row of each as it is now."""
        uris = [self._chat.uri, *workers_of(source.state, self._chat.uri)]
        family = [found for uri in uris if (found := self._host.ledger.find(uri)) is not None]
        rows = {row.resource: row for row in source.state.chats}
        return family, [
            chat_row(chat.state, row.title, row.changes)
            for chat in family
            if (row := rows[chat.uri])
        ]

    def _hand_over(self, family: Sequence[Channel], target: Channel) -> None:
        path = chat_path(target)  # of one actor: a chat's workers are served by the chat's own
        for chat in family:
            chat.move(target.uri, path)

    def _leave(self, source: Channel, rows: Sequence[ChatSummary]) -> None:
        desk = Desk(self._host, source)
        leaving = {row.resource for row in rows}
        for entry in source.state.input_needed or ():
            if not isinstance(entry, Unknown) and entry.chat in leaving:
                desk.say(act.SessionInputNeededRemovedAction(id=entry.id))
        for row in rows:
            desk.say(act.SessionChatRemovedAction(chat=row.resource))
            set_meta(self._host, source, row.resource, None)  # its agent says it where it goes on

    def _stir(self, family: Sequence[Channel], source: Channel, target: Channel) -> None:
        """Have everybody look: at their actors, and at what they say about these chats."""
        for chat in family:
            chat.stirred = False  # whoever was asked to look no longer can
            stir_chat(self._find, chat, target)
        tell(self._find(source.path), MatchChats())
        stir_session(self._find, source)
        stir_session(self._find, target)


def _placed(order: Sequence[URI], moved: Sequence[URI], after: URI | None) -> list[URI]:
    """The order with `moved` directly after `after`, or first."""
    rest = [uri for uri in order if uri not in moved]
    place = 0 if after is None else rest.index(after) + 1
    return [*rest[:place], *moved, *rest[place:]]


def _session_for(rows: Sequence[ChatSummary], source: SessionState) -> SessionState:
    """The session that is made for a chat: it works as the one did that the chat comes from.

    It needs no start, since the chat's agent is brought up again when there is work for it. The
    default chat is archived with its session (R-9.90), and so the session with the chat.
    """
    chat = rows[0]
    return SessionState(
        provider=source.provider,
        title=chat.title,
        status=IDLE | READ | int(chat.status) & ARCHIVED,
        project=source.project,
        working_directories=source.working_directories,
        config=source.config,
        lifecycle="ready",
        active_clients=(),
        chats=tuple(rows),
        default_chat=chat.resource,
    )
