"""Tools that clients offer to a session: their names, and what calls of them look like (RULES 10).

Pure. Several clients of one session may offer a tool of the same name, and the model is given one
list; so it knows a client's tool as ``<clientId>__<name>`` (R-10.42, R-10.43). What models take as
a name is narrow, so a tool whose full name holds anything else is not offered to them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import TypeAlias

from msgspec import Struct

from ahpd.agents.events import ClientToolCalled
from ahpd.protocol.actions import StateAction
from ahpd.protocol.chat import ActiveTurn, ToolCallResponsePart
from ahpd.protocol.chat_actions import (
    ChatToolCallCompleteAction,
    ChatToolCallReadyAction,
    ChatToolCallStartAction,
)
from ahpd.protocol.session import SessionActiveClient, SessionState
from ahpd.protocol.tools import (
    ToolCallClientContributor,
    ToolCallError,
    ToolCallPendingConfirmationState,
    ToolCallRunningState,
    ToolCallStreamingState,
    ToolDefinition,
)
from ahpd.protocol.tools import ToolCallResult as Result

_NAME = re.compile(r"[A-Za-z0-9_-]+")
_BETWEEN = "__"


class Offer(Struct, frozen=True):
    """A tool that a client offers; `name` is what the model knows it by."""

    name: str
    client: SessionActiveClient
    tool: ToolDefinition


def offers(session: SessionState) -> Iterator[Offer]:
    """All tools of all active clients, those that no model can be given included."""
    for client in session.active_clients:
        for tool in client.tools:
            yield Offer(client.client_id + _BETWEEN + tool.name, client, tool)


def definitions(session: SessionState) -> Sequence[ToolDefinition]:
    """The tools of clients as the model is given them."""
    return tuple(
        offer.tool.evolve(name=offer.name)
        for offer in offers(session)
        if offer.tool.name and _NAME.fullmatch(offer.name)
    )


def find_offer(session: SessionState, name: str, starter: str | None) -> Offer | None:
    """The tool that the model means by `name`.

    A bare name is taken too: of several clients the one that started the turn is preferred
    (R-10.44), then whoever joined first.
    """
    bare = []
    for offer in offers(session):
        if offer.name == name:
            return offer
        if offer.tool.name == name:
            bare.append(offer)
    bare.sort(key=lambda offer: offer.client.client_id != starter)
    return bare[0] if bare else None


def opening(turn_id: str, event: ClientToolCalled, offer: Offer | None) -> Sequence[StateAction]:
    """A call that runs at once: nobody has to be asked, its client does the work (R-10.33)."""
    owner = None
    if offer is not None:
        owner = ToolCallClientContributor(client_id=offer.client.client_id)
    title = event.title
    if offer is not None and event.title == event.name:
        title = offer.tool.title or offer.tool.name
    return (
        ChatToolCallStartAction(
            turn_id=turn_id,
            tool_call_id=event.call_id,
            tool_name=event.name if offer is None else offer.tool.name,
            display_name=title,
            contributor=owner,
        ),
        ChatToolCallReadyAction(
            turn_id=turn_id,
            tool_call_id=event.call_id,
            invocation_message=title,
            tool_input=event.input,
            confirmed="not-needed",
        ),
    )


def failing(turn_id: str, call_id: str, reason: str) -> ChatToolCallCompleteAction:
    """The end of a call that nobody can run (any more): completed, not cancelled (R-10.37)."""
    return ChatToolCallCompleteAction(
        turn_id=turn_id,
        tool_call_id=call_id,
        result=Result(
            success=False, past_tense_message=reason, error=ToolCallError(message=reason)
        ),
    )


#: A call in a state in which it waits for its client.
OpenCall: TypeAlias = (
    ToolCallStreamingState | ToolCallPendingConfirmationState | ToolCallRunningState
)


def open_calls(turn: ActiveTurn) -> Iterator[tuple[OpenCall, str]]:
    """The calls of clients' tools that have not ended, each with its client's id."""
    for part in turn.response_parts:
        if not isinstance(part, ToolCallResponsePart):
            continue
        call = part.tool_call
        if isinstance(call, OpenCall) and isinstance(call.contributor, ToolCallClientContributor):
            yield call, call.contributor.client_id


def nobody(session: SessionState, name: str, gone: str | None = None) -> str:
    """Why a call comes to nothing: its client `gone`, or no client has such a tool (quirk 41)."""
    who = f"the client {gone} has left" if gone is not None else f"no client offers {name}"
    for offer in offers(session):
        bare = offer.tool.name
        if name == bare or name.endswith(_BETWEEN + bare):
            client = offer.client.display_name or offer.client.client_id
            return f"{who}; {client} offers {bare} too"
    return who
