"""The story of ``ahpd demo --crash``: the host's process is killed in mid-turn, and started again.

Both screens come back by themselves and are answered by replay. What they had seen is still there,
the turn that ran has ended once, and the message that waited behind it is taken up.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AsyncExitStack

from ahpd.cli.demo.checks import judge_crash
from ahpd.cli.demo.host import HostProcess
from ahpd.cli.demo.screen import Screen
from ahpd.cli.demo.story import (
    Stage,
    StoryFailed,
    ask,
    both,
    decide,
    ended,
    join,
    look,
    pending,
    streams,
    until,
    within,
)
from ahpd.client import Backoff, Connect, ConnectionLost, RequestTimeout, open_client
from ahpd.protocol import ProtocolError
from ahpd.protocol.chat import ActiveTurn, ChatState, MarkdownResponsePart, Turn
from ahpd.protocol.chat_actions import ChatDraftChangedAction, ChatPendingMessageSetAction
from ahpd.protocol.messages import Message, MessageOrigin

#: How soon and how often a screen tries to come back.
_BACKOFF = Backoff(first=0.1, factor=1.5, most=1.0)


async def play_crash(stage: Stage, host: HostProcess, to_socket: Connect, to_unix: Connect) -> None:
    """Play it on a host; fills in the stage. Raises `StoryFailed`."""
    try:
        async with AsyncExitStack() as stack:
            for screen, connect in zip(stage.screens, (to_socket, to_unix), strict=True):
                screen.client = await stack.enter_async_context(
                    open_client(
                        connect,
                        client_id=screen.name,
                        observer=screen.observer(),
                        backoff=_BACKOFF,
                    )
                )
            await _play(stage, host)
            witness = await stack.enter_async_context(
                open_client(to_unix, client_id="witness", backoff=None)
            )
            await look(stage, witness)
    except (ConnectionLost, RequestTimeout, ProtocolError) as error:
        raise StoryFailed(str(error)) from error


async def _play(stage: Stage, host: HostProcess) -> None:
    editor, phone = stage.screens
    await join(stage)
    assert phone.chat is not None

    turn = ask(editor, "Take it slow: a long answer.")
    await within("the turn starts", until(phone, lambda chat: chat.active_turn))
    waiting = ChatPendingMessageSetAction(
        kind="queued", id="and-then", message=_message("Are you still there?")
    )
    queued = phone.dispatch(phone.chat, waiting)
    draft = phone.dispatch(phone.chat, ChatDraftChangedAction(draft=_message("I wonder wheth")))
    stage.say("The editor asks; the phone queues a message and types another.")
    for operation in (queued, draft):
        await within("the host takes what the phone says", operation.wait())
    for screen in stage.screens:
        await within("the turn streams", until(screen, streams))
    await stage.rest(0.5)

    killed = host.pid
    await host.kill()
    for screen in stage.screens:
        assert screen.client is not None
        await within("the screens notice", screen.client.wait_status("offline", "connecting"))
    before = {screen.name: _confirmed(screen) for screen in stage.screens}
    stage.say(f"The host's process {killed} is killed with SIGKILL, in mid-turn.")
    await stage.rest(0.7)
    await host.start_again()
    stage.say(f"A host is started again on what it left: process {host.pid}.")
    for screen in stage.screens:
        assert screen.client is not None
        await within(f"the {screen.name} is back", screen.client.wait_status("connected"))
    stage.say(
        f"Both screens are back by themselves: {editor.replayed} and {phone.replayed} envelopes"
        " were replayed."
    )
    await both(stage, "the turn ends", lambda chat: ended(chat, turn))
    stage.say("That turn has ended in an error, once; the queued message is next.")
    call = await within("the queued message is taken up", until(phone, pending))
    lost = [
        what
        for screen in stage.screens
        for what in missing(screen.name, before[screen.name], _confirmed(screen))
    ]
    await stage.rest(0.5)
    option = decide(phone, call, approve=True)
    stage.say(f'The agent asks, and the phone approves: "{option}".')
    await both(stage, "the second turn ends", lambda chat: chat.active_turn is None)
    stage.say("The turn is done, on both screens alike.")
    stage.checks += judge_crash(stage.screens, lost=lost)
    await stage.rest(0.3)


def _message(text: str) -> Message:
    return Message(text=text, origin=MessageOrigin(kind="user"))


# ---- what must not be lost ----------------------------------------------------------------------


def _confirmed(screen: Screen) -> ChatState:
    """What the host has told this screen of the chat, without what only the screen thinks."""
    assert screen.client is not None
    assert screen.chat is not None
    chat: ChatState = screen.client.store(screen.chat).confirmed
    return chat


def missing(screen: str, before: ChatState, now: ChatState) -> Iterator[str]:
    """What a screen was told before, and does not hold any more."""
    turns = [*now.turns, *(() if now.active_turn is None else (now.active_turn,))]
    texts = {turn.id: _text(turn) for turn in turns}
    running = () if before.active_turn is None else (before.active_turn,)
    for turn in (*before.turns, *running):
        if not texts.get(turn.id, "").startswith(_text(turn)):
            yield f"some of the turn {turn.id} on the {screen}"
    told = {turn.message.text for turn in turns}
    told |= {each.message.text for each in now.queued_messages or ()}
    for each in before.queued_messages or ():
        if each.message.text not in told:
            yield f"a queued message on the {screen}"
    if before.draft != now.draft:
        yield f"the draft on the {screen}"


def _text(turn: Turn | ActiveTurn) -> str:
    parts = (part for part in turn.response_parts if isinstance(part, MarkdownResponsePart))
    return "".join(str(part.content) for part in parts)
