"""Conversations that agents themselves keep, and that began elsewhere: in lists beside sessions.

An agent is asked what it keeps when a client asks for a list, one agent at a time and not again for
a while; nobody waits for that, and an agent that does not answer takes nothing out of the list
(hazard B43). A conversation that no chat of this host has is a row. It is loaded, with what was
said in it, when a client names it, and is a session like any other from then on.
"""

from __future__ import annotations

import logging
import uuid
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from typing import Any, TypeAlias

import trio

from actors.clock import from_iso
from actors.host import Host, PastRow
from actors.ledger import Channel
from actors.making import Find, chat_path, open_session
from actors.messages import PastFound
from actors.refusal import refusal
from actors.rules.titles import cut
from actors.sources import Beginning, made_chat
from actors.summaries import chat_row, summary_changes
from actors.turn import actions_for
from ahpd import reducers
from ahpd.agents.port import AgentFailed, PastConversation, PastTurn, Remembering
from ahpd.protocol import chat_actions as act
from ahpd.protocol.chat import ChatState
from ahpd.protocol.errors import ErrorCode
from ahpd.protocol.jsontext import ParseError
from ahpd.protocol.root import SessionAddedParams, SessionSummaryChangedParams
from ahpd.protocol.session import SessionState, SessionSummary
from ahpd.protocol.uris import ROOT, URI, annotations_of, default_chat
from ahpd.reducers.status import IDLE, READ
from supervisors import Actor, SendRefused

_log = logging.getLogger("ahpd.agents")

#: Seconds that an agent gets to list what it keeps, and to tell one of them.
LIST_WITHIN = 60.0
RECALL_WITHIN = 120.0
#: Seconds after which agents are asked again, when somebody asks for a list.
AGAIN_AFTER = 600.0

Remove: TypeAlias = Callable[[URI], None]


class Past:
    """See the module. `actor` is the catalogue, in whose tasks agents are asked."""

    def __init__(self, host: Host, actor: Actor[Any]) -> None:
        self._host = host
        self._actor = actor
        self._asked_at = float("-inf")
        self._is_asking = False

    def look(self) -> None:
        """Somebody wants a list: ask the agents, if that was not done a while ago."""
        if self._is_asking or trio.current_time() < self._asked_at + AGAIN_AFTER:
            return
        self._is_asking, self._asked_at = True, trio.current_time()
        self._actor.spawn(self._ask_all, name="conversations")

    async def _ask_all(self) -> None:
        """Helper: one after the other, since each may be a program that takes its time."""
        try:
            for provider, agent in self._host.agents.items():
                if isinstance(agent, Remembering):
                    found = await _asked(provider, agent)
                    if found is not None:
                        with suppress(SendRefused):
                            await self._actor.ref.send(PastFound(provider, found))
        finally:
            self._is_asking = False

    # ---- rows --------------------------------------------------------------------------------

    def found(self, message: PastFound, remove: Remove) -> bool:
        """Show what an agent keeps, and what it keeps no longer not; whether rows came or went."""
        host, provider = self._host, message.provider
        known, moved = _ours(host), False
        found: dict[URI, PastConversation] = {}
        for each in message.conversations:
            if (provider, each.name) not in known:
                found[row_uri(provider, each.name)] = each
        for uri in [uri for uri, row in host.past.items() if row.provider == provider]:
            if uri not in found:
                self.take_out(uri)
                remove(uri)
                moved = True
        for uri, each in found.items():
            moved |= self._show(uri, provider, each)
        return moved

    def _show(self, uri: URI, provider: str, conversation: PastConversation) -> bool:
        host = self._host
        assert host.catalogue is not None, "a list was given: it is there"
        summary = _summary(uri, provider, conversation, host.clock.now())
        before = host.catalogue.get(uri)
        if before is None:
            if host.ledger.find(uri) is not None:
                return False
            host.catalogue[uri] = summary
            host.past[uri] = PastRow(provider, conversation)
            host.dormant.add(uri, (default_chat(uri), annotations_of(uri)))
            added = SessionAddedParams(channel=ROOT, summary=summary)
            host.notify("root/sessionAdded", added, added)
            return True
        if uri in host.past:
            host.past[uri] = PastRow(provider, conversation)
            summary = summary.evolve(created_at=before.created_at)
            changes = summary_changes(before, summary)
            if changes is not None and conversation.modified_at is not None:
                host.catalogue[uri] = summary
                told = SessionSummaryChangedParams(channel=ROOT, session=uri, changes=changes)
                host.notify("root/sessionSummaryChanged", told, told)
        return False

    def take_out(self, uri: URI) -> PastRow | None:
        """It is no row of these any more."""
        self._host.dormant.remove(uri)
        return self._host.past.pop(uri, None)

    # ---- opening one -------------------------------------------------------------------------

    async def recall(self, row: PastRow) -> Sequence[PastTurn]:
        """What was said in a conversation. Raises `Reject`."""
        agent = self._host.agents.get(row.provider)
        try:
            with trio.fail_after(RECALL_WITHIN):
                if isinstance(agent, Remembering):
                    return await agent.recall(row.conversation)
            why = f"this host has no agent {row.provider} any more"
        except AgentFailed as error:
            why = error.message
        except trio.TooSlowError:
            why = f"the agent did not tell it in {RECALL_WITHIN:g} s"
        except Exception as error:  # noqa: BLE001 an agent's own code: not the catalogue's end
            _log.exception("%s: telling a conversation failed", row.provider)
            why = f"the agent crashed: {error}"
        raise refusal(ErrorCode.INTERNAL_ERROR, f"the conversation cannot be opened: {why}")

    def make(self, find: Find, uri: URI, row: PastRow, told: Sequence[PastTurn]) -> Channel:
        """The session of a conversation, with its chat; who starts its actors is the catalogue."""
        host, conversation = self._host, row.conversation
        now = _when(conversation, host.clock.now())
        chat_uri = default_chat(uri)
        chat = filled(made_chat(chat_uri, now, Beginning()), told, now, host.new_id)
        title = cut(conversation.title or "")
        session = SessionState(
            provider=row.provider,
            title=title,
            status=IDLE | READ,
            working_directories=_folders(conversation),
            lifecycle="ready",
            active_clients=(),
            chats=(chat_row(chat, title, None),),
            default_chat=chat_uri,
        )
        channel = open_session(host, find, uri, session)
        made = host.ledger.open(chat_uri, "chat", chat, chat_path(channel), uri)
        made.note(conversation=conversation.name)
        made.consume(*(turn.id for turn in chat.turns))
        summaries = host.catalogue or {}
        if uri in summaries:
            channel.note(summary=summaries[uri])
        return channel


async def _asked(provider: str, agent: Remembering) -> Sequence[PastConversation] | None:
    """What an agent keeps; None: it does not say."""
    try:
        with trio.fail_after(LIST_WITHIN):
            return await agent.conversations()
    except AgentFailed as error:
        _log.info("%s: what it keeps is not known: %s", provider, error.message)
    except trio.TooSlowError:
        _log.warning("%s: it did not say in %g s what it keeps", provider, LIST_WITHIN)
    except Exception:  # noqa: BLE001 an agent's own code: not the catalogue's end
        _log.exception("%s: asking what it keeps failed", provider)
    return None


def _ours(host: Host) -> set[tuple[str, str]]:
    """The conversations that chats of this host have, or had, by agent and name."""
    found = set(host.let_go)
    for row in (host.catalogue or {}).values():
        names = (row.meta or {}).get(CONVERSATIONS)
        for name in names if isinstance(names, Sequence) else ():
            found.add((row.provider, str(name)))
    for channel in host.ledger.channels.values():
        if channel.kind == "chat" and channel.notes.conversation is not None and channel.owner:
            session = host.ledger.find(channel.owner)
            if session is not None:
                found.add((session.state.provider, channel.notes.conversation))
    return found


#: The key in a summary's `_meta` of what agents know its conversations by.
CONVERSATIONS = "ahpd.conversations"


def with_conversations(summary: SessionSummary, chats: Iterable[Channel]) -> SessionSummary:
    """The same with what the agents of its chats know them by, so that no list has them twice."""
    names = [each.notes.conversation for each in chats if each.notes.conversation is not None]
    return summary if not names else summary.evolve(meta={CONVERSATIONS: sorted(names)})


def row_uri(provider: str, name: str) -> URI:
    """The URI of a conversation's session: always the same."""
    return f"{provider}:/{uuid.uuid5(uuid.NAMESPACE_URL, f'{provider}/{name}')}"


def _summary(uri: URI, provider: str, conversation: PastConversation, now: str) -> SessionSummary:
    when = _when(conversation, now)
    return SessionSummary(
        resource=uri,
        provider=provider,
        title=cut(conversation.title or ""),
        status=IDLE | READ,
        working_directories=_folders(conversation),
        created_at=when,
        modified_at=when,
        default_chat=default_chat(uri),
    )


def _when(conversation: PastConversation, now: str) -> str:
    """When it changed last, as far as the agent says so in a way that can be read."""
    told = conversation.modified_at
    return told if told is not None and from_iso(told) is not None else now


def _folders(conversation: PastConversation) -> tuple[URI, ...] | None:
    return None if conversation.folder is None else (conversation.folder,)


def filled(
    chat: ChatState, told: Sequence[PastTurn], at: str, new_id: Callable[[], str]
) -> ChatState:
    """The chat with these turns in it. What no JSON can hold is left out."""
    for each in told:
        turn_id = new_id()
        begun = act.ChatTurnStartedAction(turn_id=turn_id, started_at=at, message=each.message)
        chat = reducers.apply("chat", chat, begun)
        for event in each.events:
            turn = chat.active_turn
            if turn is None:
                break
            with suppress(ParseError):
                for action in actions_for(turn, event):
                    chat = reducers.apply("chat", chat, action)
        over = act.ChatTurnCompleteAction(turn_id=turn_id, duration=0)
        chat = reducers.apply("chat", chat, over)
    return chat.evolve(status=IDLE | READ, activity=None, modified_at=at)
