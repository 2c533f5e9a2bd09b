"""What people do with sessions: mark, configure, remark on, make, move and end them."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING, Any

from ahpd.protocol import annotations as marks
from ahpd.protocol import chat_actions as act
from ahpd.protocol import session_actions as sess
from ahpd.protocol.actions import ACTIONS, StateAction
from ahpd.protocol.codec import decode
from ahpd.protocol.customizations import SessionEnablement
from ahpd.protocol.root import RootConfigChangedAction
from ahpd.protocol.session import SessionActiveClient
from ahpd.protocol.tools import ToolDefinition
from ahpd.protocol.uris import ROOT
from tests.actors.support import least
from tests.chaos.screen import Screen
from tests.chaos.wishes import DIRECTORIES, message

if TYPE_CHECKING:
    from tests.chaos.walk import Walk


# ---- marks and settings -------------------------------------------------------------------------


def mark(walk: Walk, screen: Screen, dice: Random) -> None:
    """Something is marked read or archived, or named."""
    chat, session = screen.a_chat(dice), screen.a_session(dice)
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
    if (shown := screen.a_session(dice)) is None:
        return
    action: Any = sess.SessionActiveClientRemovedAction(client_id=screen.name)
    if dice.random() < 0.7:
        tools = (ToolDefinition(name="open"),) if dice.random() < 0.9 else ()
        client = SessionActiveClient(client_id=screen.name, tools=tools)
        action = sess.SessionActiveClientSetAction(active_client=client)
    screen.dispatch(shown[0], action)


def place(walk: Walk, screen: Screen, dice: Random) -> None:
    """A session is given a directory, loses one, or has another in its place."""
    if (shown := screen.a_session(dice)) is None:
        return
    directory, other = dice.sample(DIRECTORIES, 2)
    match dice.randrange(4):
        case 0 | 1:
            action: Any = sess.SessionWorkingDirectorySetAction(directory=directory)
        case 2:
            action = sess.SessionWorkingDirectoryRemovedAction(directory=directory)
        case _:
            action = sess.SessionWorkingDirectoryReplacedAction(
                directory=directory, replacement=other
            )
    screen.dispatch(shown[0], action)


def set_up(walk: Walk, screen: Screen, dice: Random) -> None:
    """A setting of a session, or of one of its chats: good, bad, or none there is."""
    shown = screen.a_session(dice) if dice.random() < 0.6 else screen.a_chat(dice)
    if shown is None:
        return
    config: dict[str, Any] = {}
    for _ in range(dice.randrange(1, 3)):
        key, values = dice.choice(_SETTINGS)
        config[key] = dice.choice(values)
    replace = True if dice.random() < 0.1 else None
    screen.dispatch(shown[0], sess.SessionConfigChangedAction(config=config, replace=replace))


#: Settings of the agents of walks (`tests.harness.configured`), and values that people try.
_SETTINGS: tuple[tuple[str, tuple[Any, ...]], ...] = (
    ("mode", ("ask", "plan", "ask", "plan", "never")),
    ("voice", ("calm", "loud", 5)),
    ("tags", (["a"], ["a", "b"], [], ["a", "b", "c"])),
    ("budget", (1, 99.5, 101)),
    ("version", ("7", "8")),
    ("colour", ("red",)),
)


def meddle(walk: Walk, screen: Screen, dice: Random) -> None:
    """What is the host's to say, or belongs to channels that are not served or not there."""
    info = dice.choice(_UNSERVED if dice.random() < 0.7 else _HOSTS)
    uri = dice.choice([*walk.channels(), "ahp-terminal:/never-was"])
    action: Any = decode(StateAction, {**least(info.classes[0]), "type": info.type})
    screen.dispatch(uri, action)


_SERVED = ("root", "session", "chat", "annotations")
_HOSTS = [info for info in ACTIONS.values() if not info.client_may_dispatch]
_UNSERVED = [
    info for info in ACTIONS.values() if info.client_may_dispatch and info.channel not in _SERVED
]


def configure(walk: Walk, screen: Screen, dice: Random) -> None:
    """A setting of the host, good or bad."""
    size = dice.choice([1, 2 << 20, 16 << 20])
    config = {dice.choice(["clientQueueBytes", "replayBytes"]): size}
    screen.dispatch(ROOT, RootConfigChangedAction(config=config))


def switch(walk: Walk, screen: Screen, dice: Random) -> None:
    """A customization is switched, or something is wanted of a server."""
    if (shown := screen.a_session(dice)) is None:
        return
    match dice.randrange(5):
        case 0:
            action: Any = sess.SessionMcpServerStopRequestedAction(id="s")
        case 1:
            action = sess.SessionMcpServerStartRequestedAction(id="s")
        case 2:
            action = sess.SessionMcpServerBackgroundRequestedAction(id="s")
        case _:
            wanted = dice.choice(["s", "ahpd.commands/prompts", "never-was"])
            on = SessionEnablement(enabled=dice.random() < 0.5)
            action = sess.SessionCustomizationToggledAction(id=wanted, enablement=(on,))
    screen.dispatch(shown[0], action)


# ---- making, ending, looking --------------------------------------------------------------------


def create_chat(walk: Walk, screen: Screen, dice: Random) -> None:
    """A chat more, sometimes with its first message."""
    if (shown := screen.a_session(dice)) is None or len(shown[1].chats) >= 4:
        return
    name = walk.old_name("chat", dice) if dice.random() < 0.2 else None
    params: dict[str, Any] = {
        "channel": shown[0],
        "chat": f"ahp-chat:/{name or walk.name('chat')}",
    }
    if dice.random() < 0.3:
        params["initialMessage"] = message("Begin").wire()
    chat = screen.a_chat(dice)
    if dice.random() < 0.3:
        params["workingDirectories"] = dice.sample(DIRECTORIES, dice.randrange(3))
    if chat is not None and dice.random() < 0.5:
        turns = [turn.id for turn in chat[1].turns]
        turns += [chat[1].active_turn.id] if chat[1].active_turn is not None else []
        kind = dice.choice(["fork", "sideChat"])
        turn = dice.choice([*turns, "never-was"])
        params["source"] = {"kind": kind, "chat": chat[0], "turnId": turn}
        if kind == "sideChat" and dice.random() < 0.3:
            params["source"]["selection"] = {"text": "word7"}
    walk.later(screen.request, "createChat", params)


def dispose_chat(walk: Walk, screen: Screen, dice: Random) -> None:
    """A chat less; the last one cannot go."""
    if (shown := screen.a_session(dice)) is not None and shown[1].chats:
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
    entry = marks.AnnotationEntry(id=f"e{dice.randrange(2)}", text="Why?")
    match dice.randrange(6):
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
        case 4:
            yes = dice.random() < 0.7
            settled = marks.AnnotationsUpdatedAction(annotation_id=wanted, resolved=yes)
            screen.dispatch(uri, settled)
        case _:
            screen.dispatch(uri, marks.AnnotationsRemovedAction(annotation_id=wanted))


def create_session(walk: Walk, screen: Screen, dice: Random) -> None:
    """A session more, or one that is there already, or one that was and has ended."""
    if len(walk.sessions()) < 3:
        name, old = f"puppet:/{walk.name('session')}", list(walk.made)
        uri = name if dice.random() < 0.5 else dice.choice(old)
        walk.made[uri] = None
        params: dict[str, Any] = {"channel": uri, "workingDirectories": list(DIRECTORIES[:1])}
        if dice.random() < 0.3:
            params["activeClient"] = {"clientId": screen.name, "tools": []}
        if dice.random() < 0.3:
            params["config"] = {"voice": "loud"}
        if dice.random() < 0.3:
            params["progressToken"] = walk.name("token")
        walk.later(screen.request, "createSession", params)


def dispose_session(walk: Walk, screen: Screen, dice: Random) -> None:
    """A session less, while there is another."""
    sessions = walk.sessions()
    if len(sessions) > 1:
        walk.later(screen.request, "disposeSession", {"channel": dice.choice(sessions)})
