"""What clients send to a chat and is its session's to say, whatever it means for the chat."""

from __future__ import annotations

from actors.messages import ChatArchived, ChatConfigured, ChatTitled
from actors.rules import chat as rules
from actors.rules.titles import title_fault
from ahpd.protocol.actions import StateAction
from ahpd.protocol.chat_actions import ChatIsArchivedChangedAction
from ahpd.protocol.session_actions import SessionConfigChangedAction, SessionTitleChangedAction


def for_session(
    case: rules.Case, action: StateAction | None
) -> ChatTitled | ChatArchived | ChatConfigured | None:
    """What to tell the session; None: nothing.

    No chat action carries a title (quirk 22), a default chat is archived with its session, and the
    session says settings, a chat's own included.
    """
    uri = case.channel.uri
    match action:
        case SessionTitleChangedAction(title=title) if title_fault(title) is None:
            return ChatTitled(uri, title)
        case ChatIsArchivedChangedAction(is_archived=is_archived):
            return ChatArchived(uri, is_archived)
        case SessionConfigChangedAction(config=config) if rules.judge(case, action) is None:
            return ChatConfigured(uri, config)
        case _:
            return None
