"""Breakpoints on action types: which message brings an action, and whether somebody waits for it.

An actor is held before the message that brings the action, where that is known: of a client's
dispatch, and of what an agent says. An action that it comes to say otherwise is seen when it has
been said, and the actor is held right after that message. Either way it is between two messages.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from difflib import get_close_matches
from itertools import chain
from types import CodeType
from typing import Any

from actors.host import Host
from actors.ledger import Channel, Entry
from actors.messages import AgentSays, AsideSays, Dispatch, RunOver
from actors.turn import actions_beside, actions_for, ending
from ahpd import reducers
from ahpd.agents.events import Event, TextChunk, ThoughtChunk
from ahpd.inspection.python import compiled, evaluated
from ahpd.inspection.shown import in_words
from ahpd.protocol.actions import ACTIONS, StateAction, action_type
from ahpd.protocol.chat import ChatState
from ahpd.protocol.errors import ErrorCode, ProtocolError
from supervisors import Actor


class Break:
    """One breakpoint: an action type, and an expression that has to be true, if there is one.

    In the expression `action`, `message`, `state` and `actor` have their values of that moment.
    """

    def __init__(self, number: int, type: str, condition: str | None) -> None:
        """Raises `ProtocolError` for a type that there is not, and for what is no expression."""
        if type not in ACTIONS:
            near = ", ".join(get_close_matches(type, ACTIONS, 3))
            hint = f"; did you mean {near}?" if near else ""
            raise ProtocolError(ErrorCode.INVALID_PARAMS, f"there is no action {type}{hint}")
        self.number = number
        self.type = type
        self.condition = condition
        #: The message before which it held the actor last.
        self.held_before: object = None
        self._code: CodeType | None = None
        if condition is not None:
            try:
                self._code = compiled(condition, "<condition>")
            except (SyntaxError, ValueError) as error:
                raise ProtocolError(
                    ErrorCode.INVALID_PARAMS, f"{condition} is no Python expression: {error}"
                ) from None

    def hit_before(self, message: object, channel: Channel | None, actor: Actor[Any]) -> str | None:
        """Why to hold the actor before this message; None: go on. Sync; never fails."""
        for action in brought_by(message, channel):
            why = self._hit(action, message, channel, actor)
            if why is not None:
                return f"before {action_type(action)}{why}"
        return None

    def hit_after(
        self, said: Sequence[StateAction], message: object, channel: Channel, actor: Actor[Any]
    ) -> str | None:
        """As `hit_before`, for what was said in a message that has been handled."""
        for action in said:
            why = self._hit(action, message, channel, actor)
            if why is not None:
                return f"after {action_type(action)}{why}"
        return None

    def _hit(
        self, action: StateAction, message: object, channel: Channel | None, actor: Actor[Any]
    ) -> str | None:
        if action_type(action) != self.type:
            return None
        if self._code is None:
            return ""
        state = channel.state if channel is not None else None
        names = {"action": action, "message": message, "state": state, "actor": actor}
        try:
            return "" if evaluated(self._code, names) else None
        except Exception as error:  # noqa: BLE001 the expression is somebody's own
            return f": {self.condition} failed: {type(error).__name__}: {in_words(error, 100)}"

    def __str__(self) -> str:
        return self.type if self.condition is None else f"{self.type} if {self.condition}"


def brought_by(message: object, channel: Channel | None) -> Iterator[StateAction]:
    """The actions that handling a message will say, as far as that is known before."""
    state = channel.state if channel is not None else None
    match message:
        case Dispatch(action=action) if action is not None:
            yield action
        case AgentSays(events=events) if isinstance(state, ChatState):
            yield from _of_events(state, events)
        case AsideSays(events=events):
            for event in events:
                yield from actions_beside(event)
        case RunOver(outcome=outcome) if isinstance(state, ChatState):
            if state.active_turn is not None:
                yield ending(state.active_turn.id, 0.0, outcome)
        case _:
            pass


def _of_events(state: ChatState, events: Sequence[Event]) -> Iterator[StateAction]:
    """Each event in the state that the ones before it lead to; pieces of text lead nowhere."""
    for event in events:
        if state.active_turn is None:
            return
        for action in actions_for(state.active_turn, event):
            yield action
            if not isinstance(event, TextChunk | ThoughtChunk):
                state = reducers.apply("chat", state, action)


def said_since(host: Host, seq: int, path: str) -> list[StateAction]:
    """What the actor at a path has said since a number, oldest first."""
    found: list[StateAction] = []
    for item in chain(reversed(host.ledger.queue), host.window.newest_first()):
        if isinstance(item, Entry):
            if item.seq <= seq:
                break
            if item.channel.path == path and item.action is not None:
                found.append(item.action)
    return found[::-1]
