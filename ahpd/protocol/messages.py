"""What is said to an agent: messages, their attachments, pending messages, completions."""

from __future__ import annotations

from typing import Literal, TypeAlias

from ahpd.protocol.common import (
    AgentSelection,
    BaseParams,
    ModelSelection,
    TextRange,
    TextSelection,
)
from ahpd.protocol.model import Object, Unknown, Wire
from ahpd.protocol.uris import URI

CompletionItemKind: TypeAlias = Literal["userMessage"]


MessageKind: TypeAlias = Literal["user", "agent", "tool", "automation", "systemNotification"]


PendingMessageKind: TypeAlias = Literal["steering", "queued"]


class CompletionItem(Wire):
    """One suggestion; the range is half open, in UTF-16 units (R-22.4)."""

    insert_text: str
    range_start: float | None = None
    range_end: float | None = None
    attachment: MessageAttachment


class CompletionsParams(BaseParams):
    """Asks what fits at `offset` (UTF-16 units) of a message being written."""

    kind: CompletionItemKind
    text: str
    offset: float


class CompletionsResult(Wire):
    """The suggestions."""

    items: tuple[CompletionItem, ...]


class Message(Wire):
    """What somebody, or something, said to the agent."""

    text: str
    origin: MessageOrigin
    attachments: tuple[MessageAttachment, ...] | None = None
    model: ModelSelection | None = None
    agent: AgentSelection | None = None
    meta: Object | None = None


class MessageAttachmentBase(Wire):
    """What all attachments have."""

    label: str
    range: TextRange | None = None
    display_kind: str | None = None
    meta: Object | None = None


class MessageAnnotationsAttachment(MessageAttachmentBase):
    """Refers to annotations: all of a channel, or those listed (R-16.12)."""

    type: Literal["annotations"] = "annotations"
    resource: URI
    annotation_ids: tuple[str, ...] | None = None


class MessageChatAttachment(MessageAttachmentBase):
    """The transcript of a chat up to a turn that is pinned on acceptance (R-9.38)."""

    type: Literal["chat"] = "chat"
    resource: URI
    end_turn: str | None = None


class MessageEmbeddedResourceAttachment(MessageAttachmentBase):
    """Content carried inside the message, base64."""

    type: Literal["embeddedResource"] = "embeddedResource"
    data: str
    content_type: str
    selection: TextSelection | None = None


class MessageOrigin(Wire):
    """Who wrote the message; a client may only say ``user`` (R-9.35)."""

    kind: MessageKind


class MessageResourceAttachment(MessageAttachmentBase):
    """A file or another resource by reference."""

    type: Literal["resource"] = "resource"
    uri: URI
    size_hint: float | None = None
    content_type: str | None = None
    nonce: str | None = None
    selection: TextSelection | None = None


class PendingMessage(Wire):
    """A message that waits for its turn, or to steer the running one."""

    id: str
    message: Message


class SimpleMessageAttachment(MessageAttachmentBase):
    """Text given to the model under a label."""

    type: Literal["simple"] = "simple"
    model_representation: str | None = None


MessageAttachment: TypeAlias = (
    SimpleMessageAttachment
    | MessageEmbeddedResourceAttachment
    | MessageResourceAttachment
    | MessageAnnotationsAttachment
    | MessageChatAttachment
    | Unknown
)
