"""What happens in a walk: one function for each kind of move, and how often each is made."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from random import Random
from typing import TYPE_CHECKING, Any, TypeAlias

from ahpd.protocol.connection import SubscribeView, SubscriptionDeliveryOptions
from ahpd.protocol.uris import ROOT, URI, annotations_of, default_chat
from tests.chaos import chat_moves as chats
from tests.chaos import session_moves as sessions
from tests.chaos.screen import Screen

if TYPE_CHECKING:
    from tests.chaos.walk import Walk

Move: TypeAlias = Callable[["Walk", Screen, Random], None]


# ---- looking ------------------------------------------------------------------------------------


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
    chats.start_turn: 80,
    chats.start_about: 8,
    chats.start_two: 8,
    chats.start_used: 4,
    chats.cancel: 14,
    chats.resume: 14,
    chats.decide: 40,
    chats.reply: 40,
    chats.settle: 20,
    chats.go_back: 6,
    sessions.switch: 8,
    chats.run_tool: 30,
    chats.queue: 18,
    chats.queue_used: 6,
    chats.steer: 10,
    chats.take_back: 6,
    chats.reorder: 5,
    chats.draft: 14,
    chats.narrow: 6,
    sessions.mark: 16,
    sessions.take_part: 20,
    sessions.configure: 3,
    sessions.place: 8,
    sessions.set_up: 10,
    sessions.meddle: 10,
    sessions.create_chat: 8,
    sessions.dispose_chat: 4,
    sessions.move_chat: 10,
    sessions.annotate: 24,
    sessions.create_session: 4,
    sessions.dispose_session: 3,
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
    return (session, default_chat(session), annotations_of(session))
