"""What people do in a walk: one function for each kind of move, and how often each is made."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from random import Random
from typing import TYPE_CHECKING, Any, TypeAlias

from ahpd.protocol import annotations as marks
from ahpd.protocol import chat_actions as act
from ahpd.protocol import session_actions as sess
from ahpd.protocol.chat import ChatState
from ahpd.protocol.connection import SubscribeView, SubscriptionDeliveryOptions
from ahpd.protocol.customizations import SessionEnablement
from ahpd.protocol.root import RootConfigChangedAction
from ahpd.protocol.session import SessionActiveClient
from ahpd.protocol.tools import (
    ToolCallAuthRequiredState,
    ToolCallPendingResultConfirmationState,
    ToolCallResult,
    ToolDefinition,
    ToolResultTextContent,
)
from ahpd.protocol.uris import ROOT, URI, default_chat
from tests.chaos.screen import Screen
from tests.chaos.wishes import (
    calls_of,
    confirm,
    message,
    name_them,
    questions_of,
    start_message,
    waiting_calls,
)

if TYPE_CHECKING:
    from tests.chaos.walk import Walk

Move: TypeAlias = Callable[["Walk", Screen, Random], None]


def _chat(screen: Screen, dice: Random) -> tuple[URI, ChatState] | None:
    """One of the chats that the screen shows, as it shows it."""
    stores = screen.stores("chat")
    if not stores:
        return None
    uri = dice.choice(list(stores))
    return uri, stores[uri].optimistic


def _session(screen: Screen, dice: Random) -> tuple[URI, Any] | None:
    stores = screen.stores("session")
    if not stores:
        return None
    uri = dice.choice(list(stores))
    return uri, stores[uri].optimistic


# ---- turns --------------------------------------------------------------------------------------


def _start(walk: Walk, uri: URI, screen: Screen) -> None:
    screen.dispatch(uri, start_message(walk.name("turn")))


def start_turn(walk: Walk, screen: Screen, dice: Random) -> None:
    """Somebody asks for something, perhaps while the agent is busy."""
    if (shown := _chat(screen, dice)) is not None:
        _start(walk, shown[0], screen)


def start_two(walk: Walk, screen: Screen, dice: Random) -> None:
    """Two ask in the same moment: one of them is refused."""
    shown = _chat(screen, dice)
    other = dice.choice(walk.screens)
    if shown is not None and other is not screen:
        _start(walk, shown[0], screen)
        if shown[0] in other.stores("chat"):
            _start(walk, shown[0], other)


def start_used(walk: Walk, screen: Screen, dice: Random) -> None:
    """A turn that was there before is started again."""
    shown = _chat(screen, dice)
    if shown is not None and shown[1].turns:
        turn = dice.choice(list(shown[1].turns))
        screen.dispatch(shown[0], start_message(turn.id).evolve(message=turn.message))


def cancel(walk: Walk, screen: Screen, dice: Random) -> None:
    """The running turn is cancelled, or now and then one that does not run."""
    shown = _chat(screen, dice)
    if shown is None:
        return
    turn = shown[1].active_turn
    wanted = turn.id if turn is not None else "never-was"
    if turn is not None or dice.random() < 0.2:
        screen.dispatch(shown[0], act.ChatTurnCancelledAction(turn_id=wanted, duration=1.0))


def resume(walk: Walk, screen: Screen, dice: Random) -> None:
    """The last turn is resumed, after an error or not."""
    shown = _chat(screen, dice)
    if shown is not None and shown[1].turns:
        screen.dispatch(shown[0], act.ChatTurnResumeAction(turn_id=shown[1].turns[-1].id))


def decide(walk: Walk, screen: Screen, dice: Random) -> None:
    """A call that waits is approved or denied; sometimes one that does not wait."""
    if (shown := _chat(screen, dice)) is None:
        return
    uri, chat = shown
    calls: list[Any] = list(waiting_calls(chat))
    if not calls and dice.random() < 0.1:
        calls = list(calls_of(chat))
    if calls:
        call, yes = dice.choice(calls), dice.random() < 0.6
        screen.dispatch(uri, confirm(chat, approved=yes, call=call))


def reply(walk: Walk, screen: Screen, dice: Random) -> None:
    """A question is answered bit by bit, or all at once, or not at all."""
    if (shown := _chat(screen, dice)) is None or not (asked := questions_of(shown[1])):
        return
    request, text = dice.choice(asked).id, f"name {dice.randrange(9)}"
    if dice.random() < 0.4:
        answer = None if dice.random() < 0.2 else name_them(text, submitted=dice.random() < 0.5)
        question = "name" if dice.random() < 0.9 else "sure"
        screen.dispatch(
            shown[0],
            act.ChatInputAnswerChangedAction(
                request_id=request, question_id=question, answer=answer
            ),
        )
        return
    response: Any = dice.choice(["accept", "accept", "decline", "cancel"])
    answers = {"name": name_them(text, submitted=True)} if dice.random() < 0.7 else None
    screen.dispatch(
        shown[0],
        act.ChatInputCompletedAction(request_id=request, response=response, answers=answers),
    )


def settle(walk: Walk, screen: Screen, dice: Random) -> None:
    """A result is approved or not; a token is given up on."""
    if (shown := _chat(screen, dice)) is None or shown[1].active_turn is None:
        return
    turn = shown[1].active_turn.id
    for call in calls_of(shown[1]):
        match call:
            case ToolCallPendingResultConfirmationState():
                action: Any = act.ChatToolCallResultConfirmedAction(
                    turn_id=turn, tool_call_id=call.tool_call_id, approved=dice.random() < 0.5
                )
            case ToolCallAuthRequiredState():
                action = act.ChatToolCallCompleteAction(
                    turn_id=turn,
                    tool_call_id=call.tool_call_id,
                    result=ToolCallResult(success=False, past_tense_message="No token"),
                )
            case _:
                continue
        screen.dispatch(shown[0], action)


def go_back(walk: Walk, screen: Screen, dice: Random) -> None:
    """A conversation is taken back to an earlier turn, to its beginning, or to none that it has."""
    if (shown := _chat(screen, dice)) is None:
        return
    turns = [turn.id for turn in shown[1].turns]
    wanted = dice.choice([*turns[-4:], None, "never-was"])
    screen.dispatch(shown[0], act.ChatTruncatedAction(turn_id=wanted))


def switch(walk: Walk, screen: Screen, dice: Random) -> None:
    """A customization is switched, or something is wanted of a server."""
    if (shown := _session(screen, dice)) is None:
        return
    match dice.randrange(4):
        case 0:
            action: Any = sess.SessionMcpServerStopRequestedAction(id="s")
        case 1:
            action = sess.SessionMcpServerStartRequestedAction(id="s")
        case _:
            wanted = dice.choice(["s", "ahpd.commands/prompts", "never-was"])
            on = SessionEnablement(enabled=dice.random() < 0.5)
            action = sess.SessionCustomizationToggledAction(id=wanted, enablement=(on,))
    screen.dispatch(shown[0], action)


def run_tool(walk: Walk, screen: Screen, dice: Random) -> None:
    """A client goes on with a call of its tool, or ends it; sometimes one that is another's."""
    if (shown := _chat(screen, dice)) is None:
        return
    uri, chat = shown
    calls = [call for call in calls_of(chat) if _is_of(call, screen.name) or dice.random() < 0.1]
    if not calls or chat.active_turn is None:
        return
    call: Any = dice.choice(calls)
    names: dict[str, Any] = {"turn_id": chat.active_turn.id, "tool_call_id": call.tool_call_id}
    if dice.random() < 0.3:
        content = (ToolResultTextContent(text="half"),)
        screen.dispatch(uri, act.ChatToolCallContentChangedAction(**names, content=content))
        return
    result = ToolCallResult(success=dice.random() < 0.8, past_tense_message="Opened it")
    screen.dispatch(uri, act.ChatToolCallCompleteAction(**names, result=result))


def _is_of(call: Any, name: str) -> bool:
    return getattr(call.contributor, "client_id", None) == name


# ---- what waits, and what is typed --------------------------------------------------------------


def queue(walk: Walk, screen: Screen, dice: Random) -> None:
    """A message is queued, or one that waits is changed."""
    if (shown := _chat(screen, dice)) is None:
        return
    waiting = shown[1].queued_messages or ()
    wanted = dice.choice(waiting).id if waiting and dice.random() < 0.3 else walk.name("message")
    text = f"Then {wanted} {dice.randrange(9)}"
    action = act.ChatPendingMessageSetAction(kind="queued", id=wanted, message=message(text))
    screen.dispatch(shown[0], action)


def queue_used(walk: Walk, screen: Screen, dice: Random) -> None:
    """A message is sent again that was queued, or steered, some time ago."""
    if (shown := _chat(screen, dice)) is None:
        return
    kind: Any = dice.choice(["queued", "steering"])
    name = walk.old_name("message" if kind == "queued" else "steering", dice)
    if name is not None:
        action = act.ChatPendingMessageSetAction(kind=kind, id=name, message=message("Again"))
        screen.dispatch(shown[0], action)


def steer(walk: Walk, screen: Screen, dice: Random) -> None:
    """A message for the running turn."""
    if (shown := _chat(screen, dice)) is None:
        return
    wanted = walk.name("steering")
    action = act.ChatPendingMessageSetAction(
        kind="steering", id=wanted, message=message(f"Rather {wanted}")
    )
    screen.dispatch(shown[0], action)


def take_back(walk: Walk, screen: Screen, dice: Random) -> None:
    """A message that waits is taken away."""
    if (shown := _chat(screen, dice)) is None:
        return
    kind: Any = "queued"
    waiting = list(shown[1].queued_messages or ())
    if shown[1].steering_message is not None and dice.random() < 0.5:
        kind, waiting = "steering", [shown[1].steering_message]
    if waiting:
        action = act.ChatPendingMessageRemovedAction(kind=kind, id=dice.choice(waiting).id)
        screen.dispatch(shown[0], action)


def reorder(walk: Walk, screen: Screen, dice: Random) -> None:
    """The queue is sorted."""
    if (shown := _chat(screen, dice)) is None:
        return
    order = [each.id for each in shown[1].queued_messages or ()]
    dice.shuffle(order)
    if order:
        screen.dispatch(shown[0], act.ChatQueuedMessagesReorderedAction(order=tuple(order)))


def draft(walk: Walk, screen: Screen, dice: Random) -> None:
    """Somebody types, or clears what is typed."""
    if (shown := _chat(screen, dice)) is not None:
        text = f"draft {dice.randrange(99)}"
        action = act.ChatDraftChangedAction(draft=message(text) if dice.random() < 0.8 else None)
        screen.dispatch(shown[0], action)


def mark(walk: Walk, screen: Screen, dice: Random) -> None:
    """Something is marked read or archived, or named."""
    chat, session = _chat(screen, dice), _session(screen, dice)
    yes = dice.random() < 0.5
    match dice.randrange(6):
        case 0 if chat is not None:
            screen.dispatch(chat[0], act.ChatIsReadChangedAction(is_read=yes))
        case 1 if chat is not None:
            screen.dispatch(chat[0], act.ChatIsArchivedChangedAction(is_archived=yes))
        case 2 if session is not None:
            screen.dispatch(session[0], sess.SessionIsReadChangedAction(is_read=yes))
        case 3 if session is not None:
            screen.dispatch(session[0], sess.SessionIsArchivedChangedAction(is_archived=yes))
        case 4 if session is not None:
            title = f"Title {dice.randrange(9)}" if dice.random() < 0.9 else " "
            screen.dispatch(session[0], sess.SessionTitleChangedAction(title=title))
        case 5 if chat is not None:
            title = f"Chat {dice.randrange(9)}"
            screen.dispatch(chat[0], sess.SessionTitleChangedAction(title=title))
        case _:
            pass


def take_part(walk: Walk, screen: Screen, dice: Random) -> None:
    """The client joins a session, or leaves it."""
    if (shown := _session(screen, dice)) is None:
        return
    action: Any = sess.SessionActiveClientRemovedAction(client_id=screen.name)
    if dice.random() < 0.7:
        tools = (ToolDefinition(name="open"),) if dice.random() < 0.7 else ()
        client = SessionActiveClient(client_id=screen.name, tools=tools)
        action = sess.SessionActiveClientSetAction(active_client=client)
    screen.dispatch(shown[0], action)


def configure(walk: Walk, screen: Screen, dice: Random) -> None:
    """A setting of the host, good or bad."""
    size = dice.choice([1, 2 << 20, 16 << 20])
    config = {dice.choice(["clientQueueBytes", "replayBytes"]): size}
    screen.dispatch(ROOT, RootConfigChangedAction(config=config))


# ---- making, ending, looking --------------------------------------------------------------------


def create_chat(walk: Walk, screen: Screen, dice: Random) -> None:
    """A chat more, sometimes with its first message."""
    if (shown := _session(screen, dice)) is None or len(shown[1].chats) >= 4:
        return
    name = walk.old_name("chat", dice) if dice.random() < 0.2 else None
    params: dict[str, Any] = {
        "channel": shown[0],
        "chat": f"ahp-chat:/{name or walk.name('chat')}",
    }
    if dice.random() < 0.3:
        params["initialMessage"] = message("Begin").wire()
    chat = _chat(screen, dice)
    if chat is not None and chat[1].turns and dice.random() < 0.4:
        turn = dice.choice(list(chat[1].turns)).id
        kind = dice.choice(["fork", "sideChat"])
        params["source"] = {"kind": kind, "chat": chat[0], "turnId": turn}
    walk.later(screen.request, "createChat", params)


def dispose_chat(walk: Walk, screen: Screen, dice: Random) -> None:
    """A chat less; the last one cannot go."""
    if (shown := _session(screen, dice)) is not None and shown[1].chats:
        chat = dice.choice(list(shown[1].chats)).resource
        walk.later(screen.request, "disposeChat", {"channel": chat})


def move_chat(walk: Walk, screen: Screen, dice: Random) -> None:
    """A chat goes somewhere else: in its session, to another, to one made for it."""
    if not walk.chats() or not walk.sessions():
        return
    destination: dict[str, Any] = {"kind": "newSession"}
    if dice.random() < 0.85 or len(walk.sessions()) > 3:
        destination = {"kind": "session", "session": dice.choice(walk.sessions())}
        if dice.random() < 0.5:
            destination["after"] = dice.choice(walk.chats())
    params = {"channel": dice.choice(walk.chats()), "destination": destination}
    walk.later(screen.request, "moveChat", params)


def annotate(walk: Walk, screen: Screen, dice: Random) -> None:
    """A remark on a file is made, answered, settled or dropped."""
    stores = screen.stores("annotations")
    if not stores:
        return
    uri = dice.choice(list(stores))
    known = [each.id for each in stores[uri].optimistic.annotations]
    wanted = dice.choice(known) if known and dice.random() < 0.8 else walk.name("remark")
    entry = marks.AnnotationEntry(id=f"e{dice.randrange(3)}", text="Why?")
    match dice.randrange(5):
        case 0 | 1:
            origin = marks.AnnotationOrigin(session=uri.removesuffix("/annotations"))
            made = marks.Annotation(
                id=wanted, origin=origin, resource="file:///a", resolved=False, entries=(entry,)
            )
            screen.dispatch(uri, marks.AnnotationsSetAction(annotation=made))
        case 2:
            screen.dispatch(uri, marks.AnnotationsEntrySetAction(annotation_id=wanted, entry=entry))
        case 3:
            action = marks.AnnotationsEntryRemovedAction(annotation_id=wanted, entry_id=entry.id)
            screen.dispatch(uri, action)
        case _:
            screen.dispatch(uri, marks.AnnotationsRemovedAction(annotation_id=wanted))


def create_session(walk: Walk, screen: Screen, dice: Random) -> None:
    """A session more, or one that is there already, or one that was and has ended."""
    if len(walk.sessions()) < 3:
        name, old = f"puppet:/{walk.name('session')}", list(walk.made)
        uri = name if dice.random() < 0.5 else dice.choice(old)
        walk.made[uri] = None
        walk.later(screen.request, "createSession", {"channel": uri})


def dispose_session(walk: Walk, screen: Screen, dice: Random) -> None:
    """A session less, while there is another."""
    sessions = walk.sessions()
    if len(sessions) > 1:
        walk.later(screen.request, "disposeSession", {"channel": dice.choice(sessions)})


def ask(walk: Walk, screen: Screen, dice: Random) -> None:
    """Questions that change nothing."""
    match dice.randrange(3):
        case 0:
            walk.later(screen.request, "ping", {"channel": ROOT})
        case 1:
            walk.later(screen.request, "listSessions", {"channel": ROOT})
        case _:
            chats = list(screen.stores("chat"))
            if chats:
                walk.later(screen.request, "fetchTurns", {"channel": dice.choice(chats)})


def subscribe(walk: Walk, screen: Screen, dice: Random) -> None:
    """Show one channel more; of a chat perhaps its newest turns, perhaps not at once."""
    uri = dice.choice(walk.channels())
    options: dict[str, Any] = {}
    if uri in walk.chats():
        if dice.random() < 0.3:
            options["view"] = SubscribeView(turns=dice.randrange(4))
        if dice.random() < 0.3:
            hold = dice.choice([1, 50, 500])
            options["delivery"] = SubscriptionDeliveryOptions(max_latency_ms=hold)
    walk.later(lambda: screen.subscribe(uri, **options))


def unsubscribe(walk: Walk, screen: Screen, dice: Random) -> None:
    """Show one channel less."""
    if screen.client is not None and len(screen.client.channels) > 2:
        screen.client.unsubscribe(dice.choice(list(screen.client.channels)))


# ---- the network, and time ----------------------------------------------------------------------


def hold(walk: Walk, screen: Screen, dice: Random) -> None:
    """A wire becomes slow."""
    screen.wire.hold("down" if dice.random() < 0.6 else "up")


def deliver(walk: Walk, screen: Screen, dice: Random) -> None:
    """Piecemeal: a few messages get through."""
    screen.wire.deliver("up", dice.randrange(4))
    screen.wire.deliver("down", dice.randrange(6))


def release(walk: Walk, screen: Screen, dice: Random) -> None:
    """A wire is fast again."""
    screen.wire.release()


def cut(walk: Walk, screen: Screen, dice: Random) -> None:
    """The connection breaks, with whatever is under way."""
    screen.wire.cut()


def hang_up(walk: Walk, screen: Screen, dice: Random) -> None:
    """The client goes, and says so."""
    if screen.client is not None:
        walk.later(screen.client.disconnect)


def reconnect(walk: Walk, screen: Screen, dice: Random) -> None:
    """The client comes back, or makes a new connection in place of one that works."""
    if not screen.is_up or dice.random() < 0.1:
        walk.later(screen.reconnect)


def restart(walk: Walk, screen: Screen, dice: Random) -> None:
    """The client's program is closed and started again: it initializes."""
    screen.restart()


def agent(walk: Walk, screen: Screen, dice: Random) -> None:
    """An agent does something."""
    walk.puppeteer.act(dice)


def break_agent(walk: Walk, screen: Screen, dice: Random) -> None:
    """From now on no agent comes up, or they do again."""
    walk.puppeteer.agent.broken = "no agent today" if dice.random() < 0.3 else None


#: Each kind of move, and its weight.
MOVES: Mapping[Move, int] = {
    agent: 100,
    start_turn: 80,
    start_two: 8,
    start_used: 4,
    cancel: 14,
    resume: 6,
    decide: 40,
    reply: 30,
    settle: 20,
    go_back: 6,
    switch: 8,
    run_tool: 20,
    queue: 18,
    queue_used: 6,
    steer: 10,
    take_back: 6,
    reorder: 5,
    draft: 14,
    mark: 16,
    take_part: 8,
    configure: 3,
    create_chat: 8,
    dispose_chat: 4,
    move_chat: 10,
    annotate: 8,
    create_session: 4,
    dispose_session: 3,
    ask: 10,
    subscribe: 40,
    unsubscribe: 6,
    hold: 20,
    deliver: 50,
    release: 24,
    cut: 14,
    hang_up: 4,
    reconnect: 110,
    restart: 3,
    break_agent: 4,
}


def first_channels(session: URI) -> tuple[URI, ...]:
    """What a screen shows of a session at first."""
    return (session, default_chat(session))
