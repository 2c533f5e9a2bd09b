"""What an agent waits for, and the answer that lets it go on when nobody gives one.

An agent that asked must be answered, whatever becomes of its question (hazard B28): by the people
it asked; when nobody can see the question, at once; and when the turn ends, then (R-11.15).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from ahpd.agents import events as ev
from ahpd.agents.port import Answer, Answers, Authorized, ClientResult, Permission, Verdict
from ahpd.protocol.tools import ToolCallError, ToolCallResult
from ahpd.protocol.uris import URI

#: Which chat it is asked in, the kind of answer it wants, and about what.
Key: TypeAlias = tuple[URI, type, str]

_OVER = "the turn is over"
_NO_CLIENT = "no client runs this tool any more"


def refusal(event: ev.Event) -> Answer | None:
    """The answer that lets the agent go on without anybody; None when `event` asks nothing."""
    refuse = _REFUSALS.get(type(event))
    return None if refuse is None else refuse(event)


def about(answer: Answer) -> str:
    """The id of what an answer is about."""
    return answer.request_id if isinstance(answer, Answers) else answer.call_id


class Waits:
    """What one agent waits for, in all chats that it fills."""

    def __init__(self) -> None:
        self._refusals: dict[Key, Answer] = {}
        #: What an agent that is gone asked and another one will ask again, with the answer if it
        #: has come meanwhile.
        self._expected: dict[Key, Answer | None] = {}

    def __bool__(self) -> bool:
        """Whether the agent waits for anything."""
        return bool(self._refusals)

    def note(self, chat: URI, event: ev.Event) -> bool:
        """The agent said this in that chat; False when it asks nothing, or asked it before.

        A call that goes on by itself waits for nothing any more, nor does a question taken back.
        """
        if isinstance(event, ev.ToolReady | ev.ToolFinished):
            for kind in (Permission, ClientResult, Authorized, Verdict):
                self._refusals.pop((chat, kind, event.call_id), None)
        if isinstance(event, ev.QuestionsOver):
            self._refusals.pop((chat, Answers, event.request_id), None)
        answer = refusal(event)
        if answer is None:
            return False
        key = (chat, type(answer), about(answer))
        is_new = key not in self._refusals
        self._refusals[key] = answer
        return is_new

    def expect(self, chat: URI, kind: type[Answer], about: str) -> None:
        """The agent will ask for this, which was asked before; an answer may come first."""
        self._expected[chat, kind, about] = None

    def again(self, chat: URI, event: ev.Event) -> tuple[bool, Answer | None]:
        """Whether this asks what was expected, and the answer if it has come already."""
        refused = refusal(event)
        key = None if refused is None else (chat, type(refused), about(refused))
        if key is None or key not in self._expected:
            return False, None
        return True, self._expected.pop(key)

    def take(self, chat: URI, answer: Answer) -> bool:
        """Somebody answers in that chat; False when the agent does not wait for that."""
        key = (chat, type(answer), about(answer))
        if key in self._expected:
            self._expected[key] = answer
        return self._refusals.pop(key, None) is not None

    def release(self, is_over: Callable[[URI], bool] = lambda _: True) -> Sequence[Answer]:
        """The answers to what nobody will answer any more, in the chats where that `is_over`."""
        for key in [key for key in self._expected if is_over(key[0])]:
            del self._expected[key]
        gone = [key for key in self._refusals if is_over(key[0])]
        return [self._refusals.pop(key) for key in gone]


def _result(event: ev.ClientToolCalled) -> ClientResult:
    failed = ToolCallResult(
        success=False,
        past_tense_message=f"{event.title}: not run",
        error=ToolCallError(message=_NO_CLIENT),
    )
    return ClientResult(event.call_id, failed)


def _verdict(event: ev.ToolFinished) -> Verdict | None:
    return Verdict(event.call_id, approved=False) if event.asks_approval else None


_REFUSALS: Mapping[type, Callable[[Any], Answer | None]] = {
    ev.ToolAsks: lambda event: Permission(event.call_id, approved=False, reason=_OVER),
    ev.QuestionsAsked: lambda event: Answers(event.request.id, "cancel"),
    ev.ToolFinished: _verdict,
    ev.ClientToolCalled: _result,
    ev.ToolNeedsAuth: lambda event: Authorized(event.call_id, None),
}
