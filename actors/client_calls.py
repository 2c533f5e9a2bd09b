"""Calls of clients' tools in the chats of one agent: from its wish to the end (RULES 10).

The call is its client's to run and to end. Three things end it instead: the client is not active in
the session (any more), it keeps silent for `Settings.client_tool_within`, or the turn ends. Whoever
says the end, the agent gets the result when its envelope is out (`actors.answers`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any, TypeAlias

import trio
from msgspec import Struct

from actors.client_tools import failing, find_offer, nobody, open_calls, opening
from actors.conversation import Conversation
from actors.host import Host
from ahpd.agents.events import ClientToolCalled
from ahpd.protocol.chat import tool_call_key
from ahpd.protocol.chat_actions import ChatToolCallReadyAction
from ahpd.protocol.session import SessionState
from ahpd.protocol.tools import ToolCallStreamingState
from ahpd.protocol.uris import URI
from supervisors import Actor

#: The chat and the id of a call.
Key: TypeAlias = tuple[URI, str]


class ClientSilent(Struct, frozen=True):
    """The client of this call may have kept silent for too long: look."""

    chat: URI
    call_id: str


class ClientCalls:
    """See the module's docstring. `actor` is the chat's, on whose behalf all is said."""

    def __init__(self, host: Host, actor: Actor[Any]) -> None:
        self._host = host
        self._actor = actor
        #: When the patience with each call ends, on trio's clock.
        self._due: dict[Key, float] = {}

    def called(
        self,
        talk: Conversation,
        event: ClientToolCalled,
        session: SessionState,
        starter: str | None,
    ) -> None:
        """The model called a client's tool. What nobody can run fails at once."""
        turn = talk.state.active_turn
        if turn is None:
            talk.refuse(event)
            return
        if turn.response_parts.index_of(tool_call_key(event.call_id)) >= 0:
            return  # a second start would make a second row for one call
        talk.note_wait(event)
        offer = find_offer(session, event.name, starter)
        for action in opening(turn.id, event, offer):
            talk.desk.say(action)
        if offer is None:
            talk.desk.say_and_act(failing(turn.id, event.call_id, nobody(session, event.name)))
            return
        within = self._host.settings.client_tool_within
        if within > 0:
            key = talk.channel.uri, event.call_id
            self._due[key] = trio.current_time() + within
            self._actor.spawn(self._watch, key, name=f"call {event.call_id}")

    def heard(self, talk: Conversation, call_id: str) -> None:
        """Its client said something of the call, which gives it all its time again (R-10.39)."""
        key = talk.channel.uri, call_id
        if key in self._due:
            self._due[key] = trio.current_time() + self._host.settings.client_tool_within

    def over(self, talk: Conversation, call_id: str) -> None:
        """The call has ended."""
        self._due.pop((talk.channel.uri, call_id), None)

    def turn_over(self, talk: Conversation) -> None:
        """All its calls have ended."""
        for key in [key for key in self._due if key[0] == talk.channel.uri]:
            del self._due[key]

    async def _watch(self, key: Key) -> None:
        """Helper: say when a call has lasted too long without a word."""
        while (due := self._due.get(key, math.inf)) > trio.current_time():
            if due == math.inf:
                return  # it is over
            await trio.sleep_until(due)
        self._actor.ref.cast(ClientSilent(*key))

    def silent(self, talk: Conversation, message: ClientSilent) -> bool:
        """Fail a call whose client kept silent; True when there was one."""
        due = self._due.get((message.chat, message.call_id), math.inf)
        if trio.current_time() < due:
            return False
        within = self._host.settings.client_tool_within
        return _fail(
            talk, lambda call_id, _: call_id == message.call_id,
            lambda _, client: f"the client {client} did not answer in {within:g} s",
        )  # fmt: skip

    def match(self, talks: Iterable[Conversation], session: SessionState) -> list[Conversation]:
        """Fail the calls of clients that take no part any more (R-10.37); where there were some."""
        active = {client.client_id for client in session.active_clients}
        return [
            talk
            for talk in talks
            if _fail(
                talk, lambda _, client: client not in active,
                lambda name, client: nobody(session, name, client),
            )
        ]  # fmt: skip


def _fail(
    talk: Conversation,
    which: Callable[[str, str], bool],
    reason: Callable[[str, str], str],
) -> bool:
    """End the open calls that are meant, told by (id, client), for a reason by (name, client)."""
    turn = talk.state.active_turn
    if turn is None:
        return False
    found = [
        (call, reason(call.tool_name, client))
        for call, client in open_calls(turn)
        if which(call.tool_call_id, client)
    ]
    for call, why in found:
        if isinstance(call, ToolCallStreamingState):
            # A completion is dropped by every reducer while the input streams (quirk 41).
            talk.desk.say(
                ChatToolCallReadyAction(
                    turn_id=turn.id,
                    tool_call_id=call.tool_call_id,
                    invocation_message=call.display_name,
                    confirmed="not-needed",
                )
            )
        talk.desk.say_and_act(failing(turn.id, call.tool_call_id, why))
    return bool(found)
