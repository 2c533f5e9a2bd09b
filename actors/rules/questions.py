"""Rules for the answers to an agent's questions (RULES 11).

A draft may be half an answer: only what can never become one is refused. What is submitted, and
all that is there when a request is accepted, has to keep within the limits of its question.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import date
from typing import Any
from urllib.parse import urlsplit

from actors.clock import from_iso
from ahpd.protocol.chat_actions import ChatInputCompletedAction
from ahpd.protocol.inputs import (
    ChatInputAnswer,
    ChatInputAnswered,
    ChatInputMultiSelectQuestion,
    ChatInputNumberQuestion,
    ChatInputRequest,
    ChatInputSelectedAnswerValue,
    ChatInputSelectedManyAnswerValue,
    ChatInputSingleSelectQuestion,
    ChatInputSkipped,
    ChatInputTextQuestion,
)
from ahpd.protocol.model import Unknown

#: Kind of question -> kind of a value that answers it (R-11.6).
_ANSWERS = {
    "text": "text",
    "number": "number",
    "integer": "number",
    "boolean": "boolean",
    "single-select": "selected",
    "multi-select": "selected-many",
}


def answer_fault(
    request: ChatInputRequest, question_id: str, answer: ChatInputAnswer | None
) -> str | None:
    """Why this answer to one question is refused; None when it is not (R-11.5, R-11.6)."""
    question = _question(request, question_id)
    if question is None:
        return f"the request has no question {question_id}"
    if not isinstance(answer, ChatInputAnswered):
        return None
    return _unfit(question, answer.value) or (
        _beyond(question, answer.value) if answer.state == "submitted" else None
    )


def completion_fault(request: ChatInputRequest, action: ChatInputCompletedAction) -> str | None:
    """Why a request cannot be completed so (R-11.9); to decline or to cancel asks for nothing."""
    for question_id, answer in (action.answers or {}).items():
        reason = answer_fault(request, question_id, answer)
        if reason is not None:
            return reason
    if action.response != "accept":
        return None
    answers = {**(request.answers or {}), **(action.answers or {})}
    for question in request.questions or ():
        if isinstance(question, Unknown):
            continue
        reason = _missing(question, answers.get(question.id))
        if reason is not None:
            return reason
    return None


def _question(request: ChatInputRequest, question_id: str) -> Any:
    """The question of that id, also one of a kind that is not known here."""
    for question in request.questions or ():
        known = question.raw.get("id") if isinstance(question, Unknown) else question.id
        if known == question_id:
            return question
    return None


def _missing(question: Any, given: ChatInputAnswer | None) -> str | None:
    if question.required and not (
        isinstance(given, ChatInputAnswered) and given.state == "submitted"
    ):
        state = "skipped" if isinstance(given, ChatInputSkipped) else "not answered"
        return f"the question {question.id} has to be answered and is {state}"
    if isinstance(given, ChatInputAnswered):
        return _beyond(question, given.value)
    return None


def _unfit(question: Any, value: Any) -> str | None:
    """What no more typing can make right: another kind of value, a choice that is not offered."""
    kind, wanted = getattr(value, "kind", None), _ANSWERS.get(getattr(question, "kind", ""))
    if wanted is not None and kind != wanted:
        return f"the question {question.id} is answered with a {wanted}, not a {kind}"
    match question, value:
        case ChatInputSingleSelectQuestion(), ChatInputSelectedAnswerValue():
            return _not_offered(question, (value.value,), value.freeform_values)
        case ChatInputMultiSelectQuestion(), ChatInputSelectedManyAnswerValue():
            return _not_offered(question, value.value, value.freeform_values)
        case _:
            return None


def _not_offered(
    question: ChatInputSingleSelectQuestion | ChatInputMultiSelectQuestion,
    chosen: Iterable[str],
    freeform: Iterable[str] | None,
) -> str | None:
    """Where free text is allowed it may stand for the choice itself, or beside it."""
    if question.allow_freeform_input:
        return None
    if any(freeform or ()):
        return f"the question {question.id} takes no text of its own"
    offered = {option.id for option in question.options}
    for each in chosen:
        if each not in offered:
            return f"the question {question.id} has no option {each}"
    return None


def _beyond(question: Any, value: Any) -> str | None:
    """The limits that a question sets for its answer."""
    check = _LIMITS.get(type(question))
    return None if check is None or isinstance(value, Unknown) else check(question, value)


def _outside(question: Any, measure: float, what: str) -> str | None:
    if question.min is not None and measure < question.min:
        return f"the question {question.id} takes {what} of at least {question.min:g}"
    if question.max is not None and measure > question.max:
        return f"the question {question.id} takes {what} of at most {question.max:g}"
    return None


def _text(question: ChatInputTextQuestion, value: Any) -> str | None:
    is_right = _FORMATS.get(question.format or "")
    if is_right is not None and not is_right(value.value):
        return f"the question {question.id} takes a text in the format {question.format}"
    return _outside(question, len(value.value), "a length")


def _number(question: ChatInputNumberQuestion, value: Any) -> str | None:
    if question.kind == "integer" and value.value != int(value.value):
        return f"the question {question.id} takes whole numbers only"
    return _outside(question, value.value, "a number")


def _several(question: ChatInputMultiSelectQuestion, value: Any) -> str | None:
    chosen = {*value.value, *(value.freeform_values or ())}
    return _outside(question, len(chosen), "a number of choices")


_LIMITS: Mapping[type, Callable[[Any, Any], str | None]] = {
    ChatInputTextQuestion: _text,
    ChatInputNumberQuestion: _number,
    ChatInputMultiSelectQuestion: _several,
}


def _is_email(text: str) -> bool:
    name, at, place = text.partition("@")
    return bool(name and at and place) and "@" not in place and not any(map(str.isspace, text))


def _is_uri(text: str) -> bool:
    try:
        return bool(urlsplit(text).scheme) and not any(map(str.isspace, text))
    except ValueError:
        return False


def _is_date(text: str) -> bool:
    try:
        return date.fromisoformat(text).isoformat() == text
    except ValueError:
        return False


def _is_moment(text: str) -> bool:
    return "T" in text.upper() and from_iso(text) is not None


#: Formats that an MCP server may ask for; a text in any other is taken as it comes.
_FORMATS: Mapping[str, Callable[[str], bool]] = {
    "email": _is_email,
    "uri": _is_uri,
    "date": _is_date,
    "date-time": _is_moment,
}
