"""What the tests of the host's actors share: a room with one session in it, and plain actions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pytest
import trio

from actors.desk import Desk
from actors.ledger import Channel
from actors.messages import MatchChats
from actors.summaries import chat_row
from ahpd.agents.events import Outcome
from ahpd.protocol.chat import ChatState, ToolChatOrigin, Turns
from ahpd.protocol.model import JSON
from ahpd.protocol.session_actions import SessionChatAddedAction
from ahpd.protocol.shapes import (
    Anything,
    Array,
    ByKeys,
    Choice,
    Either,
    Map,
    Null,
    Record,
    Scalar,
    Shape,
    Tagged,
    fields_of,
    shape_of,
)
from ahpd.protocol.uris import ROOT, URI, default_chat
from tests.harness import Puppet, PuppetAgent, RawPeer, Refused, RunningHost

S: URI = "puppet:/5e551000-0000-4000-8000-000000000001"
S2: URI = "puppet:/5e551000-0000-4000-8000-000000000002"
C: URI = default_chat(S)
C2: URI = "ahp-chat:/second"
NOW = "2026-09-21T14:13:20.000Z"


async def room(
    host: RunningHost, name: str = "ann", *, subscribe: Sequence[URI] = (ROOT, S, C), **options: Any
) -> RawPeer:
    """A peer of that name in the session `S`, which it makes if there is none yet."""
    peer = await host.peer(name)
    await peer.hello(subscribe=(), **options)
    if host.ledger.find(S) is None:
        await peer.request("createSession", channel=S)
        await trio.testing.wait_all_tasks_blocked()
    for channel in subscribe:
        await peer.subscribe(channel)
    return peer


def channel_of(host: RunningHost, uri: URI) -> Channel:
    channel = host.ledger.find(uri)
    assert channel is not None
    return channel


async def a_worker(host: RunningHost, of: URI, uri: URI, session: URI = S) -> None:
    """Give a chat a worker, as a tool call of its would."""
    owner = channel_of(host, session)
    state = ChatState(
        resource=uri,
        title="",
        status=1,
        modified_at=NOW,
        origin=ToolChatOrigin(chat=of, tool_call_id="call"),
        interactivity="read-only",
        turns=Turns(),
    )
    host.ledger.open(uri, "chat", state, channel_of(host, of).path, session)
    Desk(host.tables, owner).say(SessionChatAddedAction(summary=chat_row(state, "a worker", None)))
    host.system.ref(owner.path).cast(MatchChats())
    await settled()


async def at_work(agent: PuppetAgent, turn_id: str, chat: URI = C) -> Puppet:
    """The puppet of a chat, once it works on that turn."""
    step = 0.001
    with trio.fail_after(60):
        while True:
            puppet = agent.of.get(chat)
            if puppet is not None and puppet.prompted and puppet.prompted.turn_id == turn_id:
                return puppet
            await trio.sleep(step)
            step = min(step * 1.1, 0.1)


async def settled() -> None:
    """Wait until nobody has anything to do any more, without time going by."""
    await trio.testing.wait_all_tasks_blocked()


async def turn(
    peer: RawPeer, agent: PuppetAgent, turn_id: str, outcome: Outcome, chat: URI = C
) -> Any:
    """One turn from its start to its end; the action that ended it."""
    await peer.dispatch(chat, started(turn_id))
    (await at_work(agent, turn_id, chat)).end(outcome)
    return await ending(peer, turn_id)


async def answer(peer: RawPeer, client_seq: int) -> Any:
    """The envelope that answers a dispatch of this peer's, and not another's of that number."""
    origin = {"clientId": peer.name, "clientSeq": client_seq}
    return (await peer.wait(lambda it: it.get("params", {}).get("origin") == origin))["params"]


async def ending(peer: RawPeer, turn_id: str, within: float = 60.0) -> Any:
    """The action that ends a turn."""

    def wanted(message: Any) -> bool:
        action = message.get("params", {}).get("action", {})
        return bool(action.get("type") in ENDINGS and action["turnId"] == turn_id)

    return (await peer.wait(wanted, within))["params"]["action"]


ENDINGS = ("chat/turnComplete", "chat/turnCancelled", "chat/error")


def actions(peer: RawPeer, channel: URI | None = None, since: int = 0) -> list[Any]:
    """The actions in a peer's inbox, in order; `since` is a number they must be above."""
    return [
        message["params"]["action"]
        for message in peer.inbox
        if message.get("method") == "action"
        and channel in (None, message["params"]["channel"])
        and message["params"]["serverSeq"] > since
    ]


def types(peer: RawPeer, channel: URI | None = None) -> list[str]:
    """The types of those actions."""
    return [action["type"] for action in actions(peer, channel)]


# ---- what clients dispatch ----------------------------------------------------------------------


def message(text: str = "Tidy up", **more: Any) -> dict[str, Any]:
    return {"text": text, "origin": {"kind": "user"}, **more}


def started(turn_id: str, text: str = "Tidy up", **more: Any) -> dict[str, Any]:
    return {
        "type": "chat/turnStarted",
        "turnId": turn_id,
        "startedAt": NOW,
        "message": message(text),
        **more,
    }


def cancelled(turn_id: str) -> dict[str, Any]:
    return {"type": "chat/turnCancelled", "turnId": turn_id, "duration": 5}


def pending(id: str, kind: str = "queued", text: str | None = None) -> dict[str, Any]:
    return {
        "type": "chat/pendingMessageSet",
        "kind": kind,
        "id": id,
        "message": message(text or f"message {id}"),
    }


def withdrawn(id: str, kind: str = "queued") -> dict[str, Any]:
    return {"type": "chat/pendingMessageRemoved", "kind": kind, "id": id}


def approved(turn_id: str, call: str, **more: Any) -> dict[str, Any]:
    return {
        "type": "chat/toolCallConfirmed",
        "turnId": turn_id,
        "toolCallId": call,
        "approved": True,
        "confirmed": "user-action",
        **more,
    }


def denied(turn_id: str, call: str, **more: Any) -> dict[str, Any]:
    return {
        "type": "chat/toolCallConfirmed",
        "turnId": turn_id,
        "toolCallId": call,
        "approved": False,
        "reason": "denied",
        **more,
    }


# ---- refusals -----------------------------------------------------------------------------------


@contextmanager
def refused(code: int, *words: str) -> Iterator[None]:
    """The request in the block is refused with this code, in a sentence that has these words."""
    with pytest.raises(Refused) as caught:
        yield
    assert caught.value.code == code, caught.value
    assert all(word in caught.value.message for word in words), caught.value


def readable(reason: str) -> bool:
    """Whether a person could make something of it: words, and none of Python's."""
    return (
        len(reason.split()) >= 3
        and not any(word in reason for word in ("Traceback", "Error(", "object at", "<class"))
        and len(reason) < 300
    )


# ---- the least that a type allows ---------------------------------------------------------------


def least(hint: Any) -> Any:
    """Plain JSON of a wire type with its required fields alone."""
    return _least(shape_of(hint))


def _least(shape: Shape) -> JSON:
    match shape:
        case Scalar():
            return {"string": "x", "boolean": True, "object": {}}.get(
                shape.kind, shape.minimum or 1
            )
        case Choice():
            return shape.values[0]
        case Array():
            return []
        case Map():
            return {}
        case Record():
            return {
                field.key: _least(field.shape)
                for field in fields_of(shape.cls)
                if not field.optional
            }
        case Tagged():
            return _least(next(iter(shape.variants.values())))
        case ByKeys():
            return _least(shape.variants[0][1])
        case Either():
            return _least(shape.options[0])
        case Anything() | Null():
            return None
