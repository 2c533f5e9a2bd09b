"""What a new chat begins with when it is made from another one: a fork, or a side chat (RULES 9).

Both are settled in the step in which the chat is made. A fork gets the turns themselves, which
never change once they have ended. A side chat shows nothing of the other; what its agent is told is
frozen here, so later parts of a turn that still runs do not reach it (R-9.9).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from msgspec import Struct, field

from actors.attaching import attached_to
from actors.ledger import Channel, Heritage
from ahpd import reducers
from ahpd.agents.port import Attached
from ahpd.protocol.chat import (
    ChatOrigin,
    ChatState,
    CreateChatParams,
    ForkChatOrigin,
    ForkChatSource,
    SideChatOrigin,
    SideChatSource,
    Turn,
    Turns,
    UserChatOrigin,
)
from ahpd.protocol.chat_actions import ChatTurnCancelledAction
from ahpd.protocol.model import Object, Unknown
from ahpd.protocol.root import AgentInfo
from ahpd.protocol.session import SessionState
from ahpd.protocol.uris import URI
from ahpd.reducers.status import IDLE
from supervisors import Reject


class Beginning(Struct, frozen=True):
    """What a chat is like when it is made."""

    origin: ChatOrigin = field(default_factory=UserChatOrigin)
    turns: Turns = field(default_factory=Turns)
    working_directories: tuple[URI, ...] | None = None
    heritage: Heritage = field(default_factory=Heritage)
    #: What it has set for itself, other than its session has.
    settings: Object = field(default_factory=dict)


def beginning(
    params: CreateChatParams,
    session: SessionState,
    agent: AgentInfo,
    chat_of: Callable[[URI], Channel | None],
) -> Beginning:
    """How the chat that is asked for begins; `chat_of` finds the chats of its own session.

    Raises `Reject` with the reason (R-9.5, R-9.6, R-9.12).
    """
    match params.source:
        case None:
            return Beginning(working_directories=_directories(params, session))
        case ForkChatSource() as source:
            _check(agent, "fork", "copy a conversation")
            return _fork(source, _source_chat(source, params.chat, chat_of))
        case SideChatSource() as source:
            _check(agent, "side_chat", "take another conversation as context")
            chat = _source_chat(source, params.chat, chat_of)
            return _side_chat(source, chat, _directories(params, session))
        case Unknown() as source:
            raise Reject(f"a chat cannot be made from a source of the kind {source.tag}")


def _check(agent: AgentInfo, what: str, words: str) -> None:
    several = agent.capabilities.multiple_chats if agent.capabilities is not None else None
    if several is None or not getattr(several, what):
        raise Reject(f"the agent {agent.provider} cannot {words}")


def _directories(params: CreateChatParams, session: SessionState) -> tuple[URI, ...] | None:
    held = session.working_directories or ()
    for directory in params.working_directories or ():
        if directory not in held:
            raise Reject(f"{directory} is not one of the session's working directories")
    return params.working_directories


def _source_chat(
    source: ForkChatSource | SideChatSource, made: URI, chat_of: Callable[[URI], Channel | None]
) -> Channel:
    if source.chat == made:
        raise Reject("a chat cannot be made from itself")
    chat = chat_of(source.chat)
    if chat is None:
        raise Reject(f"the session has no chat {source.chat} to start from")
    return chat


def _fork(source: ForkChatSource, channel: Channel) -> Beginning:
    """R-9.6, R-9.7; the directories of the request are ignored.

    What a side chat's agent knew, the agent of its fork knows as well: it goes on in its place.
    """
    chat, known = channel.state, channel.notes.heritage
    turns = _turns_up_to(chat, source.turn_id)
    if turns is None:
        running = chat.active_turn is not None and chat.active_turn.id == source.turn_id
        why = "is still running" if running else "is not in that chat"
        raise Reject(f"the turn {source.turn_id} {why}")
    return Beginning(
        ForkChatOrigin(chat=source.chat, turn_id=source.turn_id),
        turns,
        chat.working_directories,
        Heritage(
            turns, known.context, known.selection, _attached(channel, (*turns, *known.context))
        ),
        channel.notes.settings,
    )


def _side_chat(
    source: SideChatSource, channel: Channel, directories: tuple[URI, ...] | None
) -> Beginning:
    """R-9.8 to R-9.10."""
    context = _turns_up_to(_frozen(channel.state), source.turn_id)
    if context is None:
        raise Reject(f"the turn {source.turn_id} is not in that chat")
    selection = source.selection
    if selection is not None and not selection.text:
        raise Reject("the selection of a side chat must not be empty")
    return Beginning(
        SideChatOrigin(chat=source.chat, turn_id=source.turn_id, selection=selection),
        working_directories=directories,
        heritage=Heritage(
            context=context,
            selection=selection.text if selection is not None else None,
            attached=_attached(channel, context),
        ),
    )


def _attached(channel: Channel, turns: Iterable[Turn]) -> dict[str, tuple[Attached, ...]]:
    found = ((turn.id, attached_to(channel, turn.id)) for turn in turns)
    return {turn_id: held for turn_id, held in found if held}


def _frozen(chat: ChatState) -> ChatState:
    """The chat as it would be if its turn were stopped now: with what the turn holds so far."""
    if chat.active_turn is None:
        return chat
    stop = ChatTurnCancelledAction(turn_id=chat.active_turn.id, duration=0)
    return reducers.apply("chat", chat, stop)


def _turns_up_to(chat: ChatState, turn_id: str) -> Turns | None:
    """The turns of a chat up to and including one that has ended; None without that one."""
    place = chat.turns.index_of(turn_id)
    return None if place < 0 else Turns(chat.turns[: place + 1])


def history_left(heritage: Heritage, chat: ChatState) -> list[Turn]:
    """What a fork still has in common with its source, when some of it was taken back since."""
    return [turn for turn in heritage.history if chat.turns.index_of(turn.id) >= 0]


def made_chat(uri: URI, now: str, begins: Beginning, title: str = "") -> ChatState:
    """The state of a chat that is made now."""
    return ChatState(
        resource=uri,
        title=title,
        status=IDLE,
        modified_at=now,
        origin=begins.origin,
        working_directories=begins.working_directories,
        turns=begins.turns,
    )
