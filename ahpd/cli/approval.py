"""What a person at the terminal is asked: whether a tool may run, and how they answer.

Nothing is approved by accident: what was typed before the question does not count, and an empty
line, answers that are none of those offered, and the end of the input are all no.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from typing import Any, TypeAlias

import attrs
import trio

from ahpd.cli.edits import edit_lines
from ahpd.cli.following import plain
from ahpd.cli.output import Output
from ahpd.cli.shown import line, safe
from ahpd.protocol.chat import ChatState, ToolCallResponsePart
from ahpd.protocol.chat_actions import (
    ChatToolCallApprovedAction,
    ChatToolCallDeniedAction,
    ChatToolCallResultConfirmedAction,
)
from ahpd.protocol.tools import (
    ConfirmationOption,
    ToolCallPendingConfirmationState,
    ToolCallPendingResultConfirmationState,
)

Waiting: TypeAlias = ToolCallPendingConfirmationState | ToolCallPendingResultConfirmationState
Decision: TypeAlias = (
    ChatToolCallApprovedAction | ChatToolCallDeniedAction | ChatToolCallResultConfirmedAction
)

#: The states of a call in which somebody has to decide.
WAITING = (ToolCallPendingConfirmationState, ToolCallPendingResultConfirmationState)

#: Characters of a tool's input that are shown.
_INPUT = 2000
#: Bytes of one answer, and how many answers that are none are borne.
_LONGEST_ANSWER = 4096
_ATTEMPTS = 5


@attrs.frozen
class Choice:
    """One answer that can be given. `option` is the one that the host offered, if it did."""

    label: str
    approves: bool
    option: ConfirmationOption | None = None


def waiting(chat: ChatState, call_id: str) -> Waiting | None:
    """The call with this id, if it waits in the running turn."""
    parts = () if chat.active_turn is None else chat.active_turn.response_parts
    for part in parts:
        if (
            isinstance(part, ToolCallResponsePart)
            and isinstance(part.tool_call, WAITING)
            and part.tool_call.tool_call_id == call_id
        ):
            return part.tool_call
    return None


def choices(call: Waiting) -> Sequence[Choice]:
    """The answers to a call: those that the host offers, else yes and no. One is always a no."""
    options = call.options if isinstance(call, ToolCallPendingConfirmationState) else None
    found = [
        Choice(line(option.label) or line(option.id), option.kind == "approve", option)
        for option in options or ()
    ]
    if not found:
        found.append(Choice("Yes", True))
    if all(each.approves for each in found):
        found.append(Choice("No", False))
    return found


def first(call: Waiting, *, approves: bool) -> Choice:
    """The first answer of a kind; a plain yes where none is offered to say it by."""
    fitting = (each for each in choices(call) if each.approves is approves)
    return next(fitting, Choice("Yes", approves))


def decision(turn_id: str, call: Waiting, choice: Choice) -> Decision:
    """The action that gives an answer."""
    names: dict[str, Any] = {"turn_id": turn_id, "tool_call_id": call.tool_call_id}
    if isinstance(call, ToolCallPendingResultConfirmationState):
        return ChatToolCallResultConfirmedAction(approved=choice.approves, **names)
    names["selected_option_id"] = None if choice.option is None else choice.option.id
    if choice.approves:
        return ChatToolCallApprovedAction(confirmed="user-action", **names)
    return ChatToolCallDeniedAction(reason="denied", **names)


def question(call: Waiting) -> Iterator[str]:
    """The lines that put a call before a person, without the answers."""
    if isinstance(call, ToolCallPendingConfirmationState):
        title = line(plain(call.confirmation_title)) or f"Allow {line(call.display_name)}?"
    else:
        title = f"Show the agent the result of {line(call.display_name)}?"
    yield title
    message = line(plain(call.invocation_message))
    if message and message != title:
        yield f"  {message}"
    edits = call.edits if isinstance(call, ToolCallPendingConfirmationState) else None
    if edits is not None and edits.items:
        for edit in edits.items:
            yield from (f"  {text}" for text in edit_lines(edit))
    elif isinstance(call.tool_input, str):
        more = " …" if len(call.tool_input) > _INPUT else ""
        for each in (safe(call.tool_input[:_INPUT]) + more).split("\n"):
            yield f"  {each}"
    elif call.tool_input is not None:
        yield f"  {line(call.tool_input.uri)}"


class Terminal:
    """The person at standard input, who is told things on standard error."""

    def __init__(self, out: Output) -> None:
        self._out = out
        self._fd = sys.stdin.fileno()
        self._typed = b""

    async def choose(self, call: Waiting) -> Choice:
        """Ask until there is an answer. On cancel the question is simply over."""
        offered = choices(call)
        no = next(place for place, each in enumerate(offered, 1) if not each.approves)
        self._drop_typed()
        for text in question(call):
            self._tell(text)
        for number, each in enumerate(offered, 1):
            self._tell(f"  {number}  {each.label}")
        for _ in range(_ATTEMPTS):
            self._out.prompt(f"Choose 1 to {len(offered)} [{no}]: ")
            answer = await self._line()
            if answer is not None:
                self._out.typed()
            if not answer:
                break
            if answer.isascii() and answer.isdecimal() and 1 <= int(answer) <= len(offered):
                return offered[int(answer) - 1]
            self._tell(f"That is not one of 1 to {len(offered)}.")
        return offered[no - 1]

    def _tell(self, text: str) -> None:
        self._out.item(text, always=True, fg="yellow")

    def _drop_typed(self) -> None:
        """What was typed before the question was not meant for it."""
        import termios  # noqa: PLC0415 - not everywhere

        self._typed = b""
        termios.tcflush(self._fd, termios.TCIFLUSH)

    async def _line(self) -> str | None:
        """The next line; None at the end of the input. Takes nothing away when cancelled."""
        while b"\n" not in self._typed:
            await trio.lowlevel.wait_readable(self._fd)
            try:
                more = os.read(self._fd, _LONGEST_ANSWER)
            except OSError:  # the terminal is gone
                return None
            self._typed += more
            if not more or len(self._typed) > _LONGEST_ANSWER:
                return None
        answer, _, self._typed = self._typed.partition(b"\n")
        return answer.decode(errors="replace").strip()
