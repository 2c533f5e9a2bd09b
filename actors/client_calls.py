"""Calls of clients' tools in one chat: from the agent's wish to the result it gets (RULES 10).

The call is its client's to run and to end. Three things end it instead: the client is not active in
the session (any more), it keeps silent for `Settings.client_tool_within`, or the turn ends. The
result goes to the agent when its envelope is out, whoever said it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import attrs
import trio

from actors.client_tools import failing, find_offer, nobody, open_calls, opening
from actors.desk import Desk
from actors.host import Host
from ahpd.agents.events import ClientToolCalled
from ahpd.protocol.chat import ActiveTurn, tool_call_key
from ahpd.protocol.chat_actions import ChatToolCallReadyAction
from ahpd.protocol.session import SessionState
from ahpd.protocol.tools import ToolCallStreamingState
from supervisors import Actor


@attrs.frozen
class ClientSilent:
    """The client of this call may have kept silent for too long: look."""

    turn_id: str
    call_id: str


class ClientCalls:
    """See the module's docstring. `actor` is the chat's, on whose behalf all is said."""

    def __init__(self, host: Host, actor: Actor[Any], desk: Desk) -> None:
        self._host = host
        self._actor = actor
        self._desk = desk
        #: When the patience with each call ends, on trio's clock.
        self._due: dict[str, float] = {}

    def called(
        self, turn: ActiveTurn, event: ClientToolCalled, session: SessionState, starter: str | None
    ) -> None:
        """The model called a client's tool. What nobody can run fails at once."""
        if turn.response_parts.index_of(tool_call_key(event.call_id)) >= 0:
            return  # a second start would make a second row for one call
        offer = find_offer(session, event.name, starter)
        for action in opening(turn.id, event, offer):
            self._desk.say(action)
        if offer is None:
            reason = nobody(session, event.name)
            self._desk.say_and_act(failing(turn.id, event.call_id, reason))
            return
        self.heard(event.call_id)
        if self._due[event.call_id] < math.inf:
            self._actor.spawn(self._watch, turn.id, event.call_id, name=f"call {event.call_id}")

    def heard(self, call_id: str) -> None:
        """Its client said something of the call, which gives it all its time again (R-10.39)."""
        within = self._host.settings.client_tool_within
        self._due[call_id] = trio.current_time() + within if within > 0 else math.inf

    async def _watch(self, turn_id: str, call_id: str) -> None:
        """Helper: say when a call has lasted too long without a word."""
        while (due := self._due.get(call_id, math.inf)) > trio.current_time():
            if due == math.inf:
                return
            await trio.sleep_until(due)
        self._actor.ref.cast(ClientSilent(turn_id, call_id))

    def silent(self, turn: ActiveTurn | None, message: ClientSilent) -> bool:
        """Fail a call whose client kept silent; True when there was one."""
        due = self._due.get(message.call_id, math.inf)
        if turn is None or turn.id != message.turn_id or trio.current_time() < due:
            return False
        within = self._host.settings.client_tool_within
        return self._fail(
            turn, lambda call_id, _: call_id == message.call_id,
            lambda _, client: f"the client {client} did not answer in {within:g} s",
        )  # fmt: skip

    def match(self, turn: ActiveTurn | None, session: SessionState) -> bool:
        """Fail the calls of clients that take no part any more (R-10.37); True if there were."""
        if turn is None:
            return False
        active = {client.client_id for client in session.active_clients}
        return self._fail(
            turn, lambda _, client: client not in active,
            lambda name, client: nobody(session, name, client),
        )  # fmt: skip

    def _fail(
        self, turn: ActiveTurn, which: Callable[[str, str], bool], reason: Callable[[str, str], str]
    ) -> bool:
        found = [
            (call, reason(call.tool_name, client))
            for call, client in open_calls(turn)
            if which(call.tool_call_id, client)
        ]
        for call, why in found:
            if isinstance(call, ToolCallStreamingState):
                # A completion is dropped by every reducer while the input streams (quirk 41).
                self._desk.say(
                    ChatToolCallReadyAction(
                        turn_id=turn.id,
                        tool_call_id=call.tool_call_id,
                        invocation_message=call.display_name,
                        confirmed="not-needed",
                    )
                )
            self._desk.say_and_act(failing(turn.id, call.tool_call_id, why))
        return bool(found)

    def over(self, call_id: str) -> None:
        """The call has ended."""
        self._due.pop(call_id, None)

    def turn_over(self) -> None:
        """All calls have ended with their turn."""
        self._due.clear()
