"""The status bitset of chats and sessions (R-7.31 to R-7.35).

Bits 0 to 4 hold exactly one activity, the others are independent flags; bits that are not known
here are kept.
"""

from __future__ import annotations

from ahpd.protocol.chat import ChatState

IDLE = 1
ERROR = 2
IN_PROGRESS = 8
#: Contains `IN_PROGRESS`.
INPUT_NEEDED = 24
READ = 32
ARCHIVED = 64

#: The bits that hold the activity.
ACTIVITY = 31
#: What `INPUT_NEEDED` has beyond `IN_PROGRESS`.
WAITS = INPUT_NEEDED & ~IN_PROGRESS


def set_activity(status: int, activity: int) -> int:
    """`status` with another activity and the same flags."""
    return int(status) & ~ACTIVITY | activity  # a peer may write a whole number as 8.0


def set_flag(status: int, flag: int, on: bool) -> int:
    """`status` with a flag set or cleared and the same activity."""
    return int(status) | flag if on else int(status) & ~flag


def activity_of(chat: ChatState) -> int:
    """What a chat is doing, computed from its turn (R-7.34).

    `ERROR` is never the answer: only `chat/error` sets it.
    """
    if chat.active_turn is None:
        return IDLE
    return INPUT_NEEDED if chat.active_turn.response_parts.tally() else IN_PROGRESS


def refreshed(chat: ChatState) -> ChatState:
    """The chat with the activity that its turn has; the same chat when it has it already."""
    status = set_activity(chat.status, activity_of(chat))
    return chat if status == chat.status else chat.evolve(status=status)
