"""What people ran on terminals since the agent was last asked something: it is told so (R-12.6).

A message that is a command is a turn of the chat in which no agent has a part. The next prompt
brings what was run, how it ended, and the end of what it said. All of it is in the chat's state, so
that nothing is lost by a restart, and nothing is told that was taken back. Pure.
"""

from __future__ import annotations

from collections.abc import Sequence

from ahpd.agents.port import Ran
from ahpd.protocol.chat import ChatState, ToolCallResponsePart, Turn
from ahpd.protocol.common import StringOrMarkdown
from ahpd.protocol.tools import ToolCallCompletedState, ToolResultTextContent

#: The id of the call that stands for a command; it is the only one of its turn.
CALL = "command"
#: What a message begins with that is a command (R-4.14).
PREFIX = "!"


def ran_beside(chat: ChatState) -> Sequence[Ran]:
    """The commands that ran since the last turn of the agent's, the oldest first."""
    found: list[Ran] = []
    for turn in reversed(chat.turns):
        if not turn.message.text.startswith(PREFIX):
            break
        ran = _ran(turn)
        if ran is None and turn.response_parts:
            break  # it began like one, and was for the agent
        if ran is not None:
            found.append(ran)
    return found[::-1]


def _ran(turn: Turn) -> Ran | None:
    for part in turn.response_parts:
        if isinstance(part, ToolCallResponsePart) and part.tool_call.tool_call_id == CALL:  # type: ignore[union-attr]
            command = turn.message.text.removeprefix(PREFIX).strip()
            call = part.tool_call
            if not isinstance(call, ToolCallCompletedState):
                return Ran(command, "It was stopped.")
            texts = [
                str(each.text)
                for each in call.content or ()
                if isinstance(each, ToolResultTextContent)
            ]
            return Ran(command, _plain(call.past_tense_message), "".join(texts))
    return None


def _plain(text: StringOrMarkdown) -> str:
    return text if isinstance(text, str) else text.markdown
