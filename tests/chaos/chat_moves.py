"""What people do in a chat: start turns, decide, answer, type."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING, Any

from ahpd.protocol import chat_actions as act
from ahpd.protocol.tools import (
    ToolCallAuthRequiredState,
    ToolCallPendingResultConfirmationState,
    ToolCallResult,
    ToolResultTextContent,
)
from ahpd.protocol.uris import URI
from tests.chaos.screen import Screen
from tests.chaos.wishes import (
    DIRECTORIES,
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


# ---- turns --------------------------------------------------------------------------------------


def _start(walk: Walk, uri: URI, screen: Screen) -> None:
    screen.dispatch(uri, start_message(walk.name("turn")))


def start_turn(walk: Walk, screen: Screen, dice: Random) -> None:
    """Somebody asks for something, perhaps while the agent is busy."""
    if (shown := screen.a_chat(dice)) is not None:
        _start(walk, shown[0], screen)


def start_about(walk: Walk, screen: Screen, dice: Random) -> None:
    """Somebody asks for something, and refers to a chat: another, this one, or none there is."""
    if (shown := screen.a_chat(dice)) is not None:
        about = dice.choice([*walk.chats(), "ahp-chat:/never-was"])
        turn = walk.name("turn")
        action = start_message(turn).evolve(message=message(f"Do {turn}", about=about))
        screen.dispatch(shown[0], action)


def start_two(walk: Walk, screen: Screen, dice: Random) -> None:
    """Two ask in the same moment: one of them is refused."""
    shown = screen.a_chat(dice)
    other = dice.choice(walk.screens)
    if shown is not None and other is not screen:
        _start(walk, shown[0], screen)
        if shown[0] in other.stores("chat"):
            _start(walk, shown[0], other)


def start_used(walk: Walk, screen: Screen, dice: Random) -> None:
    """A turn that was there before is started again."""
    shown = screen.a_chat(dice)
    if shown is not None and shown[1].turns:
        turn = dice.choice(list(shown[1].turns))
        screen.dispatch(shown[0], start_message(turn.id).evolve(message=turn.message))


def cancel(walk: Walk, screen: Screen, dice: Random) -> None:
    """The running turn is cancelled, or now and then one that does not run."""
    shown = screen.a_chat(dice)
    if shown is None:
        return
    turn = shown[1].active_turn
    wanted = turn.id if turn is not None else "never-was"
    if turn is not None or dice.random() < 0.2:
        screen.dispatch(shown[0], act.ChatTurnCancelledAction(turn_id=wanted, duration=1.0))


def resume(walk: Walk, screen: Screen, dice: Random) -> None:
    """The last turn is resumed, mostly after an error."""
    shown = screen.a_chat(dice)
    if shown is None or not shown[1].turns:
        return
    if shown[1].turns[-1].state == "error" or dice.random() < 0.2:
        screen.dispatch(shown[0], act.ChatTurnResumeAction(turn_id=shown[1].turns[-1].id))


def decide(walk: Walk, screen: Screen, dice: Random) -> None:
    """A call that waits is approved or denied; sometimes one that does not wait."""
    if (shown := screen.a_chat(dice)) is None:
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
    if (shown := screen.a_chat(dice)) is None or not (asked := questions_of(shown[1])):
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
    action = act.ChatInputCompletedAction(request_id=request, response=response, answers=answers)
    # Now and then somebody else does so in the same moment: the first counts.
    others = [dice.choice(walk.screens)] if dice.random() < 0.3 else []
    for each in (screen, *others):
        if shown[0] in each.stores("chat"):
            each.dispatch(shown[0], action)


def settle(walk: Walk, screen: Screen, dice: Random) -> None:
    """A result is approved or not; a token is given up on."""
    if (shown := screen.a_chat(dice)) is None or shown[1].active_turn is None:
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
    if (shown := screen.a_chat(dice)) is None:
        return
    turns = [turn.id for turn in shown[1].turns]
    wanted = dice.choice([*turns[-4:], None, "never-was"])
    screen.dispatch(shown[0], act.ChatTruncatedAction(turn_id=wanted))


def run_tool(walk: Walk, screen: Screen, dice: Random) -> None:
    """A client goes on with a call of its tool, or ends it; sometimes one that is another's."""
    if (shown := screen.a_chat(dice)) is None or shown[1].active_turn is None:
        return
    uri, turn = shown[0], shown[1].active_turn.id
    names = [each.name for each in walk.screens]
    calls = [call for call in calls_of(shown[1]) if _owner(call) in names]
    if not calls:
        return
    call: Any = dice.choice(calls)
    owner = walk.screens[names.index(_owner(call))]
    if dice.random() < 0.9 and uri in owner.stores("chat"):
        screen = owner
    fields: dict[str, Any] = {"turn_id": turn, "tool_call_id": call.tool_call_id}
    if dice.random() < 0.5:
        content = (ToolResultTextContent(text="half"),)
        screen.dispatch(uri, act.ChatToolCallContentChangedAction(**fields, content=content))
        return
    result = ToolCallResult(success=dice.random() < 0.8, past_tense_message="Opened it")
    screen.dispatch(uri, act.ChatToolCallCompleteAction(**fields, result=result))


def _owner(call: Any) -> Any:
    return getattr(call.contributor, "client_id", None)


# ---- what waits, and what is typed --------------------------------------------------------------


def queue(walk: Walk, screen: Screen, dice: Random) -> None:
    """A message is queued, or one that waits is changed."""
    if (shown := screen.a_chat(dice)) is None:
        return
    waiting = shown[1].queued_messages or ()
    wanted = dice.choice(waiting).id if waiting and dice.random() < 0.3 else walk.name("message")
    text = f"Then {wanted} {dice.randrange(9)}"
    action = act.ChatPendingMessageSetAction(kind="queued", id=wanted, message=message(text))
    screen.dispatch(shown[0], action)


def queue_used(walk: Walk, screen: Screen, dice: Random) -> None:
    """A message is sent again that was queued, or steered, some time ago."""
    if (shown := screen.a_chat(dice)) is None:
        return
    kind: Any = dice.choice(["queued", "steering"])
    name = walk.old_name("message" if kind == "queued" else "steering", dice)
    if name is not None:
        action = act.ChatPendingMessageSetAction(kind=kind, id=name, message=message("Again"))
        screen.dispatch(shown[0], action)


def steer(walk: Walk, screen: Screen, dice: Random) -> None:
    """A message for the running turn."""
    if (shown := screen.a_chat(dice)) is None:
        return
    wanted = walk.name("steering")
    action = act.ChatPendingMessageSetAction(
        kind="steering", id=wanted, message=message(f"Rather {wanted}")
    )
    screen.dispatch(shown[0], action)


def take_back(walk: Walk, screen: Screen, dice: Random) -> None:
    """A message that waits is taken away."""
    if (shown := screen.a_chat(dice)) is None:
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
    if (shown := screen.a_chat(dice)) is None:
        return
    order = [each.id for each in shown[1].queued_messages or ()]
    dice.shuffle(order)
    if order:
        screen.dispatch(shown[0], act.ChatQueuedMessagesReorderedAction(order=tuple(order)))


def draft(walk: Walk, screen: Screen, dice: Random) -> None:
    """Somebody types, or clears what is typed."""
    if (shown := screen.a_chat(dice)) is not None:
        text = f"draft {dice.randrange(99)}"
        action = act.ChatDraftChangedAction(draft=message(text) if dice.random() < 0.8 else None)
        screen.dispatch(shown[0], action)


def narrow(walk: Walk, screen: Screen, dice: Random) -> None:
    """A chat is given a directory of its session's, or loses one."""
    if (shown := screen.a_chat(dice)) is None:
        return
    directory = dice.choice(DIRECTORIES)
    if dice.random() < 0.6:
        screen.dispatch(shown[0], act.ChatWorkingDirectorySetAction(directory=directory))
    else:
        screen.dispatch(shown[0], act.ChatWorkingDirectoryRemovedAction(directory=directory))
