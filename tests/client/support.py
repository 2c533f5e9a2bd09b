"""What the tests of the client share: states, actions, and a host whose every word is scripted."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import attrs
import trio

from ahpd.client import Observer, Operation, OptimisticStore, Status
from ahpd.protocol import URI, ProtocolError, decode, jsonrpc
from ahpd.protocol.actions import StateAction
from ahpd.protocol.chat import MarkdownResponsePart
from ahpd.protocol.chat_actions import (
    ChatDeltaAction,
    ChatResponsePartAction,
    ChatTurnCancelledAction,
    ChatTurnCompleteAction,
    ChatTurnStartedAction,
)
from ahpd.protocol.connection import ActionEnvelope, ActionOrigin, Snapshot
from ahpd.protocol.frame import frame
from ahpd.protocol.messages import Message, MessageOrigin
from ahpd.protocol.model import JSON, Object
from ahpd.transports.memory import MemoryTransport, memory_pair
from ahpd.transports.port import TransportClosed
from tests.wire import Connection, Wiretap

SESSION = URI("ahp-session:/s")
CHAT = URI("ahp-chat:/c")
TERMINAL = URI("ahp-terminal:/t")
LOGS = URI("ahp-otlp:/logs")

ROOT_STATE: JSON = {"agents": []}
CHAT_STATE: JSON = {
    "resource": CHAT,
    "title": "A chat",
    "status": 1,
    "modifiedAt": "2026-01-01T00:00:00.000Z",
    "turns": [],
}
SESSION_STATE: JSON = {
    "provider": "scripted",
    "title": "A session",
    "status": 1,
    "lifecycle": "ready",
    "activeClients": [],
    "chats": [],
}
TERMINAL_STATE: JSON = {
    "title": "sh",
    "content": [],
    "lifecycle": {"status": "running"},
    "claim": {"kind": "client", "clientId": "phone"},
}


def message(text: str) -> Message:
    return Message(text=text, origin=MessageOrigin(kind="user"))


def started(turn_id: str, text: str = "Fix the build") -> ChatTurnStartedAction:
    return ChatTurnStartedAction(
        turn_id=turn_id, started_at="2026-01-01T00:00:01.000Z", message=message(text)
    )


def part(turn_id: str, part_id: str = "p1") -> ChatResponsePartAction:
    return ChatResponsePartAction(
        turn_id=turn_id, part=MarkdownResponsePart(id=part_id, content="")
    )


def delta(turn_id: str, text: str, part_id: str = "p1") -> ChatDeltaAction:
    return ChatDeltaAction(turn_id=turn_id, part_id=part_id, content=text)


def complete(turn_id: str) -> ChatTurnCompleteAction:
    return ChatTurnCompleteAction(turn_id=turn_id, duration=5.0)


def cancelled(turn_id: str) -> ChatTurnCancelledAction:
    return ChatTurnCancelledAction(turn_id=turn_id, duration=5.0)


def action(value: JSON) -> StateAction:
    return decode(StateAction, value)  # type: ignore[no-any-return]


def envelope(
    number: int,
    what: StateAction,
    *,
    channel: URI = CHAT,
    by: tuple[str, int] | None = None,
    refused: str | None = None,
) -> ActionEnvelope:
    """An envelope; `by` is the client and its own number."""
    origin = None if by is None else ActionOrigin(client_id=by[0], client_seq=by[1])
    return ActionEnvelope(
        channel=channel, action=what, server_seq=number, origin=origin, rejection_reason=refused
    )


def snapshot(state: JSON = CHAT_STATE, number: int = 0, channel: URI = CHAT) -> Snapshot:
    return decode(Snapshot, {"resource": channel, "state": state, "fromSeq": number})


@attrs.define
class Diary:
    """Everything a client told."""

    changes: list[tuple[URI, int | None]] = attrs.Factory(list)
    settled: list[Operation] = attrs.Factory(list)
    dropped: list[tuple[URI, str]] = attrs.Factory(list)
    notices: list[tuple[str, Any]] = attrs.Factory(list)
    statuses: list[Status] = attrs.Factory(list)

    def observer(self) -> Observer:
        return Observer(
            changed=self._changed,
            settled=self.settled.append,
            dropped=lambda *gone: self.dropped.append(gone),
            notice=lambda *notice: self.notices.append(notice),
            status=lambda status, _: self.statuses.append(status),
        )

    def _changed(
        self, channel: URI, _: OptimisticStore[Any], envelope: ActionEnvelope | None
    ) -> None:
        self.changes.append((channel, None if envelope is None else envelope.server_seq))


class Side:
    """The host's end of one connection, played by the test."""

    def __init__(self, transport: MemoryTransport, wire: Connection) -> None:
        self.transport = transport
        self._wire = wire

    async def send(self, message: JSON) -> None:
        self._wire.received(message)
        await self.transport.send([frame(message)])

    async def receive(self) -> jsonrpc.Frame:
        text = await self.transport.receive()
        self._wire.sent(text)
        return jsonrpc.parse(text)

    async def expect(self, method: str) -> jsonrpc.Request:
        """The next message, which must be this request."""
        message = await self.receive()
        assert isinstance(message, jsonrpc.Request), message
        assert message.method == method
        return message

    async def expect_dispatch(self) -> Object:
        """The params of the next message, which must be a dispatch."""
        message = await self.receive()
        assert isinstance(message, jsonrpc.Notification), message
        assert message.method == "dispatchAction"
        return message.params

    async def answer(self, request: jsonrpc.Request, result: JSON) -> None:
        await self.send(jsonrpc.success(request.id, result))

    async def refuse(self, request: jsonrpc.Request, code: int, text: str = "no") -> None:
        await self.send(jsonrpc.failure(request.id, ProtocolError(code, text)))

    async def tell(self, *envelopes: ActionEnvelope) -> None:
        for each in envelopes:
            await self.send(jsonrpc.notification("action", each.wire()))

    async def welcome(self, *snapshots: Snapshot, number: int = 0) -> jsonrpc.Request:
        """Answer `initialize`."""
        request = await self.expect("initialize")
        await self.answer(
            request,
            {
                "protocolVersion": "1.0.0",
                "serverSeq": number,
                "snapshots": [each.wire() for each in snapshots],
            },
        )
        return request

    async def replay(
        self, *envelopes: ActionEnvelope, missing: Sequence[URI] = ()
    ) -> jsonrpc.Request:
        """Answer `reconnect` with a replay."""
        request = await self.expect("reconnect")
        await self.answer(
            request,
            {
                "type": "replay",
                "actions": [each.wire() for each in envelopes],
                "missing": list(missing),
            },
        )
        return request

    async def restore(self, *snapshots: Snapshot) -> jsonrpc.Request:
        """Answer `reconnect` with snapshots."""
        request = await self.expect("reconnect")
        await self.answer(
            request, {"type": "snapshot", "snapshots": [each.wire() for each in snapshots]}
        )
        return request

    async def nothing_more(self) -> None:
        """Nothing comes for a while: everything that the client had to say was said."""
        with trio.move_on_after(1):
            raise AssertionError(f"unexpected: {await self.receive()}")

    async def ended(self) -> None:
        """The client closes the connection, having said nothing more."""
        try:
            unexpected = await self.transport.receive()
        except TransportClosed:
            return
        raise AssertionError(f"unexpected: {unexpected!r}")

    def cut(self) -> None:
        self.transport.cut()


class ScriptedHost:
    """Takes connections; the test plays each one. `down` makes connecting fail."""

    def __init__(self, wire: Wiretap) -> None:
        self.down = False
        self.attempts = 0
        self._wire = wire
        self._send, self._receive = trio.open_memory_channel[Side](10)

    async def connect(self) -> MemoryTransport:
        self.attempts += 1
        await trio.lowlevel.checkpoint()
        if self.down:
            raise TransportClosed("connection refused")
        client, host = memory_pair(f"connection {self.attempts}")
        self._send.send_nowait(Side(host, self._wire.connection(f"client{self.attempts}")))
        return client

    async def accept(self) -> Side:
        with trio.fail_after(600):
            return await self._receive.receive()


def turn_texts(chat: Any) -> list[str]:
    """What users said, in the order of the turns, the running one last."""
    turns = [each.message.text for each in chat.turns]
    return turns + ([chat.active_turn.message.text] if chat.active_turn else [])


def answer_text(chat: Any) -> str:
    """The text of the running turn, or of the last one."""
    turn = chat.active_turn or chat.turns[-1]
    return "".join(str(each.content) for each in turn.response_parts)
