"""`tell`: word from one of the host's actors to another that may have been set aside.

Nothing that is told this way is lost for good: who is started again looks at the states of those
who told it (`actors.summaries`), so being told is only a reason to look now. And who is parked must
not take along those who go on talking to it.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

from actors.ledger import Channel
from actors.messages import ChatMoved, SessionMoved
from supervisors import ActorGone, Ref


def tell(ref: Ref[Any], message: object) -> None:
    """Send `message`, if anybody is there to take it."""
    with suppress(ActorGone):
        ref.cast(message)


def stir_session(find: Callable[[str], Ref[Any]], session: Channel) -> None:
    """Let the catalogue look at a session, unless it has been asked to and has not yet."""
    if not session.stirred:
        session.stirred = True
        tell(find("catalogue"), SessionMoved(session.uri))


def stir_chat(find: Callable[[str], Ref[Any]], chat: Channel, session: Channel | None) -> None:
    """Let a session look at a chat of its, unless it has been asked to and has not yet."""
    if session is not None and not chat.stirred:
        chat.stirred = True
        tell(find(session.path), ChatMoved(chat.uri))
