"""What an agent asks of people, in its turn: each request is answered once, whatever happens.

Nobody is asked beside the turns, nor once a turn was cancelled: then the answer is "cancelled" at
once, since some agents wait for ever (hazard B28). A refusal is an outcome, and never an error.
So it is for what is asked when `MOST` questions are open already: nobody could answer them, and
each one more costs every client that is told what waits for it.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

from msgspec import Struct

from ahpd.agents.acp import elicitation, permissions
from ahpd.agents.acp.calls import Calls
from ahpd.agents.acp.rpc import Asked, Link
from ahpd.agents.acp.tolerant import dict_of, text_of
from ahpd.agents.events import Event, QuestionsAsked, QuestionsOver, SystemNotice
from ahpd.agents.port import Answer, Answers, Permission
from ahpd.protocol.model import JSON

_log = logging.getLogger("ahpd.agents.acp")

#: Questions of one agent's that may be open at a time.
MOST = 256

#: What is asked here, and the answer when nobody is there to give one.
CANCELLED: dict[str, JSON] = {
    "session/request_permission": permissions.CANCELLED,
    "elicitation/create": elicitation.CANCELLED,
}


class _Open(Struct, frozen=True, eq=False):
    """A request that waits. `key` is what the host answers by; `session` is who asked."""

    request: Asked
    key: str
    session: str
    calls: Calls | None = None


class Asks:
    """See the module."""

    def __init__(self, link: Link) -> None:
        self._link = link
        self._open: dict[tuple[type, str], _Open] = {}
        self._asked = 0
        self._is_told = False

    def cancel(self, request: Asked) -> None:
        """Answer one of these that nobody is asked."""
        self._link.reply(request, CANCELLED[request.method])

    def ask(self, request: Asked, session: str, calls: Calls) -> Sequence[Event]:
        """Put it to people: what to say. `calls` are those of the session that asks."""
        if len(self._open) >= MOST:
            return self._too_many(request)
        if request.method == "session/request_permission":
            told = dict_of(request.params, "toolCall")
            row, events = calls.asks(told, permissions.offered(request.params))
            self._open[Permission, row] = _Open(request, row, session, calls)
            return events
        self._asked += 1
        key = f"question-{self._asked}"
        questions = elicitation.asked(key, request.params)
        if questions is None:
            self.cancel(request)
            return ()
        self._open[Answers, key] = _Open(request, key, session)
        return (QuestionsAsked(questions),)

    def _too_many(self, request: Asked) -> Sequence[Event]:
        """Answer it unasked; people are told of that once in a turn."""
        self.cancel(request)
        if self._is_told:
            return ()
        self._is_told = True
        told = f"{MOST} questions are open; what else the agent asks is answered with: cancelled"
        _log.warning("agent %d: %s", self._link.process.pid, told)
        return (SystemNotice(told),)

    def answer(self, answer: Answer) -> None:
        """Somebody decided. What is not waited for is ignored."""
        if isinstance(answer, Permission):
            found = self._open.pop((Permission, answer.call_id), None)
            if found is not None and found.calls is not None:
                found.calls.answered(found.key, approved=answer.approved)
                self._link.reply(found.request, permissions.outcome(found.request.params, answer))
        elif isinstance(answer, Answers):
            found = self._open.pop((Answers, answer.request_id), None)
            if found is not None:
                self._link.reply(found.request, elicitation.outcome(found.request.params, answer))

    def take_back(self, request_id: Any) -> tuple[str, Sequence[Event]] | None:
        """The agent does not want to know any more: whose session asked, and what to say."""
        for place, each in self._open.items():
            wanted = each.request.id
            if wanted == request_id and type(wanted) is type(request_id):
                del self._open[place]
                self.cancel(each.request)
                return each.session, self._withdrawn(each)
        return None

    def _withdrawn(self, each: _Open) -> Sequence[Event]:
        if each.calls is not None:
            return each.calls.withdrawn(each.key)
        return (QuestionsOver(each.key, "cancel"),)

    def complete(self, elicitation_id: str | None) -> tuple[str, Sequence[Event]] | None:
        """What was to be done at a page is done, without anybody having said so here."""
        for place, each in self._open.items():
            named = text_of(each.request.params, "elicitationId")
            if place[0] is Answers and named is not None and named == elicitation_id:
                del self._open[place]
                self._link.reply(each.request, {"action": "accept"})
                return each.session, (QuestionsOver(each.key, "accept"),)
        return None

    def release(self) -> None:
        """Nobody decides any more about what is open."""
        left, self._open, self._is_told = self._open, {}, False
        for each in left.values():
            if each.calls is not None:
                each.calls.answered(each.key, approved=False)
            self.cancel(each.request)
