"""Which turns outlive the host: those in which an agent waits for people, and for nothing else.

An agent that works loses what it was doing with the process, so its turn ends (invariant 7). One
that had asked, and can be brought to where it was, loses nothing: the question stays as it is, in
every list, and whoever answers it is heard.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from actors.ledger import Channel
from actors.waits import Waits
from ahpd.agents.port import Agent, Answer, Answers, Authorized, Enduring, Permission, Verdict
from ahpd.protocol.chat import ActiveTurn, InputRequestResponsePart, ToolCallResponsePart
from ahpd.protocol.model import Unknown
from ahpd.protocol.tools import (
    ToolCallAuthRequiredState,
    ToolCallCancelledState,
    ToolCallCompletedState,
    ToolCallPendingConfirmationState,
    ToolCallPendingResultConfirmationState,
)


class Waiting(Struct, frozen=True):
    """What an agent waits for: the kind of the answer, and about what."""

    kind: type[Answer]
    about: str


_WAITS: Mapping[type, type[Any]] = {
    ToolCallPendingConfirmationState: Permission,
    ToolCallPendingResultConfirmationState: Verdict,
    ToolCallAuthRequiredState: Authorized,
}
_OVER = (ToolCallCompletedState, ToolCallCancelledState)


def take_up(
    turn: ActiveTurn | None, channel: Channel, agent: Agent, waits: Waits
) -> Waiting | None:
    """What the turn that was left goes on waiting for; None: it has to end, if there is one.

    Only the host's own end is outlived: an actor that failed may have failed over this turn.
    """
    was_stored, channel.was_stored = channel.was_stored, False
    waiting = outlives(turn, agent) if was_stored and turn is not None else None
    if waiting is not None:
        waits.expect(channel.uri, waiting.kind, waiting.about)
    return waiting


def outlives(turn: ActiveTurn, agent: Agent) -> Waiting | None:
    """The one thing that a turn waits for, when its agent can be asked to go on from there."""
    if not isinstance(agent, Enduring):
        return None
    found: list[Waiting] = []
    for part in turn.response_parts:
        match part:
            case InputRequestResponsePart(response=None):
                found.append(Waiting(Answers, part.request.id))
            case ToolCallResponsePart(tool_call=call) if not isinstance(call, _OVER):
                kind = _WAITS.get(type(call))
                if kind is None or isinstance(call, Unknown):
                    return None  # a call that is under way
                found.append(Waiting(kind, call.tool_call_id))
            case _:
                pass
    if len(found) != 1 or not agent.takes_up(found[0].about):
        return None
    return found[0]
