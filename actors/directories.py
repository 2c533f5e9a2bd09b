"""What a change of a session's working directories means for its chats (R-8.57).

A chat that names directories of its own may name only those of its session. So one that the session
gives up is given up by its chats in the same step, and one that is replaced is replaced there too.
Chats that name none work in all there are. Their agents notice before their next turn
(`actors.run.Engine`), which is when a change can start them again without cutting anything off.
"""

from __future__ import annotations

from collections.abc import Iterator

from actors.host import Host
from actors.ledger import Channel
from ahpd.protocol.actions import StateAction
from ahpd.protocol.chat_actions import (
    ChatWorkingDirectoryRemovedAction,
    ChatWorkingDirectorySetAction,
)
from ahpd.protocol.session_actions import (
    SessionWorkingDirectoryRemovedAction,
    SessionWorkingDirectoryReplacedAction,
)


def narrowed(
    host: Host, session: Channel, action: StateAction | None
) -> Iterator[tuple[Channel, StateAction]]:
    """What has to be said on the session's chats after `action`, each with the chat's channel."""
    if not isinstance(
        action, (SessionWorkingDirectoryRemovedAction, SessionWorkingDirectoryReplacedAction)
    ):
        return
    for chat in host.ledger.channels_of(session.uri):
        named = chat.state.working_directories if chat.kind == "chat" else None
        if action.directory not in (named or ()):
            continue
        # The new one first: without any the chat would be shut out for a moment.
        if isinstance(action, SessionWorkingDirectoryReplacedAction):
            yield chat, ChatWorkingDirectorySetAction(directory=action.replacement)
        if action.directory not in (session.state.working_directories or ()):
            yield chat, ChatWorkingDirectoryRemovedAction(directory=action.directory)
