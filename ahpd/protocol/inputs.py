"""Questions that an agent asks people, and their answers (RULES 11)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, TypeAlias

from ahpd.protocol.model import Unknown, Wire
from ahpd.protocol.uris import URI

ChatInputResponseKind: TypeAlias = Literal["accept", "decline", "cancel"]


class ChatInputAnswered(Wire):
    """An answer with a value, still a draft or submitted."""

    state: Literal["draft", "submitted"]
    value: ChatInputAnswerValue


class ChatInputBooleanAnswerValue(Wire):
    """Yes or no."""

    kind: Literal["boolean"] = "boolean"
    value: bool


class ChatInputQuestionBase(Wire):
    """What all questions have."""

    id: str
    title: str | None = None
    message: str
    required: bool | None = None


class ChatInputBooleanQuestion(ChatInputQuestionBase):
    """Asks for yes or no."""

    kind: Literal["boolean"] = "boolean"
    default_value: bool | None = None


class ChatInputMultiSelectQuestion(ChatInputQuestionBase):
    """Asks for any number of the options."""

    kind: Literal["multi-select"] = "multi-select"
    options: tuple[ChatInputOption, ...]
    allow_freeform_input: bool | None = None
    min: float | None = None
    max: float | None = None


class ChatInputNumberAnswerValue(Wire):
    """A number."""

    kind: Literal["number"] = "number"
    value: float


class ChatInputNumberQuestion(ChatInputQuestionBase):
    """Asks for a number; `integer` for a whole one."""

    kind: Literal["number", "integer"]
    min: float | None = None
    max: float | None = None
    default_value: float | None = None


class ChatInputOption(Wire):
    """One choice of a select question."""

    id: str
    label: str
    description: str | None = None
    recommended: bool | None = None


class ChatInputRequest(Wire):
    """Questions asked together, or a URL to open, with the answers so far."""

    id: str
    message: str | None = None
    url: URI | None = None
    questions: tuple[ChatInputQuestion, ...] | None = None
    answers: Mapping[str, ChatInputAnswer] | None = None


class ChatInputSelectedAnswerValue(Wire):
    """One option."""

    kind: Literal["selected"] = "selected"
    value: str
    freeform_values: tuple[str, ...] | None = None


class ChatInputSelectedManyAnswerValue(Wire):
    """Several options."""

    kind: Literal["selected-many"] = "selected-many"
    value: tuple[str, ...]
    freeform_values: tuple[str, ...] | None = None


class ChatInputSingleSelectQuestion(ChatInputQuestionBase):
    """Asks for one of the options."""

    kind: Literal["single-select"] = "single-select"
    options: tuple[ChatInputOption, ...]
    allow_freeform_input: bool | None = None


class ChatInputSkipped(Wire):
    """An answer that says there is none."""

    state: Literal["skipped"] = "skipped"
    freeform_values: tuple[str, ...] | None = None


class ChatInputTextAnswerValue(Wire):
    """Text."""

    kind: Literal["text"] = "text"
    value: str


class ChatInputTextQuestion(ChatInputQuestionBase):
    """Asks for text."""

    kind: Literal["text"] = "text"
    format: str | None = None
    min: float | None = None
    max: float | None = None
    default_value: str | None = None


ChatInputAnswer: TypeAlias = ChatInputAnswered | ChatInputSkipped | Unknown


ChatInputAnswerValue: TypeAlias = (
    ChatInputTextAnswerValue
    | ChatInputNumberAnswerValue
    | ChatInputBooleanAnswerValue
    | ChatInputSelectedAnswerValue
    | ChatInputSelectedManyAnswerValue
    | Unknown
)


ChatInputQuestion: TypeAlias = (
    ChatInputTextQuestion
    | ChatInputNumberQuestion
    | ChatInputBooleanQuestion
    | ChatInputSingleSelectQuestion
    | ChatInputMultiSelectQuestion
    | Unknown
)
