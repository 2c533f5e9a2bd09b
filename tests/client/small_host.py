"""The smallest host that keeps the rules: one chat, a replay log, some checks, memory transports.

It is here so that the client is tested against something that judges and orders by itself. It is
not the host of this project, and knows nothing of it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import attrs
import trio

from ahpd.protocol import ErrorCode, ProtocolError, decode, jsonrpc
from ahpd.protocol.actions import StateAction, action_type
from ahpd.protocol.chat import ChatState, tool_call_key
from ahpd.protocol.connection import ActionEnvelope, ActionOrigin, Snapshot
from ahpd.protocol.frame import Frame, frame
from ahpd.protocol.model import JSON, Object
from ahpd.protocol.tools import ToolCallPendingConfirmationState
from ahpd.reducers import apply
from ahpd.transports.memory import MemoryTransport, memory_pair
from ahpd.transports.port import TransportClosed
from tests.client.support import CHAT, CHAT_STATE
from tests.wire import Connection, Wiretap


@attrs.define(eq=False)
class Screen:
    """A connection, and the client that it is of; subscribed or not yet."""

    transport: MemoryTransport
    wire: Connection
    client_id: str = ""
    subscribed: bool = False
    out: list[Frame] = attrs.Factory(list)
    wake: trio.Event = attrs.Factory(trio.Event)

    def put(self, message: JSON) -> None:
        self.wire.received(message)
        self.out.append(frame(message))
        self.wake.set()


class SmallHost:
    """One chat for any number of clients.

    `log_limit` bounds the replay log. `tell_all` sends refusals to everybody, as some hosts do.
    `verdicts` counts what became of each dispatch.
    """

    def __init__(self, wire: Wiretap, *, log_limit: int = 1000, tell_all: bool = False) -> None:
        self.wire = wire
        self.log_limit = log_limit
        self.tell_all = tell_all
        self.verdicts: dict[tuple[str, int], list[str]] = {}
        self.transports: dict[str, MemoryTransport] = {}
        self.chat: ChatState = decode(ChatState, CHAT_STATE)
        self._number = 0
        self._log: list[ActionEnvelope] = []
        self._evicted = 0
        self._known: set[str] = set()
        self._used: set[str] = set()
        self._screens: list[Screen] = []
        self._nursery: trio.Nursery | None = None

    @contextmanager
    def running_in(self, nursery: trio.Nursery) -> Iterator[SmallHost]:
        """Serve connections in `nursery`, which is cancelled at the end."""
        self._nursery = nursery
        yield self
        nursery.cancel_scope.cancel()

    def connect_as(self, name: str) -> Any:
        """A `Connect` for the client of that name; `transports` has its present transport."""

        async def connect() -> MemoryTransport:
            await trio.lowlevel.checkpoint()
            assert self._nursery is not None
            client, host = memory_pair(name)
            self.transports[name] = client
            self._nursery.start_soon(self._serve, host, self.wire.connection(name))
            return client

        return connect

    def restart(self) -> None:
        """Everybody is cut off; numbers begin again, and nobody is known. A turn stays as it is."""
        for screen in self._screens:
            screen.transport.cut()
        self._number, self._evicted = 0, 0
        self._log.clear()
        self._known.clear()

    def emit(self, action: StateAction) -> None:
        """The agent did something."""
        self._publish(action, None, None, None)

    # --- connections

    async def _serve(self, transport: MemoryTransport, wire: Connection) -> None:
        screen = Screen(transport, wire)
        self._screens.append(screen)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._write, screen)
            try:
                while True:
                    text = await transport.receive()
                    wire.sent(text)
                    self._on_message(screen, jsonrpc.parse(text))
            except TransportClosed:
                self._screens.remove(screen)
                nursery.cancel_scope.cancel()

    async def _write(self, screen: Screen) -> None:
        while True:
            screen.wake = trio.Event()
            if screen.out:
                frames, screen.out = screen.out, []
                try:
                    await screen.transport.send(frames)
                except TransportClosed:
                    return
            else:
                await screen.wake.wait()

    def _on_message(self, screen: Screen, message: jsonrpc.Frame) -> None:
        match message:
            case jsonrpc.Notification(method="dispatchAction", params=params):
                self._on_dispatch(screen, params)
            case jsonrpc.Request(method="initialize", id=id, params=params):
                self._join(screen, params["clientId"])
                screen.put(jsonrpc.success(id, self._welcome()))
            case jsonrpc.Request(method="reconnect", id=id, params=params):
                screen.put(self._come_back(screen, id, params))
            case _:
                raise AssertionError(message)

    def _join(self, screen: Screen, client_id: str) -> None:
        screen.client_id = client_id
        screen.subscribed = True
        self._known.add(client_id)

    def _welcome(self) -> JSON:
        return {
            "protocolVersion": "1.0.0",
            "serverSeq": self._number,
            "snapshots": [self._snapshot().wire()],
        }

    def _snapshot(self) -> Snapshot:
        return Snapshot(resource=CHAT, state=self.chat, from_seq=self._number)

    def _come_back(self, screen: Screen, id: jsonrpc.Id, params: Object) -> JSON:
        client_id, seen = params["clientId"], params["lastSeenServerSeq"]
        if client_id not in self._known:
            return jsonrpc.failure(id, ProtocolError(ErrorCode.NOT_FOUND, "who are you?"))
        self._join(screen, client_id)
        if not self._evicted <= seen <= self._number:
            return jsonrpc.success(id, {"type": "snapshot", "snapshots": [self._snapshot().wire()]})
        missed = [
            each.wire()
            for each in self._log
            if each.server_seq > seen and self._concerns(each, client_id)
        ]
        return jsonrpc.success(id, {"type": "replay", "actions": missed, "missing": []})

    # --- actions

    def _on_dispatch(self, screen: Screen, params: Object) -> None:
        action: Any = decode(StateAction, params["action"])
        origin = ActionOrigin(client_id=screen.client_id, client_seq=params["clientSeq"])
        refused = self._refusal(action)
        key = (origin.client_id, int(origin.client_seq))
        self.verdicts.setdefault(key, []).append("refused" if refused else "accepted")
        self._publish(action, origin, refused, screen)

    def _refusal(self, action: Any) -> str | None:
        active = self.chat.active_turn
        match action_type(action):
            case "chat/turnStarted":
                if action.turn_id in self._used:
                    return "that turn was started already"
                if active is not None:
                    return "a turn runs"
                self._used.add(action.turn_id)
            case "chat/turnCancelled":
                if active is None or active.id != action.turn_id:
                    return "that turn does not run"
            case "chat/toolCallConfirmed":
                key = tool_call_key(action.tool_call_id)
                place = -1 if active is None else active.response_parts.index_of(key)
                part: Any = None if active is None or place < 0 else active.response_parts[place]
                if part is None or not isinstance(part.tool_call, ToolCallPendingConfirmationState):
                    return "that call does not wait for anybody"
            case "chat/pendingMessageSet":
                if action.id in self._used:
                    return "that message was taken already"
                self._used.add(action.id)
        return None

    def _publish(
        self,
        action: StateAction,
        origin: ActionOrigin | None,
        refused: str | None,
        sender: Screen | None,
    ) -> None:
        if refused is None:
            self.chat = apply("chat", self.chat, action)
        self._number += 1
        envelope = ActionEnvelope(
            channel=CHAT,
            action=action,
            server_seq=self._number,
            origin=origin,
            rejection_reason=refused,
        )
        self._log.append(envelope)
        while len(self._log) > self.log_limit:
            self._evicted = self._log.pop(0).server_seq
        message = jsonrpc.notification("action", envelope.wire())
        for screen in self._screens:
            if screen.subscribed and self._concerns(envelope, screen.client_id):
                screen.put(message)

    def _concerns(self, envelope: ActionEnvelope, client_id: str) -> bool:
        if envelope.rejection_reason is None or self.tell_all:
            return True
        return envelope.origin is not None and envelope.origin.client_id == client_id
