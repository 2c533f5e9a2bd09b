"""One of the demo's screens: a client, and everything that it saw and did."""

from __future__ import annotations

from collections import Counter, deque
from typing import Any

import trio

from ahpd.cli import words
from ahpd.client import Client, Observer, Operation, OptimisticStore, Status
from ahpd.protocol.actions import StateAction
from ahpd.protocol.chat import ChatState
from ahpd.protocol.chat_actions import (
    ChatErrorAction,
    ChatToolCallApprovedAction,
    ChatToolCallDeniedAction,
    ChatTurnCancelledAction,
    ChatTurnCompleteAction,
    ChatTurnStartedAction,
)
from ahpd.protocol.connection import ActionEnvelope
from ahpd.protocol.model import Object, Wire
from ahpd.protocol.root import SessionAddedParams
from ahpd.protocol.session import SessionActiveClient, SessionState
from ahpd.protocol.session_actions import SessionActiveClientSetAction
from ahpd.protocol.uris import URI

#: Lines of the log that are kept.
_LOG = 20

_ENDINGS = (ChatTurnCompleteAction, ChatTurnCancelledAction, ChatErrorAction)


class Screen:
    """A client that takes part in one session, and a record of what came to it."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.title = name.capitalize()
        self.client: Client | None = None
        self.session: URI | None = None
        self.chat: URI | None = None
        #: What happened, for people, the latest last.
        self.log: deque[str] = deque(maxlen=_LOG)
        self.operations: list[Operation] = []
        #: How often each turn's ending came, by turn id.
        self.endings: Counter[str] = Counter()
        #: Connections that were lost, envelopes that came by replay, snapshots that came instead.
        self.losses = 0
        self.replayed = 0
        self.restored = 0
        #: Whether a number ever came that was not above the one before it.
        self.went_back = False
        self._last = -1
        self._added = trio.Event()

    @property
    def status(self) -> Status:
        """The state of its connection."""
        return "offline" if self.client is None else self.client.status

    def observer(self) -> Observer:
        """What its client tells it by."""
        return Observer(changed=self._changed, notice=self._noticed, status=self._status_moved)

    # ---- what it does ------------------------------------------------------------------------

    async def join(self, session: URI) -> None:
        """Subscribe to a session and its chat, and say that somebody is there."""
        assert self.client is not None
        await self.client.subscribe(session)
        self.session = session
        state: SessionState = await self.client.until(session, _ready)
        assert state.default_chat is not None
        await self.client.subscribe(state.default_chat)
        self.chat = state.default_chat
        here = [each.client_id for each in state.active_clients]
        if self.client.client_id not in here:
            self.dispatch(session, SessionActiveClientSetAction(active_client=self.card))
        self.note("joined the session")

    @property
    def card(self) -> SessionActiveClient:
        """How it introduces itself to a session."""
        assert self.client is not None
        return SessionActiveClient(
            client_id=self.client.client_id, display_name=self.title, tools=()
        )

    def dispatch(self, channel: URI, action: StateAction) -> Operation:
        """Propose an action, and keep the operation to see that it is answered."""
        assert self.client is not None
        operation = self.client.dispatch(channel, action)
        self.operations.append(operation)
        return operation

    async def until_added(self) -> None:
        """Wait until the host has told that there is a new session."""
        await self._added.wait()

    # ---- what it sees ------------------------------------------------------------------------

    @property
    def session_state(self) -> SessionState | None:
        """The session as it shows it."""
        state: SessionState | None = self._state(self.session)
        return state

    @property
    def chat_state(self) -> ChatState | None:
        """The chat as it shows it."""
        state: ChatState | None = self._state(self.chat)
        return state

    def _state(self, uri: URI | None) -> Any:
        channel = None if self.client is None else self.client.channels.get(uri or "")
        return None if channel is None or channel.store is None else channel.store.optimistic

    def note(self, text: str) -> None:
        """Put a line into the log."""
        self.log.append(text)

    def _changed(
        self, channel: URI, store: OptimisticStore[Any], envelope: ActionEnvelope | None
    ) -> None:
        coming_back = self.losses > 0 and self.status == "connecting"
        if envelope is None:
            self.restored += coming_back
        else:
            self.replayed += coming_back
            self.went_back |= envelope.server_seq <= self._last
            self._last = envelope.server_seq
            if envelope.rejection_reason is None:
                self._saw(store, envelope)

    def _saw(self, store: OptimisticStore[Any], envelope: ActionEnvelope) -> None:
        action = envelope.action
        whose = self._whose(envelope)
        match action:
            case ChatTurnStartedAction():
                self.note(f"{whose} asked: {action.message.text}")
            case ChatToolCallApprovedAction():
                self.note(f"{whose} approved the call")
            case ChatToolCallDeniedAction():
                self.note(f"{whose} denied the call")
            case SessionActiveClientSetAction():
                self.note(f"{action.active_client.display_name} is here")
            case _ if isinstance(action, _ENDINGS):
                self.endings[action.turn_id] += 1
                turns = store.confirmed.turns
                self.note(f"turn {len(turns)}: {words.ENDINGS.get(turns[-1].state)}")
            case _:
                pass

    def _whose(self, envelope: ActionEnvelope) -> str:
        origin = envelope.origin
        if origin is None:
            return "the host"
        mine = self.client is not None and origin.client_id == self.client.client_id
        return "I" if mine else origin.client_id.partition("-")[0]

    def _noticed(self, _: str, params: Wire | Object) -> None:
        if isinstance(params, SessionAddedParams):
            self._added.set()

    def _status_moved(self, status: Status, error: Exception | None) -> None:
        if status == "offline" and error is not None:
            self.losses += 1
            self.note("connection lost")
        elif status == "connected":
            came_back = f", {words.count(self.replayed, 'envelope')} replayed"
            self.note(f"back{came_back}" if self.losses else "connected")


def _ready(session: Any) -> Any:
    return None if session.lifecycle == "creating" else session
