"""An agent's elicitation as questions to people, and their answers as its outcome. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from ahpd.agents.acp.tolerant import dict_of, dicts_of, number_of, text_of
from ahpd.agents.port import Answers
from ahpd.protocol.inputs import (
    ChatInputAnswer,
    ChatInputAnswered,
    ChatInputBooleanAnswerValue,
    ChatInputBooleanQuestion,
    ChatInputMultiSelectQuestion,
    ChatInputNumberAnswerValue,
    ChatInputNumberQuestion,
    ChatInputOption,
    ChatInputQuestion,
    ChatInputRequest,
    ChatInputSelectedAnswerValue,
    ChatInputSelectedManyAnswerValue,
    ChatInputSingleSelectQuestion,
    ChatInputTextAnswerValue,
    ChatInputTextQuestion,
)
from ahpd.protocol.model import JSON

#: The outcome when nobody can be asked, or nobody answers any more.
CANCELLED: JSON = {"action": "cancel"}

_PLAIN = ChatInputTextAnswerValue | ChatInputNumberAnswerValue | ChatInputBooleanAnswerValue


def asked(request_id: str, params: Any) -> ChatInputRequest | None:
    """The questions of an ``elicitation/create``; None for a mode that is not known."""
    message = text_of(params, "message")
    match text_of(params, "mode"):
        case "url" if url := text_of(params, "url"):
            return ChatInputRequest(id=request_id, message=message, url=url)
        case "form" | None:
            questions = tuple(_questions(params))
            return ChatInputRequest(id=request_id, message=message, questions=questions or None)
        case _:
            return None


def outcome(params: Any, answers: Answers) -> JSON:
    """What to answer it with. What was not said, or does not fit the schema, is left out."""
    if answers.response != "accept":
        return {"action": answers.response}
    schemas = dict_of(params, "requestedSchema", "properties")
    content: dict[str, JSON] = {}
    for key, schema in schemas.items():
        value = _value(answers.answers.get(key))
        fitting = _FITTING.get(_kind(schema), _as_text)(value)
        if fitting is not None:
            content[key] = fitting
    return {"action": "accept", "content": content} if schemas else {"action": "accept"}


# ---- questions ----------------------------------------------------------------------------------


def _questions(params: Any) -> Iterator[ChatInputQuestion]:
    schema = dict_of(params, "requestedSchema")
    required = schema.get("required")
    required = required if isinstance(required, list) else []
    for key, inner in dict_of(schema, "properties").items():
        if isinstance(inner, dict):
            yield _question(key, inner, key in required)


def _question(key: str, schema: dict[str, Any], required: bool) -> ChatInputQuestion:
    title, description = text_of(schema, "title"), text_of(schema, "description")
    base: dict[str, Any] = {
        "id": key,
        "title": title,
        "message": description or title or key,
        "required": required or None,
    }
    default = schema.get("default")
    kind = _kind(schema)
    match kind:
        case "boolean":
            value = default if isinstance(default, bool) else None
            return ChatInputBooleanQuestion(**base, default_value=value)
        case "number" | "integer":
            return ChatInputNumberQuestion(
                **base,
                kind=kind,
                min=number_of(schema, "minimum"),
                max=number_of(schema, "maximum"),
                default_value=number_of(schema, "default"),
            )
        case "one":
            return ChatInputSingleSelectQuestion(**base, options=_options(schema, [default]))
        case "many":
            chosen = default if isinstance(default, list) else []
            return ChatInputMultiSelectQuestion(
                **base,
                options=_options(dict_of(schema, "items"), chosen),
                min=number_of(schema, "minItems"),
                max=number_of(schema, "maxItems"),
            )
        case _:
            return ChatInputTextQuestion(
                **base,
                format=text_of(schema, "format"),
                min=number_of(schema, "minLength"),
                max=number_of(schema, "maxLength"),
                default_value=text_of(schema, "default"),
            )


def _kind(schema: Any) -> str:
    """What is asked for; a type that nobody knows is asked for as text."""
    kind = text_of(schema, "type")
    if kind == "array":
        return "many"
    if kind in ("boolean", "number", "integer"):
        return kind
    return "one" if _choices(schema) else "text"


def _choices(schema: Any) -> Sequence[tuple[str, str, str | None]]:
    """What can be chosen, as (value, label, description)."""
    values = dict_of(schema).get("enum")
    if isinstance(values, list):
        names = dict_of(schema).get("enumNames")
        names = names if isinstance(names, list) and len(names) == len(values) else values
        return [
            (value, name if isinstance(name, str) else value, None)
            for value, name in zip(values, names, strict=True)
            if isinstance(value, str)
        ]
    return [
        (value, text_of(each, "title") or value, text_of(each, "description"))
        for each in (*dicts_of(schema, "oneOf"), *dicts_of(schema, "anyOf"))
        if (value := text_of(each, "const")) is not None
    ]


def _options(schema: Any, chosen: Sequence[Any]) -> tuple[ChatInputOption, ...]:
    return tuple(
        ChatInputOption(
            id=value,
            label=label,
            description=description,
            recommended=True if value in chosen else None,
        )
        for value, label, description in _choices(schema)
    )


# ---- answers ------------------------------------------------------------------------------------


def _value(answer: ChatInputAnswer | None) -> Any:
    if not isinstance(answer, ChatInputAnswered):
        return None
    match answer.value:
        case ChatInputSelectedAnswerValue() as one:
            return one.freeform_values[0] if one.freeform_values else one.value
        case ChatInputSelectedManyAnswerValue() as many:
            return [*many.value, *(many.freeform_values or ())]
        case (
            ChatInputTextAnswerValue()
            | ChatInputNumberAnswerValue()
            | ChatInputBooleanAnswerValue()
        ) as plain:
            return plain.value
        case _:
            return None


def _as_text(value: Any) -> JSON:
    return value if isinstance(value, str) else None


def _as_number(value: Any) -> JSON:
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None


def _as_whole(value: Any) -> JSON:
    number = _as_number(value)
    return int(number) if number is not None and number == int(number) else None


_FITTING: Mapping[str, Callable[[Any], JSON]] = {
    "text": _as_text,
    "one": _as_text,
    "number": _as_number,
    "integer": _as_whole,
    "boolean": lambda value: value if isinstance(value, bool) else None,
    "many": lambda value: value if isinstance(value, list) else None,
}
