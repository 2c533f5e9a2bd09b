"""The story that the demo plays, and what it proved.

It waits for what happens, never for time to pass, but where somebody watches: there it pauses so
that an eye can follow. Each wait has a bound; a host that does not get there fails the demo.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from datetime import UTC, datetime
from typing import Any, TypeVar

import attrs
import trio

from ahpd.cli.demo.checks import Check, compare, judge
from ahpd.cli.demo.screen import Screen
from ahpd.client import Client, Connect, ConnectionLost, RequestTimeout, open_client
from ahpd.protocol import ROOT, ProtocolError
from ahpd.protocol.chat import ChatState, MarkdownResponsePart, ToolCallResponsePart
from ahpd.protocol.chat_actions import (
    ChatToolCallApprovedAction,
    ChatToolCallDeniedAction,
    ChatTurnStartedAction,
)
from ahpd.protocol.messages import Message, MessageOrigin
from ahpd.protocol.tools import ConfirmationOption, ToolCallPendingConfirmationState
from ahpd.protocol.uris import URI

T = TypeVar("T")

SESSION = URI("demo:/demo")  # its agent is its scheme
#: The actor of the session's first chat, in the host's tree.
CHAT_ACTOR = "session/demo/chat/0"

#: Seconds that one thing may take to happen.
WITHIN = 60.0
#: Envelopes that the editor misses before it comes back, if the turn is not over before.
MISSED = 14
#: Characters of the second turn's answer after which its actor is taken down.
MID_TURN = 100


class StoryFailed(Exception):
    """The story did not get to its end; the message says what did not happen."""


@attrs.define
class Stage:
    """The two screens and what was told so far; `tell` gets every sentence of the story.

    `pause` says how much of the pauses for the eye are made: 1 where somebody watches, else 0.
    """

    tell: Callable[[str], None]
    pause: float
    caption: str = "A host starts."
    editor: Screen = attrs.field(init=False)
    phone: Screen = attrs.field(init=False)
    checks: list[Check] = attrs.field(factory=list)
    #: Places in which a screen differs from the host.
    differences: list[str] = attrs.field(factory=list)

    def __attrs_post_init__(self) -> None:
        """Make the screens."""
        self.editor = Screen("editor")
        self.phone = Screen("phone")

    @property
    def screens(self) -> tuple[Screen, Screen]:
        """Both."""
        return self.editor, self.phone

    def say(self, sentence: str) -> None:
        """Tell the next thing."""
        self.caption = sentence
        self.tell(sentence)

    async def rest(self, seconds: float) -> None:
        """Let an eye follow."""
        await trio.sleep(seconds * self.pause)


async def play(stage: Stage, to_socket: Connect, to_unix: Connect) -> None:
    """Play it all on a host; fills in the stage. Raises `StoryFailed`."""
    try:
        async with AsyncExitStack() as stack:
            for screen in stage.screens:
                screen.client = await stack.enter_async_context(
                    open_client(
                        to_socket, client_id=screen.name, observer=screen.observer(), backoff=None
                    )
                )
            witness = await stack.enter_async_context(
                open_client(to_unix, client_id="witness", backoff=None)
            )
            await _play(stage, witness)
    except (ConnectionLost, RequestTimeout, ProtocolError) as error:
        raise StoryFailed(str(error)) from error


async def _play(stage: Stage, witness: Client) -> None:
    editor, phone = stage.screens
    await join(stage)

    turn = ask(editor, "Show me around, please.")
    stage.say("The editor asks; the answer streams to both screens.")
    call = await within("the agent asks for approval", until(phone, pending))
    stage.say("The agent wants to write a note: both screens ask.")
    await stage.rest(0.7)
    option = decide(phone, call, approve=True)
    stage.say(f'The phone approves: "{option}".')
    await within("the approved call runs", until(editor, lambda chat: pending(chat) is None))

    assert editor.client is not None
    seen = phone.client.last_seen if phone.client is not None else None
    await editor.client.disconnect()
    stage.say("The editor loses its connection in mid-stream; the phone goes on.")
    await within("the phone goes on", _goes_on(phone, (seen or 0) + MISSED))
    await within("the editor comes back", editor.client.reconnect_now())
    how = "mid-stream" if running(editor.chat_state) else "after the turn"
    stage.say(f"The editor is back, {how}: {editor.replayed} envelopes were replayed.")
    await both(stage, "the first turn ends", lambda chat: ended(chat, turn))
    stage.say("The turn is done, on both screens alike.")
    await stage.rest(0.3)

    before = _shared(stage)
    turn = ask(phone, "Take it slow: a long answer.")
    stage.say("A second turn. Its chat's actor is taken down in the middle of it.")
    await within("the second turn streams", until(editor, streams))
    await stage.rest(0.2)
    await witness.request("x-ahpd/restartActor", {"path": CHAT_ACTOR})
    await both(stage, "the second turn ends", lambda chat: ended(chat, turn))
    untouched = before == _shared(stage) and editor.losses == 1 and phone.losses == 0
    stage.say("That turn ended in an error, once; the actor is back.")
    await stage.rest(0.5)

    turn = ask(phone, "Are you still there?")
    stage.say("The next turn, on the same chat.")
    call = await within("the agent asks again", until(editor, pending))
    await stage.rest(0.3)
    option = decide(editor, call, approve=False)
    stage.say(f'This time the editor says no: "{option}".')
    await both(stage, "the third turn ends", lambda chat: ended(chat, turn))
    stage.say("The agent took the no and went on: the turn is done.")

    await look(stage, witness)
    stage.checks += judge(stage.screens, untouched=untouched)
    await stage.rest(0.3)


async def join(stage: Stage) -> None:
    """One session, made by the editor, and the phone in it."""
    editor, phone = stage.screens
    assert editor.client is not None
    await editor.client.create_session(SESSION, active_client=editor.card)
    await within("the editor joins its session", editor.join(SESSION))
    await within("the phone hears of the session", phone.until_added())
    await within("the phone joins the session", phone.join(SESSION))
    stage.say("The editor opens a session; the phone sees it appear and joins.")
    await stage.rest(0.4)


async def look(stage: Stage, witness: Client) -> None:
    """Hold the screens against fresh snapshots, taken through a connection of its own.

    What the last turn left to be said may still be on its way, so a few looks are taken. A screen
    that is wrong stays wrong.
    """
    chat = stage.editor.chat
    assert chat is not None
    check, differences = None, ["no snapshot came"]
    with trio.move_on_after(WITHIN):
        for _ in range(20):
            for channel in (ROOT, SESSION, chat):
                await witness.subscribe(channel)
            check, differences = compare(stage.screens, witness, (ROOT, SESSION, chat))
            if check.ok:
                break
            await trio.sleep(0.1)
    stage.checks.append(check or Check("both screens equal the host", False, differences[0]))
    stage.differences = differences if check is None or not check.ok else []


# ---- what the screens do ------------------------------------------------------------------------


def ask(screen: Screen, text: str) -> str:
    """Start a turn, and return its id."""
    assert screen.chat is not None
    turn_id = f"turn-{screen.name}-{len(screen.operations)}"
    started_at = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    message = Message(text=text, origin=MessageOrigin(kind="user"))
    screen.dispatch(
        screen.chat,
        ChatTurnStartedAction(turn_id=turn_id, started_at=started_at, message=message),
    )
    return turn_id


def decide(screen: Screen, call: ToolCallPendingConfirmationState, *, approve: bool) -> str:
    """Answer a call with the first option that fits, and return that option's label."""
    chat = screen.chat_state
    assert screen.chat is not None
    assert chat is not None
    assert chat.active_turn is not None
    kind = "approve" if approve else "deny"
    fitting = [each for each in call.options or () if each.kind == kind]
    option = fitting[0] if fitting else ConfirmationOption(id="", label=kind, kind="approve")
    chosen = option.id or None
    names: dict[str, Any] = {"turn_id": chat.active_turn.id, "tool_call_id": call.tool_call_id}
    screen.dispatch(
        screen.chat,
        ChatToolCallApprovedAction(confirmed="user-action", selected_option_id=chosen, **names)
        if approve
        else ChatToolCallDeniedAction(reason="denied", selected_option_id=chosen, **names),
    )
    return option.label


# ---- what is waited for -------------------------------------------------------------------------


async def within(what: str, happens: Awaitable[T]) -> T:
    """Wait for something. Raises `StoryFailed` when it does not happen."""
    with trio.move_on_after(WITHIN):
        return await happens
    raise StoryFailed(f"this did not happen in {WITHIN:g} s: {what}")


async def until(screen: Screen, predicate: Callable[[ChatState], T]) -> Any:
    assert screen.client is not None
    assert screen.chat is not None
    return await screen.client.until(screen.chat, predicate)


async def both(stage: Stage, what: str, predicate: Callable[[ChatState], bool]) -> None:
    for screen in stage.screens:
        await within(f"{what} on the {screen.name}", until(screen, predicate))


async def _goes_on(screen: Screen, number: int) -> None:
    """Until this screen has seen that number, or the turn is over."""
    client = screen.client
    assert client is not None
    await until(screen, lambda chat: (client.last_seen or 0) >= number or chat.active_turn is None)


def pending(chat: ChatState) -> ToolCallPendingConfirmationState | None:
    turn = chat.active_turn
    for part in () if turn is None else turn.response_parts:
        if isinstance(part, ToolCallResponsePart) and isinstance(
            part.tool_call, ToolCallPendingConfirmationState
        ):
            return part.tool_call
    return None


def running(chat: ChatState | None) -> bool:
    return chat is not None and chat.active_turn is not None


def ended(chat: ChatState, turn_id: str) -> bool:
    return chat.turns.index_of(turn_id) >= 0


def streams(chat: ChatState) -> bool:
    parts = () if chat.active_turn is None else chat.active_turn.response_parts
    return any(
        isinstance(part, MarkdownResponsePart) and len(part.content) > MID_TURN for part in parts
    )


def _shared(stage: Stage) -> list[Any]:
    """What the second turn must not touch: the first turn, and who is there."""
    states = [(each.chat_state, each.session_state) for each in stage.screens]
    return [
        (chat.turns[0].wire(), [each.wire() for each in session.active_clients], session.title)
        for chat, session in states
        if chat is not None and session is not None
    ]
